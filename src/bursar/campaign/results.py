"""The result of a run: everything that a report shows. ``to_json`` and ``from_json`` are its only JSON form."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import ValidationError

from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.decisions import ConfidenceSummary, RoundRecord, RoundSelection, SettingChange, SplitDecision
from bursar.errors import ConfigError
from bursar.ledger import SpendingLine
from bursar.ledger.records import JsonRecord

SCHEMA_VERSION = 1


class ScoreInterval(JsonRecord):
    """A score with its 90 % interval; none where there are too few items."""

    score: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


class AuditScores(JsonRecord):
    """How the model of a round scored on the audit slice that was bought after it."""

    round: int
    spent: int
    items: int
    scores: dict[str, ScoreInterval]


class SavingsEstimate(JsonRecord):
    """The share of the money saved against random labelling by the audit, with its 90 % interval."""

    saved: float
    low: float
    high: float
    known: bool  # whether the interval is informative
    needed: int | None = None  # audit labels that would make it so
    items: int = 0  # audited
    slices: int = 0


class SavedShare(JsonRecord):
    """The share of the money saved against random labelling; ``None`` if it is not known."""

    share: float | None = None
    low: float | None = None
    high: float | None = None
    by: Literal["curves", "audit"]
    needed: int | None = None


class StoppingAdvice(JsonRecord):
    """Whether to buy another round, and its expected gain in score, from 0 to 1."""

    stop: bool
    settled: bool | None = None  # None if unknown
    gain: float | None = None  # None without a curve
    low: float | None = None
    high: float | None = None
    per_money: float | None = None  # the expected gain for a unit of money
    why: str


class CurvePoints(JsonRecord):
    """Points of a curve, with an interval where it is a forecast."""

    money: tuple[float, ...]
    score: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class Forecast(JsonRecord):
    """The scores so far and, if one can be fitted, the curve through them and its next two rounds."""

    source: Literal["dev", "audit"]
    money: tuple[float, ...]
    score: tuple[float, ...]
    next_money: float
    curve: CurvePoints | None = None
    ahead: CurvePoints | None = None


class ArmResult(JsonRecord):
    """The result of one strategy."""

    rounds: tuple[RoundRecord, ...] = ()
    spending: tuple[SpendingLine, ...] = ()
    spent: int = 0
    selections: tuple[RoundSelection, ...] = ()
    splits: tuple[SplitDecision, ...] = ()
    confidence: tuple[ConfidenceSummary, ...] = ()
    audit: tuple[AuditScores, ...] = ()
    savings: SavingsEstimate | None = None
    stopping: tuple[StoppingAdvice, ...] = ()  # one after each round
    forecast: Forecast | None = None
    setting_changes: tuple[SettingChange, ...] = ()
    strategies: tuple[str, ...] = ()  # that chose rounds, in order
    skips: int = 0
    ended: str | None = None  # why

    @property
    def tested(self) -> list[RoundRecord]:
        """The rounds with test scores."""
        return [record for record in self.rounds if record.test]


class TaskSummary(JsonRecord):
    """A task of the corpus."""

    kind: str
    metric: str
    labels: int


class CorpusSummary(JsonRecord):
    """The corpus, and how many items its splits hold."""

    source: str
    pool: int
    dev: int
    test: int


class MeanScores(JsonRecord):
    """Mean scores along a money curve: of each task, and over tasks."""

    area: dict[str, float]
    mean: float


class RunResult(JsonRecord):
    """The result of a run: its strategy, and those that it is compared with."""

    schema_version: int = SCHEMA_VERSION
    name: str
    config: CampaignConfig
    versions: dict[str, str]
    strategy: str
    tasks: dict[str, TaskSummary]
    corpus: CorpusSummary
    arms: dict[str, ArmResult]
    comparison: dict[str, MeanScores] = {}
    oracle: dict[str, Any] | None = None
    saved: SavedShare | None = None

    @property
    def main(self) -> ArmResult:
        """The result of the campaign's own strategy."""
        return self.arms[self.strategy]

    @property
    def metrics(self) -> dict[str, str]:
        return {name: task.metric for name, task in self.tasks.items()}

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, text: str) -> RunResult:
        """Read a result back; refuse one of another version."""
        try:
            found = json.loads(text)
            version = found.get("schema_version")
            if version != SCHEMA_VERSION:
                message = f"this result has schema version {version}, and this Bursar reads version {SCHEMA_VERSION}"
                raise ConfigError(message, fix="write it again with: bursar report RUN --json")
            return cls.model_validate(found | {"config": parse_config(found["config"])})
        except (ValueError, AttributeError, KeyError, ValidationError) as wrong:
            raise ConfigError(f"this is not the result of a run: {wrong}") from None
