"""What every registered learner must do, and one that somebody wrote in forty lines."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import LearnerError
from bursar.learners import LEARNERS, catalog, make_learner
from bursar.learners.learner import geometric_mean
from bursar.learners.neural import NeuralLearner
from bursar.simulation import assistant_corpus
from bursar.uncertainty import entropy_confidence
from tests.tiny import WordCounts, tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")

TASKS = ["intent", "slots"]


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(400, seed=3).with_tasks(TASKS)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


IMAGES = ("image-cnn",)  # learners of images, which have tests of their own
TRANSFORMERS = {
    "transformer": {},
    "frozen transformer": {"frozen_layers": 1},
    "single transformers": {"sharing": "single"},
    "gated transformer": {"sharing": "gated"},
    "transformer with temperature": {"temperature": True},
    "transformer with crf": {"heads": {"slots": "crf"}},
}
QUICK = {"epochs": 3, "evaluate_every": 1, "learning_rate": 1e-2}
VARIANTS = {
    **{label: ("transformer", QUICK | options) for label, options in TRANSFORMERS.items()},
    **{name: (name, {"epochs": 3}) for name in ("bilstm", "cnn", "aoe")},
    "logistic probe": ("probe", {"kind": "logistic"}),
    "word counts": (WordCounts, {}),
}
# A learner that is registered later is tested with its defaults.
VARIANTS |= {name: (name, {}) for name in LEARNERS if name not in VARIANTS and name not in IMAGES}


@pytest.fixture(params=VARIANTS)
def make(request, encoder, corpus):
    name, options = VARIANTS[request.param]
    if name in ("transformer", "probe"):
        options = options | {"encoder": encoder}
    return lambda: name(corpus.schema) if name is WordCounts else make_learner(name, corpus.schema, options)


@pytest.fixture
def train(corpus):
    return corpus.split("train").take(np.arange(60))


@pytest.fixture
def dev(corpus):
    return corpus.split("dev").take(np.arange(20))


@pytest.fixture
def test(corpus):
    return corpus.split("test").take(np.arange(30))


def values(beliefs):
    return {name: b.values for name, b in beliefs.items()}


def same(first, second, tolerance=1e-5):
    return all(np.allclose(first[name], second[name], atol=tolerance) for name in TASKS)


def test_beliefs_are_probabilities_for_every_unit_of_every_item(make, train, dev, test):
    learner = make()
    learner.fit(train, dev=dev)
    beliefs = learner.predict_proba(test.unlabelled())
    assert list(beliefs) == TASKS
    assert beliefs["intent"].units.tolist() == [1] * len(test)
    assert beliefs["slots"].units.tolist() == test.words.tolist()
    for belief in beliefs.values():
        np.testing.assert_allclose(belief.dense().sum(axis=-1), 1, atol=1e-4)


def test_the_same_set_and_seed_give_the_same_beliefs_in_any_order(make, train, dev, test):
    first, second = make(), make()
    first.fit(train, dev=dev, seed=4)
    second.fit(train.take(np.random.default_rng(0).permutation(len(train))), dev=dev, seed=4)
    assert same(values(first.predict_proba(test)), values(second.predict_proba(test)), tolerance=0)


def test_fitting_forgets_what_was_learned_before(make, train, dev, test):
    learner, fresh = make(), make()
    learner.fit(train.take(np.arange(30, 60)), dev=dev)
    learner.fit(train.take(np.arange(30)), dev=dev)
    fresh.fit(train.take(np.arange(30)), dev=dev)
    assert same(values(learner.predict_proba(test)), values(fresh.predict_proba(test)), tolerance=0)


def test_the_order_of_prediction_and_the_company_do_not_change_a_score(make, train, dev, test):
    learner = make()
    learner.fit(train, dev=dev)
    whole = {name: entropy_confidence(b) for name, b in learner.predict_proba(test).items()}
    order = np.random.default_rng(1).permutation(len(test))
    shuffled = {name: entropy_confidence(b) for name, b in learner.predict_proba(test.take(order)).items()}
    alone = [
        {n: entropy_confidence(b)[0] for n, b in learner.predict_proba(test.take(np.array([i]))).items()}
        for i in range(8)
    ]
    for name in TASKS:
        np.testing.assert_allclose(whole[name][order], shuffled[name], atol=1e-5)
        np.testing.assert_allclose(whole[name][:8], [scores[name] for scores in alone], atol=1e-5)


def test_labels_of_the_items_asked_about_are_never_looked_at(make, train, dev, test):
    learner = make()
    learner.fit(train, dev=dev)
    assert same(values(learner.predict_proba(test)), values(learner.predict_proba(test.unlabelled())), tolerance=0)


def test_items_may_miss_labels_for_some_tasks(make, train, dev, test):
    half = np.arange(len(train)) % 2 == 0
    labels = {}
    for name, keep in (("intent", half), ("slots", ~half)):
        column = train.labels[name]
        rows = column.rows.take(np.arange(len(train)))
        present = column.present & keep
        lengths = np.where(present, rows.lengths, 0)
        kept = rows.values[np.repeat(present, rows.lengths)]
        labels[name] = type(column)(present, type(rows)(kept, np.concatenate([[0], np.cumsum(lengths)])))
    learner = make()
    report = learner.fit(train.with_labels(labels), dev=dev)
    assert report.items == len(train)
    assert np.isfinite(values(learner.predict_proba(test))["slots"]).all()


def test_a_saved_learner_believes_the_same_when_restored(make, train, dev, test, tmp_path):
    learner, other = make(), make()
    learner.fit(train, dev=dev)
    learner.save(tmp_path / "model")
    other.fit(train.take(np.arange(10)), dev=dev, seed=9)
    other.restore(tmp_path / "model")
    assert same(values(learner.predict_proba(test)), values(other.predict_proba(test)), tolerance=0)


def test_scores_cover_every_task_and_lie_between_0_and_1(make, train, dev, test):
    learner = make()
    learner.fit(train, dev=dev)
    scores = learner.evaluate(test)
    assert set(scores) == set(TASKS)
    assert all(0 <= score <= 1 for task in scores.values() for score in task.values())


def test_no_items_at_all_have_no_beliefs(make, train, dev, test):
    learner = make()
    learner.fit(train, dev=dev)
    beliefs = learner.predict_proba(test.take(np.zeros(0, dtype=np.int64)))
    assert all(len(belief) == 0 for belief in beliefs.values())


def test_progress_is_told_and_ends_at_1(make, train, dev):
    told = []
    make().fit(train, dev=dev, progress=lambda what, done: told.append((what, done)))
    assert told[-1][1] == 1.0
    assert all(0 <= done <= 1 for _, done in told)


def test_a_learner_that_learned_nothing_says_so(encoder, corpus, test):
    with pytest.raises(LearnerError, match="call fit first"):
        NeuralLearner(corpus.schema, encoder=encoder).predict_proba(test)


def test_the_geometric_mean_sacrifices_no_task():
    assert geometric_mean({"a": 1.0, "b": 0.0}) == 0.0
    assert geometric_mean({"a": 0.25, "b": 1.0}) == 0.5


def test_a_learner_is_one_file_that_is_found_without_an_edit_elsewhere(corpus, train, test, tmp_path, monkeypatch):
    lines = ["from bursar.learners import LEARNERS", "from tests.tiny import WordCounts"]
    (tmp_path / "one_file.py").write_text("\n".join([*lines, "LEARNERS.add('one-file', WordCounts)"]))
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(tmp_path)])
    try:
        catalog.discover()
        learner = make_learner("one-file", corpus.schema, {"smoothing": 0.1})
        learner.fit(train)
        learner.save(tmp_path / "model")
        restored = make_learner("one-file", corpus.schema, {"smoothing": 0.1})
        restored.restore(tmp_path / "model")
        assert same(values(learner.predict_proba(test)), values(restored.predict_proba(test)), tolerance=0)
    finally:
        LEARNERS._entries.pop("one-file", None)
