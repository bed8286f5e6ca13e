"""The named strategies: each combines a few functions of this package. The guide on extending Bursar adds one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bursar.errors import SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.selection.candidates import Candidates, Selection
from bursar.selection.combine import average, fronts, maximum, minimum, reciprocal_rank_fusion, shares, thin_front
from bursar.selection.cover import cover_items, cover_labels, coverages_of
from bursar.selection.diversify import BatchScores, badge, batch_bald, k_center
from bursar.selection.spend import greedy_by_confidence, spend_joint
from bursar.selection.strategy import FAMILIES, STRATEGIES, Strategy, scoring_strategy, strategy
from bursar.tasks import Beliefs
from bursar.uncertainty import bald, length_confidence

OWN_BALD_WEIGHT = 1e-3  # of an item's own BALD besides that of the batch


# -- paper 1, Table 1 ------------------------------------------------------------------------------------------------
@strategy("RANDOM", "items at random (paper 1's MT-R)", needs_model=False, handles_limits=True)
def random(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
    """MT-R."""
    return replace(spend_joint(pool, rng.random(len(pool)), budget, "greedy"), certificate=None)


STRATEGIES.add("MT-R", replace(STRATEGIES["RANDOM"], name="MT-R", summary="items at random"))
STRATEGIES.add(
    "ST-R", replace(STRATEGIES["RANDOM"], name="ST-R", summary="items at random, every task trained alone", alone=True)
)


def average_doubt(pool: Candidates) -> FloatArray:
    """Score items by 1 − the average confidence over the tasks."""
    return 1 - average(pool.confidence, pool.weights)


scoring_strategy("MT-AVG", "lowest average confidence over the tasks", weighted=True)(average_doubt)
scoring_strategy("MT-AVGDA", "lowest average dropout agreement", measure="dropout-agreement", weighted=True)(
    average_doubt
)
scoring_strategy("MT-MAX", "lowest maximum confidence: unsure of every task")(lambda pool: 1 - maximum(pool.confidence))
scoring_strategy("MT-MIN", "lowest minimum confidence: unsure of some task")(lambda pool: 1 - minimum(pool.confidence))
scoring_strategy("MT-RRF", "reciprocal rank fusion of the tasks' rankings", weighted=True)(
    lambda pool: reciprocal_rank_fusion(pool.confidence, pool.weights)
)


@strategy("MT-PAR", "Pareto fronts of the tasks' confidences", weighted=True)
def pareto(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """MT-PAR: buy one front after another; thin the front that does not fit along the first task (errata 5, 6)."""
    price, first_task = pool.joint_price(budget), pool.confidence[:, 0]
    cheapest, left = int(price.min()), budget
    bought: list[IntArray] = []
    for front in fronts(pool.confidence, pool.weights):
        if left < cheapest:
            break
        ordered = thin_front(front, first_task, len(front))
        affordable = greedy_by_confidence(ordered, price, left)
        if len(affordable) < len(front):
            affordable = greedy_by_confidence(thin_front(front, first_task, len(affordable)), price, left)
        bought.append(affordable)
        left -= int(price[affordable].sum())
    return np.concatenate([np.zeros(0, dtype=np.int64), *bought])


@strategy("MT-IND", "each task's least confident items, from its own share of the budget", weighted=True)
def independent(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """MT-IND: split the budget by weight, and split again what is left where tasks want the same item (errata 7)."""
    price = pool.joint_price(budget)
    weights = np.ones(len(pool.tasks)) if pool.weights is None else pool.weights
    rankings = [pool.ranking(column) for column in pool.confidence.T]
    bought: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    taken, left = np.zeros(len(pool), dtype=bool), budget
    while True:
        wanted = [
            greedy_by_confidence(ranking[~taken[ranking]], price, share)
            for ranking, share in zip(rankings, shares(left, weights).tolist(), strict=True)
        ]
        mentioned = np.concatenate(wanted)
        new = mentioned[np.sort(np.unique(mentioned, return_index=True)[1])]
        if not len(new):
            break
        taken[new] = True
        left -= int(price[new].sum())
        bought.append(new)
    heaviest = rankings[int(weights.argmax())]
    return np.concatenate([*bought, greedy_by_confidence(heaviest[~taken[heaviest]], price, left)])


for family, about, traits in (
    ("MT-EC", "lowest confidence in one task", {}),
    ("MT-DA", "lowest dropout agreement in one task", {"measure": "dropout-agreement"}),
    ("ST-EC", "lowest confidence in one task, every task trained alone", {"alone": True}),
    ("ST-DA", "lowest dropout agreement, every task trained alone", {"alone": True, "measure": "dropout-agreement"}),
    ("STCS", "lowest confidence in one task, all tasks annotated at the joint cost (paper 1, section 7)", {}),
):
    FAMILIES.add(family, Strategy(family, about, **traits))


# -- paper 1, section 7 ----------------------------------------------------------------------------------------------
def label_by_label(pool: Candidates) -> FloatArray:
    """Score every label by its uncertainty."""
    return 1 - pool.confidence


scoring_strategy("UDJS", "any item for any of the tasks (unrestricted disjoint sets)", mode="disjoint")(label_by_label)
scoring_strategy("EQB-DJS", "each task buys from an equal share (equal-budget disjoint sets)", mode="equal")(
    label_by_label
)


# -- paper 4 and related work ----------------------------------------------------------------------------------------
for name, measure, about in (
    ("MAX-ENT", "entropy", "highest entropy"),
    ("LEAST-CONF", "least-confidence", "lowest probability of the likeliest label"),
    ("MARGIN", "margin", "smallest margin between the two likeliest labels"),
    ("BALD", "bald", "highest mutual information between label and model"),
    (
        "VARIATION-RATIO",
        "variation-ratio",
        "disagreement of the dropout passes (what paper 4's code calls BALD for intents: errata 27)",
    ),
    ("MIN-CONF", "sequence", "lowest joint probability of the likeliest labels"),
    ("NORM-MIN-CONF", "normalised-sequence", "lowest joint probability, normalised by length"),
):
    scoring_strategy(name, f"{about}, averaged over tasks", measure=measure, weighted=True)(average_doubt)
    FAMILIES.add(name, Strategy(name, f"{about}, of one task", measure=measure))


@scoring_strategy("LONGEST", "the longest items first", needs_model=False, needs=frozenset({"words"}))
def longest(pool: Candidates) -> FloatArray:
    """Paper 4's longest-first heuristic."""
    return 1 - length_confidence(pool.features.require("words"))


