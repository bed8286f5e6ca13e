"""The probe that judges sets: exact, whatever it was asked before."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from threadpoolctl import threadpool_limits

from bursar.errors import ConfigError
from bursar.oracle import LabellingProblem, SearchPlan, probe, quality, search
from bursar.oracle.probe import ProbeJudge, RidgeTask, Rows
from bursar.simulation import assistant_corpus


def rows_of(rng, centres, items, units=1):
    """Items of some classes around their centres, with as many units each."""
    codes = rng.integers(len(centres), size=items * units)
    features = centres[codes] + rng.normal(size=(items * units, centres.shape[1]))
    return Rows(features, codes, np.arange(items + 1) * units)


def task_of(seed=0, metric="weighted_f1", penalty=1.0, units=1, pool=60):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 6))
    warm, items, held = (rows_of(rng, centres, n, units) for n in (8, pool, 200))
    return (
        RidgeTask({"warm": warm, "pool": items, "validation": held, "aside": held}, 4, metric=metric, penalty=penalty),
        warm,
        items,
        held,
    )


def scored(task, items):
    return task.scores(items, ["validation"])[0]


def plainly(task, warm, pool, items):
    """The same regression by its normal equations, on the features as they were rounded."""
    units = np.concatenate([np.arange(pool.offsets[i], pool.offsets[i + 1]) for i in items])
    x = np.rint(np.concatenate([warm.features, pool.features[units]]) / task.step) * task.step
    y = np.eye(4)[np.concatenate([warm.codes, pool.codes[units]])]
    centred, level = x - x.mean(axis=0), y.mean(axis=0)
    weights = np.linalg.solve(centred.T @ centred + task.penalty * np.eye(x.shape[1]), centred.T @ (y - level))
    return weights, level - x.mean(axis=0) @ weights


@pytest.mark.parametrize("units", [1, 5])
def test_it_is_ridge_regression_with_a_free_level(units):
    task, warm, pool, _ = task_of(units=units)
    items = np.array([1, 5, 9, 33])
    weights, level = plainly(task, warm, pool, items)
    found = task.coefficients(items)
    assert found[:-1] / task.step == pytest.approx(weights, abs=1e-8)
    assert found[-1] == pytest.approx(level, abs=1e-8)


@pytest.mark.parametrize(("metric", "reference"), [("accuracy", accuracy_score), ("weighted_f1", f1_score)])
def test_scores_are_those_of_scikit_learn(metric, reference):
    task, warm, pool, held = task_of(seed=2, metric=metric)
    items = np.arange(0, 40, 3)
    weights, level = plainly(task, warm, pool, items)
    guesses = (np.rint(held.features / task.step) * task.step @ weights + level).argmax(axis=1)
    how = {} if metric == "accuracy" else {"average": "weighted", "labels": range(4), "zero_division": 0}
    assert scored(task, items) == pytest.approx(reference(held.codes, guesses, **how), abs=1e-12)


def test_what_it_says_of_a_set_does_not_depend_on_what_it_was_asked_before():
    """Two thousand moves away, to the last bit."""
    fresh, _, _, _ = task_of(seed=3)
    asked, _, _, _ = task_of(seed=3)
    rng = np.random.default_rng(0)
    items = np.sort(rng.permutation(60)[:16])
    for _ in range(2000):
        gone, come = rng.choice(items), rng.choice(np.setdiff1d(np.arange(60), items))
        items = np.sort(np.append(items[items != gone], come))
        asked.coefficients(items)
    assert np.array_equal(asked.coefficients(items), fresh.coefficients(items))


def test_a_search_with_it_finds_a_better_order_than_it_began_with_and_than_random_ones():
    task, _, _, _ = task_of(seed=4, pool=80)
    judge = ProbeJudge({"intent": task})
    found = search(judge, (4, 5), SearchPlan(400, 100, cooling=5.0), seed=1)
    assert quality(found.best_curve) > found.history[0][1] + 0.01
    assert quality(found.best_curve) == pytest.approx(
        quality(judge.scores([found.best.prefix(k) for k in range(1, 5)])), abs=0
    )


def test_several_tasks_are_judged_by_their_mean():
    one, two = task_of(seed=5)[0], task_of(seed=6)[0]
    items = [np.array([1, 2, 3]), np.array([4, 7])]
    both = ProbeJudge({"a": one, "b": two}).scores(items)
    assert both == pytest.approx([(scored(one, some) + scored(two, some)) / 2 for some in items])


def test_what_cannot_be_exact_or_is_unknown_is_refused():
    with pytest.raises(ConfigError, match="metric"):
        task_of(metric="joy")


def test_threads_change_no_bit():
    """Scores, coefficients and the penalty are the same on one thread of BLAS and on two."""
    corpus = assistant_corpus(700, seed=3).with_tasks(["intent"])
    sizes = {"pool": 150, "warm": 20, "aside": 60, "validation": 300, "test": 100}
    problem = LabellingProblem.draw(corpus, sizes, shape=(3, 10), metric="accuracy", seed=0)
    rng = np.random.default_rng(0)
    sets = [np.sort(rng.permutation(150)[:30]) for _ in range(40)]
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            judge = ProbeJudge.of(problem)
            solution = judge.tasks["intent"].coefficients(sets[0])
            found.append((judge.scores(sets), judge.tasks["intent"].penalty, solution))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    assert np.array_equal(found[0][2], found[1][2])


def test_a_problem_whose_parts_overlap_is_refused():
    corpus = assistant_corpus(100, seed=3).with_tasks(["intent"])
    some = np.arange(10)
    with pytest.raises(ConfigError, match="is in two parts"):
        LabellingProblem(corpus, np.arange(40), some + 40, some + 50, some, some + 70, batches=2, size=5)
    with pytest.raises(ConfigError, match="metric"):
        LabellingProblem(
            corpus, np.arange(40), some + 40, some + 50, some + 60, some + 70, batches=2, size=5, metric="joy"
        )


def test_sums_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(probe, "KEPT_BYTES", 40_000)
    task, _, _, _ = task_of(seed=3)
    plain, _, _, _ = task_of(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(60):
        items = np.sort(rng.permutation(60)[: rng.integers(4, 20)])
        assert np.array_equal(task.coefficients(items), plain.coefficients(items))
    assert all(len(kept) <= 7 for kept in task.sums.values())
