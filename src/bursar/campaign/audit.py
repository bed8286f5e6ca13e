"""Audit slices: random items bought every round, for unbiased scores and an estimate of the savings.

Neither the items that a strategy selects nor those that it leaves are a random sample. So a random reserve is set aside
before the campaign begins, and every round buys a fixed number of items from it. The round's model predicts them before
they are labelled, which gives an unbiased score; then their labels join the training set. A second model, the shadow,
is trained on random items only (seed items and earlier slices) and predicts the same slices: ``savings`` compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import AuditPredictions, RoundClosed, RoundRecord
from bursar.campaign.results import AuditScores, ScoreInterval
from bursar.corpus import Corpus
from bursar.ledger import Ledger
from bursar.predictions import HeldOut
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged
from bursar.random_streams import rng
from bursar.tasks import Task

Tasks = Mapping[str, Task]
DRAWS = 2000
FEWEST_FOR_INTERVAL = 10  # resampling fewer items than this says nothing


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """The reserve, in the random order in which its items are bought."""

    reserve: IntArray
    count: int  # items a round

    @classmethod
    def of(cls, config: CampaignConfig, corpus: Corpus, pool: IntArray, typical_price: float) -> AuditPlan:
        """Draw the reserve: what the share of the money buys at a typical price, at least one item a round.

        ``pool`` is without the seed items: they are random, so the rest is an unbiased sample too.
        """
        rounds, share, money = config.budget.rounds, config.audit.share, config.budget.per_round
        if config.strategy.make().once:  # all rounds in one
            rounds, money = min(rounds, 1), money * rounds
        elif config.audit.rounds is not None:  # leaves room for a raised budget
            rounds = config.audit.rounds
        if share == 0 or rounds == 0:
            return cls(np.zeros(0, dtype=np.int64), 0)
        typical = 1.0 if config.budget.counts == "items" else typical_price * float(config.costs.unit)
        count = max(1, round(share * money / max(typical, 1e-9)))
        count = min(count, len(pool) // (2 * rounds))
        return cls(rng(config.seed, "audit reserve").permutation(corpus.by_id(pool))[: count * rounds], count)

    def slice(self, round: int) -> IntArray:
        """The items of one round's slice; rounds count from 1."""
        return self.reserve[(round - 1) * self.count : round * self.count]

    def outside_reserve(self, pool: IntArray) -> IntArray:
        return np.setdiff1d(pool, self.reserve)


@dataclass(frozen=True, eq=False)
class Slice:
    """One round's audit: the money spent before it, and the tallies of its items for both models."""

    round: int
    spent: int
    shadow_spent: int | None
    model: Mapping[str, FloatArray]  # task to (items, counts)
    shadow: Mapping[str, FloatArray] | None


def audit_slices(ledger: Ledger, tasks: Tasks) -> list[Slice]:
    """The labelled slices, with both models' tallies; declined and abandoned items are left out."""
    spent = {record.round: record.spent for record in ledger.decisions(RoundRecord)}
    found = []
    for predicted in _labelled_slices(ledger):
        number, ids = predicted.round, predicted.ids
        gold = ledger.view(ids)
        model, shadow = (
            None if values is None else {name: _tally(tasks[name], gold, ids, values[name]) for name in tasks}
            for values in (predicted.model, predicted.shadow)
        )
        found.append(Slice(number, spent[number - 1], predicted.shadow_spent, model or {}, shadow))
    return found


def _labelled_slices(ledger: Ledger) -> Iterator[AuditPredictions]:
    """The predictions of slices whose items are all labelled, declined or abandoned."""
    declined = {(skip.round, skip.item) for skip in ledger.skips()}
    closed = set(ledger.decided(RoundClosed))
    for predicted in ledger.decisions(AuditPredictions):
        number = predicted.round
        known = set(ledger.bought(number, ("audit",)))
        waiting = [item for item in predicted.ids if item not in known and (number, item) not in declined]
        if known and (not waiting or number in closed):  # else the round is still open
            yield predicted


def audited(ledger: Ledger, tasks: Tasks) -> dict[str, HeldOut]:
    """By task, how sure the models were of the audit items before they were labelled, and whether they were right."""
    sure: dict[str, list[float]] = {name: [] for name in tasks}
    right: dict[str, list[BoolArray]] = {name: [] for name in tasks}
    for predicted in _labelled_slices(ledger):
        gold = ledger.view(predicted.ids)
        for name, task in tasks.items():
            known = np.flatnonzero(gold.labels[name].present)
            if predicted.sure is None or not len(known):
                continue
            confidence = dict(zip(predicted.ids, predicted.sure[name], strict=True))
            sure[name] += [confidence[gold.ids[at]] for at in known.tolist()]
            guess = _guessed(task, gold, known, dict(zip(predicted.ids, predicted.model[name], strict=True)))
            right[name].append(task.agrees(gold.labels[name].rows.take(known), guess))
    source = "audit items, each predicted before it was labelled"
    return {name: HeldOut(np.array(sure[name]), np.concatenate(right[name]), source) for name in tasks if sure[name]}


def _guessed(task: Task, gold: Corpus, known: IntArray, guess: Mapping[str, Any]) -> Ragged:
    rows = [task.encode(guess[gold.ids[at]], int(gold.words[at])) for at in known.tolist()]
    return Ragged.of(rows, task.width, task.dtype)


def _tally(task: Task, gold: Corpus, ids: Sequence[str], values: Sequence[Any]) -> FloatArray:
    """The tallies of the items that still have a label; one may have been retracted since."""
    known = np.flatnonzero(gold.labels[task.name].present)
    guess = _guessed(task, gold, known, dict(zip(ids, values, strict=True)))
    return task.tally(gold.labels[task.name].rows.take(known), guess)


def audit_scores(slices: Sequence[Slice], tasks: Tasks) -> list[AuditScores]:
    """The score of each slice and task, with a 90 % bootstrap interval if there are enough items."""
    generator, rows = rng(0, "audit intervals"), []
    for part in slices:
        scores = {}
        for name, tally in part.model.items():
            low = high = None
            if (size := len(tally)) >= FEWEST_FOR_INTERVAL:
                totals = generator.multinomial(size, np.full(size, 1 / size), DRAWS).astype(float) @ tally
                low, high = np.quantile(tasks[name].score(totals), [0.05, 0.95]).tolist()
            scores[name] = ScoreInterval(score=float(tasks[name].score(tally.sum(axis=0))), low=low, high=high)
        items = max(len(tally) for tally in part.model.values())
        rows.append(AuditScores(round=part.round - 1, spent=part.spent, items=items, scores=scores))
    return rows
