"""The runs of a study of best orders, sorted out, and the numbers that its tables and answers are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bursar.oracle.problem import Order, quality
from bursar.ragged import FloatArray
from experiments.studies.findings import Cell
from experiments.studies.optimal_orders import SeedMismatch, Transfer, quality_with_warm_start
from experiments.studies.statistics import PairedTest, paired_test, spread
from experiments.studies.study import Run

PAPER = {  # Table 2: optimal, best heuristic, random; the mean over K + 1 points (errata 24)
    "images": (0.761, 0.682, 0.698),
    "intents": (0.887, 0.858, 0.816),
    "entities": (0.839, 0.811, 0.800),
}
MAIN = {"images": "cnn", "intents": "lstm", "entities": "tagger"}  # the architectures that the table is of
WORDS = {
    "probe": "probe",
    "aoe": "AOE",
    "cnn": "CNN",
    "lstm": "BiLSTM",
    "tagger": "BiLSTM-LSTM tagger",
    "encoder": "fine-tuned encoder",
}
MATCHED = "+IDMR"

Curve = Sequence[float]  # the warm start's score, then those after 1 to K batches


@dataclass
class Seen:
    """The runs of one data set, by what they are."""

    problem: str
    tried: list[Run] = field(default_factory=list)  # all searches
    searches: dict[tuple[str, int], dict[str, Any]] = field(
        default_factory=dict
    )  # learner and seed; the one that counts
    orders: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)  # learner and seed
    references: dict[int, dict[str, Any]] = field(default_factory=dict)  # seed
    transfers: dict[str, dict[str, Any]] = field(default_factory=dict)  # target
    mismatches: dict[int, dict[str, Any]] = field(default_factory=dict)  # seed of the order
    maps: list[dict[str, Any]] = field(default_factory=list)
    plans: dict[str, tuple[int, int]] = field(default_factory=dict)  # learner to the steps of its longest search

    @property
    def learners(self) -> list[str]:
        """Those with something to compare, the probe first."""
        return list(dict.fromkeys(learner for learner, _ in self.orders))

    def seeds(self, learner: str, searched: bool = True) -> list[int]:
        """Seeds for which there are orders of heuristics, and of a search."""
        found = {seed for of, seed in self.orders if of == learner}
        return sorted(found & {seed for of, seed in self.searches if of == learner} if searched else found)

    def best_heuristic(self, learner: str, matched: bool = False) -> str:
        """The heuristic that is best on validation items over all seeds."""
        some = [found["orders"] for (of, _), found in self.orders.items() if of == learner]
        names: list[str] = [name for name in some[0] if name.endswith(MATCHED) == matched]
        return max(names, key=lambda name: float(np.mean([text(found[name]["validation"]) for found in some])))


def text(curve: Curve) -> float:
    """Quality as paper 4's text has it: without the warm start."""
    return float(quality(np.array(curve[1:])))


def table(curve: Curve) -> float:
    """Quality as its table has it."""
    return quality_with_warm_start(curve[0], np.array(curve[1:]))


def sorted_out(runs: Sequence[Run]) -> Seen:
    """Runs by what they are. Of the longest searches of a seed the one counts that is best on validation items."""
    seen = Seen(runs[0]["unit"]["problem"])
    for run in runs:
        unit, result = run["unit"], run["result"]
        learner, seed = unit["learner"], unit["seed"]
        if unit["kind"] == "search":
            seen.tried.append(run)
            if unit["draw"] == seed:  # others are of the question of seeds, on one draw of the data
                seen.plans[learner] = max(seen.plans.get(learner, (0, 0)), length_of(unit))
        elif unit["kind"] == "orders":
            seen.orders[learner, seed] = result
        elif unit["kind"] == "reference":
            seen.references[seed] = result
        elif unit["kind"] == "transfer":
            seen.transfers[learner] = result
        elif unit["kind"] == "mismatch":
            seen.mismatches[seed] = result
        else:
            seen.maps.append(result)
    longest = [
        run
        for run in seen.tried
        if run["unit"]["draw"] == run["unit"]["seed"] and length_of(run["unit"]) == seen.plans[run["unit"]["learner"]]
    ]
    for run in sorted(longest, key=lambda run: text(run["result"]["best"]["validation"])):
        seen.searches[run["unit"]["learner"], run["unit"]["seed"]] = run["result"]
    return seen


def length_of(unit: Mapping[str, Any]) -> tuple[int, int]:
    """Steps of a search: annealing and greedy."""
    return unit["steps"], unit["greedy_steps"]


