"""Task policies: a distribution over tasks for the next training step, possibly learned from earlier steps.

A policy is a small frozen description that is saved as JSON. At the start of a training it creates a ``Steering``,
which holds its state. One steering can lead many trainings at once, a row each, so that populations of simulated
trainings run as array operations. A single training is one row.

>>> steering = make_policy("size").begin(Course(("cola", "rte"), sizes=(8500, 2500), steps=1000))
>>> steering.probabilities(0).round(3).tolist()
[[0.773, 0.227]]
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from bursar.corpus.formats.format import replacing_bytes
from bursar.errors import ConfigError
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry

P = TypeVar("P", bound="type[Policy]")


@dataclass(frozen=True)
class Course:
    """What is known about a training before it starts."""

    tasks: tuple[str, ...]
    sizes: tuple[int, ...]  # number of labelled items of each task
    steps: int
    seed: int = 0
    runs: int = 1  # parallel trainings


class Steering(ABC):
    """The state of a policy in a training."""

    needs_after: ClassVar[bool] = False  # whether it needs the loss after a step, which costs a second forward pass

    @abstractmethod
    def probabilities(self, step: int) -> FloatArray:
        """The probability of training each task next: (runs, tasks); rows sum to 1."""

    def observe(self, step: int, task: IntArray, before: FloatArray, after: FloatArray | None) -> None:  # noqa: B027
        """Receive the task of each run's step and the loss of its batch before the step (and after it, if measured).

        Losses are mean negative log-likelihoods over units, so that ``exp(-loss)`` is a probability.
        """


@dataclass(frozen=True)
class Policy(ABC):
    """How training steps are divided between tasks. Subclasses are dataclasses of their settings with ``begin``."""

    name: ClassVar[str]

    @abstractmethod
    def begin(self, course: Course) -> Steering:
        """Start a training; unsuitable tasks are refused."""

    def describe(self) -> dict[str, Any]:
        """The policy as JSON, for ``read_policy``."""
        return {"policy": self.name, **asdict(self)}

    def save(self, file: str | Path, learned: Mapping[str, Any] | None = None) -> None:
        """Write to JSON, atomically; ``learned`` documents where the policy came from."""
        about = self.describe() | ({"learned": dict(learned)} if learned is not None else {})
        with replacing_bytes(Path(file)) as out:
            out.write((json.dumps(about, indent=1, allow_nan=False) + "\n").encode())


POLICIES: Registry[type[Policy]] = Registry("task policy", "bursar.policies")


def named(policy: P) -> P:
    """Register a policy under its name."""
    POLICIES.add(policy.name, policy)
    return policy


def make_policy(name: str, **settings: Any) -> Policy:
    """Create a policy by name, or load it from a file."""
    if is_file(name):
        if settings:
            raise ConfigError(f"the policy {name} is a file and takes no settings")
        return load_policy(name)
    kind = POLICIES[name]
    known = [field.name for field in fields(kind)]
    for setting in settings:
        if setting not in known:
            raise ConfigError(
                f"policy {name!r} has no setting {setting!r}",
                fix=f"it has {', '.join(known)}" if known else "it has none",
            )
    for field in fields(kind):
        if field.default is MISSING and field.default_factory is MISSING and field.name not in settings:
            raise ConfigError(
                f"policy {name!r} needs its {field.name}",
                fix=f'save make_policy("{name}", {field.name}=…) and name its file, or learn one: bursar policy learn',
            )
    _check_types(kind, settings)
    try:
        return kind(**settings)
    except (TypeError, ValueError) as wrong:
        reason = str(wrong).removeprefix(f"{kind.__name__}.__init__() ")
        raise ConfigError(f"policy {name!r}: {reason}", fix=f"its settings are {', '.join(known)}") from None


def is_file(name: object) -> bool:
    """Whether this is a file name rather than a registered name."""
    return isinstance(name, str) and (name.endswith(".json") or "/" in name)


def _check_types(kind: type[Policy], settings: Mapping[str, Any]) -> None:
    """Refuse settings of the wrong type; they come from files."""
    types: dict[str, Any] = {"float": (int | float, "a number"), "int": (int, "a whole number")}
    types |= {"str": (str, "a name"), "Mapping": (Mapping, "a table")}
    for field in fields(kind):
        declared = str(getattr(field.type, "__name__", field.type)).partition("[")[0]
        if field.name in settings and declared in types:
            (wanted, what), value = types[declared], settings[field.name]
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise ConfigError(f"policy {kind.name!r}: {field.name} = {value!r}", fix=f"use {what}")


def read_policy(description: Mapping[str, Any]) -> Policy:
    """Create a policy from its description."""
    settings = dict(description)
    name = settings.pop("policy", None)
    if not isinstance(name, str):
        raise ConfigError("this is not a task policy: it has no name", fix='add "policy": "NAME"')
    if is_file(name):
        raise ConfigError(f"this names another file as its policy: {name}", fix="copy that file instead")
    return make_policy(name, **{key: value for key, value in settings.items() if key != "learned"})


def load_policy(file: str | Path) -> Policy:
    """Load a policy from its file."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such policy file") from None
    except (OSError, ValueError) as wrong:
        raise ConfigError(f"{file} is not a task policy: {wrong}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{file} is not a task policy: it is not a table")
    try:
        return read_policy(found)
    except ConfigError as wrong:
        raise ConfigError(f"{file}: {wrong.message}", fix=wrong.fix) from None


def check_losses(course: Course, step: int, task: IntArray, losses: FloatArray) -> None:
    """Refuse losses that are not finite."""
    if not np.isfinite(losses).all():
        run = int(np.flatnonzero(~np.isfinite(losses))[0])
        raise ConfigError(f"step {step}: the loss of task {course.tasks[int(task[run])]!r} is {losses[run]}")


def softmax(weights: FloatArray) -> FloatArray:
    """The softmax of every row. Policies run at every step, and scipy's version would take half of their time."""
    powers = np.exp(weights - weights.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
