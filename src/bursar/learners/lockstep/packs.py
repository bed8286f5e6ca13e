"""Texts of many lanes in time order, without rows for texts that have ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.network import Parameters
from bursar.learners.lockstep.sums import SPAN, looked_up, rounded
from bursar.learners.lockstep.texts import CodedTexts, TextNetwork
from bursar.ragged import BoolArray, IntArray


@dataclass(frozen=True)
class Pack:
    """Rows are (time, text) with the longest texts of each lane first: all first words, then all second words, …

    At any time there are as many rows as the lane with the most texts needs. Padding rows are not ``real``.
    """

    sizes: list[int]  # (times,): rows at each time, never increasing
    starts: list[int]  # (times + 1,): start of the rows of each time
    cuts: list[int]  # where sums over rows are split: at the same times for any set of lanes
    times: IntArray  # (rows,)
    items: IntArray  # (lanes, rows): the text of each row, as its index in the lane's batch
    lengths: IntArray  # (lanes, rows): the length of that text
    count: int  # number of texts per lane

    @cached_property
    def real(self) -> BoolArray:
        return self.times < self.lengths

    @cached_property
    def before(self) -> IntArray:
        """For every row after the first time, the row of the previous word."""
        first = self.sizes[0]
        place = np.arange(first, len(self.times)) - np.array(self.starts)[self.times[first:]]
        found: IntArray = np.array(self.starts)[self.times[first:] - 1] + place
        return found

    @cached_property
    def mirrored(self) -> IntArray:
        """For every row the row of the word at the same distance from the end, (lanes, rows); itself for padding."""
        starts = np.array(self.starts)
        place = np.arange(len(self.times)) - starts[self.times]
        there = starts[np.where(self.real, self.lengths - 1 - self.times, 0)] + place
        return np.where(self.real, there, np.arange(len(self.times)))

    def words(self, texts: CodedTexts, rows: IntArray, *, backwards: bool = False) -> IntArray:
        """The word codes of all rows, reading each text forwards or backwards: (lanes, rows)."""
        places = self.lengths - 1 - self.times if backwards else self.times
        chosen = np.take_along_axis(rows, self.items, axis=1)
        return np.where(self.real, texts.codes[chosen, np.where(self.real, places, 0)], 0)

    def sums(self, lanes_of: int = 1) -> tuple[IntArray, IntArray]:
        """Index and offsets for ``gathered``: sums over the words of every text, in batch order.

        With ``lanes_of`` 2 every lane has two consecutive sets of rows, and two sets of sums.
        """
        lanes, rows = self.items.shape
        twice = np.repeat(np.arange(lanes), lanes_of)
        copy, row = np.nonzero(self.real[twice])
        keys = copy * self.count + self.items[twice][copy, row]
        order = np.argsort(keys, kind="stable")
        offsets = np.zeros(len(twice) * self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=len(offsets) - 1), out=offsets[1:])
        return (copy * rows + row)[order], offsets


def pack(texts: CodedTexts, rows: IntArray, step: int) -> Pack:
    """Pack the texts of every lane, rows (lanes, items); rows per time are a multiple of ``step``."""
    lanes, count = rows.shape
    lengths = texts.lengths[rows]
    order = np.argsort(-lengths, axis=1, kind="stable")
    most = rounded(count, step)
    longest = np.zeros((lanes, most), dtype=np.int64)
    longest[:, :count] = np.take_along_axis(lengths, order, axis=1)
    items = np.zeros((lanes, most), dtype=np.int64)
    items[:, :count] = order
    times = int(longest[:, 0].max())
    busy = (longest[:, :, None] > np.arange(times)).sum(axis=1).max(axis=0)
    sizes = [rounded(int(size), step) for size in busy]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    time = np.repeat(np.arange(times), sizes)
    place = np.arange(starts[-1]) - starts[time]
    every = max(SPAN // most, 1)
    cuts = [*starts[:times:every].tolist(), int(starts[-1])]
    return Pack(sizes, starts.tolist(), cuts, time, items[:, place], longest[:, place], count)


class SequenceNetwork(TextNetwork):
    """A network that reads the words of a text in order."""

    def check(self, batch: int) -> None:
        """Refuse batches so large that sums would be split within a time."""
        if rounded(batch, self.step) > SPAN:
            raise ConfigError(
                f"batch = {batch}", fix=f"networks that read words in order take up to {SPAN} texts per batch"
            )

    def vectors_of(self, parameters: Parameters, places: IntArray, words: IntArray) -> Tensor:
        """The vectors of words, (lanes, …): (lanes × …, size)."""
        index = np.take_along_axis(places, words.reshape(len(words), -1), axis=1).reshape(-1)
        return looked_up(parameters["words"], index, np.flatnonzero(words.reshape(-1)))

    def mean(self, sums: Tensor, rows: IntArray) -> Tensor:
        """The means over words from their sums: (lanes, items, width)."""
        return sums / torch.from_numpy(self.texts.lengths[rows]).to(self.dtype).unsqueeze(2)
