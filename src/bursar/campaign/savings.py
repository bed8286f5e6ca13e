"""Estimates the savings of a strategy against random labelling, from models trained on random items only.

Seed items and audit slices are a random sample, and every round trains a second model, the shadow, on them alone.
Errors of both kinds of model fall roughly as powers of money. Extrapolated to all the money, the shadows' errors show
what random labelling would have reached; the savings follow from the money at which the strategy's own curve had that
error. In logarithms this is a Bayesian linear regression with five coefficients: random's error at the end, the gap to
the strategy's, both exponents, and a bend. Shadows are small and errors noisy, so the coefficients have priors, from
campaigns on development sets (study ``audit``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bursar.campaign.audit import Slice, Tasks, audit_slices
from bursar.campaign.curves import RANDOM, compare, curves_of
from bursar.campaign.decisions import RoundRecord, ShadowScores
from bursar.campaign.results import RunResult, SavedShare, SavingsEstimate
from bursar.campaign.state import START
from bursar.ledger import Ledger
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.random_streams import rng

FEWEST_ITEMS = 20  # for an error that means anything
A_LOT = 0.25  # of the money, saved or lost
DRAWS = 4000
LEAST_ERROR = 0.01  # an error of 0 on a few items is luck, and has no logarithm
LEAST_SHARE = 1 / 12  # of the money: the error of a smaller shadow cannot be extrapolated
LEAST_EXPONENT = 0.05  # a curve that does not fall says nothing about money
MOST_LOST = -9.0  # ten times random's cost: there are no data further out
CHOSEN = ("strategy", START)  # purposes in the ledger for which items are selected, not drawn
TEST = 0  # the sample of test items; slices have the numbers of their rounds
Row = tuple[float, float, float, float, int, int]  # of ``Points``, in the order of its fields


class Prior(NamedTuple):
    """The prior of log errors: means and standard deviations."""

    exponent: tuple[float, float] = (0.25, 0.12)  # of random's curve
    difference: tuple[float, float] = (0.0, 0.03)  # from random's exponent to the strategy's
    gap: tuple[float, float] = (0.03, 0.15)  # from the strategy's log error to random's, with all the money
    bend: tuple[float, float] = (0.01, 0.04)  # of both curves: most flatten a little
    luck: float = 0.05  # of training on 60 items or more: the items drawn, the initial weights
    spread: float = 0.5  # an error's variance relative to that of a share: tasks and units average out
    alike: float = 0.7  # correlation of two models' errors on the same items


PRIOR = Prior()


@dataclass(frozen=True, eq=False)
class Points:
    """Errors of models of both kinds, (points,) each."""

    money: FloatArray  # spent on the items that the model was trained on
    items: FloatArray
    chosen: FloatArray  # share of that money spent by the strategy, relative to the last model's share
    error: FloatArray  # 1 − the mean score of the tasks
    sample: IntArray  # the sample that it was measured on
    measured: FloatArray  # items in the sample

    def __len__(self) -> int:
        return len(self.money)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Points:
        columns = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        money, items, chosen, error, sample, measured = columns
        return cls(money, items, chosen, error, sample.astype(int), measured)

    @property
    def mine(self) -> BoolArray:
        return self.chosen > 0

    def take(self, which: BoolArray) -> Points:
        return Points(**{name: column[which] for name, column in vars(self).items()})


class Belief(NamedTuple):
    """A normal distribution over random's log error, the gap, random's exponent, the difference and the bend."""

    mean: FloatArray  # (5,)
    covariance: FloatArray  # (5, 5)


@dataclass(frozen=True)
class ScoredRound:
    """A round's scores, and the money spent until then: in all, and on items that the strategy selected."""

    round: int
    spent: int
    chosen: int
    items: int
    test: Mapping[str, Mapping[str, float]]


def savings_of(ledger: Ledger, tasks: Tasks, test_items: int) -> SavingsEstimate | None:
    """The savings of a campaign, from its ledger; see ``savings``."""
    shadows = ledger.decisions(ShadowScores)
    return savings(scored_rounds(ledger), shadows, audit_slices(ledger, tasks), tasks, test_items)


def scored_rounds(ledger: Ledger) -> list[ScoredRound]:
    """The rounds that have scores."""
    lines = [line for line in ledger.spending() if line.purpose in CHOSEN]
    return [
        ScoredRound(r.round, r.spent, sum(line.actual for line in lines if line.round <= r.round), r.items, r.test)
        for r in ledger.decisions(RoundRecord)
    ]


