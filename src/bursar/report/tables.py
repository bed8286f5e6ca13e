"""Tables of a run: points of the curves, audit slices, strategies, and settings."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from bursar.campaign.curves import curves_of
from bursar.campaign.results import RunResult, TaskSummary
from bursar.campaign.sections import BUILTIN
from bursar.corpus import Corpus
from bursar.report.spending import items_of, labels_of, round_name
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, mean_scale, sentence, strategy_name

PACKAGES = ("bursar", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Table:
    """Column headings and rows of text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without(self, *columns: str) -> Table:
        kept = [at for at, name in enumerate(self.columns) if name not in columns]
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return Table(tuple(self.columns[at] for at in kept), rows)


def curve_table(result: RunResult) -> Table:
    """The points of all curves."""
    money, tasks, mean = Money.of(result), result.tasks, mean_scale(result)
    rows = [
        (
            sentence(arm_name(arm)),
            round_name(number),
            money.brief(int(curve.money[at])),
            *(Scale.of(task.metric).show(float(curve.scores[name][at])) for name, task in tasks.items()),
            *([mean.show(float(curve.mean[at]))] if len(tasks) > 1 else []),
        )
        for arm, curve in curves_of(result).items()
        for at, number in enumerate(curve.rounds)
    ]
    return Table(("Strategy", "After round", "Spent", *tasks, *(["Mean"] if len(tasks) > 1 else [])), tuple(rows))


def audit_table(result: RunResult) -> Table:
    """The scores of all audit slices with their intervals."""
    money, tasks = Money.of(result), result.tasks
    rows = []
    for part in result.main.audit:
        cells = []
        for name, task in tasks.items():
            scale, found = Scale.of(task.metric), part.scores[name]
            between = "few items" if found.interval is None else scale.between(*found.interval)
            cells.append(f"{scale.show(found.score)} ({between})")
        rows.append((round_name(part.round), money.brief(part.spent), f"{part.items:,}", *cells))
    return Table(("Model of round", "Spent", "Items", *tasks), tuple(rows))


def arms_table(result: RunResult) -> Table:
    """The strategies with their latest scores."""
    money, tasks, mean = Money.of(result), result.tasks, mean_scale(result)
    curves = curves_of(result)
    rows = []
    for arm, found in result.arms.items():
        bought = (money.brief(found.spent), f"{items_of(found.spending):,}", f"{labels_of(found.spending):,}")
        scores, area = ["–"] * len(tasks), result.comparison.get(arm)
        if arm in curves:
            scores = [Scale.of(t.metric).show(float(curves[arm].scores[name][-1])) for name, t in tasks.items()]
        rows.append((sentence(arm_name(arm)), *bought, *scores, mean.show(area.mean) if area else "–"))
    return Table(("Strategy", "Spent", "Items", "Labels", *tasks, "Mean along the curve"), tuple(rows))


def settings(result: RunResult, corpus: Corpus) -> dict[str, dict[str, str]]:
    """All settings of a run, by section."""
    config, counts = result.config.model_dump(mode="json"), result.corpus
    builtin = counts.source == BUILTIN
    unused = {"source"} if builtin else {"source", "items", "seed"}  # of the built-in corpus only
    return {
        "Corpus": {
            "source": "the built-in corpus" if builtin else PurePath(counts.source).name,
            "pool, dev, test": f"{counts.pool:,}, {counts.dev:,} and {counts.test:,} items",
        }
        | _entries({key: value for key, value in config["corpus"].items() if key not in unused and value != {}}),
        "Tasks": {name: _task_words(task) for name, task in result.tasks.items()},
        "Prices": _prices(result, corpus),
        "Budget": _entries(config["budget"]),
        "Strategy": {"name": strategy_name(result.main), "compared with": _shown(config["compare"]) or "nothing"},
        "Learner": _entries(config["learner"]),
        "Audit": _entries(config["audit"]),
        "Stopping": _entries(config["stopping"]),
        "Seed": {"campaign": str(config["seed"])},
        "Run with": dict(result.versions),
        "Page written by": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }


def _entries(section: Mapping[str, Any]) -> dict[str, str]:
    return {key: _shown(value) for key, value in section.items()}


def _task_words(task: TaskSummary) -> str:
    labels = f", {counted(task.labels, 'label')}" if task.labels else ""
    return f"{task.kind}{labels}, scored by {task.metric}"


def _prices(result: RunResult, corpus: Corpus) -> dict[str, str]:
    """The prices, including defaults."""
    costs = result.config.costs
    model, money = costs.model(corpus.schema.values()), Money.of(result)
    found = {}
    for thing, prices in {"reading": model.reading, **model.own}.items():
        paid = [f"{money.brief(units)} {key.replace('_', ' ')}" for key, units in prices.items() if units]
        found[thing] = ", ".join(paid) or "free"
    if costs.hourly is not None:
        found["hour of annotation"] = f"{costs.currency}{costs.hourly:.2f}".removesuffix(".00")
    if costs.measured:
        found["after the first round"] = "prices follow the measured speed of annotators"
    found["computed from"] = "known labels" if costs.pricing == "gold" else "predicted labels"
    if costs.pricing == "predicted":
        found["reserve for overruns"] = f"{100 * costs.reserve:g}{THIN}%"
    return found


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case float():
            return f"{value:g}"
        case dict():
            return ", ".join(f"{key} = {_shown(entry)}" for key, entry in value.items())
    return str(value)
