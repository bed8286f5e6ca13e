"""Gradients that point the same way."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.allocation.informativeness import Parts, make_informer
from bursar.allocation.lookahead import Alignment
from bursar.learners import make_learner
from bursar.simulation import assistant_corpus
from tests.allocation.related import ranked, related

pytestmark = pytest.mark.usefixtures("one_thread")


def test_tasks_are_ranked_by_how_related_they_are():
    made = related("slots", (0.0, 0.25, 0.5, 0.75, 1.0), items=100)
    learner = make_learner("aoe", made.corpus.schema, {"epochs": 40})
    found = Alignment(repetitions=3, moments=2).measure(learner, made.corpus)
    assert ranked(found, made) >= 0.8


@pytest.mark.soak
@pytest.mark.parametrize(("network", "task"), [("aoe", "intent"), ("bilstm", "slots")])
def test_tasks_are_ranked_by_how_related_they_are_with_its_usual_settings(network, task):
    ranks = []
    for seed in (31, 32):
        made = related(task, (0.0, 0.25, 0.5, 0.75, 1.0), seed=seed)
        learner = make_learner(network, made.corpus.schema)
        ranks.append(ranked(make_informer("alignment").measure(learner, made.corpus, seed=seed), made))
    assert np.mean(ranks) >= 0.8


def test_cosines_lie_between_minus_1_and_1_and_a_task_is_aligned_with_itself_on_the_same_items():
    items = assistant_corpus(40, seed=3).with_tasks(["intent", "slots", "urgency"])
    learner = make_learner("aoe", items.schema, {"epochs": 2})
    rehearsal = learner.rehearse(items, trained=np.arange(20), known=np.arange(40))
    rehearsal.advance(3)
    same = Parts(np.arange(20), np.arange(20, 40), np.arange(20, 40))
    cosines = Alignment().gains_at(rehearsal, list(items.schema), same, np.random.default_rng(0))
    np.testing.assert_allclose(cosines.diagonal(), 1, atol=1e-5)
    np.testing.assert_allclose(cosines, cosines.T, atol=1e-6)
    assert (np.abs(cosines) <= 1 + 1e-6).all()
