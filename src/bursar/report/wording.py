"""Numbers for readers: amounts of money, scores, counts and lists in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bursar.campaign.results import ArmResult, RunResult
from bursar.tasks import CostModel

THIN = "\u202f"  # narrow no-break space, between a number and its unit
NINETY_PERCENT = 1.645  # standard deviations to either side

METRICS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "las": "labelled attachment",
    "pearson": "correlation",
    "weighted_f1": "weighted F1",
}
SHARES = ("accuracy", "f1", "las")  # scores that read as percentages


@dataclass(frozen=True)
class Money:
    """Amounts in whole units, as money."""

    unit: Decimal
    currency: str

    @classmethod
    def of(cls, result: RunResult) -> Money:
        costs = result.config.costs
        return cls(Decimal(str(costs.unit)), costs.currency)

    def show(self, units: int) -> str:
        """An amount in a sentence."""
        return self.brief(units) if self.currency else f"{self.brief(units)} units"

    def brief(self, units: int) -> str:
        """An amount in a table."""
        return CostModel({}, {}, self.unit, self.currency).show(units)

    def average(self, units: float, count: int) -> str:
        if not count:
            return "–"
        amount = self.amount(units / count)
        digits = max(1, -int(self.unit.normalize().as_tuple().exponent))
        return f"{self.currency}{amount:,.{min(2, digits) if amount >= 0.1 else digits}f}"

    def amount(self, units: float) -> float:
        return float(units) * float(self.unit)


@dataclass(frozen=True)
class Scale:
    """How to write a score: as a percentage, or as a plain number."""

    percent: bool

    @classmethod
    def of(cls, *metrics: str) -> Scale:
        """The scale of one metric, or of the mean of several."""
        return cls(all(metric in SHARES for metric in metrics))

    def value(self, score: float) -> float:
        return round(100 * score, 4) if self.percent else score

    def show(self, score: float) -> str:
        return f"{100 * score:.1f}{THIN}%" if self.percent else f"{score:.3f}"

    def difference(self, scores: float) -> str:
        """The absolute difference of two scores."""
        return counted(f"{abs(100 * scores):.1f}", "point") if self.percent else f"{abs(scores):.3f}"

    def between(self, low: float, high: float) -> str:
        return f"{self.show(low)} to {self.show(high)}"


def mean_scale(result: RunResult) -> Scale:
    """The scale of the mean score over all tasks of a run."""
    return Scale.of(*(task.metric for task in result.tasks.values()))


def metric_name(metric: str) -> str:
    """A metric in a sentence."""
    return METRICS.get(metric, metric)


def arm_name(arm: str) -> str:
    """A strategy in a sentence: random and auto are words, other names stay as they are."""
    return arm.lower() if arm in ("RANDOM", "AUTO") else arm


def strategy_name(arm: ArmResult) -> str:
    """The strategy of a run in a sentence, with those it was changed to while it ran."""
    return ", then ".join(map(arm_name, arm.strategies))


def amount(gain: float) -> str:
    """A gain with three significant digits."""
    return f"{gain:,.0f}" if abs(gain) >= 99.95 else f"{gain + 0.0:.3g}"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else "–"


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> str:
    """A number with as many decimals as it needs; other values as text."""
    if not is_number(value):
        return "–" if value is None or isinstance(value, float) else str(value)
    if value == round(value):
        return f"{value:,.0f}".replace("-", "−")
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}".rstrip("0").replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f}{THIN}%"


def counted(number: int | str, thing: str) -> str:
    """A number and a noun."""
    shown = f"{number:,}" if isinstance(number, int) else number
    return f"{shown} {thing}" if shown == "1" else f"{shown} {thing}s"


def listed(things: Sequence[str]) -> str:
    """A list in a sentence."""
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def round_phrase(round: int) -> str:
    """A round in a sentence."""
    return "the seed items" if round <= 0 else f"round {round}"


def sentence(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]
