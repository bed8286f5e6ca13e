"""The base class of task kinds: label encoding, scores, annotation cost, model head and decoding.

The label of an item is encoded as *rows* of small numbers (a span is ``start, end, label``; a class is ``label``), so
that the labels of a million items are two arrays. Each kind converts between rows and JSON.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged, offsets_of
from bursar.registry import Registry
from bursar.tasks.marks import Control, Marks

if TYPE_CHECKING:
    from bursar.tasks.beliefs import AnyBeliefs, Beliefs
    from bursar.tasks.heads import Head

Row = tuple[float, ...]


class Vocabulary:
    """Label names and their codes: growing as labels are read, or closed by a schema."""

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
    """A named annotation task. Subclasses are the task kinds, one file each.

    ``tally`` counts per item and ``score`` turns summed counts into the main score, so that the score of any subset of
    items (a split, an audit slice, a bootstrap sample) is a sum and one division. By default it is the F1 of rows.

    >>> task = make_task("intent", {"kind": "classification", "labels": ["alarm", "music"]})
    >>> isinstance(task, Task), task.encode("music", words=3).tolist(), task.metric
    (True, [[1]], 'accuracy')
    """

    name: str
    labels: tuple[str, ...] = ()

    kind: ClassVar[str]
    width: ClassVar[int]  # numbers in a label row
    dtype: ClassVar[Any] = np.int32
    metric: ClassVar[str] = "f1"  # the name of the main score
    counted: ClassVar[str]  # what the annotation cost grows with: span, word, relation, item
    prices: ClassVar[Mapping[str, float]]  # default prices: per_item and per_<counted>
    vocabularies: ClassVar[tuple[str, ...]] = ("labels",)  # the fields that hold label names
    styles: ClassVar[Mapping[str, str]]  # what makes each style of head, as ``module:class``; the default first
    code_columns: ClassVar[Mapping[str, tuple[int, ...]]]  # vocabulary to the columns of a row that hold its codes
    of_words: ClassVar[bool] = False  # whether units are words, spans or pairs of spans, rather than items
    seconds: ClassVar[tuple[float, float]] = (3.0, 3.0)  # guessed annotation time per item and per ``counted``
    control: ClassVar[Control | None] = None  # in Label Studio; None if it cannot ask for this kind

    # -- codec -------------------------------------------------------------------------------------------------
    @abstractmethod
    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        """Encode a JSON label of an item with this many words as rows; raise ``LabelError`` if it is invalid."""

    @abstractmethod
    def value(self, rows: NDArray[Any]) -> Any:
        """Decode rows to a JSON label; the inverse of ``rows``."""

    def encode(self, value: Any, words: int) -> NDArray[Any]:
        """Encode a JSON label as an array of rows, allowing only this task's labels."""
        rows = self.rows(value, words, self.closed_vocabularies())
        return np.asarray(rows, dtype=self.dtype).reshape(-1, self.width)

    def closed_vocabularies(self) -> dict[str, Vocabulary]:
        return {field: Vocabulary(getattr(self, field), closed=True) for field in self.vocabularies}

    @classmethod
    def options(cls) -> list[str]:
        """The options of this kind in a schema, besides name and kind."""
        hidden = {"name"} | {"labels"} - set(cls.vocabularies)
        return [f.name for f in fields(cls) if f.name not in hidden]

    def describe(self) -> dict[str, Any]:
        """The task as in a schema: kind, labels and options."""
        own = {name: getattr(self, name) for name in self.options()}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}

    @classmethod
    def recognises(cls, value: Any) -> bool:
        """Whether a JSON label without a schema must be of this kind."""
        return False

    @classmethod
    def parse_options(cls, lists: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The options of a task written as ``NAME:KIND:A,B:C,D`` on the command line: one list per vocabulary."""
        missing = [field for at, field in enumerate(cls.vocabularies) if at >= len(lists) or not lists[at]]
        if missing:
            raise SchemaError(f"it names no {missing[0].replace('_', ' ')}", fix="list them after the kind: A,B")
        if len(lists) > len(cls.vocabularies):
            raise SchemaError(f"a {cls.kind} task needs {len(cls.vocabularies)} lists of names, not {len(lists)}")
        return dict(zip(cls.vocabularies, lists, strict=True))

    # -- annotation --------------------------------------------------------------------------------------------
    @property
    def form(self) -> str:
        """The form of a label, in words."""
        return f"a label of kind {self.kind}"

    @property
    def widget(self) -> str:
        """The widget of the annotation page, ``annotate/NAME.js``. Without that file, labels are typed as JSON."""
        return self.kind

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        """A JSON label in short readable parts."""
        return [json.dumps(value, ensure_ascii=False)]

    def cell(self, value: Any, words: Sequence[str], between: Callable[[int, int], str]) -> Any:
        """A JSON label in one readable cell of a table; ``between(2, 4)`` is the text of the words 2 and 3."""
        return "; ".join(self.show(value, words))

    def compared(self, value: Any, words: int) -> Sequence[Hashable] | None:
        """The parts of a JSON label on which people are compared: one per item or word; ``None`` if there are none."""
        return None

    def marks(self, value: Any) -> Marks:
        """A JSON label as annotation tools show it."""
        return Marks(values=[value])

    def from_marks(self, marks: Marks, words: int) -> Any:
        """The JSON label that an annotation tool returned; the inverse of ``marks``."""
        return marks.single()

    # -- scores ------------------------------------------------------------------------------------------------
    def tally(self, gold: Ragged, guess: Ragged) -> FloatArray:
        """The counts that ``score`` needs, per item: (items, counts)."""
        return matched_counts(gold, guess)

    def score(self, totals: FloatArray) -> FloatArray:
        """The main score of summed tallies: (..., counts) to (...)."""
        return ratio(2 * totals[..., 0], totals[..., 1] + totals[..., 2])

    def evaluate(self, gold: Ragged, guess: Ragged, words: IntArray) -> dict[str, float]:
        """All scores of this kind by name, for items with these numbers of words."""
        totals = matched_counts(gold, guess).sum(axis=0)
        precision, recall = (float(ratio(totals[0], count)) for count in totals[1:])
        return {"f1": float(self.score(totals)), "precision": precision, "recall": recall}

    # -- cost --------------------------------------------------------------------------------------------------
    def count(self, labels: Ragged) -> IntArray:
        """The number of ``counted`` things (spans, relations, ...) in each item's label."""
        return labels.lengths

    # -- model -----------------------------------------------------------------------------------------------------
    @property
    def may_be_empty(self) -> bool:
        """Whether a label may be empty (no spans); choice 0 of a prediction then means "none"."""
        return False

    def head(self, width: int, style: str | None = None, dropout: float = 0.1) -> Head:
        """Make the part of a model that turns encoder vectors into predictions for this task."""
        if style is not None and style not in self.styles:
            message = f"task {self.name!r}: no {self.kind} head of style {style!r}"
            raise SchemaError(message, fix=f"use {', '.join(self.styles)}")
        module, _, maker = (self.styles[style] if style else next(iter(self.styles.values()))).rpartition(":")
        made: Head = getattr(import_module(module), maker)(self, width, dropout)
        return made

    @abstractmethod
    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        """Decode predictions to label rows; several passes are averaged."""

    def accuracies(self, gold: Ragged, guess: Ragged, words: IntArray) -> FloatArray:
        """The accuracy of each guess from 0 to 1, which its confidence should equal (paper 1, section 5.5).

        By default, the Jaccard overlap of the rows; 1 if both are empty.
        """
        both, guessed, real = matched_counts(gold, guess).T
        either = guessed + real - both
        return np.where(either > 0, ratio(both, either), 1.0)

    def agrees(self, gold: Ragged, guess: Ragged) -> BoolArray:
        """Whether each guess is right as a whole: nothing is missing, nothing is too much, nothing differs."""
        both, guessed, real = matched_counts(gold, guess).T
        return np.asarray((both == guessed) & (both == real))

    def partner(self, tasks: Mapping[str, Task]) -> str | None:
        """The task whose spans this one needs, without which it cannot be trained; ``None`` if it needs none."""
        return None

    @property
    def classes(self) -> int | None:
        """The number of classes of a unit, if every unit has one label code; ``None`` otherwise."""
        return None

    def units(self, words: IntArray) -> IntArray:
        """The number of units of items with these numbers of words, if every unit has one label code."""
        return np.ones_like(words)

    def targets(self, labels: Ragged, words: IntArray) -> NDArray[Any]:
        """The label code (or number) of every unit, item after item, for kinds that have one per unit."""
        raise SchemaError(f"task {self.name!r}: {self.kind} has no single label code per unit")

    def codes(self, labels: Ragged, words: IntArray) -> IntArray:
        """A label code for every word (``of_words``) or item, to compare tasks by how their labels go together."""
        return self.targets(labels, words)


KINDS: Registry[type[Task]] = Registry("task kind", "bursar.tasks")


def make_task(name: str, description: Mapping[str, Any]) -> Task:
    """Make a task from its description in a schema."""
    if not isinstance(description, Mapping):
        raise SchemaError(f"task {name!r} is described by {description!r}", fix="write { kind = ..., labels = [...] }")
    options = dict(description)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"task {name!r} has no known kind: {kind!r}", fix=f"kind = one of {', '.join(KINDS)}")
    maker = KINDS[kind]
    known = maker.options()
    for key, value in options.items():
        if key not in known:
            raise SchemaError(f"task {name!r}: a {kind} task has no option {key!r}", fix=f"use {sorted(known)}")
        if key in maker.vocabularies:
            options[key] = _label_names(name, key, value)
    return maker(name, **options)


