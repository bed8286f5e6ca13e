"""Annotated items as a training needs them: encoded once, looked up by every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
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


@dataclass(frozen=True, eq=False)
class Objective:
    """What a training makes smaller: the losses of a model's tasks on batches of its examples."""

    model: SharedModel
    examples: Examples
    encode: Callable[[IntArray, Sequence[str]], Mapping[str, Encoded]]  # items and tasks to what the heads read
    smoothing: float

    def losses(self, items: IntArray, tasks: Sequence[str]) -> list[Tensor]:
        """The mean loss of each task over those of the items that have its label."""
        encoded = self.encode(items, tasks)
        found = []
        for task in tasks:
            output, targets = self._output(encoded[task], items, task)
            found.append(self.model.head(task).loss(output, targets, self.smoothing))
        return found

    def loss_and_surprise(self, items: IntArray, task: str) -> tuple[Tensor, float]:
        """The loss of one task to train on, and from the same pass the negative log-likelihood of its labels."""
        output, targets = self._output(self.encode(items, [task])[task], items, task)
        head = self.model.head(task)
        with torch.no_grad():
            surprise = head.surprise(output, targets).item()
        return head.loss(output, targets, self.smoothing), surprise

    def surprise(self, items: IntArray, task: str) -> float:
        """The negative log-likelihood of one task's labels as the model is now, by a pass of its own."""
        with torch.no_grad():
            output, targets = self._output(self.encode(items, [task])[task], items, task)
            return self.model.head(task).surprise(output, targets).item()

    def _output(self, encoded: Encoded, items: IntArray, task: str) -> tuple[Any, Ragged]:
        """What a head makes of those of the items that have its label, and what it should have made of them."""
        there = np.flatnonzero(self.examples.present[task][items])
        known, head = items[there], self.model.head(task)
        targets = self.examples.targets[task].take(known)
        return head.teacher_forced(head(encoded.take(there), self.examples.spans_of(task, known)), targets), targets


def linkable_spans(tasks: Mapping[str, Task], name: str, entities: Ragged, relations: Ragged | None) -> Ragged:
    """The spans that a relations task may link."""
    task = tasks[name]
    assert isinstance(task, Relations)
    partner = task.partner(tasks)
    assert partner is not None
    return spans_to_link(entities, relations, tasks[partner].labels, task.entity_types)
