"""Results that several units of a study stand on: made by whoever needs them first, found by all others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bursar.campaign.folder import Lock
from bursar.compute import ResultStore, address
from experiments.studies.arms import Place


def kept(
    work: Callable[..., Any], unit: Mapping[str, Any], place: Place, make: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """The result of a unit as it is stored, or else what ``make`` finds for its address; others wait for it.

    ``work`` is whose result it is: a unit of the study itself, or a part that several of its units have in common.
    """
    where = address(partial(work, place=place), unit)
    store = ResultStore(place.runs / "results")
    found: dict[str, Any] | None = store.get(where)
    if found is not None:
        return found
    lock = Lock(place.runs / "locks" / f"{where}.lock", patience=math.inf)
    try:
        found = store.get(where)
        if found is None:
            found = store.put(where, dict(unit), make(where))
        return found
    finally:
        lock.release()
