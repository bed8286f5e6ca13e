"""Products and sums that come out the same to the last bit in any company.

Models are trained beside others with other numbers of words, so arrays are padded with zeros by amounts that depend on
the company. A zero more changes no sum as long as the others are added up in the same order. To see to that,

- a product contracts at most ``SPAN`` rows at a time, because libraries cut longer ones at places that depend on the
  length; the cuts are made here instead, where they depend on nothing but the place in time;
- rows come in multiples of four or more (``quantum``), because libraries treat the last one to three in another way,
  and so that the numbers of every lane begin at a multiple of 64 bytes, which libraries look at as well;
- other sums are made by ``gathered``, which adds rows one after the other;
- what goes through exp is a multiple of 128 bytes long, because the odd end of an array is computed in another way:
  torch takes two vectors at a time, and the longest that there are have 64 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.ragged import IntArray

SPAN = 128  # rows
ALIGNED = 32  # numbers: 128 bytes of single precision


def rounded(number: int, to: int) -> int:
    """The next multiple.

    >>> rounded(17, 16), rounded(32, 16)
    (32, 32)
    """
    return -(-number // to) * to


def quantum(width: int) -> int:
    """Rows of this width come in multiples of so many.

    >>> quantum(64), quantum(50), quantum(7)
    (4, 16, 32)
    """
    return max(4, ALIGNED // gcd(ALIGNED, width))


def gathered(table: Tensor, index: IntArray, offsets: IntArray) -> Tensor:
    """Sums of rows of a table: sum i has the rows index[offsets[i]:offsets[i + 1]], added up in this order.

    >>> gathered(torch.tensor([[1.0], [10.0], [100.0]]), np.array([0, 2, 2]), np.array([0, 1, 1, 3])).tolist()
    [[1.0], [0.0], [200.0]]
    """
    if not len(index):
        return table.new_zeros(len(offsets) - 1, table.shape[1])
    places, starts = torch.from_numpy(index), torch.from_numpy(offsets)
    return torch.embedding_bag(table, places, starts, False, 0, False, None, True)[0]


def stacked(values: Tensor) -> Tensor:
    """The sum over the rows of every lane, (lanes, rows, width) to (lanes, width), one row after the other."""
    lanes, rows, width = values.shape
    offsets = np.arange(lanes + 1) * rows
    return gathered(values.reshape(lanes * rows, width), np.arange(lanes * rows), offsets)


def flat(table: Tensor) -> Tensor:
    """The tables of all lanes, one below the other, also where only the first rows of each are shown."""
    lanes, _, width = table.shape
    return table.as_strided((lanes * (table.stride(0) // width), width), (width, 1))


def scattered(values: Tensor, source: IntArray, places: IntArray, like: Tensor) -> Tensor:
    """The sum of the rows that go to each place of a table: the reverse of looking rows up.

    values (rows, width); row ``source[i]`` goes to ``places[i]`` of the flat table, in the order of i.
    """
    lanes, rows, width = like.shape
    every = like.stride(0) // width
    lane, slot = np.divmod(places, every)
    keys = lane * rows + slot
    small = keys.astype(np.uint16) if lanes * rows < 2**16 else keys  # sorted much faster, in the same order
    order = np.argsort(small, kind="stable")
    offsets = np.zeros(lanes * rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=lanes * rows), out=offsets[1:])
    return gathered(values, source[order], offsets).view(lanes, rows, width)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, cuts: Sequence[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.cuts, ctx.biased = cuts, bias is not None
        return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        slope = slopes[0].contiguous()
        back = torch.bmm(slope, weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return back, contracted(x, slope, ctx.cuts), stacked(slope) if ctx.biased else None, None


def product(x: Tensor, weight: Tensor, bias: Tensor | None, cuts: Sequence[int]) -> Tensor:
    """(lanes, rows, width) times (lanes, width, outputs), plus (lanes, outputs); ``cuts`` are where sums are cut."""
    found: Tensor = _Product.apply(x, weight, bias, cuts)  # type: ignore[no-untyped-call]
    return found


def contracted(x: Tensor, y: Tensor, cuts: Sequence[int]) -> Tensor:
    """The sum over the rows of x' y, (lanes, x's width, y's width), from one cut to the next."""
    width = x.shape[2]
    if width * y.shape[2] % ALIGNED:
        x = torch.nn.functional.pad(x, (0, -width % quantum(y.shape[2])))
    total: Tensor | None = None
    for start, end in pairwise(cuts):
        left, right = x[:, start:end].transpose(1, 2), y[:, start:end]
        total = torch.bmm(left, right) if total is None else total.baddbmm_(left, right)
    if total is None:
        return x.new_zeros(len(x), width, y.shape[2])
    return total[:, :width]


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, places: IntArray, order: IntArray) -> Tensor:
        ctx.save_for_backward(table)
        ctx.places, ctx.order = places, order
        return flat(table).index_select(0, torch.from_numpy(places))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (table,) = ctx.saved_tensors
        return scattered(slopes[0], ctx.order, ctx.places[ctx.order], table), None, None


def looked_up(table: Tensor, places: IntArray, order: IntArray) -> Tensor:
    """Rows of the flat table, (rows, width); ``order`` says which have a slope, in the order of adding them up."""
    found: Tensor = _Lookup.apply(table, places, order)  # type: ignore[no-untyped-call]
    return found


class _Pooled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, index: IntArray, offsets: IntArray) -> Tensor:
        ctx.index, ctx.offsets, ctx.rows = index, offsets, len(values)
        return gathered(values, index, offsets)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        found = slopes[0].new_zeros(ctx.rows, slopes[0].shape[1])
        owners = np.repeat(np.arange(len(ctx.offsets) - 1), np.diff(ctx.offsets))
        found[torch.from_numpy(ctx.index)] = slopes[0].index_select(0, torch.from_numpy(owners))
        return found, None, None


def pooled(values: Tensor, index: IntArray, offsets: IntArray) -> Tensor:
    """``gathered`` with a slope, for rows that are in one sum each at most."""
    found: Tensor = _Pooled.apply(values, index, offsets)  # type: ignore[no-untyped-call]
    return found
