"""The charts of a run that its report and the watch page share: learning curves, spending, confidence, reliability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
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
    Rule,
    arm_look,
    money_axis,
    score_axis,
    thing_look,
)
from bursar.report.curves import Curve, curves_of
from bursar.report.spending import PURPOSES, WHY, by_round, round_name
from bursar.report.story import Trust, reliability_of, trust_of
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, listed, metric_name, sentence

AUDIT = "audit"  # the purpose of what is drawn at random to score the model
HEIGHTS = {"mean": 320, "task": 250, "spending": 300, "confidence": 220, "reliability": 300}  # in pixels
BAR = 0.31  # half of a bar's width, of a category
COUNTED = 0.16  # of a reliability diagram's height: the bars beneath


# -- learning curves -------------------------------------------------------------------------------------------------
def learning_charts(result: Mapping[str, Any]) -> dict[str, Chart]:
    """Scores against money: the mean over tasks under the empty name where there are several, then each task."""
    curves, slices, tasks = curves_of(result), drawn_slices(result), result["tasks"]
    charts = {}
    if len(tasks) > 1 and (curves or slices):
        scale = Scale.of(*(task["metric"] for task in tasks.values()))
        lines = {arm: (curve, curve.mean.tolist()) for arm, curve in curves.items()}
        points = [] if curves else [_mean_slice(part, tasks) for part in slices]
        charts[""] = _learning_chart(result, "All tasks", "mean score", scale, lines, points)
    for name, task in tasks.items():
        lines = {arm: (curve, curve.scores[name].tolist()) for arm, curve in curves.items()}
        points = [{key: part[key] for key in ("spent", "items")} | part["scores"][name] for part in slices]
        if lines or points:
            scale, measure = Scale.of(task["metric"]), metric_name(task["metric"])
            charts[name] = _learning_chart(result, name, measure, scale, lines, points)
    return charts


def drawn_slices(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The audit slices that are worth drawing: those large enough, or all of them if there is nothing else."""
    slices = result["arms"][result["strategy"]]["audit"]
    large = [part for part in slices if part["items"] >= FEWEST_FOR_INTERVAL]
    return large if curves_of(result) else slices


def _mean_slice(part: Mapping[str, Any], tasks: Iterable[str]) -> dict[str, Any]:
    """One audit slice, over all tasks; an interval of that is not known."""
    mean = float(np.mean([part["scores"][name]["score"] for name in tasks]))
    return {key: part[key] for key in ("spent", "items")} | {"score": mean, "low": None, "high": None}


def _learning_chart(
    result: Mapping[str, Any],
    title: str,
    measure: str,
    scale: Scale,
    lines: Mapping[str, tuple[Curve, list[float]]],
    slices: Sequence[Mapping[str, Any]],
) -> Chart:
    money = Money.of(result)
    drawn = [_arm_line(arm, at, *lines[arm], money, scale) for at, arm in enumerate(lines)]
    marks = [_slice_mark(part, money, scale, alone=not lines) for part in slices]
    amounts = [point.x for line in drawn for point in line.points] + [mark.x for mark in marks]
    scores = [point.y for line in drawn for point in line.points if point.y is not None] + [mark.y for mark in marks]
    bands = []
    told = [
        f"{arm_name(arm)} from {scale.show(known[0])} to {scale.show(known[-1])}" for arm, (_, known) in lines.items()
    ]
    if not lines:  # the audit slices are all there is: joined, and with room for their intervals
        points = [Point(mark.x, mark.y, mark.text) for mark in marks]
        drawn = [Polyline("Audit slice", "arm-1", points)]
        known = [(mark.x, mark.low, mark.high) for mark in marks if mark.low is not None and mark.high is not None]
        if len(known) > 1:
            x, low, high = zip(*known, strict=True)
            bands = [Band("arm-1", x, low, high)]
        scores += [end for _, *ends in known for end in ends]
        told = [f"audit slices from {scale.show(slices[0]['score'])} to {scale.show(slices[-1]['score'])}"]
    return Chart(
        f"{sentence(measure)} against money spent: {listed(told)}.",
        money_axis(money, amounts),
        score_axis(scale, scores),
        title,
        measure,
        HEIGHTS["mean" if measure == "mean score" else "task"],
        lines=drawn,
        bands=bands,
        marks=marks,
    )


