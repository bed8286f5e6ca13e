"""What a round's confidences look like, small enough to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.selection import Selection

BINS = 20
EXAMPLES = 8


def confidence_summary(
    corpus: Corpus, items: IntArray, confidence: FloatArray, guesses: Mapping[str, Ragged], chosen: Selection
) -> dict[str, Any]:
    """Histograms per task of the pool and of what was chosen from it, and the most and least certain items."""
    names = list(corpus.schema)
    mean = confidence.mean(axis=1)
    order = np.lexsort((corpus.id_ranks[items], mean))

    def example(at: int) -> dict[str, Any]:
        return {
            "id": corpus.ids[int(items[at])],
            "confidence": {name: round(float(confidence[at, k]), 4) for k, name in enumerate(names)},
            "guess": {name: corpus.schema[name].value(guesses[name][at]) for name in names},
        }

    return {
        "bins": BINS,
        "pool": {name: _histogram(confidence[:, k]) for k, name in enumerate(names)},
        "chosen": {name: _histogram(confidence[chosen.items, k]) for k, name in enumerate(names)},
        "mean": {name: round(float(confidence[:, k].mean()), 4) for k, name in enumerate(names)},
        "least": [example(int(at)) for at in order[:EXAMPLES]],
        "most": [example(int(at)) for at in order[::-1][:EXAMPLES]],
    }


def _histogram(values: FloatArray) -> list[int]:
    counts: list[int] = np.histogram(values, bins=BINS, range=(0, 1))[0].tolist()
    return counts
