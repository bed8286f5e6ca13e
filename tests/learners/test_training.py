"""Trainings that are interrupted, taken up again, and steered by a policy; thinned passes; temperatures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bursar.curriculum import FixedPolicy
from bursar.errors import CheckpointError, LearnerError
from bursar.learners.calibration import HIGHEST, LOWEST, fit_temperature
from bursar.learners.encoders.bert import BertEncoder
from bursar.learners.neural import NeuralLearner
from bursar.learners.training import batches
from bursar.ragged import Strings
from bursar.simulation import assistant_corpus
from bursar.uncertainty import MEASURES
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")
TASKS = ["intent", "slots"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(600, seed=5).with_tasks(TASKS)


@pytest.fixture
def train(corpus):
    return corpus.split("train").take(np.arange(50))


@pytest.fixture
def dev(corpus):
    return corpus.split("dev").take(np.arange(20))


@pytest.fixture
def test(corpus):
    return corpus.split("test").take(np.arange(25))


def made(corpus, folder, **more):
    usual = {"epochs": 4, "evaluate_every": 1, "learning_rate": 1e-2, "checkpoint_seconds": 0.0}
    return NeuralLearner(corpus.schema, encoder=str(folder), **(usual | more))


class Watchful(FixedPolicy):
    """A policy whose weights depend on all that it has observed."""

    def __init__(self):
        super().__init__({"intent": 1.0, "slots": 1.0})

    def observe(self, task, before, after, step):
        self.weights[task] = 0.9 * self.weights[task] + before


class Crash(Exception):
    pass


def crash_after(calls):
    left = [calls]

    def progress(what, done):
        left[0] -= what == "training"
        if left[0] < 0:
            raise Crash

    return progress


# -- interrupted and taken up again ---
@pytest.mark.parametrize("sharing", ["shared", "single", "gated"])
@pytest.mark.parametrize("policy", [None, Watchful])
@pytest.mark.parametrize("crashes", [[1], [6, 3], [11]])
def test_a_training_that_was_interrupted_ends_in_the_same_bits(
    sharing, policy, crashes, corpus, folder, train, dev, test, tmp_path
):
    whole = made(corpus, folder, sharing=sharing)
    report = whole.fit(train, dev=dev, seed=3, policy=policy and policy())
    file = tmp_path / "training"
    for calls in crashes:
        with pytest.raises(Crash):
            made(corpus, folder, sharing=sharing).fit(
                train, dev=dev, seed=3, policy=policy and policy(), checkpoint=file, progress=crash_after(calls)
            )
    resumed = made(corpus, folder, sharing=sharing)
    steps = []
    again = resumed.fit(
        train,
        dev=dev,
        seed=3,
        policy=policy and policy(),
        checkpoint=file,
        progress=lambda what, done: steps.append(what == "training"),
    )
    assert again == report
    for name, beliefs in whole.believe(test).items():
        np.testing.assert_array_equal(beliefs.values, resumed.believe(test)[name].values)
    assert not list(tmp_path.iterdir())  # the checkpoint is gone when it is no longer needed
    fresh = []
    made(corpus, folder, sharing=sharing).fit(
        train, dev=dev, seed=3, progress=lambda what, done: fresh.append(what == "training")
    )
    assert sum(steps) < sum(fresh)  # work that was done was not done again


def interrupted(corpus, folder, train, file):
    with pytest.raises(Crash):
        made(corpus, folder).fit(train, checkpoint=file, progress=crash_after(5))
    assert file.exists()


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "flipped"])
def test_a_damaged_checkpoint_is_refused_with_a_way_out(damage, corpus, folder, train, tmp_path):
    file = tmp_path / "training"
    interrupted(corpus, folder, train, file)
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[: len(content) // 2] = bytes(255 - byte for byte in content[: len(content) // 2])
    bad = {"cut": content[: len(content) // 2], "garbage": b"not this", "empty": b"", "flipped": bytes(flipped)}
    file.write_bytes(bad[damage])
    with pytest.raises(CheckpointError, match=r"is damaged.*delete it"):
        made(corpus, folder).fit(train, checkpoint=file)


@pytest.mark.parametrize("other", ["seed", "items", "settings", "policy", "texts"])
def test_a_checkpoint_of_another_training_is_refused(other, corpus, folder, train, tmp_path):
    file = tmp_path / "training"
    interrupted(corpus, folder, train, file)
    learner = made(corpus, folder, epochs=5 if other == "settings" else 4)
    items = train.take(np.arange(40)) if other == "items" else train
    if other == "texts":  # the same ids and labels on other words
        strings = Strings.of([text.replace("e", "a") for text in train.texts.strings.tolist()])
        items = replace(train, texts=replace(train.texts, strings=strings))
    policy = FixedPolicy({"intent": 1.0}) if other == "policy" else None
    with pytest.raises(CheckpointError, match="another training"):
        learner.fit(items, checkpoint=file, seed=1 if other == "seed" else 0, policy=policy)


def test_nothing_is_written_where_no_checkpoint_is_due(corpus, folder, train, tmp_path):
    learner = made(corpus, folder, checkpoint_seconds=1000.0)
    seen = []
    learner.fit(train, checkpoint=tmp_path / "x", progress=lambda *a: seen.extend(tmp_path.iterdir()))
    assert not seen


# -- which task a step trains on ---
def test_a_policy_gets_a_whole_batch_of_the_task_that_it_draws(corpus, folder, train):
    """Slots are labelled for few items, and still every step of theirs has as many as a batch holds."""
    few = np.arange(len(train)) < 20
    rows = train.labels["slots"].rows
    kept = type(rows)(rows.values[np.repeat(few, rows.lengths)], np.cumsum([0, *np.where(few, rows.lengths, 0)]))
    sparse = train.with_labels({**train.labels, "slots": type(train.labels["slots"])(few, kept)})
    learner = made(corpus, folder, batch_size=10, epochs=6)
    told = []

    class Recording(FixedPolicy):
        def observe(self, task, before, after, step):
            told.append(task)

    learner.fit(sparse, policy=Recording({"slots": 1.0, "intent": 1.0}))
    assert len(told) == 6 * 5
    assert 5 <= told.count("slots") <= 25


def test_a_policy_that_wants_one_task_leaves_the_other_head_alone(corpus, folder, train):
    learner = made(corpus, folder, weight_decay=0.0)
    torch.manual_seed(0)
    fresh = made(corpus, folder)._make_models()[0].head("slots").output.weight.detach().clone()
    learner.fit(train, seed=0, policy=FixedPolicy({"intent": 1.0, "slots": 0.0}))
    torch.testing.assert_close(learner.models[0].head("slots").output.weight, fresh)


def test_every_item_is_in_one_batch_of_an_epoch():
    lengths = np.random.default_rng(0).integers(1, 30, 103)
    cuts = batches(lengths, 16, np.random.default_rng(1))
    assert sorted(np.concatenate(cuts).tolist()) == list(range(103))
    assert max(map(len, cuts)) == 16


# -- thinned passes ---
def test_the_order_of_prediction_and_the_company_do_not_change_a_thinned_pass(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    whole = learner.believe(test, passes=4, seed=2)
    order = np.random.default_rng(0).permutation(len(test))
    shuffled = learner.believe(test.take(order), passes=4, seed=2)
    for name in TASKS:
        np.testing.assert_array_equal(whole[name].take(order).values, shuffled[name].values)
        alone = learner.believe(test.take(np.array([3])), passes=4, seed=2)[name]
        np.testing.assert_allclose(whole[name].take(np.array([3])).values, alone.values, atol=1e-6)


def test_thinned_passes_differ_from_each_other_and_with_the_seed(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    first, again, other = (learner.believe(test, passes=3, seed=s)["intent"].values for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert not np.allclose(first[0], first[1])
    plain = learner.believe(test)["intent"].values
    np.testing.assert_array_equal(plain, learner.believe(test)["intent"].values)  # nothing stays thinned


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
    learner.believe(test, passes=10)
    assert counts == {"embed": 1, "attend": 1}  # one batch: once each, not ten times


def test_beginning_a_layer_early_changes_nothing(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    model = learner.models[0]
    with torch.no_grad():
        batch = model.encoder.batch(learner._read(test))
        hidden = model.encoder.embed(batch)
        begun = model.encoder.begin(hidden, batch, 0)
        torch.testing.assert_close(
            model.encode(hidden, batch, TASKS, begun)["slots"].words,
            model.encode(hidden, batch, TASKS)["slots"].words,
            atol=0,
            rtol=0,
        )


def test_confidence_is_that_of_the_beliefs_part_by_part(corpus, folder, train, test, monkeypatch):
    monkeypatch.setattr("bursar.learners.learner.ITEMS_A_PART", 7)
    learner = made(corpus, folder)
    learner.fit(train)
    told = []
    found = learner.confidence(test, "dropout-agreement", seed=4, progress=lambda what, done: told.append(done))
    beliefs = learner.believe(test, passes=10, seed=4)
    measure = MEASURES["dropout-agreement"]
    np.testing.assert_allclose(found, np.stack([measure(beliefs[name]) for name in TASKS], axis=1))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_no_passes_at_all_are_refused(corpus, folder, train, test):
    learner = made(corpus, folder)
    learner.fit(train)
    with pytest.raises(LearnerError, match="0 passes"):
        learner.believe(test, passes=0)


# -- temperature ---
def test_the_temperature_is_the_likeliest_of_all(corpus, folder, train, dev):
    learner = made(corpus, folder, temperature=True, smoothing=0.0, epochs=12)
    learner.fit(train, dev=dev)
    assert set(learner.temperatures) == set(TASKS)

    def loss(temperature):
        learner.temperatures = {"intent": temperature}
        chances = learner.believe(dev)["intent"].dense()[0]
        return -np.log(chances[np.arange(len(dev)), dev.labels["intent"].rows.values[:, 0]]).mean()

    fitted = learner.temperatures["intent"]
    assert all(loss(fitted) <= loss(fitted * other) + 1e-6 for other in (0.8, 0.95, 1.05, 1.25))


def test_a_temperature_never_changes_what_is_predicted(corpus, folder, train, dev, test, tmp_path):
    learner = made(corpus, folder, temperature=True)
    learner.fit(train, dev=dev)
    fitted = learner.predict(test)
    learner.save(tmp_path / "model")
    again = NeuralLearner.load(tmp_path / "model")
    assert again.temperatures == learner.temperatures
    learner.temperatures = {}
    assert learner.predict(test)["intent"].equals(fitted["intent"])


def test_the_search_for_a_temperature_stays_in_its_bounds():
    assert fit_temperature(lambda t: t) == pytest.approx(LOWEST, rel=1e-3)
    assert fit_temperature(lambda t: -t) == pytest.approx(HIGHEST, rel=1e-3)
