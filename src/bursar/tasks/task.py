"""What every kind of task must bring: its label codec, its scores, what its annotation counts.

A label of one item is a few *rows* of small numbers (a span is ``start, end, label``; a class is ``label``), so
that the labels of a million items are two arrays. Each kind says how its rows read as JSON and back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import FloatArray, IntArray, Ragged, offsets_of
from bursar.registry import Registry

if TYPE_CHECKING:
    from bursar.tasks.beliefs import AnyBeliefs, Beliefs
    from bursar.tasks.heads import Head

Row = tuple[float, ...]


class Vocabulary:
    """Label names to codes, growing as a reader meets them, or closed by a schema.

    >>> v = Vocabulary(["yes", "no"], closed=True)
    >>> v.code("no")
    1
    >>> v.code("maybe")
    Traceback (most recent call last):
        ...
    bursar.errors.LabelError: unknown label 'maybe'. Fix: use one of: yes, no
    """

    def __init__(self, labels: Iterable[str] = (), *, closed: bool = False) -> None:
        self._codes: dict[str, int] = {label: code for code, label in enumerate(labels)}
        self.closed = closed

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._codes)

    def code(self, label: Any) -> int:
        known = self._codes.get(label) if isinstance(label, str) else None
        if known is not None:
            return known
        if not isinstance(label, str) or not label:
            raise LabelError(f"a label must be a non-empty string, not {label!r}")
        if self.closed:
            some = ", ".join(list(self._codes)[:12]) + (", …" if len(self._codes) > 12 else "")
            fix = f"use one of: {some}" if some else "list it in the schema: the task has no labels"
            raise LabelError(f"unknown label {label!r}", fix=fix)
        return self._codes.setdefault(label, len(self._codes))


@dataclass(frozen=True)
class Task(ABC):
    """A named annotation scheme of one kind. Subclasses are the kinds; each lives in one file.

    ``tally`` counts per item and ``score`` turns summed counts into the main score, so that a score over any
    subset of items (a split, an audit slice, a bootstrap draw) is a sum and one division.
    """

    name: str
    labels: tuple[str, ...] = ()

    kind: ClassVar[str]
    width: ClassVar[int]  # numbers in a label row
    dtype: ClassVar[Any] = np.int32
    metric: ClassVar[str]  # the name of the main score
    counted: ClassVar[str]  # what an annotator's effort grows with: span, word, relation, item
    prices: ClassVar[Mapping[str, float]]  # default prices: per_item and per_<counted>
    vocabularies: ClassVar[tuple[str, ...]] = ("labels",)  # the fields that hold label names
    styles: ClassVar[tuple[str, ...]]  # the heads there are for it, the usual one first
    code_columns: ClassVar[Mapping[str, tuple[int, ...]]]  # for each of those, the columns of a row with its codes

    # -- codec -------------------------------------------------------------------------------------------------
    @abstractmethod
    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        """A JSON label of an item of so many words as rows; ``LabelError`` if it cannot be one."""

    @abstractmethod
    def value(self, rows: NDArray[Any]) -> Any:
        """Rows as the JSON label that ``rows`` reads."""

    def encode(self, value: Any, words: int) -> NDArray[Any]:
        """A JSON label as an array of rows, with this task's own labels and no others."""
        rows = self.rows(value, words, self.closed_vocabularies())
        return np.asarray(rows, dtype=self.dtype).reshape(-1, self.width)

    def closed_vocabularies(self) -> dict[str, Vocabulary]:
        return {field: Vocabulary(getattr(self, field), closed=True) for field in self.vocabularies}

    @classmethod
    def options(cls) -> list[str]:
        """What a schema may say about a task of this kind, besides its name and kind."""
        hidden = {"name"} | {"labels"} - set(cls.vocabularies)
        return [f.name for f in fields(cls) if f.name not in hidden]

    def describe(self) -> dict[str, Any]:
        """The task as a schema states it: its kind, labels and options."""
        own = {name: getattr(self, name) for name in self.options()}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}

    # -- scores ------------------------------------------------------------------------------------------------
    @abstractmethod
    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """What ``score`` needs, per item: (items, counts)."""

    @abstractmethod
    def score(self, totals: FloatArray) -> FloatArray:
        """The main score of summed tallies: (..., counts) to (...)."""

    @abstractmethod
    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        """Every score of this kind by name, the main one among them, for items of so many words."""

    # -- cost --------------------------------------------------------------------------------------------------
    def count(self, labels: Ragged) -> IntArray:
        """How many of what ``counted`` names each item's label holds."""
        return labels.lengths

    # -- model -----------------------------------------------------------------------------------------------------
    @property
    def may_be_empty(self) -> bool:
        """Whether an answer may say nothing, as of no spans: choice 0 of its beliefs then means that."""
        return False

    @abstractmethod
    def head(self, width: int, style: str | None = None, dropout: float = 0.1) -> Head:
        """The part of a model that turns encoder vectors into beliefs about this task."""

    @abstractmethod
    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        """Beliefs to the label rows they speak for; several passes are averaged."""

    @abstractmethod
    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        """How right each guess is, from 0 to 1: what its confidence should have been (paper 1, section 5.5)."""

    def partner(self, tasks: Mapping[str, Task]) -> str | None:
        """The task whose spans this one builds on, and without which it cannot be trained."""
        return None

    def units(self, words: IntArray) -> IntArray:
        """How many units an item of so many words has, where its labels are one code a unit."""
        return np.ones_like(words)

    def targets(self, labels: Ragged, words: IntArray) -> IntArray:
        """The label code of every unit, item after item, for the kinds that have one."""
        raise SchemaError(f"{self.kind} has no label code a unit, as task {self.name!r} is asked for")

    def style_of(self, style: str | None) -> str:
        """The style of head that is asked for, or this kind's first."""
        if style is not None and style not in self.styles:
            raise SchemaError(
                f"task {self.name!r}: no {self.kind} head of style {style!r}", fix=f"use {', '.join(self.styles)}"
            )
        return style or self.styles[0]


