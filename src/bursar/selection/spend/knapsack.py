"""Spending a budget exactly: the multiple-choice knapsack of paper 1, section 7 (errata 8 and 9).

Any subset of an item's tasks may be bought: reading is paid once, every task adds its own price, and the sum of the
values is maximised. Three steps solve this much faster than general integer programming, because the second leaves
almost nothing for the third:

1. **Relax.** Charge ``λ`` per unit of money instead of enforcing the budget. Every item then decides for itself, and
   the best ``λ`` gives an upper bound and a *plan* that is affordable and nearly optimal.
2. **Reduce.** Deviating from the plan costs a *loss* under ``λ``. With ``s`` units unspent, a selection is worth
   exactly ``bound − losses − λ·s``, so a deviation that loses more than the gap between the bound and the best known
   selection cannot be part of a better one. The deviations that remain are the *core*.
3. **Search the core.** A dynamic program over (cost, value) of deviations, smallest loss first, that drops states that
   are dominated or lose more than the gap. Each better selection narrows the gap, and so the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import BoolArray, FloatArray, IntArray, offsets_of

TOLERANCE = 1e-12  # relative to the bound, for floating-point sums
FIRST_LOOK = 200  # items of the core in the first search
MOST_STATES = 30_000_000  # of a whole search; beyond it the result is not proven optimal


@dataclass(frozen=True, eq=False)
class KnapsackSolution:
    """What to buy, its value, and an upper bound on the value of any selection."""

    chosen: BoolArray  # (items, tasks)
    objective: float
    bound: float
    optimal: bool


@dataclass(frozen=True, eq=False)
class Menu:
    """The value and the price of every label. A label with a value of 0 or less is never bought."""

    value: FloatArray  # (items, tasks)
    reading: IntArray  # (items,)
    own: IntArray  # (items, tasks)

    def take(self, items: IntArray) -> Menu:
        return Menu(self.value[items], self.reading[items], self.own[items])

    def within(self, budget: int) -> Menu:
        """Set the value of labels that are worthless or unaffordable even alone to 0."""
        able = (self.value > 0) & (self.reading[:, None] + self.own <= budget)
        return Menu(np.where(able, self.value, 0.0), self.reading, self.own)


def solve(menu: Menu, budget: int) -> KnapsackSolution:
    """The best affordable selection, proven optimal unless the search is cut short."""
    items, tasks = menu.value.shape
    if tasks > 1 and not menu.reading.any():  # labels are independent
        flat = Menu(menu.value.reshape(-1, 1), np.zeros(items * tasks, dtype=np.int64), menu.own.reshape(-1, 1))
        found = solve(flat, budget)
        return KnapsackSolution(found.chosen.reshape(items, tasks), found.objective, found.bound, found.optimal)
    unit = int(np.gcd.reduce(menu.own, axis=None, initial=int(np.gcd.reduce(menu.reading, initial=0)))) or 1
    small = Menu(menu.value, menu.reading // unit, menu.own // unit).within(budget // unit)
    plan = relax(small, budget // unit)
    chosen, proven = search(small, plan)
    objective = float(menu.value[chosen].sum())
    bound = objective if proven else max(objective, plan.bound)
    return KnapsackSolution(chosen, objective, bound, proven)


# -- 1. relax --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class RelaxedPlan:
    """The multiplier λ, and an affordable selection that is best for every item at that λ."""

    price: float  # λ
    chosen: BoolArray  # (items, tasks)
    left: int  # unspent budget
    bound: float


def relax(menu: Menu, budget: int) -> RelaxedPlan:
    """Solve the linear relaxation: buy steps in order of value per cost until one does not fit.

    The first step of an item is its bundle of tasks with the best value per cost, reading included; each further task
    is a step of its own. These are the corners of the item's concave hull, so buying them by value per cost solves the
    relaxation, and the ratio of the step that does not fit is ``λ``.
    """
    worth, cost = steps(menu)
    price = _break_price(worth, cost, budget)
    chosen = worth > price
    left = budget - int(cost[chosen].sum())
    if price > 0:  # steps at exactly this price are optional: buy as many as fit, in order
        tied = worth == price
        rows = np.flatnonzero(tied.any(axis=1))
        fits = np.cumsum(np.where(tied[rows], cost[rows], 0).sum(axis=1)) <= left
        rows = rows[fits]
        left -= int(cost[rows][tied[rows]].sum())
        chosen[rows] |= tied[rows]
    return RelaxedPlan(price, chosen, left, float(menu.value[chosen].sum()) + price * left)


def steps(menu: Menu) -> tuple[FloatArray, IntArray]:
    """The value per cost of each label's step, and its part of the step's cost; one task of a bundle pays reading."""
    value = menu.value
    if value.shape[1] == 1:
        cost = menu.own + menu.reading[:, None]
        return _ratio(value, cost), cost
    alone = _ratio(value, menu.own)
    order = np.argsort(-alone, axis=1, kind="stable")
    by_ratio = np.take_along_axis(alone, order, axis=1)
    own = np.take_along_axis(menu.own, order, axis=1)
    together = _ratio(
        np.cumsum(np.take_along_axis(value, order, axis=1), axis=1), menu.reading[:, None] + np.cumsum(own, axis=1)
    )
    best = together.argmax(axis=1)
    in_bundle = np.arange(value.shape[1]) <= best[:, None]
    top = together.max(axis=1)[:, None]  # caps further tasks, which rounding might put above it
    worth = np.where(in_bundle, top, np.minimum(by_ratio, top))
    own[:, 0] += menu.reading
    back = np.argsort(order, axis=1, kind="stable")
    worth = np.where(value > 0, np.take_along_axis(worth, back, axis=1), 0.0)
    return worth, np.take_along_axis(own, back, axis=1)


def _ratio(value: FloatArray, cost: IntArray) -> FloatArray:
    """Value per cost; infinite for a free label, 0 for a worthless one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: FloatArray = np.where(value > 0, value / cost, 0.0)
    return ratio


