"""Seed items (those already labelled), how they are divided for measurements, and the settings of measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import AllocationError, BursarError, ConfigError
from bursar.learners.learner import Progress, in_codes_of
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.registry import Registry
from bursar.tasks import Task

HELD_OUT = 0.3  # share of the items to measure on
FEWEST = 2  # labels of each task in a training
FEWEST_APART = 3  # labels of each task in each part of the seed items

T = TypeVar("T")


def seed_items(tasks: Mapping[str, Task], annotated: Corpus) -> Corpus:
    """The items labelled for any of the tasks, sorted by id, so that results depend on the set alone."""
    for name in tasks:
        if name not in annotated.schema or not annotated.labels[name].present.any():
            raise AllocationError(
                f"task {name!r} has no seed labels",
                fix="label some items for it, or leave it out: without labels their value cannot be measured",
            )
    items = in_codes_of(tasks, annotated).with_tasks(list(tasks))
    order = np.argsort(items.id_ranks)
    labelled = np.any([items.labels[name].present for name in tasks], axis=0)
    return items.take(order[labelled[order]])


def taken_apart(items: Corpus, shares: Sequence[float], generator: np.random.Generator) -> tuple[IntArray, ...]:
    """The positions of items in parts of these shares; each has its share of items labelled for the same tasks."""
    present = np.stack([items.labels[name].present for name in items.schema])
    kinds = np.unique(present.T, axis=0, return_inverse=True)[1].ravel()
    order = generator.permutation(len(items))
    order = order[np.argsort(kinds[order], kind="stable")]
    place = dealt(len(items), shares)
    parts = tuple(np.sort(order[place == part]) for part in range(len(shares)))
    labels = dict(zip(items.schema, present, strict=True))
    short = [name for name, there in labels.items() if min(int(there[part].sum()) for part in parts) < FEWEST_APART]
    if short:
        counts = ", ".join(f"task {name!r} has {int(labels[name].sum())} seed labels" for name in short)
        raise AllocationError(
            f"{counts}: too few to hold any out",
            fix=f"label at least {math.ceil(FEWEST_APART / min(shares)) + len(shares)} items for each",
        )
    return parts


def dealt(items: int, shares: Sequence[float]) -> IntArray:
    """The part of each item in turn, the one furthest behind its share: any range of items is divided evenly."""
    due, share, found = np.zeros(len(shares)), np.array(shares), np.zeros(items, dtype=np.int64)
    for at in range(items):
        due += share
        found[at] = int(due.argmax())
        due[found[at]] -= 1
    return found


def seed_of(seed: int, repetition: int) -> int:
    """The seed of a repetition's trainings."""
    return int(rng(seed, "training seeds", repetition).integers(2**31))


def part_of(progress: Progress, repetition: int, repetitions: int) -> Progress:
    """The callback for the progress of one repetition; 1 is reported only when all are done."""
    return lambda what, done: progress(what, min((repetition + done) / repetitions, 0.999))


def check_whole(name: str, setting: str, value: object, *, least: int = 1) -> None:
    """Refuse a setting that is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name!r}: {setting} = {value!r}", fix=f"use a whole number from {least} up")


def make_named(registry: Registry[Callable[..., T]], name: str, settings: Mapping[str, Any]) -> T:
    """Create a registered informer or rater; wrong settings are refused with a list of the known ones."""
    make = registry[name]
    try:
        return make(**settings)
    except TypeError as wrong:
        reason = str(wrong).partition("() ")[2] or str(wrong)  # without the name of the class
        raise ConfigError(f"{registry.noun} {name!r}: {reason}", fix=_settings_of(make)) from None


def _settings_of(make: Callable[[], Any]) -> str | None:
    """The settings of something that can be made without any, as a fix."""
    try:
        return f"its settings are {', '.join(field.name for field in fields(make()))}"
    except (TypeError, BursarError):
        return None
