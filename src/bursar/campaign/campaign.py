"""A campaign: ask what to annotate, be told the answers, and go on until the money, the pool or the patience ends.

Everything that is decided is written to the ledger before it is acted upon, and everything that is computed depends
on the ledger and the seed alone. So a campaign can be killed anywhere: run it again and it goes on as if nothing had
happened, with the same rounds, the same selections and the same spending.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bursar.campaign.annotators import Annotator
from bursar.campaign.audit import AuditPlan
from bursar.campaign.config import CampaignConfig
from bursar.campaign.lock import Lock
from bursar.campaign.models import Models
from bursar.campaign.pricing import charges_of, estimates_of, prices_of, typical_counts
from bursar.campaign.scoring import Scored, check_facets, evidence_of, limits_of, open_labels, score
from bursar.campaign.splits import Parts, fully_labelled, load_parts
from bursar.campaign.stopping import agreement, watched_items
from bursar.campaign.summaries import confidence_summary
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.errors import ConfigError, InfeasibleError, LedgerError
from bursar.learners import Learner
from bursar.learners.learner import Scores, evaluate
from bursar.ledger import Annotation, Ledger, Receipt, Submission
from bursar.ragged import IntArray, Ragged
from bursar.selection import Candidates, Certificate, Selection
from bursar.tasks import Prices
from bursar.uncertainty import MEASURES, confidences
from bursar.uncertainty.calibration import calibration_summary


class Watcher(Protocol):
    """Somebody who wants to know how it goes."""

    def stage(self, round: int, what: str, done: float) -> None:
        """What is going on in a round, and how far it is."""
        ...

    def scored(self, round: int, record: Mapping[str, Any]) -> None:
        """A round's model has been trained and scored."""
        ...


class Nobody:
    """Watches nothing."""

    def stage(self, round: int, what: str, done: float) -> None:
        """Is not told."""

    def scored(self, round: int, record: Mapping[str, Any]) -> None:
        """Is not told."""


@dataclass(frozen=True)
class Wanted:
    """One item that a round wants annotated: for which tasks, why, and what that is thought to cost."""

    id: str
    tasks: tuple[str, ...]
    purpose: str
    estimate: Mapping[str, int]


@dataclass(frozen=True)
class Ask:
    """What a round wants annotated and has not been told yet."""

    round: int
    items: tuple[Wanted, ...]

    def __len__(self) -> int:
        return len(self.items)


