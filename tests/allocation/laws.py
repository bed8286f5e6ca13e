"""Laws that are known."""

from __future__ import annotations

from bursar.laws.cards import GrowthRate, HeldOut, Law, Range
from bursar.laws.expressions import Formula


def law_of(formula, miss=0.001, **ranges):
    """A law of these variables, each with its range, that was wrong by so much on two rows."""
    names = tuple(ranges)
    held = HeldOut({name: (low, high) for name, (low, high) in ranges.items()}, (0.5, 0.6), (0.5 + miss, 0.6 - miss))
    return Law(
        formula=Formula.parse(formula, names),
        origin="a test",
        ranges={name: Range(low, (low + high) / 2, high) for name, (low, high) in ranges.items()},
        rates={name: GrowthRate(None, False, 0.0, 0.0, None) for name in names},
        held_out=held,
        scaling={},
        baselines={},
        front=(),
    )
