"""How related are the tasks of a corpus? Adjusted mutual information of their labels, on items that have both.

Two tasks that label words are compared word by word, two that label items item by item. Where one labels words and the
other items, every word has the label of its item. The words of an item are then no independent witnesses, so chance is
what is left when whole items are shuffled, not words.

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
from bursar.simulation.related import expected_mutual_information
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging, Task

FEWEST_ITEMS = 20  # that are labelled for both tasks
MOST_ITEMS = 5_000  # looked at: more change nothing but the time
BINS = 5  # of a score
SHUFFLES = 50  # of items, for what chance alone leads to


@dataclass(frozen=True)
class Pair:
    """How related two tasks are."""

    tasks: tuple[str, str]
    ami: float
    low: float
    high: float
    items: int  # labelled for both
    of: str  # what was compared: words or items


@dataclass(frozen=True)
class Relatedness:
    """How related all tasks are to each other."""

    pairs: tuple[Pair, ...]
    level: float
    left_out: Mapping[str, str] = field(default_factory=dict)  # task to why

    @property
    def tasks(self) -> list[str]:
        """Those that could be compared with another."""
        return list(dict.fromkeys(name for pair in self.pairs for name in pair.tasks))

    def pair(self, first: str, second: str) -> Pair:
        return next(pair for pair in self.pairs if set(pair.tasks) == {first, second})

    def of(self, task: str) -> tuple[float, float, float]:
        """The mean over the other tasks, as if all errors went the same way: the value, a low and a high one."""
        mine = [pair for pair in self.pairs if task in pair.tasks]
        value, low, high = (float(np.mean([getattr(pair, name) for pair in mine])) for name in ("ami", "low", "high"))
        return value, low, high


def relatedness(corpus: Corpus, *, level: float = 0.9, draws: int = 200, seed: int = 0) -> Relatedness:
    """Of every two tasks of a corpus, with bootstrap intervals over items.

    A task whose labels are neither of words nor of items is left out with a reason. Two tasks that share fewer than
    ``FEWEST_ITEMS`` labelled items cannot be compared: that is an error.
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
            fix="bring a corpus with two tasks that label words or items",
        )
    pairs = []
    for number, (first, second) in enumerate(combinations(readers, 2)):
        rng = np.random.default_rng([seed, 127, number])
        items = _labelled_for_both(corpus, first, second, rng)
        pairs.append(_pair(items, (first, second), (readers[first], readers[second]), level, draws, rng))
    return Relatedness(tuple(pairs), level, left_out)


# -- labels as codes --------------------------------------------------------------------------------------------------
Reader = tuple[str, Callable[[Corpus], IntArray]]  # "words" or "items", and what reads the label codes of all of them


def reader_of(task: Task) -> Reader:
    """How the labels of a task are read; an error says why they cannot be."""
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
        raise SchemaError("a relation is of two spans, and neither of a word nor of an item")
    raise SchemaError(f"nobody knows how to read labels of {task.kind} as those of words or items")


def io_codes(items: Corpus, task: str) -> IntArray:
    """The label of every word: 0 is none, 1 + k is in a span of label k; of spans in spans the shortest counts."""
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
    """Numbers as the fifth of all of them that they lie in.

    >>> binned(np.array([0.1, 0.9, 0.3, 0.5, 0.7])).tolist(), binned(np.array([1.0, 1.0, 1.0])).tolist()
    ([0, 4, 1, 2, 3], [0, 0, 0])
    """
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    found: IntArray = np.searchsorted(edges, values, side="left").astype(np.int64)
    return found


def _labelled_for_both(corpus: Corpus, first: str, second: str, rng: np.random.Generator) -> Corpus:
    both = np.flatnonzero(corpus.labels[first].present & corpus.labels[second].present)
    if len(both) < FEWEST_ITEMS:
        raise ConfigError(
            f"{len(both)} items are labelled for both {first!r} and {second!r}: too few to say how related they are",
            fix=f"label {FEWEST_ITEMS} items or more for both",
        )
    by_id = corpus.by_id(both)
    if len(by_id) > MOST_ITEMS:
        by_id = rng.choice(by_id, MOST_ITEMS, replace=False)
    return corpus.take(by_id)


# -- comparing --------------------------------------------------------------------------------------------------------
def _pair(
    items: Corpus,
    names: tuple[str, str],
    readers: tuple[Reader, Reader],
    level: float,
    draws: int,
    rng: np.random.Generator,
) -> Pair:
    of = "words" if "words" in (readers[0][0], readers[1][0]) else "items"
    units = items.words if of == "words" else np.ones(len(items), dtype=np.int64)
    owners = np.repeat(np.arange(len(items)), units)
    first, second = (read(items) if what == of else read(items)[owners] for what, read in readers)
    high, wide = (int(codes.max(initial=0)) + 1 for codes in (first, second))
    cells = first * wide + second

    def table(times: IntArray) -> FloatArray:
        """How often the labels meet, each item counted so many times."""
        found: FloatArray = np.bincount(cells, times[owners], high * wide).astype(float)
        return found.reshape(high, wide)

    whole = table(np.ones(len(items), dtype=np.int64))
    if readers[0][0] == readers[1][0]:
        chance = expected_mutual_information(*(_counts(whole, axis) for axis in (1, 0)))
    else:
        of_words, of_items = (second, first) if readers[0][0] == "items" else (first, second)
        chance = _shuffled_chance(of_words, of_items, owners, rng)
    ami = adjusted(whole, chance)
    drawn = rng.multinomial(len(items), np.full(len(items), 1 / len(items)), size=draws)
    again = np.array([adjusted(table(times), chance) for times in drawn])
    # Items that are drawn twice look more related than they are: the spread of draws counts, not where they lie.
    least, most = (ami + float(end - again.mean()) for end in np.quantile(again, [(1 - level) / 2, (1 + level) / 2]))
    return Pair(names, ami, max(-1.0, least), min(1.0, most), len(items), of)


def _shuffled_chance(of_words: IntArray, of_items: IntArray, owners: IntArray, rng: np.random.Generator) -> float:
    """The mutual information that is left when the labels of items are shuffled, on average; all codes are of words."""
    present, first = np.unique(owners, return_index=True)  # items that have words
    place, labels = np.searchsorted(present, owners), of_items[first]
    wide = int(of_items.max(initial=0)) + 1
    found = []
    for _ in range(SHUFFLES):
        counts = np.bincount(of_words * wide + rng.permutation(labels)[place])
        counts = np.pad(counts, (0, -len(counts) % wide))
        found.append(mutual_information(counts.reshape(-1, wide).astype(float)))
    return float(np.mean(found))


def mutual_information(table: FloatArray) -> float:
    """Of two labellings, from how often their labels meet."""
    shares = table / max(table.sum(), 1.0)
    return max(0.0, _entropy(shares.sum(axis=1)) + _entropy(shares.sum(axis=0)) - _entropy(shares))


def adjusted(table: FloatArray, chance: float) -> float:
    """Beyond chance, over the larger of both entropies (paper 2, eq. 2); 0 where a task has one label alone."""
    shares = table / max(table.sum(), 1.0)
    room = max(_entropy(shares.sum(axis=1)), _entropy(shares.sum(axis=0))) - chance
    return (mutual_information(table) - chance) / room if room > 1e-12 else 0.0


def _entropy(shares: FloatArray) -> float:
    return float(entr(shares).sum())


def _counts(table: FloatArray, axis: int) -> IntArray:
    counts: IntArray = table.sum(axis=axis).astype(np.int64)
    kept: IntArray = counts[counts > 0]
    return kept
