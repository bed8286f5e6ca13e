"""What a campaign is described by, key by key. What is wrong is said with the key and the fix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from bursar.allocation.informativeness import INFORMERS
from bursar.allocation.methods import METHODS
from bursar.allocation.rates import RATERS
from bursar.compute import make_engine
from bursar.curriculum.policy import Policy, make_policy, read_policy
from bursar.errors import ConfigError, LedgerError
from bursar.learners.learner import LEARNERS
from bursar.ledger.places import EXAMPLE, holds_password, read_url, sibling_url
from bursar.oracle.chain import Plan
from bursar.oracle.comparison import STEPS, plan_of
from bursar.oracle.judge_registry import PROBE, known_searcher
from bursar.selection import STARTS, Strategy, make_strategy
from bursar.selection.match import BINS
from bursar.tasks import CostModel, Task

BUILTIN = "builtin"
CONFIG_FILE = "campaign.json"  # in a run's folder: what the run was started with
NO_SPLIT = "none"  # a method of splitting


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values are never quietly changed into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    later: ClassVar[frozenset[str]] = frozenset()  # keys that there were not always

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the later keys where nobody uses them: as it was written before there were any."""
        return {key: value for key, value in handler(self).items() if value or key not in self.later}


class CorpusSection(Section):
    """Where the items come from and which splits play which part."""

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
    later = frozenset({"hourly", "measured"})
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

    later = frozenset({"dev_items", "ahead"})
    seed_items: int = Field(default=50, gt=0)  # bought at random before the first model
    counts: Literal["money", "items"] = "money"  # what per_round and total are numbers of
    per_round: float = Field(default=500, gt=0)
    rounds: int = Field(default=5, ge=0)
    total: float | None = Field(default=None, gt=0)  # the purse, seed items included
    patience: int | None = Field(default=None, gt=0)  # rounds without a better development score
    dev_items: int = Field(default=0, ge=0)  # bought beside the seed items as a development set, where there is none
    ahead: float = Field(default=0.0, ge=0, lt=1)  # of a round, that may be open when the next one is trained for


class StrategySection(Section):
    """How items are chosen."""

    later = frozenset({"start"})
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


class AllocationSection(Section):
    """How a round's money is split between the tasks before items are chosen for it."""

    method: str = "robust"  # what is known after a few rounds is not sure
    informer: str | None = None  # who informs whom; the fastest that there is for the tasks, if not given
    rater: str | None = None  # how fast labels lose worth; by curves of the labels drawn at random, if not given
    informer_settings: dict[str, Any] = Field(default_factory=dict)
    rater_settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known(self) -> AllocationSection:
        if self.method not in (*METHODS, NO_SPLIT):
            raise ConfigError(
                f"allocation.method = {self.method!r}", fix=f"use {', '.join(METHODS)}, or {NO_SPLIT!r} for no split"
            )
        for key, known in (("informer", INFORMERS), ("rater", RATERS)):
            name = getattr(self, key)
            if name is not None:
                known[name]
            elif getattr(self, f"{key}_settings"):
                raise ConfigError(f"allocation.{key}_settings: of which {key}?", fix=f"name it as allocation.{key}")
        return self


class LearnerSection(Section):
    """What is trained; every other key is an option of that learner."""

    model_config = ConfigDict(extra="allow", frozen=True)
    later = frozenset({"policy", "log_steps"})
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

    later = frozenset({"rounds"})
    share: float = Field(default=0.1, ge=0, lt=1)  # of each round's money
    shadow: bool = True  # also train on random items alone, to tell what was saved against random
    rounds: int | None = Field(default=None, gt=0)  # that slices are set aside for; budget.rounds if not given


