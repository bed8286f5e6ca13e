"""Estimates what a strategy saved against random labelling, from models that are trained on random items alone.

No campaign spends all its money twice. But random seed items and audit slices are a random sample, and every round
trains a second model, the shadow, on them alone. Errors of either kind of model fall about as powers of money. So
the shadows' errors, continued to all the money, say what random labelling would have reached; and where the strategy's
own curve had that error, less money was enough. In logarithms this is a linear regression with five coefficients:
random's error at the end, the gap to the strategy's, both exponents, and a bend. The way from a shadow's money to all
the money is long and errors are noisy, so the coefficients have priors, taken from campaigns on development sets (study
``audit``). The posterior is a normal distribution, and its interval is as wide as what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bursar.campaign.audit import Slice, audit_slices
from bursar.campaign.curves import saved_at_equal_money
from bursar.campaign.decisions import RoundRecord, ShadowScores
from bursar.campaign.results import RunResult, SavedShare, SavingsEstimate
from bursar.campaign.state import START
from bursar.ledger import Ledger
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.tasks import Task

FEWEST_ITEMS = 20  # for an error that means anything
A_LOT = 0.25  # of the money, saved or lost
DRAWS = 4000
LEAST_ERROR = 0.01  # an error of 0 on a few items is luck, and has no logarithm
LEAST_SHARE = 1 / 12  # of the money: from a shadow of fewer items there is no telling where its curve goes
LEAST_EXPONENT = 0.05  # a curve that does not fall says nothing about money
MOST_LOST = -9.0  # random would need a tenth: further out there are no data
RANDOM = "RANDOM"
CHOSEN = ("strategy", START)  # purposes of a ledger for which items are chosen, not drawn
TEST = 0  # the sample of test items; slices have the numbers of their rounds
Row = tuple[float, float, float, float, int, int]  # of ``Points``, in the order of its fields


class Prior(NamedTuple):
    """What is believed of log errors before a campaign is looked at: means and standard deviations."""

    exponent: tuple[float, float] = (0.25, 0.12)  # of random's curve
    difference: tuple[float, float] = (0.0, 0.03)  # from random's exponent to the strategy's
    gap: tuple[float, float] = (0.03, 0.15)  # from the strategy's log error to random's, with all the money
    bend: tuple[float, float] = (0.01, 0.04)  # of both curves: most flatten a little
    luck: float = 0.05  # of one training on 60 items or more: which items were drawn, where training began
    spread: float = 0.5  # of an error's variance, relative to that of a share: tasks and parts of items average out
    alike: float = 0.7  # correlation of two models' errors on the same items


PRIOR = Prior()


@dataclass(frozen=True, eq=False)
class Points:
    """Errors of models of both kinds, (points,) each."""

    money: FloatArray  # spent on the items that the model was trained on
    items: FloatArray
    chosen: FloatArray  # share of that money for which the strategy chose, as a part of the last model's share
    error: FloatArray  # 1 − the mean score of the tasks
    sample: IntArray  # which items it was measured on
    measured: FloatArray  # and how many those are

    def __len__(self) -> int:
        return len(self.money)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Points:
        """From rows in the order of the fields."""
        money, items, chosen, error, sample, measured = (np.array(column) for column in zip(*rows, strict=True))
        money, items, chosen, error, measured = (c.astype(np.float64) for c in (money, items, chosen, error, measured))
        return cls(money, items, chosen, error, sample, measured)

    @property
    def mine(self) -> BoolArray:
        """Which of them are the strategy's."""
        return self.chosen > 0

    def take(self, which: BoolArray) -> Points:
        """Some of the points."""
        return Points(**{name: column[which] for name, column in vars(self).items()})


class Belief(NamedTuple):
    """A normal distribution over random's log error, the gap, random's exponent, the difference and the bend."""

    mean: FloatArray  # (5,)
    covariance: FloatArray  # (5, 5)


@dataclass(frozen=True)
class ScoredRound:
    """A round's scores, and what had been spent until then: in all, and on items that the strategy chose."""

    round: int
    spent: int
    chosen: int
    items: int
    test: Mapping[str, Mapping[str, float]]


def savings_of(ledger: Ledger, tasks: Mapping[str, Task], test_items: int) -> SavingsEstimate | None:
    """What a campaign saved, from its ledger; see ``savings``."""
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
    tasks: Mapping[str, Task],
    test_items: int,
) -> SavingsEstimate | None:
    """The share of the money saved against random labelling, with a 90 % interval; ``None`` if too little is known.

    Of the money ``spent`` until each round, so much went to ``chosen`` items. Models are compared on the test items if
    there are any, else on the audit slices. ``known`` says whether that tells anything, see ``is_known``. If it does
    not, ``needed`` is about how many audit labels would; ``None`` where the campaign's money buys too few.
    """
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
    """The same from errors of models, with what was spent in all and at the start."""
    points = points.take(points.mine | (points.money >= LEAST_SHARE * spent))
    if not points.mine.any():
        return None
    low, middle, high = interval_of(predict_proba(points, spent), begun / spent)
    known = is_known(low, high)
    needed = None if known else labels_needed(points, spent, begun)
    return SavingsEstimate(saved=middle, low=low, high=high, known=known, needed=needed)


