"""Should tasks be trained together? Compares a law of joint models with one of single tasks.

>>> from bursar.laws import Effort, FitSettings, Observations, fit_law
>>> from bursar.laws.gains import expected_gain
>>> rng = np.random.default_rng(0)
>>> def model(n, tasks, ami, score):
...     related = {} if ami is None else {"ami": ami, "alpha": ami}
...     other = 0 if tasks == 1 else n
...     return related | {"n": n, "n_other": other, "tasks": tasks, "architecture": "shared", "seed": 0, "score": score}
>>> many = range(1000, 5000, 100)
>>> rows = [model(n, 1, None, 0.006 * n**0.5 + rng.normal(0, 0.005)) for n in many]
>>> rows += [model(n, 2, a, 0.008 * (a * n) ** 0.5 + rng.normal(0, 0.005)) for n in many for a in (0.1, 0.5, 0.9)]
>>> table, quick = Observations.of(rows), FitSettings(effort=Effort(100, 10))
>>> joint = fit_law(table.averaged(), ["n", "ami"], quick)
>>> single = fit_law(table.of_single_tasks().averaged(), ["n"], quick)
>>> [expected_gain(joint, single, (ami, ami, ami), n=3000).verdict for ami in (0.2, 0.57, 0.8)]
['harms', 'cannot tell', 'helps']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bursar.errors import ConfigError
from bursar.laws.cards import Law, conformal
from bursar.ragged import FloatArray

NEAR = 0.01  # AMI is not known more precisely
Verdict = Literal["helps", "harms", "cannot tell"]


@dataclass(frozen=True)
class Gain:
    """The expected change of a task's score by joint training, with an interval."""

    together: float
    alone: float
    value: float
    low: float
    high: float
    level: float
    verdict: Verdict
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrackRecord:
    """The number of held-out settings, of those with a verdict, and of right verdicts."""

    settings: int
    decided: int
    right: int


def verdict_of(low: float, high: float) -> Verdict:
    """The verdict for an interval of the gain.

    >>> verdict_of(0.01, 0.03), verdict_of(-0.03, -0.01), verdict_of(-0.01, 0.03)
    ('helps', 'harms', 'cannot tell')
    """
    return "helps" if low > 0 else "harms" if high < 0 else "cannot tell"


def expected_gain(joint: Law, single: Law, ami: tuple[float, float, float], **values: float) -> Gain:
    """The expected gain at a setting, such as ``n=5000, tasks=3``.

    ``ami`` is a measured value with the ends of its interval. The interval of the gain covers the gains at all three,
    extended to both sides by the conformal error of the difference of the two laws on held-out settings. Outside the
    range of a law the verdict is "cannot tell".
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
    """The value, or the end of the law's range if it is practically equal."""
    ends = joint.ranges.get("ami")
    if ends is None:
        return ami
    end = min(max(ami, ends.low), ends.high)
    return end if abs(end - ami) <= NEAR else ami


def gain_misses(joint: Law, single: Law) -> FloatArray:
    """Real minus expected gain on the held-out settings of the joint law."""
    real, expected = _gains(joint, single)
    return real - expected


def track_record(joint: Law, single: Law) -> TrackRecord:
    """How often there was a verdict on a held-out setting, and how often it was right."""
    real, expected = _gains(joint, single)
    half = conformal(real - expected, joint.level)
    decided = np.abs(expected) > half if half is not None else np.zeros(len(real), dtype=bool)
    right = decided & (np.sign(real) == np.sign(expected))
    return TrackRecord(len(real), int(decided.sum()), int(right.sum()))


def _gains(joint: Law, single: Law) -> tuple[FloatArray, FloatArray]:
    """Real and expected gains on the held-out settings with a known score of a single task."""
    if single.variables != ("n",):
        raise ConfigError(
            f"the law of single tasks has the variables {', '.join(single.variables)} instead of n",
            fix="fit it to single tasks: bursar laws fit TABLE --single --variables n",
        )
    rows = joint.held_out
    alone = np.array(rows.alone, dtype=float)
    known = np.isfinite(alone)
    if "n" not in rows.variables or not known.any():
        raise ConfigError(
            "the law has no scores of single tasks with as many labels",
            fix="fit it to a table that also has single-task models",
        )
    n, score, predicted = (np.array(some)[known] for some in (rows.variables["n"], rows.score, rows.predicted))
    return score - alone[known], predicted - single.formula.predict(n[:, None])
