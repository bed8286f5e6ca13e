"""Annotated items prepared for training: targets encoded once, used at every step; and temperatures.

A temperature is one number per task that divides its scores, fitted on development items (Guo et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.corpus import Corpus
from bursar.learners.readings import ReadingCache
from bursar.learners.sharing import SharedModel
from bursar.ragged import BoolArray, IntArray, Ragged, offsets_of
from bursar.tasks import Relations, Task
from bursar.tasks.heads import Encoded
from bursar.tasks.heads.spans import spans_to_link

LOWEST, HIGHEST = 0.05, 20.0


def fit_temperature(loss: Callable[[float], float], steps: int = 40) -> float:
    """The temperature with the lowest loss, by golden-section search on its logarithm; the loss has one minimum."""
    if loss(LOWEST) == loss(1.0) == loss(HIGHEST):  # all temperatures are equally good
        return 1.0
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(LOWEST), math.log(HIGHEST)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(math.exp(left)), loss(math.exp(right))
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(math.exp(right))
    return math.exp((low + high) / 2)


@dataclass(frozen=True, eq=False)
class Examples:
    """The labels of items by task: which items have one, and the targets of the head's loss."""

    present: Mapping[str, BoolArray]
    targets: Mapping[str, Ragged]  # empty for items without a label
    spans: Mapping[str, Ragged]  # only for tasks that build on another task's spans

    @classmethod
    def of(cls, items: Corpus, model: SharedModel) -> Examples:
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
class TaskLosses:
    """The losses of a model's tasks on batches of items, which are given by position."""

    model: SharedModel
    cache: ReadingCache
    readings: Sequence[Any]
    examples: Examples
    smoothing: float = 0.0

    @classmethod
    def of(cls, model: SharedModel, cache: ReadingCache, items: Corpus, smoothing: float = 0.0) -> TaskLosses:
        return cls(model, cache, cache.read(items), Examples.of(items, model), smoothing)

    def encode(self, items: IntArray, tasks: Sequence[str]) -> dict[str, Encoded]:
        return self.cache.encode(self.model, [self.readings[at] for at in items], tasks)

    def losses(self, items: IntArray, tasks: Sequence[str]) -> list[Tensor]:
        """The mean loss of each task over the items that have its label."""
        encoded = self.encode(items, tasks)
        found = []
        for task in tasks:
            output, targets = self._output(encoded[task], items, task)
            found.append(self.model.head(task).loss(output, targets, self.smoothing))
        return found

    def loss_and_nll(self, items: IntArray, task: str) -> tuple[Tensor, float]:
        """The loss of one task and, from the same forward pass, the negative log-likelihood of its labels."""
        output, targets = self._output(self.encode(items, [task])[task], items, task)
        head = self.model.head(task)
        with torch.no_grad():
            nll = head.surprise(output, targets).item()
        return head.loss(output, targets, self.smoothing), nll

    def nll(self, items: IntArray, task: str) -> float:
        """The negative log-likelihood of one task's labels under the current model."""
        with torch.no_grad():
            output, targets = self._output(self.encode(items, [task])[task], items, task)
            return self.model.head(task).surprise(output, targets).item()

    def temperature(self, batches: Iterable[IntArray], task: str, steps: int = 40) -> tuple[float, float]:
        """The temperature that minimises a task's loss on batches of items with its label, and that loss."""
        head, outputs = self.model.eval().head(task), []
        with torch.inference_mode():
            for items in batches:
                output = head(self.encode(items, [task])[task], self.examples.spans_of(task, items))
                outputs.append((output, self.examples.targets[task].take(items)))

            def loss(temperature: float) -> float:
                losses = [head.loss(head.with_temperature(o, temperature), t, 0.0).item() * len(t) for o, t in outputs]
                return sum(losses) / sum(len(targets) for _, targets in outputs)

            found = fit_temperature(loss, steps)
            return found, loss(found)

    def _output(self, encoded: Encoded, items: IntArray, task: str) -> tuple[Any, Ragged]:
        """The head's output and its targets, for the items that have the task's label."""
        there = np.flatnonzero(self.examples.present[task][items])
        known, head = items[there], self.model.head(task)
        targets = self.examples.targets[task].take(known)
        return head.teacher_forced(head(encoded.take(there), self.examples.spans_of(task, known)), targets), targets


def linkable_spans(tasks: Mapping[str, Task], name: str, entities: Ragged, relations: Ragged | None) -> Ragged:
    """The spans that a relations task can link."""
    task = tasks[name]
    assert isinstance(task, Relations)
    partner = task.partner(tasks)
    assert partner is not None
    return spans_to_link(entities, relations, tasks[partner].labels, task.entity_types)
