"""The page of a simulation: one self-contained HTML file."""

from __future__ import annotations

from importlib.resources import files

from bursar.comparison.simulation import SAVED, Difference, MeanCurve, Simulation
from bursar.report.charts import Axis, Band, Chart, Point, Polyline, arm_look, padded_range, score_axis
from bursar.report.page import fill
from bursar.report.tables import Table
from bursar.report.wording import Scale, arm_name, counted, listed, metric_name, number, percent, sentence


def render_simulation(simulation: Simulation) -> str:
    """The HTML page. Equal simulations give equal pages."""
    names, seeds = [arm_name(name) for name in simulation.strategies], len(simulation.seeds)
    return fill(
        files("bursar.comparison") / "simulation.html",
        ["page.css"],
        simulation_charts(simulation),
        title=sentence(" against ".join(names) if len(names) == 2 else listed(names)),
        lead=f"{counted(len(simulation.cells), 'simulated campaign')} on {listed(simulation.tasks)}: "
        f"{counted(len(names), 'strategy').replace('strategys', 'strategies')}, {counted(seeds, 'seed')} each.",
        notes=[sentence(note) for note in simulation.notes],
        banded=seeds > 1,
        last=last_table(simulation),
        points=points_table(simulation),
        differences=difference_table(simulation),
        about=simulation.about,
    )


# -- charts ------------------------------------------------------------------------------------------------------------
def simulation_charts(simulation: Simulation) -> dict[str, Chart]:
    """The mean over tasks, if there are several, then each task."""
    charts = {}
    if len(simulation.tasks) > 1:
        charts["mean"] = _chart(simulation, None, "All tasks", "mean score", _scale(simulation))
    for at, (task, metric) in enumerate(simulation.metrics.items()):
        charts[f"task-{at}"] = _chart(simulation, task, task, metric_name(metric), Scale.of(metric))
    return charts


def _chart(simulation: Simulation, task: str | None, title: str, measure: str, scale: Scale) -> Chart:
    curves = simulation.mean_curves(task)
    lines = [_line(simulation, curve, at, scale) for at, curve in enumerate(curves)]
    bands = [
        Band(arm_look(at).colour, curve.spent.tolist(), _values(scale, curve.low), _values(scale, curve.high))
        for at, curve in enumerate(curves)
        if curve.seeds > 1
    ]
    scores = [value for curve in curves for ends in (curve.low, curve.high) for value in _values(scale, ends)]
    spent = [value for curve in curves for value in curve.spent.tolist()]
    low, high = padded_range(spent, 0.04, 0.01 * max(spent) or 1.0)
    by = "items labelled" if simulation.counts == "items" else "money spent"
    words = listed([f"{arm_name(c.strategy)} from {scale.show(c.mean[0])} to {scale.show(c.mean[-1])}" for c in curves])
    return Chart(
        f"{title}: {measure} against {by}: {words}.",
        Axis(max(0.0, low), high, by, prefix=simulation.currency),
        score_axis(scale, scores),
        title,
        measure,
        320 if task is None or len(simulation.tasks) == 1 else 250,
        lines=lines,
        bands=bands,
    )


def _line(simulation: Simulation, curve: MeanCurve, at: int, scale: Scale) -> Polyline:
    look, name = arm_look(at), sentence(arm_name(curve.strategy))
    points = [
        Point(x, y, f"{name}: {scale.show(mean)} ({scale.between(low, high)}) at {spent_words(simulation, x)}")
        for x, y, mean, low, high in zip(
            curve.spent.tolist(),
            _values(scale, curve.mean),
            curve.mean.tolist(),
            curve.low.tolist(),
            curve.high.tolist(),
            strict=True,
        )
    ]
    shape = look.shape if len(points) <= 25 else "none"
    return Polyline(name, look.colour, points, look.dash, shape, look.open, label=True)


def _values(scale: Scale, scores: object) -> list[float]:
    return [scale.value(float(score)) for score in scores]  # type: ignore[attr-defined]


def _scale(simulation: Simulation) -> Scale:
    return Scale.of(*simulation.metrics.values())


def spent_words(simulation: Simulation, amount: float) -> str:
    """What was spent, in words."""
    if simulation.counts == "items":
        return counted(round(amount), "item")
    return f"{simulation.currency}{number(round(amount, 2))}" + ("" if simulation.currency else " of money")


# -- tables ------------------------------------------------------------------------------------------------------------
def last_table(simulation: Simulation) -> Table:
    """The mean last scores of every strategy."""
    rows = []
    for at, strategy in enumerate(simulation.strategies):
        cells = [
            scale.show(float(simulation.mean_curves(task)[at].mean[-1])) for task, scale in _scales(simulation).items()
        ]
        rows.append((sentence(arm_name(strategy)), *cells))
    return Table(("Strategy", *(task or "Mean" for task in _scales(simulation))), tuple(rows))


def points_table(simulation: Simulation) -> Table:
    """The points of all mean curves."""
    scales, rows = _scales(simulation), []
    by_task = {task: simulation.mean_curves(task) for task in scales}
    for at, strategy in enumerate(simulation.strategies):
        curves = {task: curves[at] for task, curves in by_task.items()}
        for point, spent in enumerate(next(iter(curves.values())).spent.tolist()):
            cells = [scale.show(float(curves[task].mean[point])) for task, scale in scales.items()]
            rows.append((sentence(arm_name(strategy)), spent_words(simulation, spent), *cells))
    return Table(("Strategy", "Spent", *(task or "Mean" for task in scales)), tuple(rows))


def _scales(simulation: Simulation) -> dict[str | None, Scale]:
    """The scale of every task, and of their mean if there are several."""
    found: dict[str | None, Scale] = {None: _scale(simulation)} if len(simulation.tasks) > 1 else {}
    return found | {task: Scale.of(metric) for task, metric in simulation.metrics.items()}


def difference_table(simulation: Simulation) -> Table:
    """All strategies against the last."""
    if len(simulation.strategies) < 2:
        return Table((), ())
    scale = _scale(simulation)
    rows = tuple(
        (
            f"{arm_name(found.strategy)} against {arm_name(found.against)}",
            found.task,
            found.measure,
            *_cells(found, scale),
        )
        for found in simulation.differences()
    )
    return Table(("Comparison", "Task", "Measure", "Difference", "95 % interval", "p"), rows)


def _cells(found: Difference, scale: Scale) -> tuple[str, str, str]:
    def show(value: float) -> str:
        if found.measure == SAVED:
            return percent(value).replace("-", "−")
        return (f"{100 * value:+.1f} points" if scale.percent else f"{value:+.3f}").replace("-", "−")

    known = found.low is not None and found.high is not None
    between = f"{show(found.low or 0.0)} to {show(found.high or 0.0)}" if known else "one seed only"
    p = "–" if found.p_corrected is None else "< 0.001" if found.p_corrected < 0.001 else f"{found.p_corrected:.3f}"
    return show(found.difference), between, p
