"""What a model does with items: reads them, computes the losses of their labels, and predicts labels.

Readings, and the hidden states below the trained layers, are computed once; so are the targets of labels. A temperature
is one number per task that divides its scores, fitted on development items (Guo et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.corpus import Corpus
from bursar.learners.encoders.encoder import Encoder, ItemReading
from bursar.learners.learner import Progress, main_scores, no_progress
from bursar.learners.sharing import SharedModel
from bursar.ragged import BoolArray, IntArray, Ragged, offsets_of
from bursar.tasks import AnyBeliefs, Relations, Task
from bursar.tasks.heads import Encoded, dropout_sample
from bursar.tasks.heads.spans import spans_to_link

# Limits of the cache; what exceeds them is computed again.
CACHE_ITEMS = 20_000
CACHE_BYTES = 1_000_000_000
ROWS_PER_BATCH = 1024  # of hidden states, in inference
LOWEST, HIGHEST = 0.05, 20.0  # temperatures


# -- readings ----------------------------------------------------------------------------------------------------------
class ReadingCache:
    """Caches readings of items and, where layers are frozen, the hidden states that those layers compute."""

    def __init__(self, encoder: Encoder, frozen_layers: int) -> None:
        self.encoder, self.frozen_layers = encoder, frozen_layers
        self._readings: dict[Hashable, ItemReading] = {}
        self._kept: set[int] = set()  # the ids of the objects that ``_readings`` keeps alive
        self._hidden: dict[int, Tensor] = {}  # by those ids
        self._hidden_bytes = 0

    def read(self, items: Corpus) -> list[Any]:
        keys = self.encoder.keys(items)
        new = [at for at, key in enumerate(keys) if key not in self._readings]
        if not new:
            return [self._readings[key] for key in keys]
        made = self.encoder.read(items.take(np.array(new)))
        fresh = {keys[at]: reading for at, reading in zip(new, made, strict=True)}
        if len(self._readings) + len(fresh) <= CACHE_ITEMS:
            self._readings |= fresh
            self._kept |= {id(reading) for reading in fresh.values()}
        return [fresh[key] if key in fresh else self._readings[key] for key in keys]

    def encode(self, model: SharedModel, readings: Sequence[ItemReading], tasks: Sequence[str]) -> dict[str, Encoded]:
        batch = model.encoder.batch(readings)
        return model.encode(self.hidden(model, readings, batch), batch, tasks)

    def hidden(self, model: SharedModel, readings: Sequence[ItemReading], batch: Any) -> Tensor:
        """The output of the embeddings and the frozen layers for a batch, which training does not change."""
        encoder = model.encoder
        if not self.frozen_layers:
            return encoder.embed(batch)
        readings = [readings[i] for i in batch.order]  # in the order of the batch
        known = [self._hidden.get(id(reading)) for reading in readings]
        if all(hidden is not None for hidden in known):
            return torch.cat([hidden for hidden in known if hidden is not None])
        training = encoder.training
        encoder.eval()
        with torch.no_grad():
            hidden = encoder.run(encoder.embed(batch), batch, range(self.frozen_layers))
        encoder.train(training)
        for reading, part in zip(readings, torch.split(hidden, [reading.size for reading in readings]), strict=True):
            key = id(reading)
            if key in self._kept and key not in self._hidden and self._hidden_bytes + part.nbytes < CACHE_BYTES:
                self._hidden[key] = part.clone()
                self._hidden_bytes += part.nbytes
        return hidden


def lengths_of(readings: Sequence[ItemReading]) -> IntArray:
    """The size of every reading: (items,)."""
    return np.array([reading.size for reading in readings], dtype=np.int64)


def in_batches(readings: Sequence[ItemReading], stage: str, progress: Progress) -> Iterator[IntArray]:
    """Batches of items of similar length; reports the share of items that are done after each."""
    done = 0
    for batch in batches_by_length(lengths_of(readings)):
        yield batch
        done += len(batch)
        progress(stage, done / len(readings))


def batches_by_length(lengths: IntArray, rows: int = ROWS_PER_BATCH) -> Iterator[IntArray]:
    """Batches of items of similar length, with at most ``rows`` rows each unless a single item has more."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    at = 0
    while at < len(order):
        before = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, before + rows, side="right")))
        yield order[at:stop]
        at = stop


