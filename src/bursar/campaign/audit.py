"""The audit slice: random items bought every round, so that scores are honest and savings can be told.

Items that a strategy picks are unlike the pool, and what it leaves is unlike it too. So a random part of the pool is
set aside before the campaign begins, the strategy never sees it, and every round buys a few items of it, a number that
is fixed beforehand. The model of a round answers for its slice before the slice's labels are known: a plain average
over slices is an unbiased score. The labels then join the training set; nothing is wasted.

What was saved against random is read off a second model, the shadow, trained on random items alone (the seed items
and the slices so far) and asked about the same slices. Both errors are taken to fall as powers of money with one
exponent, ``error = a · (c · money)^−b`` with ``c = 1`` for the shadow; ``c`` is how much random labelling a unit of the
strategy's money was worth, and ``1 − 1/c`` is the share of the money that it saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.corpus import Corpus
from bursar.ledger import Ledger
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import Task

DRAWS = 2000
FEWEST_ITEMS = 20  # to say anything about savings
FEWEST_SLICES = 3
FEWEST_FOR_INTERVAL = 10  # resampling fewer items than this says nothing
LEAST_ERROR = 0.005  # an error of 0 on a few items is luck, and has no logarithm


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """The items set aside, in the random order in which they are bought."""

    reserve: IntArray
    count: int  # items a round

    @classmethod
    def of(cls, config: CampaignConfig, corpus: Corpus, pool: IntArray, typical_price: float) -> AuditPlan:
        """Draw the reserve: as many items as the share of the money buys at a typical price, at least one a round.

        ``pool`` is what the seed items leave: they are random too, so what they leave is as good as all.
        """
        rounds, share, money = config.budget.rounds, config.audit.share, config.budget.per_round
        if config.strategy.make().once:  # all rounds in one
            rounds, money = min(rounds, 1), money * rounds
        elif config.audit.rounds is not None:  # more than there will be, unless the budget is raised
            rounds = config.audit.rounds
        if share == 0 or rounds == 0:
            return cls(np.zeros(0, dtype=np.int64), 0)
        typical = 1.0 if config.budget.counts == "items" else typical_price * float(config.costs.unit)
        count = max(1, round(share * money / max(typical, 1e-9)))
        count = min(count, len(pool) // (2 * rounds))
        order = pool[np.argsort(corpus.id_ranks[pool])]
        rng = np.random.default_rng([config.seed, 17])
        return cls(rng.permutation(order)[: count * rounds], count)

    def slice(self, round: int) -> IntArray:
        """The items of one round's slice; rounds count from 1."""
        return self.reserve[(round - 1) * self.count : round * self.count]

    def outside_reserve(self, pool: IntArray) -> IntArray:
        """What the strategy may choose from."""
        return np.setdiff1d(pool, self.reserve)


@dataclass(frozen=True, eq=False)
class Slice:
    """One round's audit: what was spent before it, and the tallies of its items for both models."""

    round: int
    spent: int
    shadow_spent: int | None
    model: Mapping[str, FloatArray]  # task to (items, counts)
    shadow: Mapping[str, FloatArray] | None


def audit_slices(ledger: Ledger, tasks: Mapping[str, Task]) -> list[Slice]:
    """The slices that have been answered, with both models' tallies; what was declined or given up is left out."""
    spent = {number: record["spent"] for number, record in ledger.decisions("scores")}
    declined = {(skip.round, skip.item) for skip in ledger.skips()}
    closed = set(ledger.decided("closed"))
    found = []
    for number, guesses in ledger.decisions("guesses"):
        known = set(ledger.bought(number, ("audit",)))
        waiting = [item for item in guesses["ids"] if item not in known and (number, item) not in declined]
        if not known or (waiting and number not in closed):
            continue  # the round is still open
        gold = ledger.view(guesses["ids"])
        both = {}
        for which in ("model", "shadow"):
            if which in guesses:
                both[which] = {name: _tally(tasks[name], gold, guesses["ids"], guesses[which][name]) for name in tasks}
        found.append(Slice(number, spent[number - 1], guesses.get("shadow_spent"), both["model"], both.get("shadow")))
    return found


def _tally(task: Task, gold: Corpus, ids: Sequence[str], values: Sequence[Any]) -> FloatArray:
    """The tallies of the items whose label still stands; one may have been taken back since."""
    guess = dict(zip(ids, values, strict=True))
    known = np.flatnonzero(gold.labels[task.name].present)
    rows = [task.encode(guess[gold.ids[at]], int(gold.words[at])) for at in known.tolist()]
    return task.tally(gold.labels[task.name].rows.take(known), Ragged.of(rows, task.width, task.dtype))


