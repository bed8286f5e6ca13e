"""Tables of a run: points of the curves, audit slices, strategies, settings, and how each round's budget was split."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from bursar.campaign.curves import curves_of
from bursar.campaign.decisions import RoundSelection, SelectedItem, SplitDecision
from bursar.campaign.results import RunResult, TaskSummary
from bursar.campaign.sections import BUILTIN
from bursar.corpus import Corpus
from bursar.ledger.records import READING
from bursar.report.spending import items_of, labels_of, round_name
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, mean_scale, percent, sentence, strategy_name

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


# -- the split between tasks -----------------------------------------------------------------------------------------
def split_table(result: RunResult) -> Table | None:
    """Labels selected for each task, the maximum, and the share of the cost; ``None`` if nothing was split."""
    money, tasks = Money.of(result), list(result.tasks)
    rows = []
    for one, caps in _split_rounds(result):
        paid, labels = paid_by_task(one.items, tasks)
        total = sum(paid.values())
        cells = [
            f"{labels[name]:,} of {caps[name]:,} ({percent(paid[name] / total) if total else '–'})" for name in tasks
        ]
        rows.append((str(one.round), money.brief(round(total)), *cells))
    return Table(("Round", "Cost", *tasks), tuple(rows)) if rows else None


def split_words(result: RunResult) -> list[str]:
    """Why the budget of each round was split as it was."""
    splits = {one.round: one for one in result.main.splits}
    money = Money.of(result)
    return [
        f"Round {one.round}: {' '.join(_reasons(splits[one.round], caps, money))}"
        for one, caps in _split_rounds(result)
        if one.round in splits
    ]


def _split_rounds(result: RunResult) -> list[tuple[RoundSelection, dict[str, int]]]:
    return [(one, one.caps) for one in result.main.selections if one.caps is not None]


def paid_by_task(items: Iterable[SelectedItem], tasks: list[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Estimated cost and number of the strategy's labels by task. The tasks of an item share its reading."""
    paid, labels = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 0)
    for item in items:
        for name in item.tasks if item.purpose == "strategy" else ():
            paid[name] += item.estimate.get(name, 0) + item.estimate.get(READING, 0) / len(item.tasks)
            labels[name] += 1
    return paid, labels


def _reasons(split: SplitDecision, caps: Mapping[str, int], money: Money) -> list[str]:
    worth, known = split.worth, split.known
    best = max(worth, key=lambda name: worth[name] / split.prices[name])
    value = {name: f"{worth[name]:.2f} at {money.show(price)}" for name, price in split.prices.items()}
    said = []
    if worth[best] > 0:
        said.append(f"a label of {best} had the highest value for its price, {value[best]}.")
    if split.set_aside:
        said.append(
            "By the measured effects, labels of every task harm the others as much as they help, and none would be "
            "bought. So the budget was split as if tasks had no effect on each other."
        )
    effects = [(a, b, *pair) for a, others in known.informs.items() for b, pair in others.items()]
    clear = [effect for effect in effects if abs(effect[2]) > 2 * effect[3]]
    for task, other, effect, _ in sorted(clear, key=lambda effect: -abs(effect[2]))[:2]:
        sign = "−" if effect < 0 else ""
        said.append(f"One label of {task} was worth {sign}{abs(effect):.2f} labels of {other}.")
    said += [f"None for {name}: the value of a label was {value[name]}." for name, cap in caps.items() if not cap]
    if known.unknown:
        why = known.why or "there were too few labels"
        said.append(f"How fast {', '.join(known.unknown)} saturates was not known: {why}.")
    return said
