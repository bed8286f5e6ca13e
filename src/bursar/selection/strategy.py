"""The ``Strategy`` type, and how a name becomes one.

A name is a base strategy, a task if the strategy uses only one, and modifiers after ``+``:

``MT-AVG``, ``MT-EC-slots``, ``MT-PAR``      paper 1, Table 1: greedy, least confident first
``MT-MIN+BLP_AL``, ``UDJS+BLP``, ``STCS-intent+BLP_AL``      paper 1, section 7: exact, each round or once for all
``BALD+IDMR``, ``MIN-CONF+IDMR``      paper 4: input-distribution matching
``MT-AVG+COVER``, ``COVER+GUARD``      cover the uncertainty that a strategy scores; leave out outliers

Module ``strategies`` has all of them, and shows how to add one.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np

from bursar.errors import BursarError, InfeasibleError, SelectionError
from bursar.learners.learner import PASSES, VECTORS
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from bursar.registry import Registry
from bursar.selection.candidates import Candidates, Certificate, MissingFeatureError, Selection
from bursar.selection.cover import cover_items, cover_labels, coverages_of
from bursar.selection.modifiers import BINS, Binning, Matching, outliers
from bursar.selection.spend import Mode, Spend, spend
from bursar.tasks import Prices
from bursar.uncertainty import MEASURES

Choose = Callable[[Candidates, int, np.random.Generator], "Selection | IntArray"]
Value = Callable[[Candidates], FloatArray]

OURS = str(Path(__file__).parents[1])  # strategies of the package itself are named without a file


@dataclass(frozen=True)
class Strategy:
    """A named way to spend a budget on a pool.

    A strategy either scores or chooses. ``value`` returns scores: (items,) if an item is bought for all tasks,
    (items, tasks) if labels are bought one by one; the budget can then be spent in any ``mode`` and by any ``spend``.
    ``choose`` returns the selection itself.

    >>> from bursar.tasks import Prices
    >>> prices = Prices(("intent", "slots"), np.array([5, 5, 5]), np.array([[3, 1], [3, 1], [3, 2]]))
    >>> pool = Candidates(["u1", "u2", "u3"], np.array([[0.9, 0.8], [0.2, 0.5], [0.4, 0.4]]), prices)
    >>> chosen = make_strategy("MT-AVG").select(pool, budget=20, seed=0)
    >>> chosen.items.tolist(), chosen.total
    ([1, 2], 19)
    >>> make_strategy("UDJS+BLP_AL").select(pool, budget=20).certificate.optimal
    True
    """

    name: str
    summary: str
    choose: Choose | None = None
    value: Value | None = None
    mode: Mode = "joint"  # items for all tasks (joint), for any of them (disjoint), or equal budgets per task (equal)
    spend: Spend = "greedy"
    needs_model: bool = True
    measure: str = "entropy"
    needs: frozenset[str] = frozenset()  # required features of the pool
    task: str | None = None  # the only task it uses, if there is one
    alone: bool = False  # train one model per task (paper 1's ST-…)
    once: bool = False  # spend the budget of all rounds in the first (paper 1's BLP)
    weights: Mapping[str, float] = field(default_factory=dict)  # β of tasks; equal if empty
    weighted: bool = False  # whether it accepts weights
    matching: Matching | None = None
    guarded: bool = False  # leave out outliers
    one_label: bool = False  # needs a task with one label per item
    handles_limits: bool = False  # ``choose`` respects the pool's limits
    start: str = "random"  # how items are chosen before the first model; one of ``STARTS``
    fallback: str | None = None  # strategy to use if the learner lacks what this one needs

    def select(self, pool: Candidates, budget: int, seed: int = 0, *, in_items: bool = False) -> Selection:
        """Choose items, and tasks for each, within the budget (money in whole units, or a number of items)."""
        if budget < 0:
            raise SelectionError(f"a budget cannot be negative: {budget}")
        pool = replace(pool, weights=self.weights_of(pool.tasks))
        if not len(pool):
            return self._select_nothing(pool)
        by_id = pool if (np.diff(pool.order) > 0).all() else pool.take(pool.order)
        offered = by_id
        if in_items:  # each item costs 1, whatever its tasks
            ones, nothing = np.ones(len(pool), dtype=np.int64), np.zeros_like(by_id.prices.own)
            offered = replace(by_id, prices=Prices(pool.tasks, ones, nothing))
        selection = self._check(self._choose(offered, budget, rng(seed, "strategy")), offered, budget)
        chosen = Selection.of(by_id, selection.items, selection.tasks, selection.certificate)
        return replace(chosen, items=pool.order[chosen.items])

    def _select_nothing(self, pool: Candidates) -> Selection:
        nothing = np.zeros(0, dtype=np.int64)
        if broken := pool.limits.broken(nothing, np.zeros((0, len(pool.tasks)), dtype=bool)):
            raise InfeasibleError(f"an empty pool cannot keep to {broken}", fix="lower the minimum")
        if self.value is None:
            return Selection.joint(pool, nothing)
        proven = self.mode != "equal"
        return Selection.joint(pool, nothing, Certificate(0.0, 0.0 if proven else None, proven))

    def _choose(self, pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
        """Apply GUARD and matching, if they are on, around the strategy itself."""
        if self.guarded and (outside := outliers(pool, self.task)).any():
            kept = np.flatnonzero(~outside)
            chosen = replace(self, guarded=False)._choose(pool.take(kept), budget, rng)
            return replace(chosen, items=kept[chosen.items])
        if self.matching is not None:
            return self.matching.choose(self, pool, budget, rng)
        return self.choose_without_matching(pool, budget, rng)

    def choose_without_matching(self, pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
        """Choose without matching the pool's distribution."""
        if self.value is not None:
            return spend(pool, self.scores(pool), budget, self.mode, self.spend)
        if pool.limits and not self.keeps_limits:
            raise SelectionError(
                f"strategy {self.name} gives no scores, so it cannot keep to limits",
                fix="use a strategy with scores, such as MT-AVG",
            )
        if self.choose is None:
            raise SelectionError(f"strategy {self.name} neither scores nor chooses", fix="fix the strategy")
        chosen = _call(self, self.choose, pool, budget, rng)
        return chosen if isinstance(chosen, Selection) else Selection.joint(pool, _checked_items(self, chosen, pool))

    def scores(self, pool: Candidates) -> FloatArray:
        """What ``value`` returns, checked."""
        assert self.value is not None
        return _checked_scores(self, _call(self, self.value, pool), pool)

    @property
    def asks(self) -> frozenset[str]:
        """What the learner must provide besides predictions."""
        passes = {PASSES} if MEASURES[self.measure].passes > 1 else set()
        return frozenset(passes | ({VECTORS} if self.needs & {"vectors", "units"} else set()))

    @property
    def keeps_limits(self) -> bool:
        """Whether it can respect limits: it scores and spends one budget, or its ``choose`` handles them."""
        if self.value is None:
            return self.handles_limits and self.matching is None
        return self.mode != "equal"

    @property
    def by_label(self) -> bool:
        """Whether an item may be bought for some of its tasks only."""
        return self.mode != "joint"

    def weights_of(self, tasks: tuple[str, ...]) -> FloatArray | None:
        """The tasks' weights, summing to 1; ``None`` if they are equal."""
        if not self.weights:
            return None
        unknown = [name for name in self.weights if name not in tasks]
        if unknown:
            raise SelectionError(
                f"a weight is given for the unknown task {unknown[0]!r}", fix=f"the tasks are {', '.join(tasks)}"
            )
        weights = np.array([self.weights.get(name, 0.0) for name in tasks], dtype=float)
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise SelectionError(
                f"the weights {dict(self.weights)} must be 0 or more, and at least one above 0",
                fix="give each task a weight, such as intent = 0.3 and slots = 0.7",
            )
        return None if np.ptp(weights) == 0 else weights / weights.sum()

    def _check(self, selection: Selection, pool: Candidates, budget: int) -> Selection:
        """Reject a selection with duplicates, labelled items, or more than the budget or a limit allows."""
        wrong = None
        if len(np.unique(selection.items)) != len(selection):
            wrong = "chose an item twice"
        elif not selection.tasks.any(axis=1).all():
            wrong = "chose an item for no task"
        elif (selection.tasks & ~pool.open[selection.items]).any():
            wrong = "chose a label that exists already"
        elif int(pool.prices.take(selection.items).of(selection.tasks).sum()) > budget:
            wrong = f"spent more than the budget of {budget}"
        elif broken := pool.limits.broken(selection.items, selection.tasks):
            wrong = f"does not keep to {broken}"
        if wrong is not None:
            raise SelectionError(f"{_described(self)} {wrong}", fix="fix the strategy")
        return selection


