"""The parameters of many models side by side, and Adam on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.learners.lockstep.network import DECAYS, EPSILON, Lane, Moving, Network
from bursar.learners.lockstep.sums import ALIGNED, rounded
from bursar.ragged import IntArray


class Layout:
    """The position of each parameter in a flat array; all start at multiples of 128 bytes."""

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self.shapes = {name: value.shape for name, value in parameters.items()}
        self.starts, at = {}, 0
        for name, shape in self.shapes.items():
            self.starts[name] = at
            at += rounded(shape.numel(), ALIGNED)
        self.length = at

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Views of the parameters of every lane, (lanes, …), in the lanes' flat arrays."""
        return {
            name: rows[:, start : start + self.shapes[name].numel()].view(-1, *self.shapes[name])
            for name, start in self.starts.items()
        }


class Lanes:
    """Values, gradients and moments of the models in training, and their best values so far.

    ``rows`` holds all parameters but the table. Of the table, moments and best values are kept only for the rows that a
    model trains, which come first in a lane.
    """

    def __init__(self, network: Network, lanes: int, learned: int | None = None) -> None:
        """``learned`` is the largest number of table rows that a model trains, by default all of them."""
        self.network, self.name, first = network, network.table, network.first(0)
        self.layout = Layout({name: value for name, value in first.items() if name != self.name})
        zeros = partial(torch.zeros, dtype=network.dtype)
        self.rows = zeros(lanes, self.layout.length)
        self.grads = torch.zeros_like(self.rows)
        height, width = first[self.name].shape if self.name else (0, ALIGNED)
        self.height = rounded(height, ALIGNED)  # rows of a lane's table
        self.table = zeros(lanes, self.height, width)
        self.places = np.zeros((lanes, height), dtype=np.int64)
        self.steps = torch.zeros(lanes)
        learned = self.height if learned is None else min(rounded(learned, ALIGNED), self.height)
        self.moments = [zeros(lanes, size) for size in [self.layout.length, learned * width] * 2]
        self.best_rows, self.best_table = torch.zeros_like(self.rows), zeros(lanes, learned, width)
        self.touched: list[IntArray] = [np.zeros(0, dtype=np.int64)] * lanes
        self._ones: dict[int, Lane] = {}
        self.use(0)

    # -- filling lanes ------------------------------------------------------------------------------------------------
    def fill(self, lane: int, first: Mapping[str, Tensor], touched: IntArray) -> None:
        for name, view in self.layout.views(self.rows[lane : lane + 1]).items():
            view.copy_(first[name])
        if self.name:
            others = np.ones(self.places.shape[1], dtype=bool)
            others[touched] = False
            order = np.concatenate([touched, np.flatnonzero(others)])
            torch.index_select(first[self.name], 0, torch.from_numpy(order), out=self.table[lane, : len(order)])
            self.places[lane, order] = np.arange(len(order)) + lane * self.height
        for moment in self.moments:
            moment[lane].zero_()
        self.steps[lane] = 0
        self.touched[lane] = touched
        self._ones.pop(lane, None)

    def move(self, lane: int, to: int) -> None:
        for held in (self.rows, self.table, self.best_rows, self.best_table, self.steps, *self.moments):
            held[to].copy_(held[lane])
        self.places[to] = self.places[lane] + (to - lane) * self.height
        self.touched[to] = self.touched[lane]
        self._ones.pop(to, None)

    def use(self, lanes: int) -> None:
        self.used = lanes
        learned = max((len(self.touched[lane]) for lane in range(lanes)), default=0)
        learned = min(rounded(learned, ALIGNED), self.best_table.shape[1])
        numbers = learned * self.table.shape[2]
        self.parameters = self.layout.views(self.rows[:lanes])
        self._slots = self.layout.views(self.grads[:lanes])
        if self.name:
            self.parameters[self.name] = self.table[:lanes, :learned]
        fast, fast_table, slow, slow_table = (moment[:lanes] for moment in self.moments)
        self._adam = [*self.rows[:lanes]], [*fast], [*slow], [*self.steps[:lanes]]
        if self.name:
            values, fasts, slows, steps = self._adam
            values += [self.table[lane, :learned].view(-1) for lane in range(lanes)]
            fasts += [*fast_table[:, :numbers]]
            slows += [*slow_table[:, :numbers]]
            steps += [*self.steps[:lanes]]

    # -- training ------------------------------------------------------------------------------------------------------
    def step(self, gradients: dict[str, Tensor], rate: float) -> None:
        for name, slot in self._slots.items():
            slot.copy_(gradients[name])
        grads = [*self.grads[: self.used]]
        if self.name:
            grads += gradients[self.name].reshape(self.used, -1).unbind()
        self.steps[: self.used] += 1
        values, fast, slow, steps = self._adam
        how: dict[str, Any] = {"lr": rate, "beta1": DECAYS[0], "beta2": DECAYS[1], "eps": EPSILON, "weight_decay": 0.0}
        torch._fused_adam_(values, grads, fast, slow, [], steps, **how, amsgrad=False, maximize=False)

    def one(self, lane: int) -> Lane:
        if lane not in self._ones:
            table = self.table[lane].numpy()
            learned = len(self.touched[lane]) * table.shape[1]
            fast, fast_table, slow, slow_table = (moment[lane].numpy() for moment in self.moments)
            words = table.reshape(-1)[:learned]
            self._ones[lane] = Lane(
                Moving(self.rows[lane].numpy(), self.grads[lane].numpy(), fast, slow),
                np.array([*self.layout.starts.values()]),
                np.array([shape.numel() for shape in self.layout.shapes.values()]),
                table,
                Moving(words, np.zeros_like(words), fast_table[:learned], slow_table[:learned]),
                self.places[lane] - lane * self.height,
            )
        return self._ones[lane]

    def some(self, lanes: Sequence[int]) -> tuple[dict[str, Tensor], IntArray]:
        """The parameters and places of some lanes; the table is that of all lanes."""
        every = len(lanes) == self.used
        chosen = self.rows[: self.used] if every else self.rows.index_select(0, torch.tensor(lanes))
        parameters = self.layout.views(chosen)
        if self.name:
            parameters[self.name] = self.table
        return parameters, self.places[np.asarray(lanes, dtype=np.int64)]

    def keep(self, lane: int) -> None:
        learned = rounded(len(self.touched[lane]), ALIGNED)
        self.best_rows[lane].copy_(self.rows[lane])
        self.best_table[lane, :learned].copy_(self.table[lane, :learned])

    def best(self, lane: int) -> dict[str, Tensor]:
        """The best values of a lane; of the table, those of the trained rows."""
        found = {name: value[0].clone() for name, value in self.layout.views(self.best_rows[lane : lane + 1]).items()}
        if self.name:
            found[self.name] = self.best_table[lane, : len(self.touched[lane])].clone()
        return found
