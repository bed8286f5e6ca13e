"""Thinned passes, and temperatures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.errors import LearnerError
from bursar.learners.encoders.huggingface import BertEncoder
from bursar.learners.examples import HIGHEST, LOWEST, fit_temperature
from bursar.uncertainty import MEASURES
from tests.learners.trainings import TASKS, made, restored

pytestmark = pytest.mark.usefixtures("one_thread")


# -- thinned passes ---
def test_the_order_of_prediction_and_the_company_do_not_change_a_thinned_pass(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    whole = learner.predict_proba(test, passes=4, seed=2)
    order = np.random.default_rng(0).permutation(len(test))
    shuffled = learner.predict_proba(test.take(order), passes=4, seed=2)
    for name in TASKS:
        np.testing.assert_array_equal(whole[name].take(order).values, shuffled[name].values)
        alone = learner.predict_proba(test.take(np.array([3])), passes=4, seed=2)[name]
        np.testing.assert_allclose(whole[name].take(np.array([3])).values, alone.values, atol=1e-6)


def test_thinned_passes_differ_from_each_other_and_with_the_seed(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    first, again, other = (learner.predict_proba(test, passes=3, seed=s)["intent"].values for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert not np.allclose(first[0], first[1])
    plain = learner.predict_proba(test)["intent"].values
    np.testing.assert_array_equal(plain, learner.predict_proba(test)["intent"].values)  # nothing stays thinned


@pytest.mark.parametrize("frozen", [0, 1])
def test_thinned_passes_share_what_has_no_dropout(frozen, corpus, folder, train, test, monkeypatch):
    learner = made(corpus, folder, frozen_layers=frozen)
    learner.fit(train)
    counts = {"embed": 0, "attend": 0}
    embed, begin = BertEncoder.embed, BertEncoder.begin

    def counted(name, old):
        def call(self, *a):
            counts[name] += 1
            return old(self, *a)

        return call

    monkeypatch.setattr(BertEncoder, "embed", counted("embed", embed))
    monkeypatch.setattr(BertEncoder, "begin", counted("attend", begin))
    learner.predict_proba(test, passes=10)
    assert counts == {"embed": 1, "attend": 1}  # one batch: once each, not ten times


def test_beginning_a_layer_early_changes_nothing(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    model = learner.models[0]
    with torch.no_grad():
        batch = model.encoder.batch(learner.cache.read(test))
        hidden = model.encoder.embed(batch)
        begun = model.encoder.begin(hidden, batch, 0)
        torch.testing.assert_close(
            model.encode(hidden, batch, TASKS, begun)["slots"].words,
            model.encode(hidden, batch, TASKS)["slots"].words,
            atol=0,
            rtol=0,
        )


def test_confidence_is_that_of_the_beliefs_part_by_part(corpus, folder, train, test, monkeypatch):
    monkeypatch.setattr("bursar.learners.learner.ITEMS_PER_CHUNK", 7)
    learner = made(corpus, folder)
    learner.fit(train)
    observed = []
    found = learner.confidence(test, "dropout-agreement", seed=4, progress=lambda what, done: observed.append(done))
    beliefs = learner.predict_proba(test, passes=10, seed=4)
    measure = MEASURES["dropout-agreement"]
    np.testing.assert_allclose(found, np.stack([measure(beliefs[name]) for name in TASKS], axis=1))
    assert observed == sorted(observed)
    assert observed[-1] == 1.0


def test_no_passes_at_all_are_refused(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    with pytest.raises(LearnerError, match="0 passes"):
        learner.predict_proba(test, passes=0)


# -- temperature ---
def test_the_temperature_is_the_likeliest_of_all(corpus, folder, train, dev):
    learner = made(corpus, folder, temperature=True, smoothing=0.0, epochs=12)
    learner.fit(train, dev=dev)
    assert set(learner.temperatures) == set(TASKS)

    def loss(temperature):
        learner.temperatures = {"intent": temperature}
        chances = learner.predict_proba(dev)["intent"].dense()[0]
        return -np.log(chances[np.arange(len(dev)), dev.labels["intent"].rows.values[:, 0]]).mean()

    fitted = learner.temperatures["intent"]
    assert all(loss(fitted) <= loss(fitted * other) + 1e-6 for other in (0.8, 0.95, 1.05, 1.25))


def test_a_temperature_never_changes_what_is_predicted(corpus, folder, train, dev, test, tmp_path):
    learner = made(corpus, folder, temperature=True)
    learner.fit(train, dev=dev)
    fitted = learner.predict(test)
    learner.save(tmp_path / "model")
    again = restored(learner, tmp_path / "model")
    assert again.temperatures == learner.temperatures
    learner.temperatures = {}
    assert learner.predict(test)["intent"].equals(fitted["intent"])


def test_the_search_for_a_temperature_stays_in_its_bounds():
    assert fit_temperature(lambda t: t) == pytest.approx(LOWEST, rel=1e-3)
    assert fit_temperature(lambda t: -t) == pytest.approx(HIGHEST, rel=1e-3)
