"""LSTM layers for many lanes, with a hand-written backward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bursar.learners.lockstep.packs import Pack
from bursar.learners.lockstep.sums import contracted


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
