"""A campaign: ask what to annotate, be told the answers, and go on until the money, the pool or the patience ends.

Everything that is decided is written to the ledger before it is acted upon, and everything that is computed depends
on the ledger and the seed alone. So a campaign can be killed anywhere: run it again and it goes on as if nothing had
happened, with the same rounds, the same selections and the same spending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bursar.campaign.advisers import ALLOCATION, RoundSplit, allocator
from bursar.campaign.annotators import Annotator
from bursar.campaign.audit import AuditPlan
from bursar.campaign.checks import check_served, check_split, strategy_in_use
from bursar.campaign.confidence_summary import confidence_summary
from bursar.campaign.config import CampaignConfig
from bursar.campaign.ledgers import open_ledger
from bursar.campaign.lock import Lock
from bursar.campaign.models import Models
from bursar.campaign.observers import NullObserver, Watcher
from bursar.campaign.pool_scoring import PoolScoring, Scored
from bursar.campaign.pricing import prices_of, typical_counts
from bursar.campaign.round_candidates import check_features, judged, limits_of, open_labels, pool_features_of
from bursar.campaign.round_plan import Known, Offer, entries_of, round_to, written
from bursar.campaign.savings import LEAST_SHARE, RANDOM
from bursar.campaign.splits import DataSplits, fully_labelled, load_parts, too_few
from bursar.campaign.start import covering_start, start_candidates
from bursar.campaign.state import (
    AT_RANDOM,
    BY_NO_MODEL,
    GIVEN,
    PRICES,
    START,
    WAITS,
    CampaignState,
    ItemRequest,
    Round,
    RoundSettings,
    end_kind,
)
from bursar.campaign.stopping import agreement, watched_items
from bursar.campaign.unit_space import UnitSpace
from bursar.compute import HERE, Engine
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.errors import ConfigError, InfeasibleError
from bursar.learners import Learner
from bursar.ledger import Receipt, Submission
from bursar.ragged import IntArray, Ragged
from bursar.selection import Candidates
from bursar.tasks import CostModel, Prices

Outcome = Literal["opened", "ended", "waiting"]
SplitBudget = Callable[[RoundSettings, Candidates, int], RoundSplit]


class Campaign:
    """One strategy spending one budget on one corpus, in a folder that holds its ledger.

    ``ask`` and ``tell`` are all that an annotator needs, simulated or not; ``run`` is the loop of the two. Campaigns
    that run one after the other may share a ``learner``, and with it what it remembers of the items' frozen layers.
    ``lock=False`` is for a process that works for another one, which holds the folder. ``trust`` loads saved models
    that could run code, which are refused otherwise: give it where you know who made the folder. ``engine`` says where
    large pools are scored; enter it first, and its workers stay for all rounds. It changes no result.
    """

    def __init__(
        self,
        config: CampaignConfig,
        folder: Path,
        *,
        parts: DataSplits | None = None,
        watcher: Watcher | None = None,
        learner: Learner | None = None,
        lock: bool = True,
        trust: bool = False,
        engine: Engine = HERE,
    ) -> None:
        self.config = config
        self.folder = folder
        self.parts = parts or load_parts(config)
        self.corpus = self.parts.corpus
        self.tasks = list(self.corpus.schema.values())
        check_features(strategy_in_use(config), self.corpus.schema, config.limits, self.corpus.groups is not None)
        check_split(config, self.corpus.schema)
        self.watcher = watcher or NullObserver()
        self.ledger = open_ledger(config, folder, self.corpus)
        self.books = CampaignState(config, self.ledger)
        self.terms = self.books.first_terms
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
        rng = np.random.default_rng([config.seed, 11])
        self._seed_items = rng.choice(self._by_id(self.pool), seed_items, replace=False)
        rest = np.setdiff1d(self.pool, self._seed_items)
        self._watched = watched_items(self._by_id(self.pool), config.seed)
        self.audit = AuditPlan.of(config, self.corpus, rest, self._typical_price)
        self.offered: Callable[[Offer, Learner], None] | None = None  # is told of a round before it is open
        self._shares_lock = not lock
        self._lock: Lock | None = None
        self._begun = False
        self._space: UnitSpace | None = None

    @property
    def costs(self) -> CostModel:
        """The prices in force."""
        return self.terms.costs

    def close(self) -> None:
        """Let go of the ledger and the folder."""
        self.ledger.close()
        self._begun = False
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def begin(self) -> None:
        """Before anything is written: be the only one at work, and on the campaign that it was started with.

        The seed items are chosen at once: they need no model.
        """
        if not self._shares_lock:
            self._lock = self._lock or Lock(self.folder / "lock")
            if self.ledger.own():
                self.books.look_again()
        if self._begun:
            return
        self.models.check_policy()
        about = {"settings": self.config.digest, "corpus": self.parts.fingerprint}
        known = self.ledger.decision(0, "campaign")
        if known is None:
            check_served(self.config)
            self.models.check(self.corpus)
            if self.config.splits:
                allocator().check_learner(self.config, self.corpus.schema)
        elif known != about:
            place, fix = (self.folder, "folder") if self.config.ledger is None else (self.ledger.where, "schema")
            raise ConfigError(
                f"{place} was started with other settings or on another corpus", fix=f"choose another {fix}"
            )
        self.ledger.decide((0, "campaign", about))
        if self.ledger.decision(0, "selection") is None:
            self.ledger.decide((0, "selection", self._first_selection()))
        self._begun = True

    # -- ask and tell ------------------------------------------------------------------------------------------------
    def ask(self) -> Round | None:
        """What to annotate next: the rest of the open round, or a new round. ``None`` when the campaign is over."""
        self.begin()
        pending = self.pending(self.rounds_opened)
        if not pending:
            if self.advance() != "opened":
                return None
            pending = self.pending(self.rounds_opened)
        return Round(self.rounds_opened, pending)

    def tell(self, answers: Mapping[str, Mapping[str, Any]], annotator: str = "somebody") -> list[Receipt]:
        """Answers by item and task. Each item is one submission, on disk when its receipt is given.

        An answer may be sent again at any time, also when its round is over: it is recorded and charged once.
        """
        self.begin()
        return [self.ledger.submit(self._submission(item, labels, annotator)) for item, labels in answers.items()]

    def _submission(self, item: str, labels: Mapping[str, Any], annotator: str) -> Submission:
        want = self.books.asked(item, labels)
        submission = self.books.submission(want, labels, annotator)
        asked = self.corpus.take(self.corpus.positions([item]))
        self.models.check(asked.with_labels({task: Labels.of(asked, task, labels[task]) for task in want.tasks}))
        return submission

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
        return self.books.rounds_opened

    def pending(self, round: int) -> tuple[ItemRequest, ...]:
        """What a round asked for and was not told."""
        return self.books.pending(round)

    @property
    def ended(self) -> str | None:
        """Why the campaign is over; ``None`` while it is not."""
        return self.books.ended

    # -- from round to round -----------------------------------------------------------------------------------------
    def advance(self) -> Outcome:
        """Conclude the newest round with what is known of it, and open the next one unless the campaign is over.

        While items are open the end is not decided: what they leave of the money may be enough for another round.
        That the rest is waited for is decided once, and from then on it is.
        """
        outcome = self._advance()
        self.scoring.forget()
        return outcome

    def _advance(self) -> Outcome:
        self.begin()
        self.books.look_again()
        self._take_up(self.books.terms())
        round = self.rounds_opened
        known = self.known()
        if self.ended is None and (missing := known.unlabelled_tasks) and (items := self._more_seed_items(known)):
            self.watcher.stage(round, f"no label for {', '.join(missing)} yet: more items at random", 1.0)
            return self._open(round + 1, [(round + 1, "selection", items)])
        self._conclude(round, known)
        if self.ended is not None:
            return "ended"
        why = self.books.reason_to_end(round, self.terms)
        try:
            decisions = self._next_round(round, known) if why is None else []
        except InfeasibleError as wrong:
            decisions, why = [], wrong.message
        if decisions:
            return self._open(round + 1, decisions)
        why = why or "nothing that is left can be afforded"
        if known.asked:
            if self.ledger.decision(round, WAITS) is None:
                self.ledger.decide((round, WAITS, why))
            return "waiting"
        self.ledger.decide((round, end_kind(self.terms.changes), why))
        return "ended"

    def _open(self, round: int, decisions: Sequence[tuple[int, str, Any]]) -> Outcome:
        """All of it is one decision: a round is open altogether or not at all."""
        self.ledger.decide(*decisions)
        self.books.look_again()
        return "opened"

    def _take_up(self, terms: RoundSettings) -> None:
        self.terms = terms
        self.models = self.models.under(terms.config)

    def known(self) -> Known:
        """What the ledger says now; all that a round is decided by is looked at once, whoever may write meanwhile."""
        asked = self.books.open()  # before the labels: what is answered in between is in one of the two
        bought = self.ledger.view()
        if not self.config.budget.dev_items:
            dev = self.corpus.take(self.parts.dev) if len(self.parts.dev) else None
            return Known(asked, self.books.declined(), bought, bought, dev)
        aside = {
            w.id for r in range(self.rounds_opened + 1) for w in self.books.wanted(r).values() if w.purpose == "dev"
        }
        is_aside = np.array([item in aside for item in bought.ids.tolist()], dtype=bool)
        dev, rest = (bought.take(np.flatnonzero(part)) for part in (is_aside, ~is_aside))
        usable = all(column.present.any() for column in dev.labels.values())
        return Known(asked, self.books.declined(), bought, rest, dev if usable else None)

    def _first_selection(self) -> dict[str, Any]:
        """Items for all tasks before there is a model: drawn, or chosen to cover the pool; then development items."""
        if self.terms.strategy.start != "cover" or self.corpus.texts is None:
            return self._seed_selection(self._seed_items)
        learner = self.models.untrained()
        if not learner.pretrained:
            return self._seed_selection(self._seed_items)
        count, seed = self.config.budget.seed_items, self._round_seed(0)
        free = np.setdiff1d(self.audit.outside_reserve(self.pool), self._seed_items[count:])
        if len(free) <= count:
            return self._seed_selection(self._seed_items)
        free = start_candidates(self._by_id(free), seed)
        prices, by_item = self._prices(free, {}), self.config.budget.counts == "items"
        chosen = covering_start(
            learner,
            self.corpus,
            free,
            self.corpus.in_split(GIVEN) if GIVEN in self.corpus.splits else free[:0],
            prices,
            count if by_item else round(count * self._typical_price),
            in_items=by_item,
            seed=seed,
            progress=lambda what, done: self.watcher.stage(0, what, done),
        )
        return self._seed_selection(np.concatenate([chosen, self._seed_items[count:]]), START)

    def _seed_selection(self, items: IntArray, purpose: str = "seed") -> dict[str, Any]:
        """Items for all tasks, before there is a model; the last of them are the development items."""
        aside = {int(item) for item in self._seed_items[self.config.budget.seed_items :]}
        prices = self._prices(items, {})
        if self.terms.config.budget.total is not None:
            purse = self.terms.costs.units(self.terms.config.budget.total) - self.ledger.spent()
            affordable = np.cumsum(prices.joint()) <= purse
            items, prices = items[affordable], prices.take(np.flatnonzero(affordable))
        entries = entries_of(self.corpus, items, prices, None, purpose)
        for item, entry in zip(items.tolist(), entries, strict=True):
            if item in aside:
                entry["purpose"] = "dev"
        return {"budget": None, "items": entries}

    def _more_seed_items(self, known: Known) -> dict[str, Any] | None:
        """Other random items, where so few were answered that no model can be trained; ``None`` if there are none."""
        items, _ = self._free(known)
        count = min(len(items), self.config.budget.seed_items)
        rng = np.random.default_rng([self.config.seed, 11, self.rounds_opened + 1])
        selection = self._seed_selection(rng.choice(self._by_id(items), count, replace=False)) if count else {}
        return selection if selection.get("items") else None

    def _conclude(self, round: int, known: Known) -> None:
        """Train and score the model of all that is known after a round; nothing if that has been done."""
        if self.ledger.decision(round, "scores") is not None:
            return
        learner, best = self._main_model(round, known)
        test, trust = judged(learner, self.corpus.take(self.parts.test))
        if not trust and known.dev is not None:  # flattering, for the training saw them; better than not to know
            trust = judged(learner, known.dev)[1]
        record = {
            "spent": self.ledger.spent(),
            "items": len(known.annotated),
            "labels": {name: int(column.present.sum()) for name, column in known.annotated.labels.items()},
            "test": {task: {k: round_to(v) for k, v in scores.items()} for task, scores in test.items()},
            "dev": None if best is None else round_to(best),
            "reliability": trust,
        }
        watched = self.corpus.take(self._watched).unlabelled()
        guesses = learner.predict(watched)
        earlier = self.ledger.decision(round - 1, "watched") if round else None
        record["agreement"] = None if earlier is None else agreement(watched, earlier, guesses)
        decisions: list[tuple[int, str, Any]] = [(round, "watched", self._values(guesses)), (round, "scores", record)]
        if test and (shadow := self._shadow(round, known)) is not None:  # last, for it takes the place of the model
            scores = shadow[0].evaluate(self.corpus.take(self.parts.test))
            main = {task.name: round_to(scores[task.name][task.metric]) for task in self.tasks}
            decisions.append((round, "shadow", shadow[1] | {"test": main}))
        self.ledger.decide(*decisions)
        self.watcher.scored(round, record)

    def _model(
        self, round: int, annotated: Corpus, dev: Corpus | None, what: str = "training", log: Path | None = None
    ) -> tuple[Learner, float | None]:
        def progress(stage: str, done: float) -> None:
            self.watcher.stage(round, what if stage == "training" else stage, done)

        return self.models.fitted(annotated, dev, progress, log)

    def _main_model(self, round: int, known: Known) -> tuple[Learner, float | None]:
        """The model of all that is known, not a shadow's: the one whose steps are logged."""
        log = self.folder / "logs" / f"round-{round:02}.parquet" if self.config.learner.log_steps else None
        return self._model(round, known.annotated, known.dev, log=log)

    def _next_round(self, round: int, known: Known) -> list[tuple[int, str, Any]]:
        """What the next round buys, as decisions; none if there is nothing to buy."""
        learner, _ = self._main_model(round, known)
        offer = self.offer(round + 1, self.terms, known, learner, split=partial(self._split, round + 1, known))
        items = entries_of(self.corpus, offer.audit, offer.audit_prices, None, "audit")
        items += entries_of(self.corpus, offer.items, offer.pool.prices, offer.chosen, "strategy")
        if not items:
            return []
        decided = {"budget": offer.budget, "items": items, "certificate": written(offer.chosen.certificate)}
        if self.terms.changes:
            decided["settings"] = self.terms.changes
        if offer.caps is not None:
            decided["caps"] = offer.caps
        decisions: list[tuple[int, str, Any]] = [(round + 1, "selection", decided)]
        if self.terms.prices is not None:
            decisions.append((round + 1, PRICES, self.terms.prices))
        if len(offer.items) and self.terms.strategy.needs_model:
            shown = confidence_summary(
                self.corpus, offer.items, offer.scored.confidence, offer.scored.guesses, offer.chosen
            )
            decisions.append((round, "confidence", shown))
        if self.offered is not None:
            self.offered(offer, learner)
        if len(offer.audit):  # last, for the shadow takes the place of the model
            decisions.append((round + 1, "guesses", self._guesses(round, learner, offer.audit, known)))
        return decisions

    # -- what a round would buy --------------------------------------------------------------------------------------
    def offer(
        self,
        round: int,
        terms: RoundSettings,
        known: Known,
        learner: Learner | None,
        scored: tuple[IntArray, Scored] | None = None,
        split: SplitBudget | None = None,
    ) -> Offer:
        """What a round would buy on these terms: the audit slice first, then the strategy's choice with the rest.

        ``scored`` is what a model that is not at hand said of some items; only they are chosen from. ``split`` divides
        the rest between the tasks where the settings say so.
        """
        budget = self.books.allowance(round, terms)
        by_item = terms.config.budget.counts == "items"
        if terms.config.costs.pricing == "predicted" and not by_item:
            budget = int(budget / (1 + terms.config.costs.reserve))
        slice_ = self.audit.slice(round)
        prices = self._prices(slice_, learner or {}, terms)
        cost = len(prices) if by_item else int(prices.joint().sum())
        if cost > budget:  # whole or not at all: a slice cut to its price would not be random
            slice_, prices, cost = slice_[:0], prices.take(slice_[:0]), 0
        items, pool, found = self._candidates(terms, known, learner, round, scored)
        seed, caps = self._round_seed(round), None
        if terms.config.splits and split is not None and len(pool):
            chosen, caps = split(terms, pool, budget - cost).select(terms, pool, budget - cost, seed)
        else:
            chosen = terms.strategy.select(pool, budget - cost, seed=seed, in_items=by_item)
        measure = terms.strategy.measure if asks_the_model(terms) else None
        return Offer(round, budget, slice_, prices, items, pool, found, chosen, measure, caps)

    def _split(self, round: int, known: Known, terms: RoundSettings, pool: Candidates, money: int) -> RoundSplit:
        """The split of a round's money, measured once and written down before anything is chosen by it."""
        decided = self.ledger.decision(round, ALLOCATION)
        worth = self.label_value(round, known, terms) if decided is None else decided["known"]
        split = allocator().split(terms, worth, pool, money)
        if decided is None:
            self.ledger.decide((round, ALLOCATION, split.body))
        return split

    def label_value(self, round: int, known: Known, terms: RoundSettings) -> dict[str, Any]:
        """What labels are worth by all that is known before a round, measured now."""
        drawn = self._bought_for(BY_NO_MODEL, known)
        items, _ = self._free(known)
        return allocator().label_value(
            terms.config,
            known.annotated,
            drawn,
            self.corpus.take(items).unlabelled(),
            seed=self._round_seed(round),
            progress=lambda what, done: self.watcher.stage(round - 1, what, done),
        )

    def _candidates(
        self,
        terms: RoundSettings,
        known: Known,
        learner: Learner | None,
        round: int,
        earlier: tuple[IntArray, Scored] | None,
    ) -> tuple[IntArray, Candidates, Scored]:
        """All that may still be bought, as positions in the corpus and as the strategy sees it."""
        items, free = self._free(known)
        strategy, config = terms.strategy, terms.config
        if earlier is not None:
            both, mine, theirs = np.intersect1d(items, earlier[0], return_indices=True)
            items, free = both, free[mine]
        pool, tell = self.corpus.take(items), partial(self.watcher.stage, round - 1)
        if earlier is not None:
            scored = earlier[1].take(theirs)
        elif learner is not None and asks_the_model(terms):
            scored = self.scoring.scores(learner, strategy, pool, self._round_seed(round - 1), tell)
        else:
            scored = Scored(np.zeros((len(items), len(self.tasks))), self._gold(items))
        vectors = None if learner is None else partial(self.scoring.vectors, learner, progress=tell)
        aside = known.dev if known.dev is not None else self.corpus.take(items[:0])
        space = partial(self._unit_space, round, known, learner)
        features = pool_features_of(strategy, vectors, self.corpus, items, scored, known.bought, aside, space)
        limits = limits_of(config.limits, pool, scored.guesses, config.budget.rounds if strategy.once else 1)
        prices = self._prices(items, scored.guesses, terms)
        return items, Candidates(pool.ids.tolist(), scored.confidence, prices, free, limits, features), scored

    def _unit_space(self, round: int, known: Known, learner: Learner | None) -> UnitSpace:
        """Where units lie: found once, unless the learner can only say where its newest model puts items."""
        assert learner is not None
        if self._space is None or not self._space.lasting or not self._space.holds(known.bought):
            all_items = np.union1d(self.pool, self.corpus.positions(known.bought.ids.tolist()))
            items = self.corpus.take(self._by_id(all_items))
            tell = partial(self.watcher.stage, round - 1)
            self._space = UnitSpace(lambda part: self.scoring.embeddings(learner, part, tell), items)
        return self._space

    def _free(self, known: Known) -> tuple[IntArray, Any]:
        """What a strategy may choose from, and for which tasks each: (items,) and (items, tasks)."""
        items = self.audit.outside_reserve(self.pool)
        free = open_labels(self.corpus.take(items), known.bought, known.declined, [want.id for want in known.asked])
        return items[free.any(axis=1)], free[free.any(axis=1)]

    def _guesses(self, round: int, learner: Learner, slice_: IntArray, known: Known) -> dict[str, Any]:
        """What this round's models say of the audit slice before its answers are known: nobody can have peeked."""
        asked = self.corpus.take(slice_).unlabelled()
        found: dict[str, Any] = {"ids": asked.ids.tolist(), "model": self._values(learner.predict(asked))}
        if (shadow := self._shadow(round, known)) is not None:
            found |= {"shadow": self._values(shadow[0].predict(asked)), "shadow_spent": shadow[1]["spent"]}
        return found

    def _shadow(self, round: int, known: Known) -> tuple[Learner, dict[str, Any]] | None:
        """A model of the random items alone, and what they cost; ``None`` if none is wanted or it would say nothing."""
        measured = len(self.parts.test) and RANDOM in map(str.upper, self.config.compare)  # by random's own curve
        if measured or not (self.config.audit.shadow and self.audit.count):
            return None
        items = self._bought_for(AT_RANDOM, known)
        spent = self.ledger.spent_on(items.ids.tolist()) + self.ledger.spent(purpose="dev")  # random pays that, too
        labelled = all(column.present.any() for column in items.labels.values())
        if not labelled or spent < LEAST_SHARE * self.ledger.spent():
            return None
        learner, _ = self._model(round, items, known.dev, "training on random items")
        return learner, {"spent": spent, "items": len(items)}

    def _bought_for(self, purposes: tuple[str, ...], known: Known) -> Corpus:
        """What was bought for some purposes of all that is trained on."""
        bought = set(self.ledger.bought(purposes=purposes))
        return known.annotated.take(np.flatnonzero([item in bought for item in known.annotated.ids.tolist()]))

    def _values(self, guesses: Mapping[str, Ragged]) -> dict[str, list[Any]]:
        return {name: [self.corpus.schema[name].value(rows) for rows in column] for name, column in guesses.items()}

    # -- prices ------------------------------------------------------------------------------------------------------
    def _prices(
        self, items: IntArray, source: Learner | Mapping[str, Ragged], terms: RoundSettings | None = None
    ) -> Prices:
        """Prices of items: by gold where that is the rule, else by what the learner predicts."""
        part = self.corpus.take(items)
        if self.config.costs.pricing == "gold":
            labels: Mapping[str, Ragged] = self._gold(items)
        elif isinstance(source, Learner):
            labels = source.predict(part.unlabelled()) if len(items) else {}
        else:
            labels = source
        return prices_of((terms or self.terms).costs, self.tasks, part, labels, self._typical)

    def _gold(self, items: IntArray) -> dict[str, Ragged]:
        return {name: column.rows.take(items) for name, column in self.corpus.labels.items()}

    @cached_property
    def _typical(self) -> dict[str, float]:
        return typical_counts(self.tasks, self.corpus.take(self.parts.dev))

    @cached_property
    def _typical_price(self) -> float:
        return float(self._prices(self.pool, {}).joint().mean()) if len(self.pool) else 0.0

    # -- small things ------------------------------------------------------------------------------------------------
    def _by_id(self, items: IntArray) -> IntArray:
        return items[np.argsort(self.corpus.id_ranks[items])]

    def _round_seed(self, round: int) -> int:
        return int(np.random.SeedSequence([self.config.seed, 13, round]).generate_state(1)[0])


def asks_the_model(terms: RoundSettings) -> bool:
    """Whether anything about a round depends on what the model says of the pool."""
    group, strategy = terms.config.limits.group, terms.strategy
    by_guess = "labels" in strategy.needs or (group is not None and group.by.startswith("label:"))
    return strategy.needs_model or by_guess or terms.config.costs.pricing == "predicted"
