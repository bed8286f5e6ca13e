"""The page of a split: how much for which task, why, who informs whom, how fast each saturates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bursar.allocation import SplitAdvice, half_life
from bursar.allocation.returns import tells_nothing
from bursar.allocation.robust import PredictedGain
from bursar.corpus.formats.format import replacing
from bursar.report.line_figures import Figure, Line, picture_of
from bursar.report.page import fill
from bursar.report.tables import Table
from bursar.report.wording import amount, percent, sentence, share

WAYS = {
    "exact": "By the estimates, no split gains more.",
    "greedy": "Label by label, the most gain for its price first.",
    "together": "By the estimates, no split gains more, whether items are labelled for all tasks or for one.",
    "robust": "The split that has the least to lose if one of the estimates is off.",
}
ABLATIONS = ("no transfer", "one rate")  # not what somebody would do
POINTS = 60  # of a gain curve
MOVES = 10  # that are shown


def write_allocation_page(answer: SplitAdvice, name: str, out: Path, about: Mapping[str, str] | None = None) -> Path:
    """Write the page of a split, whole or not at all; ``about`` says how the estimates were come by."""
    page = render_allocation(answer, name, about or {})
    with replacing(out) as file:
        file.write(page)
    return out


def render_allocation(answer: SplitAdvice, name: str, about: Mapping[str, str]) -> str:
    """The page as a text; the same answer gives the same page."""
    figures = [informs_figure(answer), curves_figure(answer)]
    pictures = [(picture_of(figure, f"figure-{k}"), figure.kind) for k, figure in enumerate(figures)]
    charts = {panel.key: panel.chart for picture, _ in pictures for panel in picture.panels}
    return fill(
        "allocation.html",
        ["page.css", "figures.css"],
        charts,
        title=sentence(name),
        lead=_lead(answer),
        tiles=_tiles(answer),
        split=split_table(answer),
        reasons=answer.reasons,
        pictures=pictures,
        moves=moves_table(answer),
        cases=len(answer.outcomes),
        others=others_table(answer),
        left_out=answer.left_out,
        about=about,
    )


# -- figures -----------------------------------------------------------------------------------------------------------
def informs_figure(answer: SplitAdvice) -> Figure:
    """A heat map: what a label of each row is worth to each column."""
    known = answer.split.problem.estimates.informativeness
    rows = [
        Line(
            task,
            list(known.tasks),
            [round(value, 3) + 0.0 for value in known.value[at].tolist()],
            low=(known.value[at] - known.error[at]).tolist(),
            high=(known.value[at] + known.error[at]).tolist(),
        )
        for at, task in enumerate(known.tasks)
    ]
    note = "In labels of the column’s own: 0.5 means that two labels of the row’s task are worth one of the column’s."
    if known.error.any():
        worst = float(known.error.max())
        note += f" Standard errors are up to {worst:.2g}; the table has each value a standard error lower and higher."
    return Figure("Who informs whom", "", "heat", "what is gained for", "a label of", rows, note)


def curves_figure(answer: SplitAdvice) -> Figure:
    """What money for one task alone gains for all tasks, and where the split stands on that."""
    problem = answer.split.problem
    lines = []
    for at, task in enumerate(problem.tasks):
        cap = problem.most[at]
        affordable = problem.budget // problem.prices[at]
        most = max(1, affordable if cap is None else min(affordable, cap))
        counts = np.unique(np.linspace(0, most, POINTS).astype(int)).tolist()
        alone = [_alone(answer, at, count) for count in counts]
        lines.append(Line(task, [problem.money(count * problem.prices[at]) for count in counts], alone))
    rows = zip(problem.tasks, answer.split.counts, problem.prices, strict=True)
    bought = ", ".join(f"{task} at {problem.show(count * price)}" for task, count, price in rows)
    note = "Each curve is of labels bought apart, at the task's own price, up to its cap. "
    if answer.split.together:
        note += "The split pays less for labels of items that are labelled for all tasks at once: it is not on them."
    else:
        note += f"The split stands at {bought}."
    return Figure("What money for one task gains", "", "lines", "money for that task", "gain, in labels", lines, note)


def _alone(answer: SplitAdvice, task: int, count: int) -> float:
    counts = [0] * len(answer.split.tasks)
    counts[task] = count
    return float(answer.split.problem.gains(counts).sum())


# -- tables and words --------------------------------------------------------------------------------------------------
def _lead(answer: SplitAdvice) -> str:
    split, problem = answer.split, answer.split.problem
    shares = [f"{split.counts[at]:,} labels of {task}" for at, task in enumerate(split.tasks)]
    said = f"For {problem.show(problem.budget)}: {', '.join(shares)}"
    if split.together:
        said += f"; {split.together:,} of each on items that are labelled for all tasks at once"
    sure = split.bound is None or split.bound <= split.total * (1 + 1e-9)
    way = WAYS[split.method] if sure else f"By the estimates, no split gains more than {amount(split.bound or 0.0)}."
    return f"{said}. {way}"


def _tiles(answer: SplitAdvice) -> list[tuple[str, str, str]]:
    split, problem = answer.split, answer.split.problem
    found = [
        ("Budget", problem.show(problem.budget), f"{problem.show(split.unspent)} not spent"),
        ("Gain of all tasks", amount(answer.whole.value), f"labels; {_ends(answer.whole)} in 9 of 10 cases"),
    ]
    if answer.robust is not None:
        least = f"whichever estimate is off; the exact split {amount(answer.robust.nominal)}"
        found.append(("Lost at the most", amount(answer.robust.regret), least))
    plain = [other for other in answer.others if other.method not in ABLATIONS]
    if plain:
        best = plain[0]
        more = split.total / best.total - 1 if best.total > 0 else math.inf
        words = "–" if not math.isfinite(more) else f"{100 * more:+.1f} %".replace("-", "−")
        found.append(("Beside the best plain split", words, best.method))
    return found


def split_table(answer: SplitAdvice) -> Table:
    """Labels, money and gains of each task."""
    split, problem = answer.split, answer.split.problem
    rows: list[tuple[str, ...]] = []
    for at, task in enumerate(split.tasks):
        half = half_life(problem.rates[at])
        rate = problem.rates[at]
        alone = split.counts[at] > split.together or not split.together  # or all of its labels are of items for all
        rows.append(
            (
                task,
                f"{split.counts[at]:,}",
                problem.show(split.spent[at]) if alone else "–",
                percent(split.spent[at] / max(1, split.cost)) if alone else "–",
                problem.show(problem.prices[at]),
                f"{problem.first[at]:.3g}",
                "not known" if tells_nothing(rate) else f"{rate.beta:.2f} ({rate.low:.2f} to {rate.high:.2f})",
                "never" if math.isinf(half) else f"{half:,.0f} labels",
                f"{amount(answer.gains[task].value)} ({_ends(answer.gains[task])})",
            )
        )
    if split.together and problem.joint is not None:
        money = split.together * problem.joint
        part = percent(money / max(1, split.cost))
        price = problem.show(problem.joint)
        rows.append(
            ("for all tasks at once", f"{split.together:,} items", problem.show(money), part, price, *["–"] * 4)
        )
    whole = f"{amount(answer.whole.value)} ({_ends(answer.whole)})"
    rows.append(
        (
            "all",
            f"{sum(split.counts):,}",
            problem.show(split.cost),
            percent(1.0) if split.cost else "–",
            *["–"] * 4,
            whole,
        )
    )
    columns = ("Task", "Labels", "Money", "Share", "Price", "Worth", "Reduction rate", "Half its worth after", "Gains")
    return Table(columns, tuple(rows))


def moves_table(answer: SplitAdvice) -> Table:
    """What would be better if an estimate were off, the worst case first."""
    rows = [
        (
            move.scenario.what,
            amount(move.regret),
            share(move.regret, move.best.total),
            move.changes(answer.split),
        )
        for move in answer.regretted[:MOVES]
    ]
    return Table(("If", "Lost", "Of the gain", "Better then"), tuple(rows))


def others_table(answer: SplitAdvice) -> Table:
    """Plain splits, by the same estimates."""
    rows = [
        (
            other.method,
            *(f"{count:,}" for count in other.counts),
            amount(other.total),
            share(other.total, answer.split.total),
        )
        for other in answer.others
    ]
    return Table(("Split", *answer.split.tasks, "Gain", "Of this one"), tuple(rows))


def _ends(gain: PredictedGain) -> str:
    return f"{amount(gain.low)} to {amount(gain.high)}"


def described(about: Mapping[str, Any]) -> dict[str, str]:
    """How estimates were measured, in words.

    >>> described({"informer": "lookahead", "items": 200, "own_gains": {"a": 1.0}})
    {'informer': 'lookahead', 'items': '200'}
    """
    return {key.replace("_", " "): str(value) for key, value in about.items() if not isinstance(value, Mapping)}
