"""What a set of labelled items is worth: the contract of judges, and a memory that asks none twice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from bursar.oracle.async_evaluation import Stream
from bursar.oracle.orders import Order
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Beliefs

REMEMBERED = 300_000  # sets: some 50 MB


class Judge(ABC):
    """Trains a model on the warm start and a set of pool items, and scores it on validation items.

    What it says of a set depends on the set alone: not on what else it was asked, nor on the company or the order in
    which it is asked. That is what makes a memory, batches and guesses ahead change nothing in a search.
    """

    pool: int  # items to choose from
    highest: float = 1.0  # that a score can be
    at_once: int = (
        1  # so many sets take little more time than one; a search looks ahead until it has as many to ask for
    )
    ordered: bool = False  # whether the order of the items counts too (errata 25): then "sets" are not sorted

    @abstractmethod
    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        """The score of the model of every set (positions in the pool, as ``asked`` gives them) on some parts.

        (parts, sets), the mean over the tasks, each model trained once.
        """

    def scores(self, sets: Sequence[IntArray], part: str = "validation") -> FloatArray:
        """The score of every set on one part: (sets,).

        A search looks at the validation part alone; what is reported is of the ``test`` part.
        """
        found: FloatArray = self.scores_on(sets, [part])[0]
        return found

    def asked(self, order: Order, batches: int) -> IntArray:
        """What the model depends on after so many batches: the set, sorted, or the items as they were labelled."""
        return order.walk(batches) if self.ordered else order.prefix(batches)

    def stream(self) -> Stream | None:
        """Judges sets as they are asked for, one by one; ``None`` where questions are best asked many at a time."""
        return None

    def learn(self, sets: Sequence[IntArray]) -> None:  # noqa: B027
        """These sets will be asked about next: a judge may train all their models now. It changes only the time."""

    @abstractmethod
    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> Mapping[str, Beliefs]:
        """What the model of a set believes of every pool item, task by task; several passes differ as its doubts do."""


class Memory:
    """A judge's answers by set; when there are too many, those that nobody asked about for longest are forgotten."""

    def __init__(self, judge: Judge, remembered: int = REMEMBERED) -> None:
        self.judge, self.remembered = judge, remembered
        self.asked = 0  # sets that somebody wanted to know of
        self.trained = 0  # and that the judge was asked about
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def scores(self, sets: Sequence[IntArray]) -> FloatArray:
        """The score of every set, those that are not known yet from the judge, all in one go."""
        keys = [key_of(items) for items in sets]
        new = {key: items for key, items in zip(keys, sets, strict=True) if key not in self._known}
        self.asked += len(keys)
        self.trained += len(new)
        if new:
            found = np.asarray(self.judge.scores(list(new.values())), dtype=float)
            self._known.update(zip(new, found.tolist(), strict=True))
        for key in keys:
            self._known.move_to_end(key)
        answer = np.array([self._known[key] for key in keys], dtype=float)
        while len(self._known) > self.remembered:
            self._known.popitem(last=False)
        return answer

    def get(self, key: bytes) -> float:
        """The score of a set by its key; not a number if it is not known."""
        return self._known.get(key, np.nan)

    def heard(self, scores: Mapping[bytes, float]) -> None:
        """Scores of sets that were judged for somebody who asked for them by key."""
        self.trained += sum(key not in self._known for key in scores)
        self._known.update(scores)
        while len(self._known) > self.remembered:
            self._known.popitem(last=False)

    def __contains__(self, items: IntArray) -> bool:
        return key_of(items) in self._known


def key_of(items: IntArray) -> bytes:
    """What a set is remembered by."""
    return blake2b(np.asarray(items, dtype=np.int32).tobytes(), digest_size=16).digest()
