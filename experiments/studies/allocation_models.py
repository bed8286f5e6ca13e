"""The models of the study of splits: draws of its data sets, and what the labels of a split bring."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from bursar.allocation import Informativeness, ReductionRate, Split, SplitEstimates, SplitProblem
from bursar.allocation.rates import only
from bursar.compute import ProgressCallback
from bursar.corpus import Corpus, read
from bursar.corpus.corpus import concatenate
from bursar.errors import AllocationError
from bursar.learners import Learner, make_learner
from bursar.ragged import IntArray
from experiments.studies.allocation_settings import DRAW, setting_of
from experiments.studies.arms import Place, corpus_of
from experiments.studies.defaults import with_defaults_of_then
from experiments.studies.kept import kept

Round = Callable[[Mapping[str, Any]], dict[str, Any]]  # a unit to its result, which may be there already


# -- a draw of a data set ----------------------------------------------------------------------------------------------
@lru_cache(maxsize=2)
def drawn(data: str, seed: int, folder: Path) -> tuple[Corpus, Corpus, Corpus]:
    """Seed items, the pool that more can be bought of, and test items."""
    setting = setting_of(data)
    corpus = _corpus(data, folder)
    rng = np.random.default_rng([seed, 71])
    if "test" in corpus.splits:
        train, test = (rng.permutation(corpus.in_split(split)) for split in ("train", "test"))
    else:
        train = rng.permutation(len(corpus))
        train, test = train[setting.test :], train[: setting.test]
    cuts = train[: setting.seed], train[setting.seed : setting.seed + setting.pool], test[: setting.test]
    return tuple(corpus.take(np.sort(part)) for part in cuts)  # type: ignore[return-value]


@lru_cache(maxsize=1)
def _corpus(data: str, folder: Path) -> Corpus:
    setting = setting_of(data)
    if setting.corpus == "faces":
        return read(folder / "cmu_faces", images="img32x30").with_tasks(list(setting.tasks))
    return corpus_of(setting.corpus, folder, setting.tasks)


@lru_cache(maxsize=1)
def _learner(data: str, folder: Path, options: str) -> Learner:
    """One learner for the trainings that follow one another: it remembers what its frozen layers made of the items."""
    name = setting_of(data).learner
    return make_learner(name, _corpus(data, folder).schema, with_defaults_of_then(json.loads(options), name))


def learner_for(unit: Mapping[str, Any], place: Place) -> Learner:
    """The learner of a unit's data set."""
    return _learner(unit["data"], place.data, json.dumps(unit["learner"], sort_keys=True))


# -- what is to be split -----------------------------------------------------------------------------------------------
def estimates_in(known: Mapping[str, Any], way: str, tasks: tuple[str, ...]) -> SplitEstimates:
    """What a unit of estimates found in one way."""
    found = known["ways"][way]
    informs = Informativeness(tasks, np.array(found["value"]), np.array(found["error"]))
    return SplitEstimates(informs, {name: ReductionRate(*found["rates"][name]) for name in tasks})


def problem_of(
    unit: Mapping[str, Any], estimates: SplitEstimates, room: int, importance: Sequence[float] = ()
) -> SplitProblem:
    """A unit's budget at its prices, for labels of so many items of the pool."""
    return SplitProblem(
        estimates,
        prices=tuple(unit["prices"]),
        budget=unit["budget"],
        most=(room,) * len(unit["prices"]),
        joint=unit["joint"],
        importance=tuple(importance),
    )


# -- what labels bring -------------------------------------------------------------------------------------------------
def trained_splits(
    splits: Mapping[str, Split], unit: Mapping[str, Any], tell: ProgressCallback, place: Place
) -> dict[str, dict[str, Any]]:
    """What each split buys, and how good a model of that is."""
    found = {}
    for done, (name, split) in enumerate(splits.items()):
        tell((name, done / len(splits)))
        found[name] = {
            "counts": list(split.counts),
            "together": split.together,
            "cost": split.cost,
            "predicted": round(split.total, 3),
            "scores": model_scores(unit, split.counts, split.together, place),
        }
    return found


def model_scores(unit: Mapping[str, Any], counts: Sequence[int], both: int, place: Place) -> dict[str, float]:
    """The test scores of a model of the seed and of so many more labels of each task; trained once a draw."""
    wanted = {name: unit[name] for name in DRAW} | {"counts": list(counts), "together": both}
    return kept(trained, wanted, place, lambda _: trained(wanted, place=place))


def trained(unit: Mapping[str, Any], *, place: Place) -> dict[str, float]:
    """Train a model on what a split buys."""
    seeds, pool, test = drawn(unit["data"], unit["seed"], place.data)
    items = labelled(seeds, pool, unit["counts"], unit["together"], unit["seed"])
    learner = learner_for(unit, place)
    learner.fit(items, seed=unit["seed"])
    scores = learner.evaluate(test)
    return {name: round(scores[name][task.metric], 5) for name, task in learner.tasks.items()}


def labelled(seeds: Corpus, pool: Corpus, counts: Sequence[int], both: int, seed: int) -> Corpus:
    """Seed items with all labels, and random items with those that were bought: a larger split has a smaller one's.

    The first ``both`` items are labelled for all tasks; what a task has beyond them is of other items, drawn for it.
    """
    shared = np.random.default_rng([seed, 79]).permutation(len(pool))[:both]
    there = {}
    for at, (name, count) in enumerate(zip(pool.schema, counts, strict=True)):
        order = np.random.default_rng([seed, 83, at]).permutation(len(pool))
        more = order[~np.isin(order, shared)][: count - both]
        there[name] = _mask(len(pool), np.concatenate([shared, more]))
    bought = pool.with_labels({name: only(pool.labels[name], mask) for name, mask in there.items()})
    return concatenate([seeds, bought.take(np.flatnonzero(np.any(list(there.values()), axis=0)))])


def _mask(length: int, places: IntArray) -> Any:
    found = np.zeros(length, dtype=bool)
    found[places] = True
    return found


# -- agreement of measurements ---------------------------------------------------------------------------------------
def agreement(a: Informativeness, b: Informativeness) -> float:
    """Spearman's correlation of two measurements over all pairs of different tasks; 0 if one of them is constant.

    >>> one = Informativeness(("a", "b"), np.array([[1, 0.5], [0.2, 1]]), np.zeros((2, 2)))
    >>> other = Informativeness(("b", "a"), np.array([[1, 0.1], [0.9, 1]]), np.zeros((2, 2)))
    >>> round(agreement(one, other), 6)
    1.0
    """
    if set(a.tasks) != set(b.tasks):
        raise AllocationError(f"measurements of {', '.join(a.tasks)} and of {', '.join(b.tasks)} cannot be compared")
    if len(a.tasks) < 2:
        raise AllocationError("one task alone cannot inform another", fix="measure two tasks or more")
    same = [b.tasks.index(task) for task in a.tasks]
    pairs = ~np.eye(len(a.tasks), dtype=bool)
    ranks = [rankdata(value[pairs]) for value in (a.value, b.value[np.ix_(same, same)])]
    centred = [rank - rank.mean() for rank in ranks]
    scale = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / scale if scale > 0 else 0.0
