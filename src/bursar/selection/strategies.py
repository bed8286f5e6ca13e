"""Strategies by name: each is a recipe of the parts in this room.

Adding one takes a few lines::

    @strategy("SHORTEST", "the cheapest items first")
    def shortest(pool, budget, rng):
        return greedy_by_confidence(pool.ranking(pool.prices.joint()), pool.prices.joint(), budget)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.selection.candidates import Candidates, Selection
from bursar.selection.combine import average, maximum, minimum
from bursar.selection.spend import greedy_by_confidence

Choose = Callable[[Candidates, int, np.random.Generator], "Selection | IntArray"]


@dataclass(frozen=True)
class Strategy:
    """A named way to spend a budget on a pool.

    >>> from bursar.tasks import Prices
    >>> prices = Prices(("intent", "slots"), np.array([5, 5, 5]), np.array([[3, 1], [3, 1], [3, 2]]))
    >>> pool = Candidates(["u1", "u2", "u3"], np.array([[0.9, 0.8], [0.2, 0.5], [0.4, 0.4]]), prices)
    >>> chosen = make_strategy("MT-AVG").select(pool, budget=20, seed=0)
    >>> chosen.items.tolist(), chosen.total
    ([1, 2], 19)
    """

    name: str
    summary: str
    choose: Choose
    needs_model: bool = True
    measure: str = "entropy"

    def select(self, pool: Candidates, budget: int, seed: int = 0) -> Selection:
        """Which items, for which tasks, within the budget (in whole units)."""
        if budget < 0:
            raise SelectionError(f"a budget cannot be negative: {budget}")
        if not len(pool):
            return Selection.joint(pool, np.zeros(0, dtype=np.int64))
        chosen = self.choose(pool, budget, np.random.default_rng(seed))
        selection = chosen if isinstance(chosen, Selection) else Selection.joint(pool, chosen)
        self._check(selection, pool, budget)
        return selection

    def _check(self, selection: Selection, pool: Candidates, budget: int) -> None:
        """Whoever wrote the strategy: nothing is bought twice, for no task, or beyond the budget."""
        wrong = None
        if len(np.unique(selection.items)) != len(selection):
            wrong = "chose an item twice"
        elif not selection.tasks.any(axis=1).all():
            wrong = "chose an item for no task"
        elif int(pool.prices.take(selection.items).of(selection.tasks).sum()) > budget:
            wrong = f"spent more than the budget of {budget}"
        if wrong is not None:
            raise SelectionError(f"strategy {self.name} {wrong}", fix="mend the strategy")


STRATEGIES: Registry[Strategy] = Registry("strategy", "bursar.strategies")


def strategy(name: str, summary: str, **traits: bool | str) -> Callable[[Choose], Choose]:
    """Register a function of (pool, budget, random generator) as a strategy.

    It returns the positions of items to annotate for all tasks, or a whole ``Selection``.
    """

    def register(choose: Choose) -> Choose:
        STRATEGIES.add(name, Strategy(name, summary, choose, **traits))  # type: ignore[arg-type]
        return choose

    return register


def make_strategy(name: str) -> Strategy:
    """The strategy of this name, in any case; an unknown one is answered with the nearest."""
    return STRATEGIES[name if name in STRATEGIES else name.upper()]


@strategy("RANDOM", "items at random (paper 1's MT-R)", needs_model=False)
def random(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """MT-R: random numbers are drawn in the order of ids, so the order of the pool means nothing."""
    draw = rng.random(len(pool))[pool.id_ranks]
    return greedy_by_confidence(pool.ranking(draw), pool.prices.joint(), budget)


def _least_confident(combine: Callable[[FloatArray], FloatArray]) -> Choose:
    def choose(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
        return greedy_by_confidence(pool.ranking(combine(pool.confidence)), pool.prices.joint(), budget)

    return choose


strategy("MT-AVG", "lowest average confidence over the tasks")(_least_confident(average))
strategy("MT-MAX", "lowest maximum confidence: unsure of every task")(_least_confident(maximum))
strategy("MT-MIN", "lowest minimum confidence: unsure of some task")(_least_confident(minimum))
