"""Should tasks be trained together? A verdict for each task, from laws and existing labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.laws.cards import Law, packaged_laws
from bursar.laws.gains import expected_gain, track_record
from bursar.laws.relatedness import Relatedness, relatedness

EVEN = 1.25  # other tasks with up to this many times as many labels count as balanced
JOINT = ("balanced", "unbalanced")


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

    def about(self) -> dict[str, Any]:
        """Describe the laws."""
        return {name: {"text": law.formula.text, "about": dict(law.about)} for name, law in self.named().items()}

    def named(self) -> dict[str, Law]:
        """All laws by name."""
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
        "laws": laws.about(),
    }


def _advice_for(name: str, related: Relatedness, units: Mapping[str, int], laws: Laws, known: Corpus) -> dict[str, Any]:
    others = [units[other] for other in related.tasks if other != name]
    n, n_other = float(units[name]), float(np.mean(others))
    ami = related.of(name)
    law = "unbalanced" if n_other > EVEN * n and "unbalanced" in laws.joint else "balanced"
    gain = expected_gain(laws.joint[law], laws.single, ami, n=n, n_other=n_other, tasks=float(len(others) + 1))
    warnings, verdict = list(gain.warnings), gain.verdict
    uneven = n_other * EVEN < n or (law == "balanced" and n_other > EVEN * n)
    if uneven:
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