class Campaign:
    """One strategy spending one budget on one corpus, in a folder that holds its ledger.

    ``ask`` and ``tell`` are all that an annotator needs, simulated or not; ``run`` is the loop of the two. Campaigns
    that run one after the other may share a ``learner``, and with it what it remembers of the items' frozen layers.
    """

    def __init__(
        self,
        config: CampaignConfig,
        folder: Path,
        *,
        parts: Parts | None = None,
        watcher: Watcher | None = None,
        learner: Learner | None = None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.parts = parts or load_parts(config)
        self.corpus = self.parts.corpus
        self.tasks = list(self.corpus.schema.values())
        self.costs = config.costs.model(self.tasks)
        self.strategy = config.strategy.make()
        check_facets(self.strategy, self.corpus.schema, config.limits, self.corpus.groups is not None)
        self.watcher = watcher or Nobody()
        self.ledger = Ledger.open(folder / "ledger.sqlite", self.corpus)
        self.models = Models(folder / "models", config, self.corpus.schema, learner)
        self.pool = self.parts.pool
        if config.costs.pricing == "gold":
            self.pool = fully_labelled(self.corpus, self.pool)
        if len(self.pool) < config.budget.seed_items:
            raise ConfigError(
                f"the pool has {len(self.pool)} items, fewer than budget.seed_items = {config.budget.seed_items}",
                fix="ask for fewer seed items or give a larger pool",
            )
        rng = np.random.default_rng([config.seed, 11])
        self._seed_items = rng.choice(self._by_id(self.pool), config.budget.seed_items, replace=False)
        rest = np.setdiff1d(self.pool, self._seed_items)
        self._watched = watched_items(self._by_id(self.pool), config.seed)
        self.audit = AuditPlan.of(config, self.corpus, rest, self._typical_price)
        self._newest = -1  # round that has a selection, as far as is known
        self._selected: dict[int, dict[str, Wanted]] = {}  # by round: what is decided never changes
        self._lock: Lock | None = None

    def close(self) -> None:
        """Let go of the ledger and the folder."""
        self.ledger.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _begin(self) -> None:
        """Before anything is written: be the only one in this folder, and on the campaign that it was started with."""
        if self._lock is not None:
            return
        self._lock = Lock(self.folder / "lock")
        self.models.check_policy()
        if self.ledger.decision(0, "campaign") is None:
            self.models.check(self.corpus)
        try:
            about = {"settings": self.config.digest, "corpus": self.parts.fingerprint}
            self.ledger.decide((0, "campaign", about))
        except LedgerError:
            raise ConfigError(
                f"{self.folder} was started with other settings or on another corpus", fix="choose another folder"
            ) from None

    # -- ask and tell ------------------------------------------------------------------------------------------------
    def ask(self) -> Ask | None:
        """What to annotate next: the rest of the open round, or a new round. ``None`` when the campaign is over."""
        self._begin()
        if self.ledger.decision(0, "selection") is None:
            self.ledger.decide((0, "selection", self._seed_selection()))
        round = self.rounds_opened
        if pending := self.pending(round):
            return Ask(round, pending)
        self._conclude(round)
        if self.ended is not None:
            return None
        why = self._reason_to_end(round)
        try:
            decisions = self._next_round(round) if why is None else []
        except InfeasibleError as wrong:
            decisions, why = [], wrong.message
        if not decisions:
            self.ledger.decide((round, "end", why or "nothing that is left can be afforded"))
            return None
        self.ledger.decide(*decisions)
        self._newest = round + 1
        return Ask(round + 1, self.pending(round + 1))

    def tell(self, answers: Mapping[str, Mapping[str, Any]], annotator: str = "somebody") -> list[Receipt]:
        """Answers by item and task. Each item is one submission, on disk when its receipt is given.

        An answer may be sent again at any time, also when its round is over: it is recorded and charged once.
        """
        self._begin()
        return [self.ledger.submit(self._submission(item, labels, annotator)) for item, labels in answers.items()]

    def _submission(self, item: str, labels: Mapping[str, Any], annotator: str) -> Submission:
        asked_in = [r for r in range(self.rounds_opened, -1, -1) if item in self._wanted(r)]
        if not asked_in:
            raise ConfigError(f"nobody asked about item {item!r}")
        # An item may be asked about in several rounds, for other tasks each time.
        round = next((r for r in asked_in if set(self._wanted(r)[item].tasks) == set(labels)), asked_in[0])
        want = self._wanted(round)[item]
        if set(labels) != set(want.tasks):
            raise ConfigError(
                f"item {item!r} was asked about for {', '.join(want.tasks)}, and answered for "
                f"{', '.join(labels) or 'nothing'}",
                fix="answer for all of those tasks at once",
            )
        annotations = tuple(Annotation(item, task, labels[task]) for task in want.tasks)
        self.ledger.check(annotations)
        asked = self.corpus.take(self.corpus.positions([item]))
        self.models.check(asked.with_labels({task: Labels.of(asked, task, labels[task]) for task in want.tasks}))
        charges = charges_of(self.costs, asked, annotations, want.estimate)
        return Submission(_key(round, item), annotations, charges, round, want.purpose, annotator)

    def run(self, annotator: Annotator) -> None:
        """Ask and tell until it is over."""
        while ask := self.ask():
            for done, want in enumerate(ask.items, start=1):
                self.tell({want.id: annotator.annotate(want.id, want.tasks)}, annotator.name)
                self.watcher.stage(ask.round, "annotating", done / len(ask))

    # -- where we are ------------------------------------------------------------------------------------------------
    @property
    def rounds_opened(self) -> int:
        """The number of the newest round that has a selection; −1 before the first."""
        if self._newest < 0:
            self._newest = max(self.ledger.decided("selection"), default=-1)
        return self._newest

    def pending(self, round: int) -> tuple[Wanted, ...]:
        """What a round asked for and was not told."""
        told = self.ledger.keys()
        return tuple(want for want in self._wanted(round).values() if _key(round, want.id) not in told)

    @property
    def ended(self) -> str | None:
        """Why the campaign is over; ``None`` while it is not."""
        return next((why for _, why in self.ledger.decisions("end")), None)

    def _reason_to_end(self, round: int) -> str | None:
        """Why no round can follow this one."""
        budget = self.config.budget
        if round >= (1 if self.strategy.once else budget.rounds):
            return "all rounds are done"
        if self._allowance(round + 1) <= 0:
            return "the money is spent"
        if budget.patience is not None and round >= budget.patience:
            scores = [record["dev"] or 0.0 for _, record in self.ledger.decisions("scores")]
            if max(scores[-budget.patience :]) <= max(scores[: -budget.patience]):
                return f"{budget.patience} rounds brought no better development score"
        return None

    def _wanted(self, round: int) -> dict[str, Wanted]:
        if round not in self._selected:
            decided = self.ledger.decision(round, "selection")
            if decided is None:
                return {}
            self._selected[round] = {
                i["id"]: Wanted(i["id"], tuple(i["tasks"]), i["purpose"], i["estimate"]) for i in decided["items"]
            }
        return self._selected[round]

    def _allowance(self, round: int) -> int:
        """What may be spent by the end of a round and has not been: what one round saves, the next may spend.

        In whole units of money, or in items where the budget counts those.
        """
        budget = self.config.budget
        rounds = budget.rounds if self.strategy.once else round
        if budget.counts == "items":
            seed, bought = len(self.ledger.bought(purposes=("seed",))), len(self.ledger.bought())
            free, purse = seed + rounds * int(budget.per_round) - bought, (budget.total or np.inf) - bought
            return int(min(free, purse))
        free = self.ledger.spent(purpose="seed") + rounds * self.costs.units(budget.per_round) - self.ledger.spent()
        return free if budget.total is None else min(free, self.costs.units(budget.total) - self.ledger.spent())

    # -- a round -----------------------------------------------------------------------------------------------------
    def _seed_selection(self) -> dict[str, Any]:
        """Random items for all tasks, before there is a model."""
        items = self._seed_items
        prices = self._prices(items, {})
        if self.config.budget.total is not None:
            affordable = np.cumsum(prices.joint()) <= self.costs.units(self.config.budget.total)
            items, prices = items[affordable], prices.take(np.flatnonzero(affordable))
        return {"budget": None, "items": self._entries(items, prices, None, "seed")}

    def _conclude(self, round: int) -> None:
        """Train and score the model of all that is known after a round; nothing if that has been done."""
        if self.ledger.decision(round, "scores") is not None:
            return
        annotated = self.ledger.view()
        learner, best = self._main_model(round, annotated)
        test, trust = self._judged(learner)
        record = {
            "spent": self.ledger.spent(),
            "items": len(annotated),
            "labels": {name: int(column.present.sum()) for name, column in annotated.labels.items()},
            "test": {task: {k: round_to(v) for k, v in scores.items()} for task, scores in test.items()},
            "dev": None if best is None else round_to(best),
            "reliability": trust,
        }
        watched = self.corpus.take(self._watched).unlabelled()
        guesses = learner.predict(watched)
        earlier = self.ledger.decision(round - 1, "watched") if round else None
        record["agreement"] = None if earlier is None else agreement(watched, earlier, guesses)
        self.ledger.decide((round, "watched", self._values(guesses)), (round, "scores", record))
        self.watcher.scored(round, record)

    def _judged(self, learner: Learner) -> tuple[Scores, dict[str, Any]]:
        """The scores on test items, and how far the model's confidence in them can be trusted, per task."""
        test = self.corpus.take(self.parts.test)
        if not len(test):
            return {}, {}
        beliefs = learner.believe(test.unlabelled())
        guesses = {name: learner.tasks[name].decode(found) for name, found in beliefs.items()}
        sure = confidences(learner.tasks, beliefs, MEASURES["entropy"])
        trust = {}
        for column, (name, task) in enumerate(learner.tasks.items()):
            known = np.flatnonzero(test.labels[name].present)
            if len(known):
                gold = test.labels[name].rows.take(known)
                right = task.accuracies(gold, guesses[name].take(known), test.words[known])
                trust[name] = calibration_summary(sure[known, column], right)
        return evaluate(learner.tasks, test, guesses), trust

    def _model(
        self, round: int, annotated: Corpus, what: str = "training", log: Path | None = None
    ) -> tuple[Learner, float | None]:
        def progress(stage: str, done: float) -> None:
            self.watcher.stage(round, what if stage == "training" else stage, done)

        dev = self.corpus.take(self.parts.dev) if len(self.parts.dev) else None
        return self.models.fitted(annotated, dev, progress, log)

    def _main_model(self, round: int, annotated: Corpus) -> tuple[Learner, float | None]:
        """The model of all that is known, not a shadow's: the one whose steps are logged."""
        log = self.folder / "logs" / f"round-{round:02}.parquet" if self.config.learner.log_steps else None
        return self._model(round, annotated, log=log)

    def _next_round(self, round: int) -> list[tuple[int, str, Any]]:
        """What the next round buys: the audit slice first, then the strategy's choice with the rest of the money.

        Empty if there is nothing to buy. All of it is one decision: a round is open altogether or not at all.
        """
        learner, _ = self._main_model(round, self.ledger.view())
        budget = self._allowance(round + 1)
        by_item = self.config.budget.counts == "items"
        if self.config.costs.pricing == "predicted" and not by_item:
            budget = int(budget / (1 + self.config.costs.reserve))
        slice_ = self.audit.slice(round + 1)
        slice_prices = self._prices(slice_, learner)
        if self._sum_of(slice_prices) > budget:  # whole or not at all: a slice cut to its price would not be random
            slice_, slice_prices = slice_[:0], slice_prices.take(slice_[:0])
        left = budget - self._sum_of(slice_prices)

        free, pool, scored = self._candidates(learner, round)
        chosen = self.strategy.select(pool, left, seed=self._round_seed(round + 1), in_items=by_item)
        items = self._entries(slice_, slice_prices, None, "audit")
        items += self._entries(free, pool.prices, chosen, "strategy")
        if not items:
            return []
        decided = {"budget": budget, "items": items, "certificate": _written(chosen.certificate)}
        decisions: list[tuple[int, str, Any]] = [(round + 1, "selection", decided)]
        if len(free) and self.strategy.needs_model:
            shown = confidence_summary(self.corpus, free, scored.confidence, scored.guesses, chosen)
            decisions.append((round, "confidence", shown))
        if len(slice_):  # last, for the shadow takes the place of the model
            decisions.append((round + 1, "guesses", self._guesses(round, learner, slice_)))
        return decisions

    def _candidates(self, learner: Learner, round: int) -> tuple[IntArray, Candidates, Scored]:
        """All that may still be bought, as positions in the corpus and as the strategy sees it."""
        bought = self.ledger.view()
        items = self.audit.outside_reserve(self.pool)
        free = open_labels(self.corpus.take(items), bought)
        items, free = items[free.any(axis=1)], free[free.any(axis=1)]
        if self._asks_the_model:
            seed = self._round_seed(round)
            scored = score(
                learner,
                self.strategy,
                self.corpus,
                items,
                seed,
                lambda done: self.watcher.stage(round, "scoring", done),
            )
        else:
            scored = Scored(np.zeros((len(items), len(self.tasks))), self._gold(items))
        pool = self.corpus.take(items)
        evidence = evidence_of(
            self.strategy, learner, self.corpus, items, scored, bought, self.corpus.take(self.parts.dev)
        )
        rounds = self.config.budget.rounds if self.strategy.once else 1
        limits = limits_of(self.config.limits, pool, scored.guesses, rounds)
        prices = self._prices(items, scored.guesses)
        return items, Candidates(pool.ids.tolist(), scored.confidence, prices, free, limits, evidence), scored

    @property
    def _asks_the_model(self) -> bool:
        """Whether anything about a round depends on what the model says of the pool."""
        group = self.config.limits.group
        by_guess = "labels" in self.strategy.needs or (group is not None and group.by.startswith("label:"))
        return self.strategy.needs_model or by_guess or self.config.costs.pricing == "predicted"

    def _sum_of(self, prices: Prices) -> int:
        """What buying all of this takes from the budget."""
        return len(prices) if self.config.budget.counts == "items" else int(prices.joint().sum())

    def _guesses(self, round: int, learner: Learner, slice_: IntArray) -> dict[str, Any]:
        """What this round's models say of the audit slice before its answers are known: nobody can have peeked."""
        asked = self.corpus.take(slice_).unlabelled()
        found: dict[str, Any] = {"ids": asked.ids.tolist(), "model": self._values(learner.predict(asked))}
        if self.config.audit.shadow:
            random_items = self.ledger.bought(purposes=("seed", "audit"))
            spent = self.ledger.spent_on(random_items)
            shadow, _ = self._model(round, self.ledger.view(random_items), "training on random items")
            found |= {"shadow": self._values(shadow.predict(asked)), "shadow_spent": spent}
        return found

    def _values(self, guesses: Mapping[str, Ragged]) -> dict[str, list[Any]]:
        return {name: [self.corpus.schema[name].value(rows) for rows in column] for name, column in guesses.items()}

    # -- prices ------------------------------------------------------------------------------------------------------
    def _prices(self, items: IntArray, source: Learner | Mapping[str, Ragged]) -> Prices:
        """Prices of items: by gold where that is the rule, else by what the learner predicts."""
        part = self.corpus.take(items)
        if self.config.costs.pricing == "gold":
            labels: Mapping[str, Ragged] = self._gold(items)
        elif isinstance(source, Learner):
            labels = source.predict(part.unlabelled()) if len(items) else {}
        else:
            labels = source
        return prices_of(self.costs, self.tasks, part, labels, self._typical)

    def _gold(self, items: IntArray) -> dict[str, Ragged]:
        return {name: column.rows.take(items) for name, column in self.corpus.labels.items()}

    @cached_property
    def _typical(self) -> dict[str, float]:
        return typical_counts(self.tasks, self.corpus.take(self.parts.dev))

    @cached_property
    def _typical_price(self) -> float:
        return float(self._prices(self.pool, {}).joint().mean()) if len(self.pool) else 0.0

    # -- small things ------------------------------------------------------------------------------------------------
    def _entries(self, items: IntArray, prices: Prices, chosen: Selection | None, purpose: str) -> list[dict[str, Any]]:
        names = prices.tasks
        picks: Iterable[tuple[int, tuple[str, ...]]] = ((at, names) for at in range(len(items)))
        if chosen is not None:
            picks = (
                (int(at), tuple(name for name, wanted in zip(names, row, strict=True) if wanted))
                for at, row in zip(chosen.items, chosen.tasks, strict=True)
            )
        return [
            {
                "id": self.corpus.ids[int(items[at])],
                "tasks": list(tasks),
                "purpose": purpose,
                "estimate": estimates_of(prices, at, tasks),
            }
            for at, tasks in picks
        ]

    def _by_id(self, items: IntArray) -> IntArray:
        return items[np.argsort(self.corpus.id_ranks[items])]

    def _round_seed(self, round: int) -> int:
        return int(np.random.SeedSequence([self.config.seed, 13, round]).generate_state(1)[0])


def round_to(value: float) -> float:
    """Six digits: more would be noise, and a ledger should not depend on noise."""
    return round(float(value), 6)


def _written(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    bound = None if certificate.bound is None else round_to(certificate.bound)
    return {"objective": round_to(certificate.objective), "bound": bound, "optimal": certificate.optimal}


def _key(round: int, item: str) -> str:
    return f"round {round}: {item}"
