"""Estimated and actual costs of items (errata 11)."""

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
    """Prices of a campaign's items, by gold or by predicted labels."""

    def __init__(self, config: CampaignConfig, parts: DataSplits) -> None:
        self.by_gold = config.costs.pricing == "gold"
        self.parts = parts
        self.corpus = parts.corpus

    def prices(self, items: IntArray, source: Learner | Mapping[str, Ragged], costs: CostModel) -> Prices:
        """Prices of items; ``source`` is a learner or its predicted labels."""
        part = self.corpus.take(items)
        if self.by_gold:
            labels: Mapping[str, Ragged] = self.gold(items)
        elif isinstance(source, Learner):
            labels = source.predict(part.unlabelled()) if len(items) else {}
        else:
            labels = source
        return prices_of(costs, list(self.corpus.schema.values()), part, labels, self._typical)

    def typical_price(self, items: IntArray, costs: CostModel) -> float:
        """The mean price of an item for all tasks, before there is a model."""
        return float(self.prices(items, {}, costs).joint().mean()) if len(items) else 0.0

    def gold(self, items: IntArray) -> dict[str, Ragged]:
        return {name: column.rows.take(items) for name, column in self.corpus.labels.items()}

    @cached_property
    def _typical(self) -> dict[str, float]:
        return typical_counts(list(self.corpus.schema.values()), self.corpus.take(self.parts.dev))


def prices_of(
    model: CostModel, tasks: Sequence[Task], items: Corpus, labels: Mapping[str, Ragged], typical: Mapping[str, float]
) -> Prices:
    """Prices by gold or predicted labels; for a task without any, by its typical count, rounded up."""
    usual = {task.name: np.full(len(items), int(np.ceil(typical[task.name]))) for task in tasks}
    return model.price(tasks, items.reading, usual | counts_of(tasks, labels))


def typical_counts(tasks: Sequence[Task], items: Corpus) -> dict[str, float]:
    """The mean count per labelled item for each task; 1 if none is labelled."""
    found = {}
    for task in tasks:
        labels = items.labels[task.name]
        known = np.flatnonzero(labels.present)
        found[task.name] = float(task.count(labels.rows.take(known)).mean()) if len(known) else 1.0
    return found


def charges_of(
    model: CostModel, item: Corpus, answers: Sequence[Annotation], estimate: Mapping[str, int]
) -> tuple[Charge, ...]:
    """The charges for one item: reading once, and each task by its label."""
    tasks = [item.schema[answer.task] for answer in answers]
    words = int(item.words[0])
    counts = {
        task.name: task.count(Ragged.of([task.encode(answer.label, words)], task.width, task.dtype))
        for task, answer in zip(tasks, answers, strict=True)
    }
    actual = model.price(tasks, item.reading, counts)
    paid = {READING: int(actual.reading[0])} | dict(zip(actual.tasks, actual.own[0].tolist(), strict=True))
    return tuple(Charge(item.ids[0], what, int(estimate.get(what, paid[what])), paid[what]) for what in paid)


# -- measured times ----------------------------------------------------------------------------------------------------
def measurements(ledger: Ledger) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The seconds and the count of each answer, for reading and for every task."""
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
    """The speed of all annotators together, for reading and for every task; ``usual`` is the prior."""
    found = measurements(ledger).items()
    return {what: rate_of(seconds, counts, (usual or {}).get(what, (0.0, 0.0))) for what, (seconds, counts) in found}
