"""The settings of a campaign, from a table or its TOML file. Errors name the key and a fix."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, Field, SerializeAsAny, ValidationError, ValidationInfo, field_validator, model_validator

from bursar.campaign import sections
from bursar.campaign.checks import check_served
from bursar.campaign.participants import ADVISERS, ALLOCATION, ORACLE, allocator
from bursar.campaign.sections import BUILTIN, BudgetSection, Section
from bursar.curriculum.policy import is_file
from bursar.errors import ConfigError
from bursar.registry import suggestion
from bursar.selection import make_strategy

LEAST = 'name at least the tasks, as in tasks = ["intent", "slots"], or a [corpus] with a source'
CONFIG_FILE = "campaign.json"  # in a run's folder: the settings that it was started with


class CampaignConfig(Section):
    """A whole campaign: every table of its file, with defaults.

    >>> config = CampaignConfig(tasks=["intent"], budget={"per_round": 200.0, "rounds": 3})
    >>> config.budget.seed_items, config.strategy.name
    (50, 'AUTO')
    """

    name: str = Field(default="campaign", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")  # default: name of the file
    seed: int = Field(default=0, ge=0)  # of everything that is random
    tasks: list[str] = Field(default_factory=list)  # default: all of the corpus
    compare: list[str] = Field(default_factory=list)  # strategies to compare with
    corpus: sections.CorpusSection = sections.CorpusSection()
    costs: sections.CostsSection = sections.CostsSection()
    budget: BudgetSection = BudgetSection()
    strategy: sections.StrategySection = sections.StrategySection()
    limits: sections.LimitsSection = sections.LimitsSection()
    allocation: SerializeAsAny[Section] | None = None
    learner: sections.LearnerSection = sections.LearnerSection()
    audit: sections.AuditSection = sections.AuditSection()
    stopping: sections.StoppingSection = sections.StoppingSection()
    oracle: SerializeAsAny[Section] | None = None
    ledger: sections.LedgerSection | None = None

    @field_validator(ALLOCATION, ORACLE, mode="before")
    @classmethod
    def _read_by_adviser(cls, given: object, info: ValidationInfo) -> Section | None:
        return None if given is None else ADVISERS[str(info.field_name)].section.model_validate(given)

    @model_validator(mode="after")
    def _strategies_exist(self) -> CampaignConfig:
        for name in [self.strategy.name, *self.compare]:
            chosen = make_strategy(name)
            if self.limits and not chosen.keeps_limits:
                fix = "use one that scores items, such as MT-AVG or UDJS, or remove the limits"
                raise ConfigError(f"strategy {chosen.name} cannot keep to limits", fix=fix)
        if self.budget.patience is not None and self.corpus.dev is None and not self.budget.dev_items:
            raise ConfigError("budget.patience needs development items", fix="name a split as corpus.dev")
        return self

    @model_validator(mode="after")
    def _can_be_split(self) -> CampaignConfig:
        if not self.splits:
            return self
        chosen, wrong = make_strategy(self.strategy.name), None
        if not chosen.keeps_limits:
            wrong, fix = f"strategy {chosen.name} cannot keep to limits, as a split needs", "use UDJS or UDJS+BLP_AL"
        elif not chosen.by_label:
            wrong = f"strategy {chosen.name} buys items for all tasks at once, so the money cannot be split"
            fix = "use UDJS, UDJS+BLP_AL or COVER-LABELS, which buy label by label"
        elif self.budget.counts == "items":
            wrong = "a budget in items cannot be split, as a second label of an item costs nothing"
            fix = 'use budget.counts = "money"'
        if wrong:
            raise ConfigError(f"allocation: {wrong}", fix=f"{fix}, or remove [allocation]")
        return self

    @property
    def splits(self) -> bool:
        """Whether the money of a round is split between tasks."""
        return self.allocation is not None and allocator().splits(self.allocation)

    @property
    def digest(self) -> str:
        """A fingerprint of all settings that a result depends on."""
        settings = self.model_dump(exclude={"name", "compare", "stopping", "oracle", "ledger"})
        settings["learner"] = self.learner.decisive
        if self.budget.per_round == BudgetSection().per_round:  # 500 and 500.0 are the same
            settings["budget"]["per_round"] = BudgetSection().per_round
        if self.corpus.source != BUILTIN:
            del settings["corpus"]["source"]  # a corpus may move; its contents have their own fingerprint
        text = json.dumps(settings, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def arm(self, strategy: str) -> CampaignConfig:
        """The same campaign with another strategy, for comparison.

        It has no shadow; a random one has no audit, as all its items are random; the money is only split if it can be.
        """
        chosen = make_strategy(strategy)
        weights = self.strategy.weights if chosen.weighted else {}
        own = chosen.name == make_strategy(self.strategy.name).name
        update = {"name": chosen.name, "weights": weights, "start": self.strategy.start if own else None}
        share = self.audit.share if chosen.needs_model else 0.0
        log_steps = self.learner.log_steps and not chosen.alone  # models of single tasks have no policy
        changed = {
            "strategy": self.strategy.model_copy(update=update),
            "compare": [],
            "audit": self.audit.model_copy(update={"share": share, "shadow": False}),
            "learner": self.learner.model_copy(update={"log_steps": log_steps}),
            "ledger": self.ledger and self.ledger.for_arm(chosen.name),
            "allocation": self.allocation if chosen.by_label and chosen.keeps_limits else None,
        }
        return self.model_copy(update=changed)


def parse_config(raw: dict[str, Any], where: str = "campaign") -> CampaignConfig:
    """A validated campaign from a table."""
    try:
        return CampaignConfig.model_validate(raw)
    except ConfigError as wrong:
        raise ConfigError(f"{where}: {wrong.message}", fix=wrong.fix) from None
    except ValidationError as wrong:
        first = wrong.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"{where}: {key} is no key", fix=_known_keys(first["loc"])) from None
        given = "" if first["loc"][:1] == ("ledger",) else f" = {first.get('input')!r}"  # a URL may hold a password
        message = f"{where}: {key}{given}: {first['msg'].removeprefix('Value error, ')}"
        raise ConfigError(message, fix=f"for instance {key} = {_default_of(first['loc'])}") from None


def _known_keys(place: tuple[int | str, ...]) -> str:
    """The keys that there are where an unknown one was given: the nearest, another place of the same name, or all."""
    section, name = section_of(str(place[0])) if len(place) > 1 else None, str(place[-1])
    known = sorted((section or CampaignConfig).model_fields)
    hint = suggestion(name, known)
    others = {other: found.model_fields for other in CampaignConfig.model_fields if (found := section_of(other))}
    if elsewhere := [f"{other}.{name}" for other, keys in others.items() if name in keys]:
        hint = f"did you mean {elsewhere[0]}? "
    return f"{hint}Use {', '.join(known)}" if hint else f"use {', '.join(known)}"


def section_of(name: str) -> type[Section] | None:
    """The section of this name; ``None`` if there is none."""
    if name in (ALLOCATION, ORACLE):
        return ADVISERS[name].section
    field = CampaignConfig.model_fields.get(name)
    kinds = () if field is None else get_args(field.annotation) or (field.annotation,)
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def _default_of(place: tuple[int | str, ...]) -> str:
    """The default of a key, as an example of a valid value."""
    section = section_of(str(next(iter(place), "")))
    value: Any = CampaignConfig() if section is None else section.example()
    for part in place if section is None else place[1:]:
        value = getattr(value, str(part), None) if isinstance(value, BaseModel) else None
    return json.dumps(value.model_dump() if isinstance(value, BaseModel) else value)


# -- the file of a campaign --------------------------------------------------------------------------------------------
def load_config(path: str | Path, changes: Sequence[str] = ()) -> CampaignConfig:
    """A campaign from its TOML file, with relative paths taken from the file's folder.

    ``changes`` set keys of the file to other values, such as ``learner.steps=300``.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "spring.toml"
    >>> _ = file.write_text('tasks = ["intent", "slots"]')
    >>> load_config(file).name
    'spring'
    """
    path = Path(path)
    raw = _read(path)
    if not raw.get("tasks") and not raw.get("corpus"):  # the wrong file, or an incomplete one
        what = "names no tasks and no corpus" if raw else "is empty"
        raise ConfigError(f"{path} {what}, so it is no campaign", fix=LEAST)
    raw.setdefault("name", path.stem)
    for name, table in raw.items():
        section = section_of(name) if isinstance(table, dict) else None
        for *tables, key in section.paths if section is not None else ():
            _resolve(reduce(_value_in, tables, table), key, path.parent)
    learner = raw.get("learner")
    policy = _value_in(learner, "policy")
    for table, key in ((learner, "policy"), (policy, "name")):
        if is_file(_value_in(table, key)):
            _resolve(table, key, path.parent)
    for change in changes:
        _apply(change, raw)
    config = parse_config(raw, str(path))
    try:
        check_served(config)
    except ConfigError as wrong:
        raise ConfigError(f"{path}: {wrong.message}", fix=wrong.fix) from None
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a TOML file", fix=LEAST) from None
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path} cannot be read as text: {wrong}", fix=LEAST) from None
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise ConfigError(f"{path} is not valid TOML: {wrong}", fix=LEAST) from None


def _apply(change: str, table: dict[str, Any]) -> None:
    """Set a key to a value written as in TOML; a value that is no TOML is a text."""
    place, equals, text = (part.strip() for part in change.partition("="))
    *sections, key = place.split(".")
    if not equals or not all((*sections, key)):
        raise ConfigError(f"--set {change}: not a setting", fix="write KEY=VALUE, as in learner.steps=300")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change}: {section} is not a section", fix="write KEY=VALUE, as in seed=3")
    table[key] = value


def _value_in(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


def _resolve(table: Any, key: str, folder: Path) -> None:
    """Make a path that is relative to the campaign's file absolute."""
    if isinstance(table, dict) and isinstance(value := table.get(key), str) and value != BUILTIN:
        network, colon, file = value.rpartition(":")  # such as bilstm:vectors.txt
        if (folder / file).exists():
            table[key] = f"{network}{colon}{(folder / file).resolve()}"
