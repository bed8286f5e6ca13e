"""A family of comparisons: every arm against one, or every two arms, corrected for how many they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypedDict

import numpy as np

from bursar.comparison.paired import holm
from experiments.studies.statistics.permutation import PairedTest, paired_test

LEVEL = 0.05  # below this, a difference is taken to be one


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The mean over seeds and their standard deviation, ``None`` for one value.

    >>> spread([0.75, 0.25]), spread([0.75])
    ({'mean': 0.5, 'spread': 0.3535533905932738, 'seeds': 2}, {'mean': 0.75, 'spread': None, 'seeds': 1})
    """
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "spread": deviation, "seeds": len(values)}


class Compared(TypedDict):
    """One comparison of a family."""

    arm: str
    against: str
    test: PairedTest
    corrected_p: float | None  # of the t-test, by Holm over the family
    verdict: str  # the arm is "better", "worse", or it is "not decided"


def compare_all(
    scores: Mapping[str, Sequence[float]], against: str | None = None, cluster: Sequence[Hashable] | None = None
) -> list[Compared]:
    """Every arm against one, or every two arms, on the same cells in the same order; corrected for how many they are.

    >>> scores = {"MT-AVG": [0.81, 0.92, 0.73], "MT-MIN": [0.7, 0.8, 0.6], "RANDOM": [0.71, 0.83, 0.62]}
    >>> for found in compare_all(scores, against="RANDOM"):
    ...     print(found["arm"], round(found["test"]["p"], 4), round(found["corrected_p"], 4), found["verdict"])
    MT-AVG 0.0033 0.0066 better
    MT-MIN 0.0742 0.0742 not decided
    """
    if against is not None and against not in scores:
        raise ValueError(f"there is no arm {against!r} among {', '.join(scores)}")
    chosen = combinations(scores, 2) if against is None else ((arm, against) for arm in scores if arm != against)
    tests = {(arm, other): paired_test(scores[arm], scores[other], cluster) for arm, other in chosen}
    corrected = holm([test["p"] for test in tests.values()])
    return [
        Compared(arm=arm, against=other, test=test, corrected_p=p, verdict=_verdict(test["difference"], p))
        for ((arm, other), test), p in zip(tests.items(), corrected, strict=True)
    ]


def _verdict(difference: float | None, p: float | None) -> str:
    if difference is None or p is None or p >= LEVEL:
        return "not decided"
    return "better" if difference > 0 else "worse"
