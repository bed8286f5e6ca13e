"""The state of a campaign, read from its ledger: requests and answers, settings, and the money left.

Nothing here needs a model, so a server can use it while another process trains.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bursar.campaign.checks import strategy_in_use
from bursar.campaign.config import CampaignConfig
from bursar.campaign.decisions import (
    CampaignEnded,
    RoundClosed,
    RoundPrices,
    RoundRecord,
    RoundSelection,
    RoundWaits,
    SettingChange,
    ended_under,
)
from bursar.campaign.pricing import PriceTable, charges_of, measured_rates, prices_at, usual_rates
from bursar.campaign.setting_changes import changed_config, differences
from bursar.errors import ConfigError, LedgerError
from bursar.ledger import Answer, Ledger, Submission
from bursar.ledger.records import OVERLAP
from bursar.selection import Strategy
from bursar.tasks import CostModel

START = "start"  # items before the first model that were selected, not drawn
SEEDS = ("seed", START, "dev")  # bought before the first round
GIVEN = "given"  # labels that came with the corpus, and cost nothing
AT_RANDOM = ("seed", "audit")  # purposes for which items are drawn, not selected
BY_NO_MODEL = (*AT_RANDOM, START)


@dataclass(frozen=True)
class ItemRequest:
    """An item that a round asks to annotate: for which tasks, why, and its estimated cost."""

    id: str
    tasks: tuple[str, ...]
    purpose: str
    estimate: Mapping[str, int]
    round: int = 0

    @property
    def key(self) -> str:
        """The key of its submission: whoever answers, and however often, it is bought once."""
        return f"round {self.round}: {self.id}"


@dataclass(frozen=True)
class Round:
    """The items of a round that are not answered yet."""

    round: int
    items: tuple[ItemRequest, ...]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, eq=False)
class RoundSettings:
    """The settings in force in a round, and the strategy and prices that follow from them."""

    config: CampaignConfig
    strategy: Strategy
    costs: CostModel
    changes: int = 0  # number of setting changes in force
    prices: PriceTable | None = None  # measured, in money; None if the configured prices hold


class CampaignState:
    """A campaign as its ledger records it. Decisions never change, so they are read only once."""

    def __init__(self, config: CampaignConfig, ledger: Ledger) -> None:
        self.config = config
        self.ledger = ledger
        self.tasks = list(ledger.corpus.schema.values())
        self.first_terms = self.terms_under(config, 0, None)
        self._newest = -1  # cached: the newest round that has a selection
        self._selected: dict[int, dict[str, ItemRequest]] = {}
        self._terms: dict[int, RoundSettings] = {}

    # -- rounds ------------------------------------------------------------------------------------------------------
    @property
    def rounds_opened(self) -> int:
        """The number of the newest round that has a selection; −1 before the first."""
        if self._newest < 0:
            self._newest = max(self.ledger.decided(RoundSelection), default=-1)
        return self._newest

    def look_again(self) -> None:
        """Read the newest round again: another process may have opened one."""
        self._newest = -1

    def wanted(self, round: int) -> dict[str, ItemRequest]:
        if round not in self._selected:
            decided = self.ledger.decision(RoundSelection, round)
            if decided is None:
                return {}
            self._selected[round] = {
                item.id: ItemRequest(item.id, item.tasks, item.purpose, item.estimate, round) for item in decided.items
            }
        return self._selected[round]

    def pending(self, *rounds: int) -> tuple[ItemRequest, ...]:
        """The requests of these rounds that are not answered, skipped or returned to the pool."""
        answered, closed = self.ledger.keys(), set(self.ledger.decided(RoundClosed))
        declined = {(skip.round, skip.item) for skip in self.ledger.skips()}
        return tuple(
            want
            for round in rounds
            if round not in closed
            for want in self.wanted(round).values()
            if want.key not in answered and (round, want.id) not in declined
        )

    def open(self) -> tuple[ItemRequest, ...]:
        """The pending requests of all rounds, oldest first."""
        return self.pending(*range(self.rounds_opened + 1))

    def declined(self) -> set[tuple[str, str]]:
        """Skipped items and tasks, which are not asked about again."""
        return {
            (skip.item, task)
            for skip in self.ledger.skips()
            for task in ([skip.task] if skip.task is not None else self.wanted(skip.round)[skip.item].tasks)
        }

    def check_undo(self, key: str, terms: RoundSettings) -> None:
        """Refuse to undo a skip if its item is open for other tasks, or too expensive to ask about again."""
        skip = next((skip for skip in self.ledger.skips() if skip.key == key), None)
        if skip is None:
            return  # undone before, or the ledger will refuse it
        if any(want.id == skip.item for want in self.open()):
            raise LedgerError(f"item {skip.item!r} is asked about for other tasks", fix="ask again when it is answered")
        want = self.wanted(skip.round).get(skip.item)
        if want is None or skip.round in self.ledger.decided(RoundClosed):
            return  # its item returns to the pool and costs nothing yet
        if want.purpose in SEEDS and terms.config.budget.total is None:
            return  # seed items are paid apart from the rounds
        last = max(self.rounds_opened, terms.config.budget.rounds)
        if self.allowance(last, terms) < self.price(want):
            fix = "raise the budget under Decide first"
            raise LedgerError(f"no money is left to ask about item {skip.item!r} again", fix=fix)

    def complete(self, waiting: int, terms: RoundSettings) -> bool:
        """Whether the next round may be prepared while this many items of all rounds are pending."""
        few = waiting <= terms.config.budget.ahead * len(self.wanted(self.rounds_opened))
        return not waiting or (few and self.ledger.decision(RoundWaits, self.rounds_opened) is None)

    # -- answers -----------------------------------------------------------------------------------------------------
    def asked(self, item: str, tasks: Collection[str]) -> ItemRequest:
        """The newest request for this item and these tasks."""
        rounds = range(self.rounds_opened, -1, -1)
        found = [want for round in rounds if (want := self.wanted(round).get(item)) is not None]
        if not found:
            raise ConfigError(f"no round asks about item {item!r}")
        # An item may be asked about in several rounds, for other tasks each time.
        want = next((want for want in found if set(want.tasks) == set(tasks)), found[0])
        if set(tasks) != set(want.tasks):
            answered = ", ".join(tasks) or "nothing"
            message = f"item {item!r} was asked about for {', '.join(want.tasks)}, and answered for {answered}"
            raise ConfigError(message, fix="answer for all of those tasks at once")
        return want

    def submission(self, want: ItemRequest, answer: Answer) -> Submission:
        """An answer with its cost, at the prices of the round that asked for it."""
        annotations, corpus = answer.annotations(want.tasks), self.ledger.corpus
        self.ledger.check(annotations)
        item = corpus.take(corpus.positions([want.id]))
        charges = charges_of(self.terms_of(want.round).costs, item, annotations, want.estimate)
        key, purpose = want.key, want.purpose
        if answer.role == OVERLAP:
            key, purpose = f"{want.key}: overlap by {answer.annotator}", OVERLAP
        timings = tuple(answer.seconds.items())
        return Submission(key, annotations, charges, want.round, purpose, answer.annotator, timings, answer.role)

    # -- settings ----------------------------------------------------------------------------------------------------
    def setting_changes(self) -> list[SettingChange]:
        return self.ledger.decisions(SettingChange)

    def history(self) -> list[dict[str, Any]]:
        """The setting changes: what changed, when, by whom, and from which round on it applies."""
        counts = {round: self.terms_of(round).changes for round in range(self.rounds_opened + 1)}
        made_so_far = self.setting_changes()
        steps = [self.settings(number) for number in range(len(made_so_far) + 1)]
        return [
            {
                "number": made.number,
                "changes": dict(made.changes),
                "differences": differences(steps[made.number - 1], steps[made.number]),
                "by": made.by,
                "at": made.at,
                "since_round": min((r for r, count in counts.items() if count >= made.number), default=None),
            }
            for made in made_so_far
        ]

    def settings(self, changes: int | None = None) -> CampaignConfig:
        """The settings after this many changes, by default all of them."""
        made = [change.changes for change in self.setting_changes()][:changes]
        return changed_config(self.config, made) if made else self.config

    def strategies(self) -> list[str]:
        """The strategies that have selected rounds, in order; before the first round, the configured one."""
        names = [self.terms_of(round).strategy.name for round in range(1, self.rounds_opened + 1)]
        return [name for name, _ in groupby(names or [self.config.strategy.make().name])]

    def terms(self) -> RoundSettings:
        """The settings of the next round."""
        changes = len(self.ledger.decided(SettingChange))
        return self.measured(self.settings(changes), changes)

    def terms_of(self, round: int) -> RoundSettings:
        """The settings under which a round was decided."""
        if round not in self._terms:
            selection, prices = self.ledger.decision(RoundSelection, round), self.ledger.decision(RoundPrices, round)
            number = selection.setting_changes if selection else 0
            measured = prices.prices if prices else None
            self._terms[round] = self.terms_under(self.settings(number), number, measured)
        return self._terms[round]

    def measured(self, config: CampaignConfig, number: int) -> RoundSettings:
        """The round settings of a configuration, with measured prices if it asks for them."""
        costs, prices = config.costs, None
        if costs.measured and costs.hourly is not None:
            model = costs.model(self.tasks)
            rates = measured_rates(self.ledger, usual_rates(model, self.tasks, costs.hourly))
            prices = prices_at(rates, self.tasks, costs.hourly, model.unit)
        return self.terms_under(config, number, prices)

    def terms_under(self, config: CampaignConfig, number: int, prices: PriceTable | None) -> RoundSettings:
        """The round settings of a configuration, at these prices if given."""
        costs = config.costs.model(self.tasks)
        if prices is not None:
            costs = CostModel.of(self.tasks, prices, unit=config.costs.unit, currency=config.costs.currency)
        return RoundSettings(config, strategy_in_use(config), costs, number, prices)

    # -- money -------------------------------------------------------------------------------------------------------
    def allowance(self, round: int, terms: RoundSettings) -> int:
        """The money, or items, that may still be spent by the end of a round; pending requests count as spent."""
        prices = [(want.purpose, self.price(want)) for want in self.open()]
        spent = self.spent() + sum(price for _, price in prices)
        seeds = self.spent(SEEDS) + sum(price for purpose, price in prices if purpose in SEEDS)
        free = seeds + self._income(round, terms) - spent
        total = terms.config.budget.total
        return free if total is None else min(free, _units(total, terms) - spent)

    def price(self, want: ItemRequest) -> int:
        return 1 if self.config.budget.counts == "items" else sum(want.estimate.values())

    def whole_budget(self, terms: RoundSettings) -> int:
        """What the whole campaign may cost under these settings, apart from its seed items."""
        budget = terms.config.budget
        return self._income(budget.rounds, terms) if budget.total is None else _units(budget.total, terms)

    def _income(self, round: int, terms: RoundSettings) -> int:
        """The money of all rounds up to this one, each by the settings under which it was decided."""
        if terms.strategy.once:
            return terms.config.budget.rounds * _units(terms.config.budget.per_round, terms)
        opened = [self.terms_of(r) for r in range(1, min(round, self.rounds_opened + 1))]
        income = sum(_units(each.config.budget.per_round, each) for each in opened)
        return income + (round - len(opened)) * _units(terms.config.budget.per_round, terms)

    def spent(self, purposes: Sequence[str] | None = None) -> int:
        """What was spent for some purposes or all: units of money, or items if the budget counts those."""
        if self.config.budget.counts == "items":
            return len(set(self.ledger.bought(purposes=purposes)) - set(self.ledger.bought(purposes=(GIVEN,))))
        return self.ledger.spent() if purposes is None else sum(self.ledger.spent(purpose=p) for p in purposes)

    @property
    def ended(self) -> str | None:
        """Why the campaign is over under the settings in force; ``None`` while it runs."""
        stored_kind = ended_under(len(self.ledger.decided(SettingChange)))
        end = self.ledger.decision(CampaignEnded, self.rounds_opened, stored_kind)
        return None if end is None else end.reason

    def reason_to_end(self, round: int, terms: RoundSettings) -> str | None:
        """Why no round can follow this one."""
        budget = terms.config.budget
        if round >= (1 if terms.strategy.once else budget.rounds):
            return "all rounds are done"
        if self.allowance(round + 1, terms) <= 0:
            return "the money is spent"
        if budget.patience is not None and round >= budget.patience:
            scores = [record.dev or 0.0 for record in self.ledger.decisions(RoundRecord)]
            earlier, newest = scores[: -budget.patience], scores[-budget.patience :]
            if earlier and max(newest) <= max(earlier):
                return f"{budget.patience} rounds brought no better development score"
        return None


def _units(amount: float, terms: RoundSettings) -> int:
    """An amount of the budget in units of money, or in items if the budget counts those."""
    return int(amount) if terms.config.budget.counts == "items" else terms.costs.units(amount)
