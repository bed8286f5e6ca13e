"""What the studies of best orders run: paper 4's three settings, and the units of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.studies.optimal_heuristics import HEURISTICS

SEEDS = range(5)
RANDOM = 10  # random orders a learner and seed
FEWER = 5
FEW = {"encoder": 5} | dict.fromkeys(("probe", "aoe", "cnn", "lstm", "tagger"), RANDOM)  # random orders of a transfer
PAPER = {"steps": 25_000, "greedy_steps": 5_000, "cooling": 0.1}
COLDER = {**PAPER, "cooling": 2.0}  # for the probe, whose scores change too little for the paper's to get cold


@dataclass(frozen=True)
class Setting:
    """One column of paper 4's Table 1."""

    data: str
    task: str
    sizes: Mapping[str, int]
    size: int  # B
    batches: int  # K
    metric: str
    networks: Mapping[str, Mapping[str, float]]  # a learner to the plan of its search
    searched: int = 5  # seeds with searches for the probe: those of words take long
    referred: int = 3  # seeds with a reference order: greedy takes as long as a whole search there
    random: int | None = None  # random orders for its networks, where a curve is minutes of work; else as many as usual


def shorter(steps: int, greedy_steps: int) -> dict[str, float]:
    """A plan of fewer steps that ends as cold as the paper's: γ times the number of steps is the same."""
    whole = PAPER["cooling"] * PAPER["steps"]
    return {"steps": steps, "greedy_steps": greedy_steps, "cooling": round(whole / steps, 6)}


SETTINGS = {
    "images": Setting(
        "fashion_mnist",
        "label",
        {"pool": 2000, "warm": 50, "aside": 150, "validation": 4000, "test": 4000},
        size=25,
        batches=12,
        metric="accuracy",
        networks={"cnn": shorter(90, 10)},
        random=FEWER,
    ),
    "intents": Setting(
        "topv2",
        "intent",
        {"pool": 800, "warm": 40, "aside": 100, "validation": 4000, "test": 4000},
        size=20,
        batches=8,
        metric="weighted_f1",
        networks={"aoe": PAPER, "lstm": shorter(150, 15), "cnn": shorter(150, 15)},
    ),
    "entities": Setting(
        "mit_restaurant",
        "entities",
        {"pool": 1000, "warm": 50, "aside": 200, "validation": 3000, "test": 3000},
        size=25,
        batches=10,
        metric="weighted_f1",
        networks={"tagger": shorter(90, 10)},
        searched=2,
        referred=1,
        random=FEWER,
    ),
}
MISMATCH = {"images": (), "intents": ("aoe",), "entities": ()}  # learners whose orders are tried on other seeds
MISMATCH_PLAN = shorter(1000, 100)
TARGETS = {
    "images": ("probe", "cnn"),
    "intents": ("probe", "aoe", "cnn", "lstm", "encoder"),
    "entities": ("probe", "tagger"),
}


# -- units -----------------------------------------------------------------------------------------------------------
def grid_of(name: str) -> list[dict[str, Any]]:
    """The units of one data set: those of the probe first, then the networks, then what needs orders of others."""
    setting = SETTINGS[name]

    def unit(kind: str, learner: str, draw: int, seed: int, **more: Any) -> dict[str, Any]:
        return {"problem": name, "kind": kind, "learner": learner, "draw": draw, "seed": seed, **more}

    heuristics = [*HEURISTICS[name], *(f"{one}+IDMR" for one in HEURISTICS[name])]
    bought = {"strategies": heuristics, "random": RANDOM}
    if name == "images":
        bought["bins"] = "the same in all batches"
    searched = SEEDS[: setting.searched]
    units = [unit("search", "probe", seed, seed, **plan) for plan in (PAPER, COLDER) for seed in searched]
    units += [unit("orders", "probe", seed, seed, **bought) for seed in SEEDS]
    units += [unit("reference", "probe", seed, seed, pace="measured") for seed in SEEDS[: setting.referred]]
    few = {} if setting.random is None else {"random": setting.random}
    for learner in setting.networks:
        units += [unit("orders", learner, seed, seed, **{**bought, **few}) for seed in SEEDS]
    for learner in MISMATCH[name]:
        units += [unit("search", learner, 0, seed, **MISMATCH_PLAN) for seed in SEEDS]
    units += [unit("search", learner, 0, 0, **plan) for learner, plan in setting.networks.items()]
    for learner in MISMATCH[name]:
        units += [unit("mismatch", learner, 0, seed, **MISMATCH_PLAN, trained=list(SEEDS)) for seed in SEEDS]
    if name == "images":
        units.append(unit("map", "probe", 0, 0))
    sources = ["probe", *setting.networks]
    for target in TARGETS[name]:
        units.append(unit("transfer", target, 0, 0, among=sources, **{"random": FEW[target], **few}))
    return units
