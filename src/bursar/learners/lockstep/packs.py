"""Texts of many lanes in the order of time, with as few rows at a time as the texts that are that long."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.errors import ConfigError
from bursar.learners.lockstep.sums import SPAN, rounded
from bursar.learners.lockstep.texts import Texts
from bursar.ragged import BoolArray, IntArray


@dataclass(frozen=True)
class Pack:
    """Rows are (time, text) with the longest texts of each lane first: all first words, then all second words, …

    At any time there are as many rows as the company needs. Those of a lane that are no words are not ``real``.
    """

    sizes: list[int]  # (times,): rows at each time, never more than before
    starts: list[int]  # (times + 1,): where they begin
    cuts: list[int]  # where sums over rows are cut: at the same times in any company
    times: IntArray  # (rows,)
    items: IntArray  # (lanes, rows): the text of each row, by its place in the lane's batch
    lengths: IntArray  # (lanes, rows): of that text
    count: int  # texts of a lane

    @cached_property
    def real(self) -> BoolArray:
        return self.times < self.lengths

    @cached_property
    def before(self) -> IntArray:
        """For every row after the first time, the row of the same text one word earlier."""
        first = self.sizes[0]
        place = np.arange(first, len(self.times)) - np.array(self.starts)[self.times[first:]]
        found: IntArray = np.array(self.starts)[self.times[first:] - 1] + place
        return found

    @cached_property
    def mirrored(self) -> IntArray:
        """For every row the row of the word that is as far from the end, (lanes, rows); itself if it is no word."""
        starts = np.array(self.starts)
        place = np.arange(len(self.times)) - starts[self.times]
        there = starts[np.where(self.real, self.lengths - 1 - self.times, 0)] + place
        return np.where(self.real, there, np.arange(len(self.times)))

    def words(self, texts: Texts, rows: IntArray, *, backwards: bool = False) -> IntArray:
        """The word codes of all rows, from the front or from the back of each text: (lanes, rows)."""
        places = self.lengths - 1 - self.times if backwards else self.times
        chosen = np.take_along_axis(rows, self.items, axis=1)
        return np.where(self.real, texts.codes[chosen, np.where(self.real, places, 0)], 0)

    def sums(self, lanes_of: int = 1) -> tuple[IntArray, IntArray]:
        """Index and offsets for ``gathered``: the sums over the words of every text, in their order in the batch.

        With ``lanes_of`` 2 every lane has two sets of rows, one behind the other, and two sets of sums.
        """
        lanes, rows = self.items.shape
        twice = np.repeat(np.arange(lanes), lanes_of)
        copy, row = np.nonzero(self.real[twice])
        keys = copy * self.count + self.items[twice][copy, row]
        order = np.argsort(keys, kind="stable")
        offsets = np.zeros(len(twice) * self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=len(offsets) - 1), out=offsets[1:])
        return (copy * rows + row)[order], offsets


def pack(texts: Texts, rows: IntArray, step: int) -> Pack:
    """The texts of every lane, rows (lanes, items); rows at a time are a multiple of ``step``."""
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


def check_batch(batch: int, step: int) -> None:
    """Sums over a batch must not be cut within a time."""
    if rounded(batch, step) > SPAN:
        raise ConfigError(f"batch = {batch}", fix=f"networks that read words in order take up to {SPAN} texts a batch")
