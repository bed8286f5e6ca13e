"""A bidirectional LSTM encoder and an LSTM decoder that predicts tags word by word (paper 4's NER)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.bilstm import RecurrentNetwork
from bursar.learners.lockstep.network import Draws, LaneBatch, Parameters, cross_entropy
from bursar.learners.lockstep.packs import Pack, pack
from bursar.learners.lockstep.recurrent import gates, recurrence, squashed
from bursar.learners.lockstep.sums import product
from bursar.ragged import IntArray

DECODER = 50


class Tagger(RecurrentNetwork):
    """Targets are tags of words, (items, longest), with −1 after each text.

    The decoder reads the encoder's output for a word and the tag of the previous word: the gold tag in training, the
    predicted one otherwise. Dropout drops the same features for all words of a text.
    """

    width = DECODER

    def begin(self, seed: int) -> dict[str, Tensor]:
        draws = Draws(seed, self.dtype)
        read = 2 * self.size + self.labels + 1  # the last is for "no previous word"
        return {
            **self.first_encoder(draws),
            "decoder.weight": draws.uniform(DECODER, read, 4 * DECODER),
            "decoder.bias": draws.uniform(DECODER, 4 * DECODER),
            "decoder.again": draws.uniform(DECODER, DECODER, 4 * DECODER),
            **draws.layer("output", DECODER, self.labels),
        }

    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        """The encoder's output for every word: (lanes, rows of the pack, 2 × size)."""
        return self._read(parameters, rows, places, pack(self.texts, rows, self.step))

    def _read(self, parameters: Parameters, rows: IntArray, places: IntArray, packed: Pack) -> Tensor:
        states = self.encoded(parameters, rows, places, packed).view(len(rows), 2, -1, self.size)
        return torch.cat([states[:, 0], mirrored(states[:, 1], packed)], dim=2)

    def loss(self, parameters: Parameters, batch: LaneBatch) -> Tensor:
        packed = pack(self.texts, batch.rows, self.step)
        chosen = np.take_along_axis(batch.rows, packed.items, axis=1)
        tags = np.where(packed.real, self.targets[chosen, np.where(packed.real, packed.times, 0)], -1)
        earlier = np.full_like(tags, self.labels)
        earlier[:, packed.sizes[0] :] = np.where(tags >= 0, tags, self.labels)[:, packed.before]
        ones = torch.zeros(*tags.shape, self.labels + 1, dtype=self.dtype)
        ones.scatter_(2, torch.from_numpy(earlier).unsqueeze(2), 1.0)
        read = torch.cat([self._read(parameters, batch.rows, batch.places, packed), ones], dim=2)
        inputs = product(read, parameters["decoder.weight"], parameters["decoder.bias"], packed.cuts)
        states = recurrence(inputs, parameters["decoder.again"], packed)
        kept = self.kept(batch)
        if kept is not None:
            states = states * kept.gather(1, torch.from_numpy(packed.items).unsqueeze(2).expand(-1, -1, DECODER))
        scores = self.output(parameters, states, None, packed.cuts)
        return cross_entropy(scores, tags, np.take_along_axis(batch.real, packed.items, axis=1))

    def passes(
        self, parameters: Parameters, rows: IntArray, places: IntArray, masks: Sequence[Tensor | None]
    ) -> list[Tensor]:
        packed = pack(self.texts, rows, self.step)
        read = self._read(parameters, rows, places, packed)
        weight, last = parameters["decoder.weight"], 2 * self.size
        inputs = torch.baddbmm(parameters["decoder.bias"].unsqueeze(1), read, weight[:, :last])
        lane, row = np.nonzero(packed.real)
        found = [inputs.new_zeros(*rows.shape, len(packed.sizes), self.labels) for _ in masks]
        for scores, kept in zip(found, masks, strict=True):
            decoded = self._decoded(parameters, inputs, weight[:, last:], packed, kept)
            scores[lane, packed.items[lane, row], packed.times[row]] = decoded[lane, row]
        return found

    def _decoded(
        self, parameters: Parameters, inputs: Tensor, tags: Tensor, packed: Pack, kept: Tensor | None
    ) -> Tensor:
        """Greedy decoding: scores of tags at every row, given the best previous tag; tags (lanes, labels + 1, …)."""
        lanes, rows, wide = inputs.shape
        found = inputs.new_empty(lanes, rows, self.labels)
        best = torch.full((lanes, packed.sizes[0]), self.labels)
        out = cell = inputs.new_zeros(lanes, packed.sizes[0], DECODER)
        for start, count in zip(packed.starts, packed.sizes, strict=False):
            z = torch.baddbmm(inputs[:, start : start + count], out[:, :count], parameters["decoder.again"])
            z += tags.gather(1, best[:, :count, None].expand(-1, -1, wide))
            gate = gates(z.view(lanes, count, 4, DECODER))
            cell = gate[:, :, 1] * cell[:, :count] + gate[:, :, 0] * gate[:, :, 2]
            out = gate[:, :, 3] * squashed(cell)
            scores = self.output(parameters, out, kept, (0, count))[:, :, : self.labels]
            found[:, start : start + count] = scores
            best = scores.argmax(dim=2)
        return found


class _Mirrored(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        return x.gather(1, index.expand_as(x))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = ctx.saved_tensors
        return grads[0].gather(1, index.expand_as(grads[0])), None


def mirrored(x: Tensor, packed: Pack) -> Tensor:
    """Move the outputs of the backward direction to the rows of their words. Its own inverse."""
    found: Tensor = _Mirrored.apply(x, torch.from_numpy(packed.mirrored).unsqueeze(2))  # type: ignore[no-untyped-call]
    return found
