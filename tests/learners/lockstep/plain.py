"""The same networks written plainly, for one model at a time, and items to try them on."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from bursar.learners.lockstep import (
    AverageNetwork,
    BiLSTM,
    CodedTexts,
    ImageConvolution,
    Tagger,
    TextConvolution,
)
from bursar.learners.lockstep.trainer import walk

KINDS = (AverageNetwork, TextConvolution, BiLSTM, Tagger, ImageConvolution)
LABELS = 3


def texts_of(items, seed=0, longest=9, vocabulary=40):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, items)
    codes = np.where(np.arange(longest) < lengths[:, None], rng.integers(1, vocabulary, (items, longest)), 0)
    return CodedTexts(codes, lengths, vocabulary)


def network_of(kind, items=60, seed=0, size=8, longest=9, **options):
    """A network of some kind over random items; the first word or pixel says a little about the label."""
    rng = np.random.default_rng([seed, 1])
    if kind is ImageConvolution:
        targets = rng.integers(0, LABELS, items)
        images = rng.random((items, 28, 28)) * 0.5
        images[np.arange(items), 10 + targets] += 0.5
        return kind(images, targets, LABELS, **options)
    texts = texts_of(items, seed, longest)
    targets = texts.codes % LABELS
    targets = np.where(texts.codes > 0, targets, -1) if kind is Tagger else targets[:, 0]
    return kind(texts, targets, LABELS, size=size, **options)


# -- the networks ------------------------------------------------------------------------------------------------------
def dense(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def average(network, p, rows):
    codes, lengths = network.texts.codes[rows], network.texts.lengths[rows]
    mean = F.embedding(torch.tensor(codes), p["words"], padding_idx=0).sum(1) / torch.tensor(lengths)[:, None]
    return dense(p, "output", dense(p, "second", dense(p, "first", mean).relu()).relu())


def convolved(network, p, rows):
    found = []
    for row in rows:
        x = p["words"][torch.tensor(network.texts.codes[row, : network.texts.lengths[row]])]
        for layer in (1, 2, 3):
            weight = p[f"convolution{layer}.weight"].T.unflatten(1, (3, x.shape[1])).transpose(1, 2)
            x = F.conv1d(x.T[None], weight, p[f"convolution{layer}.bias"], padding=1)[0].T.relu()
        found.append(dense(p, "output", dense(p, "full", x.mean(0)).relu()))
    return torch.stack(found)


def read(network, p, rows):
    """nn.LSTM with packed sequences: (items, longest, 2 × size)."""
    size, own = network.size, {}
    for at, end in ((0, ""), (1, "_reverse")):
        own[f"weight_ih_l0{end}"] = p["input.weight"][at].T
        own[f"weight_hh_l0{end}"] = p["again.weight"][at].T
        own[f"bias_ih_l0{end}"] = p["input.bias"][at]
        own[f"bias_hh_l0{end}"] = torch.zeros_like(p["input.bias"][at])
    layer = nn.LSTM(size, size, bidirectional=True, batch_first=True).to(network.dtype)
    lengths = torch.tensor(network.texts.lengths[rows])
    vectors = F.embedding(torch.tensor(network.texts.codes[rows]), p["words"], padding_idx=0)
    packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(functional_call(layer, own, (packed,))[0], batch_first=True)[0]


def bilstm(network, p, rows):
    return dense(p, "output", read(network, p, rows).sum(1) / torch.tensor(network.texts.lengths[rows])[:, None])


def tagged(network, p, rows, *, teach):
    said, found = read(network, p, rows), []
    own = {"weight_ih": p["decoder.weight"].T, "weight_hh": p["decoder.again"].T, "bias_ih": p["decoder.bias"]}
    own["bias_hh"] = torch.zeros_like(own["bias_ih"])
    cell = nn.LSTMCell(len(p["decoder.weight"]), 50).to(network.dtype)
    for at, row in enumerate(rows):
        state, tag, scores = (said.new_zeros(1, 50), said.new_zeros(1, 50)), LABELS, []
        for place in range(said.shape[1]):
            one = F.one_hot(torch.tensor([tag]), LABELS + 1).to(network.dtype)
            state = functional_call(cell, own, (torch.cat([said[at, place][None], one], 1), state))
            scores.append(dense(p, "output", state[0])[0])
            tag = int(network.targets[row, place] if teach else scores[-1].argmax()) % (
                LABELS + 1
            )  # −1: behind the text
        found.append(torch.stack(scores))
    return torch.stack(found)


def seen(network, p, rows):
    x = network.images[torch.tensor(rows)][:, None]
    for name, channels in (("first", 1), ("second", 32)):
        weight = p[f"{name}.weight"].T.unflatten(1, (5, 5, channels)).permute(0, 3, 1, 2)
        x = F.max_pool2d(F.conv2d(x, weight, p[f"{name}.bias"]).relu(), 2)
    return dense(p, "output", dense(p, "full", x.permute(0, 2, 3, 1).flatten(1)).relu())


def plain_logits(network, p, rows, *, teach=False):
    """The scores of labels of one model, parameters without lanes."""
    if isinstance(network, Tagger):
        return tagged(network, p, rows, teach=teach)
    ways = {AverageNetwork: average, TextConvolution: convolved, BiLSTM: bilstm, ImageConvolution: seen}
    return ways[type(network)](network, p, rows)


def plain_loss(network, p, rows):
    scores = plain_logits(network, p, rows, teach=True)
    targets = torch.tensor(network.targets[rows])
    if targets.ndim == 2:
        targets = targets[:, : scores.shape[1]]
    return F.cross_entropy(scores.flatten(0, -2), targets.flatten(), ignore_index=-1)


def plainly_trained(network, job, settings):
    """All parameters after the last epoch, by autograd and torch.optim.Adam on whole tables."""
    parameters = {name: value.clone().requires_grad_() for name, value in network.begin(job.seed).items()}
    adam = torch.optim.Adam(parameters.values(), lr=settings.rate)
    for epoch in range(1, settings.epochs + 1):
        for rows, real in zip(*walk(job, settings, epoch), strict=True):
            adam.zero_grad()
            plain_loss(network, parameters, rows[real]).backward()
            adam.step()
    return {name: value.detach() for name, value in parameters.items()}
