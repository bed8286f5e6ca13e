"""What the study of splits runs: its data sets, prices and budgets, and the units of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.studies.arms import SHORT, Arm, Setup

SEEDS = range(5)
DRAW = ("data", "seed", "sizes", "model", "learner")  # of a unit: what a model of some labels depends on
SHARED = ("estimates", "real curves")  # kinds that several units stand on
ALIKE, RISING, FALLING, READING = "alike", "rising", "falling", "shared reading"
RATER = {"repetitions": 2, "points": 3, "start": "nothing"}  # of pseudo-labels: every point is a training


@dataclass(frozen=True)
class Setting:
    """A data set, how its models are trained, and what money there is.

    ``budgets`` are multiples of what the seed items' labels would cost.
    """

    corpus: str
    tasks: tuple[str, ...]
    seed: int  # items that are labelled for all tasks to begin with
    pool: int
    test: int
    learner: str
    options: Mapping[str, Any]
    prices: tuple[str, ...]
    budgets: tuple[float, ...]


SETTINGS = {
    "faces": Setting(
        "faces",
        ("person", "pose", "expression", "eyes"),
        seed=60,
        pool=364,
        test=200,
        learner="image-cnn",
        options={"epochs": 30, "batch_size": 16},
        prices=(ALIKE, RISING, FALLING, READING),
        budgets=(1.0, 2.0),
    ),
    "builtin": Setting(
        "builtin",
        ("intent", "slots", "urgency"),
        seed=60,
        pool=2000,
        test=1000,
        learner="transformer",
        options={**SHORT, "steps": 200},
        prices=(ALIKE, RISING, FALLING, READING),
        budgets=(1.0, 3.0),
    ),
    "atis": Setting(
        "atis",
        ("intent", "slots"),
        seed=60,
        pool=2000,
        test=893,
        learner="transformer",
        options={**SHORT, "steps": 150},
        prices=(ALIKE, READING),
        budgets=(1.0,),
    ),
    "ewt": Setting(
        "ewt",
        ("dependencies", "entities"),
        seed=100,
        pool=1000,
        test=500,
        learner="transformer",
        options={**SHORT, "steps": 120},
        prices=(ALIKE,),
        budgets=(1.0,),
    ),
}


MORE_DRAWS = 3
MORE_SEEDS = {  # a control: do more seed items tell enough?
    "builtin-240": replace(
        SETTINGS["builtin"], seed=240, options={**SHORT, "steps": 400}, prices=(ALIKE,), budgets=(1.0,)
    ),
}


def setting_of(data: str) -> Setting:
    """By name, one of a control as well."""
    return SETTINGS[data] if data in SETTINGS else MORE_SEEDS[data]


def prices_of(name: str, tasks: int) -> tuple[tuple[int, ...], int]:
    """What a label of each task costs, and an item that is labelled for all of them.

    >>> prices_of("rising", 3), prices_of("shared reading", 3)
    (((2, 4, 6), 12), ((5, 6, 7), 10))
    """
    if name == READING:  # 4 of each are for reading the item, the rest for the label
        own = range(1, tasks + 1)
        return tuple(4 + price for price in own), 4 + sum(own)
    prices = {ALIKE: (4,) * tasks, RISING: tuple(range(2, 2 * tasks + 1, 2)), FALLING: tuple(range(2 * tasks, 0, -2))}
    return prices[name], sum(prices[name])


# -- units -------------------------------------------------------------------------------------------------------------
def grid(scale: str) -> list[dict[str, Any]]:
    """The study, then its controls; in each those first that others stand on, so that nobody waits for them."""
    parts = ([unit for seed in SEEDS for unit in part(seed)] for part in (units_of, controls_of, more_seeds_of))
    return [unit for part in parts for unit in sorted(part, key=lambda unit: unit["kind"] not in SHARED)]


def units_of(seed: int) -> list[dict[str, Any]]:
    """The units of one draw."""
    units = []
    for data in SETTINGS:
        units += [{"kind": "estimates", **common_of(data, seed)}, *splits_of(data, seed)]
    return units + campaigns_of(seed)


def splits_of(data: str, seed: int) -> list[dict[str, Any]]:
    """Every budget at all prices."""
    setting, units = setting_of(data), []
    for name in setting.prices:
        prices, joint = prices_of(name, len(setting.tasks))
        units += [
            {"kind": "splits", **common_of(data, seed), "costs": name, "prices": list(prices), "joint": joint}
            | {"times": times, "budget": round(times * setting.seed * sum(prices))}
            for times in setting.budgets
        ]
    return units


def common_of(data: str, seed: int) -> dict[str, Any]:
    """What all units of a draw depend on."""
    setting = setting_of(data)
    return {
        "data": data,
        "seed": seed,
        "sizes": [setting.seed, setting.pool, setting.test],
        "model": setting.learner,
        "learner": dict(setting.options),
        "rater": dict(RATER),
    }


def estimates_unit(unit: Mapping[str, Any]) -> dict[str, Any]:
    """The unit that has the estimates of a unit's draw."""
    return {"kind": "estimates"} | {name: unit[name] for name in (*DRAW, "rater")}


def curves_unit(unit: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The unit that has the real curves of a draw of a unit's data set."""
    return {"kind": "real curves"} | {name: unit[name] for name in DRAW} | {"seed": seed}


def controls_of(seed: int) -> list[dict[str, Any]]:
    """What says why: splits by other draws' curves, and labels that are seen as often."""
    units: list[dict[str, Any]] = []
    others = [other for other in SEEDS if other != seed]
    for data, setting in SETTINGS.items():
        splits = splits_of(data, seed)
        units.append(curves_unit(splits[0], seed))
        units += [
            unit | {"kind": "foreknown", "others": others} for unit in splits if unit["costs"] in (ALIKE, READING)
        ]
        if "steps" in setting.options:
            units += [unit | {"kind": "seen as often"} for unit in splits if unit["costs"] == ALIKE]
    return units


def more_seeds_of(seed: int) -> list[dict[str, Any]]:
    """The units of one draw with more seed items, which is a control as well; of the first draws alone."""
    if seed not in SEEDS[:MORE_DRAWS]:
        return []
    return [
        unit for data in MORE_SEEDS for unit in ({"kind": "estimates", **common_of(data, seed)}, *splits_of(data, seed))
    ]


ARMS: Sequence[tuple[str, str | None]] = (
    ("UDJS+BLP_AL", None),
    ("UDJS+BLP_AL", "robust"),
    ("EQB-DJS+BLP_AL", None),
    ("MT-AVG", None),
    ("RANDOM", None),
)


def campaigns_of(seed: int) -> list[dict[str, Any]]:
    """Campaigns on the built-in corpus that buy label by label, with and without a split; and whole items."""
    setting = SETTINGS["builtin"]
    setup = Setup(2000, 100, 1000, 60, 700, 3, "money", learner={**setting.options}, audit=0.1)
    return [
        {"kind": "campaign", "allocation": method, **Arm("builtin", name, seed, setup, setting.tasks).unit()}
        for name, method in ARMS
    ]
