"""The report of runs that differ in their seeds: mean learning curves with a band, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bursar.campaign.curves import (
    Difference,
    LearningCurve,
    area_by_seed,
    curves_by_arm,
    mean_curve,
    mean_interval,
    paired,
)
from bursar.campaign.results import RunResult
from bursar.report.charts import Band, Chart, Point, Polyline, arm_look, money_axis, score_axis
from bursar.report.page import fill
from bursar.report.tables import Table
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, mean_scale, metric_name, sentence

Curves = Mapping[str, Mapping[int, LearningCurve]]


def render_seeds(results: Sequence[RunResult]) -> str:
    """The HTML page."""
    first, curves = results[0], curves_by_arm(results)
    seeds = sorted(result.config.seed for result in results)
    return fill(
        "seeds.html",
        ["page.css"],
        seed_charts(results),
        title=first.name,
        lead=f"{counted(len(seeds), 'run')} of one campaign, with the seeds {', '.join(map(str, seeds))}.",
        arms=seeds_table(results),
        differences=difference_table(results),
        has_band=len(seeds) > 1,
        scored=bool(curves),
    )


def seed_charts(results: Sequence[RunResult]) -> dict[str, Chart]:
    """Mean scores by money over all seeds: of all tasks, then of each."""
    first, curves = results[0], curves_by_arm(results)
    if not curves:
        return {}
    charts = {}
    if len(first.tasks) > 1:
        charts["mean"] = _chart(first, curves, None, mean_scale(first), "mean score")
    for at, (name, task) in enumerate(first.tasks.items()):
        charts[f"task-{at}"] = _chart(first, curves, name, Scale.of(task.metric), metric_name(task.metric))
    return charts


def _chart(first: RunResult, curves: Curves, task: str | None, scale: Scale, measure: str) -> Chart:
    money, lines, bands, amounts, scores = Money.of(first), [], [], [], []
    for at, (arm, by_seed) in enumerate(curves.items()):
        curve, look = mean_curve(arm, by_seed, task), arm_look(at)
        x = [money.amount(amount) for amount in curve.money.tolist()]
        low, mean, high = ([scale.value(v) for v in line.tolist()] for line in (curve.low, curve.mean, curve.high))
        name = sentence(arm_name(arm))
        points = [
            Point(a, s, f"{name}: {scale.show(raw)} at {money.show(round(units))}")
            for a, s, raw, units in zip(x, mean, curve.mean.tolist(), curve.money.tolist(), strict=True)
        ]
        lines.append(Polyline(name, look.colour, points, look.dash, "none", label=True))
        if len(curve.seeds) > 1:
            bands.append(Band(look.colour, x, low, high))
        amounts += x
        scores += [*low, *high]
    title = "All tasks" if task is None else task
    words = f"{title}: mean {measure} over seeds by the money spent, for {', '.join(curves)}."
    return Chart(
        words,
        money_axis(money, amounts),
        score_axis(scale, scores),
        title=title,
        measure=measure,
        height=320 if task is None else 250,
        lines=lines,
        bands=bands,
    )


def seeds_table(results: Sequence[RunResult]) -> Table:
    """Every arm with its final scores and its mean along the curve, over the seeds."""
    first, curves = results[0], curves_by_arm(results)
    areas, mean = area_by_seed(curves), mean_scale(first)
    rows = []
    for arm, by_seed in curves.items():
        finals = [
            _with_interval(Scale.of(task.metric), [float(curve.scores[name][-1]) for curve in by_seed.values()])
            for name, task in first.tasks.items()
        ]
        along = _with_interval(mean, list(areas[arm].values()))
        rows.append((sentence(arm_name(arm)), str(len(by_seed)), *finals, along))
    return Table(("Strategy", "Seeds", *first.tasks, "Mean along the curve"), tuple(rows))


def difference_table(results: Sequence[RunResult]) -> Table:
    """The campaign's strategy against each of the others, on the same seeds."""
    areas, mean = area_by_seed(curves_by_arm(results)), mean_scale(results[0])
    arm = results[0].strategy
    others = [other for other in areas if other != arm] if arm in areas else []
    found = [difference for other in others if (difference := paired(arm, other, areas)) is not None]
    return Table(("Comparison", "Seeds", "Difference", "90 % interval"), tuple(difference_row(d, mean) for d in found))


def difference_row(found: Difference, scale: Scale) -> tuple[str, str, str, str]:
    """A paired difference in words."""
    names = f"{arm_name(found.arm)} against {arm_name(found.other)}"
    interval = "unknown with one seed"
    if found.low is not None and found.high is not None:
        ends = f"{signed(found.low, scale)} to {signed(found.high, scale)}"
        interval = f"{ends} points" if scale.percent else ends
    unit = " points" if scale.percent else ""
    return names, str(found.seeds), f"{signed(found.mean, scale)}{unit}", interval


def signed(difference: float, scale: Scale) -> str:
    """A difference of scores with its sign, in points if scores are percentages."""
    return f"{100 * difference:+.1f}" if scale.percent else f"{difference:+.3f}"


def _with_interval(scale: Scale, values: Sequence[float]) -> str:
    mean, low, high = mean_interval(values)
    if low is None or high is None:
        return scale.show(mean)
    half = (high - low) / 2
    return f"{scale.show(mean)} ± {f'{100 * half:.1f}{THIN}%' if scale.percent else f'{half:.3f}'}"
