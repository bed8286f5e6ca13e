"""The multi-task tagger of paper 2: what lanes of it learn is what a plain module learns alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.errors import ConfigError
from bursar.learners.lockstep import FitJob, Settings, accuracy, logits, train
from bursar.learners.lockstep.network import LaneBatch
from experiments.bench.laws_training import plainly_trained
from experiments.studies.laws_network import ARCHITECTURES, MultitaskTagger

LABELS = 5


def network_of(architecture="shared", *, tasks=3, units=240, size=12, missing=0.0, dtype=torch.float32, seed=0):
    """Random words; a unit's label follows from its words, and is missing for some tasks."""
    rng = np.random.default_rng(seed)
    windows = rng.integers(0, 40, (units, 3))
    windows[:, 1] = np.maximum(windows[:, 1], 1)
    targets = (windows.sum(axis=1)[:, None] + np.arange(tasks)) % LABELS
    targets = np.where(rng.random(targets.shape) < missing, -1, targets)
    return MultitaskTagger(windows, rng.standard_normal((40, size)), targets, LABELS, architecture, dtype=dtype)


def same(one, other):
    return all(torch.equal(value, other.parameters[name]) for name, value in one.parameters.items())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_after_twenty_steps_parameters_are_a_plain_modules_to_eight_digits(architecture):
    network = network_of(architecture, units=500, size=100, missing=0.4, dtype=torch.float64)
    settings = Settings(batch=100, epochs=4)
    jobs = [FitJob(np.arange(500), seed=seed) for seed in range(2)]
    for job, model in zip(jobs, train(network, jobs, settings), strict=True):
        plain = plainly_trained(network, job, settings).parameters_like_ours(network)
        assert plain.keys() == model.parameters.keys()
        for name, value in model.parameters.items():
            assert (value - plain[name]).abs().max() < 1e-8, name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_written_out_slopes_say_how_the_loss_changes(architecture):
    network = network_of(architecture, missing=0.3, dtype=torch.float64)
    first = {name: value[None] for name, value in network.begin(0).items()}
    batch = LaneBatch(np.arange(8)[None], np.arange(8)[None] < 7, np.zeros((1, 0), dtype=np.int64), [(0, 0)])
    _, found = network.gradients(first, batch)
    for name, value in first.items():
        bumped = torch.randn(value.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 1e-5
        up, down = (network.gradients({**first, name: value + sign * bumped}, batch)[0].item() for sign in (1, -1))
        assert (found[name] * bumped).sum().item() == pytest.approx((up - down) / 2, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("shared", {"size": 100, "tasks": 5, "missing": 0.3}),
        ("own", {"tasks": 2}),
        ("mixed", {"size": 7, "tasks": 3}),
        ("deep", {"tasks": 1, "dtype": torch.float64}),
        ("mixed", {"size": 100, "tasks": 15}),
    ],
)
def test_neighbours_and_lanes_change_no_bit_of_a_model(architecture, options):
    network = network_of(architecture, **options)
    rng = np.random.default_rng(1)
    jobs = [FitJob(rng.choice(240, rng.integers(1, 240), replace=False), seed=int(rng.integers(3))) for _ in range(6)]
    alone = [train(network, [job], Settings(batch=100, epochs=3, lanes=1))[0] for job in jobs]
    for lanes in (2, 5, 16):
        some = rng.permutation(len(jobs))[: rng.integers(2, len(jobs) + 1)]
        found = train(network, [jobs[i] for i in some], Settings(batch=100, epochs=3, lanes=lanes))
        assert all(same(model, alone[i]) for model, i in zip(found, some, strict=True))


def test_units_without_a_label_for_a_task_say_nothing_to_it():
    """With no label for the second task its layers stay as they began, and the rest is as without it."""
    network = network_of("mixed", tasks=2)
    silent = np.where(np.arange(2) == 1, -1, network.targets)
    two = MultitaskTagger(network.windows, network.vectors.double().numpy(), silent, LABELS, "mixed")
    job, settings = FitJob(np.arange(120)), Settings(batch=20, epochs=2)
    (model,) = train(two, [job], settings)
    first = two.begin(0)
    for name in ("own0.weight", "output.weight", "output.bias"):
        assert torch.equal(model.parameters[name][1], first[name][1])
        assert not torch.equal(model.parameters[name][0], first[name][0])


def test_what_tasks_share_begins_the_same_with_any_number_of_them():
    one, many = network_of(tasks=1).begin(3), network_of(tasks=9).begin(3)
    shared = [name for name in one if not name.startswith("output")]
    assert len(shared) == 5
    assert all(torch.equal(one[name], many[name]) for name in shared)


def test_without_items_to_choose_by_the_last_epoch_is_kept():
    network = network_of()
    job = FitJob(np.arange(100))
    (model,) = train(network, [job], Settings(batch=20, epochs=7, patience=1))
    assert (model.epochs, model.best_epoch, len(model.history)) == (7, 7, 0)
    assert np.isnan(model.score)
    plain = plainly_trained(network, job, Settings(batch=20, epochs=7)).parameters_like_ours(network)
    assert all((value - plain[name]).abs().max() < 1e-4 for name, value in model.parameters.items())


def test_items_to_choose_by_choose_the_best_epoch_over_all_tasks():
    network = network_of()
    select = np.arange(200, 240)
    (model,) = train(
        network, [FitJob(np.arange(200))], Settings(batch=20, epochs=9), select=select, score=accuracy(network)
    )
    said = logits(network, model, select).argmax(dim=2).numpy()
    assert said.shape == (40, 3)
    assert model.score == (said == network.targets[select]).mean() == model.history.max()


def test_items_without_a_score_are_refused():
    with pytest.raises(ConfigError, match="both select and score"):
        train(network_of(), [FitJob(np.arange(9))], select=np.arange(9))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"architecture": "tall"}, "no architecture 'tall'"),
        ({"windows": np.zeros((3, 2), dtype=np.int64)}, "do not match"),
        ({"windows": np.full((3, 3), 9)}, "without a vector"),
    ],
)
def test_what_does_not_fit_is_refused(change, what):
    usual = {"windows": np.zeros((3, 3), dtype=np.int64), "vectors": np.ones((4, 8)), "targets": np.zeros((3, 2), int)}
    with pytest.raises(ConfigError, match=what):
        MultitaskTagger(**{**usual, "labels": 2, **change})
