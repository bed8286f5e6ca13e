"""What the items of a pool will cost, and what they did cost (errata 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from bursar.campaign.annotation_speed import Rate, rate_of
from bursar.campaign.config import CampaignConfig
from bursar.campaign.splits import DataSplits
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.ledger import Annotation, Charge, Ledger
from bursar.ledger.records import READING
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import CostModel, Prices, Task
from bursar.tasks.costs import counts_of


class Pricing:
    """Prices of a campaign's items: by gold labels where those are the rule, else by predicted ones."""

    def __init__(self, config: CampaignConfig, parts: DataSplits) -> None:
        self.by_gold = config.costs.pricing == "gold"
        self.parts = parts
        self.corpus = parts.corpus

    def prices(self, items: IntArray, source: Learner | Mapping[str, Ragged], costs: CostModel) -> Prices:
        """Prices of items; ``source`` predicts their labels, or holds them as predicted."""
        part = self.corpus.take(items)
        if self.by_gold:
            labels: Mapping[str, Ragged] = self.gold(items)
        elif isinstance(source, Learner):
            labels = source.predict(part.unlabelled()) if len(items) else {}
        else:
            labels = source
        return prices_of(costs, self._tasks, part, labels, self._typical)

    def typical_price(self, items: IntArray, costs: CostModel) -> float:
        """What an item costs on average for all tasks, before there is a model."""
        return float(self.prices(items, {}, costs).joint().mean()) if len(items) else 0.0

    def gold(self, items: IntArray) -> dict[str, Ragged]:
        """The labels that the corpus holds."""
        return {name: column.rows.take(items) for name, column in self.corpus.labels.items()}

    @property
    def _tasks(self) -> list[Task]:
        return list(self.corpus.schema.values())

    @cached_property
    def _typical(self) -> dict[str, float]:
        return typical_counts(self._tasks, self.corpus.take(self.parts.dev))


def prices_of(
    model: CostModel, tasks: Sequence[Task], items: Corpus, labels: Mapping[str, Ragged], typical: Mapping[str, float]
) -> Prices:
    """Prices by the labels at hand, gold or predicted; for a task without any, by what is typical, rounded up."""
    usual = {task.name: np.full(len(items), int(np.ceil(typical[task.name]))) for task in tasks}
    return model.price(tasks, items.reading, usual | counts_of(tasks, labels))


def typical_counts(tasks: Sequence[Task], items: Corpus) -> dict[str, float]:
    """How much of what each task counts the labelled items hold on average; 1 where none is labelled."""
    found = {}
    for task in tasks:
        labels = items.labels[task.name]
        known = np.flatnonzero(labels.present)
        found[task.name] = float(task.count(labels.rows.take(known)).mean()) if len(known) else 1.0
    return found


def charges_of(
    model: CostModel, item: Corpus, answers: Sequence[Annotation], estimate: Mapping[str, int]
) -> tuple[Charge, ...]:
    """What answering for one item cost: reading once, and each task by what the answer holds."""
    tasks = [item.schema[answer.task] for answer in answers]
    words = int(item.words[0])
    counts = {
        task.name: task.count(Ragged.of([task.encode(answer.label, words)], task.width, task.dtype))
        for task, answer in zip(tasks, answers, strict=True)
    }
    actual = model.price(tasks, item.reading, counts)
    paid = {READING: int(actual.reading[0])} | dict(zip(actual.tasks, actual.own[0].tolist(), strict=True))
    return tuple(Charge(item.ids[0], what, int(estimate.get(what, paid[what])), paid[what]) for what in paid)


def estimates_of(prices: Prices, at: int, tasks: Sequence[str]) -> dict[str, int]:
    """What one item is thought to cost, thing by thing."""
    own = dict(zip(prices.tasks, prices.own[at].tolist(), strict=True))
    return {READING: int(prices.reading[at])} | {name: own[name] for name in tasks}


# -- what was measured -------------------------------------------------------------------------------------------------
def measurements(ledger: Ledger) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Of reading and of every task: the seconds that each answer took, and how much of what is counted it held."""
    corpus = ledger.corpus
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in (READING, *corpus.schema)}
    words = dict(zip(corpus.ids.tolist(), corpus.reading.tolist(), strict=True))
    for timing in ledger.timings():
        if timing.what == READING:
            found[READING].append((timing.seconds, words[timing.item]))
    places = dict(zip(corpus.ids.tolist(), corpus.words.tolist(), strict=True))
    for answer in ledger.answers():
        for name, label in answer.labels.items():
            if name in answer.seconds and label is not None:
                task = corpus.schema[name]
                rows = Ragged.of([task.encode(label, places[answer.item])], task.width, task.dtype)
                counted = {"item": 0, "word": words[answer.item]}.get(task.counted)
                found[name].append((answer.seconds[name], int(task.count(rows)[0]) if counted is None else counted))
    columns = {what: np.array(pairs, dtype=float).reshape(-1, 2).T for what, pairs in found.items()}
    return {what: (seconds, counts) for what, (seconds, counts) in columns.items()}


def measured_rates(ledger: Ledger, usual: Mapping[str, tuple[float, float]] | None = None) -> dict[str, Rate]:
    """The pace of everybody together, of reading and of every task; ``usual`` is the one to begin with."""
    usual = usual or {}
    return {
        what: rate_of(seconds, counts, usual.get(what, (0.0, 0.0)))
        for what, (seconds, counts) in measurements(ledger).items()
    }
