"""The contract of learners, and the registry that finds them by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.curriculum import Policy
from bursar.errors import ConfigError
from bursar.ragged import Ragged
from bursar.registry import Registry
from bursar.tasks import Beliefs, Task

Progress = Callable[[str, float], None]  # what is going on, and how far it is, 0 to 1
Scores = dict[str, dict[str, float]]  # task to score name to score


def no_progress(what: str, done: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class FitReport:
    """How a training went."""

    items: int
    steps: int
    best_score: float | None  # geometric mean of the tasks' scores on development items
    history: tuple[Mapping[str, float], ...] = field(default=())


class Learner(ABC):
    """Fits on a corpus that may lack labels for some items and tasks, and says what it believes of others.

    The same annotated *set*, development items and seed give the same beliefs, in whatever order the items come.
    """

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = dict(tasks)

    @abstractmethod
    def fit(
        self,
        annotated: Corpus,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        policy: Policy | None = None,
        progress: Progress = no_progress,
    ) -> FitReport:
        """Forget what was learned and learn from these items; ``dev`` decides when to stop."""

    @abstractmethod
    def believe(self, items: Corpus, progress: Progress = no_progress) -> dict[str, Beliefs]:
        """Per task, probabilities for every unit of every item, in the order of the items."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """All that ``restore`` needs, in a folder that is made if need be."""

    @abstractmethod
    def restore(self, folder: Path) -> None:
        """Believe again what was believed when this was saved, by a learner of the same tasks and options."""

    # -- what follows from beliefs -----------------------------------------------------------------------------------
    def predict(self, items: Corpus) -> dict[str, Ragged]:
        """The label rows that the beliefs speak for."""
        return {name: self.tasks[name].decode(beliefs) for name, beliefs in self.believe(items).items()}

    def evaluate(self, items: Corpus) -> Scores:
        """Every score of every task on the items that have its labels; a task without any is left out."""
        return evaluate(self.tasks, items, self.predict(items))


def evaluate(tasks: Mapping[str, Task], items: Corpus, guesses: Mapping[str, Ragged]) -> Scores:
    """The scores of guesses on the items that have labels."""
    scores: Scores = {}
    for name, guess in guesses.items():
        known = np.flatnonzero(items.labels[name].present)
        if len(known):
            gold = items.labels[name].rows.take(known)
            scores[name] = tasks[name].evaluate(gold, guess.take(known), items.words[known])
    return scores


def geometric_mean(scores: Mapping[str, float]) -> float:
    """One number for all tasks that no task can be sacrificed for: what early stopping looks at.

    >>> round(geometric_mean({"intent": 0.9, "slots": 0.4}), 6)
    0.6
    """
    values = np.maximum(list(scores.values()), 0.0)
    return float(np.prod(values) ** (1 / len(values))) if len(values) else 0.0


LEARNERS: Registry[Callable[..., Learner]] = Registry("learner", "bursar.learners")


def make_learner(name: str, tasks: Mapping[str, Task], options: Mapping[str, Any] | None = None) -> Learner:
    """A learner by name, with its options checked."""
    try:
        return LEARNERS[name](tasks, **dict(options or {}))
    except TypeError as wrong:
        raise ConfigError(f"learner {name!r}: {wrong}") from None


def _transformer(tasks: Mapping[str, Task], **options: Any) -> Learner:
    from bursar.learners.transformer import TransformerLearner

    return TransformerLearner(tasks, **options)


LEARNERS.add("transformer", _transformer)
