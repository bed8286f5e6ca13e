"""Print a budget split: labels per task, reasons, sensitivity to the estimates, and alternatives."""

from __future__ import annotations

import math

import typer

from bursar.allocation import SplitAdvice, half_life
from bursar.allocation.robust import PredictedGain
from bursar.cli.show import print_table
from bursar.report.wording import amount, share

MOST_CASES = 8


def print_answer(answer: SplitAdvice) -> None:
    """Print the split, its reasons, how sensitive it is to the estimates, and alternatives."""
    _print_split(answer)
    for reason in answer.reasons:
        typer.echo(f"- {reason}")
    typer.echo()
    if answer.robust is not None and answer.outcomes:
        kept = answer.robust
        typer.echo(
            f"If any one estimate is wrong, this split loses at most {amount(kept.regret)} against the best split.\n"
            f"No split can guarantee less than {amount(kept.bound)}. "
            f"The exact split loses up to {amount(kept.nominal)}.\n"
        )
    _print_moves(answer)
    _print_others(answer)


def _print_split(answer: SplitAdvice) -> None:
    split, problem = answer.split, answer.split.problem
    rows = []
    for at, task in enumerate(split.tasks):
        half = half_life(problem.rates[at])
        alone = (
            split.counts[at] > split.together or not split.together
        )  # else all its labels are on items for all tasks
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
    title = f"{split.method} split of {problem.show(problem.budget)}: {problem.show(split.unspent)} left"
    columns = ["task", "labels", "cost", "share", "first label", "half after", "gain (90 % interval)"]
    print_table(title[0].upper() + title[1:], columns, rows)
    typer.echo("first label: its value to all tasks. half after: number of labels after which a label is worth half of")
    typer.echo("the first. gain: what the task gains from all labels, in labels of its own.\n")


def _interval(gain: PredictedGain) -> str:
    return f"{amount(gain.value)} ({amount(gain.low)} to {amount(gain.high)})"


def _print_moves(answer: SplitAdvice) -> None:
    if not answer.outcomes:
        typer.echo("The estimates have no standard errors or intervals, so their effect on the split is not known.\n")
        return
    telling = answer.regretted
    if not telling:
        typer.echo(f"If any one estimate is wrong ({len(answer.outcomes)} cases), this split is still the best.\n")
        return
    rows = [
        [
            move.scenario.what,
            amount(move.regret),
            share(move.regret, move.best.total),
            move.changes(answer.split),
        ]
        for move in telling[:MOST_CASES]
    ]
    title = f"If one estimate is wrong ({len(answer.outcomes)} cases, worst first)"
    print_table(title, ["case", "loss", "share of gain", "better split"], rows, numbers=False)


def _print_others(answer: SplitAdvice) -> None:
    rows = []
    for other in answer.others:
        counts = [f"{count:,}" for count in other.counts]
        rows.append([other.method, *counts, amount(other.total), share(other.total, answer.split.total)])
    columns = ["split", *answer.split.tasks, "gain", "relative"]
    print_table("Other splits, with the same estimates", columns, rows)
    for said in answer.left_out:
        typer.echo(f"Not shown: {said}.")
