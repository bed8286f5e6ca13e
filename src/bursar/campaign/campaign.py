"""A campaign: rounds of asking for labels and training on them, until the budget, the pool or the patience ends.

Every decision is written to the ledger before it is acted upon, and every computation depends only on the ledger and
the seed. So a campaign can be killed at any time: run again, it continues with the same selections and spending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bursar.campaign.audit import AuditPlan
from bursar.campaign.checks import check_features, check_served, check_split, strategy_in_use
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import CampaignBegun, CampaignEnded, RoundPrices, RoundSelection, RoundWaits
from bursar.campaign.folder import Lock, open_ledger
from bursar.campaign.models import Models
from bursar.campaign.participants import Annotator, Observer, allocator
from bursar.campaign.pool_scoring import PoolScoring
from bursar.campaign.pricing import Pricing
from bursar.campaign.round_models import RoundModels
from bursar.campaign.round_planner import Known, Offer, RoundPlanner, certificate_record, confidence_summary
from bursar.campaign.splits import DataSplits, fully_labelled, load_parts, too_few
from bursar.campaign.start import Start
from bursar.campaign.state import CampaignState, Round
from bursar.campaign.stopping import watched_items
from bursar.compute import THIS_PROCESS, Engine
from bursar.corpus.corpus import Labels
from bursar.errors import ConfigError, InfeasibleError
from bursar.learners import Learner
from bursar.ledger import Answer, Decision, Receipt

Outcome = Literal["opened", "ended", "waiting"]


class Campaign:
    """One strategy spending one budget on one corpus, in a folder that holds its ledger.

    Annotators, simulated or not, need only ``ask`` and ``tell``; ``run`` loops over the two. Consecutive campaigns may
    share a ``learner`` with its cache of frozen layers. ``lock=False`` is for a worker of the process that holds the
    folder's lock. ``trust`` allows saved models that could run code. ``engine`` scores large pools without changing a
    result; enter it first to keep its workers for all rounds.

    >>> import tempfile
    >>> from bursar.campaign.config import parse_config
    >>> budget = {"seed_items": 10, "per_round": 100.0, "rounds": 1}
    >>> learner = {"name": "scikit", "estimator": "naive-bayes"}
    >>> settings = {"tasks": ["intent"], "corpus": {"items": 200}, "strategy": {"name": "MT-AVG"}}
    >>> config = parse_config(settings | {"budget": budget, "learner": learner})
    >>> campaign = Campaign(config, Path(tempfile.mkdtemp()))
    >>> len(campaign.ask().items)
    10
    >>> campaign.close()
    """

    def __init__(
        self,
        config: CampaignConfig,
        folder: Path,
        *,
        parts: DataSplits | None = None,
        watcher: Observer | None = None,
        learner: Learner | None = None,
        lock: bool = True,
        trust: bool = False,
        engine: Engine = THIS_PROCESS,
    ) -> None:
        self.config = config
        self.folder = folder
        self.parts = parts or load_parts(config)
        self.corpus = self.parts.corpus
        check_features(strategy_in_use(config), self.corpus.schema, config.limits, self.corpus.groups is not None)
        check_split(config, self.corpus.schema)
        self.watcher = watcher or Observer()
        self.ledger = open_ledger(config, folder, self.corpus)
        self.state = CampaignState(config, self.ledger)
        self.terms = self.state.first_terms
        self.scoring = PoolScoring(lambda: self.models.saved(), folder / "scoring", engine)
        self.pool = self.parts.pool
        pool = partial(self.corpus.take, self.pool)
        self.models = Models(folder / "models", config, self.corpus.schema, learner, trust=trust, pool=pool)
        if config.costs.pricing == "gold":
            self.pool = fully_labelled(self.corpus, self.pool)
        if config.budget.dev_items and len(self.parts.dev):
            raise ConfigError("budget.dev_items: the corpus has development items already", fix="leave it out")
        seed_items = config.budget.seed_items + config.budget.dev_items
        if len(self.pool) < seed_items:
            raise too_few(len(self.pool), len(self.parts.pool), seed_items)
        pricing = Pricing(config, self.parts)
        self.start = Start(self.state, self.pool, pricing)
        rest = np.setdiff1d(self.pool, self.start.drawn)
        self.audit = AuditPlan.of(config, self.corpus, rest, self.start.typical_price)
        self.planner = RoundPlanner(self.state, self.pool, self.audit, pricing, self.scoring, self.watcher)
        watched = watched_items(self.corpus.by_id(self.pool), config.seed)
        self._trained = RoundModels(
            config, self.parts, self.ledger, lambda: self.models, self.audit, watched, self.watcher, folder / "logs"
        )
        self.offered: Callable[[Offer, Learner], None] | None = None  # called with each round before it is opened
        self._shares_lock = not lock
        self._lock: Lock | None = None
        self._begun = False

    def close(self) -> None:
        """Release the ledger and the folder."""
        self.ledger.close()
        self._begun = False
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def begin(self) -> None:
        """Take the lock, check that the settings and the corpus are unchanged, and select the seed items."""
        if not self._shares_lock:
            self._lock = self._lock or Lock(self.folder / "lock")
            if self.ledger.own():
                self.state.look_again()
        if self._begun:
            return
        self.models.check_policy()
        begun = CampaignBegun(round=0, settings=self.config.digest, corpus=self.parts.fingerprint)
        known = self.ledger.decision(CampaignBegun, 0)
        if known is None:
            check_served(self.config)
            self.models.check(self.corpus)
            if self.config.splits:
                allocator().check_learner(self.config, self.corpus.schema)
        elif known != begun:
            place, fix = (self.folder, "folder") if self.config.ledger is None else (self.ledger.where, "schema")
            fix = f"choose another {fix}"
            raise ConfigError(f"{place} was started with other settings or on another corpus", fix=fix)
        self.ledger.decide(begun)
        if self.ledger.decision(RoundSelection, 0) is None:
            self.ledger.decide(self.start.first(self.terms, self.models, self.audit, self.watcher))
        self._begun = True

    # -- ask and tell ------------------------------------------------------------------------------------------------
    def ask(self) -> Round | None:
        """What to annotate next: the rest of the open round or a new one; ``None`` when the campaign is over."""
        self.begin()
        if not self.state.pending(self.state.rounds_opened) and self.advance() != "opened":
            return None
        round = self.state.rounds_opened
        return Round(round, self.state.pending(round))

    def tell(self, answers: Mapping[str, Mapping[str, Any]], annotator: str = "somebody") -> list[Receipt]:
        """Submit answers by item and task; all are checked before the first is stored.

        Each item is on disk when the receipts are returned. An answer may be sent again at any time, even after its
        round: it is recorded and charged once.
        """
        self.begin()
        submissions = []
        for item, labels in answers.items():
            want = self.state.asked(item, labels)
            submissions.append(self.state.submission(want, Answer(item, labels, annotator)))
            asked = self.corpus.take(self.corpus.positions([item]))
            self.models.check(asked.with_labels({task: Labels.of(asked, task, labels[task]) for task in want.tasks}))
        return [self.ledger.submit(submission) for submission in submissions]

    def run(self, annotator: Annotator) -> None:
        """Ask and tell until the campaign is over."""
        while ask := self.ask():
            for done, want in enumerate(ask.items, start=1):
                self.tell({want.id: annotator.annotate(want.id, want.tasks)}, annotator.name)
                self.watcher.stage(ask.round, "annotating", done / len(ask))

    # -- from round to round -----------------------------------------------------------------------------------------
    def advance(self) -> Outcome:
        """Conclude the newest round with the answers so far, and open the next one unless the campaign is over.

        The campaign cannot end while items are pending, as their final cost may leave money for another round.
        """
        outcome = self._advance()
        self.scoring.forget()
        return outcome

    def _advance(self) -> Outcome:
        self.begin()
        self.state.look_again()
        self.terms = self.state.terms()
        self.models = self.models.under(self.terms.config)
        known = self.known()
        round = known.round
        if self.state.ended is None and (missing := known.unlabelled_tasks):  # no model can be trained
            free, _ = self.planner.free(known)
            if items := self.start.more(round + 1, free, self.terms):
                self.watcher.stage(round, f"no label for {', '.join(missing)} yet: more items at random", 1.0)
                return self._open([items])
        self._trained.conclude(known)
        if self.state.ended is not None:
            return "ended"
        why = self.state.reason_to_end(round, self.terms)
        try:
            decisions = self._next_round(known) if why is None else []
        except InfeasibleError as wrong:
            decisions, why = [], wrong.message
        if decisions:
            return self._open(decisions)
        why = why or "the remaining items are too expensive"
        if known.asked:
            if self.ledger.decision(RoundWaits, round) is None:
                self.ledger.decide(RoundWaits(round=round, reason=why))
            return "waiting"
        self.ledger.decide(CampaignEnded(round=round, reason=why, setting_changes=self.terms.changes))
        return "ended"

    def _open(self, decisions: Sequence[Decision]) -> Outcome:
        self.ledger.decide(*decisions)  # in one transaction: a round is opened as a whole or not at all
        self.state.look_again()
        return "opened"

    def known(self) -> Known:
        """The ledger as it is now, read once per round, as others may write to it meanwhile."""
        newest = self.state.rounds_opened
        asked = self.state.open()  # before the labels, so that an answer in between is in at least one of the two
        bought = self.ledger.view()
        if not self.config.budget.dev_items:
            dev = self.corpus.take(self.parts.dev) if len(self.parts.dev) else None
            return Known(newest, asked, self.state.declined(), bought, bought, dev)
        wanted = [want for round in range(newest + 1) for want in self.state.wanted(round).values()]
        aside = {want.id for want in wanted if want.purpose == "dev"}
        is_aside = np.array([item in aside for item in bought.ids.tolist()], dtype=bool)
        dev, rest = (bought.take(np.flatnonzero(part)) for part in (is_aside, ~is_aside))
        usable = all(column.present.any() for column in dev.labels.values())
        return Known(newest, asked, self.state.declined(), bought, rest, dev if usable else None)

    def _next_round(self, known: Known) -> list[Decision]:
        """The decisions that open the next round; empty if there is nothing to buy."""
        learner, _ = self._trained.main(known)
        offer = self.planner.offer(self.terms, known, learner, partial(self.planner.split, known))
        items = offer.selected(self.corpus)
        if not items:
            return []
        selection = RoundSelection(
            round=offer.round,
            budget=offer.budget,
            items=tuple(items),
            certificate=certificate_record(offer.chosen),
            setting_changes=self.terms.changes,
            caps=None if offer.caps is None else dict(offer.caps),
        )
        decisions: list[Decision] = [selection]
        if self.terms.prices is not None:
            decisions.append(RoundPrices(round=offer.round, prices=self.terms.prices))
        if len(offer.items) and self.terms.strategy.needs_model:
            pool = self.corpus.take(offer.items)
            decisions.append(confidence_summary(known.round, pool, offer.scored, offer.chosen))
        if self.offered is not None:
            self.offered(offer, learner)
        if len(offer.audit):  # last, as the shadow replaces the model in memory
            decisions.append(self._trained.audit_predictions(learner, offer.audit, known))
        return decisions
