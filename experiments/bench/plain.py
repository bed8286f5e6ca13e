"""Strategies as a script would write them with what is at hand: nothing is spared, and nothing is looked at lazily."""

from __future__ import annotations

from itertools import islice

import moocore
import numpy as np
from scipy.stats import rankdata

from bursar.ragged import FloatArray, IntArray


def pareto(confidence: FloatArray, wanted: int) -> IntArray:
    """MT-PAR by the rank of every point, which moocore gives; the last front is thinned along the first task."""
    rank = moocore.pareto_rank(confidence)
    order = np.lexsort((confidence[:, 0], rank))
    last = rank[order[wanted - 1]]
    whole, front = order[rank[order] < last], order[rank[order] == last]
    missing = wanted - len(whole)
    picks: IntArray = np.concatenate([whole, front[:: len(front) // missing][:missing]])
    return picks


def fused_ranks(confidence: FloatArray, wanted: int) -> IntArray:
    """MT-RRF by scipy's ranks, ties to the first."""
    fused = (1 / (60 + rankdata(confidence, method="ordinal", axis=0))).sum(axis=1)
    picks: IntArray = np.argsort(-fused, kind="stable")[:wanted]
    return picks


def independent(confidence: FloatArray, wanted: int) -> IntArray:
    """MT-IND with sorted lists and a set: each task's next few, again and again while tasks want the same items."""
    rankings = [np.argsort(column, kind="stable").tolist() for column in confidence.T]
    taken: set[int] = set()
    while len(taken) < wanted:
        share, more = divmod(wanted - len(taken), len(rankings))
        new: set[int] = set()
        for task, ranking in enumerate(rankings):
            rest = (item for item in ranking if item not in taken)
            new.update(islice(rest, share + (task < more)))
        taken |= new
    return np.array(sorted(taken))


def batch_bald(probabilities: FloatArray, wanted: int, seed: int = 0, samples: int = 1000) -> IntArray:
    """BatchBALD (Kirsch et al. 2019, section 3.3) on (passes, items, labels): every item is scored at every pick.

    All configurations of the picks' labels are followed while there are at most ``samples``, then a sample of them.
    """
    rng = np.random.default_rng(seed)
    passes = len(probabilities)
    alone = -(probabilities * np.log(probabilities)).sum(axis=2).mean(axis=0)  # (items,) what no pass knows
    joint: FloatArray = np.ones((1, passes))  # the probability of each configuration in each pass
    drawn = None  # which pass each configuration was drawn from, once there are too many
    picks: list[int] = []
    for _ in range(wanted):
        score = _joint_entropies(joint, probabilities, drawn is not None) - alone
        score[picks] = -np.inf
        best = int(score.argmax())
        picks.append(best)
        labels = probabilities[:, best]  # (passes, labels)
        if drawn is None and len(joint) * labels.shape[1] <= samples:
            joint = (joint[:, None, :] * labels.T).reshape(-1, passes)
            continue
        new = picks[-1:]
        if drawn is None:
            drawn, joint, new = np.repeat(np.arange(passes), samples // passes), np.ones((1, passes)), picks
        for item in new:
            running = np.cumsum(probabilities[drawn, item], axis=1)
            label = (running < rng.random(len(drawn))[:, None] * running[:, -1:]).sum(axis=1)
            joint = joint * probabilities[:, item, label].T
    return np.array(picks)


def _joint_entropies(joint: FloatArray, probabilities: FloatArray, sampled: bool, block: int = 100) -> FloatArray:
    """The entropy of the picks' labels and each item's: (items,)."""
    passes, items, labels = probabilities.shape
    found = np.empty(items)
    before = joint.mean(axis=1, keepdims=True)
    for start in range(0, items, block):
        part = probabilities[:, start : start + block]
        together = joint @ part.reshape(passes, -1) / passes  # (configurations, block · labels)
        weight = together / before / len(joint) if sampled else together
        found[start : start + block] = -(weight * np.log(together)).sum(axis=0).reshape(-1, labels).sum(axis=1)
    return found


def information(probabilities: FloatArray, picks: IntArray, draws: int = 20_000, seed: int = 0) -> float:
    """What the labels of picks tell about which pass they come from, in nats: at most the log of their number."""
    rng = np.random.default_rng(seed)
    passes = len(probabilities)
    drawn = rng.integers(0, passes, draws)
    logs = np.zeros((draws, passes))
    for item in picks:
        running = np.cumsum(probabilities[drawn, item], axis=1)
        label = (running < rng.random(draws)[:, None] * running[:, -1:]).sum(axis=1)
        logs += np.log(probabilities[:, item, label].T)
    logs -= logs.max(axis=1, keepdims=True)
    posterior = np.exp(logs)
    posterior /= posterior.sum(axis=1, keepdims=True)
    left = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=1)
    return float(np.log(passes) - left.mean())
