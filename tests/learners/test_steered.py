"""Trainings that a policy leads: which task a step trains, what the policy observes, what is logged."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from bursar.curriculum import FixedPolicy, StepLog, UniformPolicy, make_policy
from bursar.errors import ConfigError, LearnerError
from bursar.learners import make_learner
from bursar.learners.neural import NeuralLearner
from tests.learners.trainings import Recording, Watchful, Watching, made

pytestmark = pytest.mark.usefixtures("one_thread")


# -- which task a step trains on ---
def some_labelled(train, few):
    """Slots are labelled for some items only."""
    rows = train.labels["slots"].rows
    kept = type(rows)(rows.values[np.repeat(few, rows.lengths)], np.cumsum([0, *np.where(few, rows.lengths, 0)]))
    return train.with_labels({**train.labels, "slots": type(train.labels["slots"])(few, kept)})


def test_a_policy_gets_a_whole_batch_of_the_task_that_it_draws(corpus, folder, train):
    """Slots are labelled for few items, and still every step of theirs has as many as a batch holds."""
    learner, observed = made(corpus, folder, batch_size=10, epochs=6), []
    sparse = some_labelled(train, np.arange(len(train)) < 20)
    learner.fit(sparse, policy=Recording({"slots": 1.0, "intent": 1.0}, observed))
    assert [step for step, *_ in observed] == list(range(6 * 5))
    assert 5 <= [task for _, task, *_ in observed].count("slots") <= 25


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
    fresh = made(corpus, folder).make_models()[0].head("slots").output.weight.detach().clone()
    learner.fit(train, seed=0, policy=FixedPolicy({"intent": 1.0, "slots": 0.0}))
    torch.testing.assert_close(learner.models[0].head("slots").output.weight, fresh)


@pytest.mark.parametrize("answer", [[[0.5, 0.6]], [[0.5, np.nan]], [[1.5, -0.5]], [[1.0]], [0.5, 0.5]])
def test_a_policy_that_answers_no_probabilities_is_refused_by_name_and_step(answer, corpus, folder, train, monkeypatch):
    asked = []

    def probabilities(self, step):
        asked.append(step)
        return np.array(answer) if step == 3 else np.full((1, 2), 0.5)

    monkeypatch.setattr(Watching, "probabilities", probabilities)
    with pytest.raises(LearnerError, match=r"step 3: the policy 'watchful' returned .* intent, slots"):
        made(corpus, folder).fit(train, policy=Watchful())


# -- what a policy observes in a step ---
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_policy_is_told_the_likelihood_of_the_labels_whatever_the_smoothing(smoothing, corpus, folder, train):
    """Without dropout, in batches of all items, the loss after the last step is that of the model that comes out."""
    observed = []
    learner = made(corpus, folder, smoothing=smoothing, dropout=0.0, epochs=12, batch_size=50)
    for layer in learner.encoder.modules():
        if hasattr(layer, "p"):
            layer.p = 0.0
    learner.fit(train, policy=Recording({"intent": 1.0, "slots": 0.0}, observed, after=True))
    chances = learner.predict_proba(train)["intent"].dense()[0]
    likelihoods = np.log(chances[np.arange(len(train)), train.labels["intent"].rows.values[:, 0]])
    assert observed[-1][3] == pytest.approx(-likelihoods.mean(), rel=1e-3)
    assert observed[-1][3] < 0.9 * observed[0][2]  # something was learned, so that smoothing would show
    np.testing.assert_allclose([row[3] for row in observed[:-1]], [row[2] for row in observed[1:]], rtol=1e-5)


@pytest.mark.parametrize("heads", [{}, {"slots": "crf"}, {"slots": "lstm"}])
def test_a_policy_is_told_of_the_pass_that_is_trained_on(heads, corpus, folder, train):
    """Without smoothing they are one number, whatever dropout draws."""
    observed = []
    learner = made(corpus, folder, heads=heads, dropout=0.5, smoothing=0.0)
    report = learner.fit(train, policy=Recording({"intent": 1, "slots": 2}, observed))
    by_epoch = np.array([before for _, _, before, _ in observed]).reshape(4, 4).sum(axis=1)
    np.testing.assert_allclose(by_epoch, [entry["loss"] for entry in report.history], rtol=1e-6)


def test_measuring_the_loss_after_a_step_changes_nothing_else(corpus, folder, train, dev, test):
    observed, observed_both = [], []
    plain, measured = made(corpus, folder), made(corpus, folder)
    plain.fit(train, dev=dev, policy=Recording({"intent": 1, "slots": 2}, observed))
    measured.fit(train, dev=dev, policy=Recording({"intent": 1, "slots": 2}, observed_both, after=True))
    assert [row[:3] for row in observed] == [row[:3] for row in observed_both]
    for name, beliefs in plain.predict_proba(test).items():
        np.testing.assert_array_equal(beliefs.values, measured.predict_proba(test)[name].values)


@pytest.mark.parametrize("heads", [{}, {"slots": "crf"}, {"slots": "lstm"}])
@pytest.mark.parametrize("frozen", [0, 1])
def test_the_loss_after_a_step_is_of_the_same_thinned_model(heads, frozen, corpus, folder, train):
    """Where nothing is learned it is the loss before it to the bit, dropout and all."""
    observed = []
    freeze = {"learning_rate": 0.0, "head_learning_rate": 0.0, "weight_decay": 0.0}
    learner = made(corpus, folder, heads=heads, frozen_layers=frozen, dropout=0.5, epochs=2, **freeze)
    learner.fit(train, policy=Recording({"intent": 1, "slots": 2}, observed, after=True))
    assert len(observed) == 8
    assert all(before == after > 0 for _, _, before, after in observed)
    assert len({before for _, _, before, _ in observed}) == 8


def test_a_step_mostly_makes_its_own_batch_likelier(corpus, folder, train):
    observed = []
    made(corpus, folder, epochs=6).fit(train, policy=Recording({"intent": 1, "slots": 1}, observed, after=True))
    assert np.mean([after < before for _, _, before, after in observed]) > 0.8


@pytest.mark.parametrize("policy", [None, Watchful(), Watchful(after=True)], ids=str)
def test_a_loss_that_is_no_number_is_refused_by_task_and_step_and_the_training_is_kept(
    policy, corpus, folder, train, tmp_path, monkeypatch
):
    head = type(made(corpus, folder).make_models()[0].head("slots"))
    loss, calls, reports = head.loss, [], []

    def broken(self, output, targets, smoothing):
        calls.append(1)
        return loss(self, output, targets, smoothing) * (np.nan if len(calls) > 9 else 1.0)

    monkeypatch.setattr(head, "loss", broken)
    file = tmp_path / "training"
    with pytest.raises(LearnerError, match=r"step \d+: the loss of task 'slots' is nan.*learning_rate") as caught:
        made(corpus, folder).fit(train, policy=policy, checkpoint=file, progress=lambda *report: reports.append(report))
    kept = torch.load(file)
    assert f"step {len(reports)}:" in str(caught.value)
    assert kept["state"]["step"] == len(reports) > 1
    assert all(torch.isfinite(value).all() for value in kept["model"].values())
    monkeypatch.setattr(head, "loss", loss)
    assert made(corpus, folder).fit(train, policy=policy, checkpoint=file).steps == 16  # and can be gone on with


# -- the log of the steps ---
def test_a_log_says_what_the_policy_said_and_was_told(corpus, folder, train, dev, tmp_path):
    observed, weights = [], {"intent": 1, "slots": 3}
    report = made(corpus, folder).fit(
        train, dev=dev, seed=4, policy=Recording(weights, observed, after=True), log=tmp_path / "logs" / "a.parquet"
    )
    log = StepLog.read(tmp_path / "logs" / "a.parquet")
    steps, tasks, before, after = zip(*observed, strict=True)
    assert len(log) == report.steps == len(steps)
    assert (log.tasks, log.sizes, log.planned, log.seed) == (("intent", "slots"), (50, 50), 16, 4)
    assert log.policy == {"policy": "recording", "weights": weights}
    assert [log.tasks[at] for at in log.taken] == list(tasks)
    assert log.before.tolist() == list(before)
    assert log.after.tolist() == list(after)
    np.testing.assert_array_equal(log.probabilities, np.tile([0.25, 0.75], (len(log), 1)))


def test_a_log_of_joint_steps_is_refused(corpus, folder, train, tmp_path):
    with pytest.raises(ConfigError, match=r"joint steps have no log.*name a policy, such as uniform"):
        made(corpus, folder).fit(train, log=tmp_path / "x.parquet")


def test_a_log_of_models_for_one_task_each_is_refused(corpus, folder, train, tmp_path):
    with pytest.raises(ConfigError, match='"single"'):
        made(corpus, folder, sharing="single").fit(train, policy=UniformPolicy(), log=tmp_path / "x.parquet")


def test_a_policy_of_other_tasks_is_refused_before_training(corpus, folder, train):
    with pytest.raises(ConfigError, match="does not know task 'slots'"):
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
    from bursar.learners.steps import PolicySteps

    spent, steps = [], []

    def timed(name):
        method = getattr(PolicySteps, name)

        def call(self, *arguments):
            begun = time.perf_counter()
            found = method(self, *arguments)
            spent.append(time.perf_counter() - begun)
            return found

        return call

    monkeypatch.setattr(PolicySteps, "_chances", timed("_chances"))
    monkeypatch.setattr(PolicySteps, "observe", timed("observe"))
    learner = NeuralLearner(corpus.schema, epochs=3, batch_size=16, checkpoint_seconds=1e9)
    learner.fit(
        corpus.split("train").take(np.arange(96)),
        policy=make_policy("exp3s"),
        progress=lambda what, done: steps.append(time.perf_counter()),
    )
    asking = np.median(np.add(spent[::2], spent[1::2]))
    assert asking < 0.01 * np.median(np.diff(steps))
