"""A split in a terminal: how much for which task, why, what it hangs on, and what else could be done."""

from __future__ import annotations

import math

import typer

from bursar.allocation import Answer, half_life
from bursar.allocation.robust import Predicted
from bursar.cli.show import print_table
from bursar.report.wording import amount, share

MOVES = 8  # that are shown


def print_answer(answer: Answer) -> None:
    """The split, why, what it hangs on, and what else could be done."""
    _print_split(answer)
    for reason in answer.reasons:
        typer.echo(f"- {reason}")
    typer.echo()
    if answer.robust is not None and answer.moves:
        kept = answer.robust
        typer.echo(
            f"Whichever one estimate is off, this gains at most {amount(kept.regret)} less than the best split then.\n"
            f"No split keeps that below {amount(kept.bound)}; the exact one loses up to {amount(kept.nominal)}.\n"
        )
    _print_moves(answer)
    _print_others(answer)


def _print_split(answer: Answer) -> None:
    split, problem = answer.split, answer.split.problem
    rows = []
    for at, task in enumerate(split.tasks):
        half = half_life(problem.rates[at])
        alone = split.counts[at] > split.together or not split.together  # or all of its labels are of items for all
        rows.append(
            [
                task,
                f"{split.counts[at]:,}",
                problem.show(split.spent[at]) if alone else "–",
                share(split.spent[at], max(1, split.cost)) if alone else "–",
                f"{problem.first[at]:.3g}",
                "never" if math.isinf(half) else f"{half:,.0f}",
                _interval(answer.gains[task]),
            ]
        )
    if split.together and problem.joint is not None:
        money = split.together * problem.joint
        part = share(money, max(1, split.cost))
        rows.append(["items for all tasks", f"{split.together:,}", problem.show(money), part, "", "", ""])
    rows.append(["all", f"{sum(split.counts):,}", problem.show(split.cost), "", "", "", _interval(answer.whole)])
    title = f"{split.method} split of {problem.show(problem.budget)}: {problem.show(split.unspent)} not spent"
    columns = ["task", "labels", "money", "share", "worth", "half after", "gains (9 in 10 cases)"]
    print_table(title[0].upper() + title[1:], columns, rows)
    typer.echo("worth: of a first label, to all tasks together. half after: so many labels, one is worth half of the")
    typer.echo("first. gains: of the task from all labels, in labels of its own.\n")


def _interval(gain: Predicted) -> str:
    return f"{amount(gain.value)} ({amount(gain.low)} to {amount(gain.high)})"


def _print_moves(answer: Answer) -> None:
    if not answer.moves:
        typer.echo("No estimate has a standard error or an interval, so nothing can be said of what they move.\n")
        return
    telling = answer.telling
    if not telling:
        typer.echo(f"If one estimate is off ({len(answer.moves)} cases), this split is still the best.\n")
        return
    rows = [
        [
            move.scenario.what,
            amount(move.regret),
            share(move.regret, move.best.total),
            move.changes(answer.split),
        ]
        for move in telling[:MOVES]
    ]
    title = f"If one estimate is off ({len(answer.moves)} cases, the worst first)"
    print_table(title, ["case", "lost", "of the gain", "better then"], rows, numbers=False)


def _print_others(answer: Answer) -> None:
    rows = []
    for other in answer.others:
        counts = [f"{count:,}" for count in other.counts]
        rows.append([other.method, *counts, amount(other.total), share(other.total, answer.split.total)])
    columns = ["split", *answer.split.tasks, "gain", "of the above"]
    print_table("Other splits, by the same estimates", columns, rows)
    for said in answer.left_out:
        typer.echo(f"Not shown: {said}.")
