"""How far people who labelled the same items agree: Cohen's kappa, Krippendorff's alpha, F1 of spans. Pure functions.

Labels are the JSON labels of tasks. Where a label is one choice an item, the item is what people are compared on;
where it is spans or heads, its words are. Numbers have distances, so alpha takes those.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from bursar.tasks import Task

Unit = Mapping[str, Hashable]  # what each person said of one thing, by name


@dataclass(frozen=True)
class Answer:
    """What one person said of one item for one task; ``words`` is the item's number of words."""

    item: str
    person: str
    label: Any
    words: int = 0


@dataclass(frozen=True)
class Agreement:
    """How far people agree on one task. A figure is ``None`` where it does not exist for the task or these answers."""

    items: int  # that two or more people answered
    people: int
    cohen: float | None = None  # the mean over pairs of people, by what they share
    krippendorff: float | None = None
    span_f1: float | None = None
    same: float | None = None  # share of pairs of answers that are alike altogether


def agreement(task: Task, answers: Iterable[Answer]) -> Agreement:
    """How far people agree on one task; only items with two answers or more count.

    >>> from bursar.tasks import Classification
    >>> said = [Answer("u1", "ann", "a"), Answer("u1", "bob", "a"), Answer("u2", "ann", "b"), Answer("u2", "bob", "a")]
    >>> agreement(Classification("intent", ("a", "b")), said)
    Agreement(items=2, people=2, cohen=0.0, krippendorff=0.0, span_f1=None, same=0.5)
    """
    shared = shared_answers(answers)
    people = len({person for said in shared.values() for person in said})
    if not shared:
        return Agreement(0, people)
    words = {item: max(answer.words for answer in said.values()) for item, said in shared.items()}
    labels = {item: {who: answer.label for who, answer in said.items()} for item, said in shared.items()}
    same = _share_alike(labels.values())
    if task.kind == "regression":
        alpha = krippendorff_interval([list(said.values()) for said in labels.values()])
        return Agreement(len(shared), people, None, alpha, None, same)
    f1 = span_f1(labels.values()) if has_spans(task) else None
    if task.kind == "relations":  # no choice a unit: the pairs that somebody may link are not written down
        return Agreement(len(shared), people, None, None, f1, same)
    units = [unit for item, said in labels.items() for unit in units_of(task, said, words[item])]
    alpha = krippendorff_nominal([list(unit.values()) for unit in units])
    return Agreement(len(shared), people, mean_cohen(units), alpha, f1, same)


def has_spans(task: Task) -> bool:
    """Whether a task's label is a set of things that are marked, some of which two people may share."""
    return task.kind == "relations" or (task.kind == "tagging" and not getattr(task, "every_word", False))


def shared_answers(answers: Iterable[Answer]) -> dict[str, dict[str, Answer]]:
    """By item and person, the newest answers of items that two people or more answered."""
    by_item: dict[str, dict[str, Answer]] = defaultdict(dict)
    for answer in answers:
        by_item[answer.item][answer.person] = answer
    return {item: said for item, said in by_item.items() if len(said) > 1}


def units_of(task: Task, said: Mapping[str, Any], words: int) -> list[dict[str, Hashable]]:
    """What people are compared on: the item where there is one choice for it, else its words one by one.

    >>> from bursar.tasks import Tagging
    >>> units_of(Tagging("slots", ("time",)), {"ann": [[1, 3, "time"]], "bob": []}, 3)
    [{'ann': '', 'bob': ''}, {'ann': 'time', 'bob': ''}, {'ann': 'time', 'bob': ''}]
    """
    if task.kind == "classification":
        return [{who: str(label) for who, label in said.items()}]
    if task.kind == "tagging" and has_spans(task):
        tags = {who: _tags(label, words) for who, label in said.items()}
    else:  # a label, or a head and a label, for every word
        tags = {who: [_fixed(word) for word in label] for who, label in said.items()}
    return [dict(zip(tags, column, strict=True)) for column in zip(*tags.values(), strict=True)]


def _tags(spans: Sequence[Any], words: int) -> list[Hashable]:
    """The labels over each word; where spans are nested, all of them together."""
    over: list[set[str]] = [set() for _ in range(words)]
    for start, end, label in spans:
        for word in range(start, end):
            over[word].add(label)
    return [" + ".join(sorted(labels)) for labels in over]


