"""The page of a split: how much for which task, why, who informs whom, how fast each saturates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bursar.allocation import Answer, half_life
from bursar.allocation.robust import Predicted
from bursar.corpus.formats.format import replacing
from bursar.report.page import fill
from bursar.report.study_figures import picture_of
from bursar.report.tables import Table
from bursar.report.wording import percent, sentence
from bursar.studies.findings import Figure, Line

POINTS = 60  # of a gain curve
MOVES = 10  # that are shown


def write_allocation_page(answer: Answer, name: str, out: Path, about: Mapping[str, str] | None = None) -> Path:
    """Write the page of a split, whole or not at all; ``about`` says how the estimates were come by."""
    page = render_allocation(answer, name, about or {})
    with replacing(out) as file:
        file.write(page)
    return out


def render_allocation(answer: Answer, name: str, about: Mapping[str, str]) -> str:
    """The page as a text; the same answer gives the same page."""
    figures = [informs_figure(answer), curves_figure(answer)]
    pictures = [(picture_of(figure, f"figure-{k}"), figure.kind) for k, figure in enumerate(figures)]
    charts = {panel.key: panel.chart for picture, _ in pictures for panel in picture.panels}
    return fill(
        "allocation.html",
        ["page.css", "study.css"],
        {"figures": charts, "confidence": {}},
        title=sentence(name),
        lead=_lead(answer),
        tiles=_tiles(answer),
        split=split_table(answer),
        reasons=answer.reasons,
        pictures=pictures,
        moves=moves_table(answer),
        others=others_table(answer),
        left_out=answer.left_out,
        about=about,
    )


# -- figures -----------------------------------------------------------------------------------------------------------
def informs_figure(answer: Answer) -> Figure:
    """A heat map: what a label of each row is worth to each column."""
    known = answer.split.problem.estimates.informativeness
    rows = [
        Line(
            task,
            list(known.tasks),
            [round(value, 3) for value in known.value[at].tolist()],
            low=(known.value[at] - known.error[at]).tolist(),
            high=(known.value[at] + known.error[at]).tolist(),
        )
        for at, task in enumerate(known.tasks)
    ]
    note = "In labels of the column’s own: 0.5 means that two labels of the row’s task are worth one of the column’s."
    if known.error.any():
        worst = float(known.error.max())
        note += f" Standard errors are up to {worst:.2g}; the table has each value with its own."
    return Figure("Who informs whom", "", "heat", "what is gained for", "a label of", rows, note)


def curves_figure(answer: Answer) -> Figure:
    """What money for one task alone gains for all tasks, and where the split stands on that."""
    problem = answer.split.problem
    lines = []
    for at, task in enumerate(problem.tasks):
        most = max(1, problem.budget // problem.prices[at])
        counts = np.unique(np.linspace(0, most, POINTS).astype(int)).tolist()
        alone = [_alone(answer, at, count) for count in counts]
        lines.append(Line(task, [problem.money(count * problem.prices[at]) for count in counts], alone))
    bought = ", ".join(
        f"{task} at {problem.show(count * price)}"
        for task, count, price in zip(problem.tasks, answer.split.counts, problem.prices, strict=True)
    )
    note = f"Each curve is of labels bought apart, at the task's own price. The split's labels stand at {bought}."
    return Figure("What money for one task gains", "", "lines", "money for that task", "gain, in labels", lines, note)


def _alone(answer: Answer, task: int, count: int) -> float:
    counts = [0] * len(answer.split.tasks)
    counts[task] = count
    return float(answer.split.problem.gains(counts).sum())


# -- tables and words --------------------------------------------------------------------------------------------------
def _lead(answer: Answer) -> str:
    split, problem = answer.split, answer.split.problem
    shares = [f"{split.counts[at]:,} labels of {task}" for at, task in enumerate(split.tasks)]
    return f"For {problem.show(problem.budget)}: {', '.join(shares)}."


def _tiles(answer: Answer) -> list[tuple[str, str, str]]:
    split, problem = answer.split, answer.split.problem
    found = [
        ("Budget", problem.show(problem.budget), f"{problem.show(split.unspent)} not spent"),
        ("Gain of all tasks", f"{answer.whole.value:,.4g}", f"labels; {_ends(answer.whole)} in 9 of 10 cases"),
    ]
    if answer.others:
        best = answer.others[0]
        more = split.total / best.total - 1 if best.total > 0 else math.inf
        words = "–" if not math.isfinite(more) else f"{100 * more:+.1f} %".replace("-", "−")
        found.append(("Beside the best plain split", words, best.method))
    return found


def split_table(answer: Answer) -> Table:
    """Labels, money and gains of each task."""
    split, problem = answer.split, answer.split.problem
    rows: list[tuple[str, ...]] = []
    for at, task in enumerate(split.tasks):
        half = half_life(problem.rates[at])
        rate = problem.rates[at]
        rows.append(
            (
                task,
                f"{split.counts[at]:,}",
                problem.show(split.spent[at]),
                percent(split.spent[at] / max(1, split.cost)),
                problem.show(problem.prices[at]),
                f"{problem.first[at]:.3g}",
                f"{rate.beta:.2f} ({rate.low:.2f} to {rate.high:.2f})",
                "never" if math.isinf(half) else f"{half:,.0f} labels",
                f"{answer.gains[task].value:,.4g} ({_ends(answer.gains[task])})",
            )
        )
    if split.together and problem.joint is not None:
        money = split.together * problem.joint
        share = percent(money / max(1, split.cost))
        price = problem.show(problem.joint)
        rows.append(
            ("for all tasks at once", f"{split.together:,} items", problem.show(money), share, price, *[""] * 4)
        )
    columns = ("Task", "Labels", "Money", "Share", "Price", "Worth", "Reduction rate", "Half its worth after", "Gains")
    return Table(columns, tuple(rows))


def moves_table(answer: Answer) -> Table:
    """What would be better if an estimate were off, the worst case first."""
    rows = []
    for move in answer.moves[:MOVES]:
        changes = zip(answer.split.tasks, answer.split.counts, move.best.counts, strict=True)
        better = ", ".join(f"{task} {then - now:+,}" for task, now, then in changes if then != now) or "nothing"
        lost = move.regret / move.best.total if move.best.total > 0 else 0.0
        rows.append((move.scenario.what, f"{move.regret:,.3g}", percent(lost), better))
    return Table(("If", "Lost", "Of the gain", "Better then"), tuple(rows))


def others_table(answer: Answer) -> Table:
    """Plain splits, by the same estimates."""
    rows = [
        (
            other.method,
            *(f"{count:,}" for count in other.counts),
            f"{other.total:,.4g}",
            percent(other.total / answer.split.total) if answer.split.total > 0 else "–",
        )
        for other in answer.others
    ]
    return Table(("Split", *answer.split.tasks, "Gain", "Of this one"), tuple(rows))


def _ends(gain: Predicted) -> str:
    return f"{gain.low:,.3g} to {gain.high:,.3g}"


def described(about: Mapping[str, Any]) -> dict[str, str]:
    """How estimates were measured, in words.

    >>> described({"informer": "lookahead", "items": 200, "own_gains": {"a": 1.0}})
    {'informer': 'lookahead', 'items': '200'}
    """
    return {key.replace("_", " "): str(value) for key, value in about.items() if not isinstance(value, Mapping)}
