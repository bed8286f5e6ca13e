"""Numbers as a reader wants them: money, scores, counts and lists in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bursar.tasks import CostModel

THIN = "\u202f"  # narrow no-break space: a number and its sign stay together

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
    """Whole units as money.

    >>> Money(Decimal("0.01"), "€").show(123456), Money(Decimal(1), "").show(2512)
    ('€1,234.56', '2,512 units')
    """

    unit: Decimal
    currency: str

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Money:
        costs = result["config"]["costs"]
        return cls(Decimal(str(costs["unit"])), costs["currency"])

    def show(self, units: int) -> str:
        """An amount that can stand in a sentence."""
        return self.brief(units) if self.currency else f"{self.brief(units)} units"

    def brief(self, units: int) -> str:
        """An amount for a table, where the heading says what it is."""
        return CostModel({}, {}, self.unit, self.currency).show(units)

    def average(self, units: float, count: int) -> str:
        """What one of several cost.

        >>> Money(Decimal(1), "").average(100, 8), Money(Decimal(1), "").average(0, 0)
        ('12.5', '–')
        """
        if not count:
            return "–"
        amount = self.amount(units / count)
        digits = max(1, -int(self.unit.normalize().as_tuple().exponent))
        return f"{self.currency}{amount:,.{min(2, digits) if amount >= 0.1 else digits}f}"

    def amount(self, units: float) -> float:
        """For the axis of a chart."""
        return float(units) * float(self.unit)


@dataclass(frozen=True)
class Scale:
    """How a score is written: as a percentage, or as the number that it is.

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
        """How far apart two scores are, whichever is higher."""
        return counted(f"{abs(100 * scores):.1f}", "point") if self.percent else f"{abs(scores):.3f}"


def metric_name(metric: str) -> str:
    """A metric as a sentence says it."""
    return METRICS.get(metric, metric)


def arm_name(arm: str) -> str:
    """A strategy as a sentence says it: names stay as they are, random and auto are words."""
    return arm.lower() if arm in ("RANDOM", "AUTO") else arm


def strategy_name(result: Mapping[str, Any]) -> str:
    """The strategy of a run as a sentence says it, with those that it was changed to while it ran.

    >>> changed = {"strategy": "RANDOM", "arms": {"RANDOM": {"strategies": ["RANDOM", "MT-AVG", "MT-MAX"]}}}
    >>> strategy_name(changed)
    'random and then MT-AVG and then MT-MAX'
    """
    return " and then ".join(map(arm_name, result["arms"][result["strategy"]]["strategies"]))


def amount(gain: float) -> str:
    """A gain as short as it says enough.

    >>> amount(1493.2), amount(16.4321), amount(0.0)
    ('1,493', '16.4', '0')
    """
    return f"{gain:,.0f}" if abs(gain) >= 99.95 else f"{gain + 0.0:.3g}"


def share(part: float, whole: float) -> str:
    """A part of a whole, if there is one.

    >>> share(3, 1500), share(1, 0)
    ('0.2 %', '–')
    """
    return f"{100 * part / whole:.1f} %" if whole > 0 else "–"


def percent(share: float) -> str:
    """A share in whole percent.

    >>> percent(0.314)
    '31\u202f%'
    """
    return f"{100 * share:.0f}{THIN}%"


def counted(number: int | str, thing: str) -> str:
    """A number of things.

    >>> counted(1, "item"), counted(1200, "item"), counted("1.0", "point")
    ('1 item', '1,200 items', '1.0 points')
    """
    shown = f"{number:,}" if isinstance(number, int) else number
    return f"{shown} {thing}" if shown == "1" else f"{shown} {thing}s"


def listed(things: Sequence[str]) -> str:
    """Things in a row.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def sentence(text: str) -> str:
    """With a capital, whatever it begins with."""
    return text[:1].upper() + text[1:]
