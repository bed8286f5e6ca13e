"""Summarises a round's confidences, small enough to keep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bursar.campaign.decisions import ConfidenceExample, ConfidenceSummary
from bursar.corpus import Corpus
from bursar.ragged import FloatArray, Ragged
from bursar.selection import Selection

BINS = 20
EXAMPLES = 8


def confidence_summary(
    round: int, pool: Corpus, confidence: FloatArray, guesses: Mapping[str, Ragged], chosen: Selection
) -> ConfidenceSummary:
    """Histograms per task of the pool and of what was chosen from it, and the most and least certain items."""
    names = list(pool.schema)
    order = np.lexsort((pool.id_ranks, confidence.mean(axis=1)))

    def example(at: int) -> ConfidenceExample:
        return ConfidenceExample(
            id=str(pool.ids[at]),
            confidence={name: _brief(confidence[at, k]) for k, name in enumerate(names)},
            guess={name: pool.schema[name].value(guesses[name][at]) for name in names},
        )

    return ConfidenceSummary(
        round=round,
        bins=BINS,
        pool={name: _histogram(confidence[:, k]) for k, name in enumerate(names)},
        chosen={name: _histogram(confidence[chosen.items, k]) for k, name in enumerate(names)},
        mean={name: _brief(confidence[:, k].mean()) for k, name in enumerate(names)},
        least=tuple(example(int(at)) for at in order[:EXAMPLES]),
        most=tuple(example(int(at)) for at in order[::-1][:EXAMPLES]),
    )


def _brief(value: float) -> float:
    return round(float(value), 4)


def _histogram(values: FloatArray) -> list[int]:
    counts: list[int] = np.histogram(values, bins=BINS, range=(0, 1))[0].tolist()
    return counts
