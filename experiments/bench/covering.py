"""Pools of doubtful units, and covering their doubt in the plain way: every item looked at for every pick."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, Units, make_strategy
from bursar.selection.cover import PRICE_POWER, Coverage, Vectors
from bursar.tasks import Prices

TASKS = ("intent", "slots")
TOPICS, TYPES = 60, 4000
AT_ONCE = 500_000


def doubtful_units(items: int, labelled: int = 300, width: int = 64, seed: int = 0) -> Candidates:
    """Sentences of 10 to 30 words around topics, half of whose words are doubtful; few words are frequent."""
    rng = np.random.default_rng(seed)
    topics, types = rng.normal(size=(TOPICS, width)), rng.normal(size=(TYPES, width))
    frequent = np.cumsum(1 / np.arange(1, TYPES + 1))

    def units_of(words: IntArray) -> dict[str, Units]:
        topic, doubtful = rng.integers(0, TOPICS, len(words)), rng.binomial(words, 0.5)
        of = np.repeat(topic, doubtful)
        vectors = np.empty((len(of), width), dtype=np.float32)
        for at in range(0, len(of), AT_ONCE):
            part = of[at : at + AT_ONCE]
            type_ = np.searchsorted(frequent, rng.random(len(part)) * frequent[-1]).clip(max=TYPES - 1)
            vectors[at : at + AT_ONCE] = _noisy(types[type_] + 0.3 * topics[part], 0.5, rng)
        sentences = Units(_noisy(topics[topic], 0.8, rng), np.arange(len(words) + 1), rng.random(len(words)))
        return dict(
            zip(TASKS, (sentences, Units(vectors, offsets_of(doubtful), rng.random(len(of)) ** 2)), strict=True)
        )

    words = rng.integers(10, 31, items)
    own = np.stack([np.full(items, 3), rng.integers(0, 5, items)], axis=1)
    features = PoolFeatures(
        units=units_of(words), labelled=ItemFeatures(units=units_of(rng.integers(10, 31, labelled)))
    )
    ids = [f"u{number:07d}" for number in range(items)]
    return Candidates(ids, rng.random((items, 2)), Prices(TASKS, words, own), features=features)


def _noisy(vectors: FloatArray, noise: float, rng: np.random.Generator) -> Vectors:
    """Of length 1."""
    found = (vectors + noise * rng.normal(size=vectors.shape)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def cover_pool(items: int, budget: int) -> dict[str, Any]:
    """COVER's whole work on a pool, from its units to a checked selection: seconds of the clock and of the core."""
    make_strategy("COVER").select(doubtful_units(200), 100)
    pool = doubtful_units(items)
    start, core = time.perf_counter(), time.process_time()
    found = make_strategy("COVER").select(pool, budget)
    taken = {"seconds": time.perf_counter() - start, "core_seconds": time.process_time() - core}
    assert found.certificate is not None
    return {**taken, "picks": found.items.tolist(), "objective": found.certificate.objective}


def plain_cover(pool: Candidates, budget: int, seed: int = 0) -> IntArray:
    """The same greedy picks; coverages are computed once, item by item, and all gains anew for every pick."""
    rng = np.random.default_rng(seed)
    units, known = pool.features.require("units"), pool.features.labelled.require("units")
    tasks = [Coverage(units[task], known[task].vectors, rng) for task in pool.tasks]
    rows = [np.stack([_row(task, item) for item in range(len(pool))]) for task in tasks]
    covered, price = [task.covered for task in tasks], pool.prices.joint()
    picks: list[int] = []
    while (able := (price <= budget - price[picks].sum()) & ~np.isin(np.arange(len(pool)), picks)).any():
        gains = sum(
            np.maximum(row - known_, 0) @ task.weights / task.open
            for task, row, known_ in zip(tasks, rows, covered, strict=True)
        )
        picks.append(int(np.where(able, gains / price**PRICE_POWER, -1.0).argmax()))
        covered = [np.maximum(known_, row[picks[-1]]) for row, known_ in zip(rows, covered, strict=True)]
    return np.array(picks)


def _row(task: Coverage, item: int) -> Vectors:
    """How far an item covers each target."""
    mine = task.units.vectors[task.units.offsets[item] : task.units.offsets[item + 1]]
    nearest = [np.full(len(task.targets), np.inf), *(((vector - task.targets) ** 2).sum(axis=1) for vector in mine)]
    found: Vectors = np.exp(-np.min(nearest, axis=0) / task.scale)
    return found
