"""Compares orders with random ones and with the best order found (paper 4, section 6.1).

The search uses validation items. Results are reported on test items, with validation items for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.errors import ConfigError
from bursar.oracle.judge import PROBE, Judge
from bursar.oracle.problem import Order, quality
from bursar.oracle.search import SearchOptions, SearchPlan, search
from bursar.ragged import FloatArray
from bursar.random_streams import rng

RANDOM_ORDERS = 20
BEYOND_LUCK = 2.0  # standard deviations of random orders; one in thirty is as far above the mean
REPORTED = ("test", "validation")
COLDEST = 2_500.0  # γ times the steps, for networks as in the paper
COLDEST_PROBE = 50_000.0  # a move changes the probe's scores by ten-thousandths: at the paper's temperature, even the
# last steps would accept most losses
STEPS = 5_000


def plan_of(
    steps: int | None = None, greedy_steps: int | None = None, cooling: float | None = None, judge: str = PROBE
) -> SearchPlan:
    """A plan with defaults: a fifth as many greedy steps, and a cooling that ends at the same temperature."""
    steps = STEPS if steps is None else steps
    coldest = COLDEST_PROBE if judge == PROBE else COLDEST
    return SearchPlan(
        steps,
        steps // 5 if greedy_steps is None else greedy_steps,
        coldest / max(steps, 1) if cooling is None else cooling,
    )


@dataclass(frozen=True, eq=False)
class OrderScores:
    """Scores of an order after 1 to K batches, by part."""

    curves: Mapping[str, FloatArray]  # part to (batches,)

    def quality(self, part: str = "test") -> float:
        return float(quality(self.curves[part]))

    @classmethod
    def from_json(cls, curves: Mapping[str, Sequence[float]]) -> OrderScores:
        return cls({part: np.array(curve, dtype=float) for part, curve in curves.items()})

    def as_json(self) -> dict[str, Any]:
        return {
            "curves": {part: curve.tolist() for part, curve in self.curves.items()},
            "quality": {part: self.quality(part) for part in self.curves},
        }


@dataclass(frozen=True, eq=False)
class OrderComparison:
    """The scores of random orders, of each strategy's order and of the best order found, by the same judge."""

    plan: SearchPlan
    seed: int
    start: Mapping[str, float]  # part to the score with the warm start alone
    randoms: tuple[OrderScores, ...]
    arms: Mapping[str, OrderScores]
    best: OrderScores
    order: Order  # the best one found

    @property
    def batches(self) -> int:
        return len(self.order.batches)

    @property
    def size(self) -> int:
        """Items per batch."""
        return int(self.order.batches.shape[1])

    def random(self, part: str = "test") -> tuple[float, float]:
        """The mean and the standard deviation of the quality of random orders."""
        found = np.array([order.quality(part) for order in self.randoms])
        return float(found.mean()), float(found.std(ddof=1))

    def way(self, part: str = "test") -> float | None:
        """How much better than random the best order is; ``None`` if a random order might be as good by chance."""
        mean, spread = self.random(part)
        way = self.best.quality(part) - mean
        return way if way > BEYOND_LUCK * spread else None

    def share(self, arm: str, part: str = "test") -> float | None:
        """How far a strategy came from random (0, below if worse) to the best order (1); ``None`` if ``way`` is."""
        way = self.way(part)
        return None if way is None else (self.arms[arm].quality(part) - self.random(part)[0]) / way

    def as_json(self) -> dict[str, Any]:
        """Convert to JSON values, including shares and qualities for readers."""
        return {
            "plan": {"steps": self.plan.steps, "greedy_steps": self.plan.greedy_steps, "cooling": self.plan.cooling},
            "seed": self.seed,
            "batches": self.batches,
            "size": self.size,
            "start": dict(self.start),
            "random": {part: dict(zip(("mean", "spread"), self.random(part), strict=True)) for part in self.start},
            "random_curves": [order.as_json()["curves"] for order in self.randoms],
            "arms": {
                name: arm.as_json() | {"share": {part: self.share(name, part) for part in self.start}}
                for name, arm in self.arms.items()
            },
            "best": self.best.as_json(),
            "order": self.order.batches.tolist(),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> OrderComparison:
        return cls(
            SearchPlan(**found["plan"]),
            int(found["seed"]),
            {part: float(score) for part, score in found["start"].items()},
            tuple(OrderScores.from_json(curves) for curves in found["random_curves"]),
            {name: OrderScores.from_json(arm["curves"]) for name, arm in found["arms"].items()},
            OrderScores.from_json(found["best"]["curves"]),
            Order(np.array(found["order"], dtype=np.int64)),
        )


def compare_orders(
    judge: Judge,
    orders: Mapping[str, Order],
    plan: SearchPlan,
    *,
    seed: int = 0,
    options: SearchOptions | None = None,
) -> OrderComparison:
    """Search for the best order and compare it with these, which must have one shape, and with random ones.

    The result depends only on the judge, the orders, the plan and the seed, even if the search is interrupted.
    """
    shapes = {order.batches.shape for order in orders.values()}
    if len(shapes) != 1:
        raise ConfigError(
            "there is no order to compare" if not shapes else "the orders have batches of different numbers or sizes",
            fix="pass one or more orders of the same shape",
        )
    batches, size = shapes.pop()
    found = search(judge, (batches, size), plan, seed=seed, options=options)
    randoms = random_orders(judge.pool, batches, size, seed)
    start = judge.scores_on([np.zeros(0, dtype=np.int64)], REPORTED)[:, 0].tolist()
    *scored, best = _scored(judge, [*randoms, *orders.values(), found.best])
    return OrderComparison(
        plan,
        seed,
        dict(zip(REPORTED, start, strict=True)),
        tuple(scored[: len(randoms)]),
        dict(zip(orders, scored[len(randoms) :], strict=True)),
        best,
        found.best,
    )


def random_orders(pool: int, batches: int, size: int, seed: int, count: int = RANDOM_ORDERS) -> list[Order]:
    """Different random orders."""
    seeds = rng(seed, "random orders").bit_generator.seed_seq.generate_state(count).tolist()
    return [Order.random(pool, batches, size, one) for one in seeds]


def _scored(judge: Judge, orders: Sequence[Order]) -> list[OrderScores]:
    sets = [some for order in orders for some in order.prefixes()]
    scores = judge.scores_on(sets, REPORTED).reshape(len(REPORTED), len(orders), -1)
    return [OrderScores(dict(zip(REPORTED, scores[:, at], strict=True))) for at in range(len(orders))]
