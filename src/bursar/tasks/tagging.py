"""Tagging: labelled spans of words (entities, slots), or a label for every word (parts of speech)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks.beliefs import AnyBeliefs, Beliefs
from bursar.tasks.marks import Control, Marks
from bursar.tasks.schemes import codes_of_spans, overlapping, spans_of_codes, words_of_spans
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, class_f1, ratio, rows_of_choices, span_of


@dataclass(frozen=True)
class Tagging(Task):
    """Spans of words with a label; their JSON is a list of ``[start, end, label]``, the end exclusive.

    With ``every_word`` each word carries exactly one label, and the JSON is the list of labels.

    >>> Tagging("slots", ("time", "city")).encode([[3, 5, "time"]], words=5).tolist()
    [[3, 5, 0]]
    >>> pos = Tagging("pos", ("NOUN", "VERB"), every_word=True)
    >>> pos.encode(["VERB", "NOUN"], words=2).tolist()
    [[0, 1, 1], [1, 2, 0]]
    """

    every_word: bool = False

    kind = "tagging"
    width = 3
    styles = {
        "linear": "bursar.tasks.heads.linear:WordHead",
        "crf": "bursar.tasks.heads.tags:CrfHead",
        "lstm": "bursar.tasks.heads.tags:FeedbackHead",
        "spans": "bursar.tasks.heads.spans:SpanHead",
    }
    counted = "span"
    prices = {"per_item": 0, "per_span": 1}  # paper 1, section 7: tp = 1
    code_columns = {"labels": (2,)}
    of_words = True
    seconds = (2.0, 3.0)
    control = Control("Labels", ("labels",))

    def __post_init__(self) -> None:
        if not isinstance(self.every_word, bool):
            raise SchemaError(f"task {self.name!r}: every_word must be true or false")

    @property
    def may_be_empty(self) -> bool:
        return not self.every_word

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        code = vocabulary["labels"].code
        if self.every_word:
            if not isinstance(value, list) or len(value) != words:
                raise LabelError(f"{words} words need a list of {words} labels, not {_short(value)}")
            return [(i, i + 1, code(label)) for i, label in enumerate(value)]
        if not isinstance(value, list):
            raise LabelError(f"spans must be a list of [start, end, label], not {_short(value)}")
        rows: list[Row] = []
        for entry in value:
            # Plain tests, the likely case first: this runs for every span of every file.
            if isinstance(entry, list | tuple) and len(entry) == 3:
                start, end, label = entry
                if type(start) is int and type(end) is int and 0 <= start < end <= words:
                    rows.append((start, end, code(label)))
                    continue
            span_of(entry, words)  # raises if the positions are wrong
            raise LabelError(f"a span must be [start, end, label] in words, not {_short(entry)}")
        return rows

    def value(self, rows: NDArray[Any]) -> list[Any]:
        if self.every_word:
            return [self.labels[label] for label in rows[:, 2].tolist()]
        return [[start, end, self.labels[label]] for start, end, label in rows.tolist()]

    @classmethod
    def recognises(cls, value: Any) -> bool:
        match value:
            case [] | [[int(), int(), str()], *_] | [str(), *_]:
                return True
        return False

    @property
    def form(self) -> str:
        return "a label for every word" if self.every_word else "labelled spans of words"

    @property
    def widget(self) -> str:
        return "tags" if self.every_word else "tagging"

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        """Spans, or a tag for every word."""
        return [f"{' '.join(words[start:end])}: {label}" for start, end, label in self.marks(value).spans]

    def cell(self, value: Any, words: Sequence[str], between: Callable[[int, int], str]) -> str:
        """The spans in the order of the text, or a tag for every word."""
        if self.every_word:
            return "; ".join(self.show(value, words))
        return "; ".join(f'{label}: "{between(start, end)}"' for start, end, label in sorted(value))

    def compared(self, value: Any, words: int) -> list[str]:
        """The labels of each word; those of nested spans are joined."""
        if self.every_word:
            return list(value)
        over: list[set[str]] = [set() for _ in range(words)]
        for start, end, label in value:
            for word in range(start, end):
                over[word].add(label)
        return [" + ".join(sorted(labels)) for labels in over]

    def marks(self, value: Any) -> Marks:
        if self.every_word:
            return Marks(spans=[(at, at + 1, label) for at, label in enumerate(value)])
        return Marks(spans=[(start, end, label) for start, end, label in value])

    def from_marks(self, marks: Marks, words: int) -> list[Any]:
        if self.every_word:
            return [marks.spans[at][2] for at in marks.span_of_each_word(words)]
        return [[*span] for span in marks.spans]

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        scores = super().evaluate(gold, guess, words)
        try:
            tags = self.targets(gold, words), self.targets(guess, words)
        except LabelError:  # nested spans have no tags
            return scores
        return scores | {"token_weighted_f1": class_f1(*tags, self.classes)[1]}  # paper 4's score for entities

    @property
    def classes(self) -> int:
        """The number of tags: a label each, or two with one for no label."""
        return len(self.labels) if self.every_word else 1 + 2 * len(self.labels)

    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        """The share of words with the right tag; for overlapping spans, the overlap of the two sets of spans."""
        found = super().accuracies(gold, guess, words)
        flat = np.flatnonzero(~(overlapping(gold, words) | overlapping(guess, words)))
        lengths = words[flat]
        right = self.targets(gold.take(flat), lengths) == self.targets(guess.take(flat), lengths)
        hits = np.bincount(np.repeat(np.arange(len(flat)), lengths), weights=right, minlength=len(flat))
        found[flat] = np.where(lengths > 0, ratio(hits, lengths), 1.0)
        return found

    def units(self, words: IntArray) -> IntArray:
        return words

    def targets(self, labels: Ragged, words: IntArray) -> IntArray:
        if self.every_word:
            return labels.values[:, 2].astype(np.int64)
        return codes_of_spans(labels, words)

    def codes(self, labels: Ragged, words: IntArray) -> IntArray:
        """The label of every word: 0 is none, 1 + k is in a span of label k. In nested spans, the shortest counts."""
        positions, lengths = words_of_spans(labels, words)
        longest_first = np.argsort(-np.repeat(lengths, lengths), kind="stable")
        found: IntArray = np.zeros(int(words.sum()), dtype=np.int64)
        found[positions[longest_first]] = np.repeat(1 + labels.values[:, 2].astype(np.int64), lengths)[longest_first]
        return found

    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        assert isinstance(beliefs, Beliefs)
        best = beliefs.dense().mean(axis=0).argmax(axis=1)
        if beliefs.subjects is not None:  # units are spans, and choice 0 is none
            return rows_of_choices(beliefs, best)
        if not self.every_word:
            return spans_of_codes(best, beliefs.units)
        position = np.arange(len(best)) - np.repeat(beliefs.offsets[:-1], beliefs.units)
        return Ragged(np.stack([position, position + 1, best], axis=1).astype(np.int32), beliefs.offsets)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


KINDS.add(Tagging.kind, Tagging)