def savings(
    rounds: Sequence[ScoredRound],
    shadows: Sequence[ShadowScores],
    slices: Sequence[Slice],
    tasks: Tasks,
    test_items: int,
) -> SavingsEstimate | None:
    """The share of the money saved, on test items if there are any, else on slices; ``None`` if too little is known."""
    if not rounds or not rounds[0].spent:
        return None
    spent, begun = float(rounds[-1].spent), float(rounds[0].spent)
    last = rounds[-1].chosen / spent
    if not last:
        return None
    if test_items and rounds[-1].test:
        rows = _on_test_items(rounds, shadows, tasks, test_items)
    else:
        rows = _on_slices(slices, tasks, spent / rounds[-1].items)
    points = Points.of(rows) if rows else None
    found = None if points is None else savings_by(replace(points, chosen=points.chosen / last), spent, begun)
    return found and found.model_copy(update={"items": sum(map(_size, slices)), "slices": len(slices)})


def savings_by(points: Points, spent: float, begun: float) -> SavingsEstimate | None:
    """The same from errors of models, and the money spent in all and at the start."""
    points = points.take(points.mine | (points.money >= LEAST_SHARE * spent))
    if not points.mine.any():
        return None
    low, middle, high = interval_of(predict_proba(points, spent), begun / spent)
    known = is_known(low, high)
    needed = None if known else labels_needed(points, spent, begun)
    return SavingsEstimate(saved=middle, low=low, high=high, known=known, needed=needed)


def saved_against_random(result: RunResult) -> SavedShare | None:
    """The share saved: by the test curves if random was run, else by the audit; ``None`` for random itself."""
    if result.strategy == RANDOM:
        return None
    curves = curves_of(result)
    if result.strategy in curves and RANDOM in curves:
        compared = compare(curves[result.strategy], curves[RANDOM])
        if compared is not None:
            return SavedShare(share=compared.saved, by="curves")
    found = result.main.savings
    if found is None:
        return SavedShare(by="audit")
    share = found.saved if is_known(found.low, found.high) else None
    return SavedShare(share=share, low=found.low, high=found.high, by="audit", needed=found.needed)


def is_known(low: float, high: float) -> bool:
    """Whether an interval is informative: it must not contain both nothing and a lot, saved or lost."""
    return not low <= 0 <= high or -A_LOT < low <= high < A_LOT


# -- errors of models ------------------------------------------------------------------------------------------------
def _on_test_items(
    rounds: Sequence[ScoredRound], shadows: Sequence[ShadowScores], tasks: Tasks, items: int
) -> list[Row]:
    """Every round's model, and its shadow unless all items were random, when both are the same."""
    rows: list[Row] = []
    for record in rounds:
        error = 1 - float(np.mean([record.test[name][task.metric] for name, task in tasks.items()]))
        rows.append((record.spent, record.items, record.chosen / record.spent, error, TEST, items))
    chosen = {record.round: record.chosen for record in rounds}
    for shadow in shadows:
        if chosen[shadow.round]:
            error = 1 - float(np.mean([shadow.test[name] for name in tasks]))
            rows.append((shadow.spent, shadow.items, 0.0, error, TEST, items))
    return rows


def _on_slices(slices: Sequence[Slice], tasks: Tasks, price: float) -> list[Row]:
    """The errors of both models on consecutive slices, pooled until they have enough items."""
    rows: list[Row] = []
    group: list[Slice] = []
    for part in slices:
        if part.spent and part.shadow and part.shadow_spent and _size(part):
            group.append(part)
        if sum(map(_size, group)) < FEWEST_ITEMS:
            continue
        sizes = np.array([_size(part) for part in group], dtype=float)
        paid = np.array([(part.spent, part.shadow_spent) for part in group], dtype=float)
        chosen = float(np.average(1 - paid[:, 1] / paid[:, 0], weights=sizes))
        for k, share in enumerate((chosen, 0.0) if chosen else (0.0,)):
            money = float(np.exp(np.average(np.log(paid[:, k]), weights=sizes)))
            tallies = [(part.model, part.shadow or {})[k] for part in group]
            scores = [task.score(sum(t[name].sum(axis=0) for t in tallies)) for name, task in tasks.items()]
            rows.append((money, money / price, share, 1 - float(np.mean(scores)), group[-1].round, int(sizes.sum())))
        group = []
    return rows


def _size(part: Slice) -> int:
    return min(map(len, part.model.values()))


