"""What follows from audited campaigns whose saving is known: bias, coverage and width of the estimate, by share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bursar.campaign.audit import Slice
from bursar.campaign.curves import saved_at_equal_money
from bursar.campaign.decisions import ShadowScores
from bursar.campaign.savings import A_LOT, ScoredRound, is_known, savings
from bursar.ragged import BoolArray, FloatArray
from bursar.tasks import KINDS
from experiments.studies.audit_before import savings_before
from experiments.studies.findings import Answer, Cell, Findings, Table

Run = Mapping[str, Any]
LEAST = -1.0  # "over twice as much" is all that is said further down
COLUMNS = ["campaigns", "truth", "bias", "covered %", "width", "known %", "bias if known", "wrong side %"]
ESTIMATORS = ("test items", "slices", "before")


class Case(NamedTuple):
    """One campaign: what was saved in truth, and what each estimator says of it: low, middle, high."""

    unit: Mapping[str, Any]
    truth: float
    said: Mapping[str, tuple[float, float, float]]
    last: float  # score


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Tables of real and simulated campaigns, and whether the estimate can be believed."""
    cases = cases_of(runs)
    learners = list(dict.fromkeys(case.unit["learner"] for case in cases))
    tables = [_by_share(cases, learner) for learner in learners]
    tables += [_by_strategy(cases, learner) for learner in learners]
    tables += [_simulated(runs)] + ([_cost(cases)] if cases else [])
    return Findings(
        "The share of the money saved against random, told from models of random items alone, beside the truth.",
        answers=[_bias(cases), _coverage(cases)],
        tables=tables,
        sizes={
            "campaigns": "50 random items, five rounds of 500 units of money, pools of 2,500, up to 1,000 test items",
            "data": "SNIPS, ATIS, MIT restaurant, the built-in corpus (intents and slots)",
            "truth": "the mean of several random orders of the same pool, at the lower of the two last scores",
            "simulated": "power laws with exponents of 0.2 to 0.5, savings of −22 to 45 %, 100 campaigns a row",
        },
    )


def cases_of(runs: Sequence[Run]) -> list[Case]:
    """Every campaign that random labelling was done beside, by today's estimator."""
    by_part: dict[str, list[Run]] = {}
    for run in runs:
        by_part.setdefault(run["unit"]["part"], []).append(run)
    random = {_where(run["unit"]): run["result"] for run in by_part.get("random", [])}
    return [_case(run, random[at]) for run in by_part.get("campaign", []) if (at := _where(run["unit"])) in random]


def _where(unit: Mapping[str, Any]) -> tuple[str, str, int]:
    return unit["data"], unit["learner"], unit["seed"]


def _case(run: Run, random: Mapping[str, Any]) -> Case:
    found = run["result"]
    tasks = {name: KINDS[kind](name) for name, kind in found["tasks"].items()}
    scores = [float(np.mean([r["test"][n][t.metric] for n, t in tasks.items()])) for r in found["rounds"]]
    curve = [r["spent"] for r in found["rounds"]], scores
    truth = saved_at_equal_money(curve, (random["money"], np.mean(random["scores"], axis=0)))
    assert truth is not None
    slices = [
        Slice(
            part["round"],
            part["spent"],
            part["shadow_spent"],
            *({n: np.array(tally, dtype=float) for n, tally in part[kind].items()} for kind in ("model", "shadow")),
        )
        for part in found["slices"]
    ]
    rounds, shadows = [ScoredRound(**r) for r in found["rounds"]], [ShadowScores(**s) for s in found["shadows"]]
    said = {
        "test items": savings(rounds, shadows, slices, tasks, found["test_items"]),
        "slices": savings(rounds, [], slices, tasks, 0),
        "before": savings_before(slices, tasks),
    }
    ends = {name: (one.low, one.saved, one.high) for name, one in said.items() if one is not None}
    return Case(run["unit"], truth.saved, ends, scores[-1])


# -- how good an estimate is ------------------------------------------------------------------------------------------
def quality(truth: FloatArray, said: FloatArray) -> list[Cell]:
    """The cells of ``COLUMNS`` for truths (campaigns,) and estimates (campaigns, low-middle-high), in percent."""
    truth, said = np.maximum(truth, LEAST), np.maximum(said, LEAST)
    if not len(truth):
        return [Cell(0), *(Cell(None) for _ in COLUMNS[1:])]
    low, middle, high = said.T
    known: BoolArray = np.array([is_known(*ends) for ends in zip(low, high, strict=True)])
    wrong = known & ((low > 0) & (truth < 0) | (high < 0) & (truth > 0))
    return [
        Cell(len(truth)),
        _percent(truth),
        _percent(middle - truth),
        _percent((low - 1e-9 <= truth) & (truth <= high + 1e-9)),
        Cell(100 * float(np.median(high - low))),
        _percent(known),
        _percent((middle - truth)[known]),
        _percent(wrong),
    ]


def _percent(values: FloatArray | BoolArray) -> Cell:
    return Cell(100 * float(np.mean(values)) if len(values) else None)


def _said(cases: Sequence[Case], estimator: str) -> tuple[FloatArray, FloatArray]:
    some = [case for case in cases if estimator in case.said]
    return np.array([case.truth for case in some]), np.array([case.said[estimator] for case in some]).reshape(-1, 3)


