"""Products and sums whose bits do not depend on the other lanes.

Lanes have different numbers of words, so arrays are padded with zeros by amounts that depend on the other lanes. Zeros
change no sum as long as the other terms are added in the same order. To ensure that,

- a product contracts at most ``SPAN`` rows at a time, because libraries split longer ones at places that depend on the
  length; here they are split at fixed times;
- rows come in multiples of four or more (``quantum``), because libraries treat the last one to three differently, and
  so that every lane starts at a multiple of 64 bytes, which also matters to libraries;
- other sums are computed by ``gathered``, which adds rows one after the other;
- arrays that go through exp have a multiple of 128 bytes, because the remainder of an array is computed differently:
  torch takes two vectors at a time, of at most 64 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bursar.ragged import IntArray, offsets_of

SPAN = 128  # rows
ALIGNED = 32  # numbers: 128 bytes of single precision


def rounded(number: int, to: int) -> int:
    """Round up to a multiple."""
    return -(-number // to) * to


def quantum(width: int) -> int:
    """Rows of this width come in multiples of this number."""
    return max(4, ALIGNED // gcd(ALIGNED, width))


def gathered(table: Tensor, index: IntArray, offsets: IntArray) -> Tensor:
    """Sums of rows of a table: sum i is over index[offsets[i]:offsets[i + 1]], in this order."""
    if not len(index):
        return table.new_zeros(len(offsets) - 1, table.shape[1])
    places, starts = torch.from_numpy(index), torch.from_numpy(offsets)
    return torch.embedding_bag(table, places, starts, False, 0, False, None, True)[0]


def stacked(values: Tensor) -> Tensor:
    """The sum over the rows of every lane, in order: (lanes, rows, width) to (lanes, width)."""
    lanes, rows, width = values.shape
    offsets = np.arange(lanes + 1) * rows
    return gathered(values.reshape(lanes * rows, width), np.arange(lanes * rows), offsets)


def flat(table: Tensor) -> Tensor:
    """The tables of all lanes, concatenated, even if only the first rows of each are in the view."""
    lanes, _, width = table.shape
    return table.as_strided((lanes * (table.stride(0) // width), width), (width, 1))


def scattered(values: Tensor, source: IntArray, places: IntArray, like: Tensor) -> Tensor:
    """Sum the rows that belong to each place of a table: the gradient of ``looked_up``.

    values (rows, width); row ``source[i]`` goes to ``places[i]`` of the flat table, in the order of i.
    """
    lanes, rows, width = like.shape
    every = like.stride(0) // width
    lane, slot = np.divmod(places, every)
    keys = lane * rows + slot
    small = keys.astype(np.uint16) if lanes * rows < 2**16 else keys  # sorts much faster, to the same order
    order = np.argsort(small, kind="stable")
    offsets = offsets_of(np.bincount(keys, minlength=lanes * rows))
    return gathered(values, source[order], offsets).view(lanes, rows, width)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, cuts: Sequence[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.cuts, ctx.biased = cuts, bias is not None
        return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        grad = grads[0].contiguous()
        back = torch.bmm(grad, weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return back, contracted(x, grad, ctx.cuts), stacked(grad) if ctx.biased else None, None


def product(x: Tensor, weight: Tensor, bias: Tensor | None, cuts: Sequence[int]) -> Tensor:
    """(lanes, rows, width) times (lanes, width, outputs), plus (lanes, outputs); sums are split at ``cuts``."""
    found: Tensor = _Product.apply(x, weight, bias, cuts)  # type: ignore[no-untyped-call]
    return found


def contracted(x: Tensor, y: Tensor, cuts: Sequence[int]) -> Tensor:
    """x' y: (lanes, x's width, y's width), summed from one cut to the next."""
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
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (table,) = ctx.saved_tensors
        return scattered(grads[0], ctx.order, ctx.places[ctx.order], table), None, None


def looked_up(table: Tensor, places: IntArray, order: IntArray) -> Tensor:
    """Rows of the flat table, (rows, width); ``order`` lists those with a gradient, in the order of adding them."""
    found: Tensor = _Lookup.apply(table, places, order)  # type: ignore[no-untyped-call]
    return found
