"""Worker process that computes how to split a budget between the tasks of a project.

``python -m bursar.web.advice_worker FOLDER MONEY`` prints its progress and then its result to standard output, one JSON
object per line. It writes no files and may be killed at any time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from bursar.allocation import Split, SplitAdvice, SplitProblem
from bursar.allocation.advice import advise
from bursar.allocation.split_inputs import inputs_of_run, measure
from bursar.annotation.subprocess_events import SendEvent, run_worker, stages_sent
from bursar.report.allocation import described, moves_table, others_table, split_table
from bursar.report.wording import amount, counted, percent
from bursar.web.panels.panel import table_section


def advice_view(found: SplitAdvice, about: Mapping[str, str]) -> dict[str, Any]:
    """A split as the page shows it: shares, gains by task, informativeness between tasks, and reasons."""
    split, problem = found.split, found.split.problem
    known, whole, off = problem.estimates.informativeness, found.whole, moves_table(found)
    gains = []
    for task, gain in found.gains.items():
        ends = {"low": gain.low, "middle": gain.value, "high": gain.high}
        between = f"{amount(gain.low)} to {amount(gain.high)}"
        gains.append({"task": task, "gain": amount(gain.value), "between": between} | ends)
    return {
        "budget": _money(problem, problem.budget),
        "shares": _shares(split),
        "gains": gains,
        "whole": f"{amount(whole.value)} labels’ worth ({amount(whole.low)} to {amount(whole.high)})",
        "reasons": list(found.reasons),
        "informs": {
            "tasks": list(known.tasks),
            "value": [[round(value, 3) for value in row] for row in known.value.tolist()],
            "error": [[round(value, 3) for value in row] for row in known.error.tolist()],
        },
        "tables": [
            table_section("Split", split_table(found)),
            table_section("Simple splits, by the same estimates", others_table(found)),
            *([table_section("If an estimate is wrong", off)] if off.rows else []),
        ],
        "about": dict(about),
    }


def _shares(split: Split) -> list[dict[str, Any]]:
    """Shares of the budget: first items labelled for all tasks at once, then labels for single tasks."""
    problem = split.problem

    def share(task: str | None, units: int, note: str) -> dict[str, Any]:
        part = units / max(1, split.cost)
        return {"task": task, "money": _money(problem, units), "share": part, "note": f"{percent(part)}, {note}"}

    shares = []
    if split.together and problem.joint is not None:
        items = f"{counted(split.together, 'item')} at {_money(problem, problem.joint)} each"
        shares.append(share(None, split.together * problem.joint, items))
    alone = ", for it alone" if split.together else ""
    for task, labels, units in zip(split.tasks, split.counts, split.spent, strict=True):
        shares.append(share(task, units, f"{counted(labels - split.together, 'label')}{alone}"))
    return shares


def _money(problem: SplitProblem, units: int) -> str:
    """An amount for a sentence: with its currency, or in units."""
    shown = problem.show(units)
    return shown if problem.costs.currency else f"{shown} units"


def main(arguments: list[str]) -> int:
    """Run as a worker process; returns the exit code."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m bursar.web.advice_worker FOLDER MONEY\n")
        return 2
    return run_worker(lambda send: _advise(Path(arguments[0]), Decimal(arguments[1]), send), niceness=10)


def _advise(folder: Path, money: Decimal, send: SendEvent) -> None:
    inputs = inputs_of_run(folder)
    inputs.check(money, inputs.method)

    progress = stages_sent(send)
    measured = measure(inputs, progress=progress)
    about = described(measured.estimates.informativeness.about) | {"rates from": measured.rater}
    found = advise(measured.problem(money), measured.context, method=inputs.method, progress=progress)
    send({"event": "advice", "found": advice_view(found, about)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
