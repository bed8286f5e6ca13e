"""The loop: early stopping, the best epoch, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from bursar.errors import ConfigError, LearnerError
from bursar.learners.lockstep import (
    AverageNetwork,
    FitJob,
    Settings,
    Tagger,
    accuracy,
    logits,
    train,
    weighted_f1,
    whole,
)
from bursar.learners.lockstep.trainer import walk
from tests.learners.lockstep.plain import network_of, plainly_trained

SELECT = np.arange(50, 60)


def scripted(values):
    """A score that says these values, one after the other."""
    coming = iter(values)
    return lambda found, rows: np.full(len(found), next(coming))


@pytest.mark.parametrize(
    ("values", "best", "run"),
    [
        ([0.1, 0.3, 0.3, 0.2, 0.4, 0.4, 0.4, 0.4], 5, 8),  # 0.4 comes in the last epoch that it may
        ([0.5, 0.4, 0.4, 0.4, 0.9], 1, 4),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 8, 8),
        ([0.5] * 8, 1, 4),
    ],
)
def test_a_training_ends_after_as_many_epochs_without_a_better_score_and_keeps_the_first_of_equals(values, best, run):
    network = network_of(AverageNetwork)
    settings = Settings(epochs=8, patience=3)
    (model,) = train(network, [FitJob(np.arange(30))], settings, select=SELECT, score=scripted(values))
    assert (model.best_epoch, model.epochs) == (best, run)
    assert model.score == values[best - 1]
    assert model.history.tolist() == values[:run]


def test_the_parameters_are_those_of_the_best_epoch():
    network, job = network_of(AverageNetwork, dtype=torch.float64), FitJob(np.arange(30), seed=2)
    (model,) = train(network, [job], Settings(epochs=6), select=SELECT, score=scripted([0.1, 0.2, 0.9, 0.3, 0.3, 0.3]))
    expected = plainly_trained(network, job, Settings(epochs=3))
    for name, value in whole(network, model).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-10)


def test_it_learns():
    network = network_of(Tagger, items=200, size=32, longest=5)
    settings = Settings(epochs=15, rate=2e-2)
    (model,) = train(network, [FitJob(np.arange(100))], settings, select=np.arange(100, 130), score=accuracy(network))
    held = np.arange(130, 200)
    assert accuracy(network)(logits(network, model, held)[None], held)[0] > 0.9


def test_more_jobs_than_lanes_come_back_in_their_order():
    network = network_of(AverageNetwork)
    jobs = [FitJob(np.arange(size), seed=size) for size in (7, 31, 12, 45, 3, 28)]
    models = train(network, jobs, Settings(epochs=3, lanes=2), select=SELECT, score=accuracy(network))
    assert [model.job for model in models] == jobs


def test_no_jobs_make_no_models():
    assert train(network_of(AverageNetwork), [], select=SELECT, score=scripted([])) == []


def test_a_job_without_items_stays_as_it_began():
    network = network_of(AverageNetwork)
    jobs = [FitJob(np.arange(9)), FitJob(np.zeros(0, dtype=int), seed=3)]
    for some in (jobs, jobs[1:]):
        model = train(network, some, Settings(epochs=2), select=SELECT, score=accuracy(network))[-1]
        assert (model.epochs, model.best_epoch) == (0, 0)
        assert all(torch.equal(value, network.begin(3)[name]) for name, value in whole(network, model).items())


def test_a_loss_that_is_no_number_names_the_job():
    vectors = np.ones((40, 4))
    network = network_of(AverageNetwork, vectors=vectors)
    word = int(network.texts.codes[5, 0])
    vectors[word] = np.nan
    bad = [row for row in range(50) if word in network.texts.codes[row]]
    good = [row for row in range(50) if row not in bad]
    jobs = [FitJob(np.array(good), name="the good one"), FitJob(np.array(bad), name="the bad one")]
    with pytest.raises(LearnerError, match=r"the bad one: the loss is nan in epoch 1.*Fix"):
        train(network, jobs, Settings(epochs=2), select=np.array(good[:5]), score=accuracy(network))


def test_a_score_that_is_no_number_names_the_job():
    with pytest.raises(LearnerError, match="a model of 9 items with seed 0: the score is nan"):
        train(network_of(AverageNetwork), [FitJob(np.arange(9))], select=SELECT, score=scripted([np.nan]))


# -- the walk ----------------------------------------------------------------------------------------------------------
def test_every_epoch_visits_every_item_once_and_each_in_another_order():
    job, settings = FitJob(np.arange(100, 147)), Settings(batch=10)
    orders = set()
    for epoch in range(1, 6):
        rows, real = walk(job, settings, epoch)
        assert rows.shape == (5, 10)
        assert sorted(rows[real].tolist()) == job.rows.tolist()
        orders.add(tuple(rows[real].tolist()))
    assert len(orders) == 5


def test_the_walk_depends_on_the_ranks_of_the_items_alone():
    settings = Settings(batch=4)
    one, other = (walk(FitJob(rows), settings, 3)[0] for rows in (np.array([5, 1, 9, 7]), np.array([10, 30, 70, 20])))
    ranks = {value: rank for items in ([1, 5, 7, 9], [10, 20, 30, 70]) for rank, value in enumerate(items)}
    assert [ranks[value] for value in one[0].tolist()] == [ranks[value] for value in other[0].tolist()]


# -- scores ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [AverageNetwork, Tagger])
def test_scores_are_those_of_scikit_learn(kind):
    network = network_of(kind)
    rows = np.array([4, 9, 12, 33, 2])
    shape = (3, *network.targets[rows].shape, network.labels)
    found = torch.from_numpy(np.random.default_rng(1).normal(size=shape))
    counted = network.targets[rows] >= 0
    truth = network.targets[rows][counted]
    for lane, guesses in enumerate(found.argmax(-1).numpy()):
        f1 = f1_score(truth, guesses[counted], average="weighted", labels=range(3), zero_division=0)
        assert weighted_f1(network)(found, rows)[lane] == pytest.approx(f1, abs=1e-12)
        assert accuracy(network)(found, rows)[lane] == accuracy_score(truth, guesses[counted])


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"epochs": 0}, {"patience": 0}, {"lanes": 0}, {"rate": 0.0}, {"rate": float("nan")}]
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Settings(**wrong)