STARTS = {
    "random": "items drawn at random",
    "cover": "items that cover the words of the pool, by the encoder before training",
}
STRATEGIES: Registry[Strategy] = Registry("strategy", "bursar.strategies")
FAMILIES: Registry[Strategy] = Registry("strategy", "bursar.strategy_families")  # of one task, whose name is appended


def strategy(name: str, summary: str, **traits: Any) -> Callable[[Choose], Choose]:
    """Register a function of (pool, budget, random generator) as a strategy; the pool is sorted by id.

    It returns the positions of items to annotate for all tasks, or a ``Selection``.
    """

    def register(choose: Choose) -> Choose:
        STRATEGIES.add(name, Strategy(name, summary, choose, **traits))
        return choose

    return register


def scoring_strategy(name: str, summary: str, **traits: Any) -> Callable[[Value], Value]:
    """Register a function of the pool that scores each item (or label): the highest scores are bought first."""

    def register(value: Value) -> Value:
        STRATEGIES.add(name, Strategy(name, summary, value=value, **traits))
        return value

    return register


# -- from a name to a strategy ---------------------------------------------------------------------------------------
DECISIONS: dict[str, dict[str, Any]] = {
    "GRD_AL": {"spend": "greedy", "once": False},
    "RATIO_AL": {"spend": "ratio", "once": False},
    "BLP_AL": {"spend": "exact", "once": False},
    "BLP": {"spend": "exact", "once": True},
}
MATCHING = "IDMR"
COVERING = "COVER"
GUARD = "GUARD"
MODIFIERS = (*DECISIONS, MATCHING, COVERING, GUARD)