KINDS: Registry[type[Task]] = Registry("task kind", "bursar.tasks")


def make_task(name: str, description: Mapping[str, Any]) -> Task:
    """A task from its description in a schema.

    >>> make_task("intent", {"kind": "classification", "labels": ["alarm", "music"]}).labels
    ('alarm', 'music')
    """
    if not isinstance(description, Mapping):
        raise SchemaError(f"task {name!r} is described by {description!r}", fix="{ kind = ..., labels = [...] }")
    options = dict(description)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"task {name!r} has no known kind: {kind!r}", fix=f"kind = one of {', '.join(KINDS)}")
    maker = KINDS[kind]
    known = maker.options()
    for key, value in options.items():
        if key not in known:
            raise SchemaError(f"task {name!r}: a {kind} task has no {key!r}", fix=f"it may have {sorted(known)}")
        if key in maker.vocabularies:
            options[key] = _label_names(name, key, value)
    return maker(name, **options)


def _label_names(task: str, field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise SchemaError(f"task {task!r}: {field} must be a list of non-empty strings")
    if len(set(value)) != len(value):
        raise SchemaError(f"task {task!r}: {field} names a label twice")
    return tuple(value)


# -- shared kernels ----------------------------------------------------------------------------------------------
def span_of(value: Any, words: int, what: str = "span") -> tuple[int, int]:
    """Two word positions, start and end (exclusive), checked against the item."""
    match value:
        case [int(start), int(end), *_] if not isinstance(start, bool) and not isinstance(end, bool):
            if 0 <= start < end <= words:
                return start, end
            raise LabelError(f"{what} [{start}, {end}] does not lie in the item's {words} words")
    raise LabelError(f"a {what} must be [start, end, label] in words, not {value!r}")


def keys_of(columns: Sequence[NDArray[Any]]) -> IntArray:
    """Columns of whole numbers from 0 up as one number a row, so that sets of rows are sets of numbers."""
    key: IntArray = columns[0].astype(np.int64)
    for column in columns[1:]:
        bound = int(column.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // bound:  # no room left: number the rows met so far
            key = np.unique(key, return_inverse=True)[1]
        key = key * bound + column
    return key


def matched_counts(gold: Ragged, guess: Ragged) -> FloatArray:
    """Per item: rows in both, rows guessed, rows in gold; rows count once however often they stand there."""
    owners = np.concatenate([gold.owners, guess.owners])
    keys = keys_of([owners, *np.concatenate([gold.values, guess.values]).T])
    split = len(gold.values)
    gold_keys, in_gold = np.unique(keys[:split], return_index=True)
    guess_keys, in_guess = np.unique(keys[split:], return_index=True)
    in_both = in_gold[np.isin(gold_keys, guess_keys, assume_unique=True)]
    counts = [np.bincount(owners[at], minlength=len(gold)) for at in (in_both, split + in_guess, in_gold)]
    return np.stack(counts, axis=1).astype(np.float64)


def shared_rows(gold: Ragged, guess: Ragged) -> FloatArray:
    """Per item, the share of all rows of either that both have; 1 where neither has any."""
    both, guessed, real = matched_counts(gold, guess).T
    either = guessed + real - both
    return np.where(either > 0, ratio(both, either), 1.0)


def chosen_rows(beliefs: Beliefs, best: IntArray) -> Ragged:
    """The subjects of the units whose best choice is not 0 (none), each with the label that it chose."""
    assert beliefs.subjects is not None
    chosen = np.flatnonzero(best > 0)
    owners = np.repeat(np.arange(len(beliefs)), beliefs.units)[chosen]
    rows = np.concatenate([beliefs.subjects[chosen], best[chosen, None] - 1], axis=1).astype(np.int32)
    return Ragged(rows, offsets_of(np.bincount(owners, minlength=len(beliefs))))


def ratio(numerator: Any, denominator: Any) -> FloatArray:
    """A quotient that is 0 where there is nothing to divide by."""
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    out: FloatArray = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return out


def f1_of_counts(totals: FloatArray) -> FloatArray:
    """F1 of (matched, guessed, gold) counts."""
    return ratio(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def class_f1(gold: IntArray, guess: IntArray, classes: int) -> tuple[float, float]:
    """Macro and support-weighted F1 over the classes that occur in gold or guess."""
    confusion = np.bincount(gold * classes + guess, minlength=classes**2).reshape(classes, classes)
    support, guessed = confusion.sum(axis=1), confusion.sum(axis=0)
    seen = support + guessed > 0
    if not seen.any():
        return 0.0, 0.0
    f1 = 2.0 * confusion.diagonal() / np.maximum(support + guessed, 1)
    return float(f1[seen].mean()), float(f1 @ support) / int(support.sum())
