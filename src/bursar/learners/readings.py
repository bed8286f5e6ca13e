"""Items as an encoder reads them, and their hidden states below the trained layers: each computed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.corpus import Corpus
from bursar.learners.encoders.encoder import Encoder, ItemReading
from bursar.learners.learner import Progress
from bursar.learners.sharing import SharedModel
from bursar.ragged import IntArray
from bursar.tasks.heads import Encoded

# Limits of the cache; what exceeds them is computed again.
CACHE_ITEMS = 20_000
CACHE_BYTES = 1_000_000_000
ROWS_PER_BATCH = 1024  # of hidden states, in inference


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
