"""Sensitivity of a split to errors of the estimates, and the split with the least regret.

A *scenario* changes one estimate: an informativeness by its standard error, up or down, or a reduction rate to an end
of its interval. The *regret* of a split in a scenario is the gain of the best split there minus its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
from scipy.special import ndtri

from bursar.allocation.estimates import LEVEL, SMALLEST, SplitEstimates, gain, returns
from bursar.allocation.items import together
from bursar.allocation.split import Split, SplitProblem, check_countable, exact, greedy
from bursar.learners.learner import Progress, no_progress
from bursar.ragged import FloatArray
from bursar.random_streams import rng

CLOSE = 1e-4  # relative tolerance of the least regret
LOOKS = 400  # most splits tried to reach it
DRAWS = 2000  # of estimates, for the intervals of gains


# -- scenarios -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Scenario:
    """One changed estimate: the informativeness of ``task`` for ``other``, or the reduction rate of ``task``."""

    task: str
    other: str | None
    before: float
    after: float
    problem: SplitProblem

    @property
    def what(self) -> str:
        if self.other is None:
            return f"reduction rate of {self.task} {self.after:.3g} instead of {self.before:.3g}"
        return f"{self.task} informs {self.other} by {self.after:.3g} instead of {self.before:.3g}"


def scenarios(problem: SplitProblem) -> list[Scenario]:
    """Every informativeness one standard error lower and higher, and every rate at both ends of its interval."""
    known, rates, found = problem.estimates.informativeness, problem.estimates.rates, list[Scenario]()

    def add(task: str, other: str | None, before: float, after: float, estimates: SplitEstimates) -> None:
        if after != before:
            found.append(Scenario(task, other, before, after, replace(problem, estimates=estimates)))

    for at, task in enumerate(problem.tasks):
        for to, other in enumerate(problem.tasks):
            before, error = float(known.value[at, to]), float(known.error[at, to])
            for after in (before - error, before + error) if at != to else ():
                value = known.value.copy()
                value[at, to] = after
                add(task, other, before, after, SplitEstimates(replace(known, value=value), rates))
        rate = rates[task]
        for after in (rate.low, rate.high):
            add(task, None, rate.beta, after, SplitEstimates(known, {**rates, task: replace(rate, beta=after)}))
    return found


@dataclass(frozen=True)
class ScenarioOutcome:
    """The best split in a scenario, and the regret of the given split there."""

    scenario: Scenario
    best: Split
    regret: float

    def changes(self, split: Split) -> str:
        """The differences of the best split to another, in labels."""
        rows = zip(split.tasks, split.counts, self.best.counts, strict=True)
        return ", ".join(f"{task} {then - now:+,}" for task, now, then in rows if then != now)

    def describe(self) -> dict[str, Any]:
        about = {name: getattr(self.scenario, name) for name in ("task", "other", "what", "before", "after")}
        labels = dict(zip(self.best.tasks, self.best.counts, strict=True))
        return {**about, "regret": self.regret, "labels": labels}


def sensitivity(split: Split, progress: Progress = no_progress) -> list[ScenarioOutcome]:
    """The outcome of every scenario, largest regret first."""
    solve = together if split.method == "together" else exact
    best: list[tuple[Scenario, Split]] = []
    for scenario in (cases := scenarios(split.problem)):
        progress("if one estimate is off", len(best) / len(cases))
        best.append((scenario, solve(scenario.problem)))
    return _outcomes(best, split.counts)


def _outcomes(best: Iterable[tuple[Scenario, Split]], counts: Sequence[int]) -> list[ScenarioOutcome]:
    found = [
        ScenarioOutcome(scenario, there, max(0.0, there.total - float(scenario.problem.gains(counts).sum())))
        for scenario, there in best
    ]
    return sorted(found, key=lambda outcome: -outcome.regret)


# -- least regret ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RobustSplit:
    """The split with the smallest maximal regret over all scenarios and the unchanged estimates."""

    split: Split
    regret: float  # its maximal regret
    bound: float  # lower bound of the maximal regret of any split
    nominal: float  # maximal regret of the best split by the unchanged estimates
    outcomes: tuple[ScenarioOutcome, ...]  # largest regret first


def least_regret(problem: SplitProblem, progress: Progress = no_progress) -> RobustSplit:
    """The split with the smallest maximal regret, to within a ten-thousandth (else see ``bound``).

    A scenario concerns one task. So with the gain ``T`` by the unchanged estimates, the maximal regret is
    ``max_i R_i(N_i) − T(N)``, and the best split with all ``R_i(N_i) ≤ θ`` is an exact split within limits. The best
    ``θ`` is found by branch and bound over intervals: the regret is at least the lower end of an interval minus the
    best ``T`` at its upper end.
    """
    nominal = exact(problem)
    outcomes = sensitivity(nominal, progress)
    search = _Search(problem, nominal.total, outcomes)
    counts, bound = search.best(nominal.counts)
    regret = search.regret(counts)
    outcomes = _outcomes(((outcome.scenario, outcome.best) for outcome in outcomes), counts)
    split = Split(problem, counts, "robust", bound=nominal.total)
    return RobustSplit(split, regret, min(bound, regret), search.regret(nominal.counts), tuple(outcomes))


Box = tuple[tuple[int, int], ...]  # range of the labels of each task beyond its minimum


class _Search:
    def __init__(self, problem: SplitProblem, best: float, outcomes: Sequence[ScenarioOutcome]) -> None:
        self.problem, self.total = problem, best
        self.tables = [self._table(at, outcomes) for at in range(len(problem.tasks))]

    def _table(self, at: int, outcomes: Sequence[ScenarioOutcome]) -> FloatArray:
        """``R_i`` for each number of labels: the best gain of a scenario minus the task's additional gain in it."""
        problem, task = self.problem, self.problem.tasks[at]
        check_countable(task, problem.room[at])
        counts = problem.least[at] + np.arange(problem.room[at] + 1)
        expected = problem.worth[at] * gain(counts, problem.rates[at])
        found = np.full(len(counts), self.total)
        for outcome in outcomes:
            if outcome.scenario.task == task:
                then = outcome.scenario.problem
                found = np.maximum(found, outcome.best.total - then.worth[at] * gain(counts, then.rates[at]) + expected)
        return found

    def theta(self, counts: Sequence[int]) -> float:
        rows = zip(self.tables, counts, self.problem.least, strict=True)
        return max(float(table[count - least]) for table, count, least in rows)

    def gained(self, counts: Sequence[int]) -> float:
        return float(self.problem.gains(counts).sum())

    def regret(self, counts: Sequence[int]) -> float:
        return max(0.0, self.theta(counts) - self.gained(counts))

    def within(self, box: Box, theta: float) -> tuple[int, ...] | None:
        """The best split in a box, within limits that exclude what is certainly above ``theta``."""
        least, most = [], []
        for at, (table, (low, high)) in enumerate(zip(self.tables, box, strict=True)):
            fits = np.flatnonzero(table[low : high + 1] <= theta)
            if not len(fits):
                return None
            start = self.problem.least[at] + low
            least.append(start + int(fits[0]))
            most.append(start + int(fits[-1]))
        if sum(price * n for price, n in zip(self.problem.prices, least, strict=True)) > self.problem.budget:
            return None
        return exact(replace(self.problem, least=tuple(least), most=tuple(most))).counts

    def best(self, nominal: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """The split with the smallest maximal regret, and a lower bound of it."""
        least, chosen, looks = self.regret(nominal), nominal, 0
        bottom = max(float(table.min()) for table in self.tables)
        whole: Box = tuple((0, len(table) - 1) for table in self.tables)
        heap = [(bottom - self.total, bottom, self.theta(nominal), whole, nominal)]

        def look(low: float, high: float, box: Box) -> None:
            counts = self.within(box, high)
            if counts is not None:
                heappush(heap, (low - self.gained(counts), low, high, box, counts))

        while heap and heap[0][0] < least * (1 - CLOSE) and looks < LOOKS:
            looks += 1
            _, low, high, box, counts = heappop(heap)
            theta = self.theta(counts)
            if theta > high:  # the counts that fit a task may have gaps, and this lies in one
                for part in self._halves(box, counts, high):
                    look(low, high, part)
                continue
            if theta - self.gained(counts) < least:
                least, chosen = theta - self.gained(counts), counts
            if theta > low:  # between theta and high, nothing in the box is better
                middle = (low + theta) / 2
                look(low, middle, box)
                heappush(heap, (middle - self.gained(counts), middle, theta, box, counts))
        return chosen, max(0.0, min(least, heap[0][0])) if heap else least

    def _halves(self, box: Box, counts: Sequence[int], theta: float) -> list[Box]:
        """The two parts of a box below and above a task's count with too much regret."""
        more = [count - least for count, least in zip(counts, self.problem.least, strict=True)]
        at = next(at for at, table in enumerate(self.tables) if table[more[at]] > theta)
        low, high = box[at]
        return [(*box[:at], part, *box[at + 1 :]) for part in ((low, more[at] - 1), (more[at] + 1, high))]


# -- intervals of gains ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PredictedGain:
    """A gain with its interval."""

    value: float
    low: float
    high: float


def predicted(split: Split, *, seed: int = 0) -> tuple[dict[str, PredictedGain], PredictedGain]:
    """The gain of each task from all labels, and of all tasks together, with intervals.

    All estimates are drawn independently: informativeness by its standard error, a rate half-normally on either side.
    """
    generator = rng(seed, "predicted gains")
    known = split.problem.estimates.informativeness
    sure = float(ndtri(0.5 + LEVEL / 2))  # standard deviations from a rate to an end of its interval
    gains = np.empty((DRAWS, len(split.tasks)))
    for at, (rate, count) in enumerate(zip(split.problem.rates, split.counts, strict=True)):
        z = generator.normal(size=DRAWS)
        beta = rate.beta + z * np.where(z > 0, rate.high - rate.beta, rate.beta - rate.low) / sure
        gains[:, at] = returns(count, np.clip(beta, SMALLEST, 1.0), rate.block)
    value = known.value + known.error * generator.normal(size=(DRAWS, *known.value.shape))
    drawn = np.einsum("di,dij->dj", gains, value) * split.problem.importance
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    of_each = split.gains.sum(axis=0)

    def with_interval(value: float, numbers: FloatArray) -> PredictedGain:
        low, high = np.quantile(numbers, ends)
        return PredictedGain(value, float(min(low, value)), float(max(high, value)))

    each = {task: with_interval(float(of_each[at]), drawn[:, at]) for at, task in enumerate(split.tasks)}
    return each, with_interval(split.total, drawn.sum(axis=1))


METHODS: Mapping[str, Callable[[SplitProblem], Split]] = {
    "exact": exact,
    "greedy": greedy,
    "together": together,
    "robust": lambda problem: least_regret(problem).split,
}
