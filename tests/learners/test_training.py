"""Trainings that are interrupted and taken up again, and the batches they are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from bursar.curriculum import UniformPolicy, make_policy
from bursar.errors import CheckpointError
from bursar.learners import training
from bursar.learners.settings import Schedule
from bursar.learners.steps import batches
from bursar.learners.training import WeightAverage, rate_factor
from bursar.ragged import Strings
from tests.learners.trainings import POLICIES, Crash, Watchful, crash_after, made

pytestmark = pytest.mark.usefixtures("one_thread")


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
    for name, beliefs in whole.predict_proba(test).items():
        np.testing.assert_array_equal(beliefs.values, resumed.predict_proba(test)[name].values)
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


def test_a_checkpoint_is_not_read_by_a_torch_that_may_run_its_code(corpus, folder, train, tmp_path, monkeypatch):
    file = tmp_path / "training"
    interrupted(corpus, folder, train, file)
    monkeypatch.setattr(training.torch, "__version__", "2.5.1+cpu")
    with pytest.raises(CheckpointError, match=r"may run code.*torch 2\.6"):
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


def test_every_item_is_in_one_batch_of_an_epoch():
    lengths = np.random.default_rng(0).integers(1, 30, 103)
    cuts = batches(lengths, 16, np.random.default_rng(1))
    assert sorted(np.concatenate(cuts).tolist()) == list(range(103))
    assert max(map(len, cuts)) == 16


# -- how fast, how long ---
def test_the_learning_rate_rises_and_falls_linearly():
    factor = rate_factor(10, 0.2)
    assert [factor(step) for step in (0, 1, 2, 6, 10)] == [0.5, 1.0, 1.0, 0.5, 0.0]


def test_an_epoch_is_an_eighth_of_the_steps_under_a_policy_and_all_items_otherwise():
    schedule = Schedule(steps=1000)
    assert schedule.steps_per_epoch(90_000, by_policy=True) == 125
    assert schedule.steps_per_epoch(90_000, by_policy=False) == 5625


def test_weights_are_averaged_from_the_first_step_on():
    weight = torch.nn.Parameter(torch.tensor([0.0]))
    average = WeightAverage([weight], first=1)
    for step, value in enumerate([9.0, 1.0, 2.0]):
        weight.data.fill_(value)
        average.add(step)
    average.apply()
    assert weight.item() == 1.5


def test_few_labels_get_as_many_updates_as_many_labels():
    assert [Schedule(steps=100).in_epochs(n) for n in (7, 50)] == [(15, 2), (2, 1)]
    assert [Schedule().in_epochs(n) for n in (4, 50)] == [(63, 8), (12, 2)]
    assert Schedule(epochs=30).in_epochs(3) == (30, 2)
    assert Schedule(epochs=30, least_steps=300).in_epochs(3) == (100, 13)
