"""Named random streams: one independent generator for each purpose, from one seed.

A generator is seeded by a list of whole numbers: the seed, further numbers such as an epoch, and the number of the
stream. ``STREAMS`` is the only place where stream numbers stand. Changing an entry changes results.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

LAST = sys.maxsize  # behind all further numbers


class Stream(NamedTuple):
    """The number of a stream, and its place in the list; the seed is at 0."""

    number: int | None  # None: nothing is added to the list
    place: int = 1


STREAMS = {
    # training: bursar.learners
    "joint batches": Stream(None),  # epoch
    "task draws": Stream(1, LAST),  # step
    "task batches": Stream(2, LAST),  # task, pass over its items
    "pretraining batches": Stream(3, LAST),  # epoch
    "pretraining masks": Stream(4, LAST),  # step
    # many models at once: bursar.learners.lockstep
    "lockstep batches": Stream(None),  # epoch
    "lockstep dropout": Stream(0, LAST),  # step
    "lockstep dropout passes": Stream(1, LAST),  # pass
    "lockstep weights": Stream(2**31),
    # best orders: bursar.oracle
    "random order": Stream(53),
    "order moves": Stream(59, 2),  # step, further draws
    "problem parts": Stream(61),
    "probe penalty": Stream(None),
    "probe passes": Stream(71),
    "batch seeds": Stream(73, LAST),  # batch, strategy, proposal
    "random half": Stream(79),
    "random orders": Stream(83),
    "held-out parts": Stream(89),
    # laws: bursar.laws
    "law folds": Stream(103),
    "law held-out rows": Stream(107),
    "power law bootstrap": Stream(109),
    "relatedness": Stream(127),  # pair of tasks
    "training items": Stream(131),
    "judged items": Stream(137),
    # strategies: bursar.selection
    "strategy": Stream(None),
    # campaigns: bursar.campaign
    "pool items": Stream(1),
    "dev items": Stream(2),
    "test items": Stream(3),
    "seed items": Stream(11),  # none, or the round that draws more
    "audit reserve": Stream(17),
    "watched items": Stream(17),
    "start candidates": Stream(23),
    "audit intervals": Stream(None),
    "savings interval": Stream(None),
    # simulated comparisons: bursar.comparison
    "simulated test items": Stream(139),
    # annotation projects: bursar.annotation
    "held-out items": Stream(19),
    # task policies: bursar.curriculum
    "reward reservoir": Stream(23),
    # synthetic tasks: bursar.simulation
    "related items": Stream(101),
    "related labels": Stream(97),  # task
    # budget splits: bursar.allocation
    "informativeness parts": Stream(31, LAST),  # repetition
    "training seeds": Stream(37, LAST),  # repetition
    "look-ahead batches": Stream(41, LAST),  # moment
    "curve parts": Stream(43, LAST),  # repetition
    "curve order": Stream(47, LAST),  # task
    "pseudo-labelled items": Stream(53),
    "seed score parts": Stream(61),
    "predicted gains": Stream(31),
    "random splits": Stream(97),
    "baseline splits": Stream(None),  # baseline
}


def rng(seed: int, purpose: str, *more: int) -> np.random.Generator:
    """The generator of a purpose in ``STREAMS``, one for each combination of further numbers."""
    stream = STREAMS[purpose]
    words = [seed, *more]
    if stream.number is not None:
        words.insert(stream.place, stream.number)
    return np.random.default_rng(words)
