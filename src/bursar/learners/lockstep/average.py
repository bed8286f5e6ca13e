"""The average of word vectors through two fully connected layers (paper 4's AOE)."""

from __future__ import annotations

import torch
from torch import Tensor

from bursar.learners.lockstep.network import Batch, Draws, Parameters
from bursar.learners.lockstep.sums import contracted, flat, gathered, scattered, stacked
from bursar.learners.lockstep.texts import TextNetwork, Tokens, tokens
from bursar.ragged import IntArray

HIDDEN = 100


class AverageNetwork(TextNetwork):
    """The mean vector of a text's words, two layers of 100, and the output layer.

    >>> import numpy as np
    >>> from bursar.learners.lockstep import Job, Settings, Texts, accuracy, train
    >>> texts = Texts(np.array([[1, 2], [2, 3], [3, 0], [1, 0]]), np.array([2, 2, 1, 1]), 4)
    >>> network = AverageNetwork(texts, np.array([0, 1, 1, 0]), 2, size=16)
    >>> (model,) = train(network, [Job(np.arange(4))], Settings(batch=2), select=np.arange(4), score=accuracy(network))
    >>> model.score
    1.0
    """

    width = HIDDEN

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        return {
            "words": self.first_vectors(draws),
            **draws.layer("first", self.size, HIDDEN),
            **draws.layer("second", HIDDEN, HIDDEN),
            **draws.layer("output", HIDDEN, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        mean = self._mean(parameters, tokens(self.texts, rows, places), self._over_lengths(rows))
        return _layer(parameters, "second", _layer(parameters, "first", mean))

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Written out: two layers are too little work for automatic differentiation."""
        lanes, items = batch.rows.shape
        words = tokens(self.texts, batch.rows, batch.places)
        over = self._over_lengths(batch.rows)
        mean = self._mean(parameters, words, over)
        first = _layer(parameters, "first", mean)
        second = _layer(parameters, "second", first)
        kept = self.kept(batch)
        last = second if kept is None else second * kept
        output = self.output(parameters)
        scores = torch.baddbmm(output[1].unsqueeze(1), last, output[0])

        targets = torch.from_numpy(self.targets[batch.rows]).unsqueeze(2)
        share = torch.from_numpy(batch.real / batch.real.sum(axis=1, keepdims=True)).to(self.dtype)
        chances = torch.softmax(scores, dim=2)
        losses = -(chances.gather(2, targets).squeeze(2).log_() * share).sum(dim=1)
        slope = chances.scatter_add_(2, targets, chances.new_full(targets.shape, -1.0)).mul_(share.unsqueeze(2))

        found: dict[str, Tensor] = {}
        slope = _backwards("output", last, slope, output[0], found)
        slope = slope if kept is None else slope.mul_(kept)
        slope = _backwards("second", first, slope.mul_(second > 0), parameters["second.weight"], found)
        slope = _backwards("first", mean, slope.mul_(first > 0), parameters["first.weight"], found)
        for name in ("output.weight", "output.bias"):
            found[name] = found[name][..., : self.labels]
        slope = slope.mul_(over).view(lanes * items, self.size)
        found["words"] = scattered(slope, words.owners, words.places, parameters["words"])
        return losses, {name: found[name] for name in parameters}

    def _mean(self, parameters: Parameters, words: Tokens, over: Tensor) -> Tensor:
        total = gathered(flat(parameters["words"]), words.places, words.offsets)
        return total.view(*over.shape[:2], self.size).mul_(over)

    def _over_lengths(self, rows: IntArray) -> Tensor:
        """One over the number of words of every item, (lanes, items, 1)."""
        return torch.from_numpy(1 / self.texts.lengths[rows]).to(self.dtype).unsqueeze(2)


def _layer(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return torch.baddbmm(bias.unsqueeze(1), x, weight).relu_()


def _backwards(name: str, x: Tensor, slope: Tensor, weight: Tensor, found: dict[str, Tensor]) -> Tensor:
    """The slope by what a layer read; those by its parameters are put among the found."""
    found[f"{name}.weight"] = contracted(x, slope, (0, x.shape[1]))
    found[f"{name}.bias"] = stacked(slope)
    return torch.bmm(slope, weight.transpose(1, 2))