def make_strategy(
    name: str, *, weights: Mapping[str, float] | None = None, bins: str | Binning = "length", bin_count: int = BINS
) -> Strategy:
    """Make the strategy of this name (case does not matter); the error for an unknown name suggests the nearest.

    >>> made = make_strategy("mt-min+blp_al+idmr")
    >>> made.name, made.spend, made.matching.by
    ('MT-MIN+BLP_AL+IDMR', 'exact', 'length')
    >>> make_strategy("MT-EC-slots").task
    'slots'
    >>> make_strategy("MT-PAR+BLP_AL")
    Traceback (most recent call last):
        ...
    bursar.errors.SelectionError: MT-PAR gives no scores, so BLP_AL cannot spend by them. Fix: leave BLP_AL out
    """
    first, modifiers = split_name(name)
    made = _base(first)
    for modifier in modifiers:
        if modifier in DECISIONS:
            if made.value is None and modifier != "GRD_AL":  # paper 1, footnote 12
                raise SelectionError(
                    f"{made.name} gives no scores, so {modifier} cannot spend by them", fix=f"leave {modifier} out"
                )
            made = replace(made, **DECISIONS[modifier])
        elif modifier == COVERING:
            made = _covering(made)
        elif modifier == GUARD:
            if not made.needs_model:
                raise SelectionError(f"{made.name} uses no model, so it has no outliers", fix="leave GUARD out")
            made = replace(made, guarded=True)
        else:
            made = _matching(made, bins, bin_count)
        made = replace(made, name=f"{made.name}+{modifier}")
    if weights and not made.weighted:  # errata 16
        raise SelectionError(f"strategy {made.name} takes no weights", fix="use MT-AVG, MT-RRF, MT-IND or MT-PAR")
    return replace(made, weights=dict(weights or {}))


