"""How far strategies came on the way from random labelling to the best order found (paper 4, section 6.1).

The search looks at validation items alone. What is said of an order is said of test items, validation beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.chain import Plan, State, Told
from bursar.oracle.judge import Judge
from bursar.oracle.judge_registry import PROBE
from bursar.oracle.orders import Order, quality
from bursar.oracle.search import search
from bursar.ragged import FloatArray

RANDOM_ORDERS = 20
BEYOND_LUCK = 2.0  # standard deviations of random orders: one in thirty of them is as far above their mean
REPORTED = ("test", "validation")
COLDEST = 2_500.0  # γ times the steps, whatever their number: the paper's, for networks
COLDEST_PROBE = 50_000.0  # a move changes its scores by some ten-thousandths: at the paper's, the last step would still
# take most of what is worse
STEPS = 5_000


def plan_of(
    steps: int | None = None, greedy_steps: int | None = None, cooling: float | None = None, judge: str = PROBE
) -> Plan:
    """A search of so many steps with a judge; where nothing is said, a fifth more are greedy, and all end as cold.

    >>> plan_of().steps, plan_of().greedy_steps, plan_of().cooling
    (5000, 1000, 10.0)
    >>> plan_of(25_000).cooling, plan_of(25_000, judge="lstm").cooling
    (2.0, 0.1)
    """
    steps = STEPS if steps is None else steps
    coldest = COLDEST_PROBE if judge == PROBE else COLDEST
    return Plan(
        steps,
        steps // 5 if greedy_steps is None else greedy_steps,
        coldest / max(steps, 1) if cooling is None else cooling,
    )


@dataclass(frozen=True, eq=False)
class Measured:
    """Scores of an order after 1 to K batches, on the items of each part."""

    curves: Mapping[str, FloatArray]  # part to (batches,)

    def quality(self, part: str = "test") -> float:
        return float(quality(self.curves[part]))


@dataclass(frozen=True, eq=False)
class Gap:
    """What random orders, each strategy's and the best order found are worth, to the same judge.

    >>> curves = [Measured({"test": np.array(curve)}) for curve in ([0.5, 0.5], [0.6, 0.6], [0.75, 0.75])]
    >>> low, high, best = curves
    >>> gap = Gap(Plan(), 0, {"test": 0.4}, (low, high), {"MT-AVG": high}, best, Order.of(np.array([[0], [1]])))
    >>> round(gap.share("MT-AVG"), 3), round(gap.random("test")[0], 3)
    (0.25, 0.55)
    """

    plan: Plan
    seed: int
    start: Mapping[str, float]  # part to the score with the warm start alone
    randoms: tuple[Measured, ...]
    arms: Mapping[str, Measured]
    best: Measured
    order: Order  # the best one found

    @property
    def batches(self) -> int:
        return len(self.order.batches)

    @property
    def size(self) -> int:
        """Items a batch."""
        return int(self.order.batches.shape[1])

    def random(self, part: str = "test") -> tuple[float, float]:
        """The mean quality of random orders, and its standard deviation."""
        found = np.array([order.quality(part) for order in self.randoms])
        return float(found.mean()), float(found.std(ddof=1))

    def way(self, part: str = "test") -> float | None:
        """How much better than random the best order found is; ``None`` where a random one might be as good by luck.

        A share of such a way would be a share of chance.
        """
        mean, spread = self.random(part)
        way = self.best.quality(part) - mean
        return way if way > BEYOND_LUCK * spread else None

    def share(self, arm: str, part: str = "test") -> float | None:
        """How much of the way from random to the best order found a strategy's order came; ``None`` if there is none.

        Below 0 it is worse than random orders are on average, above 1 better than the best order found.
        """
        way = self.way(part)
        return None if way is None else (self.arms[arm].quality(part) - self.random(part)[0]) / way

    def as_json(self) -> dict[str, Any]:
        """As plain values; shares and qualities are among them, for whoever only reads."""
        return {
            "plan": {"steps": self.plan.steps, "greedy_steps": self.plan.greedy_steps, "cooling": self.plan.cooling},
            "seed": self.seed,
            "batches": self.batches,
            "size": self.size,
            "start": dict(self.start),
            "random": {part: dict(zip(("mean", "spread"), self.random(part), strict=True)) for part in self.start},
            "random_curves": [_listed(order) for order in self.randoms],
            "arms": {name: self._arm_json(name) for name in self.arms},
            "best": {"curves": _listed(self.best), "quality": {part: self.best.quality(part) for part in self.start}},
            "order": self.order.batches.tolist(),
        }

    def _arm_json(self, arm: str) -> dict[str, Any]:
        return {
            "curves": _listed(self.arms[arm]),
            "quality": {part: self.arms[arm].quality(part) for part in self.start},
            "share": {part: self.share(arm, part) for part in self.start},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Gap:
        """Back from plain values."""
        return cls(
            Plan(**found["plan"]),
            int(found["seed"]),
            {part: float(score) for part, score in found["start"].items()},
            tuple(_measured(curves) for curves in found["random_curves"]),
            {name: _measured(arm["curves"]) for name, arm in found["arms"].items()},
            _measured(found["best"]["curves"]),
            Order(np.array(found["order"], dtype=np.int64)),
        )


def measure(
    judge: Judge,
    orders: Mapping[str, Order],
    plan: Plan,
    *,
    seed: int = 0,
    state: State | None = None,
    told: Told | None = None,
) -> Gap:
    """Look for the best order, from the beginning or from where a search was, and lay the others beside it.

    All orders must have as many batches of the same size. The same judge, orders, plan and seed give the same gap, in
    one go or in several.
    """
    shapes = {order.batches.shape for order in orders.values()}
    if len(shapes) != 1:
        raise ConfigError(
            "there is no order to compare" if not shapes else "the orders have batches of different numbers or sizes",
            fix="give one or more orders with as many batches of the same size",
        )
    batches, size = shapes.pop()
    found = search(judge, batches, size, plan, seed=seed, state=state, told=told)
    randoms = random_orders(judge.pool, batches, size, seed)
    every = [*randoms, *orders.values(), found.best]
    start = dict(zip(REPORTED, judge.scores_on([np.zeros(0, dtype=np.int64)], REPORTED)[:, 0].tolist(), strict=True))
    *measured, best = _measure(judge, every)
    return Gap(
        plan,
        seed,
        start,
        tuple(measured[: len(randoms)]),
        dict(zip(orders, measured[len(randoms) :], strict=True)),
        best,
        found.best,
    )


def random_orders(pool: int, batches: int, size: int, seed: int, many: int = RANDOM_ORDERS) -> list[Order]:
    """So many different random orders, which the seed decides on.

    >>> len({tuple(order.items.tolist()) for order in random_orders(pool=50, batches=3, size=4, seed=0)})
    20
    """
    seeds = np.random.SeedSequence([seed, 83]).generate_state(many).tolist()
    return [Order.random(pool, batches, size, one) for one in seeds]


def _measure(judge: Judge, orders: Sequence[Order]) -> list[Measured]:
    """The curves of all orders on all parts."""
    batches = len(orders[0].batches)
    sets = [judge.asked(order, k) for order in orders for k in range(1, batches + 1)]
    scores = judge.scores_on(sets, REPORTED).reshape(len(REPORTED), len(orders), batches)
    return [Measured(dict(zip(REPORTED, scores[:, at], strict=True))) for at in range(len(orders))]


def _listed(order: Measured) -> dict[str, list[float]]:
    return {part: curve.tolist() for part, curve in order.curves.items()}


def _measured(curves: Mapping[str, Sequence[float]]) -> Measured:
    return Measured({part: np.array(curve, dtype=float) for part, curve in curves.items()})
