"""What does multi-task learning buy, as a formula? Paper 2, on CoNLL-2003 and tasks that are simulated from it.

Five kinds of units. *Balanced* models have as many labelled tokens for every task, *unbalanced* ones more for the
synthetic tasks than for the real one, and *single* ones have the real task alone. A unit has all its models trained in
lockstep: all combinations of its numbers of tokens and its values of α, for one number of tasks, architecture and seed.
A *fit* looks for laws in what all of them found.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.compute import ProgressCallback, ResultStore, address
from bursar.errors import ConfigError
from experiments.studies.arms import Place, corpus_of
from experiments.studies.laws_findings import analyse
from experiments.studies.laws_models import FIGURE_N, USUAL, models_of, observed
from experiments.studies.laws_trainings import Material, Setting, trained
from experiments.studies.study import STUDIES, Study

if TYPE_CHECKING:
    from bursar.laws.forms import PowerLaw

DATA, TASK = "conll2003", "entities"
WAIT = 4 * 3600.0  # seconds, for models that another worker is training
ALPHAS = (0.2, 0.6, 0.65, 0.75, 0.8, 0.85, 0.87, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)
FEW_ALPHAS = (0.6, 0.8, 0.9, 0.95, 1.0)  # where a line of a figure is drawn for each
OTHER_ALPHAS = (0.6, 0.7, 0.85, 0.9, 0.92, 0.95, 0.97, 0.99)  # of the unbalanced models
ARCHITECTURES = ("own", "mixed", "deep")  # tried beside the usual one


LAWS = {
    "balanced": (("n",), ("ami",), ("tasks",), ("n", "tasks", "ami")),
    "unbalanced": (("n",), ("n_other",), ("ami",), ("tasks",), ("n", "n_other", "tasks", "ami")),
}


@dataclass(frozen=True)
class Plan:
    """The sizes of a scale."""

    seeds: int
    epochs: int
    n: tuple[int, ...]  # with all α and numbers of tasks
    more_n: tuple[int, ...]  # with two tasks, for Figure 3a
    tasks: tuple[int, ...]
    more_tasks: tuple[int, ...]  # with 2,000 tokens, for Figure 3c
    n_real: tuple[int, ...]  # of unbalanced models
    n_other: tuple[int, ...]
    other_tasks: tuple[int, ...]


PLANS = {
    "small": Plan(
        seeds=3,
        epochs=30,
        n=(1000, 2000, 3000, 4000, 5000, 6000),
        more_n=(1500, 2500, 3500, 4500, 5500),
        tasks=(2, 3, 5, 8, 15),
        more_tasks=(4, 6, 7, 9, 10, 11, 12, 13, 14),
        n_real=(1000, 1500, 2000, 2500),
        n_other=(3000, 4000, 5000, 6000),
        other_tasks=(2, 4, 6, 10, 15),
    ),
    "paper": Plan(
        seeds=5,
        epochs=100,
        n=(1000, 2000, 4000, 8000, 12000, 16000, 20000),
        more_n=tuple(n for n in range(3000, 20000, 1000) if n not in (4000, 8000, 12000, 16000)),
        tasks=(2, 3, 5, 8, 11, 15),
        more_tasks=(4, 6, 7, 9, 10, 12, 13, 14),
        n_real=(1000, 1500, 2000, 2500),
        n_other=(3000, 4000, 5000, 6000),
        other_tasks=(2, 4, 6, 10, 15, 20, 30),
    ),
}


# -- units -----------------------------------------------------------------------------------------------------------
def grid(scale: str) -> list[dict[str, Any]]:
    """The models of the first seed, then those of the next; the fits last."""
    plan = PLANS[scale]
    units = [unit for seed in range(plan.seeds) for unit in units_of_seed(plan, seed)]
    return [*units, *(fit_of(table, scale) for table in LAWS)]


def fit_of(table: str, scale: str) -> dict[str, Any]:
    """The unit that looks for laws in a table; the digest is of all units that fill it."""
    digest = hashlib.sha256(" ".join(map(where_of, units_of(table, scale))).encode()).hexdigest()[:16]
    return {"kind": "fit", "table": table, "scale": scale, "of": digest, "intervals": "over seeds"}


def units_of(table: str, scale: str) -> list[dict[str, Any]]:
    """The units that fill a table that laws are looked for in."""
    plan = PLANS[scale]
    units = [unit for seed in range(plan.seeds) for unit in units_of_seed(plan, seed)]
    return [unit for unit in units if unit["kind"] == table and unit["architecture"] == USUAL]


def units_of_seed(plan: Plan, seed: int) -> Iterator[dict[str, Any]]:
    """The units of one seed, the longest first."""

    def unit(kind: str, tasks: int, n: Sequence[int], alphas: Sequence[float], **more: Any) -> dict[str, Any]:
        usual = {"architecture": USUAL, "n_other": [], "epochs": plan.epochs, "seed": seed}
        return {"kind": kind, "tasks": tasks, "n": list(n), "alphas": list(alphas), **usual, **more}

    for tasks in reversed(plan.other_tasks):
        for other in reversed(plan.n_other):
            yield unit("unbalanced", tasks, plan.n_real, OTHER_ALPHAS, n_other=[other])
    for tasks in reversed(plan.tasks):
        for alphas in (ALPHAS[::2], ALPHAS[1::2]):
            yield unit("balanced", tasks, plan.n, alphas)
    yield unit("balanced", 2, plan.more_n, FEW_ALPHAS)
    for architecture in ARCHITECTURES:
        for tasks in (8, 2):
            yield unit("balanced", tasks, plan.n[::2], FEW_ALPHAS, architecture=architecture)
        yield unit("single", 1, plan.n[::2], (), architecture=architecture)
    for tasks in plan.more_tasks:
        yield unit("balanced", tasks, [FIGURE_N], FEW_ALPHAS)
    yield unit("single", 1, sorted({*plan.n, *plan.more_n, *plan.n_real}), ())


def settings_of(unit: Mapping[str, Any]) -> list[Setting]:
    """All combinations of what a unit varies."""
    seed, architecture, tasks = unit["seed"], unit["architecture"], unit["tasks"]
    if tasks == 1:
        return [Setting(n, architecture=architecture, seed=seed) for n in unit["n"]]
    varied = product(unit["n"], unit["n_other"] or [None], unit["alphas"])
    return [Setting(n, tasks, alpha, other, architecture, seed) for n, other, alpha in varied]


def observe(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One unit, whatever kind it is."""
    begun = time.monotonic()
    if unit["kind"] == "fit":
        result = fitted(unit, tell, place)
    else:
        settings = settings_of(unit)
        tell((f"{len(settings)} models of {unit['tasks']} tasks", 0.0))
        rows = trained(material_of(place.data), settings, epochs=unit["epochs"])
        kept = ("n", "n_other", "alpha", "ami", "score")
        result = {"models": [{name: _rounded(row[name]) for name in kept} for row in rows]}
    return {**result, "seconds": round(time.monotonic() - begun, 1)}


