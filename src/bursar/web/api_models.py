"""Request and response bodies of the API, with their size limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bursar.web.accounts import MAX_PASSWORD, MIN_PASSWORD

MOST_TASKS = 100

Key = Annotated[
    str,
    Field(
        min_length=8,
        max_length=100,
        pattern=r"^[A-Za-z0-9_.:-]+$",
        description="Idempotency key chosen by the sender, such as a UUID. Repeating a key has no effect.",
    ),
]
ItemId = Annotated[str, Field(min_length=1, max_length=1000, description="The item's id.")]
Labels = Annotated[
    dict[str, Any],
    Field(min_length=1, max_length=MOST_TASKS, description="A label for every task, in the JSON form of its kind."),
]
Seconds = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]],
    Field(
        default_factory=dict,
        max_length=MOST_TASKS + 1,
        description="Seconds spent on reading and on each task.",
    ),
]
Changes = Annotated[dict[str, Any], Field(max_length=100, description="New values by setting.")]
LeaseId = Annotated[str, Field(min_length=1, max_length=100)]
Password = Annotated[str, Field(min_length=MIN_PASSWORD, max_length=MAX_PASSWORD)]
RoleName = Literal["lead", "annotator"]


class RequestBody(BaseModel):
    """Base of request bodies: unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: str = Field(description="What went wrong, in a sentence.")
    fix: str | None = Field(description="What to do about it.")
    kind: str = Field(description="Machine-readable kind of the error.")


# -- annotating ------------------------------------------------------------------------------------------------------
class NextRequest(RequestBody):
    """Ask for an item to annotate."""

    known: list[LeaseId] = Field(
        default_factory=list,
        max_length=20,
        description="Leases you hold and know of. Any other lease you hold is returned first.",
    )


class LeaseOut(BaseModel):
    """A time-limited reservation of an item."""

    id: str
    expires_at: str
    seconds: float


class Progress(BaseModel):
    """Progress of the latest round; `asked` includes skipped items."""

    round: int
    answered: int
    asked: int
    skipped: int
    mine: int = Field(description="Items of the round answered by you.")


class NextReply(BaseModel):
    """An item to annotate; or no lease, and the reason."""

    lease: LeaseOut | None
    item: dict[str, Any] | None = None
    tasks: list[str] | None = None
    suggestions: dict[str, Any] | None = Field(
        default=None,
        description="By task, where the model is better than chance: `label`, `confidence` from chance (0) to "
        "certainty (1), and `sure`, the confidence in words.",
    )
    round: int | None = None
    purpose: Literal["answer", "overlap"] | None = None
    progress: Progress | None = None
    reason: Literal["training", "ended", "failed", "all_leased", "none"] | None = None
    message: str | None = None
    retry_after: int | None = Field(default=None, description="Seconds to wait before asking again.")


class AnswerRequest(RequestBody):
    """An answer to an item: labels for all requested tasks."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    labels: Labels
    seconds: Seconds


class CorrectionRequest(RequestBody):
    """New labels that replace earlier ones."""

    key: Key
    item: ItemId
    labels: Labels


class SkipRequest(RequestBody):
    """Skip an item: it leaves the round, and its cost returns to the budget."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    reason: str = Field(default="", max_length=2000)


class SkipOut(BaseModel):
    """A skipped item."""

    key: str = Field(description="Send it to undo the skip.")
    item: dict[str, Any]
    tasks: list[str] = Field(description="The requested tasks.")
    person: str
    reason: str
    at: str
    round: int
    undone_by: str | None
    undone_at: str | None


class SkipList(BaseModel):
    """Skipped items, newest first."""

    skips: list[SkipOut]
    total: int


class UndoRequest(RequestBody):
    """Undo a skip."""

    skip: str = Field(min_length=1, max_length=1000, description="The skip's `key`.")


class SkipUndone(BaseModel):
    """The skip was undone."""

    asked: bool = Field(description="The item is open again; otherwise it is back in the pool.")


class ReceiptOut(BaseModel):
    """Confirms that the request is on disk."""

    key: str
    repeated: bool = Field(description="Already recorded: nothing was written or charged again.")
    cost: str
    cost_units: int


class MyAnswer(BaseModel):
    """An item annotated by you."""

    item: str
    labels: dict[str, Any]
    at: str
    round: int
    key: str
    text: str | None = Field(description="The beginning of the item's text.")


class MyAnswers(BaseModel):
    """Your answers, newest first."""

    answers: list[MyAnswer]


