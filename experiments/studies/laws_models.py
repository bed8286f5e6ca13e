"""The models of the study of laws, one by one, and single-task models of the same sentences beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.studies.findings import Line
from experiments.studies.statistics import PairedTest, paired_test
from experiments.studies.study import Run

USUAL = "shared"  # the architecture of all tables and figures that name none
FIGURE_N = 2000  # tokens a task in Figure 3c
HIGH, LOW = 0.8, 0.3  # adjusted mutual information from which on tasks are closely related, and up to which hardly


@dataclass(frozen=True)
class Model:
    """One trained model."""

    kind: str  # balanced, unbalanced or single
    architecture: str
    tasks: int
    n: int
    n_other: int
    alpha: float | None
    ami: float | None
    seed: int
    score: float  # F1, 0 to 1


def models_of(runs: Iterable[Run]) -> Iterator[Model]:
    """All models of some units; fits have none."""
    for run in runs:
        unit = run["unit"]
        for model in run["result"].get("models", ()):
            yield Model(unit["kind"], unit["architecture"], unit["tasks"], seed=unit["seed"], **model)


def observed(models: Iterable[Model]) -> list[dict[str, Any]]:
    """Rows for a table of observations."""
    return [{name: value for name, value in vars(model).items() if name != "kind"} for model in models]


class Seen:
    """All that was trained, and the laws that were found in it."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.models = list(models_of(runs))
        self.fits: Mapping[str, Any] = {
            run["unit"]["table"]: run["result"] for run in runs if run["unit"]["kind"] == "fit"
        }

    @cached_property
    def single(self) -> Mapping[tuple[str, int, int], float]:
        """The score of a single-task model by architecture, tokens and seed."""
        return {(m.architecture, m.n, m.seed): m.score for m in self.models if m.kind == "single"}

    def joint(self, wanted: Callable[[Model], bool], kind: str = "balanced", architecture: str = USUAL) -> list[Model]:
        """Some multi-task models of a kind."""
        return [m for m in self.models if (m.kind, m.architecture) == (kind, architecture) and wanted(m)]

    def gain(self, models: Sequence[Model]) -> PairedTest | None:
        """By how much they are above single-task models of the same sentences; seeds are what varies independently."""
        known = [m for m in models if (m.architecture, m.n, m.seed) in self.single]
        if not known:
            return None
        alone = [self.single[m.architecture, m.n, m.seed] for m in known]
        return paired_test([m.score for m in known], alone, cluster=[m.seed for m in known])


def line(name: str, points: Iterable[tuple[float, float]], panel: str = "") -> Line:
    """Means of the scores at every x, and a standard deviation to either side."""
    by: dict[float, list[float]] = defaultdict(list)
    for x, score in points:
        by[x].append(score)
    xs = sorted(by)
    means = [float(np.mean(by[x])) for x in xs]
    spreads = [float(np.std(by[x], ddof=1)) if len(by[x]) > 1 else 0.0 for x in xs]
    low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
    high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
    return Line(name, xs, means, low, high, panel)


def mean_ami(models: Sequence[Model]) -> float:
    """Of all of them."""
    return float(np.mean([m.ami for m in models if m.ami is not None]))
