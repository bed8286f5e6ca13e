"""The process that works out how to split money between the tasks of a project, beside the one that serves it.

``python -m bursar.web.advice_worker FOLDER MONEY`` tells its stages and then what it found on standard output, a JSON
object a line. It writes nothing else, and may be killed at any time.
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

from bursar.allocation import Answer, Problem, Split
from bursar.allocation.answers import answer
from bursar.allocation.informativeness import make_informer
from bursar.campaign.allocating import Material, material_of_run, measure
from bursar.campaign.live_worker import end_with_parent
from bursar.errors import AllocationError, BursarError
from bursar.report.allocation import described, moves_table, others_table, split_table
from bursar.report.tables import Table
from bursar.report.wording import counted, percent


# -- what the page shows ---------------------------------------------------------------------------------------------
def advice_shown(found: Answer, about: Mapping[str, str]) -> dict[str, Any]:
    """A split as the page shows it: where the money goes, what each task gains, who informs whom, and why."""
    split, problem = found.split, found.split.problem
    known = problem.estimates.informativeness
    gains = [
        {
            "task": task,
            "gain": f"{gain.value:,.3g}",
            "between": f"{gain.low:,.3g} to {gain.high:,.3g}",
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
        "whole": f"{found.whole.value:,.3g} labels’ worth ({found.whole.low:,.3g} to {found.whole.high:,.3g})",
        "reasons": list(found.reasons),
        "informs": {
            "tasks": list(known.tasks),
            "value": [[round(value, 3) for value in row] for row in known.value.tolist()],
            "error": [[round(value, 3) for value in row] for row in known.error.tolist()],
        },
        "tables": [
            _table("The split", split_table(found)),
            _table("Plain splits, by the same estimates", others_table(found)),
            _table("If an estimate is off", moves_table(found)),
        ],
        "about": dict(about),
    }


def _shares(split: Split) -> list[dict[str, Any]]:
    """Where the money goes: first to items that are labelled for all tasks at once, the others to one task alone."""
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


def _money(problem: Problem, units: int) -> str:
    """Money that can stand in a sentence."""
    shown = problem.show(units)
    return shown if problem.costs.currency else f"{shown} units"


def _table(title: str, table: Table) -> dict[str, Any]:
    return {"title": title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}


def informer_for(material: Material) -> str:
    """What tells who informs whom: a look ahead in the training, or probes where the learner has no steps."""
    try:
        make_informer("lookahead").check(material.learner())
    except AllocationError:
        return "probe"
    return "lookahead"


# -- the child -------------------------------------------------------------------------------------------------------
def main(arguments: list[str]) -> int:
    """Work as a child; the exit code."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m bursar.web.advice_worker FOLDER MONEY\n")
        return 2
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what anybody else prints is no event
    last = ""

    def tell(event: Mapping[str, Any]) -> None:
        nonlocal last
        line = json.dumps(event, ensure_ascii=False)
        if line != last:
            last = line
            out.write(line + "\n")
            out.flush()

    end_with_parent()
    with suppress(OSError):
        os.nice(10)  # whoever annotates comes first, then the training
    try:
        material = material_of_run(Path(arguments[0]))
        stage = {"event": "stage", "round": 0}
        measured = measure(
            material,
            informer=informer_for(material),
            progress=lambda what, done: tell(stage | {"what": what, "done": round(done, 3)}),
        )
        about = described(measured.estimates.informativeness.about)
        found = answer(measured.problem(Decimal(arguments[1])), measured.context, method="together")
        tell({"event": "advice", "found": advice_shown(found, about)})
    except BursarError as wrong:
        tell({"event": "failed", "error": wrong.message, "fix": wrong.fix})
        return 2
    except BrokenPipeError:
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
