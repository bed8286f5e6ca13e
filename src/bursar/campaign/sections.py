"""The tables of a campaign's file, except ``[allocation]`` and ``[oracle]``, which belong to advisers."""

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
from bursar.selection.modifiers import BINS
from bursar.tasks import CostModel, Task

BUILTIN = "builtin"  # the name of the corpus that comes with the package


class Section(BaseModel):
    """A table of the file: unknown keys are errors, and values are not converted to other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    paths: ClassVar[tuple[tuple[str, ...], ...]] = ()  # keys of files, each with the tables that it is in

    @classmethod
    def example(cls) -> Self:
        """Valid settings, as examples in messages."""
        return cls()


class CorpusSection(Section):
    """Where the items come from and which splits play which part."""

    paths = (("source",), ("options", "layer"))
    source: str = BUILTIN  # a file or folder, relative to the TOML file, or "builtin"
    format: str | None = None  # of the source; detected if not given
    options: dict[str, Any] = Field(default_factory=dict)  # what the format's reader takes
    items: int = Field(default=20_000, gt=0)  # of the built-in corpus
    seed: int = Field(default=0, ge=0)  # of the built-in corpus
    pool: str = "train"  # the split whose items are bought
    dev: str | None = "dev"  # the split that stops trainings early and judges rounds
    test: str | None = "test"  # the split of the scores in the report
    pool_items: int | None = Field(default=None, gt=0)  # a random sample of the pool; all of it if not given
    dev_items: int | None = Field(default=None, gt=0)  # the same for dev
    test_items: int | None = Field(default=None, gt=0)  # the same for test


class CostsSection(Section):
    """Prices in money: for reading, and by task name."""

    model_config = ConfigDict(extra="allow", frozen=True)
    unit: int | float = 1  # the smallest amount of money; all prices are multiples of it
    currency: str = ""  # its sign
    pricing: Literal["gold", "predicted"] = "gold"  # what is counted before buying (errata 11)
    reserve: float = Field(default=0.1, ge=0, le=10)  # kept back for overruns when prices are predicted
    hourly: float | None = Field(default=None, gt=0, le=1e6)  # what an hour of annotation costs
    measured: bool = Field(default=False, strict=True)  # prices follow the measured seconds

    @model_validator(mode="after")
    def _has_a_rate(self) -> CostsSection:
        if self.measured and self.hourly is None:
            raise ConfigError("costs.measured needs the price of an hour", fix="for instance costs.hourly = 20")
        return self

    @property
    def prices(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def model(self, tasks: Iterable[Task]) -> CostModel:
        return CostModel.of(list(tasks), self.prices, unit=self.unit, currency=self.currency)


class BudgetSection(Section):
    """How much may be spent, and how fast."""

    seed_items: int = Field(default=50, gt=0)  # bought at random before the first model
    counts: Literal["money", "items"] = "money"  # what per_round and total are numbers of
    per_round: float = Field(default=500, gt=0)  # what is left of a round goes to the next one
    rounds: int = Field(default=5, ge=0)  # after the seed items
    total: float | None = Field(default=None, gt=0)  # of the whole campaign, seed items included
    patience: int | None = Field(default=None, gt=0)  # rounds without a better development score
    dev_items: int = Field(default=0, ge=0)  # bought beside the seed items as a development set, where there is none
    ahead: float = Field(default=0.0, ge=0, lt=1)  # of a round, that may be open when the next one is trained for


class StrategySection(Section):
    """How items are chosen."""

    name: str = "AUTO"  # any strategy, such as MT-MIN+BLP_AL
    start: str | None = None  # how the first items are selected; by default the strategy's own way
    weights: dict[str, int | float] = Field(default_factory=dict)  # β of tasks, if the strategy uses them
    bins: str = "length"  # of matching: length, cluster or label:TASK
    bin_count: int = Field(default=BINS, gt=0)  # number of bins by length or cluster

    @model_validator(mode="after")
    def _known(self) -> StrategySection:
        self.make()
        if self.start is not None and self.start not in STARTS:
            raise ConfigError(f"strategy.start = {self.start!r}", fix=f"use {' or '.join(STARTS)}")
        return self

    def make(self) -> Strategy:
        made = make_strategy(self.name, weights=self.weights, bins=self.bins, bin_count=self.bin_count)
        return made if self.start is None else replace(made, start=self.start)


class TaskLimit(Section):
    """How many labels of a task a round buys."""

    at_most: int | None = Field(default=None, ge=0)  # labels per round
    at_least: int = Field(default=0, ge=0)  # labels per round


class GroupLimit(Section):
    """How many items of one group a round buys: of a document, a source, or with one predicted label."""

    by: str = Field(default="group", pattern=r"^(group|label:.+)$")  # what makes a group
    at_most: int = Field(ge=0)  # items of a group per round


class Pace(Section):
    """How many hours a label takes."""

    per_item: float = Field(default=0.0, ge=0)  # hours
    per_word: float = Field(default=0.0, ge=0)  # hours


class HoursLimit(Section):
    """The hours of an annotator in a round, and the speed at each task."""

    at_most: float = Field(ge=0)  # hours per round
    tasks: dict[str, Pace]  # the hours of a label, by task


class LimitsSection(Section):
    """Limits of a round beside its money."""

    tasks: dict[str, TaskLimit] = Field(default_factory=dict)  # by task
    group: GroupLimit | None = None  # by group
    hours: dict[str, HoursLimit] = Field(default_factory=dict)  # by annotator

    def __bool__(self) -> bool:
        return bool(self.tasks or self.group or self.hours)


class LearnerSection(Section):
    """The learner; all other keys are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)
    paths = (("encoder",),)
    name: str = "transformer"  # the model to train
    policy: dict[str, Any] | None = None  # the description of the task policy of training steps
    log_steps: bool = Field(default=False, strict=True)  # log every step that the policy decided

    @field_validator("policy", mode="before")
    @classmethod
    def _described(cls, given: Any) -> dict[str, Any] | None:
        """From a name, a file, a table with a name, or a description."""
        try:
            match given:
                case None:
                    return None
                case str():
                    return make_policy(given).describe()
                case {"name": str()}:
                    return make_policy(**given).describe()
                case {"policy": _}:
                    return read_policy(given).describe()
        except ConfigError as wrong:
            raise ConfigError(f"learner.policy: {wrong.message}", fix=wrong.fix) from None
        fix = 'name one, such as "uniform", or the file of a learned one'
        raise ConfigError(f"learner.policy = {given!r}", fix=fix)

    @model_validator(mode="after")
    def _known(self) -> LearnerSection:
        LEARNERS[self.name]
        if self.log_steps and self.policy is None:
            fix = 'name a policy, such as learner.policy = "uniform"'
            raise ConfigError("learner.log_steps: joint steps choose no task", fix=fix)
        return self

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @property
    def task_policy(self) -> Policy | None:
        """The policy of training steps; ``None`` if every step trains all tasks."""
        return None if self.policy is None else read_policy(self.policy)

    @property
    def decisive(self) -> dict[str, Any]:
        """All settings that a model depends on."""
        return self.model_dump(exclude={"log_steps"})


