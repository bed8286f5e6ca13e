"""Synthetic tasks with a chosen relatedness to a real task (paper 2, section 3, algorithm 1).

A synthetic task relabels every unit of a real task (a word, or a classified item): with probability α by the label that
corresponds to the real one, else by any of the others. Relatedness is measured after the labels are drawn, by the
adjusted mutual information with the ``max`` normalisation (eq. 2; errata 18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.errors import ConfigError, SchemaError
from bursar.laws.relatedness import expected_mutual_information
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged, offsets_of
from bursar.random_streams import rng
from bursar.tasks import Classification, Tagging, Task

HALVINGS = 60  # steps of the bisection for α
BELOW_ONE = 1 - 2.0**-32  # keeps a draw plus its row number below the next row


@dataclass(frozen=True, eq=False)
class Related:
    """A corpus with a real task and synthetic ones, and the properties of each, the real one first."""

    corpus: Corpus
    tasks: tuple[str, ...]
    alpha: tuple[float, ...]  # 1 for the real task
    ami: tuple[float, ...]  # with the real task, on the units labelled for training; 1 for the real task
    units: tuple[int, ...]  # labelled for training: words, or classified items

    @property
    def mean_ami(self) -> float:
        """The mean over the synthetic tasks; 1 if there are none."""
        return float(np.mean(self.ami[1:])) if len(self.ami) > 1 else 1.0


def related_corpus(
    corpus: Corpus,
    task: str,
    *,
    tasks: int,
    alpha: float | Sequence[float] | None = None,
    ami: float | Sequence[float] | None = None,
    samples: int | Sequence[int] | None = None,
    labels: int | None = None,
    split: str = "train",
    seed: int = 0,
) -> Related:
    """Make a corpus with a real task and ``tasks`` − 1 synthetic ones on the same items.

    ``alpha`` or ``ami`` (a number, or one per synthetic task) sets how related they are; ``labels`` is the number of
    labels of each (default: as many as the real task). A real task of spans is read as IO, as in the paper: each word
    has the type of its span, or none.

    ``samples`` is the number of units labelled for training: words for tagging, items for classification; a number, or
    one per task, the real one first. Items are taken whole in a random order; an item that would exceed the number is
    skipped, and if units are missing at the end, the last item is exchanged for a longer one. ``units`` gives the
    actual numbers: they are exact unless there is no item of the length needed. A task with more samples has all items
    of a task with fewer. Items of other splits are all kept, labelled for all tasks.

    >>> from bursar.simulation import assistant_corpus
    >>> found = related_corpus(assistant_corpus(300), "slots", tasks=3, alpha=0.9, samples=500)
    >>> found.tasks, found.units
    (('slots', 'related-1', 'related-2'), (500, 500, 500))
    >>> found.corpus.schema["related-1"].every_word, 0 < min(found.ami) < 1
    (True, True)
    """
    _check_tasks(corpus, task, tasks)
    real = corpus.schema[task]
    known = corpus.take(np.flatnonzero(corpus.labels[task].present)).with_tasks([task])
    kept, labelled = _choose_items(known, real, split, _per_task(samples, tasks, "samples"), seed)
    codes, counts = unit_codes(kept, real), real.units(kept.words)
    shares = np.bincount(codes, minlength=_labels_of(real)) / max(1, len(codes))
    wide = len(shares) if labels is None else labels
    label_matrix(1.0, len(shares), wide)  # raises if there are too few labels
    sizes = [int(counts[mine].sum()) for mine in labelled]
    drawn = _relatedness(alpha, ami, tasks - 1, shares, wide)
    made = [Labels(_or_elsewhere(kept, split, labelled[0]), kept.labels[task].rows)]
    measured, schema = [1.0], {task: real}
    for place, chance in enumerate(drawn, start=1):
        matrix = label_matrix(chance, len(shares), wide)
        relabelled = draw_labels(codes, matrix, rng(seed, "related labels", place))
        mine = np.repeat(labelled[place], counts)
        measured.append(adjusted_mutual_information(codes[mine], relabelled[mine]))
        new = _synthetic(real, f"related-{place}", wide)
        schema[new.name] = new
        made.append(Labels(_or_elsewhere(kept, split, labelled[place]), _rows(new, relabelled, counts)))
    if len(schema) < tasks:
        raise SchemaError(f"the real task is called {task!r}, as a synthetic one would be", fix="rename it")
    columns = {name: _without_absent(column) for name, column in zip(schema, made, strict=True)}
    return Related(
        replace(kept, schema=schema, labels=columns, _positions={}),
        tuple(schema),
        (1.0, *drawn),
        tuple(measured),
        tuple(sizes),
    )


def _check_tasks(corpus: Corpus, task: str, tasks: int) -> None:
    if task not in corpus.schema:
        raise SchemaError(f"there is no task {task!r}", fix=f"this corpus has {', '.join(corpus.schema)}")
    if tasks < 1:
        raise ConfigError(f"tasks = {tasks}", fix="count the real task as well: 1 or more")


# -- labels -----------------------------------------------------------------------------------------------------------
def label_matrix(alpha: float, real: int, synthetic: int) -> FloatArray:
    """The probabilities of the synthetic labels given the real one: (real, synthetic). Independent at α = 1 / c.

    >>> label_matrix(0.8, 2, 3).round(3).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    """
    if synthetic < real:
        raise ConfigError(
            f"{synthetic} synthetic labels for {real} real ones", fix=f"use at least {real}: each needs its own"
        )
    if not 0 <= alpha <= 1:
        raise ConfigError(f"alpha = {alpha}", fix="use a number from 0 to 1, such as 0.9")
    others = (1 - alpha) / (synthetic - 1) if synthetic > 1 else 0.0
    found = np.full((real, synthetic), others)
    np.fill_diagonal(found, alpha if synthetic > 1 else 1.0)
    return found


def draw_labels(codes: IntArray, matrix: FloatArray, generator: np.random.Generator) -> IntArray:
    """Draw a label for each unit by the row of its real one. One search over the stacked cumulative rows."""
    steps = np.minimum(np.cumsum(matrix, axis=1), 1.0)
    steps[:, -1] = 1.0
    real, synthetic = matrix.shape
    stairs = (steps + np.arange(real)[:, None]).ravel()
    places = generator.random(len(codes)) * BELOW_ONE + codes
    found: IntArray = np.searchsorted(stairs, places, side="right") - codes * synthetic
    return found


def unit_codes(items: Corpus, task: Task) -> IntArray:
    """The real label of every unit, item after item; spans as IO: 0 is none, 1 + k is in a span of label k."""
    column = items.labels[task.name].rows
    if not isinstance(task, Tagging | Classification):
        raise SchemaError(f"task {task.name!r} is {task.kind}", fix="relate tasks to one of tagging or classification")
    found = task.targets(column, items.words)
    if isinstance(task, Tagging) and not task.every_word:
        found = (found + 1) // 2
    return found


def _labels_of(task: Task) -> int:
    """The number of label codes."""
    return len(task.labels) + int(isinstance(task, Tagging) and not task.every_word)


def _synthetic(real: Task, name: str, labels: int) -> Task:
    names = tuple(f"s{code + 1}" for code in range(labels))
    return Classification(name, names) if isinstance(real, Classification) else Tagging(name, names, every_word=True)


def _rows(task: Task, codes: IntArray, counts: IntArray) -> Ragged:
    bounds = offsets_of(counts)
    if isinstance(task, Classification):
        return Ragged(codes[:, None].astype(np.int32), bounds)
    at = np.arange(len(codes)) - np.repeat(bounds[:-1], counts)
    return Ragged(np.stack([at, at + 1, codes], axis=1).astype(np.int32), bounds)


def _without_absent(column: Labels) -> Labels:
    """Remove the rows of items without a label."""
    kept = np.repeat(column.present, column.rows.lengths)
    return Labels(column.present, Ragged(column.rows.values[kept], offsets_of(column.rows.lengths * column.present)))


# -- items ------------------------------------------------------------------------------------------------------------
def _choose_items(
    known: Corpus, task: Task, split: str, samples: Sequence[int | None], seed: int
) -> tuple[Corpus, list[BoolArray]]:
    """The items to keep, and for each task which of them are labelled for training."""
    training = known.in_split(split)
    order = rng(seed, "related items").permutation(known.by_id(training))
    counts = task.units(known.words)
    total = int(counts[training].sum())
    taken: dict[int, IntArray] = {}
    so_far: IntArray = np.zeros(0, dtype=np.int64)
    for wanted in sorted({total if s is None else s for s in samples}):
        if not 1 <= wanted <= total:
            unit = "items" if isinstance(task, Classification) else "words"
            raise ConfigError(
                f"samples = {wanted}", fix=f"split {split!r} has {total:,} {unit} that are labelled for {task.name!r}"
            )
        so_far = _fill_sample(order, counts, so_far, wanted)
        taken[wanted] = so_far
    stay = np.concatenate([so_far, np.flatnonzero(known.split_codes != known.splits.index(split))])
    kept = np.sort(stay)
    return known.take(kept), [np.isin(kept, taken[total if s is None else s]) for s in samples]


def _fill_sample(order: IntArray, counts: IntArray, chosen: IntArray, wanted: int) -> IntArray:
    """Add items to ``chosen`` in order, skipping those that would exceed ``wanted`` units.

    If units are missing at the end, the last item for which that is possible is exchanged for a longer one.
    """
    left = wanted - int(counts[chosen].sum())
    open_: BoolArray = ~np.isin(order, chosen)
    more: list[int] = []  # places in the order
    while left > 0:
        places = np.flatnonzero(open_ & (counts[order] <= left) & (counts[order] > 0))
        fits = places[: np.searchsorted(np.cumsum(counts[order[places]]), left, side="right")]
        if not len(fits):
            break
        more += fits.tolist()
        open_[fits] = False
        left -= int(counts[order[fits]].sum())
    lengths = {int(counts[order[place]]): int(place) for place in np.flatnonzero(open_)[::-1]}
    for at in reversed(range(len(more))) if left else ():
        longer = lengths.get(int(counts[order[more[at]]]) + left)
        if longer is not None:
            more[at] = longer
            break
    return np.concatenate([chosen, order[np.array(more, dtype=np.int64)]])


def _or_elsewhere(kept: Corpus, split: str, labelled: BoolArray) -> BoolArray:
    found: BoolArray = labelled | (kept.split_codes != kept.splits.index(split))
    return found


def _per_task(samples: int | Sequence[int] | None, tasks: int, name: str) -> list[int | None]:
    if samples is None or isinstance(samples, int):
        return [samples] * tasks
    if len(samples) != tasks:
        raise ConfigError(f"{len(samples)} {name} for {tasks} tasks", fix="give one number, or one for each task")
    return list(samples)


def _relatedness(
    alpha: float | Sequence[float] | None,
    ami: float | Sequence[float] | None,
    tasks: int,
    shares: FloatArray,
    labels: int,
) -> list[float]:
    """α of every synthetic task."""
    if tasks and (alpha is None) == (ami is None):
        raise ConfigError("relatedness needs one of alpha and ami", fix="give alpha or ami")
    given = alpha if alpha is not None else ami
    wanted = [] if given is None else [given] * tasks if isinstance(given, int | float) else list(given)
    if len(wanted) != tasks:
        raise ConfigError(
            f"{len(wanted)} values of {'alpha' if alpha is not None else 'ami'} for {tasks} synthetic tasks",
            fix="give one number, or one for each",
        )
    if alpha is not None:
        return [float(value) for value in wanted]
    return [alpha_for(value, shares, labels) for value in wanted]


# -- relatedness ------------------------------------------------------------------------------------------------------
def adjusted_mutual_information(real: IntArray, synthetic: IntArray) -> float:
    """Mutual information of two labellings adjusted for chance, relative to the larger entropy (paper 2, eq. 2).

    Equals scikit-learn's ``adjusted_mutual_info_score(average_method="max")``, from label codes and much faster.

    >>> adjusted_mutual_information(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    if len(real) != len(synthetic):
        raise ConfigError(f"{len(real)} labels against {len(synthetic)}", fix="give both labels of the same units")
    if not len(real):
        return 1.0
    wide = int(synthetic.max()) + 1
    table = np.bincount(real * wide + synthetic, minlength=(int(real.max()) + 1) * wide).reshape(-1, wide)
    return ami_of_counts(table)


def ami_of_counts(table: IntArray) -> float:
    """Adjusted mutual information from the counts of label pairs: (real, synthetic)."""
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    if 1 in table.shape:
        return float(table.shape == (1, 1))
    total, rows, columns = int(table.sum()), table.sum(axis=1), table.sum(axis=0)
    of_rows, of_columns = (float(entr(counts / total).sum()) for counts in (rows, columns))
    mutual = max(0.0, of_rows + of_columns - float(entr(table / total).sum()))
    chance = expected_mutual_information(rows, columns)
    largest = max(of_rows, of_columns) - chance
    tiny = float(np.finfo(float).eps)
    if abs(largest) <= tiny:  # every unit has a label of its own
        return 1.0
    return float((mutual - chance) / largest)


def expected_ami(alpha: float, shares: FloatArray, labels: int) -> float:
    """The limit of the adjusted mutual information for many units, for real labels with these shares.

    On few units with many labels it is a little higher.

    >>> [round(expected_ami(alpha, np.array([0.8, 0.1, 0.1]), 3), 3) for alpha in (1 / 3, 0.9, 1.0)]
    [0.0, 0.488, 1.0]
    """
    joint = shares[:, None] * label_matrix(alpha, len(shares), labels)
    of_real, of_synthetic = float(entr(shares).sum()), float(entr(joint.sum(axis=0)).sum())
    most = max(of_real, of_synthetic)
    mutual = of_real + of_synthetic - float(entr(joint).sum())
    return min(1.0, max(0.0, mutual / most)) if most > 0 else 1.0


def alpha_for(ami: float, shares: FloatArray, labels: int | None = None) -> float:
    """The α whose synthetic labels have this adjusted mutual information in the limit, by bisection.

    >>> round(alpha_for(0.488, np.array([0.8, 0.1, 0.1])), 3)
    0.9
    """
    if not 0 <= ami <= 1:
        raise ConfigError(f"ami = {ami}", fix="use a number from 0 (unrelated) to 1 (the same)")
    wide = len(shares) if labels is None else labels
    low, high = 1 / wide, 1.0
    if ami in (0, 1) or wide == 1:
        return low if ami == 0 else high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_ami(middle, shares, wide) < ami else (low, middle)
    return (low + high) / 2
