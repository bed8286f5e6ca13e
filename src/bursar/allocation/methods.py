"""Methods of splitting a budget, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bursar.allocation.items import together
from bursar.allocation.robust import least_regret
from bursar.allocation.split import Split, SplitProblem, exact, greedy


def robust(problem: SplitProblem) -> Split:
    """The split with the least regret if one estimate is off."""
    return least_regret(problem).split


METHODS: Mapping[str, Callable[[SplitProblem], Split]] = {
    "exact": exact,
    "greedy": greedy,
    "together": together,
    "robust": robust,
}