def _arm_line(arm: str, at: int, curve: Curve, scores: list[float], money: Money, scale: Scale) -> Polyline:
    name, look = sentence(arm_name(arm)), arm_look(at)
    points = [
        Point(
            money.amount(units),
            scale.value(score),
            f"{name}: {scale.show(score)} at {money.show(int(units))}, "
            f"{'after the seed items' if round == 0 else f'after round {round}'}",
        )
        for units, score, round in zip(curve.money.tolist(), scores, curve.rounds, strict=True)
    ]
    return Polyline(name, look.colour, points, look.dash, look.shape, label=True)


def _slice_mark(part: Mapping[str, Any], money: Money, scale: Scale, *, alone: bool) -> Mark:
    """One audit slice with its interval; light, unless there is nothing else."""
    low, high = (None if part[end] is None else scale.value(part[end]) for end in ("low", "high"))
    between = "" if low is None else f" ({scale.show(part['low'])} to {scale.show(part['high'])})"
    text = (
        f"Audit slice: {scale.show(part['score'])}{between} at {money.show(part['spent'])}, "
        f"on {counted(part['items'], 'item')}"
    )
    look = "arm-1" if alone else "audit"
    return Mark(look, money.amount(part["spent"]), scale.value(part["score"]), low, high, text, open=not alone)


# -- spending --------------------------------------------------------------------------------------------------------
def spending_chart(result: Mapping[str, Any]) -> Chart | None:
    """Money by round, stacked by thing; what audit slices cost comes on top, hatched."""
    lines = by_round(result["arms"][result["strategy"]]["spending"])
    if not lines:
        return None
    money, bars, totals = Money.of(result), [], []
    for at, round in enumerate(sorted(lines)):
        audited = [line for line in lines[round] if line["purpose"] == AUDIT]
        others = [line for line in lines[round] if line["purpose"] != AUDIT]
        base = 0
        for look, units, text, hatched in [*_parts(result, round, others), *_parts(result, round, audited)]:
            ends = (money.amount(base), money.amount(base + units))
            bars.append(Bar(look, (at - BAR, at + BAR), ends, text, hatched))
            base += units
        totals.append(Note(at, money.amount(base), money.show(base)))
    names = [round_name(round) for round in sorted(lines)]
    told = ", ".join(f"{name} {total.text}" for name, total in zip(names, totals, strict=True))
    return Chart(
        f"Money by round: {told}.",
        Axis.of_names(names, "round"),
        Axis(0, max(total.y for total in totals) * 1.06 or 1, prefix=money.currency),
        height=HEIGHTS["spending"],
        bars=bars,
        notes=totals,
    )


def _parts(
    result: Mapping[str, Any], round: int, lines: Sequence[Mapping[str, Any]]
) -> list[tuple[str, int, str, bool]]:
    """A piece of a bar for each thing that these lines paid for: look, units, text, and whether it is hatched."""
    money, parts = Money.of(result), []
    for at, thing in enumerate([READING, *result["tasks"]]):
        paid = [line for line in lines if line["what"] == thing and line["actual"]]
        if not paid:
            continue
        units = sum(line["actual"] for line in paid)
        why = listed([WHY[purpose] for purpose in PURPOSES if any(line["purpose"] == purpose for line in paid)])
        which = sentence(why) if round == 0 else f"Round {round}, {why}"
        text = f"{which}: {money.show(units)} for {thing}"
        parts.append((thing_look(at), units, text, paid[0]["purpose"] == AUDIT))
    return parts


