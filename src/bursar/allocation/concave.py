"""The exact solver of a split: a knapsack of goods sold in steps of decreasing value.

All steps of a good cost the same, and each is worth no more than the one before. Values are whole numbers, so sums are
exact. Three steps make it fast:

1. **Relax.** Charge ``λ`` per unit of money instead of enforcing the budget: every good is then decided by itself. With
   the smallest affordable ``λ``, some money is ``left``.
2. **Reduce.** A choice within the budget is worth at most ``bound − losses``, where a good's loss is the difference to
   its best number of steps at the price ``λ``. The affordable choice is worth ``bound − λ·left``. So no good of an
   optimal choice loses more than ``λ·left``, which leaves a short range of steps for each.
3. **Combine.** Add one good after the other, for every amount of money. That is a (max, +) convolution with a concave
   sequence, in which the best number of steps is monotone, so ranges halve from level to level (``combined``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from bursar.errors import AllocationError
from bursar.ragged import FloatArray, IntArray, offsets_of

MOST_MONEY = 20_000_000  # units of money, after dividing by common factors; takes a few gigabytes
MOST_COUNTED = 2**62  # units of money that sums of 64 bits can hold
TOLERANCE = 1e-12  # relative rounding error of the bound
HALVINGS = 200


@dataclass(frozen=True, eq=False)
class Good:
    """Something sold in steps."""

    worth: IntArray  # (steps,): value of each further step, positive and not increasing
    cost: int

    @property
    def ratios(self) -> FloatArray:
        """Value per unit of money, not increasing."""
        return self.worth / self.cost

    @property
    def totals(self) -> IntArray:
        """The value of the first 0, 1, 2, … steps: (steps + 1,)."""
        return offsets_of(self.worth)


def best_steps(goods: Sequence[Good], money: int) -> list[int]:
    """The optimal steps of each good; of equal choices the cheapest, then that with most of the first good."""
    unit = gcd(*(good.cost for good in goods)) or 1
    money //= unit
    goods = [Good(good.worth[: money // (good.cost // unit)], good.cost // unit) for good in goods]
    if sum(len(good.worth) * good.cost for good in goods) <= money:
        return [len(good.worth) for good in goods]
    ranges = reduced(goods, money)
    short = [Good(good.worth[low:high], good.cost) for good, (low, high) in zip(goods, ranges, strict=True)]
    left = money - sum(low * good.cost for good, (low, _) in zip(goods, ranges, strict=True))
    more = _searched(short, min(left, sum(len(good.worth) * good.cost for good in short)))
    return [low + steps for (low, _), steps in zip(ranges, more, strict=True)]


def greedy_steps(goods: Sequence[Good], money: int) -> tuple[list[int], float]:
    """Take steps by value per cost, ties to the earlier good, skipping those that do not fit; and an upper bound.

    It is the value of all steps before the first that does not fit, plus the affordable fraction of that one.
    """
    unit = gcd(*(good.cost for good in goods)) or 1
    money //= unit
    if money * len(goods) > MOST_COUNTED:
        raise AllocationError(
            f"a budget of {money:,} units of money is too large", fix="use a larger unit, or a smaller budget"
        )
    goods = [Good(good.worth[: money * unit // good.cost], good.cost // unit) for good in goods]
    whose = np.repeat(np.arange(len(goods)), [len(good.worth) for good in goods])
    costs = np.array([good.cost for good in goods])
    order = np.argsort(-np.concatenate([good.ratios for good in goods]), kind="stable")
    worth, whose = np.concatenate([good.worth for good in goods])[order], whose[order]
    steps, bound, so_far = np.zeros(len(goods), dtype=np.int64), None, 0
    while len(whose):
        fits = int(np.searchsorted(np.cumsum(costs[whose]), money, side="right"))
        steps += np.bincount(whose[:fits], minlength=len(goods))
        money -= int(costs[whose[:fits]].sum())
        so_far += int(worth[:fits].sum())
        if bound is None and fits < len(whose):
            bound = so_far + money * float(worth[fits]) / int(costs[whose[fits]])
        cheap = costs[whose[fits:]] <= money
        worth, whose = worth[fits:][cheap], whose[fits:][cheap]
    return steps.tolist(), float(so_far if bound is None else bound)


# -- relax and reduce ------------------------------------------------------------------------------------------------
def reduced(goods: Sequence[Good], money: int) -> list[tuple[int, int]]:
    """The range of steps of each good in an optimal choice, if not all steps are affordable."""
    ratios = [good.ratios for good in goods]

    def cost_at(price: float) -> int:
        above = (len(r) - int(np.searchsorted(r[::-1], price, side="right")) for r in ratios)
        return sum(good.cost * steps for good, steps in zip(goods, above, strict=True))

    low, price = 0.0, max(float(r[0]) for r in ratios if len(r))
    for _ in range(HALVINGS):
        middle = (low + price) / 2
        if not low < middle < price:
            break
        low, price = (middle, price) if cost_at(middle) > money else (low, middle)
    gap = price * (money - cost_at(price))
    net = [good.totals - price * good.cost * np.arange(len(good.worth) + 1.0) for good in goods]
    bound = sum(float(n.max()) for n in net) + price * money
    ranges = []
    for worth in net:
        fits = np.flatnonzero(worth >= worth.max() - gap - TOLERANCE * bound)
        ranges.append((int(fits[0]), int(fits[-1])))
    return ranges


# -- combine ---------------------------------------------------------------------------------------------------------
def _searched(goods: Sequence[Good], money: int) -> list[int]:
    """The optimal choice, from the best value of the goods after each one for every amount of money."""
    if money > MOST_MONEY:
        raise AllocationError(
            f"the budget is {money:,} times the common unit of all prices, above the limit of {MOST_MONEY:,}",
            fix="use a larger unit, or prices with a larger common divisor",
        )
    rest: list[IntArray] = [np.zeros(money + 1, dtype=np.int64)]  # best value of no goods, the last, the last two …
    for good in reversed(goods[1:]):
        rest.append(combined(rest[-1], good))
    chosen = []
    for good, after in zip(goods, reversed(rest), strict=True):
        steps = np.arange(min(len(good.worth), money // good.cost) + 1)
        others = after[money - steps * good.cost]
        worth = good.totals[steps] + others
        best = np.flatnonzero(worth == worth.max())
        spent = best * good.cost + np.searchsorted(after, others[best])  # the least money for this value
        pick = len(best) - 1 - int(spent[::-1].argmin())
        chosen.append(int(best[pick]))
        money = int(spent[pick]) - chosen[-1] * good.cost
    return chosen


def combined(before: IntArray, good: Good) -> IntArray:
    """The best value for every amount of money with one more good: (money + 1,) to the same.

    ``before`` does not decrease. Amounts are arranged in rows of ``cost``, so that a step of the good is one row. The
    ``source`` of a row, the first best row for the remaining money, does not decrease either, because ``totals`` are
    concave. So the sources of two rows bound that of a row between them.
    """
    cost, totals, most = good.cost, good.totals, len(good.worth)
    rows = -(-len(before) // cost)
    padded = np.pad(before, (0, rows * cost - len(before)), mode="edge")
    found = padded.copy().reshape(rows, cost)
    source = np.zeros((rows, cost), dtype=np.int64)
    columns = np.arange(cost)
    stride = 1 << (rows - 1).bit_length()
    while stride > 1:
        half = stride // 2
        new = np.arange(half, rows, stride)
        beyond = (new + half >= rows)[:, None]
        low = np.maximum(source[new - half], (new - most)[:, None])
        high = np.where(beyond, new[:, None], np.minimum(source[np.minimum(new + half, rows - 1)], new[:, None]))
        lengths = (high - low + 1).ravel()
        starts = offsets_of(lengths)
        place, begins = np.arange(starts[-1]), starts[:-1].reshape(low.shape)
        steps = np.repeat((new[:, None] - low + begins).ravel(), lengths) - place
        amounts = np.repeat(((low - begins) * cost + columns).ravel(), lengths) + place * cost
        worth = padded[amounts] + totals[steps]
        top = np.maximum.reduceat(worth, starts[:-1])
        ties = np.flatnonzero(worth == np.repeat(top, lengths))
        first = ties[np.searchsorted(ties, starts[:-1])]
        found[new], source[new] = top.reshape(low.shape), (amounts[first] // cost).reshape(low.shape)
        stride = half
    return found.ravel()[: len(before)]