def audit_scores(slices: Sequence[Slice], tasks: Mapping[str, Task], seed: int = 0) -> list[dict[str, Any]]:
    """Per slice, each task's score, with a 90 % bootstrap interval where there are items enough for one."""
    rng = np.random.default_rng(seed)
    rows = []
    for part in slices:
        scores = {}
        for name, tally in part.model.items():
            low = high = None
            if len(tally) >= FEWEST_FOR_INTERVAL:
                low, high = np.quantile(tasks[name].score(_resampled(tally, rng)), [0.05, 0.95]).tolist()
            scores[name] = {"score": float(tasks[name].score(tally.sum(axis=0))), "low": low, "high": high}
        items = max(len(tally) for tally in part.model.values())
        rows.append({"round": part.round - 1, "spent": part.spent, "items": items, "scores": scores})
    return rows


def savings(slices: Sequence[Slice], tasks: Mapping[str, Task], seed: int = 0) -> dict[str, Any] | None:
    """The share of the money saved against random labelling, with a 90 % interval; ``None`` if too little is known."""
    slices = [part for part in slices if part.shadow and part.shadow_spent and min(map(len, part.model.values()))]
    items = sum(len(next(iter(part.model.values()))) for part in slices)
    if len(slices) < FEWEST_SLICES or items < FEWEST_ITEMS:
        return None
    rng = np.random.default_rng(seed)
    money = np.array([[part.spent, part.shadow_spent] for part in slices], dtype=float)  # (slices, 2)
    sizes = np.array([len(next(iter(part.model.values()))) for part in slices], dtype=float)
    errors = np.stack([_errors(part, tasks, rng) for part in slices], axis=1)  # (draws + 1, slices, 2)
    worth = exchange_rate(errors, money, sizes)
    saved = 1 - 1 / worth
    low, high = np.quantile(saved[1:], [0.05, 0.95])
    return {"saved": float(saved[0]), "low": float(low), "high": float(high), "items": items, "slices": len(slices)}


def _errors(part: Slice, tasks: Mapping[str, Task], rng: np.random.Generator) -> FloatArray:
    """1 − the mean score of the tasks, for the items as they are and for every bootstrap draw: (draws + 1, 2).

    Both models are scored on the same draws, so that what is easy for both cancels out.
    """
    weights = {}
    for size in {len(tally) for tally in part.model.values()}:
        draws = rng.multinomial(size, np.full(size, 1 / size), DRAWS)
        weights[size] = np.vstack([np.ones(size), draws]).astype(float)
    columns = []
    for tallies in (part.model, part.shadow or {}):
        scores = [tasks[name].score(weights[len(tally)] @ tally) for name, tally in tallies.items()]
        columns.append(1 - np.mean(scores, axis=0))
    return np.stack(columns, axis=-1)


def _resampled(tally: FloatArray, rng: np.random.Generator) -> FloatArray:
    size = len(tally)
    totals: FloatArray = rng.multinomial(size, np.full(size, 1 / size), DRAWS).astype(float) @ tally
    return totals


def exchange_rate(errors: FloatArray, money: FloatArray, sizes: FloatArray) -> FloatArray:
    """How many units of random labelling one unit of the strategy's money was worth: (draws, slices, 2) to (draws,).

    Least squares of log error on log money with one slope and two intercepts, slices weighed by their size.

    >>> money = np.array([[100.0, 100], [200, 150], [400, 200]])
    >>> true = np.stack([(2 * money[:, 0]) ** -0.5, money[:, 1] ** -0.5], axis=1)
    >>> exchange_rate(true[None], money, np.ones(3)).round(6).tolist()
    [2.0]
    """
    y = np.log(np.maximum(errors, LEAST_ERROR))
    x = np.broadcast_to(np.log(money), y.shape)
    w = (sizes / sizes.sum())[None, :, None]
    x_mean, y_mean = (w * x).sum(axis=1, keepdims=True), (w * y).sum(axis=1, keepdims=True)
    slope = (w * (x - x_mean) * (y - y_mean)).sum(axis=(1, 2)) / (w * (x - x_mean) ** 2).sum(axis=(1, 2))
    # A curve that does not fall says nothing about savings; a flat slope would make them infinite.
    b = np.clip(-slope, 0.05, 3.0)
    level = y_mean[:, 0] + b[:, None] * x_mean[:, 0]  # log a − b·log c, and log a
    # Between a quarter and twenty times: further out the data say no more than "much less" and "much more".
    rate: FloatArray = np.clip(np.exp((level[:, 1] - level[:, 0]) / b), 0.25, 20)
    return rate
