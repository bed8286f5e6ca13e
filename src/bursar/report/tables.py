"""The tables: every point of the curves, the strategies side by side, and how the run was made."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from bursar.campaign.sections import BUILTIN, CostsSection
from bursar.corpus import Corpus
from bursar.report.curves import curves_of
from bursar.report.spending import items_of, labels_of, round_name
from bursar.report.story import reliability_of, trust_of
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, sentence, strategy_name

PACKAGES = ("bursar", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Table:
    """A heading and rows of texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def curve_table(result: Mapping[str, Any]) -> Table:
    """The points of all curves."""
    money, tasks = Money.of(result), result["tasks"]
    mean = _mean_scale(result)
    rows = [
        (
            sentence(arm_name(arm)),
            round_name(number),
            money.brief(int(curve.money[at])),
            *(Scale.of(task["metric"]).show(float(curve.scores[name][at])) for name, task in tasks.items()),
            *([mean.show(float(curve.mean[at]))] if len(tasks) > 1 else []),
        )
        for arm, curve in curves_of(result).items()
        for at, number in enumerate(curve.rounds)
    ]
    return Table(("Strategy", "After round", "Money spent", *tasks, *(["Mean"] if len(tasks) > 1 else [])), tuple(rows))


def audit_table(result: Mapping[str, Any]) -> Table:
    """The scores of all audit slices with their intervals."""
    money, tasks = Money.of(result), result["tasks"]
    rows = []
    for part in result["arms"][result["strategy"]]["audit"]:
        cells = []
        for name, task in tasks.items():
            show, found = Scale.of(task["metric"]).show, part["scores"][name]
            between = "few items" if found["low"] is None else f"{show(found['low'])} to {show(found['high'])}"
            cells.append(f"{show(found['score'])} ({between})")
        rows.append((round_name(part["round"]), money.brief(part["spent"]), f"{part['items']:,}", *cells))
    return Table(("Model of round", "Money spent", "Items", *tasks), tuple(rows))


def arms_table(result: Mapping[str, Any]) -> Table:
    """The strategies side by side, with the newest score of each."""
    money, tasks, mean = Money.of(result), result["tasks"], _mean_scale(result)
    curves = curves_of(result)
    rows = []
    for arm, found in result["arms"].items():
        curve, area = curves.get(arm), result["comparison"].get(arm)
        rows.append(
            (
                sentence(arm_name(arm)),
                money.brief(found["spent"]),
                f"{items_of(found['spending']):,}",
                f"{labels_of(found['spending']):,}",
                *(
                    Scale.of(task["metric"]).show(float(curve.scores[name][-1])) if curve is not None else "–"
                    for name, task in tasks.items()
                ),
                mean.show(area["mean"]) if area else "–",
            )
        )
    return Table(("Strategy", "Money", "Items", "Labels", *tasks, "Mean along the curve"), tuple(rows))


def trust_table(result: Mapping[str, Any]) -> Table:
    """By task: how sure the newest model was, how right, and the two errors."""
    errors = ("Calibration error", "Overconfidence error")
    rows = []
    for trust in trust_of(result):
        said, right, items = trust.surest
        rows.append(
            (
                trust.task,
                f"{trust.items:,}",
                f"{trust.said:.2f}",
                f"{trust.right:.2f}",
                f"said {said:.2f}, was {right:.2f} right ({counted(items, 'item')})",
                f"{trust.calibration:.3f}",
                f"{trust.overconfidence:.3f}",
            )
        )
    return Table(("Task", "Items", "It said", "It was right", "Where it was surest", *errors), tuple(rows))


def reliability_table(result: Mapping[str, Any]) -> Table:
    """Every point of the reliability diagrams."""
    rows = []
    for name, record in reliability_of(result).items():
        bins = zip(pairwise(record["edges"]), record["counts"], record["confidence"], record["accuracy"], strict=True)
        for (low, high), count, said, right in bins:
            if count:
                rows.append((name, f"{low:.2f} to {high:.2f}", f"{count:,}", f"{said:.2f}", f"{right:.2f}"))
    return Table(("Task", "Confidence", "Items", "It said", "It was right"), tuple(rows))


def settings(result: Mapping[str, Any], corpus: Corpus) -> dict[str, dict[str, str]]:
    """Everything a run depends on, in sections of keys and values."""
    config, counts = result["config"], result["corpus"]
    builtin = counts["source"] == BUILTIN
    unused = {"source"} if builtin else {"source", "items", "seed"}  # those two make the built-in corpus
    found: dict[str, dict[str, str]] = {
        "Corpus": {
            "source": "the built-in corpus" if builtin else PurePath(counts["source"]).name,
            "pool, dev, test": f"{counts['pool']:,}, {counts['dev']:,} and {counts['test']:,} items",
        }
        | {key: _shown(value) for key, value in config["corpus"].items() if key not in unused and value != {}},
        "Tasks": {
            name: ", ".join(
                [
                    task["kind"],
                    *([counted(task["labels"], "label")] if task["labels"] else []),
                    f"scored by {task['metric']}",
                ]
            )
            for name, task in result["tasks"].items()
        },
        "Prices": _prices(result, corpus),
        "Budget": {key: _shown(value) for key, value in config["budget"].items()},
        "Strategy": {"name": strategy_name(result), "compared with": _shown(config["compare"]) or "nothing"},
        "Learner": {key: _shown(value) for key, value in config["learner"].items()},
        "Audit": {key: _shown(value) for key, value in config["audit"].items()},
        "Stopping": {key: _shown(value) for key, value in config["stopping"].items()},
        "Seed": {"campaign": str(config["seed"])},
        "Run with": dict(result["versions"]),
        "Page written by": {"python": platform.python_version()} | _versions(),
    }
    return found


def _prices(result: Mapping[str, Any], corpus: Corpus) -> dict[str, str]:
    """The price list, defaults included."""
    costs = CostsSection.model_validate(result["config"]["costs"])
    model = costs.model(corpus.schema.values())
    money = Money.of(result)
    lists = {"reading": model.reading, **model.own}
    found = {}
    for thing, prices in lists.items():
        paid = [f"{money.brief(units)} {key.replace('_', ' ')}" for key, units in prices.items() if units]
        found[thing] = ", ".join(paid) or "free"
    if costs.hourly is not None:
        found["an hour of annotation"] = f"{costs.currency}{costs.hourly:g}"
    if costs.measured:
        found["from the first round on"] = "prices follow the seconds that annotators take"
    found["counted on"] = "known labels" if costs.pricing == "gold" else "predicted labels"
    if costs.pricing == "predicted":
        found["kept back for overruns"] = f"{100 * costs.reserve:g}{THIN}%"
    return found


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _mean_scale(result: Mapping[str, Any]) -> Scale:
    return Scale.of(*(task["metric"] for task in result["tasks"].values()))


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
