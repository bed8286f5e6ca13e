"""Exact spending under limits: Lagrange multipliers, then an integer program on the remaining core.

The steps are those of ``knapsack`` with one multiplier per limit: money, a task's labels, an annotator's hours. A
group keeps its best items. Items that cannot deviate from that plan in a better selection are fixed; HiGHS decides the
rest (errata 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from bursar.errors import InfeasibleError
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.selection.candidates import GroupCap, Limit, Limits
from bursar.selection.spend.knapsack import KnapsackSolution, Menu, prefer_first_of_equals, solve

TOLERANCE = 1e-9  # relative to the bound
CUTS = 100  # most cutting planes; the bound is valid after any number of them
CLOSE_ENOUGH = 1e-9  # relative to the bound, to stop the search for multipliers
SAMPLE = 20_000  # items of a large pool for a first estimate of the multipliers
FIRST_CORE = 400  # items of the first program
LARGEST_CORE = 40_000  # variables of a program
LARGEST_USE = 1e4  # coefficient of a row, which is scaled because the solver uses floating point
REPAIRS = 4  # attempts to tighten rows that the solver violated
NODES = 20_000  # limit of the solver's search tree
SCALE = 1e4  # of its objective, because HiGHS treats 1e-6 as 0


def solve_within(menu: Menu, able: BoolArray, budget: int, limits: Limits) -> KnapsackSolution:
    """The best selection within the budget and the limits, of the labels that are ``able`` to be bought."""
    free = solve(Menu(np.where(able, menu.value, 0.0), menu.reading, menu.own), budget)
    bought = free.chosen.any(axis=1)
    if limits.broken(np.flatnonzero(bought), free.chosen[bought]) is None:  # no limit binds
        return free
    problem = LimitedProblem(menu, able & (menu.reading[:, None] + menu.own <= budget), budget, limits)
    plan = problem.plan()
    if plan.bound < -TOLERANCE:  # a selection is never worth less than 0
        raise problem.infeasible()
    size = min(FIRST_CORE, len(menu.value))
    gap = math.inf
    best: KnapsackSolution | None = None
    while True:
        items = plan.least_first[:size]
        found, bound = problem.program(plan, items, gap)
        if found is not None and (best is None or found.objective > best.objective):
            best = found
            gap = plan.bound - best.objective
        needed = int(np.searchsorted(plan.least[plan.least_first], gap, side="left"))
        if best is not None and needed <= size:  # no other item can improve it
            bound = float(min(plan.bound, max(bound, best.objective)))
            proven = bound - best.objective <= TOLERANCE * max(1.0, abs(bound))
            return KnapsackSolution(best.chosen, best.objective, best.objective if proven else bound, proven)
        ways = 2 ** menu.value.shape[1] - 1
        largest = max(size, LARGEST_CORE // ways)
        if size >= min(len(plan.least_first), largest):
            if best is None:
                raise problem.infeasible()
            return KnapsackSolution(best.chosen, best.objective, max(best.objective, plan.bound), False)
        size = min(len(plan.least_first), largest, max(2 * size, needed if best is not None else 0))


def bound_within(menu: Menu, able: BoolArray, budget: int, limits: Limits) -> float:
    """An upper bound on the value of any selection within the budget and the limits."""
    able = able & (menu.reading[:, None] + menu.own <= budget)
    return LimitedProblem(menu, able, budget, limits).plan().bound


@dataclass(frozen=True, eq=False)
class LimitedPlan:
    """The best choice of every item at the multipliers, and the least loss of any other choice."""

    gain: FloatArray  # (items, tasks) a label's value less the priced use of the limits
    entry: FloatArray  # (items,) priced reading cost
    chosen: BoolArray  # (items, tasks)
    bound: float
    stay: FloatArray  # (items,) worth of a planned item, less that of its replacement in the group
    rival: FloatArray  # (items,) worth that an unplanned item must exceed
    least: FloatArray  # (items,) least loss of deviating
    least_first: IntArray


class LimitedProblem:
    """A menu with a budget and limits: its multipliers, the plan at them, and the program on a core."""

    def __init__(self, menu: Menu, able: BoolArray, budget: int, limits: Limits) -> None:
        self.menu, self.able, self.budget, self.limits = menu, able, budget, limits
        money = Limit("the budget", menu.own.astype(float), at_most=float(budget))
        self.sums: Sequence[Limit] = (money, *limits.sums)
        self.groups = limits.groups
        self.rows = [(limit, sign) for limit in self.sums for sign in (1, -1) if math.isfinite(_side(limit, sign))]
        self.rows = [(limit, sign) for limit, sign in self.rows if sign > 0 or limit.at_least > 0]
        self.names = [limit.name for limit in limits.sums] + (["the group cap"] if limits.groups else [])

    def infeasible(self) -> InfeasibleError:
        return InfeasibleError(
            f"no selection within the budget keeps to {', '.join(self.names)}",
            fix="raise the budget or lower the minimum",
        )

    # -- multipliers -------------------------------------------------------------------------------------------------
    def plan(self) -> LimitedPlan:
        """The plan at the best multipliers. For a large pool the search starts from those of a sample."""
        top = self._largest_multipliers()
        start: FloatArray = np.zeros(len(self.rows))
        if len(self.able) > 2 * SAMPLE:
            start, _ = self._sample().best_multipliers(start, top)
            found, inside = self.best_multipliers(start, np.minimum(top, 2 * start + top / 1000))
            start = found
            if inside:
                return self._planned(found)
        return self._planned(self.best_multipliers(start, top)[0])

    def best_multipliers(self, start: FloatArray, top: FloatArray) -> tuple[FloatArray, bool]:
        """Cutting planes on the dual, each step halfway to the best so far; and whether the best is below ``top``."""
        from scipy.optimize import linprog

        at, best, best_at = start, math.inf, start
        cuts: list[FloatArray] = []
        heights: list[float] = []
        for _ in range(CUTS):
            bound, slope = self._dual(at)
            if bound < best:
                best, best_at = bound, at
            cuts.append(np.append(slope, -1.0))
            heights.append(float(slope @ at) - bound)
            master = linprog(
                np.append(np.zeros(len(start)), 1.0),
                A_ub=np.array(cuts),
                b_ub=np.array(heights),
                bounds=[*((0, t) for t in top), (None, None)],
            )
            if master.status != 0 or best - master.fun <= CLOSE_ENOUGH * max(1.0, abs(best)):
                break
            at = (best_at + np.maximum(master.x[:-1], 0)) / 2
        return best_at, bool((best_at < 0.99 * top).all())

    def _sample(self) -> LimitedProblem:
        """The same problem on an even sample of the items, with budget and limits scaled down."""
        every = len(self.able) // SAMPLE
        items = np.arange(0, len(self.able), every)
        limits = self.limits.take(items)
        sums = tuple(replace(s, at_most=s.at_most / every, at_least=s.at_least / every) for s in limits.sums)
        return LimitedProblem(self.menu.take(items), self.able[items], self.budget // every, replace(limits, sums=sums))

    def _largest_multipliers(self) -> FloatArray:
        """Upper bounds on the multipliers: beyond them nothing is bought for its value, or everything for a minimum."""
        value = np.where(self.able, self.menu.value, 0.0)
        most = float(value.max(initial=0.0)) or 1.0
        top = []
        for limit, _sign in self.rows:
            use = limit.use[self.able & (limit.use > 0)]
            reading = self.menu.reading[self.menu.reading > 0].astype(float) if limit is self.sums[0] else use
            smallest = min(use.min(initial=math.inf), reading.min(initial=math.inf))
            top.append(4 * value.shape[1] * most / smallest if math.isfinite(smallest) else most)
        return np.array(top)

    def _responses(self, at: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """At these multipliers: the gain of each label, the entry cost of each item, and the labels it would buy."""
        gain = self.menu.value.astype(float)
        entry = np.zeros(len(gain))
        for (limit, sign), weight in zip(self.rows, at, strict=True):
            if weight:
                gain = gain - sign * weight * limit.use
                if limit is self.sums[0]:
                    entry = entry + weight * self.menu.reading
        gain = np.where(self.able, gain, -np.inf)
        wanted = gain > 0
        worth = np.where(wanted, gain, 0.0).sum(axis=1) - entry
        chosen = wanted & (worth > 0)[:, None]
        if self.groups is not None:
            chosen &= _best_of_groups(self.groups, np.where(worth > 0, worth, 0.0))[:, None]
        return gain, entry, chosen

    def _dual(self, at: FloatArray) -> tuple[float, FloatArray]:
        """The upper bound at these multipliers, and its slope."""
        gain, entry, chosen = self._responses(at)
        bought = chosen.any(axis=1)
        bound = float(gain[chosen].sum() - entry[bought].sum())
        slope = np.empty(len(self.rows))
        for number, (limit, sign) in enumerate(self.rows):
            slope[number] = sign * (_side(limit, sign) - self._used(limit, chosen))
            bound += sign * float(at[number]) * _side(limit, sign)
        return bound, slope

    def _used(self, limit: Limit, chosen: BoolArray) -> float:
        reading = self.menu.reading[chosen.any(axis=1)].sum() if limit is self.sums[0] else 0
        return float(limit.use[chosen].sum() + reading)

    def _planned(self, at: FloatArray) -> LimitedPlan:
        gain, entry, chosen = self._responses(at)
        bound, _ = self._dual(at)
        planned: BoolArray = np.any(chosen, axis=1)
        best_alone = gain.max(axis=1, initial=-np.inf)
        worth = np.where(best_alone > 0, np.where(gain > 0, gain, 0.0).sum(axis=1), best_alone) - entry
        instead: FloatArray = np.zeros(len(gain))
        rival: FloatArray = np.zeros(len(gain))
        if self.groups is not None:
            instead, rival = _replacements(self.groups, worth, planned)
        stay = worth - instead
        flip = np.abs(gain).min(axis=1, initial=np.inf)
        least = np.maximum(np.where(planned, np.minimum(flip, stay), rival - worth), 0)
        return LimitedPlan(gain, entry, chosen, bound, stay, rival, least, np.argsort(least, kind="stable"))

    # -- the program on the core -------------------------------------------------------------------------------------
    def program(self, plan: LimitedPlan, items: IntArray, gap: float) -> tuple[KnapsackSolution | None, float]:
        """The best selection in which only these items deviate from the plan, and its bound."""
        row, tasks = self.ways(plan, items, gap)
        fixed = plan.chosen.copy()
        fixed[items] = False
        value = np.where(tasks, self.menu.value[items[row]], 0.0).sum(axis=1)
        constant = float(self.menu.value[fixed].sum())
        if not len(row):
            feasible = self.limits.broken(np.flatnonzero(fixed.any(axis=1)), fixed[fixed.any(axis=1)]) is None
            return (KnapsackSolution(fixed, constant, constant, True) if feasible else None), constant
        matrix, low, high = self._constraints(items, row, tasks, fixed)
        taken, best = maximise(value, matrix, low, high)
        for _ in range(REPAIRS):  # tighten a limit by twice the violation that the solver's tolerance allowed
            if taken is None or not self._broken(fixed, items[row[taken]], tasks[taken]):
                break
            used = matrix[:, taken].sum(axis=1)
            high = high - 2 * np.maximum(used - high, 0) - 1e-9
            low = low + 2 * np.maximum(low - used, 0) + 1e-9
            taken, _ = maximise(value, matrix, low, high)
        if taken is None or self._broken(fixed, items[row[taken]], tasks[taken]):
            return None, constant + best
        fixed[items[row[taken]]] = tasks[taken]
        alike = [self.able, *(limit.use for limit in self.limits.sums)]
        alike += [self.groups.group[:, None]] if self.groups is not None else []
        fixed = prefer_first_of_equals(fixed, self.menu, items, *alike)
        return KnapsackSolution(fixed, float(self.menu.value[fixed].sum()), constant + best, True), constant + best

    def _broken(self, fixed: BoolArray, items: IntArray, tasks: BoolArray) -> bool:
        """Whether the fixed labels and these together exceed the budget or break a limit."""
        chosen = fixed.copy()
        chosen[items] = tasks
        bought = chosen.any(axis=1)
        if int(self.menu.reading[bought].sum() + self.menu.own[chosen].sum()) > self.budget:
            return True
        return self.limits.broken(np.flatnonzero(bought), chosen[bought]) is not None

    def ways(self, plan: LimitedPlan, items: IntArray, gap: float) -> tuple[IntArray, BoolArray]:
        """Every way to buy one of the items that loses less than the gap: its item and its tasks."""
        subsets = np.array(list(product([False, True], repeat=self.able.shape[1]))[1:], dtype=bool)
        able = ~(subsets[None] & ~self.able[items][:, None]).any(axis=2)  # (items, subsets)
        gain = np.where(self.able[items], plan.gain[items], 0.0)
        worth = gain @ subsets.T - plan.entry[items][:, None]
        planned = plan.chosen[items].any(axis=1)
        as_planned = (gain * plan.chosen[items]).sum(axis=1) - plan.entry[items]
        loss = np.where(planned, as_planned, plan.rival[items])[:, None] - worth
        row, way = np.nonzero(able & (loss < gap + TOLERANCE))
        return row, subsets[way]

    def _constraints(
        self, items: IntArray, row: IntArray, tasks: BoolArray, fixed: BoolArray
    ) -> tuple[sparse.csr_array, FloatArray, FloatArray]:
        """One way per item, the limits less the fixed use, and the group caps: matrix, lower and upper bounds."""
        ways = np.arange(len(row))
        blocks = [sparse.csr_array((np.ones(len(row)), (row, ways)), shape=(len(items), len(row)))]
        lows: list[FloatArray] = [np.full(len(items), -np.inf)]
        highs: list[FloatArray] = [np.ones(len(items))]
        for limit in self.sums:
            use = (limit.use[items[row]] * tasks).sum(axis=1)
            if limit is self.sums[0]:
                use = use + self.menu.reading[items[row]]
            used = self._used(limit, fixed)
            scale = max(1.0, float(use.max(initial=0.0)) / LARGEST_USE)
            blocks.append(sparse.csr_array(use[None] / scale))
            lows.append(np.array([(limit.at_least - used) / scale if limit.at_least > 0 else -np.inf]))
            highs.append(np.array([(limit.at_most - used) / scale]))
        if self.groups is not None:
            there = np.bincount(self.groups.group[fixed.any(axis=1)], minlength=len(self.groups.at_most))
            names, of = np.unique(self.groups.group[items[row]], return_inverse=True)
            blocks.append(sparse.csr_array((np.ones(len(row)), (of, ways)), shape=(len(names), len(row))))
            lows.append(np.full(len(names), -np.inf))
            highs.append((self.groups.at_most - there)[names].astype(float))
        return sparse.vstack(blocks, format="csr"), np.concatenate(lows), np.concatenate(highs)


def _side(limit: Limit, sign: int) -> float:
    return limit.at_most if sign > 0 else limit.at_least


def _best_of_groups(cap: GroupCap, worth: FloatArray) -> BoolArray:
    """Which items are among the best of their group within its cap, ties by position."""
    kept = np.zeros(len(worth), dtype=bool)
    items = np.flatnonzero(worth > 0)
    items = items[np.lexsort((-worth[items], cap.group[items]))]
    group = cap.group[items]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    rank = np.arange(len(items)) - np.repeat(starts, np.diff(starts, append=len(items)))
    kept[items[rank < cap.at_most[group]]] = True
    return kept


def _replacements(cap: GroupCap, worth: FloatArray, planned: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The worth of each item's replacement, and what it must exceed to be bought; 0 in groups with room."""
    groups = len(cap.at_most)
    there = np.bincount(cap.group[planned], minlength=groups)
    full = there >= cap.at_most
    next_best, weakest = np.zeros(groups), np.full(groups, np.inf)
    np.maximum.at(next_best, cap.group[~planned], np.maximum(worth[~planned], 0))
    np.minimum.at(weakest, cap.group[planned], worth[planned])
    instead = np.where(full, next_best, 0.0)
    return instead[cap.group], np.where(full, weakest, 0.0)[cap.group]