@strategy("K-CENTER", "items far from each other and from labelled items", needs=frozenset({"vectors"}))
def k_center_items(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """The greedy k-centre of Sener and Savarese (2018) on the encoder's features."""
    centres = pool.features.labelled.vectors
    return k_center(pool.features.require("vectors"), pool.joint_price(budget), budget, centres=centres)


@strategy("BADGE", "large and diverse gradients (BADGE)", weighted=True, needs=frozenset({"vectors", "beliefs"}))
def badge_items(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """BADGE, with an item's gradient taken as its vector times the mean residual of its units."""
    beliefs = pool.features.require("beliefs")
    residuals = [_residuals(beliefs[task], pool.confidence[:, at]) for at, task in enumerate(pool.tasks)]
    vectors = pool.features.require("vectors")
    if pool.weights is not None:
        residuals = [np.sqrt(weight) * each for weight, each in zip(pool.weights, residuals, strict=True)]
    return badge(vectors, residuals, pool.joint_price(budget), budget, rng)


@scoring_strategy("MT-SUM", "largest total uncertainty over units and tasks", weighted=True, needs=frozenset({"doubt"}))
def total_doubt(pool: Candidates) -> FloatArray:
    """Sum over the units of an item, so that long items are worth more than short ones."""
    doubt: FloatArray = pool.features.require("doubt")
    return len(pool.tasks) * _weighted(pool, doubt)


@scoring_strategy(
    "MT-SHARE", "MT-SUM with every task scaled to the same total", weighted=True, needs=frozenset({"doubt"})
)
def share_of_doubt(pool: Candidates) -> FloatArray:
    """Scale each task to a sum of 1, so that tasks count equally however many units they have."""
    doubt = pool.features.require("doubt")
    return _weighted(pool, doubt / np.maximum(doubt.sum(axis=0), 1e-300))


def _weighted(pool: Candidates, value: FloatArray) -> FloatArray:
    """The weighted mean over the tasks: (items, tasks) to (items,)."""
    return value.mean(axis=1) if pool.weights is None else value @ pool.weights


@strategy(
    "COVER",
    "items whose units are near uncertain units that no label is near yet, over all tasks",
    weighted=True,
    handles_limits=True,
    needs=frozenset({"units"}),
)
def cover(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
    """Cover the uncertainty of units (see module ``cover``): buy items for all tasks they are open for."""
    return cover_items(pool, coverages_of(pool, rng), budget, rng)


@strategy(
    "COVER-LABELS",
    "COVER label by label: each item for the tasks that are worth their price",
    mode="disjoint",
    weighted=True,
    handles_limits=True,
    needs=frozenset({"units"}),
)
def cover_by_label(pool: Candidates, budget: int, rng: np.random.Generator) -> Selection:
    """Cover the uncertainty of units (see module ``cover``): buy items for any of their tasks."""
    return cover_labels(pool, coverages_of(pool, rng), budget, rng)


AUTO = "AUTO"
STRATEGIES.add(
    AUTO,
    replace(
        STRATEGIES["COVER"],
        name=AUTO,
        summary="the default: a start that covers the pool, then COVER",
        start="cover",
        fallback="MT-AVG",
    ),
)


@strategy(
    "BATCHBALD",
    "high mutual information of the batch as a whole",
    measure="bald",
    weighted=True,
    needs=frozenset({"beliefs"}),
    one_label=True,
)
def batch_mutual_information(pool: Candidates, budget: int, rng: np.random.Generator) -> IntArray:
    """BatchBALD (Kirsch et al. 2019) on tasks with one label per item; other tasks add each item's own BALD.

    Once the information of a batch, bounded by the passes, is used up, items rank by their own BALD.
    """
    beliefs = pool.features.require("beliefs")
    weights = np.full(len(pool.tasks), 1 / len(pool.tasks)) if pool.weights is None else pool.weights
    passes, of, extra = [], [], np.zeros(len(pool))
    for at, task in enumerate(pool.tasks):
        found, alone = _one_label(beliefs[task]), weights[at] * (1 - bald(beliefs[task]))
        extra += alone if found is None else OWN_BALD_WEIGHT * alone
        if found is not None:
            passes.append(found)
            of.append(at)
    if not passes:
        raise SelectionError(
            "BATCHBALD needs a task with one label per item, such as a classification", fix="use BALD instead"
        )
    return batch_bald(BatchScores(passes, weights[of], extra), pool.joint_price(budget), budget, rng)


def _one_label(beliefs: object) -> FloatArray | None:
    """Probabilities as (passes, items, labels) if every item has one unit with the same labels."""
    if not isinstance(beliefs, Beliefs) or not (beliefs.units == 1).all() or np.ptp(np.diff(beliefs.choices)) > 0:
        return None
    return beliefs.values.reshape(beliefs.passes, len(beliefs.units), -1).astype(np.float64)


def _residuals(beliefs: object, confidence: FloatArray) -> FloatArray:
    """The mean over an item's units of probability minus one-hot prediction: (items, labels).

    Where units have no common labels (heads of words, numbers) the residual is 1 − confidence: (items, 1).
    """
    if not isinstance(beliefs, Beliefs) or not len(beliefs.choices) > 1 or np.ptp(np.diff(beliefs.choices)) > 0:
        return (1 - confidence)[:, None]
    p = beliefs.values.mean(axis=0).reshape(len(beliefs.choices) - 1, -1).astype(np.float64)
    p[np.arange(len(p)), p.argmax(axis=1)] -= 1
    sums = np.zeros((len(beliefs.units), p.shape[1]))
    filled = np.flatnonzero(beliefs.units)
    if len(filled):
        sums[filled] = np.add.reduceat(p, beliefs.offsets[:-1][filled])
    means: FloatArray = sums / np.maximum(beliefs.units, 1)[:, None]
    return means
