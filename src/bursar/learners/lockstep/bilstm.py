"""A bidirectional LSTM over word vectors, averaged over the words (paper 4's LSTM)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.network import Draws, Parameters
from bursar.learners.lockstep.packs import Pack, check_batch, pack
from bursar.learners.lockstep.recurrent import recurrence
from bursar.learners.lockstep.sums import looked_up, pooled, product
from bursar.learners.lockstep.texts import TextNetwork, Texts
from bursar.ragged import IntArray


class BiLSTM(TextNetwork):
    """One layer in each direction, as wide as a word vector; the mean over words; the output layer."""

    @property
    def width(self) -> int:  # type: ignore[override]
        return 2 * self.size

    def check(self, batch: int) -> None:
        check_batch(batch, self.step)

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        return {
            "words": self.first_vectors(draws),
            **encoder(draws, self.size),
            **draws.layer("output", self.width, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        lanes, items = rows.shape
        packed = pack(self.texts, rows, self.step)
        states = encoded(self.texts, parameters, rows, places, packed)
        total = pooled(states.reshape(-1, self.size), *packed.sums(2)).view(lanes, 2, items, self.size)
        lengths = torch.from_numpy(self.texts.lengths[rows]).to(self.dtype)
        return total.permute(0, 2, 1, 3).reshape(lanes, items, self.width) / lengths.unsqueeze(2)


def encoder(draws: Draws, size: int) -> dict[str, Tensor]:
    """The parameters of a bidirectional layer, both directions together."""
    return {
        "input.weight": draws.uniform(size, 2, size, 4 * size),
        "input.bias": draws.uniform(size, 2, 4 * size),
        "again.weight": draws.uniform(size, 2, size, 4 * size),
    }


def encoded(texts: Texts, parameters: Parameters, rows: IntArray, places: IntArray, packed: Pack) -> Tensor:
    """The outputs of both directions for every row of a pack: (lanes × 2, rows, size), backward second."""
    lanes, size = len(rows), parameters["words"].shape[2]
    words = np.stack([packed.words(texts, rows), packed.words(texts, rows, backwards=True)], axis=1)
    index = np.take_along_axis(places, words.reshape(lanes, -1), axis=1).reshape(-1)
    read = looked_up(parameters["words"], index, np.flatnonzero(words.reshape(-1)))
    weight, bias, again = (parameters[name].flatten(0, 1) for name in ("input.weight", "input.bias", "again.weight"))
    inputs = product(read.view(2 * lanes, -1, size), weight, bias, packed.cuts)
    return recurrence(inputs, again, packed)
