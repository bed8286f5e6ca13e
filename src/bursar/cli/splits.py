"""Print a budget split: labels per task, reasons, sensitivity to the estimates, and alternatives."""

from __future__ import annotations

import typer

from bursar.allocation import SplitAdvice
from bursar.cli.show import print_table
from bursar.report.allocation import moves_table, others_table, split_table
from bursar.report.wording import amount, sentence

MOST_CASES = 8
ON_PAGE = ("Price", "Reduction rate")  # columns that only the page has room for


def print_advice(advice: SplitAdvice) -> None:
    """Print the split, its reasons, how sensitive it is to the estimates, and alternatives."""
    split, problem = advice.split, advice.split.problem
    table = split_table(advice).without(*ON_PAGE)
    title = f"{split.method} split of {problem.show(problem.budget)}: {problem.show(split.unspent)} left"
    print_table(sentence(title), table.columns, table.rows)
    typer.echo("First label: its value to all tasks. Half after: number of labels after which a label is worth half of")
    typer.echo("the first. Gain: what the task gains from all labels, in labels of its own.\n")
    for reason in advice.reasons:
        typer.echo(f"- {reason}")
    typer.echo()
    if advice.robust is not None and advice.outcomes:
        kept = advice.robust
        typer.echo(
            f"If any one estimate is wrong, this split loses at most {amount(kept.regret)} against the best split.\n"
            f"No split can guarantee less than {amount(kept.bound)}. "
            f"The exact split loses up to {amount(kept.nominal)}.\n"
        )
    _print_moves(advice)
    table = others_table(advice)
    print_table("Other splits, with the same estimates", table.columns, table.rows)
    for said in advice.left_out:
        typer.echo(f"Not shown: {said}.")


def _print_moves(advice: SplitAdvice) -> None:
    cases = f"{len(advice.outcomes)} cases"
    if not advice.outcomes:
        typer.echo("The estimates have no standard errors or intervals, so their effect on the split is not known.\n")
    elif not advice.regretted:
        typer.echo(f"If any one estimate is wrong ({cases}), this split is still the best.\n")
    else:
        table = moves_table(advice, MOST_CASES)
        print_table(f"If one estimate is wrong ({cases}, worst first)", table.columns, table.rows, numbers=False)