# -- losses ------------------------------------------------------------------------------------------------------------
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
class TaskLosses:
    """Items with their labels by task, and the losses of a model's tasks on batches of them, given by position."""

    model: SharedModel
    cache: ReadingCache
    readings: Sequence[Any]
    present: Mapping[str, BoolArray]  # which items have a label
    targets: Mapping[str, Ragged]  # of the head's loss; empty for items without a label
    spans: Mapping[str, Ragged]  # only for tasks that build on another task's spans
    smoothing: float = 0.0

    @classmethod
    def of(cls, model: SharedModel, cache: ReadingCache, items: Corpus, smoothing: float = 0.0) -> TaskLosses:
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
        return cls(model, cache, cache.read(items), present, targets, spans, smoothing)

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
                output = head(self.encode(items, [task])[task], self._spans_of(task, items))
                outputs.append((output, self.targets[task].take(items)))

            def loss(temperature: float) -> float:
                losses = [head.loss(head.with_temperature(o, temperature), t, 0.0).item() * len(t) for o, t in outputs]
                return sum(losses) / sum(len(targets) for _, targets in outputs)

            found = fit_temperature(loss, steps)
            return found, loss(found)

    def _output(self, encoded: Encoded, items: IntArray, task: str) -> tuple[Any, Ragged]:
        """The head's output and its targets, for the items that have the task's label."""
        there = np.flatnonzero(self.present[task][items])
        known, head = items[there], self.model.head(task)
        targets = self.targets[task].take(known)
        return head.teacher_forced(head(encoded.take(there), self._spans_of(task, known)), targets), targets

    def _spans_of(self, task: str, items: IntArray) -> Ragged | None:
        return self.spans[task].take(items) if task in self.spans else None


def linkable_spans(tasks: Mapping[str, Task], name: str, entities: Ragged, relations: Ragged | None) -> Ragged:
    """The spans that a relations task can link."""
    task = tasks[name]
    assert isinstance(task, Relations)
    partner = task.partner(tasks)
    assert partner is not None
    return spans_to_link(entities, relations, tasks[partner].labels, task.entity_types)


# -- predictions -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts with one model, once or in several dropout passes."""

    model: SharedModel
    cache: ReadingCache
    temperatures: Mapping[str, float] = field(default_factory=dict)

    def predict_proba(
        self, items: Corpus, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        """The probabilities of every task of the model, in the order of the items."""
        model = self.model.eval()
        readings = self.cache.read(items)
        order: list[int] = []
        parts: dict[str, list[Any]] = {name: [] for name in model.tasks}
        with torch.inference_mode():
            for batch in in_batches(readings, "scoring", progress):
                for name, beliefs in self._predict_batch([readings[i] for i in batch], passes, seed).items():
                    parts[name].append(beliefs)
                order += batch.tolist()
            if not order:
                width, none = model.encoder.width, np.zeros(0, dtype=np.int64)
                nothing = Encoded(torch.zeros(0, width), torch.zeros(0, width), none)
                return self._from_heads([dict.fromkeys(model.tasks, nothing)] * passes)
        back = np.argsort(np.array(order, dtype=np.int64))
        return {name: type(found[0]).concatenate(found).take(back) for name, found in parts.items()}

    def main_scores(self, dev: Corpus) -> tuple[float, float]:
        tasks, beliefs = self.model.tasks, self.predict_proba(dev)
        return main_scores(tasks, dev, {name: task.decode(beliefs[name]) for name, task in tasks.items()})

    def _predict_batch(self, readings: Sequence[ItemReading], passes: int, seed: int) -> dict[str, AnyBeliefs]:
        """One batch. Dropout passes share everything before the first dropout."""
        model, tasks = self.model, list(self.model.tasks)
        batch = model.encoder.batch(readings)
        hidden = self.cache.hidden(model, readings, batch)
        if passes == 1:
            return self._from_heads([model.encode(hidden, batch, tasks)])
        begun = model.encoder.begin(hidden, batch, model.frozen)
        plain = None
        if any(partner is not None for partner in model.partners.values()):
            # The model without dropout decides which pairs of spans are scored (errata 3).
            plain = self._from_heads([model.encode(hidden, batch, tasks, begun)])

        def dropout_passes() -> Iterator[dict[str, Encoded]]:
            for number in range(passes):
                with dropout_sample(model, seed, number):  # also while the heads read what is yielded
                    yield model.encode(hidden, batch, tasks, begun)

        return self._from_heads(dropout_passes(), plain)

    def _from_heads(
        self, passes: Iterable[dict[str, Encoded]], plain: Mapping[str, AnyBeliefs] | None = None
    ) -> dict[str, AnyBeliefs]:
        """The heads' probabilities from the encoder's output in every pass."""
        model = self.model
        outputs: dict[str, list[Any]] = {name: [] for name in model.tasks}
        leaders = [name for name, partner in model.partners.items() if partner is None]
        followers = [name for name, partner in model.partners.items() if partner is not None]
        for encoded in passes:
            for name in leaders:
                outputs[name].append(self._output(name, encoded[name], None))
            if followers and plain is None:
                plain = {name: model.head(name).predict_proba(outputs[name]) for name in leaders}
            for name in followers:
                assert plain is not None
                partner = model.partners[name]
                assert partner is not None
                spans = linkable_spans(model.tasks, name, model.tasks[partner].decode(plain[partner]), None)
                outputs[name].append(self._output(name, encoded[name], spans))
        return {name: model.head(name).predict_proba(outputs[name]) for name in model.tasks}

    def _output(self, name: str, encoded: Encoded, spans: Ragged | None) -> Any:
        output = self.model.head(name)(encoded, spans)
        temperature = self.temperatures.get(name)
        return output if temperature is None else self.model.head(name).with_temperature(output, temperature)
