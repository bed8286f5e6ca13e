"""Should these tasks be trained together? From labels that are there already, and laws, to a verdict a task."""

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

EVEN = 1.25  # other tasks with so many times as many labels still count as balanced
JOINT = ("balanced", "unbalanced")


@dataclass(frozen=True)
class Laws:
    """What advice is read off: laws of joint models, by the name of their table, and one of single tasks."""

    joint: Mapping[str, Law]
    single: Law

    @classmethod
    def load(cls, folder: Path | None = None) -> Laws:
        """From a folder with ``balanced.json``, ``single.json`` and, if it is there, ``unbalanced.json``.

        Without a folder, those that come with the package.
        """
        single = Law.packaged("single", folder)
        joint = {name: Law.packaged(name, folder) for name in JOINT if name in ("balanced", *packaged_laws(folder))}
        return cls(joint, single)

    def about(self) -> dict[str, Any]:
        """Which laws these are, for readers."""
        return {name: {"text": law.formula.text, "about": dict(law.about)} for name, law in self.named().items()}

    def named(self) -> dict[str, Law]:
        return {**self.joint, "single": self.single}


def advise(known: Corpus, units: Mapping[str, int], laws: Laws, *, seed: int = 0) -> dict[str, Any]:
    """What training the tasks of a corpus together should change for each, as JSON.

    ``known`` are items with labels, from which it is measured how related the tasks are; ``units`` are how many words
    (or items) the models would be trained on, by task.
    """
    related = relatedness(known, seed=seed)
    told = {name: _advised(name, related, units, laws, known) for name in related.tasks}
    records = {name: asdict(track_record(law, laws.single)) for name, law in laws.joint.items()}
    return {
        "tasks": told,
        "pairs": [asdict(pair) | {"tasks": list(pair.tasks)} for pair in related.pairs],
        "left_out": dict(related.left_out),
        "level": related.level,
        "record": {name: records[name] for name in dict.fromkeys(entry["law"] for entry in told.values())},
        "laws": laws.about(),
    }


def _advised(name: str, related: Relatedness, units: Mapping[str, int], laws: Laws, known: Corpus) -> dict[str, Any]:
    others = [units[other] for other in related.tasks if other != name]
    n, n_other = float(units[name]), float(np.mean(others))
    ami = related.of(name)
    law = "unbalanced" if n_other > EVEN * n and "unbalanced" in laws.joint else "balanced"
    gain = expected_gain(laws.joint[law], laws.single, ami, n=n, n_other=n_other, tasks=float(len(others) + 1))
    warnings, verdict = list(gain.warnings), gain.verdict
    uneven = n_other * EVEN < n or (law == "balanced" and n_other > EVEN * n)
    if uneven:
        warnings.append(
            f"the other tasks have {n_other:,.0f} labels on average and this one {n:,.0f}: no law is of that"
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
