"""Dropout: as much as is asked for in training, held still in a thinned pass, nothing otherwise."""

from __future__ import annotations

import pytest
import torch

from bursar.tasks.heads import Dropout, dropout_sample
from bursar.tasks.heads.head import random_mask


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_random_mask_drops_its_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    mask = random_mask((501, 399), p)
    assert mask.shape == (501, 399)
    assert (mask == 0).float().mean().item() == pytest.approx(p, abs=0.005)
    assert mask.mean().item() == pytest.approx(1, abs=0.02)
    assert mask.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)])


def test_masks_follow_torchs_seed_and_differ_from_row_to_row():
    torch.manual_seed(3)
    first, second = random_mask((64, 64), 0.5), random_mask((64, 64), 0.5)
    torch.manual_seed(3)
    assert torch.equal(first, random_mask((64, 64), 0.5))
    assert not torch.equal(first, second)
    assert len({tuple(row.tolist()) for row in first}) == 64


def test_no_chance_is_no_dropout_and_evaluation_drops_nothing():
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.0).train()(x), x)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert not torch.equal(Dropout(0.5).train()(x), x)


def test_a_thinned_pass_drops_the_same_features_in_every_row():
    layer = Dropout(0.5).eval()
    x = torch.ones(4, 200)
    with dropout_sample(layer, seed=1, number=0):
        found = layer(x)
    assert (found == found[0]).all()
    assert 60 < int((found[0] == 0).sum()) < 140
    assert torch.equal(layer(x), x)


def test_two_layers_of_one_model_drop_different_features():
    model = torch.nn.Sequential(Dropout(0.5), Dropout(0.5)).eval()
    x = torch.ones(1, 200)
    with dropout_sample(model, seed=1, number=0):
        assert not torch.equal(model[0](x), model[1](x))
