"""The tables of a campaign's file, key by key. What is wrong is said with the key and the fix.

Those of advisers are theirs: ``[allocation]`` and ``[oracle]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bursar.curriculum.policy import Policy, make_policy, read_policy
from bursar.errors import ConfigError, LedgerError
from bursar.learners.learner import LEARNERS
from bursar.ledger.places import EXAMPLE, holds_password, read_url, sibling_url
from bursar.selection import STARTS, Strategy, make_strategy
from bursar.selection.match import BINS
from bursar.tasks import CostModel, Task

BUILTIN = "builtin"  # the name of the corpus that comes with the package


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values are never quietly changed into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    paths: ClassVar[tuple[tuple[str, ...], ...]] = ()  # keys of files, each with the tables that it is in

    @classmethod
    def example(cls) -> Self:
        """Settings that work, from which messages take their examples."""
        return cls()


class CorpusSection(Section):
    """Where the items come from and which splits play which part."""

    paths = (("source",), ("options", "layer"))
    source: str = BUILTIN
    format: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)  # what the format's reader takes
    items: int = Field(default=20_000, gt=0)  # of the built-in corpus
    seed: int = Field(default=0, ge=0)  # of the built-in corpus
    pool: str = "train"
    dev: str | None = "dev"
    test: str | None = "test"
    pool_items: int | None = Field(default=None, gt=0)  # a random part of each split; all of it if not given
    dev_items: int | None = Field(default=None, gt=0)
    test_items: int | None = Field(default=None, gt=0)


class CostsSection(Section):
    """Prices in money: for reading, and by task name."""

    model_config = ConfigDict(extra="allow", frozen=True)
    unit: int | float = 1
    currency: str = ""
    pricing: Literal["gold", "predicted"] = "gold"  # what is counted before buying (errata 11)
    reserve: float = Field(default=0.1, ge=0, le=10)  # kept back for overruns when prices are predicted
    hourly: float | None = Field(default=None, gt=0, le=1e6)  # what an hour of annotation costs
    measured: bool = Field(default=False, strict=True)  # prices follow the seconds that annotators take

    @model_validator(mode="after")
    def _has_a_rate(self) -> CostsSection:
        if self.measured and self.hourly is None:
            raise ConfigError("costs.measured: seconds have no price", fix="say what an hour costs: costs.hourly = 20")
        return self

    @property
    def prices(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def model(self, tasks: Iterable[Task]) -> CostModel:
        """The prices of these tasks, defaults included."""
        return CostModel.of(list(tasks), self.prices, unit=self.unit, currency=self.currency)


class BudgetSection(Section):
    """How much may be spent, and how fast."""

    seed_items: int = Field(default=50, gt=0)  # bought at random before the first model
    counts: Literal["money", "items"] = "money"  # what per_round and total are numbers of
    per_round: float = Field(default=500, gt=0)
    rounds: int = Field(default=5, ge=0)
    total: float | None = Field(default=None, gt=0)  # of the whole campaign, seed items included
    patience: int | None = Field(default=None, gt=0)  # rounds without a better development score
    dev_items: int = Field(default=0, ge=0)  # bought beside the seed items as a development set, where there is none
    ahead: float = Field(default=0.0, ge=0, lt=1)  # of a round, that may be open when the next one is trained for


class StrategySection(Section):
    """How items are chosen."""

    name: str = "AUTO"
    start: str | None = None  # how the items before the first model are chosen; the strategy's own way if not given
    weights: dict[str, int | float] = Field(default_factory=dict)  # β of tasks, where the strategy takes them
    bins: str = "length"  # of matching: length, cluster or label:TASK
    bin_count: int = Field(default=BINS, gt=0)

    @model_validator(mode="after")
    def _known(self) -> StrategySection:
        self.make()
        if self.start is not None and self.start not in STARTS:
            raise ConfigError(f"strategy.start = {self.start!r}", fix=f"use {' or '.join(STARTS)}")
        return self

    def make(self) -> Strategy:
        """The strategy with its options."""
        made = make_strategy(self.name, weights=self.weights, bins=self.bins, bin_count=self.bin_count)
        return made if self.start is None else replace(made, start=self.start)


class TaskLimit(Section):
    """How many labels of a task a round buys."""

    at_most: int | None = Field(default=None, ge=0)
    at_least: int = Field(default=0, ge=0)


class GroupLimit(Section):
    """How many items of one group a round buys: of a document, a source, or with one predicted label."""

    by: str = Field(default="group", pattern=r"^(group|label:.+)$")
    at_most: int = Field(ge=0)


class Pace(Section):
    """How many hours a label takes."""

    per_item: float = Field(default=0.0, ge=0)
    per_word: float = Field(default=0.0, ge=0)


class HoursLimit(Section):
    """How many hours an annotator has in a round, and how long each task takes them."""

    at_most: float = Field(ge=0)
    tasks: dict[str, Pace]


class LimitsSection(Section):
    """What a round must keep to beside its money."""

    tasks: dict[str, TaskLimit] = Field(default_factory=dict)
    group: GroupLimit | None = None
    hours: dict[str, HoursLimit] = Field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.tasks or self.group or self.hours)


class LearnerSection(Section):
    """What is trained; every other key is an option of that learner."""

    model_config = ConfigDict(extra="allow", frozen=True)
    paths = (("encoder",),)
    name: str = "transformer"
    policy: dict[str, Any] | None = None  # which task each training step is spent on: all of it, not where it came from
    log_steps: bool = Field(default=False, strict=True)  # write down every step that the policy decided

    @field_validator("policy", mode="before")
    @classmethod
    def _described(cls, given: object) -> dict[str, Any] | None:
        """From a name, a file, a table with a name, or what ``describe`` gave."""
        try:
            if given is None:
                return None
            if isinstance(given, str):
                return make_policy(given).describe()
            if isinstance(given, dict) and isinstance(given.get("name"), str):
                return make_policy(**given).describe()
            if isinstance(given, dict) and "policy" in given:
                return read_policy(given).describe()
        except ConfigError as wrong:
            raise ConfigError(f"learner.policy: {wrong.message}", fix=wrong.fix) from None
        raise ConfigError(
            f"learner.policy = {given!r}", fix='name one, such as "uniform", or the file of a learned one'
        )

    @model_validator(mode="after")
    def _known(self) -> LearnerSection:
        LEARNERS[self.name]
        if self.log_steps and self.policy is None:
            raise ConfigError(
                "learner.log_steps: joint steps choose no task", fix='name a policy, such as learner.policy = "uniform"'
            )
        return self

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @property
    def task_policy(self) -> Policy | None:
        """The policy that trainings are led by; ``None`` where every step trains all tasks."""
        return None if self.policy is None else read_policy(self.policy)

    @property
    def decisive(self) -> dict[str, Any]:
        """All of it that a model depends on."""
        return {key: value for key, value in self.model_dump().items() if key != "log_steps"}


class AuditSection(Section):
    """The random slice that keeps scores honest."""

    share: float = Field(default=0.1, ge=0, lt=1)  # of each round's money
    shadow: bool = True  # also train on random items alone, to tell what was saved against random
    rounds: int | None = Field(default=None, gt=0)  # that slices are set aside for; budget.rounds if not given


class StoppingSection(Section):
    """When another round is not worth its money. This is advice: it changes no result and ends no campaign."""

    least_gain: float = Field(default=0.005, gt=0, lt=1)  # of score, that a round's money must bring
    judge_by: Literal["high", "mean"] = "high"  # what must be less than that: the upper end of the gain, or its mean
    interval: float = Field(default=0.9, gt=0, lt=1)  # how likely the gain lies within its interval
    agreement: float = Field(default=0.99, gt=0, le=1)  # with the last round's model, of predictions that have settled
    settled_rounds: int = Field(default=3, gt=0)  # rounds in a row, for every task


class LedgerSection(Section):
    """The server that keeps the ledger, where that is not a file in the run's folder. It changes no result."""

    url: str

    @field_validator("url")
    @classmethod
    def _without_password(cls, given: str) -> str:
        try:
            secret = holds_password(read_url(given))
        except LedgerError as wrong:
            raise ConfigError(f"ledger.url: {wrong.message}", fix=wrong.fix) from None
        if secret:
            raise ConfigError(
                "ledger.url holds a password, which would be copied with the campaign",
                fix="leave it out of the URL; it is taken from PGPASSWORD or from the file ~/.pgpass",
            )
        return given

    @classmethod
    def example(cls) -> Self:
        return cls(url=EXAMPLE)

    def for_arm(self, arm: str) -> LedgerSection:
        """The ledger of a strategy that is compared: in a schema of its own."""
        return LedgerSection(url=sibling_url(self.url, arm))
