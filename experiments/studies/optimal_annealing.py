"""Annealing with a limit on time or on judged sets, to compare with cheaper ways to find an order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from math import inf

from bursar.learners.learner import Progress, no_progress
from bursar.oracle.chain import Plan, State
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.reference import Found
from bursar.oracle.search import search

BETWEEN = 50  # steps between two checks of the limits


def annealed(
    judge: Judge,
    batches: int,
    size: int,
    plan: Plan,
    *,
    seed: int = 0,
    seconds: float = inf,
    judged: float = inf,
    progress: Progress = no_progress,
) -> Found:
    """What annealing finds within a time, or until it has asked about so many sets, or at the end of its plan.

    It is the chain of the whole plan, cut off: a plan that is longer than the time allows never gets cold. Time is
    looked at between some steps, so it may take a little longer.
    """
    began, memory = time.perf_counter(), Memory(judge)
    state: State | None = None
    for part in _parts(plan):
        state = search(judge, batches, size, part, seed=seed, state=state, memory=memory)
        progress(f"step {state.step}", state.step / max(1, plan.all_steps))
        if time.perf_counter() - began >= seconds or memory.trained >= judged:
            break
    assert state is not None
    return Found(state.best, state.best_curve, memory.trained, time.perf_counter() - began, state.step)


def _parts(plan: Plan) -> Iterable[Plan]:
    """Longer and longer beginnings of a plan; the last is all of it.

    >>> [(part.steps, part.greedy_steps) for part in _parts(Plan(120, 60))]
    [(0, 0), (50, 0), (100, 0), (120, 0), (120, 50), (120, 60)]
    """
    for steps in range(0, plan.steps, BETWEEN):
        yield replace(plan, steps=steps, greedy_steps=0)
    for greedy in range(0, plan.greedy_steps, BETWEEN):
        yield replace(plan, greedy_steps=greedy)
    yield plan
