"""Laws to ship with the package, from what the study of laws found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bursar.laws.cards import Law
from bursar.laws.fitting import fit_law
from bursar.laws.observations import Observations
from bursar.laws.regression import Effort


def packed(
    fits: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, Observations],
    about: Mapping[str, Any],
    *,
    effort: Effort | None = None,
) -> dict[str, Law]:
    """Cards by name: of every fit the law of the most variables as it was found, and a law of single tasks.

    ``fits`` are descriptions of laws by the name of their table; ``tables`` are all models by the same names, and
    ``single`` those of one task. Each card is told how single tasks did with as many labels as its held-out settings,
    and where all of it came from. Settings of single tasks are few, so every seed is a row of its own there.
    """
    alone = tables["single"].averaged()
    by_n = dict(zip(alone.variables["n"].tolist(), alone.score.tolist(), strict=True))
    found = {}
    for name, descriptions in fits.items():
        law = Law.from_json(max(descriptions.values(), key=lambda told: len(told["variables"])))
        beside = tuple(by_n.get(n, float("nan")) for n in law.held_out.variables["n"])
        found[name] = replace(
            law,
            held_out=replace(law.held_out, alone=beside),
            about=dict(law.about) | dict(about) | {"table": name, "models": len(tables[name])},
        )
    rows = tables["single"].averaged(by_seed=True)
    more = {"table": "single", "models": len(tables["single"]), "by_seed": True}
    found["single"] = fit_law(rows, ["n"], effort=effort, about=dict(about) | more)
    return found