# -- two people ------------------------------------------------------------------------------------------------------
def cohen(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two people who labelled the same things: agreement beyond chance over the most there could be.

    ``None`` where both gave one and the same label to everything, for chance then leaves nothing to be better at.

    >>> cohen(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.5
    """
    if not first:
        return None
    n = len(first)
    alike = sum(a == b for a, b in zip(first, second, strict=True)) / n
    mine, yours = Counter(first), Counter(second)
    chance = sum(count * yours[label] for label, count in mine.items()) / n**2
    return None if chance == 1 else (alike - chance) / (1 - chance)


def mean_cohen(units: Sequence[Unit]) -> float | None:
    """The mean of Cohen's kappa over all pairs of people, each by the number of things that both labelled."""
    people = sorted({who for unit in units for who in unit})
    total, weight = 0.0, 0
    for one, other in combinations(people, 2):
        both = [unit for unit in units if one in unit and other in unit]
        kappa = cohen([unit[one] for unit in both], [unit[other] for unit in both])
        if kappa is not None:
            total, weight = total + kappa * len(both), weight + len(both)
    return total / weight if weight else None


def span_f1(items: Iterable[Mapping[str, Any]]) -> float | None:
    """F1 between people over all pairs that share an item: twice what both marked over what either did.

    It takes no side: F1 is the same whichever of two people is taken for the truth. ``None`` if nobody marked anything.

    >>> span_f1([{"ann": [[0, 1, "x"], [2, 3, "x"]], "bob": [[0, 1, "x"]]}])
    0.6666666666666666
    """
    both = either = 0
    for said in items:
        marked = [{_fixed(entry) for entry in label} for label in said.values()]
        for mine, yours in combinations(marked, 2):
            both += 2 * len(mine & yours)
            either += len(mine) + len(yours)
    return both / either if either else None


# -- any number of people --------------------------------------------------------------------------------------------
def krippendorff_nominal(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha of labels that are alike or not; people may be missing anywhere.

    ``None`` where nothing was labelled twice, or everything alike, so that there is no disagreement to expect.

    >>> krippendorff_nominal([["a", "a"], ["b", "b"], ["a", "b"], ["b"]])
    0.4444444444444444
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
    """Krippendorff's alpha of numbers, whose squared distance is how far people disagree.

    >>> krippendorff_interval([[1, 1], [2, 2], [3, 3]])
    1.0
    """
    shared = [np.asarray(values, dtype=float) for values in units if len(values) > 1]
    if not shared:
        return None
    pooled = np.concatenate(shared)
    middle, n = pooled.mean(), len(pooled)
    expected = _squares(pooled - middle)
    if expected <= (4 * n * np.finfo(float).eps * np.abs(pooled).max()) ** 2:  # all alike, but for rounding
        return None
    observed = sum(_squares(values - middle) / (len(values) - 1) for values in shared)
    return float(1 - observed * (n - 1) / expected)


def _squares(values: Any) -> float:
    """Σ (a − b)² over all ordered pairs of values."""
    return float(2 * len(values) * (values**2).sum() - 2 * values.sum() ** 2)


# -- small things ----------------------------------------------------------------------------------------------------
def _share_alike(items: Iterable[Mapping[str, Any]]) -> float:
    pairs = [
        _comparable(mine) == _comparable(yours) for said in items for mine, yours in combinations(said.values(), 2)
    ]
    return sum(pairs) / len(pairs)


def alike(labels: Iterable[Any]) -> bool:
    """Whether all of these labels say the same; spans may stand in any order.

    >>> alike([[[0, 1, "x"], [2, 3, "y"]], [[2, 3, "y"], [0, 1, "x"]]]), alike(["a", "b"])
    (True, False)
    """
    found = [_comparable(label) for label in labels]
    return all(label == found[0] for label in found)


def _comparable(label: Any) -> Hashable:
    """A label such that those that say the same are equal. Spans stand in any order, words in theirs."""
    fixed = _fixed(label)
    spans = isinstance(label, list) and label and isinstance(label[0], list) and len(label[0]) == 3
    return frozenset(fixed) if spans and isinstance(fixed, tuple) else fixed


def _fixed(value: Any) -> Hashable:
    """JSON as something that can stand in a set."""
    return tuple(_fixed(entry) for entry in value) if isinstance(value, list | tuple) else value
