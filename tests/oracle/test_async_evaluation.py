"""Asked set by set, judges say what they say in rounds, and a search goes the same way."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest

from bursar.compute import Processes
from bursar.corpus import CorpusBuilder
from bursar.errors import ComputeError
from bursar.learners.lockstep import Settings
from bursar.oracle import LabellingProblem, SearchPlan, search
from bursar.oracle.judge import key_of
from bursar.oracle.network import NetworkJudge, NetworkOptions
from bursar.oracle.parallel_judge import TRIES, ParallelJudge
from bursar.oracle.search import SearchOptions
from bursar.simulation import assistant_corpus
from tests.oracle.small import SIZES, texts

PLAN = SearchPlan(25, 5, cooling=20.0)


@dataclass(frozen=True)
class Averages:
    """Small networks on requests to an assistant."""

    def __call__(self):
        return judge_of(texts())


def judge_of(problem):
    return NetworkJudge(problem, "aoe", options=NetworkOptions(16, settings=Settings(epochs=6, patience=3, lanes=4)))


def two_tasks():
    """What is asked for, and whether in many words."""
    yes_no = {"kind": "classification", "labels": ["no", "yes"]}
    few = assistant_corpus(400).with_tasks(["intent"])
    builder = CorpusBuilder({"intent": few.schema["intent"].describe(), "long": yes_no})
    for item in (few[at] for at in range(len(few))):
        builder.add(item.id, text=item.text, labels={**item.labels, "long": "yes" if len(item.words) > 8 else "no"})
    return LabellingProblem.draw(builder.build(), SIZES, shape=(3, 5), metric="accuracy", seed=0)


@pytest.fixture(scope="module")
def judge():
    return Averages()()


@pytest.fixture(scope="module")
def spread():
    with Processes(2) as engine:
        yield ParallelJudge(Averages(), engine)


@pytest.fixture(scope="module")
def stream(spread):
    opened = spread.stream()
    yield opened
    opened.close()


def sets_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return [np.sort(rng.permutation(60)[: 5 * (1 + at % 3)]) for at in range(count)]


def all_results(stream, sets):
    wanted = {key_of(items): items for items in sets}
    stream.request(wanted)
    found = {}
    while len(found) < len(wanted):
        found |= stream.results()
    return [found[key_of(items)] for items in sets]


def test_scores_come_as_they_would_in_a_round(judge):
    sets = sets_of(9)
    assert all_results(judge.stream(), sets) == judge.scores(sets).tolist()


def test_a_set_of_several_tasks_has_the_mean_of_their_scores():
    several = judge_of(two_tasks())
    sets = sets_of(4)
    assert all_results(several.stream(), sets) == several.scores(sets).tolist()


def test_what_is_no_longer_wanted_is_not_told_and_changes_nothing(judge):
    sets = sets_of(8)
    stream = judge.stream()
    stream.request({key_of(items): items for items in sets[:6]})
    first = stream.results()
    left = [items for items in sets if key_of(items) not in first]
    assert all_results(stream, left[2:]) == judge.scores(left[2:]).tolist()
    assert stream.results() == {}


def test_processes_say_to_the_bit_what_this_one_would(stream, judge):
    sets = sets_of(10)
    assert all_results(stream, sets[:6]) == judge.scores(sets[:6]).tolist()
    assert all_results(stream, sets[4:]) == judge.scores(sets[4:]).tolist()


def test_a_process_that_is_killed_is_replaced_and_loses_nothing(stream, judge):
    sets = sets_of(6)
    stream.request({key_of(items): items for items in sets})
    os.kill(stream.processes[0].process.pid, signal.SIGKILL)
    assert all_results(stream, sets) == judge.scores(sets).tolist()


def test_processes_that_die_again_and_again_are_given_up(spread):
    stream = spread.stream()

    def all_die():
        for round in range(TRIES):
            for line in stream.processes:
                os.kill(line.process.pid, signal.SIGKILL)
                line.process.join()
            all_results(stream, sets_of(2, seed=round))

    with pytest.raises(ComputeError, match=f"{TRIES} processes"):
        all_die()
    stream.close()


def test_a_search_goes_the_same_way_in_rounds_in_a_stream_and_in_processes(judge, spread):
    found = [
        search(judge, (3, 5), SearchPlan(PLAN.steps, PLAN.greedy_steps, PLAN.cooling, ahead=1), seed=1),
        search(judge, (3, 5), PLAN, seed=1),
        search(spread, (3, 5), PLAN, seed=1),
    ]
    assert len({state.order.batches.tobytes() for state in found}) == 1
    assert len({tuple(state.best_curve) for state in found}) == 1
    assert [state.history for state in found[1:]] == [found[0].history] * 2


def test_a_search_is_taken_up_where_it_was(judge):
    whole = search(judge, (3, 5), PLAN, seed=2)
    half = search(judge, (3, 5), SearchPlan(12, 0, PLAN.cooling), seed=2)
    assert search(judge, (3, 5), PLAN, seed=2, options=SearchOptions(state=half)).history == whole.history
