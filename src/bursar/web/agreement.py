"""Inter-annotator agreement: Cohen's kappa, Krippendorff's alpha, pairwise F1 of spans. Pure functions.

Labels are the JSON labels of tasks. The unit of comparison is the item for classification and the word for spans and
heads. For numbers, alpha uses squared distances. Alpha is ours, not that of the package ``krippendorff``, which fills
an array of units × values × values: gigabytes for the words of a few hundred parsed sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.ledger import Answer
from bursar.tasks import Regression, Task

Unit = Mapping[str, Hashable]  # label of one unit by person


@dataclass(frozen=True)
class Agreement:
    """Agreement on one task. A value is ``None`` where it is undefined for the task or these ratings."""

    items: int  # rated by two or more people
    people: int
    cohen: float | None = None  # mean over pairs of people, weighted by shared units
    krippendorff: float | None = None
    span_f1: float | None = None
    same: float | None = None  # share of pairs of answers that are identical


def agreement(task: Task, labels: Mapping[str, Mapping[str, Any]], words: Mapping[str, int]) -> Agreement:
    """Agreement on one task, from labels by item and person and each item's words; single answers do not count."""
    shared = {item: by_person for item, by_person in labels.items() if len(by_person) > 1}
    people = len({person for by_person in shared.values() for person in by_person})
    if not shared:
        return Agreement(0, people)
    pairs = [alike(pair) for by_person in shared.values() for pair in combinations(by_person.values(), 2)]
    same = sum(pairs) / len(pairs)
    if isinstance(task, Regression):
        alpha = krippendorff_interval([list(by_person.values()) for by_person in shared.values()])
        return Agreement(len(shared), people, None, alpha, None, same)
    f1 = span_f1(shared.values()) if task.may_be_empty else None
    units = [unit for item, by_person in shared.items() for unit in units_of(task, by_person, words[item])]
    alpha = krippendorff_nominal([list(unit.values()) for unit in units])
    return Agreement(len(shared), people, mean_cohen(units), alpha, f1, same)


def agreement_by_task(corpus: Corpus, shared: Mapping[str, Mapping[str, Answer]]) -> dict[str, Agreement]:
    """Agreement by task, from the answers by item and person before adjudication."""
    words = dict(zip(shared, corpus.words[corpus.positions(shared)].tolist(), strict=True))

    def given(task: str, answers: Mapping[str, Answer]) -> dict[str, Any]:
        labels = {person: answer.labels.get(task) for person, answer in answers.items()}
        return {person: label for person, label in labels.items() if label is not None}

    return {
        name: agreement(task, {item: given(name, answers) for item, answers in shared.items()}, words)
        for name, task in corpus.schema.items()
    }


def units_of(task: Task, by_person: Mapping[str, Any], words: int) -> list[dict[str, Hashable]]:
    """The units on which people are compared: the item itself, or each of its words; none for other labels."""
    columns = {person: task.compared(label, words) or [] for person, label in by_person.items()}
    return [dict(zip(columns, unit, strict=True)) for unit in zip(*columns.values(), strict=True)]


# -- two people ------------------------------------------------------------------------------------------------------
def cohen(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two people who rated the same units: (observed - chance) / (1 - chance) agreement.

    ``None`` where both gave the same single label to everything, because chance agreement is then 1.
    """
    if not first:
        return None
    n = len(first)
    alike = sum(a == b for a, b in zip(first, second, strict=True)) / n
    mine, yours = Counter(first), Counter(second)
    chance = sum(count * yours[label] for label, count in mine.items()) / n**2
    return None if chance == 1 else (alike - chance) / (1 - chance)


def mean_cohen(units: Sequence[Unit]) -> float | None:
    """Mean of Cohen's kappa over all pairs of people, weighted by the number of units that both rated."""
    people = sorted({person for unit in units for person in unit})
    total, weight = 0.0, 0
    for one, other in combinations(people, 2):
        both = [unit for unit in units if one in unit and other in unit]
        kappa = cohen([unit[one] for unit in both], [unit[other] for unit in both])
        if kappa is not None:
            total, weight = total + kappa * len(both), weight + len(both)
    return total / weight if weight else None


def span_f1(items: Iterable[Mapping[str, Any]]) -> float | None:
    """Pairwise F1 over all pairs of people that share an item: 2 |A ∩ B| / (|A| + |B|).

    Symmetric: it does not matter who is taken as the reference. ``None`` if nothing was marked.
    """
    both = either = 0
    for by_person in items:
        marked = [{_hashable(entry) for entry in label} for label in by_person.values()]
        for mine, yours in combinations(marked, 2):
            both += 2 * len(mine & yours)
            either += len(mine) + len(yours)
    return both / either if either else None


# -- any number of people --------------------------------------------------------------------------------------------
def krippendorff_nominal(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal labels; ratings may be missing.

    ``None`` where no unit has two ratings, or all ratings are equal, so that no disagreement is expected.
    """
    observed, totals = 0.0, Counter[Hashable]()
    for values in units:
        if len(values) > 1:
            counts = Counter(values)
            observed += sum(n * (len(values) - n) for n in counts.values()) / (len(values) - 1)
            totals.update(counts)
    n = sum(totals.values())
    expected = sum(count * (n - count) for count in totals.values())
    return None if not expected else 1 - observed * (n - 1) / expected


def krippendorff_interval(units: Iterable[Sequence[float]]) -> float | None:
    """Krippendorff's alpha for interval data, with squared distance as the disagreement."""
    shared = [np.asarray(values, dtype=float) for values in units if len(values) > 1]
    if not shared:
        return None
    pooled = np.concatenate(shared)
    middle, n = pooled.mean(), len(pooled)
    expected = _squares(pooled - middle)
    if expected <= (4 * n * np.finfo(float).eps * np.abs(pooled).max()) ** 2:  # all equal up to rounding
        return None
    observed = sum(_squares(values - middle) / (len(values) - 1) for values in shared)
    return float(1 - observed * (n - 1) / expected)


def _squares(values: Any) -> float:
    """Σ (a − b)² over all ordered pairs of values."""
    return float(2 * len(values) * (values**2).sum() - 2 * values.sum() ** 2)


# -- comparing labels ------------------------------------------------------------------------------------------------
def alike(labels: Iterable[Any]) -> bool:
    """Whether all labels are equal; the order of spans does not matter."""
    found = [_comparable(label) for label in labels]
    return all(label == found[0] for label in found)


def _comparable(label: Any) -> Hashable:
    """A hashable form in which equal labels compare equal. Spans are unordered, words are ordered."""
    fixed = _hashable(label)
    spans = isinstance(label, list) and label and isinstance(label[0], list) and len(label[0]) == 3
    return frozenset(fixed) if spans and isinstance(fixed, tuple) else fixed


def _hashable(value: Any) -> Hashable:
    """JSON with lists turned into tuples."""
    return tuple(_hashable(entry) for entry in value) if isinstance(value, list | tuple) else value