def _label_names(task: str, field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise SchemaError(f"task {task!r}: {field} must be a list of non-empty strings")
    if len(set(value)) != len(value):
        raise SchemaError(f"task {task!r}: {field} names a label twice")
    return tuple(value)


def groups_of(tasks: Mapping[str, Task]) -> list[list[str]]:
    """Task names in groups that must be trained together, such as relations and their entities, in the tasks' order."""
    partners = {name: task.partner(tasks) for name, task in tasks.items()}
    leaders = {name: partner or name for name, partner in partners.items()}
    led = {leader: [name for name in tasks if leaders[name] == leader != name] for leader in leaders.values()}
    return [[leader, *others] for leader, others in led.items()]


# -- shared kernels ----------------------------------------------------------------------------------------------
def span_of(value: Any, words: int, what: str = "span") -> tuple[int, int]:
    """Read the start and end (exclusive) of a span, and check that they are within the item."""
    match value:
        case [int(start), int(end), *_] if not isinstance(start, bool) and not isinstance(end, bool):
            if 0 <= start < end <= words:
                return start, end
            raise LabelError(f"{what} [{start}, {end}] is outside the item's {words} words")
    raise LabelError(f"a {what} must be [start, end, label] in words, not {value!r}")


def keys_of(columns: Sequence[NDArray[Any]]) -> IntArray:
    """Encode each row of non-negative integers as one integer, so that sets of rows are sets of integers."""
    key: IntArray = columns[0].astype(np.int64)
    for column in columns[1:]:
        bound = int(column.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // bound:  # would overflow: number the distinct rows so far
            key = np.unique(key, return_inverse=True)[1]
        key = key * bound + column
    return key


def matched_counts(gold: Ragged, guess: Ragged) -> FloatArray:
    """Per item, the numbers of distinct rows in both, in the guess and in gold."""
    owners = np.concatenate([gold.owners, guess.owners])
    keys = keys_of([owners, *np.concatenate([gold.values, guess.values]).T])
    split = len(gold.values)
    gold_keys, in_gold = np.unique(keys[:split], return_index=True)
    guess_keys, in_guess = np.unique(keys[split:], return_index=True)
    in_both = in_gold[np.isin(gold_keys, guess_keys, assume_unique=True)]
    counts = [np.bincount(owners[at], minlength=len(gold)) for at in (in_both, split + in_guess, in_gold)]
    return np.stack(counts, axis=1).astype(np.float64)


def rows_of_choices(beliefs: Beliefs, best: IntArray) -> Ragged:
    """The spans of the units whose best choice is not 0 (none), each with the chosen label."""
    assert beliefs.subjects is not None
    chosen = np.flatnonzero(best > 0)
    owners = np.repeat(np.arange(len(beliefs)), beliefs.units)[chosen]
    rows = np.concatenate([beliefs.subjects[chosen], best[chosen, None] - 1], axis=1).astype(np.int32)
    return Ragged(rows, offsets_of(np.bincount(owners, minlength=len(beliefs))))


def ratio(numerator: Any, denominator: Any) -> FloatArray:
    """Divide, with 0 where the denominator is 0."""
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    return np.asarray(np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0))


def class_f1(gold: IntArray, guess: IntArray, classes: int) -> tuple[float, float]:
    """Macro and support-weighted F1 over the classes that occur in gold or guess."""
    confusion = np.bincount(gold * classes + guess, minlength=classes**2).reshape(classes, classes)
    support, guessed = confusion.sum(axis=1), confusion.sum(axis=0)
    seen = support + guessed > 0
    if not seen.any():
        return 0.0, 0.0
    f1 = 2.0 * confusion.diagonal() / np.maximum(support + guessed, 1)
    return float(f1[seen].mean()), float(f1 @ support) / int(support.sum())