def noise_of(points: Points, spent: float, prior: Prior = PRIOR) -> FloatArray:
    """The covariance of log errors, (points, points): from the items measured on, and from those trained on.

    Errors on the same items are correlated, and so are models of one kind, as each round adds to the training items of
    the last. Random's expected error is wanted, but the strategy's last model is given: its luck is not noise.
    """
    same_sample = points.sample[:, None] == points.sample
    error = np.clip(points.error, LEAST_ERROR, 1 - LEAST_ERROR)
    share = np.sqrt(prior.spread * (1 - error) / (error * points.measured))
    measuring = np.outer(share, share) * np.where(same_sample, prior.alike, 0.0)
    np.fill_diagonal(measuring, share**2)
    luck = prior.luck * np.maximum(60 / points.items, 1) ** 0.3
    common = np.minimum.outer(points.money, points.money) / np.maximum.outer(points.money, points.money)
    last = np.where(points.mine, points.money / spent, 0.0)
    alike = np.where(points.mine[:, None] == points.mine, common - np.outer(last, last), 0.0)
    drawing = np.outer(luck, luck) * alike
    found: FloatArray = measuring + drawing + 1e-6 * np.eye(len(points))
    return found


# -- the regression --------------------------------------------------------------------------------------------------
def predict_proba(points: Points, spent: float, prior: Prior = PRIOR) -> Belief:
    """Bayesian linear regression of log errors on log money, which is 0 at the end of the campaign.

    The gap is proportional to the share of the money spent by the strategy.
    """
    at = np.log(points.money / spent)
    design = np.stack([np.ones(len(at)), -points.chosen, -at, -at * points.mine, at**2], axis=1)
    mean, spread = np.array([(-1.0, 5.0), prior.gap, prior.exponent, prior.difference, prior.bend]).T
    weights = np.linalg.inv(noise_of(points, spent, prior))
    covariance = np.linalg.inv(np.diag(spread**-2) + design.T @ weights @ design)
    log_error = np.log(np.maximum(points.error, LEAST_ERROR))
    return Belief(covariance @ (mean / spread**2 + design.T @ weights @ log_error), covariance)


def interval_of(belief: Belief, begun: float) -> tuple[float, float, float]:
    """The 5 %, 50 % and 95 % quantiles of the share saved; ``begun`` is the share of the money spent on the start."""
    draws = rng(0, "savings interval").multivariate_normal(belief.mean, belief.covariance, DRAWS)
    gap, exponent, mine = draws[:, 1], draws[:, 2], draws[:, 2] + draws[:, 3]
    ahead = 1 - np.maximum(np.exp(-gap / np.maximum(mine, LEAST_EXPONENT)), begun)
    behind = 1 - np.exp(np.minimum(-gap / np.maximum(exponent, LEAST_EXPONENT), np.log(1 - MOST_LOST)))
    low, middle, high = np.quantile(np.where(gap > 0, ahead, behind), [0.05, 0.5, 0.95]).tolist()
    return low, middle, high


def labels_needed(points: Points, spent: float, begun: float) -> int | None:
    """How many audit labels would tell a lot from nothing, by simulating larger slices; ``None`` if unaffordable."""
    mean, chosen = predict_proba(points, spent).mean, points.take(points.mine)
    mean[1] = -np.log(1 - A_LOT) * max(mean[2] + mean[3], LEAST_EXPONENT)  # as if a lot had been saved
    price, rounds = spent / points.items.max(), len(chosen)
    start = float(points.money[~points.mine & (points.money <= begun)].max(initial=0.0))
    for count in np.geomspace(10, max(spent / price, 11), 60):
        money = start + count * price * np.arange(1, rounds + 1) / rounds
        if money[-1] > spent:
            break
        error = np.exp(mean[0] - mean[2] * np.log(money / spent))
        sample, measured = chosen.sample, chosen.measured
        if (sample != TEST).any():
            sample, measured = np.arange(1, rounds + 1), np.full(rounds, count / rounds)
        shadows = Points(money, money / price, np.zeros(rounds), error, sample, measured)
        mine = replace(chosen, sample=sample, measured=measured)
        both = Points(*(np.concatenate(c) for c in zip(vars(mine).values(), vars(shadows).values(), strict=True)))
        both = both.take(both.mine | (both.money >= LEAST_SHARE * spent))
        if interval_of(Belief(mean, predict_proba(both, spent).covariance), begun / spent)[0] > 0:
            return int(np.ceil(count))
    return None
