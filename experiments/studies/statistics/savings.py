"""What was saved against random at the end of either curve, and over cells or clusters of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypedDict

import numpy as np

from bursar.campaign.curves import Curve
from bursar.comparison import paired
from bursar.comparison.paired import Saving, mean_saving, risen, saving
from experiments.studies.statistics.permutation import cluster_means


class Savings(TypedDict):
    """What was saved at the scores that the two ended with."""

    at_arm_end: Saving
    at_random_end: Saving


def saved(curve: Curve, random_curve: Curve) -> Savings:
    """The share of the money that an arm saved against random at equal score, at the end of either curve.

    ``at_arm_end`` asks what random would need for the score that the arm ends with, ``at_random_end`` what the arm
    needed for that of random. Curves are first made to rise by isotonic regression: lucky and unlucky rounds are noise.
    A curve's end costs all that was spent on it; a lower score costs the money that first reaches it.

    Where random never reaches the arm's end, "at least" so much was saved; that is 0 when both spent the same. An arm
    that starts above the score needs less than it started with, so again "at least"; the reverse is "at most".
    """
    mine, other = risen(curve), risen(random_curve)
    at_arm_end, at_random_end = (saving(mine, other, float(scores[-1])) for _, scores in (mine, other))
    return Savings(at_arm_end=at_arm_end, at_random_end=at_random_end)


class SavedInterval(paired.SavedInterval):
    """The share of the money saved over cells or clusters, with a 95 % interval, and how it was found."""

    cells: int
    ahead: int  # cells in which random never reaches the arm's end
    behind: int  # cells in which the arm never reaches random's end
    at_least: int  # cells that could only be counted with the least that was saved
    at_most: int


def saved_interval(
    curves: Sequence[Curve], random_curves: Sequence[Curve], seed: int = 0, cluster: Sequence[Hashable] | None = None
) -> SavedInterval:
    """As that of the product, with the means of ``cluster``s as observations."""
    pairs = [saved(mine, other) for mine, other in zip(curves, random_curves, strict=True)]
    if not pairs:
        raise ValueError("there is no cell to tell savings from")
    cells = [min(pair["at_arm_end"], pair["at_random_end"], key=lambda saving: saving["score"]) for pair in pairs]
    ends = [(pair["at_arm_end"]["score"], pair["at_random_end"]["score"]) for pair in pairs]
    ratios = cluster_means(np.log([cell["money"] / cell["random_money"] for cell in cells]), cluster)
    return SavedInterval(
        **mean_saving(ratios, seed),
        cells=len(cells),
        ahead=sum(mine > other for mine, other in ends),
        behind=sum(mine < other for mine, other in ends),
        at_least=sum(cell["bound"] == "at least" for cell in cells),
        at_most=sum(cell["bound"] == "at most" for cell in cells),
    )
