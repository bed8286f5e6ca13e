"""Exact spending under limits, against trying everything and against the whole integer program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from bursar.errors import SelectionError
from bursar.selection import GroupCap, Limit, Limits
from bursar.selection.spend import program
from bursar.selection.spend.knapsack import Menu, solve
from bursar.selection.spend.program import bound_within, maximise, solve_within
from tests.selection.plain import best_of_all, every_selection, price_of, random_budget, random_menu, subsets

MOST_ITEMS = {1: 9, 2: 5, 3: 3, 4: 2}  # so that everything can be tried


def labels_of(task, shape):
    """A use of 1 for every label of a task."""
    return np.tile(np.arange(shape[1]) == task, (shape[0], 1)).astype(float)


def caps(rng, shape):
    return [
        Limit(f"cap {t}", labels_of(t, shape), at_most=float(rng.integers(0, shape[0] + 1))) for t in _some(rng, shape)
    ]


def minimums(rng, shape):
    least = [float(rng.integers(0, shape[0] // 2 + 2)) for _ in range(shape[1])]
    return [Limit(f"minimum {t}", labels_of(t, shape), at_least=least[t]) for t in _some(rng, shape)]


def between(rng, shape):
    ends = np.sort(rng.integers(0, shape[0] + 1, (shape[1], 2)), axis=1).astype(float)
    return [Limit(f"between {t}", labels_of(t, shape), ends[t, 1], ends[t, 0]) for t in _some(rng, shape)]


def hours(rng, shape):
    use = np.round(rng.random(shape), 1)
    return [Limit("hours", use, at_most=float(np.round(rng.random() * use.sum(), 1)))]


def groups(rng, shape):
    many = int(rng.integers(1, 4))
    return GroupCap(rng.integers(0, many, shape[0]), rng.integers(0, 3, many))


def _some(rng, shape):
    return rng.permutation(shape[1])[: int(rng.integers(1, shape[1] + 1))].tolist()


KINDS = {
    "caps": lambda rng, shape: Limits(caps(rng, shape)),
    "minimums": lambda rng, shape: Limits(minimums(rng, shape)),
    "between": lambda rng, shape: Limits(between(rng, shape)),
    "hours": lambda rng, shape: Limits(hours(rng, shape)),
    "groups": lambda rng, shape: Limits((), groups(rng, shape)),
    "caps and hours": lambda rng, shape: Limits([*caps(rng, shape), *hours(rng, shape)]),
    "minimums and groups": lambda rng, shape: Limits(minimums(rng, shape), groups(rng, shape)),
    "everything": lambda rng, shape: Limits([*between(rng, shape), *hours(rng, shape)], groups(rng, shape)),
}


def random_case(rng, kind):
    """Few items, any prices and values, some labels not to be had."""
    tasks = int(rng.integers(1, 5))
    shape = (int(rng.integers(1, MOST_ITEMS[tasks] + 1)), tasks)
    menu = random_menu(rng, *shape, dearest=int(rng.choice([2, 9, 1000, 10**9])))
    shade = rng.integers(0, 4)
    value = [menu.value, np.round(menu.value * 3) / 3, np.full(shape, 0.7), np.where(menu.value < 0.4, 0, menu.value)]
    menu = Menu(value[shade], menu.reading * int(rng.random() < 0.8), menu.own)
    return menu, rng.random(shape) < rng.choice([0.7, 1.0]), random_budget(rng, menu), KINDS[kind](rng, shape)


def slack(best):
    return 1e-9 * max(1.0, abs(best))


def assert_kept(solved, menu, able, budget, limits):
    assert price_of(menu, solved.chosen) <= budget
    assert not (solved.chosen & ~able).any()
    items = np.flatnonzero(solved.chosen.any(axis=1))
    assert limits.broken(items, solved.chosen[items]) is None
    assert abs(solved.objective - sum(menu.value[solved.chosen].tolist())) <= slack(solved.objective)


def assert_best_or_refused(menu, able, budget, limits):
    """Whether there was something to be had."""
    best = best_of_all(menu, able, budget, limits)
    if best is None:
        with pytest.raises(SelectionError, match="no selection within the budget keeps to"):
            solve_within(menu, able, budget, limits)
        return False
    solved = solve_within(menu, able, budget, limits)
    assert_kept(solved, menu, able, budget, limits)
    assert abs(solved.objective - best) <= slack(best)
    assert solved.optimal
    assert solved.bound == solved.objective
    return True


# -- against trying everything ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_under_limits_the_best_of_all_selections_is_found_or_there_is_none(kind):
    rng = np.random.default_rng(list(KINDS).index(kind))
    found = [assert_best_or_refused(*random_case(rng, kind)) for _ in range(20)]
    assert any(found)
    assert kind in ("caps", "hours", "groups", "caps and hours") or not all(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [1, 4])
def test_multipliers_that_are_not_the_best_are_good_enough(monkeypatch, kind, cuts):
    monkeypatch.setattr(program, "CUTS", cuts)
    rng = np.random.default_rng([list(KINDS).index(kind), cuts])
    for _ in range(16):
        assert_best_or_refused(*random_case(rng, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [1, 2])
def test_a_first_core_of_few_items_grows_until_nothing_is_missing(monkeypatch, kind, first):
    monkeypatch.setattr(program, "FIRST_CORE", first)
    monkeypatch.setattr(program, "CUTS", 8)
    rng = np.random.default_rng([list(KINDS).index(kind), 10 + first])
    for _ in range(11):
        assert_best_or_refused(*random_case(rng, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_core_that_may_not_grow_gives_a_bound_that_holds_and_claims_no_more(monkeypatch, kind):
    monkeypatch.setattr(program, "FIRST_CORE", 2)
    monkeypatch.setattr(program, "LARGEST_CORE", 2)
    monkeypatch.setattr(program, "CUTS", 3)
    rng = np.random.default_rng([list(KINDS).index(kind), 20])
    for _ in range(16):
        menu, able, budget, limits = random_case(rng, kind)
        best = best_of_all(menu, able, budget, limits)
        try:
            solved = solve_within(menu, able, budget, limits)
        except SelectionError:
            continue  # nothing within so small a core, which is not to say that there is nothing
        assert_kept(solved, menu, able, budget, limits)
        assert solved.objective <= best + slack(best)
        assert solved.bound >= best - slack(best)
        assert not solved.optimal or abs(solved.objective - best) <= slack(best)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_alone_holds_too(monkeypatch, kind):
    monkeypatch.setattr(program, "CUTS", 8)
    rng = np.random.default_rng([list(KINDS).index(kind), 30])
    for _ in range(15):
        menu, able, budget, limits = random_case(rng, kind)
        best = best_of_all(menu, able, budget, limits)
        if best is not None:
            assert bound_within(menu, able, budget, limits) >= best - slack(best)


def relaxed(menu, able, budget, limits):
    """The linear program with a variable for every item and way to buy it; ``None`` if nothing keeps to its limits."""
    items, tasks = menu.value.shape
    item, way = np.nonzero(~(subsets(tasks)[None] & ~able[:, None]).any(axis=2))
    way = subsets(tasks)[way]
    rows = [(item == one).astype(float) for one in range(items)]
    most = [1.0] * items
    rows.append(menu.reading[item] + (menu.own[item] * way).sum(axis=1))
    most.append(budget)
    for limit in limits.sums:
        use = (limit.use[item] * way).sum(axis=1)
        rows += [use, -use]
        most += [limit.at_most, -limit.at_least]
    if limits.groups is not None:
        rows += [(limits.groups.group[item] == group).astype(float) for group in range(len(limits.groups.at_most))]
        most += limits.groups.at_most.tolist()
    finite = np.isfinite(most)
    value = (menu.value[item] * way).sum(axis=1)
    found = linprog(-value, A_ub=np.array(rows)[finite], b_ub=np.array(most)[finite], bounds=(0, None))
    return -found.fun if found.status == 0 else None


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_at_the_best_multipliers_is_the_linear_program_s(kind):
    rng = np.random.default_rng([list(KINDS).index(kind), 70])
    for _ in range(8):
        menu, able, budget, limits = random_case(rng, kind)
        able = able & (menu.reading[:, None] + menu.own <= budget)
        bound = relaxed(menu, able, budget, limits) if able.any() else None
        if bound is not None:
            assert bound_within(menu, able, budget, limits) == pytest.approx(bound, rel=1e-5, abs=1e-5)


def at_the_plan(menu, able, plan, limits):
    """Every selection that keeps to the groups, and what it is worth at the plan's gains."""
    every = every_selection(*menu.value.shape)
    fine = ~(every & ~able).any(axis=(1, 2))
    if limits.groups is not None:
        for group, most in enumerate(limits.groups.at_most):
            fine &= every.any(axis=2)[:, limits.groups.group == group].sum(axis=1) <= most
    every = every[fine]
    worth = (every * np.where(able, plan.gain, 0)).sum(axis=(1, 2)) - every.any(axis=2) @ plan.entry
    planned = float(worth[(every == plan.chosen).all(axis=(1, 2))][0])
    assert planned >= worth.max() - 1e-9
    return every, worth, planned


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_can_deviate_from_the_plan_for_less_than_its_loss(monkeypatch, kind):
    monkeypatch.setattr(program, "CUTS", 6)
    rng = np.random.default_rng([list(KINDS).index(kind), 40])
    for _ in range(20):
        menu, able, budget, limits = random_case(rng, kind)
        able = able & (menu.reading[:, None] + menu.own <= budget)
        plan = program.LimitedProblem(menu, able, budget, limits).plan()
        every, worth, planned = at_the_plan(menu, able, plan, limits)
        for item, least in enumerate(plan.least):
            others = worth[(every[:, item] != plan.chosen[item]).any(axis=1)]
            loss = planned - others.max() if len(others) else np.inf
            assert least <= loss + 1e-9
            if limits.groups is None:  # within groups one deviation can bring on another
                assert least == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_loses_less_than_the_gap_is_offered_to_the_program(monkeypatch, kind):
    monkeypatch.setattr(program, "CUTS", 6)
    rng = np.random.default_rng([list(KINDS).index(kind), 60])
    for _ in range(12):
        menu, able, budget, limits = random_case(rng, kind)
        able = able & (menu.reading[:, None] + menu.own <= budget)
        problem = program.LimitedProblem(menu, able, budget, limits)
        plan = problem.plan()
        every, worth, planned = at_the_plan(menu, able, plan, limits)
        gap = float(rng.random())
        row, tasks = problem.ways(plan, np.arange(len(able)), gap)
        offered = {(item, *way) for item, way in zip(row.tolist(), tasks.tolist(), strict=True)}
        close = every[planned - worth < gap]
        needed = {(item, *way) for one in close.tolist() for item, way in enumerate(one) if any(way)}
        assert needed <= offered
        if limits.groups is None:
            assert needed == offered


