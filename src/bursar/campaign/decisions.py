"""The decisions of a campaign as its ledger records them: one class per kind."""

from __future__ import annotations

from typing import Any

from bursar.ledger.records import Decision, JsonRecord


class CampaignBegun(Decision):
    """The settings and the corpus that the campaign was started with, as digests."""

    kind = "campaign"
    settings: str
    corpus: str


# -- selections --------------------------------------------------------------------------------------------------------
class SelectedItem(JsonRecord):
    """One item to annotate: for which tasks, why, and the estimated cost of reading and of each task."""

    id: str
    tasks: tuple[str, ...]
    purpose: str
    estimate: dict[str, int]


class CertificateRecord(JsonRecord):
    """How good a selection is, and a bound on how good it could have been."""

    objective: float
    bound: float | None = None
    optimal: bool


class RoundSelection(Decision):
    """The items that a round asks about."""

    kind = "selection"
    budget: int | None = None
    items: tuple[SelectedItem, ...]
    certificate: CertificateRecord | None = None
    setting_changes: int = 0  # made before the round was decided
    caps: dict[str, int] | None = None  # labels of each task, where the budget was split between tasks


class RoundPrices(Decision):
    """The prices in force in a round, in money, where they follow measured annotation times."""

    kind = "prices"
    prices: dict[str, dict[str, float]]


class LabelValue(JsonRecord):
    """The measured value of labels."""

    labels: dict[str, int]  # known so far
    rates: dict[str, tuple[float, float, float, float]]  # rate of decline, its interval, and the block it refers to
    informs: dict[str, dict[str, tuple[float, float]]] = {}  # value for another task, and its standard error
    unknown: tuple[str, ...] = ()  # tasks whose rate is not known
    why: str | None = None


class SplitDecision(Decision):
    """How a round's budget was split between the tasks, and why."""

    kind = "allocation"
    method: str
    money: int
    prices: dict[str, int]
    worth: dict[str, float]
    labels: dict[str, int]
    gain: float
    known: LabelValue
    set_aside: bool = False  # effects between tasks were ignored, as by them no label would be worth anything


# -- models ------------------------------------------------------------------------------------------------------------
class ReliabilityRecord(JsonRecord):
    """The accuracy of a model by bins of its confidence."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    confidence: tuple[float | None, ...]  # mean of a bin; None if it is empty
    accuracy: tuple[float | None, ...]
    overconfidence: float
    calibration: float


class RoundRecord(Decision):
    """The training set and the scores of a round's model."""

    kind = "scores"
    spent: int
    items: int
    labels: dict[str, int]
    test: dict[str, dict[str, float]]  # task to metric to score; empty without test items
    dev: float | None = None
    reliability: dict[str, ReliabilityRecord] = {}
    agreement: dict[str, float] | None = None  # with the previous round's model, by task


class ShadowScores(Decision):
    """The training set and the scores of a round's shadow."""

    kind = "shadow"
    spent: int
    items: int
    test: dict[str, float]


class AuditPredictions(Decision):
    """Both models' predictions for an audit slice before it is labelled."""

    kind = "audit predictions"
    ids: tuple[str, ...]
    model: dict[str, list[Any]]
    shadow: dict[str, list[Any]] | None = None
    shadow_spent: int | None = None
    sure: dict[str, list[float]] | None = None  # how sure the model was; older ledgers do not say


class WatchedPredictions(Decision):
    """A round's predictions for the watched items."""

    kind = "watched"
    predictions: dict[str, list[Any]]


class ConfidenceExample(JsonRecord):
    """An item with the model's prediction and confidence, by task."""

    id: str
    confidence: dict[str, float]
    guess: dict[str, Any]


class ConfidenceSummary(Decision):
    """Histograms of a model's confidence in the pool and in the chosen items, and the most and least certain items."""

    kind = "confidence"
    bins: int
    pool: dict[str, list[int]]
    chosen: dict[str, list[int]]
    mean: dict[str, float]
    least: tuple[ConfidenceExample, ...]
    most: tuple[ConfidenceExample, ...]


# -- the course of a campaign ------------------------------------------------------------------------------------------
class SettingChange(Decision):
    """Settings changed during a campaign. ``round`` is a running number from 1; a ``key`` is applied only once."""

    kind = "settings"
    changes: dict[str, Any]
    by: str = "somebody"
    at: str = ""
    key: str | None = None

    @property
    def number(self) -> int:
        return self.round


class RoundClosed(Decision):
    """A round was closed early: these items return to the pool."""

    kind = "closed"
    by: str
    returned: tuple[str, ...]


class RoundWaits(Decision):
    """The campaign ends or continues once all answers of the round are in."""

    kind = "waits"
    reason: str


class CampaignEnded(Decision):
    """The campaign is over under the settings in force; a change of settings may continue it."""

    kind = "end"
    reason: str
    setting_changes: int = 0

    @property
    def stored_kind(self) -> str:
        return ended_under(self.setting_changes)


def ended_under(setting_changes: int) -> str:
    """The stored kind of an end after a number of setting changes."""
    return CampaignEnded.kind if setting_changes == 0 else f"{CampaignEnded.kind} after {setting_changes} changes"
