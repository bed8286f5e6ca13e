"""What becomes of a model depends on its own job alone, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from bursar.learners.lockstep import (
    AverageNetwork,
    BiLSTM,
    FitJob,
    ImageConvolution,
    LockstepTraining,
    Settings,
    Tagger,
    TextConvolution,
    accuracy,
    train,
)
from tests.learners.lockstep.plain import network_of

SELECT = np.arange(50, 60)


def settings_of(lanes, batch=10):
    return Settings(batch=batch, epochs=3, patience=1, lanes=lanes)


def jobs_of(rng, count, most):
    return [
        FitJob(rng.choice(50, rng.integers(1, most), replace=False), seed=int(rng.integers(2))) for _ in range(count)
    ]


def same(one, other):
    return (
        one.epochs == other.epochs
        and one.history.tolist() == other.history.tolist()
        and all(torch.equal(value, other.parameters[name]) for name, value in one.parameters.items())
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (AverageNetwork, {"size": 8}),
        (AverageNetwork, {"size": 50, "longest": 30, "dropout": 0.5}),
        (AverageNetwork, {"size": 7, "dtype": torch.float64}),
        (TextConvolution, {"size": 16}),
        (TextConvolution, {"size": 5, "longest": 25, "dropout": 0.3}),
        (BiLSTM, {"size": 8}),
        (BiLSTM, {"size": 50, "longest": 25}),
        (BiLSTM, {"size": 7, "dropout": 0.5}),
        (BiLSTM, {"size": 12, "dtype": torch.float64}),
        (Tagger, {"size": 8, "longest": 20}),
        (Tagger, {"size": 10, "dropout": 0.5}),
        (ImageConvolution, {}),
    ],
)
def test_neighbours_lanes_and_orders_change_no_bit(kind, options):
    rng = np.random.default_rng(len(kind.__name__))
    network = network_of(kind, seed=3, **options)
    image = kind is ImageConvolution
    jobs, batch = jobs_of(rng, 2 if image else 6, 12 if image else 40), 5 if image else int(rng.integers(3, 21))
    score = accuracy(network)
    alone = [train(network, [job], settings_of(1, batch), select=SELECT, score=score)[0] for job in jobs]
    for lanes in (16,) if image else (2, 3, 16):
        some = rng.permutation(len(jobs))[: rng.integers(2, len(jobs) + 1)]
        found = train(network, [jobs[i] for i in some], settings_of(lanes, batch), select=SELECT, score=score)
        assert all(same(model, alone[i]) for model, i in zip(found, some, strict=True))


@pytest.mark.parametrize("kind", [AverageNetwork, BiLSTM])
def test_one_and_two_threads_give_the_same_bits(kind):
    network = network_of(kind, size=50, longest=20)
    jobs = jobs_of(np.random.default_rng(2), 5, 45)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(train(network, jobs, settings_of(4), select=SELECT, score=accuracy(network)))
            assert torch.get_num_threads() == threads  # as it was
    finally:
        torch.set_num_threads(before)
    assert all(same(one, other) for one, other in zip(*found, strict=True))


def test_a_model_depends_on_the_set_of_its_items_and_not_on_how_they_are_listed():
    network = network_of(AverageNetwork)
    rows = np.random.default_rng(0).choice(50, 33, replace=False)
    jobs = [FitJob(rows), FitJob(np.sort(rows)), FitJob(rows[::-1])]
    models = train(network, jobs, settings_of(3), select=SELECT, score=accuracy(network))
    assert same(models[0], models[1])
    assert same(models[0], models[2])


def test_lanes_of_real_size_agree_with_a_model_alone():
    """Word vectors of 64 numbers and batches of 20, as in the studies."""
    for kind in (AverageNetwork, BiLSTM):
        network = network_of(kind, size=64, longest=22)
        jobs = [FitJob(np.arange(start, 50, step)) for start in (0, 3) for step in (1, 2)]
        settings = Settings(epochs=3)
        together = train(network, jobs, settings, select=SELECT, score=accuracy(network))
        for job, model in zip(jobs, together, strict=True):
            assert same(model, train(network, [job], settings, select=SELECT, score=accuracy(network))[0])


@pytest.mark.parametrize("kind", [AverageNetwork, TextConvolution])
def test_models_that_come_and_go_meanwhile_change_no_bit(kind):
    rng = np.random.default_rng(5)
    network = network_of(kind, seed=3, size=8)
    jobs = jobs_of(rng, 9, 40)
    alone = train(network, jobs, settings_of(1), select=SELECT, score=accuracy(network))
    training = LockstepTraining(network, settings_of(3), select=SELECT, score=accuracy(network))
    numbers = {training.add(job): at for at, job in enumerate(jobs[:5])}
    dropped = [2, 4]
    found = {}
    for step in range(1000):
        if step == 1:
            training.drop(2)  # in work
        if step == 2:
            training.drop(4)  # waits, or has just been taken up
            numbers |= {training.add(job): at for at, job in enumerate(jobs[5:], start=5)}
        found |= {numbers[number]: model for number, model in training.step().items()}
        if not training.jobs:
            break
    assert sorted(found) == [at for at in range(9) if at not in dropped]
    assert all(same(model, alone[at]) for at, model in found.items())
    training.drop(0)  # long finished


A_TRAINING = """
import hashlib
import os
import subprocess
import sys

import numpy as np
from bursar.learners.lockstep import AverageNetwork, FitJob, Settings, accuracy, train
from tests.learners.lockstep.plain import network_of
network = network_of(AverageNetwork, seed=3, size=50, dropout=0.5)
jobs = [FitJob(np.arange(40), seed=seed) for seed in range(4)]
settings = Settings(batch=10, epochs=10, patience=10)
found = train(network, jobs, settings, select=np.arange(50, 60), score=accuracy(network))
print(hashlib.sha256(b"".join(v.numpy().tobytes() for model in found for v in model.parameters.values())).hexdigest())
"""


def test_code_that_was_just_compiled_computes_the_same_bits_as_code_from_the_cache(tmp_path):
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [
        subprocess.run([sys.executable, "-c", A_TRAINING], env=settings, check=True, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*.nbc"))
    assert runs[0].stdout == runs[1].stdout
