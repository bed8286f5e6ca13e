"""Which task policy is best on the multi-task bandit? Paper 3, section 4.1 and Figure 1, and what it leaves open.

Every policy plays the same environments, ten times each. The entropy weight λ that a learned policy needs is chosen on
other environments, which are played as well and not reported. The paper's own recipe, λ = 0.2 and a second improvement
from the second log alone, is played beside ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bursar.compute import ProgressCallback
from bursar.curriculum import Course, Steering, StepLog, make_policy
from bursar.curriculum.dynamic import DynamicSteering, best_weights, features_seen
from bursar.curriculum.fixed import Constant
from bursar.curriculum.improve import CmaEs, improve
from bursar.curriculum.rewards import LONGER, RECENT
from bursar.ragged import FloatArray
from experiments.studies.arms import Place
from experiments.studies.bandit_environment import Bandits, Play, play
from experiments.studies.bandit_findings import analyse
from experiments.studies.exact_policies import best_policy
from experiments.studies.study import STUDIES, Study

STEPS = 2000
REPORTED = {"environments": 20, "runs": 10, "seed": 0}
CHOOSING = {"environments": 10, "runs": 5, "seed": 1000}  # other environments, to choose λ on
ENTROPIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
FEWER_ENTROPIES = (0.3, 0.5, 0.7)
DYNAMIC_ENTROPIES = (0.1, 0.3, 1.0)  # in units of the rewards' standard deviation
AGAIN_ENTROPIES = (0.1, 0.2, 0.3, 0.5, 0.7)
FIXED = {"fixed": ENTROPIES, "fixed, second log alone": AGAIN_ENTROPIES, "fixed, both logs": AGAIN_ENTROPIES}
DYNAMIC = ("dynamic", "dynamic, learned elsewhere")
HEURISTICS = {"random": "uniform", "round robin": "round-robin", "Exp3.S": "exp3s"}
REWARDS = ("trend", "before-after", "prediction-gain", "likelihood-gain")
ESTIMATORS = ("importance", "clipped", "doubly-robust")
OTHER_LENGTHS = (500, 5000)

Begin = Callable[[Course], Steering]


def grid(scale: str) -> list[dict[str, Any]]:
    """Every recipe where it is reported and where λ is chosen; then with other rewards, estimators and lengths."""
    few_reported, few_choosing = {**REPORTED, "runs": 3}, {**CHOOSING, "runs": 2}
    none: list[float | None] = [None]

    def unit(recipe: str, entropies: Sequence[float | None], where: dict[str, int], **other: Any) -> dict[str, Any]:
        usual = {"steps": STEPS, "reward": "improving", "estimator": "self-normalised"}
        return {"recipe": recipe, "entropies": list(entropies), "where": where, **usual, **other}

    units: list[dict[str, Any]] = []  # the longest first, so that no worker is left with one at the end
    for where in (REPORTED, CHOOSING):
        units += [unit(recipe, entropies, where) for recipe, entropies in FIXED.items()]
        units.append(unit("fixed", AGAIN_ENTROPIES, where, reward="pace"))
        units += [unit(recipe, DYNAMIC_ENTROPIES, where, reward="pace") for recipe in DYNAMIC]
        units.append(unit("dynamic", [0.3], where))
    units.append(unit("paper's recipe", [0.2], REPORTED))
    units += [unit(recipe, none, REPORTED) for recipe in ("oracle", *HEURISTICS)]
    units += [unit(recipe, none, CHOOSING) for recipe in ("oracle", "random")]
    for where in (few_reported, few_choosing):
        units += [unit("fixed", FEWER_ENTROPIES, where, reward=reward) for reward in REWARDS]
        units += [unit("fixed", FEWER_ENTROPIES, where, estimator=estimator) for estimator in ESTIMATORS]
    for steps in OTHER_LENGTHS:
        units += [unit(recipe, none, few_reported, steps=steps) for recipe in ("oracle", "random")]
        units.append(unit("fixed", [0.5], few_reported, steps=steps))
        units.append(unit("dynamic", [0.3], few_reported, steps=steps, reward="pace"))
    return units


def play_recipe(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One recipe on its environments, with each of its entropy weights."""
    begun, where = time.monotonic(), unit["where"]
    bandits = Bandits.sample(where["environments"], steps=unit["steps"], seed=where["seed"])
    recipe = Recipe(bandits, where["runs"], unit["reward"], unit["estimator"])
    found = []
    for number, (entropy, begin) in enumerate(recipe.players(unit["recipe"], unit["entropies"])):
        played = play(bandits, begin, runs=where["runs"], seed=where["seed"] + 4)
        found.append(
            {
                "entropy": entropy,
                "final": played.final.reshape(where["environments"], where["runs"]).round(5).tolist(),
                "steps": played.marks.tolist(),
                "first": _band(played.scores[:, : where["runs"]]),  # the first environment, for Figure 1
                "all": _band(played.scores),
            }
        )
        tell((unit["recipe"], (number + 1) / len(unit["entropies"])))
    return {"played": found, "seconds": round(time.monotonic() - begun, 2)}


