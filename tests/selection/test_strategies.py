"""The strategies of the papers by name, against the papers' words written out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError, SelectionError
from bursar.selection import (
    STRATEGIES,
    Candidates,
    Limit,
    Limits,
    PoolFeatures,
    Selection,
    average,
    greedy_by_confidence,
    make_strategy,
    scoring_strategy,
    strategy,
)
from bursar.selection.spend.knapsack import Menu
from bursar.tasks import Prices
from tests.selection.plain import best_of_all, random_pool

seeds = st.integers(0, 10**6)


def tied_pool(seed, items=30, tasks=2):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, items, tasks)
    return replace(pool, confidence=np.round(pool.confidence * 5) / 5) if seed % 2 else pool


@pytest.fixture
def _own_registry(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(STRATEGIES, "_entries", dict(STRATEGIES._entries))


# -- names -----------------------------------------------------------------------------------------------------------
TABLE_1 = [
    *("ST-R", "ST-EC-slots", "ST-DA-slots", "MT-R", "MT-EC-slots", "MT-DA-slots", "MT-AVG", "MT-AVGDA", "MT-MAX"),
    *("MT-MIN", "MT-PAR", "MT-RRF", "MT-IND"),
]
SECTION_7 = [
    f"{method}+{decision}"
    for method in ("UDJS", "EQB-DJS", "MT-AVG", "MT-MAX", "MT-MIN", "MT-RRF", "STCS-slots", "STCS-intent")
    for decision in ("GRD_AL", "BLP_AL", "BLP")
]
PAPER_4 = ["MAX-ENT", "BALD", "BATCHBALD", "MIN-CONF", "NORM-MIN-CONF", "LONGEST"]
EVERY = [*TABLE_1, *SECTION_7, *PAPER_4, *(f"{name}+IDMR" for name in PAPER_4)]


@pytest.mark.parametrize("name", EVERY)
def test_every_name_of_the_papers_is_known_in_any_case(name):
    made = make_strategy(name)
    assert made.name == name
    assert made.summary
    lower = make_strategy(name.lower())
    assert (lower.name, lower.spend, lower.task, lower.measure) == (made.name, made.spend, made.task, made.measure)


@pytest.mark.parametrize("name", EVERY)
def test_every_name_of_the_papers_says_what_it_needs(name):
    made = make_strategy(name)
    base, *modifiers = name.split("+")
    assert made.alone == base.startswith("ST-")
    assert made.needs_model == (base not in ("ST-R", "MT-R", "LONGEST"))
    assert made.once == ("BLP" in modifiers)
    assert made.spend == ("exact" if {"BLP", "BLP_AL"} & set(modifiers) else "greedy")
    assert made.mode == {"UDJS": "disjoint", "EQB-DJS": "equal"}.get(base, "joint")
    assert made.task == next((task for task in ("slots", "intent") if base.endswith(f"-{task}")), None)
    assert (made.matching is not None) == ("IDMR" in modifiers)
    measures = {
        "MAX-ENT": "entropy",
        "BALD": "bald",
        "BATCHBALD": "bald",
        "MIN-CONF": "sequence",
        "NORM-MIN-CONF": "normalised-sequence",
    }
    dropout = base in ("MT-AVGDA", "MT-DA-slots", "ST-DA-slots")
    assert made.measure == measures.get(base, "dropout-agreement" if dropout else "entropy")
    assert ("words" in made.needs) == (base == "LONGEST" or "IDMR" in modifiers)
    assert ("beliefs" in made.needs) == (base == "BATCHBALD")


def test_bins_ask_for_what_they_are_made_of():
    assert make_strategy("MT-AVG+IDMR", bins="cluster").needs == {"vectors"}
    assert make_strategy("MT-AVG+IDMR", bins="label:slots").needs == {"labels"}
    assert make_strategy("MT-AVG+IDMR", bins=lambda features: features.words).needs == set()
    assert make_strategy("LONGEST+IDMR", bins="cluster").needs == {"words", "vectors"}


@pytest.mark.parametrize("name", ["MT-PAR", "MT-IND", "MT-R", "BATCHBALD"])
@pytest.mark.parametrize("decision", ["BLP", "BLP_AL", "RATIO_AL"])
def test_without_scores_there_is_nothing_to_spend_exactly_by(name, decision):
    message = rf"{name} gives no scores, so {decision} cannot spend by them\. Fix: leave {decision} out"
    with pytest.raises(SelectionError, match=message):
        make_strategy(f"{name}+{decision}")
    assert make_strategy(f"{name}+GRD_AL").spend == "greedy"


@pytest.mark.parametrize(
    "name", ["MT-MAX", "MT-MIN", "MT-EC-slots", "STCS-slots", "UDJS", "EQB-DJS", "RANDOM", "LONGEST"]
)
def test_weights_are_refused_where_they_mean_nothing(name):
    with pytest.raises(SelectionError, match=rf"strategy {name} takes no weights\. Fix: use MT-AVG"):
        make_strategy(name, weights={"intent": 0.3, "slots": 0.7})


@pytest.mark.parametrize("name", ["MT-AVG", "MT-AVGDA", "MT-RRF", "MT-IND", "MT-PAR", "MT-AVG+BLP_AL"])
def test_weights_are_those_of_section_6(name):
    made = make_strategy(name, weights={"slots": 3, "intent": 1})
    np.testing.assert_allclose(made.weights_of(("intent", "slots", "tree")), [0.25, 0.75, 0])
    assert made.weights_of(("slots", "intent")) is not None
    assert make_strategy(name, weights={"slots": 2, "intent": 2}).weights_of(("slots", "intent")) is None
    assert make_strategy(name).weights_of(("slots", "intent")) is None


@pytest.mark.parametrize("wrong", [{"intent": -1, "slots": 2}, {"intent": 0, "slots": 0}, {"slots": float("nan")}])
def test_weights_that_are_none_are_refused(wrong):
    with pytest.raises(SelectionError, match="must be 0 or more, and at least one above 0"):
        make_strategy("MT-AVG", weights=wrong).select(tied_pool(0), 10)


def test_a_weight_for_a_task_that_is_not_there_is_refused_by_name():
    with pytest.raises(
        SelectionError, match=r"a weight is given for the unknown task 'colour'\. Fix: the tasks are intent, slots"
    ):
        make_strategy("MT-AVG", weights={"colour": 1}).select(tied_pool(0), 10)


def test_what_cannot_be_read_in_a_name_is_said():
    with pytest.raises(SelectionError, match=r"'MT-AVG\+CPLEX': 'CPLEX' is no modifier\. Fix: use GRD_AL, .* IDMR"):
        make_strategy("MT-AVG+CPLEX")
    with pytest.raises(SelectionError, match=r"MT-EC needs the name of a task\. Fix: add it, as in MT-EC-slots"):
        make_strategy("mt-ec")
    with pytest.raises(ConfigError, match="did you mean 'MT-AVG'"):
        make_strategy("MT-AVGG")
    with pytest.raises(SelectionError, match=r"no task 'tree'\. Fix: the tasks are intent, slots"):
        make_strategy("MT-EC-tree").select(tied_pool(0), 10)


def test_a_task_may_have_any_name_and_keeps_it():
    assert make_strategy("mt-ec-Slots").name == "MT-EC-Slots"
    assert make_strategy("mt-ec-Slots").task == "Slots"
    assert make_strategy("MT-EC-named-entities").task == "named-entities"
    assert make_strategy("NORM-MIN-CONF-x").measure == "normalised-sequence"
    assert make_strategy("BALD-intent+IDMR").task == "intent"


# -- paper 1, Table 1, buying items one by one -----------------------------------------------------------------------
def first_by(key, items, many):
    """Ties by id, which is the order of the pool here."""
    return sorted(range(items), key=lambda item: (key(item), item))[:many]


ORDERS = {
    "MT-AVG": lambda c: c.mean(axis=1),
    "MT-AVGDA": lambda c: c.mean(axis=1),
    "MT-MAX": lambda c: c.max(axis=1),
    "MT-MIN": lambda c: c.min(axis=1),
    "MT-EC-intent": lambda c: c[:, 0],
    "MT-EC-slots": lambda c: c[:, 1],
    "ST-DA-slots": lambda c: c[:, 1],
    "STCS-slots": lambda c: c[:, 1],
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_least_confident_are_chosen_first(name):
    for seed in range(10):
        pool = tied_pool(seed)
        low = np.round(ORDERS[name](pool.confidence), 12)  # 1 − (1 − x) is not x to the last digit
        selection = make_strategy(name).select(pool, 9, in_items=True)
        assert sorted(low[selection.items].tolist()) == sorted(low.tolist())[:9]
        assert (np.diff(low[selection.items]) >= 0).all()
        if not seed % 2:  # no ties
            assert selection.items.tolist() == first_by(low.__getitem__, 30, 9)


def test_strategies_rank_by_their_aggregation():
    confidence = np.array([[0.5, 0.5], [0.1, 0.8], [0.3, 0.55]])
    pool = Candidates(["a", "b", "c"], confidence, Prices(("x", "y"), np.ones(3, int), np.zeros((3, 2), int)))
    first = {name: pool.ids[make_strategy(name).select(pool, 1).items[0]] for name in ("MT-AVG", "MT-MAX", "MT-MIN")}
    assert first == {"MT-AVG": "c", "MT-MAX": "a", "MT-MIN": "b"}


def test_all_the_weight_on_one_task_is_that_task_alone():
    pool = tied_pool(0)
    for name in ("MT-AVG", "MT-RRF", "MT-IND", "MT-PAR"):
        for task in ("intent", "slots"):
            weighted = make_strategy(name, weights={task: 1.0}).select(pool, 8, in_items=True)
            of_one = make_strategy(f"MT-EC-{task}").select(pool, 8, in_items=True)
            assert weighted.items.tolist() == of_one.items.tolist()


def test_random_selections_are_uniform_over_items():
    pool = Candidates(
        [f"u{n}" for n in range(10)], np.zeros((10, 1)), Prices(("x",), np.ones(10, int), np.zeros((10, 1), int))
    )
    counts = np.zeros(10)
    for seed in range(600):
        counts[make_strategy("random").select(pool, 3, seed=seed).items] += 1
    # Each item is drawn 180 times on average, with a standard deviation of 11.2.
    assert (np.abs(counts - 180) < 5 * 11.3).all()


# -- MT-PAR ----------------------------------------------------------------------------------------------------------
def pareto_written_out(confidence, wanted):
    """Paper 1, section 4.2, with errata 5: front after front, the last thinned to every ⌊f/p⌋-th by the first task."""
    points = [tuple(point) for point in confidence.tolist()]
    rest, chosen = list(range(len(points))), []

    def dominates(x, y):
        return all(a <= b for a, b in zip(points[x], points[y], strict=True)) and points[x] != points[y]

    while rest and len(chosen) < wanted:
        front = [y for y in rest if not any(dominates(x, y) for x in rest)]
        left = wanted - len(chosen)
        front.sort(key=lambda item: (points[item][0], item))
        if len(front) > left:
            front = front[:: len(front) // left][:left]
        chosen += front
        rest = [item for item in rest if item not in front]
    return chosen


@given(seed=seeds, items=st.integers(1, 40), tasks=st.integers(1, 3), wanted=st.integers(0, 45))
@settings(max_examples=120, deadline=None)
def test_pareto_chooses_front_after_front_and_thins_the_last(seed, items, tasks, wanted):
    pool = tied_pool(seed, items, tasks)
    selection = make_strategy("MT-PAR").select(pool, wanted, in_items=True)
    assert selection.items.tolist() == pareto_written_out(pool.confidence, wanted)


@given(seed=seeds, weighted=st.booleans(), budget=st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_permuting_the_pool_never_changes_what_pareto_selects(seed, weighted, budget):
    pool = tied_pool(seed)
    made = make_strategy("MT-PAR", weights={"intent": 0.3, "slots": 0.7} if weighted else None)
    shuffled = pool.take(np.random.default_rng(seed).permutation(len(pool)))
    first, second = made.select(pool, budget), made.select(shuffled, budget)
    assert [pool.ids[at] for at in first.items] == [shuffled.ids[at] for at in second.items]


# -- MT-IND ----------------------------------------------------------------------------------------------------------
def largest_remainder(total, weights):
    exact = [total * weight / sum(weights) for weight in weights]
    parts = [int(e + 1e-9) for e in exact]
    for task in sorted(range(len(weights)), key=lambda t: (round(parts[t] - exact[t], 9), t))[: total - sum(parts)]:
        parts[task] += 1
    return parts


def independent_written_out(confidence, wanted, weights):
    """n/t most uncertain samples by each task, again on the shortfall if overlaps occur (paper 1, errata 7)."""
    items = len(confidence)
    chosen = []
    while len(chosen) < min(wanted, items):
        rest = [item for item in range(items) if item not in chosen]
        for task, many in enumerate(largest_remainder(wanted - len(chosen), weights)):
            mine = sorted(rest, key=lambda item: (confidence[item, task], item))[:many]
            chosen += [item for item in mine if item not in chosen]
    return chosen


@given(seed=seeds, items=st.integers(1, 40), tasks=st.integers(1, 3), wanted=st.integers(0, 45))
@settings(max_examples=150, deadline=None)
def test_each_task_chooses_its_share_and_again_where_they_overlap(seed, items, tasks, wanted):
    pool = tied_pool(seed, items, tasks)
    selection = make_strategy("MT-IND").select(pool, wanted, in_items=True)
    assert selection.items.tolist() == independent_written_out(pool.confidence, wanted, [1] * tasks)


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.5, 0.8, 1.0])
def test_weighted_shares_are_those_of_section_6(beta):
    for seed in range(10):
        pool = tied_pool(seed)
        made = make_strategy("MT-IND", weights={"intent": beta, "slots": 1 - beta})
        expected = independent_written_out(pool.confidence, 13, [beta, 1 - beta])
        assert made.select(pool, 13, in_items=True).items.tolist() == expected


def test_tasks_that_agree_choose_as_many_as_tasks_that_do_not():
    pool = tied_pool(0)
    agreed = replace(pool, confidence=np.repeat(pool.confidence[:, :1], 2, axis=1))
    selection = make_strategy("MT-IND").select(agreed, 12, in_items=True)
    assert selection.items.tolist() == first_by(pool.confidence[:, 0].__getitem__, 30, 12)


@pytest.mark.parametrize(
    ("cheap", "budget"),
    [
        (1, 10),  # Each task has 5: the first buys a and d, the second b.
        (
            3,
            12,
        ),  # Each has 6: the first buys a, the second b. Neither has enough for d of the 3 left; together they do.
    ],
)
def test_under_a_budget_shares_are_of_money_and_what_is_left_over_is_spent(cheap, budget):
    prices = Prices(("intent", "slots"), np.array([4, 5, 7, cheap]), np.zeros((4, 2), dtype=np.int64))
    confidence = np.array([[0.1, 0.9], [0.8, 0.1], [0.2, 0.2], [0.9, 0.8]])
    pool = Candidates(["a", "b", "c", "d"], confidence, prices)
    selection = make_strategy("MT-IND").select(pool, budget)
    assert sorted(selection.items.tolist()) == [0, 1, 3]
    assert selection.total == budget


# -- section 7 -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("decision", ["BLP_AL", "BLP"])
@pytest.mark.parametrize("name", ["MT-AVG", "MT-MAX", "MT-MIN", "MT-RRF", "STCS-slots", "UDJS"])
def test_exact_decisions_are_the_best_there_is_at_joint_cost(name, decision):
    rng = np.random.default_rng(9)
    for _ in range(12):
        pool = random_pool(rng, 5, 2)
        budget = int(rng.integers(0, 60))
        made = make_strategy(f"{name}+{decision}")
        selection = made.select(pool, budget)
        value = 1 - pool.confidence
        if name != "UDJS":
            worth = {"MT-AVG": value.mean(axis=1), "MT-MAX": value.min(axis=1), "MT-MIN": value.max(axis=1)}
            worth |= {"STCS-slots": value[:, 1], "MT-RRF": fused(pool.confidence)}
            menu = Menu(worth[name][:, None], 0 * pool.prices.reading, pool.prices.joint()[:, None])
        else:
            menu = Menu(value, pool.prices.reading, pool.prices.own)
        best = best_of_all(menu, np.ones(menu.value.shape, dtype=bool), budget, Limits())
        assert selection.certificate.objective == pytest.approx(best, abs=1e-9)
        assert selection.certificate.optimal


def fused(confidence):
    rank = confidence.argsort(axis=0).argsort(axis=0) + 1
    return (1 / (60 + rank)).sum(axis=1)


def test_the_longest_are_chosen_first():
    pool = replace(tied_pool(0, items=5), features=PoolFeatures(words=np.array([3, 9, 1, 7, 9])))
    assert make_strategy("LONGEST").select(pool, 4, in_items=True).items.tolist() == [1, 4, 3, 0]


# -- a user's own ----------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("_own_registry")
def test_a_strategy_in_a_few_lines_is_found_by_name():
    @strategy("CHEAPEST", "the cheapest items first")
    def cheapest(pool, budget, rng):
        return greedy_by_confidence(pool.ranking(pool.prices.joint().astype(float)), pool.prices.joint(), budget)

    pool = Candidates(["a", "b"], np.zeros((2, 1)), Prices(("x",), np.array([5, 2]), np.zeros((2, 1), int)))
    assert make_strategy("cheapest").select(pool, 6).items.tolist() == [1]
    with pytest.raises(SelectionError, match="CHEAPEST gives no scores"):
        make_strategy("cheapest+blp")


@pytest.mark.usefixtures("_own_registry")
def test_a_strategy_that_scores_can_be_spent_matched_and_limited():
    @scoring_strategy("LONG-AND-UNSURE", "long items that the model is unsure of", needs=frozenset({"words"}))
    def long_and_unsure(pool):
        return (1 - average(pool.confidence)) * pool.features.require("words")

    rng = np.random.default_rng(0)
    pool = replace(random_pool(rng, 8, 2), features=PoolFeatures(words=rng.integers(1, 9, 8)))
    value = (1 - average(pool.confidence)) * pool.features.words
    menu = Menu(value[:, None], 0 * pool.prices.reading, pool.prices.joint()[:, None])
    all_ = np.ones((8, 1), dtype=bool)
    exact = make_strategy("long-and-unsure+blp_al").select(pool, 40)
    assert exact.certificate.objective == pytest.approx(best_of_all(menu, all_, 40, Limits()))
    greedy = make_strategy("LONG-AND-UNSURE").select(pool, 3, in_items=True)
    assert greedy.items.tolist() == first_by((-value).__getitem__, 8, 3)
    few = Limits([Limit("labels", np.ones((8, 2)), at_most=4.0)])
    limited = make_strategy("LONG-AND-UNSURE+BLP_AL").select(replace(pool, limits=few), 40)
    assert limited.certificate.objective == pytest.approx(best_of_all(menu, all_, 40, few.together()))
    assert len(make_strategy("LONG-AND-UNSURE+IDMR").select(pool, 3, in_items=True)) == 3
    assert make_strategy("LONG-AND-UNSURE+IDMR").needs == {"words"}


@pytest.mark.usefixtures("_own_registry")
@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda pool, budget, rng: np.array([1, 1]), "chose an item twice"),
        (lambda pool, budget, rng: np.array([2]), "chose a label that exists already"),
        (lambda pool, budget, rng: np.array([0, 1]), "spent more than the budget of 5"),
        (
            lambda pool, budget, rng: Selection.of(pool, np.array([0]), np.zeros((1, 2), dtype=bool)),
            "chose an item for no task",
        ),
    ],
)
def test_a_strategy_that_chooses_wrongly_is_told_so(choose, message):
    strategy("WRONG", "does what it should not")(choose)
    prices = Prices(("intent", "slots"), np.array([1, 1, 1]), np.ones((3, 2), dtype=np.int64))
    open_ = np.array([[True, True], [True, True], [True, False]])
    pool = Candidates(["a", "b", "c"], np.zeros((3, 2)), prices, open_)
    with pytest.raises(SelectionError, match=rf"strategy WRONG \(.*{Path(__file__).name}:\d+\) {message}\. Fix"):
        make_strategy("WRONG").select(pool, 5)


@pytest.mark.parametrize("name", ["MT-PAR", "MT-IND", "RANDOM+IDMR", "MT-PAR+IDMR"])
def test_a_strategy_without_scores_refuses_limits_by_name(name):
    pool = tied_pool(0, items=4)
    pool = replace(
        pool, limits=Limits([Limit("labels", np.ones((4, 2)), 3.0)]), features=PoolFeatures(words=np.arange(4))
    )
    with pytest.raises(
        SelectionError, match=r"gives no scores, so it cannot keep to limits\. Fix: use a strategy with scores"
    ):
        make_strategy(name).select(pool, 10)
