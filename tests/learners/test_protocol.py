"""How a training is kept honest with few labels: a floor on updates, averaged weights, slower lower layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.errors import ConfigError
from bursar.learners.settings import Schedule
from bursar.simulation import assistant_corpus
from tests.learners.trainings import Crash, crash_after, made

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(200, seed=5).with_tasks(["intent", "slots"])


@pytest.fixture(scope="module")
def train(corpus):
    return corpus.take(np.arange(48))


@pytest.fixture(scope="module")
def test(corpus):
    return corpus.take(np.arange(100, 200)).unlabelled()


def learned(learner):
    return {name: p.detach().clone() for name, p in learner.models[0].named_parameters() if p.requires_grad}


def test_averaged_weights_are_the_mean_of_the_last_steps(corpus, folder, train):
    seen = []
    learner = made(corpus, folder, average=0.5)

    def after_each_step(stage, done):
        if done < 1:
            seen.append([*learned(learner).values()])

    learner.fit(train, seed=3, progress=after_each_step)
    assert len(seen) == 12
    for at, mean in enumerate(learned(learner).values()):
        torch.testing.assert_close(mean, torch.stack([step[at] for step in seen[6:]]).mean(dim=0))


@pytest.mark.parametrize("crashes", [[2], [8, 2], [11]])
def test_an_averaged_training_that_was_interrupted_ends_in_the_same_bits(
    crashes, corpus, folder, train, test, tmp_path
):
    whole, resumed = (made(corpus, folder, average=0.5) for _ in range(2))
    whole.fit(train, seed=3)
    for calls in crashes:
        with pytest.raises(Crash):
            made(corpus, folder, average=0.5).fit(
                train, seed=3, checkpoint=tmp_path / "training", progress=crash_after(calls)
            )
    resumed.fit(train, seed=3, checkpoint=tmp_path / "training")
    for name, beliefs in whole.predict_proba(test).items():
        np.testing.assert_array_equal(beliefs.values, resumed.predict_proba(test)[name].values)


def test_development_items_choose_between_the_average_and_the_best_evaluation(corpus, folder, train):
    dev = corpus.take(np.arange(60, 100))
    last, mean = made(corpus, folder, patience=100), made(corpus, folder, average=0.9, patience=100)
    found = [learner.fit(train, dev=dev, seed=3).best_score for learner in (last, mean)]
    assert found[1] >= found[0]  # the average is one more to choose from
    assert found[1] == pytest.approx(np.sqrt(np.prod([s[m] for s, m in _main(mean, dev)])))


def _main(learner, dev):
    return [(scores, learner.tasks[name].metric) for name, scores in learner.evaluate(dev).items()]


@pytest.mark.parametrize("items", [1, 5, 16, 48])
def test_few_labels_get_as_many_updates_as_the_floor_asks_for(items, corpus, folder):
    learner = made(corpus, folder, epochs=2, least_steps=20)
    labelled = corpus.take(np.flatnonzero([bool(len(x)) for x in corpus.labels["slots"].rows])[:items])
    assert 20 <= learner.fit(labelled, seed=1).steps < 20 + 3


def test_many_labels_are_seen_as_often_as_epochs_say():
    assert Schedule(epochs=10, least_steps=300).in_epochs(60) == (10, 2)


def test_lower_layers_learn_more_slowly_where_they_are_told_to(corpus, folder, train):
    moved = {}
    for decay in (1.0, 0.1):
        learner = made(corpus, folder, layer_decay=decay, epochs=1, weight_decay=0.0)
        before = dict(learner.encoder.named_parameters())
        learner.fit(train, seed=3)
        after = dict(learner.models[0].encoder.named_parameters())
        for layer in (0, 1):
            name = f"layers.{layer}.inner.weight"
            moved[decay, layer] = float((after[name] - before[name]).detach().abs().mean())
    assert moved[0.1, 0] < 0.3 * moved[1.0, 0]
    assert moved[0.1, 1] > 0.7 * moved[1.0, 1]


@pytest.mark.parametrize("wrong", [{"average": 1.5}, {"layer_decay": -1}, {"least_steps": 1.5}])
def test_wrong_settings_are_named(corpus, folder, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        made(corpus, folder, **wrong)
