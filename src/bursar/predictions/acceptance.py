"""How many of a model's labels are wrong above a threshold, measured on items that it was not trained on.

A label is wrong if any part of it is: one span too many, one word with another head. A number is wrong if it is more
than a tenth of its range away. Intervals are exact (Clopper and Pearson 1934): for a threshold that was chosen without
looking at these items, they hold the true share in at least 95 of 100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners import Learner
from bursar.learners.learner import Progress, in_codes_of, no_progress
from bursar.ragged import BoolArray, FloatArray
from bursar.uncertainty import confidence_of

LEVEL = 0.95
NEEDED_FOR = (0.05, 0.1)  # held-out items are enough if 5 % of errors cannot be mistaken for 10 %
LADDER = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)  # thresholds that are shown side by side


def error_interval(wrong: int, items: int) -> tuple[float, float]:
    """The exact interval of a share, by Clopper and Pearson."""
    from scipy.special import betaincinv

    rest = (1 - LEVEL) / 2
    low = float(betaincinv(wrong, items - wrong + 1, rest)) if wrong else 0.0
    high = float(betaincinv(wrong + 1, items - wrong, 1 - rest)) if wrong < items else 1.0
    return low, high


def items_needed() -> int:
    """How many held-out items tell 5 % of errors from 10 %: the interval's upper end is below it."""
    (share, most), items = NEEDED_FOR, 1
    while error_interval(math.ceil(share * items), items)[1] >= most:
        items += 1
    return items


Thresholds = Mapping[str, float]  # by task


def thresholds_by_task(tasks: Sequence[str], given: float | Thresholds | None) -> dict[str, float]:
    """A threshold for every task, from one for all or from some by task; 0 for the others."""
    wanted = dict.fromkeys(tasks, float(given)) if isinstance(given, int | float) else dict(given or {})
    for name, value in wanted.items():
        if name not in tasks:
            raise ConfigError(f"threshold: there is no task {name!r}", fix=f"the tasks are {', '.join(tasks)}")
        if not 0 <= value <= 1:
            raise ConfigError(f"threshold {name} = {value:g}", fix="use a number from 0 to 1, such as 0.9")
    return {name: wanted.get(name, 0.0) for name in tasks}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A model's labels of items that it was not trained on: how sure it was, and whether it was right."""

    sure: FloatArray  # (items,)
    right: BoolArray  # (items,)
    source: str = "test items"

    def __len__(self) -> int:
        return len(self.sure)


def held_out(
    learner: Learner, items: Corpus, source: str = "test items", progress: Progress = no_progress
) -> dict[str, HeldOut]:
    """Compare a learner's labels with those of items that it was not trained on, by task."""
    items = in_codes_of(learner.tasks, items)
    sure: dict[str, list[FloatArray]] = {name: [np.zeros(0)] for name in learner.tasks}
    right: dict[str, list[BoolArray]] = {name: [np.zeros(0, dtype=bool)] for name in learner.tasks}
    for part, beliefs in learner.predict_in_chunks(items, progress=progress):
        for name, task in learner.tasks.items():
            if name not in items.schema:
                continue
            known = np.flatnonzero(items.labels[name].present[part])
            gold, guess = items.labels[name].rows.take(part[known]), task.decode(beliefs[name]).take(known)
            sure[name].append(confidence_of(learner.tasks, beliefs, name)[known])
            right[name].append(task.agrees(gold, guess))
    found = {name: HeldOut(np.concatenate(sure[name]), np.concatenate(right[name]), source) for name in sure}
    return {name: about for name, about in found.items() if len(about)}


@dataclass(frozen=True)
class Acceptance:
    """What accepting a model's labels above a threshold gives: how many labels, and how many errors to expect."""

    task: str
    threshold: float
    items: int  # that the model labels
    accepted: int  # of them at or above the threshold
    held_out: int  # items with a known label that the model was not trained on
    above: int  # of them at or above the threshold
    wrong: int  # of these
    source: str

    @classmethod
    def of(cls, task: str, threshold: float, sure: FloatArray, known: HeldOut | None) -> Acceptance:
        """Count the labels at or above a threshold, and the errors among held-out items."""
        accepted = int((sure >= threshold).sum())
        if known is None:
            return cls(task, threshold, len(sure), accepted, 0, 0, 0, "held-out items")
        above = known.sure >= threshold
        wrong = int((above & ~known.right).sum())
        return cls(task, threshold, len(sure), accepted, len(known), int(above.sum()), wrong, known.source)

    @property
    def share(self) -> float:
        """The share of the model's labels that are accepted; 1 if it labels none."""
        return self.accepted / self.items if self.items else 1.0

    @property
    def errors(self) -> float | None:
        """The expected share of errors among accepted labels; ``None`` if it is not known."""
        return self.wrong / self.above if self.above else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of that share."""
        return error_interval(self.wrong, self.above) if self.above else None

    @property
    def unknown(self) -> str | None:
        """Why the share of errors is not known, and what to do about it."""
        if self.above:
            return None
        if self.held_out:
            return f"not known: none of the {self.held_out} {self.source} is above it"
        return f"not known: no held-out items (about {items_needed()}, labelled at random, would be needed)"

    @property
    def error_words(self) -> str:
        """The expected share of errors in words."""
        if self.errors is None or self.interval is None:
            return str(self.unknown)
        low, high = self.interval
        return f"{_percent(self.errors)} % ({_percent(low)} to {_percent(high)}) errors"

    def __str__(self) -> str:
        if not self.items:
            return f"{self.task}: every item is labelled by people or came with a label"
        start = f"{self.task}: accept the model above {self.threshold:g}" if self.threshold else f"{self.task}: all"
        share = f"{100 * self.share:.0f} % of items" if self.threshold else f"{self.items:,} labels of the model"
        if self.errors is None:
            return f"{start}: {share}; errors {self.unknown}"
        return f"{start}: {share}, {self.error_words} ({self.wrong} of {self.above} {self.source})"

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        errors = {"errors": self.errors, "low": low, "high": high, "unknown": self.unknown}
        return asdict(self) | {"share": round(self.share, 6)} | errors | {"words": str(self)}


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


def ladder(task: str, sure: FloatArray, known: HeldOut | None) -> list[Acceptance]:
    """What several thresholds give, to choose one."""
    return [Acceptance.of(task, threshold, sure, known) for threshold in LADDER]
