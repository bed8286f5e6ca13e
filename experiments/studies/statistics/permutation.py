"""The paired test of the product, with a sign-flip permutation test beside it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bursar.comparison import paired
from bursar.comparison.paired import matched, t_test
from bursar.ragged import FloatArray

EXACT_UP_TO = 14  # pairs: up to here all sign flips are tried, beyond it a random sample
FLIPS = 9999


class PairedTest(paired.PairedTest):
    """How much higher the first is, and how sure that is."""

    permutation_p: float | None  # two-sided, by flipping signs
    pairs: int


def paired_test(a: ArrayLike, b: ArrayLike, cluster: Sequence[Hashable] | None = None, seed: int = 0) -> PairedTest:
    """The paired t-test of two arms, with a sign-flip permutation test beside it.

    The permutation test asks only that a difference would be as likely to have the other sign. It is exact up to 14
    observations; its smallest p is 2 / 2ⁿ, so it decides nothing below six.

    Pairs that share a seed or a domain rise and fall together. ``cluster`` says which do: then the mean difference of
    each cluster is one observation, however many pairs it has.

    >>> found = paired_test([0.8, 0.9, 0.7], [0.7, 0.6, 0.5])
    >>> [round(found[key], 3) for key in ("difference", "low", "high", "t", "p", "permutation_p")]
    [0.2, -0.048, 0.448, 3.464, 0.074, 0.25]
    """
    x, y = matched(a, b)
    gaps = cluster_means(x - y, cluster)
    found, flipped = t_test(gaps, float(np.abs([x, y]).max(initial=0))), None
    if found["p"] is not None:
        flipped = 1.0 if found["p"] == 1.0 else _sign_flip_p(gaps, seed)
    return PairedTest(**found, permutation_p=flipped, pairs=len(x))


def cluster_means(values: FloatArray, cluster: Sequence[Hashable] | None) -> FloatArray:
    """The mean of each cluster's values, clusters in the order in which they are met; the values if there are none."""
    if cluster is None:
        return values
    if len(cluster) != len(values):
        raise ValueError(f"every pair needs its cluster: {len(values)} pairs, {len(cluster)} clusters")
    members: dict[Hashable, list[float]] = {}
    for label, value in zip(cluster, values.tolist(), strict=True):
        members.setdefault(label, []).append(value)
    return np.array([np.mean(found) for found in members.values()])


def _sign_flip_p(gaps: FloatArray, seed: int) -> float:
    """The share of sign flips whose mean is as far from 0 as the one that was found."""
    n = len(gaps)
    found = abs(gaps.sum()) - 1e-12 * np.abs(gaps).sum()  # the same sum in another order is as far
    if n <= EXACT_UP_TO:
        # Flipping all signs changes no distance, so the first may stay as it is.
        signs = 1 - 2 * (np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1)
        return float(np.mean(np.abs(signs @ gaps) >= found))
    signs = 1 - 2 * np.random.default_rng(seed).integers(0, 2, (FLIPS, n))
    return float((1 + np.count_nonzero(np.abs(signs @ gaps) >= found)) / (1 + FLIPS))
