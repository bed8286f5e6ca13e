"""Charts of a run, for its report and the watch page: learning curves, spending, confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.campaign.curves import LearningCurve, curves_of
from bursar.campaign.results import AuditScores, RunResult, ScoreInterval
from bursar.ledger import SpendingLine
from bursar.ledger.records import READING
from bursar.report.charts import (
    Axis,
    Band,
    Bar,
    Chart,
    Mark,
    Note,
    Point,
    Polyline,
    arm_look,
    money_axis,
    score_axis,
    thing_look,
)
from bursar.report.spending import WHY, by_round, round_name
from bursar.report.wording import (
    Money,
    Scale,
    arm_name,
    counted,
    listed,
    mean_scale,
    metric_name,
    percent,
    round_phrase,
    sentence,
)

AUDIT = "audit"  # purpose of randomly drawn items that score the model
HEIGHTS = {"mean": 320, "task": 250, "spending": 300, "confidence": 220}  # in pixels
HALF_BAR = 0.31  # half the width of a bar, as a share of a category


# -- learning curves -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Scored:
    """What a learning chart shows: curves of the strategies, and audit slices."""

    title: str
    measure: str
    scale: Scale
    curves: Mapping[str, tuple[LearningCurve, list[float]]]  # by strategy, with the scores to draw
    slices: Sequence[tuple[AuditScores, ScoreInterval]]  # with the score to draw


def learning_charts(result: RunResult) -> dict[str, Chart]:
    """Scores against money spent: the mean over several tasks under the empty name, then each task."""
    curves, slices, tasks = curves_of(result), drawn_slices(result), result.tasks
    charts = {}
    if len(tasks) > 1 and (curves or slices):
        lines = {arm: (curve, curve.mean.tolist()) for arm, curve in curves.items()}
        means = [float(np.mean([part.scores[name].score for name in tasks])) for part in slices]
        points = [] if curves else [(part, ScoreInterval(score=m)) for part, m in zip(slices, means, strict=True)]
        charts[""] = _learning_chart(result, _Scored("All tasks", "mean score", mean_scale(result), lines, points))
    for name, task in tasks.items():
        lines = {arm: (curve, curve.scores[name].tolist()) for arm, curve in curves.items()}
        points = [(part, part.scores[name]) for part in slices]
        if lines or points:
            scale, measure = Scale.of(task.metric), metric_name(task.metric)
            charts[name] = _learning_chart(result, _Scored(name, measure, scale, lines, points))
    return charts


def drawn_slices(result: RunResult) -> list[AuditScores]:
    """The audit slices to draw: those large enough, or all of them if there are no curves."""
    slices = list(result.main.audit)
    large = [part for part in slices if part.items >= FEWEST_FOR_INTERVAL]
    return large if curves_of(result) else slices


def _learning_chart(result: RunResult, of: _Scored) -> Chart:
    money, scale = Money.of(result), of.scale
    lines = [_arm_line(at, *of.curves[arm], money, scale) for at, arm in enumerate(of.curves)]
    marks = [_slice_mark(part, found, money, scale, alone=not lines) for part, found in of.slices]
    amounts = [point.x for line in lines for point in line.points] + [mark.x for mark in marks]
    scores = [point.y for line in lines for point in line.points if point.y is not None] + [mark.y for mark in marks]
    named = {arm_name(arm): known for arm, (_, known) in of.curves.items()}
    bands = []
    if not lines:  # only audit slices: join them and leave room for their intervals
        lines = [Polyline("Audit slice", "arm-1", [Point(mark.x, mark.y, mark.text) for mark in marks])]
        known = [(mark.x, mark.low, mark.high) for mark in marks if mark.low is not None and mark.high is not None]
        if len(known) > 1:
            x, low, high = zip(*known, strict=True)
            bands = [Band("arm-1", x, low, high)]
        scores += [end for _, *ends in known for end in ends]
        named = {"audit slices": [found.score for _, found in of.slices]}
    words = [f"{name} from {scale.show(known[0])} to {scale.show(known[-1])}" for name, known in named.items()]
    return Chart(
        f"{sentence(of.measure)} against money spent: {listed(words)}.",
        money_axis(money, amounts),
        score_axis(scale, scores),
        of.title,
        of.measure,
        HEIGHTS["mean" if of.measure == "mean score" else "task"],
        lines=lines,
        bands=bands,
        marks=marks,
    )


def _arm_line(at: int, curve: LearningCurve, scores: list[float], money: Money, scale: Scale) -> Polyline:
    name, look = sentence(arm_name(curve.arm)), arm_look(at)
    points = []
    for units, score, round in zip(curve.money.tolist(), scores, curve.rounds, strict=True):
        text = f"{name}: {scale.show(score)} at {money.show(int(units))}, after {round_phrase(round)}"
        points.append(Point(money.amount(units), scale.value(score), text))
    return Polyline(name, look.colour, points, look.dash, look.shape, label=True)


def _slice_mark(part: AuditScores, found: ScoreInterval, money: Money, scale: Scale, *, alone: bool) -> Mark:
    """An audit slice with its interval; light, unless there are no curves."""
    low, high = (None if found.interval is None else scale.value(end) for end in found.interval or (0.0, 0.0))
    between = "" if found.interval is None else f" ({scale.between(*found.interval)})"
    text = (
        f"Audit slice: {scale.show(found.score)}{between} at {money.show(part.spent)}, on {counted(part.items, 'item')}"
    )
    look = "arm-1" if alone else "audit"
    return Mark(look, money.amount(part.spent), scale.value(found.score), low, high, text, open=not alone)


# -- spending --------------------------------------------------------------------------------------------------------
def spending_chart(result: RunResult) -> Chart | None:
    """Money by round, stacked by task; audit slices are hatched, on top."""
    lines = by_round(result.main.spending)
    if not lines:
        return None
    money, bars, totals = Money.of(result), [], []
    for at, round in enumerate(sorted(lines)):
        base = 0
        for audit in (False, True):
            part = [line for line in lines[round] if (line.purpose == AUDIT) == audit]
            for look, units, text in _bar_parts(result, round, part):
                ends = (money.amount(base), money.amount(base + units))
                bars.append(Bar(look, (at - HALF_BAR, at + HALF_BAR), ends, text, hatched=audit))
                base += units
        totals.append(Note(at, money.amount(base), money.show(base)))
    names = [round_name(round) for round in sorted(lines)]
    words = ", ".join(f"{name} {total.text}" for name, total in zip(names, totals, strict=True))
    return Chart(
        f"Money by round: {words}.",
        Axis.of_names(names, "round"),
        Axis(0, max(total.y for total in totals) * 1.06 or 1, prefix=money.currency),
        height=HEIGHTS["spending"],
        bars=bars,
        notes=totals,
    )


def _bar_parts(result: RunResult, round: int, lines: Sequence[SpendingLine]) -> Iterator[tuple[str, int, str]]:
    """Colour, units and text of each part of a bar: reading, then the tasks."""
    money = Money.of(result)
    for at, thing in enumerate([READING, *result.tasks]):
        paid = [line for line in lines if line.what == thing and line.actual]
        if paid:
            units = sum(line.actual for line in paid)
            purposes = {line.purpose for line in paid}
            why = listed([words for purpose, words in WHY.items() if purpose in purposes])
            which = sentence(why) if round == 0 else f"Round {round}, {why}"
            yield thing_look(at), units, f"{which}: {money.show(units)} for {thing}"


def spending_totals(result: RunResult) -> list[dict[str, Any]]:
    """Totals for reading, for each task, and for audit slices (which are included in the others)."""
    lines, money = result.main.spending, Money.of(result)
    whole = sum(line.actual for line in lines)
    if not whole:
        return []
    rows = [
        (sentence(thing), thing_look(at), False, [line for line in lines if line.what == thing])
        for at, thing in enumerate([READING, *result.tasks])
    ]
    audited = [line for line in lines if line.purpose == AUDIT]
    rows += [("Audit slices (included)", "audit", True, audited)] if audited else []
    found = []
    for name, look, hatched, those in rows:
        units = sum(line.actual for line in those)
        about = {"name": name, "look": look, "hatched": hatched, "share": units / whole}
        found.append(about | {"value": money.brief(units), "note": percent(units / whole)})
    return found


# -- confidence ------------------------------------------------------------------------------------------------------
def confidence_charts(result: RunResult) -> dict[tuple[int, str], Chart]:
    """By round and task: histograms of the model's confidence in the pool and in the selected items, in percent."""
    records = result.main.confidence
    charts = {}
    for name in result.tasks:
        top = max(
            (max(_shares(counts[name])) for record in records for counts in (record.pool, record.chosen)), default=1
        )
        for record in records:
            pool, chosen, mean = record.pool[name], record.chosen[name], f"mean {record.mean[name]:.2f}"
            charts[record.round, name] = Chart(
                f"Histogram of confidence for {name}: {sum(pool):,} items, {mean}; {sum(chosen):,} selected.",
                Axis(0, 1, "confidence"),
                Axis(0, 1.08 * 100 * top, suffix=" %"),
                name,
                mean,
                HEIGHTS["confidence"],
                bars=_histogram("Pool", "pool", pool, 0.46) + _histogram("Selected", "arm-1", chosen, 0.23),
            )
    return charts


def _histogram(name: str, look: str, counts: Sequence[int], half: float) -> list[Bar]:
    """A bar for each bin that has items; ``half`` is half its width, as a share of the bin."""
    bins, bars = len(counts), []
    for k, (count, share) in enumerate(zip(counts, _shares(counts), strict=True)):
        if count:
            ends = (round((k + 0.5 - half) / bins, 6), round((k + 0.5 + half) / bins, 6))
            between = f"confidence {k / bins:.2f} to {(k + 1) / bins:.2f}"
            text = f"{name}: {counted(count, 'item')}, {percent(share, 1)}, {between}"
            bars.append(Bar(look, ends, (0, round(100 * share, 4)), text))
    return bars


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]