def _rounded(value: float | None) -> float | None:
    return round(value, 5) if isinstance(value, float) else value


@lru_cache(maxsize=1)
def material_of(data: Path) -> Material:
    """The sentences and the vectors that all models read."""
    return Material.of(corpus_of(DATA, data, (TASK,)), TASK, name=DATA)


def where_of(unit: Mapping[str, Any]) -> str:
    """The address of a unit's result."""
    return address(partial(observe, place=Place(Path(), Path())), unit)


# -- laws ------------------------------------------------------------------------------------------------------------
def fitted(unit: Mapping[str, Any], tell: ProgressCallback, place: Place) -> dict[str, Any]:
    """Laws of one variable and of all, power laws, and the paper's own forms, from what other units found."""
    from bursar.laws.fitting import fit_law
    from bursar.laws.forms import compare_forms
    from bursar.laws.observations import Observations

    units = units_of(unit["table"], unit["scale"])
    runs = [{"unit": other, "result": stored(where_of(other), place, tell)} for other in units]
    averages = Observations.of(observed(models_of(runs))).averaged()
    # A law of one variable is fitted where all others vary alike beside it: more T and more n were tried with few α.
    crossed = Observations.of(observed(models_of(run for run in runs if _is_crossed(run["unit"], unit)))).averaged()
    laws = {}
    for done, variables in enumerate(LAWS[unit["table"]]):
        tell((f"looking for a law of {', '.join(variables)}", done / len(LAWS[unit["table"]])))
        rows = crossed if len(variables) == 1 else averages
        laws[", ".join(variables)] = fit_law(rows, variables).describe()
    variables = LAWS[unit["table"]][-1]
    return {
        "rows": len(averages),
        "crossed": len(crossed),
        "laws": laws,
        "powers": {name: _told(_powers(runs, variables, name == "offset")) for name in ("plain", "offset")},
        "forms": [
            {"name": form.name, "text": form.formula.text}
            | {name: getattr(form, name) for name in ("error", "doubt", "monotone", "constant", "rows")}
            for form in compare_forms(crossed)
        ],
    }


def _is_crossed(unit: Mapping[str, Any], fit: Mapping[str, Any]) -> bool:
    """Whether a unit belongs to the part of the grid in which every n meets every T and α."""
    return unit["kind"] == "unbalanced" or tuple(unit["n"]) == PLANS[fit["scale"]].n


def _powers(runs: Sequence[Mapping[str, Any]], variables: Sequence[str], offset: bool) -> PowerLaw:
    """Of single models, with intervals over seeds: models of one seed share sentences and first values."""
    from bursar.laws.forms import PowerLawSettings, power_law
    from bursar.laws.observations import Observations

    parts = []
    for seed in sorted({run["unit"]["seed"] for run in runs}):
        mine = [run for run in runs if run["unit"]["seed"] == seed]
        X, y, _ = Observations.of(observed(models_of(mine))).averaged().matrix(variables)
        parts.append((X, y, np.full(len(y), seed)))
    X, y, seeds = (np.concatenate(some) for some in zip(*parts, strict=True))
    return power_law(X, variables, y, PowerLawSettings(offset=offset), groups=seeds)


def _told(law: PowerLaw) -> dict[str, Any]:
    exponents = {name: asdict(exponent) for name, exponent in law.exponents.items()}
    return {"text": law.formula.text, "exponents": exponents, "error": law.error, "left_out": law.left_out}


def stored(where: str, place: Place, tell: ProgressCallback) -> dict[str, Any]:
    """What an earlier unit found; another worker may still be at it."""
    store, missing, begun = ResultStore(place.runs / "results"), object(), time.monotonic()
    while (result := store.get(where, missing)) is missing:
        if time.monotonic() - begun > WAIT:
            raise ConfigError("laws need all models of their table, and some are open", fix="run the whole study")
        tell(("waiting for the last models", 0.0))
        time.sleep(5)
    found: dict[str, Any] = result
    return found


STUDIES.add(
    "laws",
    Study(
        "laws",
        "What does multi-task learning buy, as a formula?",
        "paper 2, section 5",
        grid,
        observe,
        analyse,
        reads=(DATA,),
    ),
)
