"""Vectors of texts from a frozen encoder, computed once per text.

torch is imported with the first encoder only, because that takes seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError
from bursar.learners.encoders import BUNDLED, load_encoder
from bursar.learners.features import Vectors
from bursar.learners.function import texts_of
from bursar.learners.learner import Progress, check_number, no_progress
from bursar.tasks import Task

CACHE_BYTES = 1_000_000_000  # limit of the cache; further vectors are computed again


class FrozenEncoder:
    """The lower layers of an encoder, not trained, with a cache of the vectors of texts.

    By default half of the layers: their vectors are better for tags than those of the last layer and about as good for
    intents, at half the cost. Learners that are given the same object share its cache.
    """

    def __init__(self, name: str = BUNDLED, layers: int | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        from bursar.learners.encoders.encoder import TextEncoder

        self.name = name
        self._encoder = load_encoder(name).eval()
        if not isinstance(self._encoder, TextEncoder):
            raise ConfigError(f"learner.encoder = {name!r} is not pretrained", fix=f"use {BUNDLED!r}")
        depth = self._encoder.depth
        if layers is not None:
            check_number("layers", layers, 0, depth, whole=True)
        self.layers = depth // 2 if layers is None else layers
        self._known: dict[Hashable, Vectors] = {}  # (1 + words, width): the item's vector, then those of its words
        self.cached_bytes, self._cache_bytes = 0, cache_bytes

    @property
    def width(self) -> int:
        return self._encoder.width

    def unit_vectors(self, task: Task, items: Corpus, progress: Progress = no_progress) -> Vectors:
        return (self.word_vectors if task.of_words else self.item_vectors)(items, progress)

    def item_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        """The mean over an item's word-pieces: (items, width)."""
        found = [vectors[:1] for vectors in self._vectors(items, progress)]
        return np.concatenate([self._nothing(), *found])

    def word_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        """The first word-piece of each word: (words of all items, width)."""
        found = [vectors[1:] for vectors in self._vectors(items, progress)]
        return np.concatenate([self._nothing(), *found])

    def _nothing(self) -> Vectors:
        return np.zeros((0, self.width), dtype=np.float32)

    def _vectors(self, items: Corpus, progress: Progress) -> list[Vectors]:
        """Per item its own vector and those of its words, from the cache if possible."""
        keys = self._encoder.keys(items)
        new = list({key: at for at, key in enumerate(keys) if key not in self._known}.values())
        if not new:
            return [self._known[key] for key in keys]
        fresh: dict[Hashable, Vectors] = {}
        for at, vectors in self._compute(items.take(np.array(new)), progress):
            key = keys[new[at]]
            fresh[key] = vectors
            if self.cached_bytes + vectors.nbytes <= self._cache_bytes:
                self._known[key] = vectors
                self.cached_bytes += vectors.nbytes
        return [fresh[key] if key in fresh else self._known[key] for key in keys]

    def _compute(self, items: Corpus, progress: Progress) -> Iterator[tuple[int, Vectors]]:
        import torch

        from bursar.learners.readings import in_batches

        encoder = self._encoder
        readings = encoder.read(items)
        with torch.inference_mode():
            for places in in_batches(readings, "reading", progress):
                batch = encoder.batch([readings[at] for at in places])
                encoded = encoder.pool(encoder.run(encoder.embed(batch), batch, range(self.layers)), batch)
                whole, words = encoded.items.numpy(), encoded.words.numpy()
                ends = np.cumsum(items.words[places])
                for row, (at, start, end) in enumerate(zip(places, ends - items.words[places], ends, strict=True)):
                    yield int(at), np.concatenate([whole[row : row + 1], words[start:end]])


class TextVectors(FrozenEncoder):
    """Any object with ``encode(list of texts)``, such as an encoder of sentence-transformers, with a cache.

    It gives vectors of texts, not of words, so tasks on words are refused.
    """

    def __init__(self, encoder: Any, name: str | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        self.name = name or type(encoder).__name__
        self.layers = 0
        self._encode = encoder.encode
        self._known: dict[Hashable, Vectors] = {}
        self.cached_bytes, self._cache_bytes = 0, cache_bytes
        self._width: int | None = None

    @property
    def width(self) -> int:
        if self._width is None:
            self._width = self._vectors_of(["width"]).shape[1]
        return self._width

    def item_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        texts = texts_of(items)
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        fresh = dict(zip(new, self._vectors_of(new), strict=True)) if new else {}
        progress("reading", 1.0)
        for text, vector in fresh.items():
            if self.cached_bytes + vector.nbytes <= self._cache_bytes:
                self._known[text] = vector
                self.cached_bytes += vector.nbytes
        found = [fresh[text] if text in fresh else self._known[text] for text in texts]
        return np.stack(found) if found else self._nothing()

    def word_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        raise LearnerError(
            f"the encoder {self.name} gives one vector for a text, and none for its words",
            fix="choose tasks that label whole texts, or use the bundled encoder for tasks on words",
        )

    def _vectors_of(self, texts: list[str]) -> Vectors:
        found = np.asarray(self._encode(texts), dtype=np.float32)
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise LearnerError(
                f"the encoder {self.name} gives an array of shape {found.shape} for {len(texts)} texts",
                fix="encode(texts) must return finite numbers of shape (texts, width)",
            )
        return found


@cache
def frozen_encoder(layers: int | None = None) -> FrozenEncoder:
    """The bundled encoder, one for the whole process: it remembers the texts that it has read."""
    return FrozenEncoder(layers=layers)


def frozen(encoder: Any, layers: int | None = None) -> FrozenEncoder:
    """A frozen encoder by name, the given one, or one of any object with ``encode(texts)``."""
    if isinstance(encoder, FrozenEncoder):
        if layers not in (None, encoder.layers):
            raise ConfigError(f"learner.layers = {layers!r}", fix="set layers when you create the FrozenEncoder")
        return encoder
    if hasattr(encoder, "encode") and not isinstance(encoder, str):
        return TextVectors(encoder)
    if not isinstance(encoder, str):
        raise ConfigError(f"learner.encoder = {encoder!r}", fix=f"use {BUNDLED!r}, a folder, or a name on the hub")
    return FrozenEncoder(encoder, layers)
