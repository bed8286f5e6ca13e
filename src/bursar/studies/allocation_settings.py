"""What the study of splits runs: its data sets, prices and budgets, and the units of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bursar.studies.arms import SHORT, Arm, Setup

SEEDS = range(5)
ALIKE, RISING, FALLING, READING = "alike", "rising", "falling", "shared reading"
RATER = {"repetitions": 2, "points": 3, "start": "nothing"}  # of pseudo-labels: every point is a training


@dataclass(frozen=True)
class Setting:
    """A data set, how its models are trained, and what money there is.

    ``budgets`` are multiples of what the seed items' labels would cost: the first for all prices, the others where all
    labels cost the same.
    """

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
        ("intent", "slots"),
        seed=60,
        pool=2000,
        test=893,
        learner="transformer",
        options={**SHORT, "steps": 150},
        prices=(ALIKE,),
        budgets=(1.0,),
    ),
    "ewt": Setting(
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
    """All estimates first, so that nobody waits for them; then draw by draw the budgets, and the campaigns."""
    units = [unit for seed in SEEDS for unit in units_of(seed)]
    return sorted(units, key=lambda unit: unit["kind"] != "estimates")


def units_of(seed: int) -> list[dict[str, Any]]:
    """The units of one draw."""
    units = []
    for data, setting in SETTINGS.items():
        common = common_of(data, seed)
        units.append({"kind": "estimates", **common})
        for name in setting.prices:
            prices, joint = prices_of(name, len(setting.tasks))
            units += [
                {"kind": "splits", **common, "costs": name, "prices": list(prices), "joint": joint, "times": times}
                | {"budget": round(times * setting.seed * sum(prices))}
                for times in (setting.budgets if name == ALIKE else setting.budgets[:1])
            ]
    return units + campaigns_of(seed)


def common_of(data: str, seed: int) -> dict[str, Any]:
    """What all units of a draw depend on."""
    setting = SETTINGS[data]
    return {
        "data": data,
        "seed": seed,
        "sizes": [setting.seed, setting.pool, setting.test],
        "model": setting.learner,
        "learner": dict(setting.options),
        "rater": dict(RATER),
    }


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
