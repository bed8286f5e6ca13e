"""Parsing: a head and a dependency label for every word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, ratio


@dataclass(frozen=True)
class Parsing(Task):
    """A dependency tree; its JSON is ``[head, label]`` for every word, heads counted from 1, 0 the root.

    >>> task = Parsing("tree", ("root", "obj"))
    >>> task.encode([[0, "root"], [1, "obj"]], words=2).tolist()
    [[0, 0], [1, 1]]
    >>> gold, guess = Ragged.of([[(0, 0), (1, 1)]], 2), Ragged.of([[(0, 0), (1, 0)]], 2)
    >>> task.evaluate(gold, guess, words=np.array([2]))
    {'las': 0.5, 'uas': 1.0}
    """

    kind = "parsing"
    width = 2
    metric = "las"
    counted = "word"
    prices = {"per_item": 0, "per_word": 1}
    code_columns = {"labels": (1,)}

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        if not isinstance(value, list) or len(value) != words:
            raise LabelError(f"{words} words need a list of {words} [head, label] pairs")
        rows: list[Row] = []
        for position, entry in enumerate(value, start=1):
            match entry:
                case [int(head), label] if not isinstance(head, bool):
                    if not 0 <= head <= words or head == position:
                        raise LabelError(f"word {position} cannot have head {head} in {words} words")
                    rows.append((head, vocabulary["labels"].code(label)))
                case _:
                    raise LabelError(f"word {position}: expected [head, label], not {entry!r}")
        looped = _word_in_a_loop([int(row[0]) for row in rows])
        if looped:
            raise LabelError(f"the heads are not a tree: word {looped} never reaches the root")
        return rows

    def value(self, rows: NDArray[Any]) -> list[list[Any]]:
        return [[head, self.labels[label]] for head, label in rows.tolist()]

    def units(self, words: IntArray) -> IntArray:
        return words

    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """Words with the right head and label, with the right head, and all words."""
        head = gold.values[:, 0] == guess.values[:, 0]
        both = head & (gold.values[:, 1] == guess.values[:, 1])
        counts = [np.bincount(gold.owners, weights=w, minlength=len(gold)) for w in (both, head)]
        return np.stack([*counts, gold.lengths.astype(float)], axis=1)

    def score(self, totals: FloatArray) -> FloatArray:
        return ratio(totals[..., 0], totals[..., 2])

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        totals = self.tally(gold, guess).sum(axis=0)
        return {"las": float(self.score(totals)), "uas": float(ratio(totals[1], totals[2]))}


def _word_in_a_loop(heads: list[int]) -> int:
    """The first word (from 1) whose chain of heads comes back to itself; 0 if all reach the root."""
    safe = [False] * (len(heads) + 1)
    safe[0] = True
    for word in range(1, len(heads) + 1):
        path: list[int] = []
        on_path: set[int] = set()
        at = word
        while not safe[at]:
            if at in on_path:
                return word
            path.append(at)
            on_path.add(at)
            at = heads[at - 1]
        for seen in path:
            safe[seen] = True
    return 0


KINDS.add(Parsing.kind, Parsing)
