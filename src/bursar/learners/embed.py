"""Embeddings of items and words by a pretrained encoder, before any training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from bursar.learners.encoders.encoder import Encoder
from bursar.learners.learner import Embeddings, Progress
from bursar.ragged import IntArray, flat_positions, offsets_of


def pretrained_embeddings(
    encoder: Encoder, readings: Sequence[Any], counts: IntArray, batches: Iterator[IntArray], progress: Progress
) -> Embeddings:
    """Items from the last layer, words from the layer at two thirds; ``counts`` are the numbers of words.

    The top layers of a sentence encoder represent whole sentences; a word's own meaning is clearer below them.
    """
    items = np.zeros((len(readings), encoder.width), dtype=np.float32)
    words = np.zeros((int(counts.sum()), encoder.width), dtype=np.float32)
    offsets, middle, done = offsets_of(counts), -(-2 * encoder.depth // 3), 0
    training = encoder.training
    encoder.eval()
    with torch.inference_mode():
        for places in batches:
            batch = encoder.batch([readings[at] for at in places])
            half = encoder.run(encoder.embed(batch), batch, 0, middle)
            words[flat_positions(offsets, places)] = encoder.pool(half, batch).words.numpy()
            items[places] = encoder.pool(encoder.run(half, batch, middle, encoder.depth), batch).items.numpy()
            done += len(places)
            progress("reading", done / len(readings))
    encoder.train(training)
    return Embeddings(items, words)