def saved_against_random(result: RunResult) -> SavedShare | None:
    """The one number of a run's result: the ``share`` saved, ``None`` where it is not known; none for random itself.

    It is read off the ``curves`` where random ran beside the strategy and both were tested, and is the ``audit``'s
    estimate otherwise.
    """
    if result.strategy == RANDOM:
        return None
    measured = _by_curves(result)
    if measured is not None:
        return SavedShare(share=measured, by="curves")
    found = result.main.savings
    if found is None:
        return SavedShare(by="audit")
    share = found.saved if is_known(found.low, found.high) else None
    return SavedShare(share=share, low=found.low, high=found.high, by="audit", needed=found.needed)


def _by_curves(result: RunResult) -> float | None:
    """By the mean over tasks on test items. Who ended higher cannot have needed more: then it is about as much."""
    curves = []
    for arm in (result.strategy, RANDOM):
        rounds = result.arms[arm].tested if arm in result.arms else []
        if not rounds:
            return None
        scores = [np.mean([r.test[name][metric] for name, metric in result.metrics.items()]) for r in rounds]
        curves.append(([float(r.spent) for r in rounds], scores))
    found = saved_at_equal_money(*curves)
    if found is None:
        return None
    most = min(money[-1] for money, _ in curves)
    gain = np.subtract(*(np.interp(most, money, score) for money, score in curves))
    return found["saved"] if found["saved"] * gain > 0 else 0.0


def is_known(low: float, high: float) -> bool:
    """Whether an interval says anything: it does not if it holds both nothing and a lot, saved or lost.

    >>> is_known(0.05, 0.6), is_known(-0.1, 0.15), is_known(-0.1, 0.4)
    (True, True, False)
    """
    return not low <= 0 <= high or -A_LOT < low <= high < A_LOT


# -- errors of models ------------------------------------------------------------------------------------------------
def _on_test_items(
    rounds: Sequence[ScoredRound], shadows: Sequence[ShadowScores], tasks: Mapping[str, Task], items: int
) -> list[Row]:
    """Every round's model, and its shadow unless that is the same one: all there was then was random."""
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


def _on_slices(slices: Sequence[Slice], tasks: Mapping[str, Task], price: float) -> list[Row]:
    """The errors of both models on slices, one after the other taken together until they hold items enough."""
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
    """The covariance of log errors, (points, points): from the items to measure on, and from those to learn from.

    Models that are measured on the same items err on the same ones. Models of one kind share the items they learned
    from, as every round adds to the last. The luck of random's models is noise: the question is what random labelling
    gives on average. The strategy's last model is what it is, so luck is what the earlier ones differ from it by.
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


# -- what follows from them ------------------------------------------------------------------------------------------
def predict_proba(points: Points, spent: float, prior: Prior = PRIOR) -> Belief:
    """Bayesian linear regression of log errors on log money, which is 0 at the end of the campaign.

    The gap grows with the share of the money for which the strategy chose: there is none where all items are random.

    >>> rows = [(m, m / 10, 1.0, 8 * m**-0.5, TEST, 9999) for m in (1000, 2000, 4000)]
    >>> rows += [(m, m / 10, 0.0, 10 * m**-0.5, TEST, 9999) for m in (1000, 2000, 3000)]
    >>> round(float(np.exp(predict_proba(Points.of(rows), 4000).mean[1])), 2)  # random's error over the strategy's
    1.25
    """
    at = np.log(points.money / spent)
    design = np.stack([np.ones(len(at)), -points.chosen, -at, -at * points.mine, at**2], axis=1)
    mean, spread = np.array([(-1.0, 5.0), prior.gap, prior.exponent, prior.difference, prior.bend]).T
    weights = np.linalg.inv(noise_of(points, spent, prior))
    covariance = np.linalg.inv(np.diag(spread**-2) + design.T @ weights @ design)
    log_error = np.log(np.maximum(points.error, LEAST_ERROR))
    return Belief(covariance @ (mean / spread**2 + design.T @ weights @ log_error), covariance)


def interval_of(belief: Belief, begun: float) -> tuple[float, float, float]:
    """The 5 %, 50 % and 95 % quantiles of the share saved; ``begun`` is the share of the money that came first.

    Ahead of random, the strategy had random's last error when it had spent less. Behind, random would have had the
    strategy's. Either is read off the curve of the one that is ahead.
    """
    draws = np.random.default_rng(0).multivariate_normal(belief.mean, belief.covariance, DRAWS)
    gap, exponent, mine = draws[:, 1], draws[:, 2], draws[:, 2] + draws[:, 3]
    ahead = 1 - np.maximum(np.exp(-gap / np.maximum(mine, LEAST_EXPONENT)), begun)
    behind = 1 - np.exp(np.minimum(-gap / np.maximum(exponent, LEAST_EXPONENT), np.log(1 - MOST_LOST)))
    low, middle, high = np.quantile(np.where(gap > 0, ahead, behind), [0.05, 0.5, 0.95]).tolist()
    return low, middle, high


def labels_needed(points: Points, spent: float, begun: float) -> int | None:
    """About how many audit labels tell a lot from nothing in a campaign like this; ``None`` if its money buys too few.

    The same rounds are imagined with slices of more and more items, each round's shadow trained on those so far.
    """
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
        both = joined(replace(chosen, sample=sample, measured=measured), shadows)
        both = both.take(both.mine | (both.money >= LEAST_SHARE * spent))
        if interval_of(Belief(mean, predict_proba(both, spent).covariance), begun / spent)[0] > 0:
            return int(np.ceil(count))
    return None


def joined(some: Points, others: Points) -> Points:
    """The points of both."""
    return Points(*(np.concatenate(both) for both in zip(vars(some).values(), vars(others).values(), strict=True)))