def _break_price(worth: FloatArray, cost: IntArray, budget: int) -> float:
    """The value per cost of the first step that does not fit; 0 if all fit. Bisects instead of sorting all steps."""
    wanted = worth > 0
    worth, cost, left = worth[wanted], cost[wanted], budget
    while True:
        if len(worth) > 10_000:
            sample = worth[:: len(worth) // 1000]
            above = worth >= np.partition(sample, len(sample) // 2)[len(sample) // 2]
            if not above.all():
                spent = int(cost[above].sum())
                if spent > left:
                    worth, cost = worth[above], cost[above]
                else:
                    worth, cost, left = worth[~above], cost[~above], left - spent
                continue
        order = np.argsort(-worth, kind="stable")
        over = np.flatnonzero(np.cumsum(cost[order]) > left)
        return float(worth[order[over[0]]]) if len(over) else 0.0


# -- 2. reduce -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Deviations:
    """Ways to buy items other than the plan's, grouped by item, in order of the item's least loss."""

    items: IntArray  # (core,)
    offsets: IntArray  # (core + 1,)
    tasks: BoolArray  # (deviations, tasks)
    cost: IntArray  # (deviations,) in addition to the plan
    value: FloatArray  # (deviations,) in addition to the plan
    loss: FloatArray  # (deviations,)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def least(self) -> FloatArray:
        """The least loss of each item: (core,)."""
        return np.minimum.reduceat(self.loss, self.offsets[:-1]) if len(self) else self.loss

    def keep(self, kept: BoolArray) -> Deviations:
        """A subset of the deviations and the items that still have one, sorted by least loss."""
        counts = np.add.reduceat(kept.astype(np.int64), self.offsets[:-1]) if len(self) else self.offsets[1:]
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))[kept]
        rows = np.flatnonzero(counts)
        least = np.minimum.reduceat(self.loss[kept], offsets_of(counts[rows])[:-1]) if len(rows) else self.loss[:0]
        frees = np.minimum.reduceat(self.cost[kept], offsets_of(counts[rows])[:-1]) < 0 if len(rows) else rows > 0
        rows = rows[_in_turns(least, frees)]
        place = np.empty(len(self), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        at = np.flatnonzero(kept)[np.argsort(place[row], kind="stable")]
        return Deviations(
            self.items[rows], offsets_of(counts[rows]), self.tasks[at], self.cost[at], self.value[at], self.loss[at]
        )


def _in_turns(least: FloatArray, frees: BoolArray) -> IntArray:
    """Order by loss; among equal losses, alternate between items that free money and items that cost it."""
    order = np.lexsort((frees, least))
    kind = np.cumsum(np.diff(least[order], prepend=least[order[:1]]) != 0) * 2 + frees[order]
    starts = np.flatnonzero(np.diff(kind, prepend=-1))
    turn = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    found: IntArray = order[np.lexsort((turn, kind // 2))]
    return found


def losses(menu: Menu, plan: RelaxedPlan) -> FloatArray:
    """The least loss of deviating from the plan for each item, at the plan's λ: (items,)."""
    gain = _gains(menu, plan.price)
    reading = plan.price * menu.reading
    flip = np.abs(gain).min(axis=1)
    close = np.where(plan.chosen, gain, 0.0).sum(axis=1) - reading
    best_alone = gain.max(axis=1)
    enter = reading - np.where(best_alone > 0, np.maximum(gain, 0).sum(axis=1), best_alone)
    least: FloatArray = np.maximum(np.where(plan.chosen.any(axis=1), np.minimum(flip, close), enter), 0)
    return least


def _gains(menu: Menu, price: float) -> FloatArray:
    """The value of each label less its price at λ; −∞ for a value of 0."""
    return np.where(menu.value > 0, menu.value - price * menu.own, -np.inf)


def core(menu: Menu, plan: RelaxedPlan, gap: float) -> Deviations:
    """The deviations that can be part of a selection whose losses stay below the gap.

    Two deviations that change the cost equally are interchangeable, so using one implies using all items that would
    lose less by it, and their losses add up. And among more than 2·Δ + 1 deviations of at most Δ some always cancel
    out in cost and are not needed (Eisenbrand and Weismantel 2020).
    """
    found = _deviations(menu, plan, np.flatnonzero(losses(menu, plan) < gap), gap)
    if not len(found):
        return found
    row = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    order = np.lexsort((row, found.loss, found.cost))
    kind, item = found.cost[order], row[order]
    first = np.zeros(len(order), dtype=bool)  # an item's first deviation among those of equal cost
    first[np.unique(kind * len(found) + item, return_index=True)[1]] = True
    paid = np.where(first, found.least[item], 0.0)
    starts = np.flatnonzero(np.diff(kind, prepend=kind[0] - 1))
    sizes = np.diff(starts, append=len(order))

    def before(each: Any) -> Any:
        running = np.cumsum(each) - each
        return running - np.repeat(running[starts], sizes)

    others = before(paid)
    most = 2 * int(np.abs(found.cost).max()) + 1
    margin = TOLERANCE * (1 + paid.sum())
    kept = np.zeros(len(order), dtype=bool)
    kept[order] = first & (others + found.loss[order] < gap + margin) & (before(first.astype(np.int64)) <= most)
    return found.keep(kept)


def _deviations(menu: Menu, plan: RelaxedPlan, items: IntArray, gap: float) -> Deviations:
    """Every deviation of these items that loses less than the gap."""
    part, now = menu.take(items), plan.chosen[items]
    gain = _gains(part, plan.price)
    row, tasks = _subsets(sure=gain >= gap, doubtful=np.abs(gain) < gap)
    bought = np.where(now.any(axis=1), part.reading, 0) + (part.own * now).sum(axis=1)
    cost = np.where(tasks.any(axis=1), part.reading[row], 0) + (part.own[row] * tasks).sum(axis=1) - bought[row]
    value = (part.value[row] * tasks).sum(axis=1) - (part.value * now).sum(axis=1)[row]
    loss = np.maximum(plan.price * cost - value, 0)
    found = Deviations(items, offsets_of(np.bincount(row, minlength=len(items))), tasks, cost, value, loss)
    return found.keep((loss < gap) & (tasks != now[row]).any(axis=1))


def _subsets(sure: BoolArray, doubtful: BoolArray) -> tuple[IntArray, BoolArray]:
    """For each row the empty set and every union of the ``sure`` with some ``doubtful`` tasks; and each set's row."""
    patterns, of = np.unique(np.concatenate([sure, doubtful], axis=1), axis=0, return_inverse=True)
    rows, subsets = [], []
    for number, pattern in enumerate(patterns):
        base, free = pattern[: sure.shape[1]], np.flatnonzero(pattern[sure.shape[1] :])
        bits = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1
        made = np.tile(base, (len(bits), 1))
        made[:, free] = bits.astype(bool)
        made = np.concatenate([np.zeros((1, len(base)), dtype=bool), made[made.any(axis=1)]])
        mine = np.flatnonzero(of == number)
        rows.append(np.repeat(mine, len(made)))
        subsets.append(np.tile(made, (len(mine), 1)))
    row = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    order = np.argsort(row, kind="stable")
    return row[order], np.concatenate([sure[:0], *subsets])[order]


# -- 3. search the core ----------------------------------------------------------------------------------------------
def search(menu: Menu, plan: RelaxedPlan) -> tuple[BoolArray, bool]:
    """The best selection, and whether it is proven optimal. A first search of few items leaves little to the second."""
    state, chosen = _Search(plan, _grain(menu), TOLERANCE * max(1.0, abs(plan.bound))), plan.chosen
    for most in (FIRST_LOOK, None):
        if state.gap <= state.slack:
            return chosen, True
        found = core(menu, plan, state.gap)
        trail = state.explore(found, len(found) if most is None else min(most, len(found)))
        if trail:
            chosen = prefer_first_of_equals(_retrace(plan, found, trail), menu, found.items)
        if most is None or len(found) <= most:
            break
    return chosen, state.work <= MOST_STATES


def _grain(menu: Menu) -> float:
    """The smallest value if all values are whole multiples of it, else 0."""
    positive = menu.value[menu.value > 0]
    if not len(positive):
        return 0.0
    smallest = float(positive.min())
    times = positive / smallest
    return smallest if times.max() < 1e6 and np.abs(times - np.rint(times)).max() < 1e-9 else 0.0


@dataclass
class _Search:
    """The state of the search: the best value found, relative to the plan, and the number of states explored."""

    plan: RelaxedPlan
    grain: float
    slack: float  # for rounding errors
    best: float = 0.0
    work: int = 0

    @property
    def gap(self) -> float:
        """How much better than the best one a selection may still be."""
        most = self.plan.price * self.plan.left
        return (np.floor(most / self.grain + 1e-6) * self.grain if self.grain else most) - self.best

    def explore(self, found: Deviations, steps: int) -> list[tuple[IntArray, IntArray]]:
        """Extend item by item the undominated states (cost, value) that may lead to more than the best.

        Returns the trail to a better state, if any: parents and deviations of each item's states, then the final state.
        """
        plan, least = self.plan, found.least
        freed = np.maximum.reduceat(-found.cost, found.offsets[:-1]) if len(found) else found.cost
        later = np.append(np.cumsum(np.maximum(freed, 0)[::-1])[::-1], 0)  # money that later items could free
        cost: IntArray = np.zeros(1, dtype=np.int64)
        value: FloatArray = np.zeros(1)
        trail: list[tuple[IntArray, IntArray]] = []
        winner: tuple[int, int] | None = None
        for step in range(steps):
            if least[step] >= self.gap - self.slack or self.work > MOST_STATES:
                break
            mine = slice(found.offsets[step], found.offsets[step + 1])
            cost, value, parent, taken = _extend(cost, value, found.cost[mine], found.value[mine])
            self.work += len(cost)
            hopeful = (plan.price * cost - value < self.gap - self.slack) & (cost - later[step + 1] <= plan.left)
            cost, value = cost[hopeful], value[hopeful]
            trail.append((parent[hopeful], np.where(taken > 0, taken - 1 + mine.start, -1)[hopeful]))
            if not len(cost):
                break
            at = int(np.searchsorted(cost, plan.left, side="right")) - 1  # values rise with cost
            if at >= 0 and value[at] > self.best + self.slack:
                self.best, winner = float(value[at]), (step + 1, at)
        if winner is None:
            return []
        return [*trail[: winner[0]], (np.array([winner[1]]), np.array([-1]))]


def _extend(
    cost: IntArray, value: FloatArray, more_cost: IntArray, more_value: FloatArray
) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Extend every state by each deviation of one more item, or none; sorted by cost, dominated states dropped.

    Also returns the parent of each state and the number of its deviation (from 1; 0 is none).
    """
    costs = np.concatenate([cost, (cost + more_cost[:, None]).ravel()])
    values = np.concatenate([value, (value + more_value[:, None]).ravel()])
    order = np.lexsort((-values, costs))
    by_cost = values[order]
    kept = by_cost > np.concatenate([[-np.inf], np.maximum.accumulate(by_cost)[:-1]])
    order = order[kept]
    return costs[order], values[order], order % len(cost), order // len(cost)


def _retrace(plan: RelaxedPlan, found: Deviations, trail: list[tuple[IntArray, IntArray]]) -> BoolArray:
    """The plan with the deviations along a trail applied."""
    chosen = plan.chosen.copy()
    state = int(trail[-1][0][0])
    for step in range(len(trail) - 2, -1, -1):
        parent, taken = trail[step]
        if taken[state] >= 0:
            chosen[found.items[step]] = found.tasks[taken[state]]
        state = int(parent[state])
    return chosen


def prefer_first_of_equals(chosen: BoolArray, menu: Menu, items: IntArray, *more: NDArray[Any]) -> BoolArray:
    """The same selection, except that among identical items (equal in every column) the first are bought."""
    items = np.flatnonzero(np.isin(menu.value[:, 0], menu.value[items, 0]) & np.isin(menu.reading, menu.reading[items]))
    columns = [menu.value[items], menu.reading[items, None], menu.own[items], *(column[items] for column in more)]
    _, kind = np.unique(
        np.concatenate([c.reshape(len(items), -1) for c in columns], axis=1), axis=0, return_inverse=True
    )
    wanted = chosen[items] @ (1 << np.arange(chosen.shape[1]))  # what each buys as a number: 0 is nothing
    by_kind, by_want = np.lexsort((items, kind)), np.lexsort((-wanted, kind))
    chosen = chosen.copy()
    chosen[items[by_kind]] = chosen[items[by_want]]
    return chosen
