"""How related are the tasks of a corpus? Adjusted mutual information of their labels, on items with both.

Two tasks that label words are compared by word, two that label items by item. If one labels words and the other items,
each word gets the label of its item. The words of an item are then not independent, so the mutual information by chance
is measured by shuffling whole items.

>>> from bursar.simulation import assistant_corpus
>>> found = relatedness(assistant_corpus(300).with_tasks(["intent", "slots", "urgency"]))
>>> pair = found.pair("intent", "slots")
>>> pair.of, pair.items, 0 < pair.low <= pair.ami <= pair.high < 1
('words', 300, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import entr

from bursar.corpus import Corpus
from bursar.errors import ConfigError, SchemaError
from bursar.ragged import FloatArray, IntArray, offsets_of
from bursar.random_streams import rng
from bursar.simulation.related import expected_mutual_information
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging, Task

FEWEST_ITEMS = 20  # labelled for both tasks
MOST_ITEMS = 5_000  # used; more would only take longer
BINS = 5  # of a score
SHUFFLES = 50  # of items, to measure chance


@dataclass(frozen=True)
class Pair:
    """How related two tasks are."""

    tasks: tuple[str, str]
    ami: float
    low: float
    high: float
    items: int  # labelled for both
    of: str  # the compared units: words or items


@dataclass(frozen=True)
class Relatedness:
    """How related all pairs of tasks are."""

    pairs: tuple[Pair, ...]
    level: float
    left_out: Mapping[str, str] = field(default_factory=dict)  # task to the reason

    @property
    def tasks(self) -> list[str]:
        """The tasks that were compared."""
        return list(dict.fromkeys(name for pair in self.pairs for name in pair.tasks))

    def pair(self, first: str, second: str) -> Pair:
        return next(pair for pair in self.pairs if set(pair.tasks) == {first, second})

    def of(self, task: str) -> tuple[float, float, float]:
        """Value, low and high end, averaged over the other tasks as if errors were fully correlated."""
        mine = [pair for pair in self.pairs if task in pair.tasks]
        value, low, high = (float(np.mean([getattr(pair, name) for pair in mine])) for name in ("ami", "low", "high"))
        return value, low, high


def relatedness(corpus: Corpus, *, level: float = 0.9, draws: int = 200, seed: int = 0) -> Relatedness:
    """Measure how related each pair of tasks is, with bootstrap intervals over items.

    A task that labels neither words nor items is left out with a reason. Pairs with fewer than ``FEWEST_ITEMS`` items
    labelled for both raise an error.
    """
    readers: dict[str, Reader] = {}
    left_out = {}
    for name, task in corpus.schema.items():
        try:
            readers[name] = reader_of(task)
        except SchemaError as wrong:
            left_out[name] = wrong.message
    if len(readers) < 2:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ConfigError(
            f"there are no two tasks to compare{f' ({why})' if why else ''}",
            fix="use a corpus with two tasks that label words or items",
        )
    pairs = []
    for number, (first, second) in enumerate(combinations(readers, 2)):
        numbers = rng(seed, "relatedness", number)
        items = _labelled_for_both(corpus, first, second, numbers)
        pairs.append(_pair(items, {name: readers[name] for name in (first, second)}, level, draws, numbers))
    return Relatedness(tuple(pairs), level, left_out)


# -- labels as codes --------------------------------------------------------------------------------------------------
Reader = tuple[str, Callable[[Corpus], IntArray]]  # "words" or "items", and a function that gives their label codes


def reader_of(task: Task) -> Reader:
    """How to read the labels of a task as codes of words or items."""
    name = task.name
    if isinstance(task, Tagging):
        return "words", lambda items: io_codes(items, name)
    if isinstance(task, Parsing):
        return "words", lambda items: items.labels[name].rows.values[:, 1].astype(np.int64)
    if isinstance(task, Classification):
        return "items", lambda items: items.labels[name].rows.values[:, 0].astype(np.int64)
    if isinstance(task, Regression):
        return "items", lambda items: binned(items.labels[name].rows.values[:, 0].astype(float))
    if isinstance(task, Relations):
        raise SchemaError("relations label pairs of spans, not words or items")
    raise SchemaError(f"{task.kind} labels neither words nor items")


def io_codes(items: Corpus, task: str) -> IntArray:
    """The label of each word: 0 for none, 1 + k in a span of label k; the shortest of nested spans counts."""
    spans = items.labels[task].rows
    starts, lengths = spans.values[:, 0], (spans.values[:, 1] - spans.values[:, 0]).astype(np.int64)
    order = np.argsort(-lengths, kind="stable")
    first = (offsets_of(items.words)[spans.owners] + starts)[order]
    lengths = lengths[order]
    inner = offsets_of(lengths)
    places = np.repeat(first - inner[:-1], lengths) + np.arange(inner[-1])
    found: IntArray = np.zeros(int(items.words.sum()), dtype=np.int64)
    found[places] = np.repeat(1 + spans.values[order, 2].astype(np.int64), lengths)
    return found


def binned(values: FloatArray) -> IntArray:
    """The quintile of each number.

    >>> binned(np.array([0.1, 0.9, 0.3, 0.5, 0.7])).tolist(), binned(np.array([1.0, 1.0, 1.0])).tolist()
    ([0, 4, 1, 2, 3], [0, 0, 0])
    """
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    found: IntArray = np.searchsorted(edges, values, side="left").astype(np.int64)
    return found


def _labelled_for_both(corpus: Corpus, first: str, second: str, numbers: np.random.Generator) -> Corpus:
    both = np.flatnonzero(corpus.labels[first].present & corpus.labels[second].present)
    if len(both) < FEWEST_ITEMS:
        raise ConfigError(
            f"{len(both)} items are labelled for both {first!r} and {second!r}, too few to compare the tasks",
            fix=f"label at least {FEWEST_ITEMS} items for both",
        )
    by_id = corpus.by_id(both)
    if len(by_id) > MOST_ITEMS:
        by_id = numbers.choice(by_id, MOST_ITEMS, replace=False)
    return corpus.take(by_id)


# -- comparing --------------------------------------------------------------------------------------------------------
def _pair(items: Corpus, readers: Mapping[str, Reader], level: float, draws: int, numbers: np.random.Generator) -> Pair:
    kinds = [kind for kind, _ in readers.values()]
    of = "words" if "words" in kinds else "items"
    units = items.words if of == "words" else np.ones(len(items), dtype=np.int64)
    owners = np.repeat(np.arange(len(items)), units)
    first, second = (read(items) if kind == of else read(items)[owners] for kind, read in readers.values())
    high, wide = (int(codes.max(initial=0)) + 1 for codes in (first, second))
    cells = first * wide + second

    def table(times: IntArray) -> FloatArray:
        """The contingency table, with each item counted this many times."""
        found: FloatArray = np.bincount(cells, times[owners], high * wide).astype(float)
        return found.reshape(high, wide)

    whole = table(np.ones(len(items), dtype=np.int64))
    if kinds[0] == kinds[1]:
        chance = expected_mutual_information(*(_counts(whole, axis) for axis in (1, 0)))
    else:
        of_words, of_items = (second, first) if kinds[0] == "items" else (first, second)
        chance = _shuffled_chance(of_words, of_items, owners, numbers)
    ami = adjusted(whole, chance)
    drawn = numbers.multinomial(len(items), np.full(len(items), 1 / len(items)), size=draws)
    again = np.array([adjusted(table(times), chance) for times in drawn])
    # Items drawn twice inflate the mutual information, so only the spread of the draws is used.
    least, most = (ami + float(end - again.mean()) for end in np.quantile(again, [(1 - level) / 2, (1 + level) / 2]))
    first_task, second_task = readers
    return Pair((first_task, second_task), ami, max(-1.0, least), min(1.0, most), len(items), of)


def _shuffled_chance(of_words: IntArray, of_items: IntArray, owners: IntArray, numbers: np.random.Generator) -> float:
    """The mean mutual information after shuffling the labels of items; all codes are by word."""
    present, first = np.unique(owners, return_index=True)  # items with words
    place, labels = np.searchsorted(present, owners), of_items[first]
    wide = int(of_items.max(initial=0)) + 1
    found = []
    for _ in range(SHUFFLES):
        counts = np.bincount(of_words * wide + numbers.permutation(labels)[place])
        counts = np.pad(counts, (0, -len(counts) % wide))
        found.append(mutual_information(counts.reshape(-1, wide).astype(float)))
    return float(np.mean(found))


def mutual_information(table: FloatArray) -> float:
    """The mutual information of a contingency table."""
    shares = table / max(table.sum(), 1.0)
    return max(0.0, _entropy(shares.sum(axis=1)) + _entropy(shares.sum(axis=0)) - _entropy(shares))


def adjusted(table: FloatArray, chance: float) -> float:
    """Adjusted mutual information, normalised by the larger entropy (paper 2, eq. 2); 0 if a task has one label."""
    shares = table / max(table.sum(), 1.0)
    room = max(_entropy(shares.sum(axis=1)), _entropy(shares.sum(axis=0))) - chance
    return (mutual_information(table) - chance) / room if room > 1e-12 else 0.0


def _entropy(shares: FloatArray) -> float:
    return float(entr(shares).sum())


def _counts(table: FloatArray, axis: int) -> IntArray:
    counts: IntArray = table.sum(axis=axis).astype(np.int64)
    kept: IntArray = counts[counts > 0]
    return kept