def _table(name: str, title: str, groups: Mapping[str, tuple[FloatArray, FloatArray]], note: str = "") -> Table:
    rows = {row: quality(*both) for row, both in groups.items()}
    return Table(name, title, COLUMNS, rows, note=note, digits=0, best="")


NOTE = (
    "Points of the money. Covered: the 90 % interval holds the truth. Known: the interval does not hold both 0 and a "
    "quarter of the money, and a number is shown. Wrong side: shown as saved but lost in truth, or the reverse. "
    "Slices: as if there were no test items. Before: one exponent by least squares, intervals by resampling."
)


def _by_share(cases: Sequence[Case], learner: str) -> Table:
    mine = [case for case in cases if case.unit["learner"] == learner]
    groups = {
        f"{estimator}, share {share:g}": _said([case for case in mine if case.unit["share"] == share], estimator)
        for estimator in ESTIMATORS
        for share in sorted({case.unit["share"] for case in mine})
    }
    return _table(f"By share, {learner}", f"Campaigns with the learner {learner}, by the audit's share", groups, NOTE)


def _by_strategy(cases: Sequence[Case], learner: str) -> Table:
    mine = [case for case in cases if case.unit["learner"] == learner]
    groups = {
        strategy: _said([case for case in mine if case.unit["strategy"] == strategy], "test items")
        for strategy in dict.fromkeys(case.unit["strategy"] for case in mine)
    }
    return _table(f"By strategy, {learner}", f"The same with the learner {learner} by strategy, on test items", groups)


def _simulated(runs: Sequence[Run]) -> Table:
    rows = {}
    for run in runs:
        unit = run["unit"]
        if unit["part"] == "simulated":
            found = [row for row in run["result"]["campaigns"] if row[1] is not None]
            truth, said = np.array([r[0] for r in found]), np.array([r[1:4] for r in found]).reshape(-1, 3)
            needed = [np.inf if r[4] is None else r[4] for r in found if not is_known(r[1], r[3])]
            middle = float(np.median(needed)) if needed else None
            large = truth >= A_LOT
            seen = _percent(said[large, 0] > 0) if large.any() else Cell(None)
            size = "" if unit["size"] == 1 else f", {unit['size']} times the money"
            start = "random" if unit["random_start"] else "chosen"
            tested = f"{unit['test']} test items" if unit["test"] else "no test items"
            rows[f"{start} start, {tested}, share {unit['share']:g}{size}"] = [
                *quality(truth, said),
                seen,
                Cell(None if middle is None or np.isinf(middle) else middle),
            ]
    columns = [*COLUMNS, "a quarter seen %", "labels needed"]
    return Table(
        "Simulated",
        "Simulated campaigns; of those that saved a quarter or more, how many are shown to have saved anything",
        columns,
        rows,
        note="Labels needed: the median of what a campaign says where it does not know; empty where most say that no "
        "affordable number would do. Campaigns that say nothing at all are left out.",
        digits=0,
        best="",
    )


def _cost(cases: Sequence[Case]) -> Table:
    """What a larger share changes about the campaign itself."""
    shares = sorted({case.unit["share"] for case in cases})
    by_cell = {(*_where(c.unit), c.unit["strategy"], c.unit["share"]): c for c in cases}
    rows = {}
    for strategy in dict.fromkeys(case.unit["strategy"] for case in cases):
        for what, value in (_VALUES).items():
            cells = []
            for share in shares:
                pairs = [
                    (value(case), value(by_cell[(*key[:-1], 0.1)]))
                    for key, case in by_cell.items()
                    if key[3:] == (strategy, share) and (*key[:-1], 0.1) in by_cell
                ]
                cells.append(Cell(100 * float(np.mean([a - b for a, b in pairs])) if pairs else None))
            rows[f"{strategy}, {what}"] = cells
    return Table(
        "Cost",
        "What the share costs: points above or below a share of 0.1, on the same pools",
        [f"share {share:g}" for share in shares],
        rows,
        note="Audit items train the model, too.",
        best="",
    )


_VALUES: dict[str, Callable[[Case], float]] = {
    "last score": lambda case: case.last,
    "saved": lambda case: max(case.truth, LEAST),
}


def _bias(cases: Sequence[Case]) -> Answer:
    truth, said = _said(cases, "test items")
    old_truth, old = _said(cases, "before")
    bias = _off(truth, said)
    return Answer(
        "Bias",
        "Is the middle of the estimate within ten points of the truth on average?",
        "not decided here" if bias is None else "yes" if abs(bias) <= 10 else "no",
        f"{_shown(bias)} over {len(truth)} campaigns; before, {_shown(_off(old_truth, old))} over {len(old_truth)}",
        "our own",
    )


def _off(truth: FloatArray, said: FloatArray) -> float | None:
    if not len(truth):
        return None
    return 100 * float(np.mean(np.maximum(said[:, 1], LEAST) - np.maximum(truth, LEAST)))


def _shown(points: float | None) -> str:
    return "not known" if points is None else f"{points:+.0f} points"


def _coverage(cases: Sequence[Case]) -> Answer:
    truth, said = _said(cases, "test items")
    share = quality(truth, said)[3].ours if len(truth) else None
    width = quality(truth, said)[4].ours if len(truth) else None
    return Answer(
        "Coverage",
        "Does the 90 % interval hold the truth nine times in ten?",
        "not decided here" if share is None else "yes" if share >= 87 else "no",
        "not run yet" if share is None else f"{share:.0f} % of {len(truth)} campaigns; it is {width:.0f} points wide",
        "our own",
    )
