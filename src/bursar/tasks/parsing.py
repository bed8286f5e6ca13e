"""Parsing: a head and a dependency label for every word."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged
from bursar.tasks.beliefs import AnyBeliefs, Beliefs
from bursar.tasks.marks import Control, Marks
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, ratio


@dataclass(frozen=True)
class Parsing(Task):
    """A dependency tree; its JSON is ``[head, label]`` for every word, heads counted from 1, 0 the root.

    >>> Parsing("tree", ("root", "obj")).encode([[0, "root"], [1, "obj"]], words=2).tolist()
    [[0, 0], [1, 1]]
    """

    single_root: bool = True  # decode with one word attached to the root, as in Universal Dependencies

    kind = "parsing"
    width = 2
    metric = "las"
    styles = {"biaffine": "bursar.tasks.heads.trees:TreeHead"}
    counted = "word"
    prices = {"per_item": 0, "per_word": 1}
    code_columns = {"labels": (1,)}
    of_words = True
    seconds = (2.0, 4.0)
    form = "a head and a label for every word"
    control = Control("Labels", ("labels",), arrows="")

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

    @classmethod
    def recognises(cls, value: Any) -> bool:
        match value:
            case [[int(), str()], *_]:
                return True
        return False

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        """What every word depends on."""
        arcs = zip(words, value, strict=False)
        return [f"{word}: {label}" + (f" of {words[head - 1]}" if head else "") for word, (head, label) in arcs]

    def compared(self, value: Any, words: int) -> list[Hashable]:
        return [(head, label) for head, label in value]

    def marks(self, value: Any) -> Marks:
        """A span for every word, and an arrow to its head; none for the root."""
        spans = [(at, at + 1, label) for at, (_, label) in enumerate(value)]
        return Marks(spans=spans, arrows=[(at, head - 1, None) for at, (head, _) in enumerate(value) if head])

    def from_marks(self, marks: Marks, words: int) -> list[list[Any]]:
        spans = marks.span_of_each_word(words)
        word_of = {span: word for word, span in enumerate(spans, start=1)}
        heads: dict[int, int] = {}
        for source, target, _ in marks.arrows:
            if source in heads:
                raise LabelError(f"word {word_of[source]} has two heads")
            heads[source] = word_of[target]
        return [[heads.get(span, 0), marks.spans[span][2]] for span in spans]

    def units(self, words: IntArray) -> IntArray:
        return words

    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """The numbers of words with the right head and label, with the right head, and of all words."""
        head = gold.values[:, 0] == guess.values[:, 0]
        both = head & (gold.values[:, 1] == guess.values[:, 1])
        counts = [np.bincount(gold.owners, weights=w, minlength=len(gold)) for w in (both, head)]
        return np.stack([*counts, gold.lengths.astype(float)], axis=1)

    def score(self, totals: FloatArray) -> FloatArray:
        return ratio(totals[..., 0], totals[..., 2])

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        totals = self.tally(gold, guess).sum(axis=0)
        return {"las": float(self.score(totals)), "uas": float(ratio(totals[1], totals[2]))}

    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        """The share of words with the right head: confidence is measured on unlabelled arcs."""
        _, heads, words_ = self.tally(gold, guess).T
        return np.where(words_ > 0, ratio(heads, words_), 1.0)

    def agrees(self, gold: Ragged, guess: Ragged) -> BoolArray:
        """Whether each tree has the right head and label for every word."""
        right, _, words = self.tally(gold, guess).T
        return np.asarray(right == words)

    def codes(self, labels: Ragged, words: IntArray) -> IntArray:
        return labels.values[:, 1].astype(np.int64)

    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        """The likeliest trees. Choice j of word i (from 1) is head j, or j + 1 from i on, as no word heads itself."""
        assert isinstance(beliefs, Beliefs)
        assert beliefs.labels is not None
        probabilities = beliefs.values.mean(axis=0, dtype=np.float64)
        position = np.arange(len(beliefs.choices) - 1) - np.repeat(beliefs.offsets[:-1], beliefs.units) + 1
        choice = _best_choices(probabilities, beliefs.choices)
        heads = choice + (choice >= position)
        for item in np.flatnonzero(~_are_trees(heads, beliefs.offsets, self.single_root)):
            start, end = beliefs.offsets[item : item + 2]
            part = probabilities[beliefs.choices[start] : beliefs.choices[end]].reshape(end - start, end - start)
            heads[start:end] = best_tree(part, self.single_root)
        choice = heads - (heads > position)
        labels = beliefs.labels[beliefs.choices[:-1] + choice]
        return Ragged(np.stack([heads, labels], axis=1).astype(np.int32), beliefs.offsets)


def best_tree(probabilities: FloatArray, single_root: bool = True) -> IntArray:
    """The heads of the tree with the largest product of arc probabilities: (n, n), a word's own column left out."""
    from ufal.chu_liu_edmonds import chu_liu_edmonds

    n = len(probabilities)
    scores = np.full((n + 1, n + 1), -np.inf)
    arcs = ~np.eye(n, n + 1, 1, dtype=bool)
    scores[1:][arcs] = np.log(np.maximum(probabilities, 1e-30)).ravel() - 1  # 0 would count as no arc
    if single_root:  # a penalty so large that a tree has only the one root arc it needs
        scores[1:, 0] -= 100.0 * (n + 1)
    scores[0] = np.nan
    return np.asarray(chu_liu_edmonds(scores)[0], dtype=np.int64)[1:]


def _best_choices(values: FloatArray, choices: IntArray) -> IntArray:
    """The position of the largest value of every (non-empty) segment, the first of equals."""
    if len(choices) < 2:
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(values, choices[:-1])
    places = np.where(values == np.repeat(best, np.diff(choices)), np.arange(len(values)), len(values))
    return np.minimum.reduceat(places, choices[:-1]) - choices[:-1]


def _are_trees(heads: IntArray, offsets: IntArray, single_root: bool) -> BoolArray:
    """Which items are trees: every word reaches the root (0). Pointer doubling, for all words at once."""
    lengths = np.diff(offsets)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    # The root is placed after all words, and is its own head.
    up = np.append(np.where(heads > 0, offsets[:-1][owners] + heads - 1, len(heads)), len(heads))
    for _ in range(int(lengths.max(initial=1)).bit_length()):
        up = up[up]
    lost = np.bincount(owners, weights=up[:-1] != len(heads), minlength=len(lengths))
    roots = np.bincount(owners, weights=heads == 0, minlength=len(lengths))
    return np.asarray((lost == 0) & ((roots <= 1) | (not single_root)))


def _word_in_a_loop(heads: list[int]) -> int:
    """The first word (from 1) whose chain of heads is a cycle; 0 if all reach the root."""
    safe = {0}
    for word in range(1, len(heads) + 1):
        path: set[int] = set()
        at = word
        while at not in safe:
            if at in path:
                return word
            path.add(at)
            at = heads[at - 1]
        safe |= path
    return 0


KINDS.add(Parsing.kind, Parsing)