class StoppingSection(Section):
    """When another round is not worth its money. This is advice: it changes no result and ends no campaign."""

    least_gain: float = Field(default=0.005, gt=0, lt=1)  # of score, that a round's money must bring
    judge_by: Literal["high", "mean"] = "high"  # what must be less than that: the upper end of the gain, or its mean
    interval: float = Field(default=0.9, gt=0, lt=1)  # how likely the gain lies within its interval
    agreement: float = Field(default=0.99, gt=0, le=1)  # with the last round's model, of predictions that have settled
    settled_rounds: int = Field(default=3, gt=0)  # for so many rounds, for every task


class OracleSection(Section):
    """How long to look for the best order when a run is finished. It changes nothing of the run itself."""

    steps: int = Field(default=STEPS, ge=0)  # of annealing
    greedy_steps: int | None = Field(default=None, ge=0)  # a fifth of that if not given
    cooling: float | None = Field(default=None, ge=0)  # γ; the more steps, the slower, if not given
    judge: str = PROBE  # or one of paper 4's networks
    engine: str = "processes"  # where networks are trained; the probe stays where it is asked

    @model_validator(mode="after")
    def _known(self) -> OracleSection:
        try:
            known_searcher(self.judge)
            if self.engine.partition(":")[0] != "ray":  # whether that is here matters to nobody but the search
                make_engine(self.engine)
        except ConfigError as wrong:
            raise ConfigError(f"oracle: {wrong.message}", fix=wrong.fix) from None
        return self

    @property
    def plan(self) -> Plan:
        """The search."""
        return plan_of(self.steps, self.greedy_steps, self.cooling, self.judge)


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

    def for_arm(self, arm: str) -> LedgerSection:
        """The ledger of a strategy that is compared: in a schema of its own."""
        return LedgerSection(url=sibling_url(self.url, arm))


