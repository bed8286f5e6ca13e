"""Trainings that are interrupted, taken up again, and steered by a policy; thinned passes; temperatures."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from bursar.curriculum import FixedPolicy, Policy, Steering, StepLog, UniformPolicy, make_policy
from bursar.errors import CheckpointError, ConfigError, LearnerError
from bursar.learners import make_learner
from bursar.learners.calibration import HIGHEST, LOWEST, fit_temperature
from bursar.learners.encoders.bert import BertEncoder
from bursar.learners.neural import NeuralLearner
from bursar.learners.steps import batches
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


class Watching(Steering):
    """Chances that are quite others if anything of what was observed, or how often it was asked, is."""

    def __init__(self, course, after):
        self.tasks, self.asked, self.total, self.needs_after = np.arange(len(course.tasks)), 0, 0.0, after

    def probabilities(self, step):
        self.asked += 1
        weights = 0.02 + (997 * self.total + 0.61 * self.asked + 0.37 * self.tasks) % 1
        return (weights / weights.sum())[None]

    def observe(self, step, task, before, after):
        assert (after is not None) == self.needs_after
        self.total += task[0] + before[0] + (after[0] if self.needs_after else 0.0)


@dataclass(frozen=True)
class Watchful(Policy):
    name: ClassVar[str] = "watchful"
    after: bool = False

    def begin(self, course):
        return Watching(course, self.after)


@dataclass(frozen=True, eq=False)
class Recording(Policy):
    """Draws as its weights say and remembers what it is told."""

    name: ClassVar[str] = "recording"
    weights: dict
    told: list
    after: bool = False

    def begin(self, course):
        steering = FixedPolicy(self.weights).begin(course)
        steering.needs_after = self.after
        steering.observe = lambda step, task, before, after: self.told.append(
            (step, course.tasks[task[0]], before[0], None if after is None else after[0])
        )
        return steering

    def describe(self):
        return {"policy": self.name, "weights": self.weights}


POLICIES = [None, Watchful(), Watchful(after=True), make_policy("exp3s", rate=0.5)]


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
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("crashes", [[1], [6, 3], [11]])
def test_a_training_that_was_interrupted_ends_in_the_same_bits(
    sharing, policy, crashes, corpus, folder, train, dev, test, tmp_path
):
    whole = made(corpus, folder, sharing=sharing)
    report = whole.fit(train, dev=dev, seed=3, policy=policy)
    file = tmp_path / "training"
    for calls in crashes:
        with pytest.raises(Crash):
            made(corpus, folder, sharing=sharing).fit(
                train, dev=dev, seed=3, policy=policy, checkpoint=file, progress=crash_after(calls)
            )
    resumed = made(corpus, folder, sharing=sharing)
    steps = []
    again = resumed.fit(
        train,
        dev=dev,
        seed=3,
        policy=policy,
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
    policy = UniformPolicy() if other == "policy" else None
    with pytest.raises(CheckpointError, match="another training"):
        learner.fit(items, checkpoint=file, seed=1 if other == "seed" else 0, policy=policy)


def test_nothing_is_written_where_no_checkpoint_is_due(corpus, folder, train, tmp_path):
    learner = made(corpus, folder, checkpoint_seconds=1000.0)
    seen = []
    learner.fit(train, checkpoint=tmp_path / "x", progress=lambda *a: seen.extend(tmp_path.iterdir()))
    assert not seen


@pytest.mark.parametrize("sharing", ["shared", "gated"])
@pytest.mark.parametrize("policy", POLICIES[1:], ids=str)
def test_a_training_that_was_interrupted_writes_the_log_of_an_undisturbed_one(
    sharing, policy, corpus, folder, train, dev, tmp_path
):
    made(corpus, folder, sharing=sharing).fit(train, dev=dev, seed=3, policy=policy, log=tmp_path / "whole.parquet")
    for calls in (2, 9):
        with pytest.raises(Crash):
            made(corpus, folder, sharing=sharing).fit(
                train, dev=dev, seed=3, policy=policy, checkpoint=tmp_path / "x", progress=crash_after(calls)
            )
    made(corpus, folder, sharing=sharing).fit(
        train, dev=dev, seed=3, policy=policy, checkpoint=tmp_path / "x", log=tmp_path / "again.parquet"
    )
    whole, again = (tmp_path / f"{name}.parquet" for name in ("whole", "again"))
    assert whole.read_bytes() == again.read_bytes()
    assert pq.read_table(whole).equals(pq.read_table(again), check_metadata=True)


def test_a_training_whose_end_was_lost_still_writes_its_log(corpus, folder, train, dev, tmp_path, monkeypatch):
    """It is finished and kept; what comes after it, a temperature, is not."""
    options, policy = {"temperature": True}, Watchful(after=True)
    made(corpus, folder, **options).fit(train, dev=dev, policy=policy, log=tmp_path / "whole.parquet")
    broken = made(corpus, folder, **options)

    def crash(dev):
        raise Crash

    monkeypatch.setattr(broken, "fit_temperatures", crash)
    with pytest.raises(Crash):
        broken.fit(train, dev=dev, policy=policy, checkpoint=tmp_path / "x")
    made(corpus, folder, **options).fit(
        train, dev=dev, policy=policy, checkpoint=tmp_path / "x", log=tmp_path / "again.parquet"
    )
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_a_policys_settings_tell_its_trainings_apart(corpus, folder, train, tmp_path):
    with pytest.raises(Crash):
        made(corpus, folder).fit(train, policy=make_policy("exp3s"), checkpoint=tmp_path / "x", progress=crash_after(5))
    with pytest.raises(CheckpointError, match="another training"):
        made(corpus, folder).fit(train, policy=make_policy("exp3s", rate=0.1), checkpoint=tmp_path / "x")
    made(corpus, folder).fit(train, policy=make_policy("exp3s"), checkpoint=tmp_path / "x")


# -- which task a step trains on ---
def some_labelled(train, few):
    """Slots are labelled for some items only."""
    rows = train.labels["slots"].rows
    kept = type(rows)(rows.values[np.repeat(few, rows.lengths)], np.cumsum([0, *np.where(few, rows.lengths, 0)]))
    return train.with_labels({**train.labels, "slots": type(train.labels["slots"])(few, kept)})


def test_a_policy_gets_a_whole_batch_of_the_task_that_it_draws(corpus, folder, train):
    """Slots are labelled for few items, and still every step of theirs has as many as a batch holds."""
    learner, told = made(corpus, folder, batch_size=10, epochs=6), []
    sparse = some_labelled(train, np.arange(len(train)) < 20)
    learner.fit(sparse, policy=Recording({"slots": 1.0, "intent": 1.0}, told))
    assert [step for step, *_ in told] == list(range(6 * 5))
    assert 5 <= [task for _, task, *_ in told].count("slots") <= 25


def test_a_policy_is_told_what_is_known_before_a_training(corpus, folder, train, monkeypatch):
    begun = []
    monkeypatch.setattr(UniformPolicy, "begin", lambda self, course: begun.append(course) or Watching(course, False))
    sparse = some_labelled(train, np.arange(len(train)) < 20)
    made(corpus, folder, batch_size=10, epochs=6).fit(sparse, seed=7, policy=UniformPolicy())
    course = begun[-1]
    assert (course.tasks, course.sizes) == (("intent", "slots"), (50, 20))
    assert (course.steps, course.seed, course.runs) == (30, 7, 1)


def test_a_policy_that_wants_one_task_leaves_the_other_head_alone(corpus, folder, train):
    learner = made(corpus, folder, weight_decay=0.0)
    torch.manual_seed(0)
    fresh = made(corpus, folder)._make_models()[0].head("slots").output.weight.detach().clone()
    learner.fit(train, seed=0, policy=FixedPolicy({"intent": 1.0, "slots": 0.0}))
    torch.testing.assert_close(learner.models[0].head("slots").output.weight, fresh)


@pytest.mark.parametrize("answer", [[[0.5, 0.6]], [[0.5, np.nan]], [[1.5, -0.5]], [[1.0]], [0.5, 0.5]])
def test_a_policy_that_answers_no_probabilities_is_refused_by_name_and_step(answer, corpus, folder, train, monkeypatch):
    asked = []

    def probabilities(self, step):
        asked.append(step)
        return np.array(answer) if step == 3 else np.full((1, 2), 0.5)

    monkeypatch.setattr(Watching, "probabilities", probabilities)
    with pytest.raises(LearnerError, match=r"step 3: the policy 'watchful' answers .* intent, slots"):
        made(corpus, folder).fit(train, policy=Watchful())


# -- what a policy is told of a step ---
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_policy_is_told_the_likelihood_of_the_labels_whatever_the_smoothing(smoothing, corpus, folder, train):
    """Without dropout, in batches of all items, the loss after the last step is that of the model that comes out."""
    told = []
    learner = made(corpus, folder, smoothing=smoothing, dropout=0.0, epochs=12, batch_size=50)
    for layer in learner.encoder.modules():
        if hasattr(layer, "p"):
            layer.p = 0.0
    learner.fit(train, policy=Recording({"intent": 1.0, "slots": 0.0}, told, after=True))
    chances = learner.believe(train)["intent"].dense()[0]
    likelihoods = np.log(chances[np.arange(len(train)), train.labels["intent"].rows.values[:, 0]])
    assert told[-1][3] == pytest.approx(-likelihoods.mean(), rel=1e-3)
    assert told[-1][3] < 0.9 * told[0][2]  # something was learned, so that smoothing would show
    np.testing.assert_allclose([row[3] for row in told[:-1]], [row[2] for row in told[1:]], rtol=1e-5)


@pytest.mark.parametrize("heads", [{}, {"slots": "crf"}, {"slots": "lstm"}])
def test_a_policy_is_told_of_the_pass_that_is_trained_on(heads, corpus, folder, train):
    """Without smoothing they are one number, whatever dropout draws."""
    told = []
    learner = made(corpus, folder, heads=heads, dropout=0.5, smoothing=0.0)
    report = learner.fit(train, policy=Recording({"intent": 1, "slots": 2}, told))
    by_epoch = np.array([before for _, _, before, _ in told]).reshape(4, 4).sum(axis=1)
    np.testing.assert_allclose(by_epoch, [entry["loss"] for entry in report.history], rtol=1e-6)


def test_measuring_the_loss_after_a_step_changes_nothing_else(corpus, folder, train, dev, test):
    told, told_both = [], []
    plain, measured = made(corpus, folder), made(corpus, folder)
    plain.fit(train, dev=dev, policy=Recording({"intent": 1, "slots": 2}, told))
    measured.fit(train, dev=dev, policy=Recording({"intent": 1, "slots": 2}, told_both, after=True))
    assert [row[:3] for row in told] == [row[:3] for row in told_both]
    for name, beliefs in plain.believe(test).items():
        np.testing.assert_array_equal(beliefs.values, measured.believe(test)[name].values)


@pytest.mark.parametrize("heads", [{}, {"slots": "crf"}, {"slots": "lstm"}])
@pytest.mark.parametrize("frozen", [0, 1])
def test_the_loss_after_a_step_is_of_the_same_thinned_model(heads, frozen, corpus, folder, train):
    """Where nothing is learned it is the loss before it to the bit, dropout and all."""
    told = []
    freeze = {"learning_rate": 0.0, "head_learning_rate": 0.0, "weight_decay": 0.0}
    learner = made(corpus, folder, heads=heads, frozen_layers=frozen, dropout=0.5, epochs=2, **freeze)
    learner.fit(train, policy=Recording({"intent": 1, "slots": 2}, told, after=True))
    assert len(told) == 8
    assert all(before == after > 0 for _, _, before, after in told)
    assert len({before for _, _, before, _ in told}) == 8


def test_a_step_mostly_makes_its_own_batch_likelier(corpus, folder, train):
    told = []
    made(corpus, folder, epochs=6).fit(train, policy=Recording({"intent": 1, "slots": 1}, told, after=True))
    assert np.mean([after < before for _, _, before, after in told]) > 0.8


@pytest.mark.parametrize("policy", [None, Watchful(), Watchful(after=True)], ids=str)
def test_a_loss_that_is_no_number_is_refused_by_task_and_step_and_the_training_is_kept(
    policy, corpus, folder, train, tmp_path, monkeypatch
):
    head = type(made(corpus, folder)._make_models()[0].head("slots"))
    loss, calls, told = head.loss, [], []

    def broken(self, output, targets, smoothing):
        calls.append(1)
        return loss(self, output, targets, smoothing) * (np.nan if len(calls) > 9 else 1.0)

    monkeypatch.setattr(head, "loss", broken)
    file = tmp_path / "training"
    with pytest.raises(LearnerError, match=r"step \d+: the loss of task 'slots' is nan.*learning_rate") as caught:
        made(corpus, folder).fit(train, policy=policy, checkpoint=file, progress=lambda *told_: told.append(told_))
    kept = torch.load(file)
    assert f"step {len(told)}:" in str(caught.value)
    assert kept["state"]["step"] == len(told) > 1
    assert all(torch.isfinite(value).all() for value in kept["model"].values())
    monkeypatch.setattr(head, "loss", loss)
    assert made(corpus, folder).fit(train, policy=policy, checkpoint=file).steps == 16  # and can be gone on with


# -- the log of the steps ---
def test_a_log_says_what_the_policy_said_and_was_told(corpus, folder, train, dev, tmp_path):
    told, weights = [], {"intent": 1, "slots": 3}
    report = made(corpus, folder).fit(
        train, dev=dev, seed=4, policy=Recording(weights, told, after=True), log=tmp_path / "logs" / "a.parquet"
    )
    log = StepLog.read(tmp_path / "logs" / "a.parquet")
    steps, tasks, before, after = zip(*told, strict=True)
    assert len(log) == report.steps == len(steps)
    assert (log.tasks, log.sizes, log.planned, log.seed) == (("intent", "slots"), (50, 50), 16, 4)
    assert log.policy == {"policy": "recording", "weights": weights}
    assert [log.tasks[at] for at in log.taken] == list(tasks)
    assert log.before.tolist() == list(before)
    assert log.after.tolist() == list(after)
    np.testing.assert_array_equal(log.probabilities, np.tile([0.25, 0.75], (len(log), 1)))


def test_a_log_of_joint_steps_is_refused(corpus, folder, train, tmp_path):
    with pytest.raises(ConfigError, match=r"joint steps choose no task.*name a policy, such as uniform"):
        made(corpus, folder).fit(train, log=tmp_path / "x.parquet")


def test_a_log_of_models_for_one_task_each_is_refused(corpus, folder, train, tmp_path):
    with pytest.raises(ConfigError, match='"single"'):
        made(corpus, folder, sharing="single").fit(train, policy=UniformPolicy(), log=tmp_path / "x.parquet")


def test_a_policy_of_other_tasks_is_refused_before_training(corpus, folder, train):
    with pytest.raises(ConfigError, match="knows nothing of task 'slots'"):
        made(corpus, folder).fit(train, policy=FixedPolicy({"intent": 1.0}))


@pytest.mark.parametrize("name", ["probe", "scikit"])
def test_a_learner_without_steps_refuses_a_policy_and_a_log_by_name(name, corpus, folder, train, tmp_path):
    learner = make_learner(name, corpus.schema, {"encoder": str(folder)} if name == "probe" else {})
    with pytest.raises(ConfigError, match=f"the learner '{name}' has no training steps .*'uniform'"):
        learner.fit(train, policy=UniformPolicy())
    with pytest.raises(ConfigError, match=name):
        learner.fit(train, log=tmp_path / "x.parquet")


def test_asking_a_policy_costs_little_beside_a_training_step(corpus, monkeypatch):
    """Exp3.S, the dearest one, with the bundled encoder and batches of 16: less than a hundredth of a step.

    Both are measured by turns in one process, and their medians compared.
    """
    from bursar.learners.steps import Steered

    spent, steps = [], []

    def timed(name):
        method = getattr(Steered, name)

        def call(self, *arguments):
            begun = time.perf_counter()
            found = method(self, *arguments)
            spent.append(time.perf_counter() - begun)
            return found

        return call

    monkeypatch.setattr(Steered, "_chances", timed("_chances"))
    monkeypatch.setattr(Steered, "observe", timed("observe"))
    learner = NeuralLearner(corpus.schema, epochs=3, batch_size=16, checkpoint_seconds=1e9)
    learner.fit(
        corpus.split("train").take(np.arange(96)),
        policy=make_policy("exp3s"),
        progress=lambda what, done: steps.append(time.perf_counter()),
    )
    asking = np.median(np.add(spent[::2], spent[1::2]))
    assert asking < 0.01 * np.median(np.diff(steps))


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