# -- HiGHS -----------------------------------------------------------------------------------------------------------
def maximise(
    value: FloatArray, matrix: sparse.csr_array, low: FloatArray, high: FloatArray
) -> tuple[IntArray | None, float]:
    """Return which binary variables are 1 in the best solution, and an upper bound on all solutions."""
    import highspy

    exactly = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_max_nodes": NODES, "threads": 1}
    exactly |= {"primal_feasibility_tolerance": 1e-9, "mip_feasibility_tolerance": 1e-9}
    solver = load_solver(SCALE * value, matrix, low, high, exactly)
    if solver is None:
        return None, math.inf
    solver.run()
    found = best_solution(solver)
    if found is None:
        return None, -math.inf if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible else math.inf
    return np.flatnonzero(found > 0.5), solver.getInfo().mip_dual_bound / SCALE


def load_solver(
    value: FloatArray, matrix: sparse.csr_array, low: FloatArray, high: FloatArray, options: dict[str, Any]
) -> Any | None:
    """A solver with the program loaded: maximise the value, rows between low and high. ``None`` if rejected."""
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(value), len(low)
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_, program.col_lower_, program.col_upper_ = value, np.zeros(len(value)), np.ones(len(value))
    program.row_lower_, program.row_upper_ = low, high
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(value)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, setting in ({"output_flag": False} | options).items():
        solver.setOptionValue(name, setting)
    return None if solver.passModel(program) == highspy.HighsStatus.kError else solver


def best_solution(solver: Any) -> FloatArray | None:
    """The best solution a solver has found; ``None`` if it has found none."""
    import highspy

    feasible = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return np.array(solver.getSolution().col_value) if feasible else None
