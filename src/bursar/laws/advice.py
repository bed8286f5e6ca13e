"""Should tasks be trained together? A verdict for each task, from laws and existing labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.laws.cards import Law, conformal, packaged_laws
from bursar.laws.relatedness import Relatedness, relatedness
from bursar.ragged import FloatArray

EVEN = 1.25  # other tasks with up to this many times as many labels count as balanced
JOINT = ("balanced", "unbalanced")
NEAR = 0.01  # AMI is not known more precisely
Verdict = Literal["helps", "harms", "cannot tell"]


@dataclass(frozen=True)
class Laws:
    """The laws behind advice: those of joint models, by the name of their table, and one of single tasks."""

    joint: Mapping[str, Law]
    single: Law

    @classmethod
    def load(cls, folder: Path | None = None) -> Laws:
        """Load ``balanced.json``, ``single.json`` and, if present, ``unbalanced.json`` from a folder or the package."""
        single = Law.packaged("single", folder)
        joint = {name: Law.packaged(name, folder) for name in JOINT if name in ("balanced", *packaged_laws(folder))}
        return cls(joint, single)

    def named(self) -> dict[str, Law]:
        """All laws by the name of their table."""
        return {**self.joint, "single": self.single}


def advise(known: Corpus, units: Mapping[str, int], laws: Laws, *, seed: int = 0) -> dict[str, Any]:
    """Predict how joint training changes the score of each task, as JSON.

    The relatedness of the tasks is measured on the labelled items in ``known``; ``units`` is the number of words (or
    items) that models would be trained on, by task.
    """
    related = relatedness(known, seed=seed)
    advice = {name: _advice_for(name, related, units, laws, known) for name in related.tasks}
    records = {name: asdict(track_record(law, laws.single)) for name, law in laws.joint.items()}
    return {
        "tasks": advice,
        "pairs": [asdict(pair) | {"tasks": list(pair.tasks)} for pair in related.pairs],
        "left_out": dict(related.left_out),
        "level": related.level,
        "record": {name: records[name] for name in dict.fromkeys(entry["law"] for entry in advice.values())},
        "laws": {name: {"text": law.formula.text, "about": dict(law.about)} for name, law in laws.named().items()},
    }


def _advice_for(name: str, related: Relatedness, units: Mapping[str, int], laws: Laws, known: Corpus) -> dict[str, Any]:
    others = [units[other] for other in related.tasks if other != name]
    n, n_other = float(units[name]), float(np.mean(others))
    ami = related.of(name)
    law = "unbalanced" if n_other > EVEN * n and "unbalanced" in laws.joint else "balanced"
    gain = expected_gain(laws.joint[law], laws.single, ami, n=n, n_other=n_other, tasks=float(len(others) + 1))
    warnings, verdict = list(gain.warnings), gain.verdict
    if n_other * EVEN < n or (law == "balanced" and n_other > EVEN * n):
        warnings.append(
            f"the other tasks have {n_other:,.0f} labels on average and this one {n:,.0f}: no law covers that"
        )
        verdict = "cannot tell"
    kinds = laws.joint[law].about.get("kinds")
    kind = known.schema[name].kind
    if kinds and kind not in kinds:
        warnings.append(f"the law was learned from {' and '.join(kinds)}, and this is {kind}")
    return {
        "n": int(n),
        "n_other": round(n_other),
        "ami": dict(zip(("value", "low", "high"), ami, strict=True)),
        "law": law,
        "together": gain.together,
        "alone": gain.alone,
        "gain": {"value": gain.value, "low": gain.low, "high": gain.high, "level": gain.level},
        "verdict": verdict,
        "warnings": warnings,
    }


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
    """The verdict for an interval of the gain: the sign of all of it."""
    return "helps" if low > 0 else "harms" if high < 0 else "cannot tell"


def expected_gain(joint: Law, single: Law, ami: tuple[float, float, float], **values: float) -> Gain:
    """The expected gain at a setting, such as ``n=5000, tasks=3``.

    ``ami`` is a measured value with the ends of its interval. The interval of the gain covers the gains at all three,
    extended to both sides by the conformal error of the difference of the two laws on held-out settings. Outside the
    range of a law the verdict is "cannot tell".
    """
    real, expected = _gains(joint, single)
    misses = real - expected
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
