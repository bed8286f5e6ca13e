"""Previews the next round under the current settings and under changed ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bursar.annotation.suggestions import Left, left_for, pool_left_for
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import LabelValue, SplitDecision
from bursar.campaign.participants import RoundSplit, allocator
from bursar.campaign.round_planner import Known, Offer, ScoredItems, asks_the_model, certificate_record, round_to
from bursar.campaign.setting_changes import changed_config, check_changed_config
from bursar.campaign.state import RoundSettings
from bursar.errors import ConfigError, InfeasibleError
from bursar.learners import Learner
from bursar.selection import Candidates

SHOWN = 20  # ids listed per side


def preview(campaign: Campaign, changes: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The next round with the current settings and with changes, selected by the latest model. Writes nothing.

    Without changes, both are the same. ``folder`` holds the files of that model. Open items count as bought at their
    estimated cost. If no item is open and a model of all answers exists, the result is ``settled``: the next round will
    be exactly this.
    """
    state = campaign.state
    campaign.scoring.folder = None  # a preview stores nothing
    now = then = state.terms()
    if changes:
        earlier = [made.changes for made in state.setting_changes()]
        config = changed_config(campaign.config, [*earlier, changes])
        check_changed_config(now.config, config, campaign.corpus)
        then = state.measured(config, now.changes + 1)
    round = state.rounds_opened
    known = campaign.known()
    left = left_for(folder, round)
    newest = None if known.asked or known.unlabelled_tasks else campaign.models.known(known.annotated, known.dev)
    if newest is not None:  # the next round will use this model
        left = Left(round, newest)
    if left.model is None:
        raise ConfigError("there is no model yet", fix="try again when the first round is trained")
    view = _View(campaign, folder, left, known, settled=newest is not None)
    mine = view.summary(now)
    others = view.summary(then) if changes else dict(mine)
    before, after = (found.pop("ids") for found in (mine, others))
    return {
        "round": round + 1,
        "settled": newest is not None,
        "now": mine,
        "then": others,
        "same": len(before & after),
        "added": len(after - before),
        "removed": len(before - after),
        "added_items": sorted(after - before)[:SHOWN],
        "removed_items": sorted(before - after)[:SHOWN],
    }


def doubt_of(offer: Offer) -> dict[str, float]:
    """The mean uncertainty of the selected labels by task; empty if the model was not used."""
    if offer.measure is None:
        return {}
    unsure = 1 - offer.pool.confidence[offer.chosen.items]
    columns = zip(offer.pool.tasks, unsure.T, offer.chosen.tasks.T, strict=True)
    return {task: round_to(values[bought].mean()) for task, values, bought in columns if bought.any()}


class _View:
    """The pool as scored by the latest model. Loads the model itself only if necessary."""

    def __init__(self, campaign: Campaign, folder: Path, left: Left, known: Known, settled: bool) -> None:
        self.campaign, self.folder, self.left, self.known, self.settled = campaign, folder, left, known, settled
        self._learner: Learner | None = None
        self._label_value: LabelValue | None = None

    def summary(self, terms: RoundSettings) -> dict[str, Any]:
        """The next round under these settings: items, labels and cost, or why there is none."""
        found: dict[str, Any] = {"strategy": terms.strategy.name, "budget": 0, "items": 0, "labels": {}, "cost": 0}
        found |= {"certificate": None, "measure": None, "doubt": {}}
        found |= {"audit": 0, "why": self.campaign.state.reason_to_end(self.left.round, terms), "ids": set()}
        if found["why"] is not None:
            return found
        try:
            offer = self._offer(terms)
        except InfeasibleError as wrong:
            return found | {"why": wrong.message}
        corpus, certificate = self.campaign.corpus, certificate_record(offer.chosen)
        entries = offer.selected(corpus)
        return found | {
            "budget": offer.budget,
            "items": len(entries),
            "labels": {name: sum(name in entry.tasks for entry in entries) for name in corpus.schema},
            "cost": sum(sum(entry.estimate.values()) for entry in entries),
            "audit": len(offer.audit),
            "certificate": certificate and certificate.model_dump(),
            "measure": offer.measure,
            "doubt": doubt_of(offer),
            "why": None if entries else "no remaining item is affordable",
            "ids": {entry.id for entry in entries},
        }

    def _offer(self, terms: RoundSettings) -> Offer:
        model: Learner | ScoredItems | None = None
        strategy = terms.strategy
        if asks_the_model(terms):
            if strategy.measure == self.left.measure and not strategy.needs & {"beliefs", "vectors", "units", "doubt"}:
                model = pool_left_for(self.folder, self.left.round, self.campaign.corpus)
            model = model or self._model()
        return self.campaign.planner.offer(terms, self.known, model, self._split)

    def _split(self, terms: RoundSettings, pool: Candidates, money: int) -> RoundSplit:
        """The budget split by the last measurement, or by a new one if there is none or the round would measure."""
        if self._label_value is None:
            decided = self.campaign.ledger.decisions(SplitDecision)
            if decided and (decided[-1].round == self.left.round + 1 or not self.settled):
                self._label_value = decided[-1].known
            else:
                self._label_value = self.campaign.planner.label_value(self.known, terms)
        return allocator().split(terms, self._label_value, pool, money)

    def _model(self) -> Learner:
        if self._learner is None:
            self._learner = self.campaign.models.named(str(self.left.model))
        if self._learner is None:
            raise ConfigError("the latest model is no longer on disk", fix="try again when the next round is trained")
        return self._learner
