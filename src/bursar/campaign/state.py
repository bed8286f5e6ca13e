"""The state of a campaign, read from its ledger: what is asked and answered, the settings, and the money left.

Nothing here needs a model, so a server can use it while another process trains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bursar.campaign.annotation_speed import prices_at, usual_rates
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
from bursar.campaign.pricing import charges_of, measured_rates
from bursar.campaign.setting_changes import changed_config, differences
from bursar.errors import ConfigError, LedgerError
from bursar.ledger import Answer, Ledger, Submission
from bursar.ledger.records import OVERLAP
from bursar.selection import Strategy
from bursar.tasks import CostModel

START = "start"  # items before the first model that were chosen, not drawn
SEEDS = ("seed", START, "dev")  # what is bought before the first round's money counts
GIVEN = "given"  # labels that came with the corpus, and cost nothing
AT_RANDOM = ("seed", "audit")  # purposes for which items are drawn, not chosen
BY_NO_MODEL = (*AT_RANDOM, START)  # and those that cover the pool: no model's doubt chose them


PriceTable = dict[str, dict[str, float]]  # of reading and of each task, in money


@dataclass(frozen=True)
class ItemRequest:
    """One item that a round wants annotated: for which tasks, why, and what that is thought to cost."""

    id: str
    tasks: tuple[str, ...]
    purpose: str
    estimate: Mapping[str, int]
    round: int = 0

    @property
    def key(self) -> str:
        """The key that its answer goes under: whoever answers, and however often, it is bought once."""
        return f"round {self.round}: {self.id}"


@dataclass(frozen=True)
class Round:
    """What a round asks for and has no answers to yet."""

    round: int
    items: tuple[ItemRequest, ...]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, eq=False)
class RoundSettings:
    """What a round is decided by: the settings in force, and the strategy and prices that follow from them."""

    config: CampaignConfig
    strategy: Strategy
    costs: CostModel
    changes: int = 0  # how many setting changes are in force
    prices: PriceTable | None = None  # measured, in money; None where the settings' own hold


class CampaignState:
    """What a ledger says of its campaign. What is decided never changes, so that much is read only once."""

    def __init__(self, config: CampaignConfig, ledger: Ledger) -> None:
        self.config = config
        self.ledger = ledger
        self.tasks = list(ledger.corpus.schema.values())
        self.first_terms = self.terms_under(config, 0, None)
        self._newest = -1  # round that has a selection, as far as is known
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
        """A round may have been opened by somebody else."""
        self._newest = -1

    def wanted(self, round: int) -> dict[str, ItemRequest]:
        """What a round asks for, by item."""
        if round not in self._selected:
            decided = self.ledger.decision(RoundSelection, round)
            if decided is None:
                return {}
            self._selected[round] = {
                item.id: ItemRequest(item.id, item.tasks, item.purpose, item.estimate, round) for item in decided.items
            }
        return self._selected[round]

    def pending(self, *rounds: int) -> tuple[ItemRequest, ...]:
        """What these rounds asked for and still wait for: not answered, skipped or given up."""
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
        """What all rounds still wait for, the oldest first."""
        return self.pending(*range(self.rounds_opened + 1))

    def declined(self) -> set[tuple[str, str]]:
        """Items and tasks that were skipped, and are not asked about again."""
        return {
            (skip.item, task)
            for skip in self.ledger.skips()
            for task in ([skip.task] if skip.task is not None else self.wanted(skip.round)[skip.item].tasks)
        }

    def check_undo(self, key: str, terms: RoundSettings) -> None:
        """Refuse to undo a skip whose item is asked about for other tasks, or which there is no money for.

        Where its round is closed, its item returns to the pool and costs nothing yet.
        """
        skip = next((skip for skip in self.ledger.skips() if skip.key == key), None)
        if skip is None:
            return  # it was undone before; or there is none, as the ledger will say
        if any(want.id == skip.item for want in self.open()):
            raise LedgerError(f"item {skip.item!r} is asked about for other tasks", fix="ask again when it is answered")
        want = self.wanted(skip.round).get(skip.item)
        if want is None or skip.round in self.ledger.decided(RoundClosed):
            return
        if want.purpose in SEEDS and terms.config.budget.total is None:
            return  # what comes before the rounds is paid beside their money
        last = max(self.rounds_opened, terms.config.budget.rounds)
        if self.allowance(last, terms) < _price(want, terms):
            raise LedgerError(
                f"no money is left to ask about item {skip.item!r} again", fix="raise the budget under Decide first"
            )

    def complete(self, waiting: int, terms: RoundSettings) -> bool:
        """Whether the newest round is far enough for the next one, with so many items that all rounds wait for."""
        if not waiting:
            return True
        round = self.rounds_opened
        enough = waiting <= terms.config.budget.ahead * len(self.wanted(round))
        return enough and self.ledger.decision(RoundWaits, round) is None

    # -- answers -----------------------------------------------------------------------------------------------------
    def asked(self, item: str, tasks: Collection[str]) -> ItemRequest:
        """What a round asked that this answers: of an item, for these tasks; the newest such round."""
        asked_in = [r for r in range(self.rounds_opened, -1, -1) if item in self.wanted(r)]
        if not asked_in:
            raise ConfigError(f"no round asks about item {item!r}")
        # An item may be asked about in several rounds, for other tasks each time.
        round = next((r for r in asked_in if set(self.wanted(r)[item].tasks) == set(tasks)), asked_in[0])
        want = self.wanted(round)[item]
        if set(tasks) != set(want.tasks):
            raise ConfigError(
                f"item {item!r} was asked about for {', '.join(want.tasks)}, and answered for "
                f"{', '.join(tasks) or 'nothing'}",
                fix="answer for all of those tasks at once",
            )
        return want

    def submission(self, want: ItemRequest, answer: Answer) -> Submission:
        """An answer as the ledger takes it, with what it costs at the prices of the round that asked for it."""
        annotations = answer.annotations(want.tasks)
        self.ledger.check(annotations)
        corpus = self.ledger.corpus
        item = corpus.take(corpus.positions([want.id]))
        charges = charges_of(self.terms_of(want.round).costs, item, annotations, want.estimate)
        key, purpose = want.key, want.purpose
        if answer.role == OVERLAP:
            key, purpose = f"{want.key}: overlap by {answer.annotator}", OVERLAP
        timings = tuple(answer.seconds.items())
        return Submission(key, annotations, charges, want.round, purpose, answer.annotator, timings, answer.role)

    # -- settings ----------------------------------------------------------------------------------------------------
    def setting_changes(self) -> list[SettingChange]:
        """The changes of settings since the campaign began."""
        return self.ledger.decisions(SettingChange)

    def history(self) -> list[dict[str, Any]]:
        """What was changed when and by whom, and from which round on it counts."""
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
        """The campaign's settings after so many changes, or all."""
        made = [change.changes for change in self.setting_changes()][:changes]
        return changed_config(self.config, made) if made else self.config

    def strategies(self) -> list[str]:
        """The strategies that have chosen a round, one after the other; the first one before there is any."""
        names = [self.terms_of(round).strategy.name for round in range(1, self.rounds_opened + 1)]
        return [name for name, _ in groupby(names or [self.config.strategy.make().name])]

    def terms(self) -> RoundSettings:
        """What the next round would be decided by."""
        changes = len(self.ledger.decided(SettingChange))
        return self.measured(self.settings(changes), changes)

    def terms_of(self, round: int) -> RoundSettings:
        """What a round was decided by."""
        if round not in self._terms:
            selection, prices = self.ledger.decision(RoundSelection, round), self.ledger.decision(RoundPrices, round)
            number = 0 if selection is None else selection.setting_changes
            self._terms[round] = self.terms_under(
                self.settings(number), number, None if prices is None else prices.prices
            )
        return self._terms[round]

    def measured(self, config: CampaignConfig, number: int) -> RoundSettings:
        """The terms that settings make, with the prices that were measured if those are to hold."""
        costs = config.costs
        if not costs.measured or costs.hourly is None:
            return self.terms_under(config, number, None)
        model = costs.model(self.tasks)
        rates = measured_rates(self.ledger, usual_rates(model, self.tasks, costs.hourly))
        return self.terms_under(config, number, prices_at(rates, self.tasks, costs.hourly, model.unit))

    def terms_under(self, config: CampaignConfig, number: int, prices: PriceTable | None) -> RoundSettings:
        """The terms that settings and prices make."""
        costs = config.costs.model(self.tasks)
        if prices is not None:
            costs = CostModel.of(self.tasks, prices, unit=config.costs.unit, currency=config.costs.currency)
        return RoundSettings(config, strategy_in_use(config), costs, number, prices)

    # -- money -------------------------------------------------------------------------------------------------------
    def allowance(self, round: int, terms: RoundSettings) -> int:
        """What may be spent by the end of a round and has not been: what one round saves, the next may spend.

        In whole units of money, or in items where the budget counts those. What is asked and open counts as spent.
        """
        budget = terms.config.budget
        by_item = budget.counts == "items"
        if by_item:
            seeds, spent = (self.items_bought(SEEDS), self.items_bought())
        else:
            seeds, spent = sum(self.ledger.spent(purpose=p) for p in SEEDS), self.ledger.spent()
        for want in self.open():
            price = _price(want, terms)
            spent += price
            seeds += price if want.purpose in SEEDS else 0
        free = seeds + self._income(round, terms) - spent
        if budget.total is None:
            return free
        return min(free, (int(budget.total) if by_item else terms.costs.units(budget.total)) - spent)

    def whole_budget(self, terms: RoundSettings) -> int:
        """What the whole campaign may cost under these settings, beside what comes before its first round."""
        budget = terms.config.budget
        if budget.total is None:
            return self._income(budget.rounds, terms)
        return int(budget.total) if budget.counts == "items" else terms.costs.units(budget.total)

    def _income(self, round: int, terms: RoundSettings) -> int:
        """The money of all rounds up to this one, each by the settings that it was decided under."""

        def of(terms: RoundSettings) -> int:
            money = terms.config.budget.per_round
            return int(money) if terms.config.budget.counts == "items" else terms.costs.units(money)

        if terms.strategy.once:
            return terms.config.budget.rounds * of(terms)
        opened = range(1, min(round, self.rounds_opened + 1))
        return sum(of(self.terms_of(r)) for r in opened) + (round - len(opened)) * of(terms)

    def items_bought(self, purposes: Iterable[str] | None = None) -> int:
        """How many items were paid for, for some purposes or all."""
        return len(set(self.ledger.bought(purposes=purposes)) - set(self.ledger.bought(purposes=(GIVEN,))))

    @property
    def ended(self) -> str | None:
        """Why the campaign is over under the settings in force; ``None`` while it is not."""
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


def _price(want: ItemRequest, terms: RoundSettings) -> int:
    """What an answer is thought to cost: money, or one item where the budget counts those."""
    return 1 if terms.config.budget.counts == "items" else sum(want.estimate.values())