def _matching(made: Strategy, bins: str | Binning, bin_count: int) -> Strategy:
    """What is bought should look like the pool."""
    if made.mode == "equal":
        raise SelectionError(f"{made.name} spends by shares, so it cannot be matched", fix="use UDJS instead")
    needs = {"length": "words", "cluster": "vectors"}.get(str(bins), "labels")
    needed = made.needs | (set() if callable(bins) else {needs})
    return replace(made, needs=needed, matching=Matching(bins, bin_count))


def _covering(made: Strategy) -> Strategy:
    """COVER with a strategy's scores as the uncertainty of an item's units."""
    buy = cover_labels if made.by_label else cover_items
    if made.value is None:
        raise SelectionError(f"{made.name} gives no scores, so there is nothing to cover", fix="leave COVER out")
    if made.mode == "equal" or made.spend != "greedy":
        raise SelectionError(
            f"{made.name} and COVER cannot both decide how to spend", fix="use MT-AVG+COVER or UDJS+COVER"
        )

    def choose(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
        return buy(pool, coverages_of(pool, rng, made.scores(pool)), budget, rng)

    return replace(made, choose=choose, value=None, handles_limits=True, needs_model=True, needs=made.needs | {"units"})


def split_name(name: str) -> tuple[str, list[str]]:
    """Split a name into base and modifiers. The name of a task may contain a + of its own."""
    modifiers: list[str] = []
    while "+" in name and name.rpartition("+")[2].upper() in MODIFIERS:
        name, _, last = name.rpartition("+")
        modifiers.insert(0, last.upper())
    return name, modifiers


def _base(name: str) -> Strategy:
    for known in (name, name.upper()):
        if known in STRATEGIES:
            return STRATEGIES[known]
    for family in sorted(FAMILIES.names(), key=len, reverse=True):
        if name.upper().startswith(f"{family}-") and len(name) > len(family) + 1:
            task = name[len(family) + 1 :]
            return replace(FAMILIES[family], name=f"{family}-{task}", task=task, value=one_task(task))
        if name.upper() == family:
            raise SelectionError(f"{family} needs the name of a task", fix=f"add it, as in {family}-slots")
    if "+" in name:
        last = name.rpartition("+")[2]
        raise SelectionError(
            f"strategy {name!r}: {last!r} is no modifier", fix=f"use {', '.join(MODIFIERS[:-1])} or {MODIFIERS[-1]}"
        )
    return STRATEGIES[name.upper()]  # raises, with the nearest name


def one_task(task: str) -> Value:
    """Score items by the uncertainty of one task."""

    def value(pool: Candidates) -> FloatArray:
        if task not in pool.tasks:
            raise SelectionError(f"there is no task {task!r}", fix=f"the tasks are {', '.join(pool.tasks)}")
        return 1 - pool.confidence[:, pool.tasks.index(task)]

    return value


def name_of_strategy(given: str | Strategy | Choose) -> str:
    """The name of a strategy; one that is given as an object or a function is registered under its own first."""
    if isinstance(given, str):
        return make_strategy(given).name
    if isinstance(given, Strategy):
        return _registered(given)
    name = getattr(given, "__name__", type(given).__name__).strip("<>")
    summary = (getattr(given, "__doc__", None) or "a function of yours").strip().partition("\n")[0]
    return _registered(Strategy(name, summary, given))


def _registered(made: Strategy) -> str:
    """The name under which a strategy can be made again."""
    try:
        if make_strategy(made.name) == made:
            return made.name
    except BursarError:
        pass  # it is of no known name
    name = made.name.replace("+", "-")
    for key in (name, name.upper()):
        if key in STRATEGIES.names():
            raise SelectionError(f"there is another strategy {key!r}", fix="give yours another name")
    STRATEGIES.add(name, replace(made, name=name), listed=False)  # a newer function of a name replaces an older one
    return name


# -- calls of a strategy's function, and checks of what it returns ---------------------------------------------------
def _place_of(function: Callable[..., Any] | None) -> str | None:
    """The file and line of a function that is not part of this package."""
    code = getattr(unwrap(function), "__code__", None) if function is not None else None
    if code is None or code.co_filename.startswith((OURS, "<")):
        return None
    return f"{code.co_filename}:{code.co_firstlineno}"


def _described(strategy: Strategy) -> str:
    place = _place_of(strategy.value or strategy.choose)
    return f"strategy {strategy.name}" + (f" ({place})" if place else "")


def _call(strategy: Strategy, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a strategy's function; what goes wrong in it is said with its line."""
    place = _place_of(function)
    try:
        return function(*arguments)
    except MissingFeatureError as wrong:
        if wrong.feature in strategy.needs:
            raise
        raise SelectionError(
            f"{_described(strategy)} uses the feature {wrong.feature!r} and does not declare it",
            fix=f'register it with needs=frozenset({{"{wrong.feature}"}})',
        ) from wrong
    except BursarError:
        raise
    except Exception as wrong:
        if place is None:
            raise
        file = place.rpartition(":")[0]
        lines = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == file]
        message = f"strategy {strategy.name} failed at {file}:{lines[-1]}: {type(wrong).__name__}: {wrong}"
        unset = "NoneType" in str(wrong) and "features that needs does not declare are None: use features.require(NAME)"
        raise SelectionError(message, fix=unset or "fix the strategy") from wrong


def _checked_scores(strategy: Strategy, scores: Any, pool: Candidates) -> FloatArray:
    """Scores of the shape that the strategy's mode needs, none of them NaN."""
    shape = (len(pool),) if strategy.mode == "joint" else (len(pool), len(pool.tasks))
    try:
        found = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.shape != shape:
        joint = strategy.mode == "joint"
        got = f"an array of shape {found.shape}" if found.shape else f"a {type(scores).__name__}"
        by_label = "return one score per item and task, or leave mode out to buy items for all tasks"
        raise SelectionError(
            f"{_described(strategy)} returned {got} in place of {'(items,)' if joint else '(items, tasks)'} = {shape}",
            fix="return one score per item" if joint else by_label,
        )
    if np.isnan(found).any():
        at = tuple(np.argwhere(np.isnan(found))[0].tolist())
        raise SelectionError(
            f"{_described(strategy)} returned a score that is not a number, for item {pool.ids[at[0]]!r}",
            fix="return numbers; the highest are bought first",
        )
    return found


def _checked_items(strategy: Strategy, items: Any, pool: Candidates) -> IntArray:
    """Positions in the pool."""
    found = np.asarray(items)
    if found.ndim == 1 and not len(found):
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        got = f"an array of {found.dtype} of shape {found.shape}" if found.ndim else f"a {type(items).__name__}"
        raise SelectionError(
            f"{_described(strategy)} returned {got} in place of positions of items, such as [3, 0]",
            fix="return whole numbers below the size of the pool, or a Selection",
        )
    if found.min() < 0 or found.max() >= len(pool):
        wrong = int(found.min() if found.min() < 0 else found.max())
        raise SelectionError(
            f"{_described(strategy)} chose item number {wrong} of a pool of {len(pool)}",
            fix="return positions from 0 to the size of the pool",
        )
    return found.astype(np.int64)