def _band(scores: FloatArray) -> dict[str, list[float]]:
    """The median over runs, and the lowest and the highest."""
    ends = {"median": np.median(scores, axis=1), "low": scores.min(axis=1), "high": scores.max(axis=1)}
    return {name: values.round(4).tolist() for name, values in ends.items()}


@dataclass(frozen=True)
class Recipe:
    """How the policies that play some environments are made; a learned one is learned for each run from its own log."""

    bandits: Bandits
    runs: int
    reward: str
    estimator: str

    def players(self, name: str, entropies: Sequence[float | None]) -> Iterator[tuple[float | None, Begin]]:
        """For each entropy weight, what begins a course."""
        if name in HEURISTICS:
            yield None, make_policy(HEURISTICS[name]).begin
        elif name == "oracle":
            yield None, by_run(np.repeat(self.bandits.wanted, self.runs, axis=0))
        elif name == "dynamic":
            yield from self.dynamic(self.random(), entropies)
        elif name == "dynamic, learned elsewhere":
            others = Recipe(Bandits.sample(10, steps=self.bandits.steps, seed=2000), 1, self.reward, self.estimator)
            yield from self.dynamic(others.random(), entropies, together=True)
        else:
            first = self.random().logs(rewards=[self.reward])
            for entropy in entropies:
                yield entropy, self.fixed(name, first, float(entropy or 0))

    def random(self) -> Play:
        return play(self.bandits, make_policy("uniform").begin, runs=self.runs, seed=1)

    def fixed(self, name: str, first: Sequence[StepLog], entropy: float) -> Begin:
        """Shares for each run from the log of its random run, and perhaps from the log that those shares made."""
        solver = "cma-es" if name == "paper's recipe" or self.estimator == "clipped" else "exact"
        shares = self.improved([[log] for log in first], entropy, solver)
        if name != "fixed":
            played = play(self.bandits, by_run(shares), runs=self.runs, seed=2)
            second = played.logs(rewards=[self.reward])
            both = name == "fixed, both logs"
            known = [[old, new] if both else [new] for old, new in zip(first, second, strict=True)]
            shares = self.improved(known, entropy, solver)
        return by_run(shares)

    def improved(self, logs: Sequence[Sequence[StepLog]], entropy: float, solver: str) -> FloatArray:
        """The learned shares of every run: (runs, arms). By the paper's 20 rounds of 64 candidates, or exactly."""
        found: list[dict[str, float]] = []
        for run, known in enumerate(logs):
            if solver == "exact":
                best, _ = best_policy(known, entropy, self.estimator, self.reward)
                found.append(dict(zip(known[0].tasks, best.tolist(), strict=True)))
            else:
                search = CmaEs(iterations=20, seed=run)
                learned = improve(known, entropy=entropy, search=search, reward=self.reward, estimator=self.estimator)
                found.append(learned.policy.describe()["weights"])
        return np.array([[shares[arm] for arm in self.bandits.arms] for shares in found])

    def dynamic(
        self, played: Play, entropies: Sequence[float | None], together: bool = False
    ) -> Iterator[tuple[float | None, Begin]]:
        """Weights of features learned from every run's own log, or from all of them together."""
        features = features_seen(played.course, played.taken, played.before, RECENT, LONGER)
        rewards = played.rewards(self.reward)
        parts = [slice(None)] if together else [slice(run, run + 1) for run in range(played.course.runs)]
        uniform = np.full(played.taken.shape, 1 / len(self.bandits.arms))
        for entropy in entropies:
            weights = np.array(
                [
                    best_weights(
                        features[:, part].reshape(-1, *features.shape[2:]),
                        played.taken[:, part].ravel(),
                        uniform[:, part].ravel(),
                        rewards[:, part].ravel(),
                        float(entropy or 0),
                    )
                    for part in parts
                ]
            )
            yield entropy, partial(DynamicSteering, weights=weights, recent=RECENT, longer=LONGER)


def by_run(shares: FloatArray) -> Begin:
    """Fixed shares, others for every run."""
    return lambda course: Constant(shares, course.runs)


STUDIES.add(
    "bandit",
    Study(
        "bandit",
        "Which task policy is best on the multi-task bandit?",
        "paper 3, section 4.1",
        grid,
        play_recipe,
        analyse,
        scales=("small",),
    ),
)
