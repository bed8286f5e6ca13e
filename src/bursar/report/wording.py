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
    """Amounts in whole units, as money.

    >>> Money(Decimal("0.01"), "€").show(123456), Money(Decimal(1), "").show(2512)
    ('€1,234.56', '2,512 units')
    """

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
        """Cost per item.

        >>> Money(Decimal(1), "").average(100, 8), Money(Decimal(1), "").average(0, 0)
        ('12.5', '–')
        """
        if not count:
            return "–"
        amount = self.amount(units / count)
        digits = max(1, -int(self.unit.normalize().as_tuple().exponent))
        return f"{self.currency}{amount:,.{min(2, digits) if amount >= 0.1 else digits}f}"

    def amount(self, units: float) -> float:
        return float(units) * float(self.unit)


@dataclass(frozen=True)
class Scale:
    """How to write a score: as a percentage, or as a plain number.

    >>> Scale.of("f1").show(0.7234), Scale.of("pearson").show(0.7234)
    ('72.3\u202f%', '0.723')
    >>> Scale.of("f1").difference(-0.0134), Scale.of("pearson").difference(0.05)
    ('1.3 points', '0.050')
    """

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
    """The strategy of a run in a sentence, with those it was changed to while it ran.

    >>> strategy_name(ArmResult(strategies=("RANDOM", "MT-AVG", "MT-MAX")))
    'random, then MT-AVG, then MT-MAX'
    """
    return ", then ".join(map(arm_name, arm.strategies))


def amount(gain: float) -> str:
    """A gain with three significant digits.

    >>> amount(1493.2), amount(16.4321), amount(0.0)
    ('1,493', '16.4', '0')
    """
    return f"{gain:,.0f}" if abs(gain) >= 99.95 else f"{gain + 0.0:.3g}"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent.

    >>> share(3, 1500), share(1, 0)
    ('0.2 %', '–')
    """
    return f"{100 * part / whole:.1f} %" if whole > 0 else "–"


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> str:
    """A number with as many decimals as it needs; other values as text.

    >>> number(89.026), number(0.0114), number(1500), number(1234.56), number("MT-R"), number(None)
    ('89.03', '0.0114', '1,500', '1,234.6', 'MT-R', '–')
    """
    if not is_number(value):
        return "–" if value is None or isinstance(value, float) else str(value)
    if value == round(value):
        return f"{value:,.0f}".replace("-", "−")
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}".rstrip("0").replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """A share in percent.

    >>> percent(0.314), percent(0.314, 1)
    ('31\u202f%', '31.4\u202f%')
    """
    return f"{100 * share:.{digits}f}{THIN}%"


def counted(number: int | str, thing: str) -> str:
    """A number and a noun.

    >>> counted(1, "item"), counted(1200, "item"), counted("1.0", "point")
    ('1 item', '1,200 items', '1.0 points')
    """
    shown = f"{number:,}" if isinstance(number, int) else number
    return f"{shown} {thing}" if shown == "1" else f"{shown} {thing}s"


def listed(things: Sequence[str]) -> str:
    """A list in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def round_phrase(round: int) -> str:
    """A round in a sentence.

    >>> round_phrase(0), round_phrase(3)
    ('the seed items', 'round 3')
    """
    return "the seed items" if round <= 0 else f"round {round}"


def sentence(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]
