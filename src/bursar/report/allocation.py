"""The page of a budget split: labels per task, reasons, estimates, and alternatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bursar.allocation import SplitAdvice, half_life
from bursar.allocation.estimates import tells_nothing
from bursar.allocation.robust import PredictedGain
from bursar.report.charts import Axis, Chart, Point, Polyline, heat_map, padded_range, thing_look
from bursar.report.page import fill
from bursar.report.tables import Table
from bursar.report.wording import amount, listed, number, percent, sentence, share

METHODS = {
    "exact": "By the estimates, no split gains more.",
    "greedy": "Labels are bought one by one, best gain per price first.",
    "together": "By the estimates, no split gains more, whether items are labelled for all tasks or for one.",
    "robust": "This split loses the least if one of the estimates is wrong.",
}
ABLATIONS = ("no transfer", "one rate")  # not splits to use
POINTS = 60  # of a gain curve
MOST_CASES = 10  # shown


def render_allocation(advice: SplitAdvice, name: str, about: Mapping[str, str]) -> str:
    """The HTML page of a split; ``about`` says how the estimates were measured. Equal advice gives equal pages."""
    charts = {"informs": informs_chart(advice), "curves": curves_chart(advice)}
    return fill(
        "allocation.html",
        ["page.css", "figures.css"],
        charts,
        title=sentence(name),
        lead=_lead(advice),
        tiles=_tiles(advice),
        split=split_table(advice),
        reasons=advice.reasons,
        informs=informs_table(advice),
        curves=Table(
            ("Task", "Cost", "Gain"),
            tuple((line.name, f"{p.x:,.2f}", number(p.y)) for line in charts["curves"].lines for p in line.points),
        ),
        curves_note=_curves_note(advice),
        moves=moves_table(advice),
        cases=len(advice.outcomes),
        others=others_table(advice),
        left_out=advice.left_out,
        about=about,
    )


# -- figures -----------------------------------------------------------------------------------------------------------
def informs_chart(advice: SplitAdvice) -> Chart:
    """A heat map: the value of a label of each row's task for each column's task."""
    known = advice.split.problem.estimates.informativeness
    values = [[round(value, 3) + 0.0 for value in row] for row in known.value.tolist()]
    rows = dict(zip(known.tasks[::-1], values[::-1], strict=True))
    words = f"Heat map of how much labels of one task help another: {len(rows)} tasks."
    return heat_map(words, known.tasks, rows, "helps", "a label of")


def informs_table(advice: SplitAdvice) -> Table:
    """The values of the heat map with their standard errors."""
    known = advice.split.problem.estimates.informativeness
    rows = [
        (task, *(f"{number(round(value, 3) + 0.0)} ± {error:.2g}" for value, error in zip(*pair, strict=True)))
        for task, *pair in zip(known.tasks, known.value.tolist(), known.error.tolist(), strict=True)
    ]
    return Table(("A label of", *known.tasks), tuple(rows))


def curves_chart(advice: SplitAdvice) -> Chart:
    """The gain of all tasks from labels of one task only, by their cost."""
    problem = advice.split.problem
    lines = []
    for at, task in enumerate(problem.tasks):
        cap, affordable = problem.most[at], problem.budget // problem.prices[at]
        most = max(1, affordable if cap is None else min(affordable, cap))
        points = []
        for count in np.unique(np.linspace(0, most, POINTS).astype(int)).tolist():
            gain = float(problem.gains([count if k == at else 0 for k in range(len(problem.tasks))]).sum())
            cost = problem.show(count * problem.prices[at])
            money = problem.money(count * problem.prices[at])
            points.append(Point(money, gain, f"{task}: {number(gain)} at {cost}"))
        lines.append(Polyline(task, thing_look(at + 1), points, size=3.5, label=True))
    x = padded_range([point.x for line in lines for point in line.points], 0.04, 0.01)
    y = padded_range([point.y or 0.0 for line in lines for point in line.points], 0.06, 0.001)
    ends = [f"{line.name} up to {number(line.points[-1].y)}" for line in lines]
    words = f"Gain in labels by cost: {listed(ends)}."
    return Chart(
        words, Axis(*x, "cost of its labels"), Axis(*y), "Gain from labels of one task", "in labels", lines=lines
    )


def _curves_note(advice: SplitAdvice) -> str:
    problem = advice.split.problem
    if advice.split.together:
        return "The split is not on the curves: labels of items that are labelled for all tasks at once cost less."
    rows = zip(problem.tasks, advice.split.counts, problem.prices, strict=True)
    return f"The split: {', '.join(f'{task} at {problem.show(count * price)}' for task, count, price in rows)}."


# -- words and tables --------------------------------------------------------------------------------------------------
def _lead(advice: SplitAdvice) -> str:
    split, problem = advice.split, advice.split.problem
    shares = [f"{split.counts[at]:,} labels of {task}" for at, task in enumerate(split.tasks)]
    said = f"For {problem.show(problem.budget)}: {', '.join(shares)}"
    if split.together:
        said += f"; {split.together:,} of each on items that are labelled for all tasks at once"
    optimal = split.bound is None or split.bound <= split.total * (1 + 1e-9)
    bound = f"By the estimates, no split gains more than {amount(split.bound or 0.0)}."
    return f"{said}. {METHODS[split.method] if optimal else bound}"


def _tiles(advice: SplitAdvice) -> list[tuple[str, str, str]]:
    split, problem = advice.split, advice.split.problem
    found = [
        ("Budget", problem.show(problem.budget), f"{problem.show(split.unspent)} left"),
        ("Gain of all tasks", amount(advice.whole.value), f"labels; {_ends(advice.whole)} in 9 of 10 cases"),
    ]
    if advice.robust is not None:
        exact = f"if one estimate is wrong; the exact split {amount(advice.robust.nominal)}"
        found.append(("Worst-case loss", amount(advice.robust.regret), exact))
    plain = [other for other in advice.others if other.method not in ABLATIONS]
    if plain:
        best = plain[0]
        more = f"{100 * (split.total / best.total - 1):+.1f} %".replace("-", "−") if best.total > 0 else "–"
        found.append(("Against the best simple split", more, best.method))
    return found


def split_table(advice: SplitAdvice) -> Table:
    """Labels, cost and gain of each task."""
    split, problem = advice.split, advice.split.problem
    rows: list[tuple[str, ...]] = []
    for at, task in enumerate(split.tasks):
        rate, half = problem.rates[at], half_life(problem.rates[at])
        apart = split.counts[at] > split.together or not split.together  # else all labels are on items for all tasks
        rows.append(
            (
                task,
                f"{split.counts[at]:,}",
                problem.show(split.spent[at]) if apart else "–",
                percent(split.spent[at] / max(1, split.cost)) if apart else "–",
                problem.show(problem.prices[at]),
                f"{problem.first[at]:.3g}",
                "not known" if tells_nothing(rate) else f"{rate.beta:.2f} ({rate.low:.2f} to {rate.high:.2f})",
                "never" if math.isinf(half) else f"{half:,.0f}",
                _interval(advice.gains[task]),
            )
        )
    if split.together and problem.joint is not None:
        cost = split.together * problem.joint
        joint = (f"{split.together:,} items", problem.show(cost), percent(cost / max(1, split.cost)))
        rows.append(("for all tasks at once", *joint, problem.show(problem.joint), *["–"] * 4))
    rows.append(("all", f"{sum(split.counts):,}", problem.show(split.cost), *["–"] * 5, _interval(advice.whole)))
    columns = ("Task", "Labels", "Cost", "Share", "Price", "First label", "Reduction rate", "Half after")
    return Table((*columns, "Gain (90 % interval)"), tuple(rows))


def moves_table(advice: SplitAdvice, most: int = MOST_CASES) -> Table:
    """The best split if an estimate were wrong, worst cases first."""
    rows = [
        (move.scenario.what, amount(move.regret), share(move.regret, move.best.total), move.changes(advice.split))
        for move in advice.regretted[:most]
    ]
    return Table(("Case", "Loss", "Share of gain", "Better split"), tuple(rows))


def others_table(advice: SplitAdvice) -> Table:
    """Simple splits, with the same estimates."""
    rows = []
    for other in advice.others:
        counts = [f"{count:,}" for count in other.counts]
        rows.append((other.method, *counts, amount(other.total), share(other.total, advice.split.total)))
    return Table(("Split", *advice.split.tasks, "Gain", "Relative"), tuple(rows))


def _interval(gain: PredictedGain) -> str:
    return f"{amount(gain.value)} ({_ends(gain)})"


def _ends(gain: PredictedGain) -> str:
    return f"{amount(gain.low)} to {amount(gain.high)}"


def described(about: Mapping[str, Any]) -> dict[str, str]:
    """How estimates were measured, in words."""
    return {key.replace("_", " "): str(value) for key, value in about.items() if not isinstance(value, Mapping)}
