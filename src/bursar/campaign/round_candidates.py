"""The pool as a strategy sees it: the features of items, the labels still free, and limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bursar.campaign.decisions import ReliabilityRecord
from bursar.campaign.sections import LimitsSection
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.learners.learner import Scores, evaluate
from bursar.ragged import BoolArray, IntArray, Ragged
from bursar.selection import GroupCap, ItemFeatures, Limit, Limits
from bursar.tasks import Classification
from bursar.uncertainty import MEASURES, confidences
from bursar.uncertainty.calibration import calibration_summary


def judged(learner: Learner, test: Corpus) -> tuple[Scores, dict[str, ReliabilityRecord]]:
    """The scores on test items, and the reliability of the model's confidence, by task."""
    if not len(test):
        return {}, {}
    beliefs = learner.predict_proba(test.unlabelled())
    guesses = {name: learner.tasks[name].decode(found) for name, found in beliefs.items()}
    sure = confidences(learner.tasks, beliefs, MEASURES["entropy"])
    trust = {}
    for column, (name, task) in enumerate(learner.tasks.items()):
        known = np.flatnonzero(test.labels[name].present)
        if len(known):
            gold = test.labels[name].rows.take(known)
            right = task.accuracies(gold, guesses[name].take(known), test.words[known])
            trust[name] = ReliabilityRecord(**calibration_summary(sure[known, column], right))
    return evaluate(learner.tasks, test, guesses), trust


# -- features ----------------------------------------------------------------------------------------------------------
def item_features(
    needs: frozenset[str],
    vectors: Callable[[Corpus], NDArray[np.float32]] | None,
    items: Corpus,
    labels: Mapping[str, Ragged | None],
) -> ItemFeatures:
    """The features of items that a strategy needs, with these labels."""
    return ItemFeatures(
        words=items.words if "words" in needs else None,
        vectors=vectors(items) if "vectors" in needs and vectors is not None else None,
        labels=_codes(items, labels) if "labels" in needs else None,
    )


def _codes(items: Corpus, labels: Mapping[str, Ragged | None]) -> IntArray:
    """The class of every item for each classification task, (items, tasks); −1 if it has none."""
    codes = np.full((len(items), len(items.schema)), -1, dtype=np.int64)
    for column, (name, task) in enumerate(items.schema.items()):
        rows = labels[name]
        if isinstance(task, Classification) and rows is not None:
            filled = np.flatnonzero(rows.lengths)
            codes[filled, column] = rows.values[rows.offsets[:-1][filled], 0]
    return codes


# -- limits ----------------------------------------------------------------------------------------------------------
def limits_of(section: LimitsSection, pool: Corpus, guesses: Mapping[str, Ragged], rounds: int = 1) -> Limits:
    """The limits of one or several rounds on the items of a pool."""
    names = list(pool.schema)
    sums = []
    for task, limit in section.tasks.items():
        use = np.zeros((len(pool), len(names)))
        use[:, names.index(task)] = 1
        most = np.inf if limit.at_most is None else float(rounds * limit.at_most)
        sums.append(Limit(f"labels of {task}", use, most, float(rounds * limit.at_least)))
    for who, hours in section.hours.items():
        use = np.zeros((len(pool), len(names)))
        for task, pace in hours.tasks.items():
            use[:, names.index(task)] = pace.per_item + pace.per_word * pool.words
        sums.append(Limit(f"hours of {who}", use, rounds * hours.at_most))
    return Limits(tuple(sums), _groups(section, pool, guesses, rounds))


def _groups(section: LimitsSection, pool: Corpus, guesses: Mapping[str, Ragged], rounds: int) -> GroupCap | None:
    if section.group is None or not len(pool):
        return None
    if section.group.by == "group":
        assert pool.groups is not None
        labels: Sequence[str] | IntArray = pool.groups.tolist()
    else:
        task = section.group.by.removeprefix("label:")
        labels = _codes(pool, {name: guesses.get(name) for name in pool.schema})[:, list(pool.schema).index(task)]
    return GroupCap.of(labels, rounds * section.group.at_most)


def open_labels(
    pool: Corpus, bought: Corpus, declined: Collection[tuple[str, str]] = (), asked: Collection[str] = ()
) -> BoolArray:
    """Which labels may still be bought, (items, tasks): not labelled, not declined, and no request for the item."""
    free = np.ones((len(pool), len(pool.schema)), dtype=bool)
    place = {item: at for at, item in enumerate(pool.ids.tolist())} if len(bought) or declined or asked else {}
    at = np.array([place.get(item, -1) for item in bought.ids.tolist()], dtype=np.int64)
    known = at >= 0
    for column, name in enumerate(pool.schema):
        free[at[known & bought.labels[name].present], column] = False
    for item, task in declined:
        if item in place:
            free[place[item], list(pool.schema).index(task)] = False
    free[[place[item] for item in asked if item in place]] = False
    return free
