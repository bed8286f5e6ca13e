"""Worker process that computes how to split a budget between the tasks of a project.

``python -m bursar.web.advice_worker FOLDER MONEY`` prints its progress and then its result to standard output, one JSON
object per line. It writes no files and may be killed at any time.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from bursar.allocation import Split, SplitAdvice, SplitProblem
from bursar.allocation.advice import advise
from bursar.allocation.split_inputs import inputs_of_run, measure
from bursar.annotation.round_worker import end_with_parent
from bursar.errors import BursarError
from bursar.report.allocation import described, moves_table, others_table, split_table
from bursar.report.tables import Table
from bursar.report.wording import amount, counted, percent


# -- view ------------------------------------------------------------------------------------------------------------
def advice_view(found: SplitAdvice, about: Mapping[str, str]) -> dict[str, Any]:
    """A split as the page shows it: shares, gains by task, informativeness between tasks, and reasons."""
    split, problem = found.split, found.split.problem
    known, whole, off = problem.estimates.informativeness, found.whole, moves_table(found)
    gains = [
        {
            "task": task,
            "gain": amount(gain.value),
            "between": f"{amount(gain.low)} to {amount(gain.high)}",
            "low": gain.low,
            "middle": gain.value,
            "high": gain.high,
        }
        for task, gain in found.gains.items()
    ]
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
            _table("Split", split_table(found)),
            _table("Simple splits, by the same estimates", others_table(found)),
            *([_table("If an estimate is wrong", off)] if off.rows else []),
        ],
        "about": dict(about),
    }


def _shares(split: Split) -> list[dict[str, Any]]:
    """Shares of the budget: first items labelled for all tasks at once, then labels for single tasks."""
    problem = split.problem
    shares: list[tuple[str | None, int, str]] = []
    if split.together and problem.joint is not None:
        items = f"{counted(split.together, 'item')} at {_money(problem, problem.joint)} each"
        shares.append((None, split.together * problem.joint, items))
    alone = ", for it alone" if split.together else ""
    for task, labels, units in zip(split.tasks, split.counts, split.spent, strict=True):
        shares.append((task, units, f"{counted(labels - split.together, 'label')}{alone}"))
    return [
        {
            "task": task,
            "money": _money(problem, units),
            "share": units / max(1, split.cost),
            "note": f"{percent(units / max(1, split.cost))}, {note}",
        }
        for task, units, note in shares
    ]


def _money(problem: SplitProblem, units: int) -> str:
    """An amount for a sentence: with its currency, or in units."""
    shown = problem.show(units)
    return shown if problem.costs.currency else f"{shown} units"


def _table(title: str, table: Table) -> dict[str, Any]:
    return {"title": title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}


# -- process ---------------------------------------------------------------------------------------------------------
def main(arguments: list[str]) -> int:
    """Run as a worker process; returns the exit code."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m bursar.web.advice_worker FOLDER MONEY\n")
        return 2
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the events
    last = ""

    def send(event: Mapping[str, Any]) -> None:
        nonlocal last
        line = json.dumps(event, ensure_ascii=False)
        if line != last:
            last = line
            out.write(line + "\n")
            out.flush()

    end_with_parent()
    with suppress(OSError):
        os.nice(10)  # lower priority than the server and the training
    try:
        material = inputs_of_run(Path(arguments[0]))
        stage = {"event": "stage", "round": 0}
        money = Decimal(arguments[1])
        material.check(money, material.method)

        def progress(what: str, done: float) -> None:
            send(stage | {"what": what, "done": round(done, 3)})

        measured = measure(material, progress=progress)
        about = described(measured.estimates.informativeness.about) | {"rates from": measured.rater}
        found = advise(measured.problem(money), measured.context, method=material.method, progress=progress)
        send({"event": "advice", "found": advice_view(found, about)})
    except BursarError as error:
        send({"event": "failed", "error": error.message, "fix": error.fix})
        return 2
    except BrokenPipeError:
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
