"""Orders in which a pool is labelled, a batch at a time, and the moves between them.

A model depends on the *set* it was trained on (errata 25), so a batch is a set: within it items are kept in the order
of their numbers. Random numbers are drawn from the seed and the number of the step alone, whatever came before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray


@dataclass(frozen=True)
class Order:
    """Which items of a pool are labelled in which batch: (batches, size), positions in the pool, rows sorted."""

    batches: IntArray

    @classmethod
    def of(cls, batches: IntArray) -> Order:
        """From batches in any order of their items."""
        return cls(np.sort(np.asarray(batches, dtype=np.int64), axis=1))

    @classmethod
    def random(cls, pool: int, batches: int, size: int, seed: int) -> Order:
        """The first items of a random permutation of the pool.

        >>> Order.random(pool=9, batches=2, size=3, seed=0).batches.shape
        (2, 3)
        """
        if batches < 1 or size < 1 or pool < batches * size:
            raise ConfigError(
                f"{batches} batches of {size} items from a pool of {pool}",
                fix="label fewer items, or use a larger pool",
            )
        chosen = np.random.default_rng([seed, 53]).permutation(pool)[: batches * size]
        return cls.of(chosen.reshape(batches, size))

    @property
    def items(self) -> IntArray:
        """All labelled items, batch after batch."""
        return self.batches.ravel()

    def prefix(self, batches: int) -> IntArray:
        """The set that is labelled after so many batches, sorted."""
        found: IntArray = np.sort(self.batches[:batches], axis=None)
        return found

    def walk(self, batches: int) -> IntArray:
        """The same items batch after batch: what a model depends on that is trained in the order of labelling."""
        return self.batches[:batches].ravel()

    def moved(self, move: Move) -> Order:
        """The order after a move."""
        batches = self.batches.copy()
        (first, at), new = move.place, move.item
        old = batches[first, at]
        batches[first, at] = new
        batches[first].sort()
        if move.other is not None:
            second, there = move.other
            batches[second, there] = old
            batches[second].sort()
        return Order(batches)


@dataclass(frozen=True)
class Move:
    """An item takes the place of another: one from a later batch, which then gets the other, or one from outside."""

    place: tuple[int, int]  # batch and position of the item that gives way
    item: int  # what comes instead
    other: tuple[int, int] | None = None  # where that comes from; nowhere if it was not labelled

    def changed(self, batches: int, ordered: bool = False) -> range:
        """The prefixes, by their number of batches, whose sets are others after the move (errata 25).

        If the order counts as well, all from the first batch that is another.

        >>> Move((1, 0), 7, (3, 2)).changed(5), Move((1, 0), 7).changed(5)
        (range(2, 4), range(2, 6))
        """
        first = self.place[0] + 1
        return range(first, batches + 1 if self.other is None or ordered else self.other[0] + 1)


def propose(order: Order, pool: int, seed: int, step: int, draw: int = 0) -> tuple[Move, float]:
    """A move by the paper's kernel, and the number from 0 to 1 that decides on it (paper 4, section 4.2).

    With equal chances two items of different batches change places, or an item gives way to one that is not labelled.
    Where only one of the two is possible, it is that one. Further draws are other moves for the same step.
    """
    rng = np.random.default_rng([seed, step, 59, draw] if draw else [seed, step, 59])
    batches, size = order.batches.shape
    left = pool - batches * size
    swap, decisive = rng.random(2)
    if batches == 1 and not left:
        raise ConfigError("all of the pool is one batch: there is only one order")
    if left and (batches == 1 or swap >= 0.5):
        at = int(rng.integers(batches * size))
        return Move(divmod(at, size), _outside(order, int(rng.integers(left)))), float(decisive)
    first, second = sorted(rng.choice(batches, size=2, replace=False).tolist())
    here, there = (int(place) for place in rng.integers(size, size=2))
    return Move((first, here), int(order.batches[second, there]), (second, there)), float(decisive)


def _outside(order: Order, number: int) -> int:
    """The item of that number among those that are not labelled, in the order of the pool.

    >>> _outside(Order.of(np.array([[1, 2], [5, 0]])), 0), _outside(Order.of(np.array([[1, 2], [5, 0]])), 2)
    (3, 6)
    """
    labelled = np.sort(order.batches, axis=None)
    before = labelled - np.arange(len(labelled))  # unlabelled items before each labelled one
    return number + int(np.searchsorted(before, number, side="right"))


def quality(curve: FloatArray) -> FloatArray:
    """The mean of a curve of scores after 1 to K batches (paper 4, section 3.3); of many curves, along the last axis.

    >>> float(quality(np.array([0.5, 0.7])))
    0.6
    """
    found: FloatArray = np.asarray(curve, dtype=float).mean(axis=-1)
    return found
