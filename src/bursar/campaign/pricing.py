"""What the items of a pool will cost, and what they did cost (errata 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bursar.corpus import Corpus
from bursar.ledger import Annotation, Charge
from bursar.ledger.records import READING
from bursar.ragged import Ragged
from bursar.tasks import CostModel, Prices, Task
from bursar.tasks.costs import counts_of


def prices_of(
    model: CostModel,
    tasks: Sequence[Task],
    items: Corpus,
    labels: Mapping[str, Ragged],
    typical: Mapping[str, float],
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
