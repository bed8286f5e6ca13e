"""Should tasks be trained together? A law of joint models beside one of single tasks with as many labels.

>>> from bursar.laws import Effort, Observations, fit_law
>>> from bursar.laws.gains import expected_gain
>>> rng = np.random.default_rng(0)
>>> def model(n, tasks, ami, score):
...     related = {} if ami is None else {"ami": ami, "alpha": ami}
...     other = 0 if tasks == 1 else n
...     return related | {"n": n, "n_other": other, "tasks": tasks, "architecture": "shared", "seed": 0, "score": score}
>>> many = range(1000, 5000, 100)
>>> rows = [model(n, 1, None, 0.006 * n**0.5 + rng.normal(0, 0.005)) for n in many]
>>> rows += [model(n, 2, a, 0.008 * (a * n) ** 0.5 + rng.normal(0, 0.005)) for n in many for a in (0.1, 0.5, 0.9)]
>>> table, quick = Observations.of(rows), Effort(100, 10)
>>> joint = fit_law(table.averaged(), ["n", "ami"], effort=quick)
>>> single = fit_law(table.of_single_tasks().averaged(), ["n"], effort=quick)
>>> [expected_gain(joint, single, (ami, ami, ami), n=3000).verdict for ami in (0.2, 0.57, 0.8)]
['harms', 'cannot tell', 'helps']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bursar.errors import ConfigError
from bursar.laws.cards import Law, conformal
from bursar.ragged import FloatArray

NEAR = 0.01  # no AMI is known better than this
Verdict = Literal["helps", "harms", "cannot tell"]


@dataclass(frozen=True)
class Gain:
    """What joint training is expected to change of a task's score, and between what that may well lie."""

    together: float
    alone: float
    value: float
    low: float
    high: float
    level: float
    verdict: Verdict
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """How verdicts came out on the settings that were held out: how many there are, were decided, and were right."""

    settings: int
    decided: int
    right: int


def verdict_of(low: float, high: float) -> Verdict:
    """What an interval of a difference says.

    >>> verdict_of(0.01, 0.03), verdict_of(-0.03, -0.01), verdict_of(-0.01, 0.03)
    ('helps', 'harms', 'cannot tell')
    """
    return "helps" if low > 0 else "harms" if high < 0 else "cannot tell"


def expected_gain(joint: Law, single: Law, ami: tuple[float, float, float], **values: float) -> Gain:
    """What training together should change at a setting, such as ``n=5000, tasks=3``.

    ``ami`` is measured: a value between a low and a high one. The interval reaches from the lowest of the differences
    that these three lead to, to the highest, and by as much further to either side as the difference of the two laws
    was wrong on most of the settings that neither was fitted to. Outside the range of a law that says nothing, so the
    verdict there is that it cannot tell.
    """
    misses = gain_misses(joint, single)
    half = conformal(misses, joint.level)
    alone = single.predict(n=values["n"]).value
    related = [_inside(min(1.0, max(0.0, value)), joint) for value in ami]
    together = [joint.predict(**values, ami=value).value for value in related]
    gains = [value - alone for value in together]
    warnings = list(dict.fromkeys([*joint.outside(**values, ami=related[0]), *single.outside(n=values["n"])]))
    low, high = (-1.0, 1.0) if half is None else (min(gains) - half, max(gains) + half)
    verdict = "cannot tell" if warnings else verdict_of(low, high)
    if half is None:
        warnings.append(f"{len(misses)} held-out settings are too few for an interval at {joint.level:g}")
    return Gain(together[0], alone, gains[0], low, high, joint.level, verdict, tuple(warnings))


def _inside(ami: float, joint: Law) -> float:
    """As it is, or the end of the law's range that it is as good as at."""
    ends = joint.ranges.get("ami")
    if ends is None:
        return ami
    end = min(max(ami, ends.low), ends.high)
    return end if abs(end - ami) <= NEAR else ami


def gain_misses(joint: Law, single: Law) -> FloatArray:
    """On the joint law's held-out settings: the real difference from a single task, less the one that both expect."""
    real, expected = _gains(joint, single)
    return real - expected


def track_record(joint: Law, single: Law) -> Record:
    """How often a verdict on a held-out setting was right, and how often there was one."""
    real, expected = _gains(joint, single)
    half = conformal(real - expected, joint.level)
    decided = np.abs(expected) > half if half is not None else np.zeros(len(real), dtype=bool)
    right = decided & (np.sign(real) == np.sign(expected))
    return Record(len(real), int(decided.sum()), int(right.sum()))


def _gains(joint: Law, single: Law) -> tuple[FloatArray, FloatArray]:
    if single.variables != ("n",):
        raise ConfigError(
            f"the law of single tasks is one of {', '.join(single.variables)}",
            fix="fit it to single tasks: bursar laws fit TABLE --single --variables n",
        )
    rows = joint.held_out
    alone = np.array(rows.alone, dtype=float)
    if "n" not in rows.variables or not np.isfinite(alone).any():
        raise ConfigError(
            "the law says nothing of single tasks with as many labels",
            fix="fit it to a table that has models of one task beside the others",
        )
    known = np.isfinite(alone)
    n = _column(rows.variables["n"])[known]
    expected = _column(rows.predicted)[known] - single.formula.predict(n[:, None])
    return _column(rows.score)[known] - alone[known], expected


def _column(values: Sequence[float]) -> FloatArray:
    found: FloatArray = np.array(values, dtype=float)
    return found
