"""Judges that predict the pool with the models of sets."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bursar.oracle import LabellingProblem
from bursar.simulation import assistant_corpus
from experiments.studies import judge_models
from experiments.studies.judge_models import NetworkModels, ProbeModels
from tests.oracle.test_network_judge import SMALL, TEXTS, counted_trainings, pictures, problem_of, some_sets

__all__ = ["pictures"]  # a fixture


@pytest.mark.parametrize(("architecture", "task"), [*TEXTS, ("cnn", "label")])
def test_its_beliefs_are_chances_of_every_unit_of_the_pool_and_passes_differ(pictures, architecture, task):
    judge = NetworkModels(pictures if task == "label" else problem_of(task), architecture, options=SMALL)
    (items,) = some_sets(1)
    (beliefs,) = judge.predict_proba(items).values()
    (passes,) = judge.predict_proba(items, passes=3, seed=1).values()
    assert len(beliefs) == 40
    assert beliefs.dense().sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert passes.passes == 3
    assert not np.array_equal(passes.values[0], passes.values[1])
    again = next(iter(judge.predict_proba(items, passes=3, seed=1).values()))
    assert np.array_equal(again.values, passes.values)


def test_what_it_has_learned_beforehand_changes_no_answer_and_is_not_trained_again(monkeypatch):
    sets, problem = some_sets(4), problem_of("intent")
    plain = NetworkModels(problem, "lstm", options=SMALL)
    scores, believed = plain.scores(sets), plain.predict_proba(sets[1], passes=2, seed=1)["intent"].values
    judge = NetworkModels(problem, "lstm", options=SMALL)
    judge.prepare(sets[:3])
    trained = counted_trainings(monkeypatch)
    assert np.array_equal(judge.scores(sets), scores)
    assert np.array_equal(judge.predict_proba(sets[1], passes=2, seed=1)["intent"].values, believed)
    assert sum(trained) == 1


def test_it_keeps_so_many_models_and_no_more(monkeypatch):
    monkeypatch.setattr(judge_models, "KEPT", 3)
    judge = NetworkModels(problem_of("intent"), "aoe", options=SMALL)
    judge.prepare(some_sets(4))
    judge.prepare(some_sets(4, seed=1))
    assert len(judge.kept) == 3


def test_threads_change_no_belief_of_the_probe():
    """They are the same on one thread of BLAS and on two."""
    corpus = assistant_corpus(700, seed=3).with_tasks(["intent"])
    sizes = {"pool": 150, "warm": 20, "aside": 60, "validation": 300, "test": 100}
    problem = LabellingProblem.draw(corpus, sizes, shape=(3, 10), metric="accuracy", seed=0)
    items = np.sort(np.random.default_rng(0).permutation(150)[:30])
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(ProbeModels.of(problem).predict_proba(items, passes=3)["intent"].values)
    assert np.array_equal(*found)
