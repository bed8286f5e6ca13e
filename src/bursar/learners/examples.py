"""Annotated items as a training needs them: encoded once, looked up by every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from bursar.corpus import Corpus
from bursar.learners.sharing import SharedModel
from bursar.ragged import BoolArray, IntArray, Ragged, offsets_of
from bursar.tasks import Relations, Task
from bursar.tasks.heads import Encoded
from bursar.tasks.heads.spans import spans_to_link


@dataclass(frozen=True, eq=False)
class Examples:
    """What a training needs of annotated items, per task: who has a label, and what the head's loss wants of it."""

    present: Mapping[str, BoolArray]
    targets: Mapping[str, Ragged]  # of labelled items; the others have none
    spans: Mapping[str, Ragged]  # for tasks that build on another's spans: those

    @classmethod
    def of(cls, items: Corpus, model: SharedModel) -> Examples:
        """Encode once what every epoch needs."""
        present, targets, spans = {}, {}, {}
        for name in model.tasks:
            labels, head = items.labels[name], model.head(name)
            known = np.flatnonzero(labels.present)
            rows = labels.rows.take(known)
            if model.training:
                head.prepare(rows, items.words[known])
            found = head.targets(rows, items.words[known])
            lengths = np.zeros(len(items), dtype=np.int64)
            lengths[known] = found.lengths
            present[name], targets[name] = labels.present, Ragged(found.values, offsets_of(lengths))
            partner = model.partners[name]
            if partner is not None:
                spans[name] = linkable_spans(model.tasks, name, items.labels[partner].rows, labels.rows)
        return cls(present, targets, spans)

    def spans_of(self, task: str, items: IntArray) -> Ragged | None:
        return self.spans[task].take(items) if task in self.spans else None

    def loss(self, model: SharedModel, task: str, encoded: Encoded, items: IntArray, smoothing: float) -> Tensor:
        """The mean loss of one task over those of the items that have its label."""
        there = np.flatnonzero(self.present[task][items])
        known, head = items[there], model.head(task)
        output = head(encoded.take(there), self.spans_of(task, known))
        return head.loss(output, self.targets[task].take(known), smoothing)


def linkable_spans(tasks: Mapping[str, Task], name: str, entities: Ragged, relations: Ragged | None) -> Ragged:
    """The spans that a relations task may link."""
    task = tasks[name]
    assert isinstance(task, Relations)
    partner = task.partner(tasks)
    assert partner is not None
    return spans_to_link(entities, relations, tasks[partner].labels, task.entity_types)
