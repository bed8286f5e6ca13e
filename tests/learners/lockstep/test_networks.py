"""Each network is what it claims to be: the same model written plainly, trained by torch's own optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.errors import ConfigError
from bursar.learners.lockstep import (
    AverageNetwork,
    BiLSTM,
    CodedTexts,
    FitJob,
    ImageConvolution,
    Settings,
    Tagger,
    TextConvolution,
    logits,
    train,
    whole,
)
from bursar.learners.lockstep.lanes import Layout
from bursar.learners.lockstep.network import LaneBatch, cross_entropy
from bursar.learners.lockstep.sums import gathered, quantum, rounded
from bursar.learners.lockstep.trainer import walk
from tests.learners.lockstep.plain import KINDS, LABELS, network_of, plain_logits, plain_loss, plainly_trained

TEXT_KINDS = tuple(kind for kind in KINDS if kind is not ImageConvolution)


def later_is_better():
    """A score that never lets a training stop and keeps its last epoch."""
    calls = iter(range(10**6))
    return lambda found, rows: np.full(len(found), float(next(calls)))


def in_a_lane(parameters):
    return {name: value[None] for name, value in parameters.items()}


def places_of(network):
    return np.arange(network.texts.vocabulary if network.table else 0)[None]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_plain_network(kind):
    network = network_of(kind, dtype=torch.float64)
    rows = np.array([3, 1, 58, 20, 7])
    parameters = network.begin(4)
    expected = plain_logits(network, parameters, rows)
    found = network.logits(in_a_lane(parameters), rows[None], places_of(network))[0]
    if kind is Tagger:
        words = network.targets[rows][:, : expected.shape[1]] >= 0
        expected, found = expected[words], found[words]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_those_of_the_plain_network_and_padding_has_none(kind):
    network = network_of(kind, dtype=torch.float64)
    rows = np.array([[3, 1, 58, 20, 7, 7]])
    real = np.array([[True] * 5 + [False]])
    leaves = {name: value.requires_grad_() for name, value in network.begin(4).items()}
    loss = plain_loss(network, leaves, rows[real])
    expected = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    detached = in_a_lane({name: value.detach() for name, value in leaves.items()})
    found_loss, found = network.gradients(detached, LaneBatch(rows, real, places_of(network), [(4, 0)]))
    assert found_loss.item() == pytest.approx(loss.item(), abs=1e-12)
    for name, grad in expected.items():
        torch.testing.assert_close(found[name][0], grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_twenty_steps_in_company_end_where_torch_ends_alone(kind):
    """In double precision, with a last batch that is smaller than the others, and with words that are never seen."""
    items = 14 if kind is ImageConvolution else 38
    network = network_of(kind, dtype=torch.float64)
    settings = Settings(batch=10 if items == 38 else 4, epochs=5, lanes=3)
    rng = np.random.default_rng(8)
    jobs = [
        FitJob(rng.choice(50, size, replace=False), seed) for size, seed in ((items, 1), (items - 9, 2), (items, 3))
    ]
    jobs = jobs[:2] if kind in (ImageConvolution, Tagger) else jobs
    models = train(network, jobs, settings, select=np.arange(4), score=later_is_better())
    for job, model in zip(jobs, models, strict=True):
        found = whole(network, model)
        for name, value in plainly_trained(network, job, settings).items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_vectors_of_words_that_a_model_never_saw_stay_as_they_were(kind):
    network = network_of(kind)
    (model,) = train(
        network,
        [FitJob(np.arange(3), seed=6)],
        Settings(epochs=2),
        select=np.arange(3, 9),
        score=later_is_better(),
    )
    before, after = network.begin(6)["words"], whole(network, model)["words"]
    changed = (before != after).any(dim=1).numpy()
    assert np.flatnonzero(changed).tolist() == np.unique(network.texts.codes[:3])[1:].tolist()


def test_training_begins_with_the_word_vectors_that_are_given():
    vectors = np.random.default_rng(0).normal(size=(40, 5))
    network = network_of(BiLSTM, vectors=vectors, dtype=torch.float64)
    assert np.array_equal(network.begin(0)["words"][1:], vectors[1:])
    assert not network.begin(0)["words"][0].any()


def test_single_and_double_precision_begin_alike():
    single, double = (network_of(AverageNetwork, dtype=dtype).begin(3) for dtype in (torch.float32, torch.float64))
    assert all(torch.equal(single[name], double[name].float()) for name in single)


# -- dropout -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_follows_from_the_seed_and_the_step_alone(kind):
    network = network_of(kind, dropout=0.5)
    parameters, places = in_a_lane(network.begin(0)), places_of(network)

    def loss(*draw):
        rows = np.arange(6)[None]
        return network.gradients(parameters, LaneBatch(rows, np.ones_like(rows, dtype=bool), places, [draw]))[0].item()

    assert loss(0, 1) == loss(0, 1)
    assert len({loss(0, 1), loss(0, 2), loss(1, 1)}) == 3


def test_compiled_steps_drop_what_automatic_differentiation_drops():
    """The average of vectors is trained in machine code; here its loss is differentiated by torch, step by step."""
    network = network_of(AverageNetwork, dropout=0.5, dtype=torch.float64)
    job, settings = FitJob(np.arange(3, 40), seed=3), Settings(batch=10, epochs=4)
    parameters = {name: value.clone() for name, value in network.begin(3).items()}
    adam, step = torch.optim.Adam(parameters.values(), lr=settings.rate), 0
    for epoch in range(1, settings.epochs + 1):
        for rows, real in zip(*walk(job, settings, epoch), strict=True):
            batch = LaneBatch(rows[None], real[None], places_of(network), [(3, step)])
            _, grads = network.gradients(in_a_lane(parameters), batch)
            for name, value in parameters.items():
                value.grad = grads[name][0]
            adam.step()
            step += 1
    (model,) = train(network, [job], settings)
    for name, value in whole(network, model).items():
        torch.testing.assert_close(value, parameters[name], rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", [BiLSTM, Tagger, ImageConvolution])
def test_passes_differ_from_each_other_but_not_with_the_company_of_an_item(kind):
    network = network_of(kind, dropout=0.5)
    (model,) = train(network, [FitJob(np.arange(8))], Settings(epochs=1), select=np.arange(4), score=later_is_better())
    drawn = torch.from_numpy(np.random.default_rng(5).random((3, network.width)) >= 0.5)
    masks = (2 * drawn).to(network.dtype)
    few = torch.stack([logits(network, model, np.array([11]), mask) for mask in masks])
    many = torch.stack([logits(network, model, np.array([30, 11, 12, 13]), mask) for mask in masks])
    words = network.texts.lengths[11] if kind is Tagger else LABELS
    torch.testing.assert_close(few[:, 0, :words], many[:, 1, :words], rtol=1e-5, atol=1e-6)
    assert (few[0] != few[1]).any()
    assert (few[1] != few[2]).any()


# -- what cannot be ----------------------------------------------------------------------------------------------------
def test_texts_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="at least one word"):
        CodedTexts(np.array([[1, 0], [0, 0]]), np.array([1, 0]), 2)
    with pytest.raises(ConfigError, match="after each text"):
        CodedTexts(np.array([[1, 0]]), np.array([2]), 2)
    with pytest.raises(ConfigError, match="vocabulary"):
        CodedTexts(np.array([[1, 2]]), np.array([2]), 2)


@pytest.mark.parametrize("kind", [TextConvolution, BiLSTM, Tagger])
def test_networks_that_read_in_order_refuse_batches_whose_sums_would_be_cut_anywhere(kind):
    with pytest.raises(ConfigError, match="128"):
        train(
            network_of(kind),
            [FitJob(np.arange(3))],
            Settings(batch=129),
            select=np.arange(3),
            score=later_is_better(),
        )


def test_dropout_of_everything_is_refused():
    with pytest.raises(ConfigError, match="dropout"):
        network_of(BiLSTM, dropout=1.0)


def test_parameters_start_at_multiples_of_128_bytes():
    layout = Layout({"a": torch.zeros(2, 3), "b": torch.zeros(5)})
    assert layout.length == 64
    assert layout.views(torch.arange(64.0)[None])["b"].tolist() == [[32.0, 33.0, 34.0, 35.0, 36.0]]
    assert [quantum(64), quantum(50), quantum(7)] == [4, 16, 32]
    assert [rounded(17, 16), rounded(32, 16)] == [32, 32]


def test_padding_is_no_part_of_a_loss():
    found = cross_entropy(torch.zeros(1, 2, 4), np.array([[3, 1]]), np.array([[True, False]]))
    assert found.exp().item() == pytest.approx(4.0)


def test_rows_are_summed_by_their_offsets():
    table = torch.tensor([[1.0], [10.0], [100.0]])
    assert gathered(table, np.array([0, 2, 2]), np.array([0, 1, 1, 3])).tolist() == [[1.0], [0.0], [200.0]]
