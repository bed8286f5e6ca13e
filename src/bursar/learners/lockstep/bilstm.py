"""A bidirectional LSTM over word vectors, averaged over the words (paper 4's LSTM)."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from bursar.learners.lockstep.network import Draws, Parameters
from bursar.learners.lockstep.packs import Pack, SequenceNetwork, pack
from bursar.learners.lockstep.recurrent import recurrence
from bursar.learners.lockstep.sums import pooled, product
from bursar.ragged import IntArray


class RecurrentNetwork(SequenceNetwork):
    """A network on a bidirectional LSTM layer, as wide as a word vector in each direction."""

    def first_encoder(self, draws: Draws) -> dict[str, Tensor]:
        """The initial word vectors and LSTM layer, both directions together."""
        size = self.size
        return {
            "words": self.first_vectors(draws),
            "input.weight": draws.uniform(size, 2, size, 4 * size),
            "input.bias": draws.uniform(size, 2, 4 * size),
            "again.weight": draws.uniform(size, 2, size, 4 * size),
        }

    def encoded(self, parameters: Parameters, rows: IntArray, places: IntArray, packed: Pack) -> Tensor:
        """The outputs of both directions for every row of a pack: (lanes × 2, rows, size), backward second."""
        words = np.stack([packed.words(self.texts, rows, backwards=back) for back in (False, True)], axis=1)
        read = self.vectors_of(parameters, places, words).view(2 * len(rows), -1, self.size)
        names = ("input.weight", "input.bias", "again.weight")
        weight, bias, again = (parameters[name].flatten(0, 1) for name in names)
        return recurrence(product(read, weight, bias, packed.cuts), again, packed)


class BiLSTM(RecurrentNetwork):
    """One layer in each direction; the mean over words; the output layer."""

    @property
    def width(self) -> int:  # type: ignore[override]
        return 2 * self.size

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        return self.first_encoder(draws) | draws.layer("output", self.width, self.labels)

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        lanes, items = rows.shape
        packed = pack(self.texts, rows, self.step)
        states = self.encoded(parameters, rows, places, packed).reshape(-1, self.size)
        sums = pooled(states, *packed.sums(2)).view(lanes, 2, items, self.size)
        return self.mean(sums.permute(0, 2, 1, 3).reshape(lanes, items, self.width), rows)
