"""The audit slice: random items bought every round, for unbiased scores and an estimate of what was saved.

Items that a strategy picks are unlike the pool, and what it leaves is unlike it too. So a random part of the pool is
set aside before the campaign begins, the strategy never sees it, and every round buys a few items of it, a number that
is fixed beforehand. The model of a round answers for its slice before the slice's labels are known: a plain average
over slices is an unbiased score. The labels then join the training set; nothing is wasted.

A second model, the shadow, is trained on random items alone (seed items and slices so far) and answers for the same
slices: ``savings`` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import AuditPredictions, RoundClosed, RoundRecord
from bursar.campaign.results import AuditScores, ScoreInterval
from bursar.corpus import Corpus
from bursar.ledger import Ledger
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import Task

DRAWS = 2000
FEWEST_FOR_INTERVAL = 10  # resampling fewer items than this says nothing


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
        rng = np.random.default_rng([config.seed, 17])
        return cls(rng.permutation(corpus.by_id(pool))[: count * rounds], count)

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
    spent = {record.round: record.spent for record in ledger.decisions(RoundRecord)}
    declined = {(skip.round, skip.item) for skip in ledger.skips()}
    closed = set(ledger.decided(RoundClosed))
    found = []
    for predicted in ledger.decisions(AuditPredictions):
        number, ids = predicted.round, predicted.ids
        known = set(ledger.bought(number, ("audit",)))
        waiting = [item for item in ids if item not in known and (number, item) not in declined]
        if not known or (waiting and number not in closed):
            continue  # the round is still open
        gold = ledger.view(ids)
        model, shadow = (
            None if values is None else {name: _tally(tasks[name], gold, ids, values[name]) for name in tasks}
            for values in (predicted.model, predicted.shadow)
        )
        found.append(Slice(number, spent[number - 1], predicted.shadow_spent, model or {}, shadow))
    return found


def _tally(task: Task, gold: Corpus, ids: Sequence[str], values: Sequence[Any]) -> FloatArray:
    """The tallies of the items whose label still stands; one may have been taken back since."""
    guess = dict(zip(ids, values, strict=True))
    known = np.flatnonzero(gold.labels[task.name].present)
    rows = [task.encode(guess[gold.ids[at]], int(gold.words[at])) for at in known.tolist()]
    return task.tally(gold.labels[task.name].rows.take(known), Ragged.of(rows, task.width, task.dtype))


def audit_scores(slices: Sequence[Slice], tasks: Mapping[str, Task], seed: int = 0) -> list[AuditScores]:
    """Per slice, each task's score, with a 90 % bootstrap interval where there are items enough for one."""
    rng = np.random.default_rng(seed)
    rows = []
    for part in slices:
        scores = {}
        for name, tally in part.model.items():
            low = high = None
            if len(tally) >= FEWEST_FOR_INTERVAL:
                low, high = np.quantile(tasks[name].score(_resampled(tally, rng)), [0.05, 0.95]).tolist()
            scores[name] = ScoreInterval(score=float(tasks[name].score(tally.sum(axis=0))), low=low, high=high)
        items = max(len(tally) for tally in part.model.values())
        rows.append(AuditScores(round=part.round - 1, spent=part.spent, items=items, scores=scores))
    return rows


def _resampled(tally: FloatArray, rng: np.random.Generator) -> FloatArray:
    size = len(tally)
    totals: FloatArray = rng.multinomial(size, np.full(size, 1 / size), DRAWS).astype(float) @ tally
    return totals
