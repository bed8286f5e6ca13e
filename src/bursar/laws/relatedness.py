"""How related are the tasks of a corpus? Adjusted mutual information of their labels, on items with both.

Two tasks that label words are compared by word, two that label items by item. If one labels words and the other items,
each word gets the label of its item. The words of an item are then not independent, so the mutual information by chance
is measured by shuffling whole items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import entr, gammaln

from bursar.corpus import Corpus
from bursar.errors import ConfigError, SchemaError
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng

FEWEST_ITEMS = 20  # labelled for both tasks
MOST_ITEMS = 5_000  # used; more would only take longer
SHUFFLES = 50  # of items, to measure chance
WIDE = 12.0  # standard deviations about the mean that an expected mutual information is summed over


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
    left_out = {}
    for name in corpus.schema:
        try:
            _codes(corpus.take(np.flatnonzero(corpus.labels[name].present)[:1]), name)
        except SchemaError as wrong:  # its labels have no codes
            left_out[name] = wrong.message
    compared = [name for name in corpus.schema if name not in left_out]
    if len(compared) < 2:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ConfigError(
            f"there are no two tasks to compare{f' ({why})' if why else ''}",
            fix="use a corpus with two tasks that label words or items",
        )
    pairs = []
    for number, (first, second) in enumerate(combinations(compared, 2)):
        numbers = rng(seed, "relatedness", number)
        items = _labelled_for_both(corpus, first, second, numbers)
        pairs.append(_pair(items, (first, second), level, draws, numbers))
    return Relatedness(tuple(pairs), level, left_out)


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


def _codes(items: Corpus, name: str) -> IntArray:
    return items.schema[name].codes(items.labels[name].rows, items.words)


def _pair(items: Corpus, names: tuple[str, str], level: float, draws: int, numbers: np.random.Generator) -> Pair:
    by_word = [items.schema[name].of_words for name in names]
    of = "words" if any(by_word) else "items"
    units = items.words if of == "words" else np.ones(len(items), dtype=np.int64)
    owners = np.repeat(np.arange(len(items)), units)
    first, second = (
        codes if per_word or of == "items" else codes[owners]
        for codes, per_word in zip((_codes(items, name) for name in names), by_word, strict=True)
    )
    high, wide = (int(codes.max(initial=0)) + 1 for codes in (first, second))
    cells = first * wide + second

    def table(times: IntArray) -> FloatArray:
        """The contingency table, with each item counted this many times."""
        found: FloatArray = np.bincount(cells, times[owners], high * wide).astype(float)
        return found.reshape(high, wide)

    whole = table(np.ones(len(items), dtype=np.int64))
    if by_word[0] == by_word[1]:
        counts = (whole.sum(axis=axis).astype(np.int64) for axis in (1, 0))
        chance = expected_mutual_information(*(some[some > 0] for some in counts))
    else:
        of_words, of_items = (second, first) if not by_word[0] else (first, second)
        chance = _shuffled_chance(of_words, of_items, owners, numbers)
    ami = adjusted(whole, chance)
    drawn = numbers.multinomial(len(items), np.full(len(items), 1 / len(items)), size=draws)
    again = np.array([adjusted(table(times), chance) for times in drawn])
    # Items drawn twice inflate the mutual information, so only the spread of the draws is used.
    least, most = (ami + float(end - again.mean()) for end in np.quantile(again, [(1 - level) / 2, (1 + level) / 2]))
    return Pair(names, ami, max(-1.0, least), min(1.0, most), len(items), of)


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
    joint, rows, columns = _entropies(table)
    return max(0.0, rows + columns - joint)


def expected_mutual_information(rows: IntArray, columns: IntArray) -> float:
    """The expected mutual information of two random labellings with these counts (hypergeometric)."""
    total, expected = int(rows.sum()), 0.0
    for a in rows.tolist():
        for b in columns.tolist():
            mean = a * b / total
            spread = np.sqrt(mean * (1 - a / total) * (total - b) / max(1, total - 1))
            low = max(1, a + b - total, int(mean - WIDE * spread - WIDE))
            high = min(a, b, int(mean + WIDE * spread + 4 * WIDE))
            n = np.arange(low, high + 1)
            logs = gammaln(a + 1) + gammaln(b + 1) + gammaln(total - a + 1) + gammaln(total - b + 1)
            logs = logs - gammaln(total + 1) - gammaln(n + 1) - gammaln(a - n + 1) - gammaln(b - n + 1)
            chances = np.exp(logs - gammaln(total - a - b + n + 1))
            expected += float((n / total * np.log(total * n / (a * b)) * chances).sum())
    return expected


def adjusted(table: FloatArray, chance: float) -> float:
    """Adjusted mutual information, normalised by the larger entropy (paper 2, eq. 2); 0 if a task has one label."""
    room = max(_entropies(table)[1:]) - chance
    return (mutual_information(table) - chance) / room if room > 1e-12 else 0.0


def _entropies(table: FloatArray) -> tuple[float, float, float]:
    """The entropies of all cells, of the rows and of the columns."""
    shares = table / max(table.sum(), 1.0)
    return float(entr(shares).sum()), float(entr(shares.sum(axis=1)).sum()), float(entr(shares.sum(axis=0)).sum())
