"""The settings of the next round: what they are, what they cost, and changes by leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.annotation.choices import choices
from bursar.annotation.ledger_mirror import LedgerMirror
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import SettingChange
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.pricing import measured_rates, usual_rates
from bursar.campaign.setting_changes import FIXED, changed_config, check_changed_config
from bursar.ledger.schema import now
from bursar.tasks import CostModel


class SessionSettings:
    """The settings of a campaign with human annotators. Thread-safe."""

    def __init__(self, campaign: Campaign, mirror: LedgerMirror) -> None:
        self._config, self._corpus = campaign.config, campaign.corpus
        self._ledger, self._state, self._mirror = campaign.ledger, campaign.state, mirror
        self._speed: tuple[int, dict[str, Any]] | None = None  # and the number of writes before it was measured

    @property
    def in_force(self) -> CampaignConfig:
        """The settings of the next round."""
        return self._mirror.terms.config

    @property
    def costs(self) -> CostModel:
        """The prices of the latest round."""
        return self._state.terms_of(self._state.rounds_opened).costs

    def change(self, changes: Mapping[str, Any], by: str, key: str | None = None) -> None:
        """Change the budget, prices, strategy or limits from the next round on. The same key again changes nothing."""
        with self._mirror.writing():
            earlier = self._state.setting_changes()
            if key is not None and any(made.key == key for made in earlier):
                return
            self.check(changes)
            number = len(earlier) + 1
            self._ledger.decide(SettingChange(round=number, changes=dict(changes), by=by, at=now(), key=key))
            self._mirror.reload()

    def check(self, changes: Mapping[str, Any]) -> str:
        """Raise if the changes are invalid; returns a digest of the resulting settings."""
        earlier = [made.changes for made in self._state.setting_changes()]
        after = changed_config(self._config, [*earlier, changes])
        check_changed_config(self.in_force, after, self._corpus)
        return after.digest

    def to_json(self) -> dict[str, Any]:
        """The settings of the next round, the history of changes, prices, measured times and choices."""
        with self._mirror.lock:
            config, history = self.in_force, self._state.history()
        first = next(iter(self._state.wanted(0)), None)
        answers = [] if first is None else self._ledger.answers(first)
        return {
            "settings": config.model_dump(mode="json", include=set(FIXED)),
            "fixed": {section: sorted(keys) for section, keys in FIXED.items()},
            "history": history,
            "prices": self.prices(),
            "pace": self.measured_speed(),
            "choices": choices(config, self._corpus.schema, self._corpus.groups is not None),
            # whether the first round was answered with the labels of the corpus, as in a simulation
            "simulated": any(entry.annotator == GoldAnnotator.name for entry in answers),
        }

    def prices(self) -> dict[str, Any]:
        """Prices of reading and of each task: in the latest round, in the next, and as configured if not measured."""
        with self._mirror.lock:
            terms = self._mirror.terms
        costs = terms.config.costs
        following = self._state.measured(terms.config, terms.changes) if costs.measured else terms
        prices = {"now": self.costs, "next": following.costs, "stated": costs.model(self._corpus.schema.values())}
        return {
            when: {
                what: {key: float(model.money(units)) for key, units in own.items()}
                for what, own in {"reading": model.reading, **model.own}.items()
            }
            for when, model in prices.items()
        }

    def measured_speed(self) -> dict[str, Any]:
        """Measured seconds of reading and of each task, with standard errors and counts."""
        with self._mirror.lock:
            writes, costs = self._mirror.writes, self.in_force.costs
        if self._speed is None or self._speed[0] != writes:
            tasks = list(self._corpus.schema.values())
            usual = usual_rates(costs.model(tasks), tasks, costs.hourly) if costs.hourly is not None else None
            rates = measured_rates(self._ledger, usual)
            self._speed = writes, {what: rate.as_json() for what, rate in rates.items()}
        return self._speed[1]
