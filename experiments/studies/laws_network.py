"""A bidirectional LSTM over a window of three words, and dense layers that tasks share or own (paper 2, Figure 2).

The forward and backward passes are written by hand, with items in the last dimension. So the gates of a cell are
contiguous blocks, the output layers of all tasks are one product, and softmax runs over all items at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Draws, LaneBatch, Network, Parameters
from bursar.learners.lockstep.recurrent import squashed
from bursar.learners.lockstep.sums import quantum
from bursar.ragged import FloatArray, IntArray

HIDDEN = 32  # in each direction
DENSE = 32
WINDOW = 3  # left, target, right


class DenseLayers(NamedTuple):
    """The numbers of dense layers that tasks share, and that each task has of its own."""

    shared: int
    own: int


ARCHITECTURES = {
    "shared": DenseLayers(1, 0),
    "own": DenseLayers(0, 1),
    "mixed": DenseLayers(1, 1),
    "deep": DenseLayers(2, 1),
}


class MultitaskTagger(Network):
    """Predicts labels of the middle word of a window for several tasks; the loss is the sum of the tasks' losses.

    A unit is a window of three words, as codes of rows of ``vectors``, which are not trained; code 0 is outside the
    sentence. ``targets`` (units, tasks) are label codes, −1 for no label. A task's loss is the mean over the units of a
    batch with its label. Either direction ends at the middle word, so it reads two words only.

    >>> from bursar.learners.lockstep import FitJob, Settings, logits, train
    >>> windows = np.array([[0, 1, 2], [1, 2, 1], [2, 1, 0], [0, 2, 0]])
    >>> network = MultitaskTagger(windows, np.eye(3), np.array([[0, 1], [1, 0], [0, -1], [1, 0]]), 2)
    >>> (model,) = train(network, [FitJob(np.arange(4))], Settings(batch=4, epochs=60, rate=0.02))
    >>> logits(network, model, np.arange(4)).argmax(dim=2).tolist()
    [[0, 1], [1, 0], [0, 1], [1, 0]]
    """

    width = 2 * HIDDEN

    def __init__(
        self,
        windows: IntArray,
        vectors: FloatArray,
        targets: IntArray,
        labels: int,
        architecture: str = "shared",
        *,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if targets.ndim != 2 or windows.shape != (len(targets), WINDOW):
            raise ConfigError(
                f"windows {windows.shape} and targets {targets.shape} do not match", fix="give one window per unit"
            )
        if architecture not in ARCHITECTURES:
            raise ConfigError(f"there is no architecture {architecture!r}", fix=f"use {', '.join(ARCHITECTURES)}")
        if windows.max(initial=0) >= len(vectors) or windows.min(initial=0) < 0:
            raise ConfigError("a window contains a word without a vector", fix="use codes below the number of vectors")
        super().__init__(targets, labels, dtype=dtype)
        self.windows, self.tasks, self.layers = windows, targets.shape[1], ARCHITECTURES[architecture]
        self.size = vectors.shape[1]
        self.step = quantum(self.size)
        self.vectors = torch.from_numpy(np.array(vectors)).to(dtype)
        self.vectors[0] = 0
        # The first step reads the outer words, the second the middle word: (2, directions, units).
        self._reads = np.ascontiguousarray(windows.T[[0, 2, 1, 1]].reshape(2, 2, -1))

    def begin(self, seed: int) -> dict[str, Tensor]:
        """Torch's initialisation; shared layers do not depend on the tasks. Gates: forget, input, output, new."""
        draws = Draws(seed, self.dtype)
        found = {
            "input.weight": draws.uniform(HIDDEN, 2, 4 * HIDDEN, self.size),
            "input.bias": draws.uniform(HIDDEN, 2, 4 * HIDDEN),
            "again.weight": draws.uniform(HIDDEN, 2, 4 * HIDDEN, HIDDEN),
        }
        wide = self.width
        shapes = {name: (DENSE,) if name.startswith("shared") else (self.tasks, DENSE) for name in self._dense}
        for name, shape in {**shapes, "output": (self.tasks, self.labels)}.items():
            found[f"{name}.weight"] = draws.uniform(wide, *shape, wide)
            found[f"{name}.bias"] = draws.uniform(wide, *shape)
            wide = DENSE
        return found

    @property
    def _dense(self) -> list[str]:
        """The names of the dense layers, lowest first."""
        return [f"{kind}{place}" for kind, count in self.layers._asdict().items() for place in range(count)]

    # -- forward pass --------------------------------------------------------------------------------------------------
    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        """The encoding of the middle words: (lanes, items, width)."""
        return self._read(parameters, rows)[1].out.view(len(rows), self.width, -1).transpose(1, 2)

    def logits(self, parameters: Parameters, rows: IntArray, places: IntArray, kept: Tensor | None = None) -> Tensor:
        """Logits (lanes, items, tasks, labels); there is no dropout."""
        _, last = self._read(parameters, rows)
        return self._through(parameters, last)[-1].permute(0, 3, 1, 2)

    def _words(self, rows: IntArray) -> Tensor:
        """The word vectors of the two steps: (steps, lanes × directions, items, size)."""
        lanes, items = rows.shape
        codes = self._reads[:, :, rows].transpose(0, 2, 1, 3).reshape(-1)
        return self.vectors.index_select(0, torch.from_numpy(codes)).view(2, 2 * lanes, items, self.size)

    def _read(self, parameters: Parameters, rows: IntArray, words: Tensor | None = None) -> tuple[_Cell, _Cell]:
        """The cells after the outer words, and after the middle word."""
        side, middle = (self._words(rows) if words is None else words).transpose(2, 3)
        weight, bias, again = (parameters[name].flatten(0, 1) for name in ENCODER)
        bias = bias.unsqueeze(2)
        first = _Cell.of(torch.baddbmm(bias[:, HIDDEN:], weight[:, HIDDEN:], side))  # no forget gate in the first step
        return first, _Cell.of(torch.baddbmm(bias, weight, middle).baddbmm_(again, first.out), first.cell)

    def _through(self, parameters: Parameters, read: _Cell) -> list[Tensor]:
        """The encoding and the output of every layer, logits last: (lanes, tasks, labels, items)."""
        found = [read.out.view(-1, self.width, read.out.shape[2])]
        for name in self._dense:
            found.append(_layer(parameters, name, found[-1]).relu_())
        return [*found, _layer(parameters, "output", found[-1])]

    # -- backward pass -------------------------------------------------------------------------------------------------
    def gradients(self, parameters: Parameters, batch: LaneBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Hand-written, which takes half the time of automatic differentiation."""
        words = self._words(batch.rows)
        first, last = self._read(parameters, batch.rows, words)
        *inputs, scores = self._through(parameters, last)
        losses, grad = self._loss(scores, batch)
        found: dict[str, Tensor] = {}
        for name, x in zip(reversed([*self._dense, "output"]), reversed(inputs), strict=True):
            grad = _layer_back(parameters, name, x, grad, found)
            if x is not inputs[0]:
                grad.mul_(x > 0)
        by_last, by_cell = last.back(grad.view_as(last.out), None, first.cell)
        again = parameters["again.weight"].flatten(0, 1)
        by_first, _ = first.back(torch.bmm(again.transpose(1, 2), by_last), by_cell, None)
        by_weight, by_bias = torch.bmm(by_last, words[1]), by_last.sum(dim=2)
        by_weight[:, HIDDEN:] += torch.bmm(by_first, words[0])
        by_bias[:, HIDDEN:] += by_first.sum(dim=2)
        by_again = torch.bmm(by_last, first.out.transpose(1, 2))
        for name, value in zip(ENCODER, (by_weight, by_bias, by_again), strict=True):
            found[name] = value.view(parameters[name].shape)
        return losses, found

    def _loss(self, scores: Tensor, batch: LaneBatch) -> tuple[Tensor, Tensor]:
        """The sum over tasks of the mean cross-entropy, (lanes,), and its gradient by the logits."""
        targets = self.targets[batch.rows].transpose(0, 2, 1)  # (lanes, tasks, items)
        counted = (targets >= 0) & batch.real[:, None]
        share = torch.from_numpy(counted / np.maximum(counted.sum(axis=2, keepdims=True), 1)).to(self.dtype)
        places = torch.from_numpy(np.maximum(targets, 0)).unsqueeze(2)
        chances = torch.softmax(scores, dim=2)
        logs = chances.gather(2, places).squeeze(2).clamp_min_(torch.finfo(self.dtype).tiny).log_()
        losses = -(logs * share).view(len(scores), -1).sum(dim=1)
        grad = chances.scatter_add_(2, places, chances.new_full(places.shape, -1.0)).mul_(share.unsqueeze(2))
        return losses, grad


ENCODER = ("input.weight", "input.bias", "again.weight")


class _Cell(NamedTuple):
    """An LSTM layer after a word; all but the gates are (lanes × directions, HIDDEN, items)."""

    gates: Tensor  # (lanes × directions, 3 or 4, HIDDEN, items): forget (after the first step); input, output, new
    cell: Tensor
    activated: Tensor
    out: Tensor

    @classmethod
    def of(cls, z: Tensor, before: Tensor | None = None) -> _Cell:
        """From the gates' inputs, and the previous cell."""
        gates = z.view(len(z), -1, HIDDEN, z.shape[2])
        gates[:, -1].mul_(2)
        gates.sigmoid_()
        gates[:, -1].mul_(2).sub_(1)
        let_in, let_out, new = gates[:, -3:].unbind(1)
        cell = let_in * new
        if before is not None:
            cell.addcmul_(gates[:, 0], before)
        activated = squashed(cell)
        return cls(gates, cell, activated, let_out * activated)

    def back(self, by_out: Tensor, by_cell: Tensor | None, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """From the gradients of output and cell to those of the gates' inputs and of the previous cell."""
        let_in, let_out, new = self.gates[:, -3:].unbind(1)
        grad = torch.addcmul(self.gates, self.gates, self.gates, value=-1)  # derivative of a gate: s (1 − s)
        by_let_in, by_let_out, by_new = grad[:, -3:].unbind(1)
        mine = torch.addcmul(let_out, self.out, self.activated, value=-1).mul_(by_out)
        if by_cell is not None:
            mine += by_cell
        by_let_in.mul_(new).mul_(mine)
        by_let_out.mul_(self.activated).mul_(by_out)
        torch.addcmul(let_in, let_in * new, new, value=-1, out=by_new).mul_(mine)
        if before is not None:
            grad[:, 0].mul_(before).mul_(mine)
            mine.mul_(self.gates[:, 0])
        return grad.view(len(grad), -1, grad.shape[3]), mine


# -- dense layers: (lanes, width, items), or for each task (lanes, tasks, width, items) --------------------------------
def _layer(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    w, read = _matched(weight, x)
    return torch.baddbmm(bias.reshape(*w.shape[:2], 1), w, read).view(*weight.shape[:-1], -1)


def _layer_back(parameters: Parameters, name: str, x: Tensor, grad: Tensor, found: dict[str, Tensor]) -> Tensor:
    """The gradient of a layer's input; those of its parameters are added to ``found``."""
    weight = parameters[f"{name}.weight"]
    w, read = _matched(weight, x)
    by = grad.view(*w.shape[:2], -1)
    found[f"{name}.weight"] = torch.bmm(by, read.transpose(1, 2)).view(weight.shape)
    found[f"{name}.bias"] = by.sum(dim=2).view(weight.shape[:-1])
    return torch.bmm(w.transpose(1, 2), by).view(x.shape)


def _matched(weight: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """As three-dimensional factors: one product for tasks with the same input, lanes for tasks with their own."""
    if x.ndim == 4:
        return weight.flatten(0, 1), x.flatten(0, 1)
    return weight.flatten(1, -2), x
