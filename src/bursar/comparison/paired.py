"""Two arms on the same cells (a data set and a seed, say): is one better, and is that more than luck?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bursar.ragged import FloatArray

EXACT_UP_TO = 14  # observations whose signs are flipped in all ways; of more, so many random ways
FLIPS = 9999


class PairedTest(TypedDict):
    """How much higher the first is, and how sure that is."""

    difference: float | None  # the mean of the first less the second; None without a pair
    low: float | None  # 95 % confidence interval by Student's t
    high: float | None
    t: float | None  # None also where all differences are the same, and t without a bound
    p: float | None  # two-sided
    permutation_p: float | None  # two-sided, by flipping signs
    n: int  # observations: pairs, or clusters of them
    pairs: int


def paired_test(a: ArrayLike, b: ArrayLike, cluster: Sequence[Hashable] | None = None, seed: int = 0) -> PairedTest:
    """The paired t-test of two arms, with a sign-flip permutation test beside it.

    The permutation test asks less: only that a difference would be as likely to have the other sign. It is exact up to
    14 observations; of ``n`` the smallest p that it can give is 2 / 2ⁿ, so it decides nothing below six.

    Pairs that share a seed or a domain rise and fall together. ``cluster`` says which do: then the mean difference of
    each cluster is one observation, however many pairs it has.

    >>> found = paired_test([0.8, 0.9, 0.7], [0.7, 0.6, 0.5])
    >>> [round(found[key], 3) for key in ("difference", "low", "high", "t", "p", "permutation_p")]
    [0.2, -0.048, 0.448, 3.464, 0.074, 0.25]
    >>> paired_test([0.8, 0.9, 0.7, 0.7], [0.7, 0.6, 0.5, 0.5], cluster=["atis", "atis", "snips", "snips"])["n"]
    2
    """
    x, y = _matched(a, b)
    pairs, noise = len(x), 8 * np.finfo(float).eps * np.abs([x, y]).max(initial=0)
    gaps = cluster_means(x - y, cluster)
    n = len(gaps)
    mean = float(gaps.mean()) if n else None
    if mean is None or n < 2:
        return PairedTest(difference=mean, low=None, high=None, t=None, p=None, permutation_p=None, n=n, pairs=pairs)
    if np.all(np.abs(gaps) <= noise):
        return PairedTest(difference=0.0, low=0.0, high=0.0, t=0.0, p=1.0, permutation_p=1.0, n=n, pairs=pairs)
    flipped = _sign_flip_p(gaps, seed)
    deviation = float(gaps.std(ddof=1))
    if deviation <= noise:
        return PairedTest(difference=mean, low=mean, high=mean, t=None, p=0.0, permutation_p=flipped, n=n, pairs=pairs)
    error = deviation / n**0.5
    reach = float(special.stdtrit(n - 1, 0.975)) * error
    return PairedTest(
        difference=mean,
        low=mean - reach,
        high=mean + reach,
        t=mean / error,
        p=float(2 * special.stdtr(n - 1, -abs(mean / error))),
        permutation_p=flipped,
        n=n,
        pairs=pairs,
    )


def _matched(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"pairs need two lists of the same length, not of shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"pair {int(np.flatnonzero(~np.isfinite(x + y))[0])} has a score that is not a finite number")
    return x, y


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


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values made larger for having looked at all of them (Holm 1979), in their order.

    The smallest of m is multiplied by m, the next by m − 1 and so on, and none may end below a smaller one. Rejecting
    where the result is below 0.05 then errs anywhere in the family in at most 5 % of studies. ``None`` is no test: it
    stays, and the others are not corrected for it.

    >>> holm([0.5, 0.01, None, 0.02])
    [0.5, 0.03, None, 0.04]
    """
    known = [(p, at) for at, p in enumerate(p_values) if p is not None]
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for before, (p, at) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - before) * p))
        corrected[at] = highest
    return corrected
