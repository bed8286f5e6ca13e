"""A judge spread over processes says what it would say here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bursar.compute import HERE, Processes
from bursar.oracle import Plan, ProbeJudge, Problem, search
from bursar.oracle.spread import SpreadJudge
from bursar.simulation import assistant_corpus

SIZES = {"pool": 60, "warm": 12, "aside": 20, "validation": 60, "test": 60}


@dataclass(frozen=True)
class Assistant:
    """A probe on some of the built-in corpus."""

    seed: int

    def __call__(self):
        corpus = assistant_corpus(240, seed=3).with_tasks(["intent"])
        return ProbeJudge.of(Problem.draw(corpus, SIZES, batches=3, size=4, metric="accuracy", seed=self.seed))


@pytest.fixture(scope="module")
def spread():
    with Processes(2) as engine:
        yield SpreadJudge(Assistant(1), engine)


def test_it_says_to_the_bit_what_the_judge_would_say(spread):
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.permutation(60)[:n]) for n in (4, 8, 12, 4, 8)]
    for part in ("validation", "test"):
        assert np.array_equal(spread.scores(sets, part), spread.here.scores(sets, part))
    assert spread.scores([], "test").shape == (0,)


def test_a_search_with_it_is_the_search_without(spread):
    plan = Plan(40, 10, cooling=10.0)
    alone = search(Assistant(1)(), 3, 4, plan, seed=5)
    assert search(spread, 3, 4, plan, seed=5).as_json() == alone.as_json()


def test_with_one_worker_nothing_is_sent_anywhere():
    judge = SpreadJudge(Assistant(1), HERE)
    assert judge.at_once == judge.here.at_once
    assert judge.scores([np.arange(4)]).shape == (1,)


def test_workers_are_asked_about_as_many_sets_as_all_of_them_like(spread):
    assert spread.at_once == 2 * spread.here.at_once