# -- numbers ---------------------------------------------------------------------------------------------------------
def qualities(seen: Seen, learner: str, how: Any = text) -> dict[str, list[float]]:
    """On test, seed by seed: the best order, the best heuristic, the same with matching, and random."""
    chosen = seen.best_heuristic(learner)
    found: dict[str, list[float]] = {"best": [], "heuristic": [], "matched": [], "random": []}
    for seed in seen.seeds(learner):
        orders = seen.orders[learner, seed]
        found["best"].append(how(seen.searches[learner, seed]["best"]["test"]))
        found["heuristic"].append(how(orders["orders"][chosen]["test"]))
        found["matched"].append(how(orders["orders"][f"{chosen}{MATCHED}"]["test"]))
        found["random"].append(float(np.mean([how(order["test"]) for order in orders["random"]])))
    return found


@dataclass(frozen=True)
class Matched:
    """A heuristic and the same with matching, seed by seed, and a paired test of what matching gains."""

    base: list[float]
    other: list[float]
    test: PairedTest

    def percent(self, which: str = "difference") -> float | None:
        """The gain, or an end of its interval, in percent of the heuristic's mean."""
        value, base = self.test[which], float(np.mean(self.base))  # type: ignore[literal-required]
        return None if value is None or not base else 100 * float(value) / base


def matched(seen: Seen, learner: str) -> dict[str, Matched]:
    """Every heuristic and its matched version on test."""
    seeds = seen.seeds(learner, searched=False)
    names = [name for name in seen.orders[learner, seeds[0]]["orders"] if not name.endswith(MATCHED)]

    def by_seed(name: str) -> list[float]:
        return [text(seen.orders[learner, seed]["orders"][name]["test"]) for seed in seeds]

    pairs = {name: (by_seed(name), by_seed(name + MATCHED)) for name in names}
    return {name: Matched(base, other, paired_test(other, base)) for name, (base, other) in pairs.items()}


def transferred(seen: Seen) -> tuple[Transfer, Transfer]:
    """Best orders and heuristics' by source and target; where a source is missing, not a number."""
    targets = tuple(seen.transfers)
    sources = tuple(dict.fromkeys(source for found in seen.transfers.values() for source in found["orders"]))
    random = np.full((max(len(found["random"]) for found in seen.transfers.values()), len(targets)), np.nan)
    for column, target in enumerate(targets):
        curves = seen.transfers[target]["random"]
        random[: len(curves), column] = [text(curve) for curve in curves]

    def matrix(best: bool) -> FloatArray:
        found = np.full((len(sources), len(targets)), np.nan)
        for row, source in enumerate(sources):
            for column, target in enumerate(targets):
                for name, curve in seen.transfers[target]["orders"].get(source, {}).items():
                    if (name == "best") == best:
                        found[row, column] = text(curve)
        return found

    return tuple(Transfer(sources, targets, matrix(best), random) for best in (True, False))  # type: ignore[return-value]


def mismatch(seen: Seen) -> SeedMismatch | None:
    """How good the order found for one seed is for the training of another."""
    seeds = tuple(sorted(seen.mismatches))
    if len(seeds) < 2:
        return None
    rows = [[text(seen.mismatches[of]["trained"][str(by)]) for of in seeds] for by in seeds]
    return SeedMismatch(seeds, np.array(rows))


def distances(seen: Seen, learner: str, of: str) -> dict[str, FloatArray]:
    """How far orders are from the test items' distribution, seed by seed; of random orders, their mean."""
    seeds = seen.seeds(learner)
    if not seeds:
        return {}
    found = {"best order": np.array([seen.searches[learner, seed]["best"]["distance"][of] for seed in seeds])}
    for name in seen.orders[learner, seeds[0]]["orders"]:
        found[name] = np.array([seen.orders[learner, seed]["orders"][name]["distance"][of] for seed in seeds])
    randoms = [[order["distance"][of] for order in seen.orders[learner, seed]["random"]] for seed in seeds]
    return {**found, "random": np.array([np.mean(some) for some in randoms])}


def steps_of(seen: Seen, learner: str) -> int:
    """Of the longest search with a learner, greedy ones too."""
    return sum(seen.plans.get(learner, (0, 0)))


def seconds_of(found: Mapping[str, Any]) -> float:
    """What a search took, in all its pieces."""
    return float(found["steps"].get("seconds", found["seconds"]))


def best_order(seen: Seen, learner: str) -> Order:
    """The order that a search with seed 0 found."""
    return Order(np.array(seen.searches[learner, 0]["best"]["order"]))


def heuristic_order(seen: Seen, learner: str) -> Order:
    """The order that the best heuristic buys with seed 0."""
    return Order(np.array(seen.orders[learner, 0]["orders"][seen.best_heuristic(learner)]["order"]))


def cell(values: Sequence[float] | FloatArray, paper: float | None = None) -> Cell:
    """The mean over seeds, with its spread."""
    found = spread([float(value) for value in values])
    return Cell(found["mean"], found["spread"], paper)
