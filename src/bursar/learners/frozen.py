"""Vectors of texts from a frozen encoder, computed once per text. Imports torch, which takes seconds, when needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
        self._start_cache(cache_bytes)

    def _start_cache(self, cache_bytes: int) -> None:
        self._known: dict[Hashable, Vectors] = {}
        self.cached_bytes, self._cache_bytes = 0, cache_bytes

    @property
    def width(self) -> int:
        return self._encoder.width

    def unit_vectors(self, task: Task, items: Corpus, progress: Progress = no_progress) -> Vectors:
        return (self.word_vectors if task.of_words else self.item_vectors)(items, progress)

    def item_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        """The mean over an item's word-pieces: (items, width)."""
        return self._joined(vectors[:1] for vectors in self._vectors(items, progress))

    def word_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        """The first word-piece of each word: (words of all items, width)."""
        return self._joined(vectors[1:] for vectors in self._vectors(items, progress))

    def _joined(self, parts: Iterable[Vectors]) -> Vectors:
        return np.concatenate([np.zeros((0, self.width), dtype=np.float32), *parts])

    def _remembered(
        self, keys: Sequence[Hashable], compute: Callable[[list[int]], Iterable[tuple[int, Vectors]]]
    ) -> list[Vectors]:
        """The vectors of these keys: from the cache, or computed for their positions, and kept while there is room."""
        new = list({key: at for at, key in enumerate(keys) if key not in self._known}.values())
        fresh: dict[Hashable, Vectors] = {}
        for at, vectors in compute(new) if new else ():
            fresh[keys[at]] = vectors
            if self.cached_bytes + vectors.nbytes <= self._cache_bytes:
                self._known[keys[at]] = vectors
                self.cached_bytes += vectors.nbytes
        return [fresh[key] if key in fresh else self._known[key] for key in keys]

    def _vectors(self, items: Corpus, progress: Progress) -> list[Vectors]:
        """Per item its own vector and those of its words, (1 + words, width)."""

        def compute(new: list[int]) -> Iterator[tuple[int, Vectors]]:
            import torch

            from bursar.learners.examples import in_batches

            encoder, asked = self._encoder, items.take(np.array(new))
            readings = encoder.read(asked)
            with torch.inference_mode():
                for places in in_batches(readings, "reading", progress):
                    batch = encoder.batch([readings[at] for at in places])
                    encoded = encoder.pool(encoder.run(encoder.embed(batch), batch, range(self.layers)), batch)
                    words = np.split(encoded.words.numpy(), np.cumsum(asked.words[places])[:-1])
                    for at, whole, own in zip(places, encoded.items.numpy(), words, strict=True):
                        yield new[at], np.concatenate([whole[None], own])

        return self._remembered(self._encoder.keys(items), compute)


class TextVectors(FrozenEncoder):
    """Any object with ``encode(list of texts)``, such as an encoder of sentence-transformers, with a cache.

    It gives vectors of texts, not of words, so tasks on words are refused.
    """

    def __init__(self, encoder: Any, name: str | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        self.name = name or type(encoder).__name__
        self.layers = 0
        self._encode = encoder.encode
        self._width: int | None = None
        self._start_cache(cache_bytes)

    @property
    def width(self) -> int:
        if self._width is None:
            self._width = self._vectors_of(["width"]).shape[1]
        return self._width

    def item_vectors(self, items: Corpus, progress: Progress = no_progress) -> Vectors:
        texts = texts_of(items)
        found = self._remembered(
            texts, lambda new: zip(new, self._vectors_of([texts[at] for at in new])[:, None], strict=True)
        )
        progress("reading", 1.0)
        return self._joined(found)

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
