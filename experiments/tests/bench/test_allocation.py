"""The benchmark of splits: both sides split alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.allocation import exact
from experiments.bench import allocation as bench
from experiments.bench import cases_of
from experiments.bench.judged import Judged


@pytest.mark.parametrize("budget", [1, 100, 777])
def test_the_plain_programme_gains_what_the_exact_split_gains(budget):
    problem = bench.six_tasks(budget)
    plain = bench.plainly(problem)
    assert sum(n * price for n, price in zip(plain, problem.prices, strict=True)) <= budget
    assert float(problem.gains(plain).sum()) == pytest.approx(exact(problem).total, rel=1e-12, abs=1e-12)


def test_in_the_hardest_problem_labels_are_worth_what_they_cost():
    problem = bench._hardest(500)
    np.testing.assert_allclose(problem.worth, problem.prices)
    assert exact(problem).cost == 500


def test_the_line_says_whether_both_gained_the_same():
    (case,) = cases_of("allocation", "split")
    line = Judged("split", "", lambda: bench.split(600), repeats=1, measure=case.measure, compare=case.compare).run()
    assert line["gain_difference"] < 1e-12
    assert line["ours"] > 0
    assert json.loads(json.dumps(line)) == line