# -- more than can be tried ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_limits_that_bind_nothing_change_nothing(tasks):
    rng = np.random.default_rng(tasks)
    menu = Menu(rng.random((300, tasks)), rng.integers(1, 12, 300), rng.integers(1, 9, (300, tasks)))
    budget = int(menu.reading.sum() + menu.own.sum()) // 4
    able = np.ones((300, tasks), dtype=bool)
    idle = Limits(
        [Limit("cap", labels_of(0, (300, tasks)), at_most=300.0), Limit("hours", rng.random((300, tasks)))],
        GroupCap(rng.integers(0, 5, 300), np.full(5, 300)),
    )
    solved, free = solve_within(menu, able, budget, idle), solve(menu, budget)
    assert_kept(solved, menu, able, budget, idle)
    assert abs(solved.objective - free.objective) <= slack(free.objective)


def whole_program(menu, able, budget, limits):
    """A variable for every label and one for every reading, all given to the solver at once."""
    items, tasks = menu.value.shape
    labels = items * tasks
    reads = sparse.kron(sparse.eye(items), np.ones((tasks, 1)))
    rows = [sparse.hstack([sparse.eye(labels), -reads])]  # a label needs its item to be read
    low, high = [np.full(labels, -np.inf)], [np.zeros(labels)]
    rows.append(sparse.csr_array(np.concatenate([menu.own.ravel(), menu.reading])[None].astype(float)))
    low.append([-np.inf])
    high.append([budget])
    for limit in limits.sums:
        rows.append(sparse.csr_array(np.concatenate([limit.use.ravel(), np.zeros(items)])[None]))
        low.append([limit.at_least])
        high.append([limit.at_most])
    if limits.groups is not None:
        of = (limits.groups.group == np.arange(len(limits.groups.at_most))[:, None]).astype(float)
        rows.append(sparse.hstack([sparse.csr_array((len(of), labels)), of]))
        low.append(np.full(len(of), -np.inf))
        high.append(limits.groups.at_most)
    found = milp(
        -np.concatenate([menu.value.ravel(), np.zeros(items)]),
        integrality=np.ones(labels + items),
        bounds=Bounds(0, np.concatenate([able.ravel(), np.ones(items)]).astype(float)),
        constraints=LinearConstraint(sparse.vstack(rows, format="csr"), np.concatenate(low), np.concatenate(high)),
        options={"mip_rel_gap": 0.0},
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("first", [400, 20])
@pytest.mark.parametrize("kind", ["labels", "hours", "groups"])
def test_hundreds_of_items_are_spent_on_as_the_whole_integer_program_would(monkeypatch, kind, first):
    monkeypatch.setattr(program, "FIRST_CORE", first)
    rng = np.random.default_rng(first)
    shape = (200, 2)
    menu = Menu(rng.random(shape), rng.integers(1, 12, 200), rng.integers(1, 9, shape))
    able = rng.random(shape) < 0.9
    budget = int(menu.reading.sum() + menu.own.sum()) // 5
    limits = {
        "labels": Limits([Limit("cap", labels_of(0, shape), 30.0), Limit("most", labels_of(1, shape), at_least=60.0)]),
        "hours": Limits([Limit("hours", np.round(rng.random(shape), 2), at_most=12.5)]),
        "groups": Limits([Limit("cap", labels_of(1, shape), 40.0)], GroupCap(rng.integers(0, 8, 200), np.full(8, 7))),
    }[kind]
    solved = solve_within(menu, able, budget, limits)
    assert_kept(solved, menu, able, budget, limits)
    assert solved.optimal
    assert solved.objective == pytest.approx(
        whole_program(menu, able, budget, limits), abs=2e-6
    )  # HiGHS's own accuracy


# -- what is said ----------------------------------------------------------------------------------------------------
def test_limits_that_nothing_keeps_to_are_named():
    menu = Menu(np.ones((2, 1)), np.array([3, 3]), np.array([[1], [1]]))
    limits = Limits([Limit("intents", np.ones((2, 1)), at_least=2.0)], GroupCap(np.array([0, 0]), np.array([2])))
    with pytest.raises(SelectionError, match=r"keeps to intents, the group cap.*Fix: raise the budget"):
        solve_within(menu, np.ones((2, 1), dtype=bool), 7, limits)
    assert solve_within(menu, np.ones((2, 1), dtype=bool), 8, limits).chosen.all()


def test_a_minimum_is_met_with_labels_that_are_worth_nothing_if_there_are_no_others():
    menu = Menu(np.array([[0.9, 0.0], [0.8, 0.0]]), np.array([2, 2]), np.array([[1, 1], [1, 1]]))
    limits = Limits([Limit("slots", labels_of(1, (2, 2)), at_least=1.0)])
    solved = solve_within(menu, np.ones((2, 2), dtype=bool), 4, limits)
    assert solved.chosen.tolist() == [[True, True], [False, False]]


def test_of_items_that_are_alike_the_first_are_bought_under_limits_too():
    menu = Menu(np.full((6, 1), 0.5), np.full(6, 1), np.full((6, 1), 1))
    limits = Limits([Limit("labels", np.ones((6, 1)), at_most=2.0)])
    able = np.array([[True], [False], [True], [True], [True], [True]])
    assert solve_within(menu, able, 100, limits).chosen.ravel().tolist() == [True, False, True, False, False, False]


# -- the integer program by itself -----------------------------------------------------------------------------------
def test_an_integer_program_is_maximised_and_bounded():
    rng = np.random.default_rng(50)
    for _ in range(25):
        value, use = rng.random(10), rng.integers(1, 9, (2, 10)).astype(float)
        most = np.array([20.0, 15.0])
        every = every_selection(10, 1)[:, :, 0]
        best = (every @ value)[((every @ use.T) <= most).all(axis=1)].max()
        taken, bound = maximise(value, sparse.csr_array(use), np.full(2, -np.inf), most)
        assert (use[:, taken].sum(axis=1) <= most).all()
        assert value[taken].sum() == pytest.approx(best, abs=1e-9)
        assert bound == pytest.approx(best, abs=1e-8)


def test_an_integer_program_without_a_solution_has_none():
    taken, bound = maximise(np.ones(2), sparse.csr_array([[1.0, 1.0]]), np.array([3.0]), np.array([5.0]))
    assert taken is None
    assert bound == -np.inf


def test_every_way_to_buy_an_item_is_offered_to_the_first_program():
    rng = np.random.default_rng(51)
    menu = random_menu(rng, 4, 3, dearest=5)
    able = rng.random((4, 3)) < 0.7
    problem = program.LimitedProblem(menu, able, 100, Limits())
    row, tasks = problem.ways(problem.plan(), np.arange(4), np.inf)
    for item in range(4):
        expected = [s.tolist() for s in subsets(3) if not (s & ~able[item]).any()]
        assert sorted(tasks[row == item].tolist()) == sorted(expected)
