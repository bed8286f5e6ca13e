"""Seed items: those that are labelled already, and how they are taken apart to learn something from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError
from bursar.learners.learner import in_codes_of
from bursar.ragged import IntArray
from bursar.tasks import Task

HELD_OUT = 0.3  # of the items, to measure on
FEWEST = 2  # labels of each task in anything that is trained
FEWEST_APART = 3  # and in each part of the seed items


def seed_items(tasks: Mapping[str, Task], annotated: Corpus) -> Corpus:
    """The items that are labelled for any of the tasks, in the order of ids: results depend on the set alone."""
    for name in tasks:
        if name not in annotated.schema or not annotated.labels[name].present.any():
            raise AllocationError(
                f"task {name!r} has no seed labels",
                fix="label some items for it, or leave it out: nothing can be told of what its labels are worth",
            )
    items = in_codes_of(tasks, annotated).with_tasks(list(tasks))
    order = np.argsort(items.id_ranks)
    labelled = np.any([items.labels[name].present for name in tasks], axis=0)
    return items.take(order[labelled[order]])


def taken_apart(items: Corpus, shares: Sequence[float], rng: np.random.Generator) -> tuple[IntArray, ...]:
    """The positions of the items in parts of these shares.

    Items that are labelled for the same tasks are dealt out evenly, so that each part has its share of every task.
    """
    present = np.stack([items.labels[name].present for name in items.schema])
    kinds = np.unique(present.T, axis=0, return_inverse=True)[1].ravel()
    order = rng.permutation(len(items))
    order = order[np.argsort(kinds[order], kind="stable")]
    place = dealt(len(items), shares)
    parts = tuple(np.sort(order[place == part]) for part in range(len(shares)))
    labels = dict(zip(items.schema, present, strict=True))
    short = [name for name, there in labels.items() if min(int(there[part].sum()) for part in parts) < FEWEST_APART]
    if short:
        said = ", ".join(f"task {name!r} has {int(labels[name].sum())} seed labels" for name in short)
        raise AllocationError(
            f"{said}: too few to hold any out",
            fix=f"label at least {math.ceil(FEWEST_APART / min(shares)) + len(shares)} items for each",
        )
    return parts


def dealt(items: int, shares: Sequence[float]) -> IntArray:
    """For each item in turn the part that is furthest behind its share: any stretch of items is shared out evenly.

    >>> dealt(10, [0.4, 0.3, 0.3]).tolist()
    [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    """
    due, share, found = np.zeros(len(shares)), np.array(shares), np.zeros(items, dtype=np.int64)
    for at in range(items):
        due += share
        found[at] = int(due.argmax())
        due[found[at]] -= 1
    return found


def seed_of(seed: int, repetition: int) -> int:
    """For the training of one repetition."""
    return int(np.random.default_rng([seed, repetition, 37]).integers(2**31))


# -- settings ----------------------------------------------------------------------------------------------------------
def check_share(held_out: float, most: float) -> None:
    """Refuse a share of held-out items that leaves nothing to train on, or nothing to measure on."""
    if isinstance(held_out, bool) or not isinstance(held_out, int | float) or not 0 < held_out < most:
        raise ConfigError(f"held_out = {held_out!r}", fix=f"use a share above 0 and below {most:g}, such as {HELD_OUT}")


def check_whole(name: str, setting: str, value: object, *, least: int = 1) -> None:
    """Refuse a setting that is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name!r}: {setting} = {value!r}", fix=f"use a whole number from {least} up")


def settings_of(make: Callable[[], object]) -> str | None:
    """Which settings something has that can be made without any, as a fix."""
    try:
        return f"its settings are {', '.join(field.name for field in fields(make()))}"  # type: ignore[arg-type]
    except (TypeError, BursarError):
        return None


def reason_of(wrong: TypeError) -> str:
    """Why something could not be made with the settings given, without the name of its class.

    >>> reason_of(TypeError("LookAhead.__init__() got an unexpected keyword argument 'step'"))
    "got an unexpected keyword argument 'step'"
    """
    text = str(wrong)
    return text.partition("() ")[2] or text
