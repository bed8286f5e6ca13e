"""Annealing that is cut off by a limit, against annealing that is not."""

from __future__ import annotations

import numpy as np

from bursar.oracle import SearchPlan, search
from bursar.oracle.problem import quality
from experiments.studies.optimal_annealing import Limits, annealed
from experiments.tests.studies.judges import Rule


def test_annealing_that_is_looked_at_now_and_then_is_the_same_annealing():
    judge, plan = Rule(30), SearchPlan(170, 80, cooling=3.0)
    cut, whole = annealed(judge, (3, 4), plan, seed=2), search(judge, (3, 4), plan, seed=2)
    assert np.array_equal(cut.order.batches, whole.best.batches)
    assert cut.quality == quality(whole.best_curve)
    assert cut.steps == 250


def test_annealing_ends_when_its_sets_or_its_time_are_used_up():
    judge, plan = Rule(30), SearchPlan(5000, 500, cooling=3.0)
    some = annealed(judge, (3, 4), plan, Limits(judged=400))
    assert 400 <= some.judged < 400 + 3 * 66  # it looks every 50 steps, which may have guessed 16 ahead
    assert some.quality <= annealed(judge, (3, 4), plan, Limits(judged=1000)).quality
    assert annealed(judge, (3, 4), plan, Limits(seconds=0)).steps == 0
