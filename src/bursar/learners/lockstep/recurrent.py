"""Recurrent networks over word vectors: paper 4's LSTM and, for tags, its NER network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.network import Draws, LaneBatch, Parameters, cross_entropy
from bursar.learners.lockstep.sums import contracted, gathered, product
from bursar.learners.lockstep.texts import Pack, SequenceNetwork, pack
from bursar.ragged import IntArray

DECODER = 50  # width of the tagger's


def squashed(x: Tensor) -> Tensor:
    """The hyperbolic tangent, computed by the faster sigmoid."""
    return torch.mul(x, 2).sigmoid_().mul_(2).sub_(1)


def gates(z: Tensor) -> Tensor:
    """The gates of a cell, in place, (lanes, rows, 4, size): input, forget, candidate (−1 to 1), output."""
    z[:, :, 2].mul_(2)
    z.sigmoid_()
    z[:, :, 2].mul_(2).sub_(1)
    return z


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, pack: Pack) -> Tensor:
        lanes, rows, wide = inputs.shape
        size = wide // 4
        learning = any(ctx.needs_input_grad)
        out = inputs.new_empty(lanes, rows, size)
        kept: list[tuple[Tensor, Tensor, Tensor]] = []  # gates, cells and tanh of cells at each time
        cell = out[:, :0]
        for time, (start, count) in enumerate(zip(pack.starts, pack.sizes, strict=False)):
            here = slice(start, start + count)
            if time:
                last = slice(pack.starts[time - 1], pack.starts[time - 1] + count)
                z = torch.baddbmm(inputs[:, here], out[:, last], weight)
            else:
                z = inputs[:, here].clone()
            gate = gates(z.view(lanes, count, 4, size))
            before, cell = cell, gate[:, :, 0] * gate[:, :, 2]
            if time:
                cell.addcmul_(gate[:, :, 1], before[:, :count])
            activated = squashed(cell)
            torch.mul(activated, gate[:, :, 3], out=out[:, here])
            if learning:
                kept.append((gate, cell, activated))
        ctx.save_for_backward(weight, out)
        ctx.pack, ctx.kept = pack, kept
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, out = ctx.saved_tensors
        pack: Pack = ctx.pack
        (lanes, rows, size), first = out.shape, pack.sizes[0]
        back = weight.transpose(1, 2)
        found = out.new_empty(lanes, rows, 4 * size)
        carried = returned = out[:, :0]
        for time in reversed(range(len(pack.sizes))):
            gate, _, activated = ctx.kept.pop()
            here = slice(pack.starts[time], pack.starts[time] + pack.sizes[time])
            let_in, keep, new, let_out = gate.unbind(2)
            by_out = grads[0][:, here].clone()
            by_out[:, : returned.shape[1]] += returned
            by_cell = torch.addcmul(let_out, out[:, here], activated, value=-1).mul_(by_out)
            by_cell[:, : carried.shape[1]] += carried
            grad = torch.addcmul(gate, gate, gate, value=-1)  # derivative of a gate: s (1 − s)
            grad[:, :, 0].mul_(new).mul_(by_cell)
            if time:
                grad[:, :, 1].mul_(ctx.kept[-1][1][:, : pack.sizes[time]]).mul_(by_cell)
            else:
                grad[:, :, 1] = 0
            torch.addcmul(let_in, let_in * new, new, value=-1, out=grad[:, :, 2]).mul_(by_cell)
            grad[:, :, 3].mul_(activated).mul_(by_out)
            flat = grad.view(lanes, -1, 4 * size)
            found[:, here] = flat
            if time:
                carried, returned = by_cell.mul_(keep), torch.bmm(flat, back)
        cuts = [max(cut, first) - first for cut in pack.cuts]
        by_weight = contracted(out.index_select(1, torch.from_numpy(pack.before)), found[:, first:], cuts)
        return found, by_weight, None


def recurrence(inputs: Tensor, weight: Tensor, pack: Pack) -> Tensor:
    """The outputs of a layer at all rows of a pack, (lanes, rows, size).

    inputs (lanes, rows, 4 × size) are the layer's inputs times its weights; weight (lanes, size, 4 × size) is that of
    the previous output. Gates are in torch's order.
    """
    found: Tensor = _Recurrence.apply(inputs, weight, pack)  # type: ignore[no-untyped-call]
    return found


class RecurrentNetwork(SequenceNetwork):
    """A network on a bidirectional LSTM layer, as wide as a word vector in each direction."""

    def first_encoder(self, draws: Draws) -> dict[str, Tensor]:
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
        sums = gathered(states, *packed.sums(2)).view(lanes, 2, items, self.size)
        return self.mean(sums.permute(0, 2, 1, 3).reshape(lanes, items, self.width), rows)


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
        kept = self.kept(batch.draws, batch.rows.shape[1])
        if kept is not None:
            states = states * kept.gather(1, torch.from_numpy(packed.items).unsqueeze(2).expand(-1, -1, DECODER))
        scores = self.output(parameters, states, None, packed.cuts)
        return cross_entropy(scores, tags, np.take_along_axis(batch.real, packed.items, axis=1))

    def logits(self, parameters: Parameters, rows: IntArray, places: IntArray, kept: Tensor | None = None) -> Tensor:
        packed = pack(self.texts, rows, self.step)
        read = self._read(parameters, rows, places, packed)
        weight, last = parameters["decoder.weight"], 2 * self.size
        inputs = torch.baddbmm(parameters["decoder.bias"].unsqueeze(1), read, weight[:, :last])
        lane, row = np.nonzero(packed.real)
        found = inputs.new_zeros(*rows.shape, len(packed.sizes), self.labels)
        decoded = self._decoded(parameters, inputs, weight[:, last:], packed, kept)
        found[lane, packed.items[lane, row], packed.times[row]] = decoded[lane, row]
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


def mirrored(x: Tensor, packed: Pack) -> Tensor:
    """Move the outputs of the backward direction to the rows of their words. Its own inverse."""
    return x.gather(1, torch.from_numpy(packed.mirrored).unsqueeze(2).expand_as(x))