class AuditSection(Section):
    """The random slice for unbiased scores."""

    share: float = Field(default=0.1, ge=0, lt=1)  # of each round's money
    shadow: bool = True  # also train on random items only, to estimate the savings against random
    rounds: int | None = Field(default=None, gt=0)  # rounds to reserve slices for; default: budget.rounds


class StoppingSection(Section):
    """When to advise against another round. Advice changes no result and ends no campaign."""

    least_gain: float = Field(default=0.005, gt=0, lt=1)  # in score, that a round must bring
    judge_by: Literal["high", "mean"] = "high"  # compared with that: the upper end of the gain's interval, or its mean
    interval: float = Field(default=0.9, gt=0, lt=1)  # probability of the gain's interval
    agreement: float = Field(default=0.99, gt=0, le=1)  # with the previous model, of settled predictions
    settled_rounds: int = Field(default=3, gt=0)  # in a row, for every task


class LedgerSection(Section):
    """The server of the ledger, if that is not a file in the run's folder. It changes no result."""

    url: str  # postgresql://name@host/database?schema=name, without a password

    @field_validator("url")
    @classmethod
    def _without_password(cls, given: str) -> str:
        try:
            secret = holds_password(read_url(given))
        except LedgerError as wrong:
            raise ConfigError(f"ledger.url: {wrong.message}", fix=wrong.fix) from None
        if secret:
            fix = "remove it from the URL and set PGPASSWORD or write it to ~/.pgpass"
            raise ConfigError("ledger.url holds a password, which would be copied with the campaign", fix=fix)
        return given

    @classmethod
    def example(cls) -> Self:
        return cls(url=EXAMPLE)

    def for_arm(self, arm: str) -> LedgerSection:
        """The ledger of a compared strategy, in its own schema."""
        return LedgerSection(url=sibling_url(self.url, arm))
