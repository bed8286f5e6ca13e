"""Which items to label before there is a model.

A random start repeats what is common and misses what is rare. A covering start buys items that lie near as much of the
pool as possible: sentences for tasks on whole items, words for tasks on words. The encoder as it comes says what is
near.
"""

from __future__ import annotations

import numpy as np

from bursar.campaign.unit_space import UnitSpace
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.learners.learner import Progress, no_progress
from bursar.ragged import IntArray
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, make_strategy
from bursar.tasks import Prices

CANDIDATES = 5_000  # items that are read for a start: a random sample of a larger pool


def start_candidates(items: IntArray, seed: int) -> IntArray:
    """The items that a covering start chooses from: all of a pool, or a random sample of a large one."""
    if len(items) <= CANDIDATES:
        return items
    return np.sort(np.random.default_rng([seed, 23]).choice(items, CANDIDATES, replace=False))


def covering_start(
    learner: Learner,
    corpus: Corpus,
    items: IntArray,
    labelled: IntArray,
    prices: Prices,
    budget: int,
    *,
    in_items: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> IntArray:
    """Those of the ``items`` of a corpus that cover the others best, within a budget; both are positions.

    What lies near ``labelled`` items, which have labels already, need not be covered again.
    """
    read = corpus.take(np.union1d(items, labelled))
    space = UnitSpace(lambda part: learner.embeddings(part.unlabelled(), progress=progress), read)
    pool, known = corpus.take(items), corpus.take(labelled)
    near = {name: np.flatnonzero(known.labels[name].present) for name in corpus.schema}
    features = PoolFeatures(
        units={name: space.all_units(task, pool) for name, task in corpus.schema.items()},
        labelled=ItemFeatures(units={n: space.all_units(t, known.take(near[n])) for n, t in corpus.schema.items()}),
    )
    unsure = np.zeros((len(items), len(corpus.schema)))
    candidates = Candidates(pool.ids.tolist(), unsure, prices, features=features)
    chosen = make_strategy("COVER").select(candidates, budget, seed, in_items=in_items).items
    return items[chosen]