class CampaignConfig(Section):
    """A whole campaign."""

    later = frozenset({"oracle", "ledger", "allocation"})
    name: str = Field(default="campaign", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")
    seed: int = Field(default=0, ge=0)
    tasks: list[str] = Field(default_factory=list)  # all of the corpus's if empty
    compare: list[str] = Field(default_factory=list)  # strategies to run beside, for comparison
    corpus: CorpusSection = CorpusSection()
    costs: CostsSection = CostsSection()
    budget: BudgetSection = BudgetSection()
    strategy: StrategySection = StrategySection()
    limits: LimitsSection = LimitsSection()
    allocation: AllocationSection | None = None
    learner: LearnerSection = LearnerSection()
    audit: AuditSection = AuditSection()
    stopping: StoppingSection = StoppingSection()
    oracle: OracleSection | None = None
    ledger: LedgerSection | None = None

    @model_validator(mode="after")
    def _strategies_exist(self) -> CampaignConfig:
        for name in [self.strategy.name, *self.compare]:
            chosen = make_strategy(name)
            if self.limits and not chosen.keeps_limits:
                raise ConfigError(
                    f"strategy {chosen.name} cannot keep to limits",
                    fix="use one that scores items, such as MT-AVG or UDJS, or take the limits away",
                )
        if self.budget.patience is not None and self.corpus.dev is None and not self.budget.dev_items:
            raise ConfigError("budget.patience needs development items", fix="name a split as corpus.dev")
        return self

    @model_validator(mode="after")
    def _can_be_split(self) -> CampaignConfig:
        if not self.splits:
            return self
        chosen, away = make_strategy(self.strategy.name), "take [allocation] away"
        if not chosen.keeps_limits:
            raise ConfigError(
                f"allocation: strategy {chosen.name} cannot keep to limits, and a split is some",
                fix=f"use UDJS or UDJS+BLP_AL, or {away}",
            )
        if not chosen.by_label:
            raise ConfigError(
                f"allocation: strategy {chosen.name} buys items for all tasks at once, so that nothing can be split",
                fix=f"use UDJS, UDJS+BLP_AL or COVER-LABELS, which buy label by label, or {away}",
            )
        if self.budget.counts == "items":
            raise ConfigError(
                "allocation: where items are counted, a second label of an item costs nothing and nothing can be split",
                fix=f'use budget.counts = "money", or {away}',
            )
        return self

    @property
    def splits(self) -> bool:
        """Whether the money of a round is split between tasks."""
        return self.allocation is not None and self.allocation.method != NO_SPLIT

    @property
    def digest(self) -> str:
        """A fingerprint of everything that a result depends on; no name, advice, oracle or place matters."""
        settings = self.model_dump(exclude={"name", "compare", "stopping", "oracle", "ledger"})
        settings["learner"] = self.learner.decisive
        if self.budget.per_round == BudgetSection().per_round:  # 500, whether it was said, written down or left out
            settings["budget"]["per_round"] = BudgetSection().per_round
        if self.corpus.source != BUILTIN:
            del settings["corpus"]["source"]  # a corpus may move; what is in it is told by its own fingerprint
        text = json.dumps(settings, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def arm(self, strategy: str) -> CampaignConfig:
        """The same campaign with another strategy, for comparison.

        It needs no shadow, being compared already; a random one needs no audit slice, all of it is one. A strategy
        that cannot be split between tasks spends as it always does.
        """
        chosen = make_strategy(strategy)
        weights = self.strategy.weights if chosen.weighted else {}
        own = chosen.name == make_strategy(self.strategy.name).name
        update = {"name": chosen.name, "weights": weights, "start": self.strategy.start if own else None}
        mine = self.strategy.model_copy(update=update)
        share = self.audit.share if chosen.needs_model else 0.0
        audit = self.audit.model_copy(update={"share": share, "shadow": False})
        learner = self.learner
        if chosen.alone and learner.log_steps:  # a model for each task chooses none
            learner = learner.model_copy(update={"log_steps": False})
        ledger = self.ledger and self.ledger.for_arm(chosen.name)
        changed = {"strategy": mine, "compare": [], "audit": audit, "learner": learner, "ledger": ledger}
        if not (chosen.by_label and chosen.keeps_limits):
            changed["allocation"] = None
        return self.model_copy(update=changed)


def parse_config(raw: dict[str, Any], where: str = "campaign") -> CampaignConfig:
    """A campaign from a table, checked.

    >>> parse_config({"budget": {"per_round": -5}})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: campaign: budget.per_round = -5: ... Fix: for instance budget.per_round = 500
    >>> parse_config({"budget": {"per_rond": 5}})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: campaign: budget.per_rond is no key. Fix: use ahead, counts, dev_items, ...
    """
    try:
        return CampaignConfig.model_validate(raw)
    except ConfigError as wrong:
        raise ConfigError(f"{where}: {wrong.message}", fix=wrong.fix) from None
    except ValidationError as wrong:
        first = wrong.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(_section_of(first["loc"]).model_fields))
            raise ConfigError(f"{where}: {key} is no key", fix=f"use {known}") from None
        given = "" if first["loc"][:1] == ("ledger",) else f" = {first.get('input')!r}"  # it may hold a password
        raise ConfigError(
            f"{where}: {key}{given}: {first['msg'].removeprefix('Value error, ')}",
            fix=f"for instance {key} = {_default_of(first['loc'])}",
        ) from None


def _section_of(place: tuple[int | str, ...]) -> type[BaseModel]:
    """The section that a key is in, whether or not it may be left out."""
    field = CampaignConfig.model_fields.get(str(place[0])) if len(place) > 1 else None
    if field is None:
        return CampaignConfig
    kinds = get_args(field.annotation) or (field.annotation,)
    return next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))


def _default_of(place: tuple[int | str, ...]) -> str:
    """The default of a key, as an example of a value that works."""
    value: Any = CampaignConfig(
        oracle=OracleSection(greedy_steps=plan_of().greedy_steps, cooling=plan_of().cooling),
        ledger=LedgerSection(url=EXAMPLE),
        allocation=AllocationSection(method=NO_SPLIT),
    )
    for part in place:
        value = getattr(value, str(part), None) if isinstance(value, BaseModel) else None
    return json.dumps(value.model_dump() if isinstance(value, BaseModel) else value)
