"""A judge spread over processes or a cluster says what it would say here."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import dataclass
from multiprocessing import active_children

import numpy as np
import pytest

from bursar.compute import THIS_PROCESS, Processes, make_engine
from bursar.oracle import LabellingProblem, ProbeJudge, ScoreCache, SearchPlan, search
from bursar.oracle.judge import BatchStream
from bursar.oracle.network import NetworkJudge, NetworkStream
from bursar.oracle.parallel_judge import PackedJudge, ParallelJudge, made
from bursar.oracle.search import SearchOptions
from bursar.simulation import assistant_corpus
from tests.compute.nodes import await_both

SIZES = {"pool": 60, "warm": 12, "aside": 20, "validation": 60, "test": 60}


@dataclass(frozen=True)
class Assistant:
    """A probe on some of the built-in corpus."""

    seed: int

    def __call__(self):
        corpus = assistant_corpus(240, seed=3).with_tasks(["intent"])
        return ProbeJudge.of(LabellingProblem.draw(corpus, SIZES, shape=(3, 4), metric="accuracy", seed=self.seed))


@pytest.fixture(scope="module")
def spread():
    with Processes(2) as engine:
        yield ParallelJudge(Assistant(1), engine)


def test_it_says_to_the_bit_what_the_judge_would_say(spread):
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.permutation(60)[:n]) for n in (4, 8, 12, 4, 8)]
    for part in ("validation", "test"):
        assert np.array_equal(spread.scores(sets, part), spread.here.scores(sets, part))
    assert spread.scores([], "test").shape == (0,)


def test_a_search_with_it_is_the_search_without(spread):
    plan = SearchPlan(40, 10, cooling=10.0)
    alone = search(Assistant(1)(), (3, 4), plan, seed=5)
    assert search(spread, (3, 4), plan, seed=5).as_json() == alone.as_json()


def test_with_one_worker_nothing_is_sent_anywhere():
    judge = ParallelJudge(Assistant(1), THIS_PROCESS)
    assert judge.at_once == judge.here.at_once
    assert judge.scores([np.arange(4)]).shape == (1,)


def test_workers_are_asked_about_as_many_sets_as_all_of_them_like(spread):
    assert spread.at_once == 2 * spread.here.at_once


# -- networks ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def packed():
    problem = LabellingProblem.draw(
        assistant_corpus(400, seed=3).with_tasks(["intent"]), SIZES, shape=(3, 4), metric="accuracy", seed=1
    )
    return PackedJudge.of("aoe", problem, seed=2)


def test_what_is_sent_makes_the_judge_of_the_whole_corpus(packed):
    corpus = assistant_corpus(400, seed=3).with_tasks(["intent"])
    judge = NetworkJudge(LabellingProblem.draw(corpus, SIZES, shape=(3, 4), metric="accuracy", seed=1), "aoe", seed=2)
    sent = packed()
    assert len(sent.problem.corpus) == sum(SIZES.values()) < len(corpus)
    sets = [np.arange(8), np.arange(20, 24)]
    parts = ["validation", "test"]
    assert np.array_equal(sent.scores_on(sets, parts), judge.scores_on(sets, parts))


def test_a_copy_of_what_was_sent_needs_no_second_judge(packed):
    again = pickle.loads(pickle.dumps(packed))
    assert again is not packed
    assert made(again) is made(packed)


def test_a_search_with_networks_is_the_same_here_in_processes_and_on_a_cluster(packed, nodes):
    found, here, before = [], [], active_children()
    for name in ("here", "processes:2", nodes.doors["direct"]):
        with make_engine(name) as engine:
            if name == nodes.doors["direct"]:
                await_both(engine)
            judge = ParallelJudge(packed, engine)
            memory, asked = ScoreCache(judge), _counted(judge)
            state = search(
                judge, (3, 4), SearchPlan(12, 4, cooling=20.0), seed=5, options=SearchOptions(cache=memory)
            ).as_json()
            found.append({key: state[key] for key in ("best", "best_curve", "order", "accepted", "history")})
            here.append(asked() / memory.trained)
        assert set(active_children()) <= set(before)
    assert found[0] == found[1] == found[2]
    assert max(here[1:]) < 0.5  # what is elsewhere is not done here


def _counted(judge):
    """How many sets a spread judge has judged by itself, when asked for many at a time."""
    counts, real = [], judge.here.scores_on
    judge.here = copy(judge.here)
    judge.here.scores_on = lambda sets, parts: counts.append(len(sets)) or real(sets, parts)
    return lambda: sum(counts)


def test_where_workers_are_not_of_this_machine_questions_are_asked_in_rounds(packed):
    class Far:
        workers = 2

    assert isinstance(ParallelJudge(packed, Far()).stream(), BatchStream)
    assert isinstance(ParallelJudge(packed, THIS_PROCESS).stream(), NetworkStream)