# -- people ----------------------------------------------------------------------------------------------------------
class SignIn(RequestBody):
    """Credentials."""

    name: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=MAX_PASSWORD)


class NewPerson(RequestBody):
    """A new account."""

    name: str = Field(min_length=1, max_length=64)
    role: RoleName = "annotator"
    password: Password


class NewPassword(RequestBody):
    """A new password. The old one is required to change your own."""

    password: Password
    old: str | None = Field(default=None, max_length=MAX_PASSWORD)


class PersonOut(BaseModel):
    """An account and its activity."""

    name: str
    role: RoleName
    created_at: str
    answers: int
    holds: int = Field(description="Items the person holds now.")


class People(BaseModel):
    """All accounts."""

    people: list[PersonOut]
    accounts: bool


class TokenRequest(RequestBody):
    """A new API token."""

    label: str = Field(default="", max_length=100)


class TokenOut(BaseModel):
    """A listed token, without its secret."""

    id: str
    label: str
    created_at: str
    used_at: str | None


class TokenMade(TokenOut):
    """A new token with its secret, which is shown only once."""

    token: str


class Tokens(BaseModel):
    """Your tokens."""

    tokens: list[TokenOut]


class ProjectOut(BaseModel):
    """The project and its tasks."""

    id: str = Field(description="Unique id of the project; pages use it as a prefix for browser storage.")
    name: str
    currency: str
    unit: str
    tasks: list[dict[str, Any]]


class Me(BaseModel):
    """The caller and the project."""

    name: str
    role: RoleName
    csrf: str | None = Field(description="Send it as X-CSRF-Token from a browser; not needed with an API token.")
    project: ProjectOut
    accounts: bool


# -- leading ---------------------------------------------------------------------------------------------------------
class StateOut(BaseModel):
    """The state of the campaign."""

    round: int
    phase: Literal["annotating", "training", "ended", "failed"]
    asked: int
    answered: int
    skipped: int
    spent: int
    budget: int
    why: str | None = Field(default=None, description="Why it has ended or failed.")
    open: int = Field(description="Unanswered items of all rounds.")
    written: int = Field(description="Increases with every write; compare it to detect changes.")


class RoundRequest(RequestBody):
    """Train the next round now."""

    key: Key
    close: bool = Field(default=False, description="Continue without the unanswered items.")
    round: int | None = Field(default=None, ge=-1, le=1_000_000, description="The round that is open, as you know it.")


class SettingsRequest(RequestBody):
    """Change the settings of the next round."""

    changes: Changes
    key: Key
    after: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Number of the latest change you know of; refused if there is a newer one.",
    )


class PreviewRequest(RequestBody):
    """Preview the next round with changed settings."""

    changes: Changes


class Job(BaseModel):
    """A running preview, or its result."""

    job: str
    done: bool
    progress: float = 0.0
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class AdviceRequest(RequestBody):
    """Ask how to split an amount between the tasks."""

    amount: float = Field(gt=0, le=1_000_000_000, allow_inf_nan=False, description="In the currency of the prices.")


class AdviceOut(BaseModel):
    """Running or finished advice on a budget split."""

    amount: str
    asked_at: dict[str, Any] = Field(description="The round and the amount spent when it was requested.")
    done: bool
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class NewestAdvice(BaseModel):
    """The latest advice on a budget split, if any."""

    advice: AdviceOut | None = None


class OverlapSettings(RequestBody):
    """The share of items that several people answer, and how many people."""

    share: float = Field(default=0.0, ge=0, le=1)
    people: int = Field(default=2, ge=2, le=20)


class OverlapAnswer(BaseModel):
    """One person's answer."""

    person: str
    labels: dict[str, Any]
    at: str


class OverlapItem(BaseModel):
    """An item that several people answered."""

    item: dict[str, Any]
    answers: list[OverlapAnswer]
    disagree: list[str] = Field(description="Tasks with different labels.")
    adjudicated: OverlapAnswer | None


class OverlapList(BaseModel):
    """Items that several people answered, disagreements first."""

    items: list[OverlapItem]
    total: int
    disagree: int
    settings: OverlapSettings


class AgreementOut(BaseModel):
    """Inter-annotator agreement on one task."""

    items: int
    people: int
    cohen: float | None
    krippendorff: float | None
    span_f1: float | None
    same: float | None


class Imported(BaseModel):
    """The result of an import."""

    answered: int
    repeated: int
    not_asked: int = Field(description="Items that are not open.")
    incomplete: int = Field(description="Items that lack a label for a requested task.")
    cost: str
    cost_units: int