def spending_totals(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was paid for reading, for each task and, of all that, for audit slices."""
    lines, money = result["arms"][result["strategy"]]["spending"], Money.of(result)
    whole = sum(line["actual"] for line in lines)
    if not whole:
        return []
    rows = [
        (sentence(thing), thing_look(at), False, [line for line in lines if line["what"] == thing])
        for at, thing in enumerate([READING, *result["tasks"]])
    ]
    audited = [line for line in lines if line["purpose"] == AUDIT]
    rows += [("Audit slices (included)", "audit", True, audited)] if audited else []
    found = []
    for name, look, hatched, those in rows:
        units = sum(line["actual"] for line in those)
        share = units / whole
        found.append(
            {
                "name": name,
                "look": look,
                "hatched": hatched,
                "share": share,
                "value": money.brief(units),
                "note": f"{100 * share:.0f}{THIN}%",
            }
        )
    return found


# -- confidence ------------------------------------------------------------------------------------------------------
def confidence_charts(result: Mapping[str, Any]) -> dict[tuple[int, str], Chart]:
    """By round and task: how sure the model was of the pool, and of what was chosen from it, in percent of each."""
    records = result["arms"][result["strategy"]]["confidence"]
    charts = {}
    for name in result["tasks"]:
        top = max((max(_shares(record[of][name])) for record in records for of in ("pool", "chosen")), default=1)
        for record in records:
            pool, chosen = record["pool"][name], record["chosen"][name]
            charts[record["round"], name] = Chart(
                f"Histogram of confidence for {name}: {sum(pool):,} items of mean {record['mean'][name]:.2f}, of which "
                f"{sum(chosen):,} were chosen.",
                Axis(0, 1, "confidence"),
                Axis(0, 1.08 * top, suffix=" %"),
                name,
                f"mean {record['mean'][name]:.2f}",
                HEIGHTS["confidence"],
                bars=_histogram("Pool", "pool", pool, 0.46) + _histogram("Chosen", "arm-1", chosen, 0.23),
            )
    return charts


def _histogram(name: str, look: str, counts: Sequence[int], half: float) -> list[Bar]:
    """A bar for each bin that has items; ``half`` is half of its width, of a bin."""
    bins, bars = len(counts), []
    for k, (count, share) in enumerate(zip(counts, _shares(counts), strict=True)):
        if count:
            ends = (round((k + 0.5 - half) / bins, 6), round((k + 0.5 + half) / bins, 6))
            between = f"confidence {k / bins:.2f} to {(k + 1) / bins:.2f}"
            text = f"{name}: {counted(count, 'item')}, {share:.1f}{THIN}%, {between}"
            bars.append(Bar(look, ends, (0, round(share, 4)), text))
    return bars


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [100 * count / total if total else 0.0 for count in counts]


# -- calibration -----------------------------------------------------------------------------------------------------
def reliability_charts(result: Mapping[str, Any]) -> dict[str, Chart]:
    """By task: how right the newest model was where it was so and so sure."""
    records = reliability_of(result)
    return {trust.task: reliability_chart(trust, records[trust.task]) for trust in trust_of(result)}


def reliability_chart(trust: Trust, record: Mapping[str, Any]) -> Chart:
    """Accuracy against confidence, a point a bin beside the line where both are equal; how many items, beneath."""
    most = max(record["counts"])
    marks, bars, stems = [], [], []
    bins = zip(pairwise(record["edges"]), record["counts"], record["confidence"], record["accuracy"], strict=True)
    for (low, high), count, said, right in bins:
        if not count:
            continue
        text = f"Said {said:.2f}, was {right:.2f} right: {counted(count, 'item')}"
        marks.append(
            Mark("arm-1", round(said, 4), round(right, 4), text=text, size=round(4 + 4 * (count / most) ** 0.5, 1))
        )
        stems.append(Rule("audit", (said, said), (said, right), "solid"))
        inset = 0.04 * (high - low)
        ends = f"{counted(count, 'item')}, confidence {low:.2f} to {high:.2f}"
        bars.append(Bar("pool", (low + inset, high - inset), (0, COUNTED * count / most), ends))
    return Chart(
        f"Reliability of {trust.task}: {'; '.join(mark.text for mark in marks)}.",
        Axis(0.0, 1.0, "how sure it was"),
        Axis(0.0, 1.0, "how right"),
        trust.task,
        str(trust),
        HEIGHTS["reliability"],
        marks=marks,
        rules=[Rule("muted", (0, 0), (1, 1)), *stems],
        bars=bars,
        notes=[Note(0.02, 0.92, "not sure enough", "start"), Note(0.98, COUNTED, "too sure", "end")],
    )
