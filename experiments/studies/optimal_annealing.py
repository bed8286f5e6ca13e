"""Annealing with a limit on time or on judged sets, to compare with cheaper ways to find an order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.search import SearchOptions, SearchPlan, SearchState, search
from experiments.studies.optimal_reference import FoundOrder

BETWEEN = 50  # steps between two checks of the limits


@dataclass(frozen=True)
class Limits:
    """When to stop."""

    seconds: float = inf
    judged: float = inf  # sets


def annealed(
    judge: Judge, shape: tuple[int, int], plan: SearchPlan, limits: Limits | None = None, *, seed: int = 0
) -> FoundOrder:
    """The best order found by annealing within some limits, or by the whole plan.

    It is the chain of the whole plan, cut off, so a plan longer than the limits never gets cold. Limits are checked
    between some steps, so they may be exceeded a little.
    """
    limits = limits or Limits()
    started, cache = time.perf_counter(), ScoreCache(judge)
    state: SearchState | None = None
    for part in _parts(plan):
        state = search(judge, shape, part, seed=seed, options=SearchOptions(state=state, cache=cache))
        if time.perf_counter() - started >= limits.seconds or cache.trained >= limits.judged:
            break
    assert state is not None
    return FoundOrder(state.best, state.best_curve, cache.trained, time.perf_counter() - started, state.step)


def _parts(plan: SearchPlan) -> Iterable[SearchPlan]:
    """Longer and longer beginnings of a plan; the last is the whole plan.

    >>> [(part.steps, part.greedy_steps) for part in _parts(SearchPlan(120, 60))]
    [(0, 0), (50, 0), (100, 0), (120, 0), (120, 50), (120, 60)]
    """
    for steps in range(0, plan.steps, BETWEEN):
        yield replace(plan, steps=steps, greedy_steps=0)
    for greedy in range(0, plan.greedy_steps, BETWEEN):
        yield replace(plan, greedy_steps=greedy)
    yield plan
