"""The greedy reference against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.oracle.problem import quality
from experiments.studies.optimal_heuristics import StrategyBuyer, features_of
from experiments.studies.optimal_reference import ProposedBatch, greedy_order, reference_order
from experiments.tests.studies.judges import Rule, probe
from tests.oracle.small import every_order, texts, vectors

FEW = ("RANDOM+IDMR", "MAX-ENT", "BALD", "K-CENTER")


@pytest.fixture(scope="module")
def problem():
    return texts()


@pytest.fixture(scope="module")
def features(problem):
    return features_of(problem, vectors=vectors(problem))


@pytest.fixture(scope="module")
def found(problem, features):
    return reference_order(StrategyBuyer(probe(problem), problem, 1, features), proposers=FEW, proposals=4)


def every_batch(pool, size):
    """All batches of what is left."""

    def offers(bought):
        left = sorted(set(range(pool)) - set(bought.tolist()))
        return [ProposedBatch("anybody", np.array(batch)) for batch in combinations(left, size)]

    return offers


@pytest.mark.parametrize("seed", range(8))
def test_of_all_batches_it_takes_the_best_after_the_best(seed):
    """Of all orders, the one whose first score is highest, then the second, and so on."""
    judge = Rule(7, seed)
    greedy = greedy_order(judge, every_batch(7, 2), batches=3)
    curves = [judge.scores([order.prefix(k) for k in (1, 2, 3)]).tolist() for order in every_order(7, 3, 2)]
    assert greedy.curve.tolist() == max(curves)
    assert quality(greedy.curve) <= max(quality(curve) for curve in curves)
    assert greedy.judged == 21 + 10 + 3


def test_ties_go_to_the_first_offer_and_no_set_is_judged_twice():
    judge = Rule(6)
    judge.scores = lambda sets, part="validation": np.full(len(sets), 0.5)
    greedy = greedy_order(
        judge, lambda bought: [ProposedBatch(name, np.array([len(bought)])) for name in ("first", "second")], batches=2
    )
    assert greedy.by == ("first", "first")
    assert greedy.judged == 2


def test_its_curve_is_what_the_judge_says_of_its_order(problem, found):
    assert found.curve.tolist() == probe(problem).scores([found.order.prefix(k) for k in (1, 2, 3)]).tolist()
    assert len(np.unique(found.order.items)) == 15
    assert set(found.by) <= set(FEW)
    assert 3 < found.judged <= 3 * 4 * len(FEW)


def test_the_same_seed_gives_the_same_order_and_more_proposals_a_first_batch_that_is_no_worse(problem, features, found):
    judge = probe(problem)
    again = reference_order(StrategyBuyer(judge, problem, 1, features), proposers=FEW, proposals=4)
    assert np.array_equal(again.order.batches, found.order.batches)
    more = reference_order(StrategyBuyer(judge, problem, 1, features), proposers=FEW, proposals=8)
    assert more.curve[0] >= found.curve[0]


def test_its_first_batch_is_no_worse_than_that_of_any_strategy_that_proposes(problem, features, found):
    judge = probe(problem)
    for name in ("MAX-ENT", "K-CENTER"):  # which draw no random numbers
        order = StrategyBuyer(judge, problem, features=features).order(name)
        assert found.curve[0] >= judge.scores([order.prefix(1)])[0]


def test_who_waits_hears_of_every_batch(problem, features):
    heard = []
    reference_order(
        StrategyBuyer(probe(problem), problem, features=features),
        proposers=["RANDOM"],
        proposals=2,
        progress=lambda what, done: heard.append((what, done)),
    )
    assert heard == [(f"batch {k} by RANDOM", k / 3) for k in (1, 2, 3)]


def test_somebody_must_propose(problem):
    with pytest.raises(ConfigError, match="no strategy proposes"):
        reference_order(StrategyBuyer(Rule(60), problem), proposers=[])
