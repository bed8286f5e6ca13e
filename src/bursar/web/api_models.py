"""What requests and answers look like, with how large each part may be."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bursar.web.accounts import LONGEST, SHORTEST

MOST_TASKS = 100

Key = Annotated[
    str,
    Field(
        min_length=8,
        max_length=100,
        pattern=r"^[A-Za-z0-9_.:-]+$",
        description="The sender's own name for this request, such as a UUID: the same again does nothing again.",
    ),
]
ItemId = Annotated[str, Field(min_length=1, max_length=1000, description="The item's id.")]
Labels = Annotated[
    dict[str, Any],
    Field(min_length=1, max_length=MOST_TASKS, description="A label for every task, as JSON of the task's kind."),
]
Seconds = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]],
    Field(
        default_factory=dict,
        max_length=MOST_TASKS + 1,
        description="How long reading and each task took, in seconds.",
    ),
]
Changes = Annotated[dict[str, Any], Field(max_length=100, description="Settings by name, and what they shall be.")]
LeaseId = Annotated[str, Field(min_length=1, max_length=100)]
Password = Annotated[str, Field(min_length=SHORTEST, max_length=LONGEST)]
RoleName = Literal["lead", "annotator"]


class Message(BaseModel):
    """A request: unknown parts are mistakes."""

    model_config = ConfigDict(extra="forbid")


class ErrorBody(BaseModel):
    """Every refusal looks like this."""

    error: str = Field(description="What is wrong, in a sentence.")
    fix: str | None = Field(description="What to do about it.")
    kind: str = Field(description="The same in a word, for machines.")


# -- annotating ------------------------------------------------------------------------------------------------------
class NextRequest(Message):
    """Ask for something to annotate."""

    known: list[LeaseId] = Field(
        default_factory=list,
        max_length=20,
        description="Leases that you hold and know of. One that you hold and do not name comes back first.",
    )


class LeaseOut(BaseModel):
    """The promise that nobody else is given the item for a while."""

    id: str
    expires_at: str
    seconds: float


class Progress(BaseModel):
    """How far the newest round is; what was skipped is among what was asked."""

    round: int
    answered: int
    asked: int
    skipped: int
    mine: int = Field(description="Items of the round that you answered.")


class NextReply(BaseModel):
    """An item to annotate; or no lease, and why."""

    lease: LeaseOut | None
    item: dict[str, Any] | None = None
    tasks: list[str] | None = None
    suggestions: dict[str, Any] | None = Field(
        default=None,
        description="By task, where the model does better than a guess: `label`, `confidence` from a guess among the "
        "labels (0) to certainty (1), and `sure`, the same in words.",
    )
    round: int | None = None
    purpose: Literal["answer", "overlap"] | None = None
    progress: Progress | None = None
    reason: Literal["training", "ended", "failed", "all_leased", "none"] | None = None
    message: str | None = None
    retry_after: int | None = Field(default=None, description="Ask again after so many seconds.")


class AnswerRequest(Message):
    """An answer to an item: labels for all tasks that were asked for."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    labels: Labels
    seconds: Seconds


class CorrectionRequest(Message):
    """Something else in the place of what was said before."""

    key: Key
    item: ItemId
    labels: Labels


class SkipRequest(Message):
    """Would rather not: the item leaves the round, and its money returns to the budget."""

    key: Key
    lease: LeaseId | None = None
    item: ItemId
    reason: str = Field(default="", max_length=2000)


class SkipOut(BaseModel):
    """An item that somebody skipped."""

    key: str = Field(description="By which it is undone.")
    item: dict[str, Any]
    tasks: list[str] = Field(description="For which it was asked about.")
    person: str
    reason: str
    at: str
    round: int
    undone_by: str | None
    undone_at: str | None


class SkipList(BaseModel):
    """What people skipped, the newest first."""

    skips: list[SkipOut]
    total: int


class UndoRequest(Message):
    """Ask again about an item that was skipped."""

    skip: str = Field(min_length=1, max_length=1000, description="The skip's `key`.")


class SkipUndone(BaseModel):
    """The skip counts no more."""

    asked: bool = Field(description="The item is asked about now; otherwise it is back in the pool.")


class ReceiptOut(BaseModel):
    """It is on disk."""

    key: str
    repeated: bool = Field(description="It was there already; nothing was written or charged again.")
    cost: str
    cost_units: int


class MyAnswer(BaseModel):
    """One item that you annotated."""

    item: str
    labels: dict[str, Any]
    at: str
    round: int
    key: str
    text: str | None = Field(description="How the item begins, to know it by.")


class MyAnswers(BaseModel):
    """What you annotated, the newest first."""

    answers: list[MyAnswer]


# -- people ----------------------------------------------------------------------------------------------------------
class SignIn(Message):
    """Who you are."""

    name: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=LONGEST)


class NewPerson(Message):
    """Somebody to add."""

    name: str = Field(min_length=1, max_length=64)
    role: RoleName = "annotator"
    password: Password


class NewPassword(Message):
    """Another password; whoever changes their own says the old one."""

    password: Password
    old: str | None = Field(default=None, max_length=LONGEST)


class PersonOut(BaseModel):
    """Somebody with an account, and what they did."""

    name: str
    role: RoleName
    created_at: str
    answers: int
    holds: int = Field(description="Items before them now.")


class People(BaseModel):
    """Everybody."""

    people: list[PersonOut]
    accounts: bool


class TokenRequest(Message):
    """A key for a program."""

    label: str = Field(default="", max_length=100)


class TokenOut(BaseModel):
    """A token as it is listed."""

    id: str
    label: str
    created_at: str
    used_at: str | None


class TokenMade(TokenOut):
    """A new token: it is shown now and never again."""

    token: str


class Tokens(BaseModel):
    """Your tokens."""

    tokens: list[TokenOut]


class ProjectOut(BaseModel):
    """What is annotated."""

    id: str = Field(description="This project's alone, whatever its name: what a browser keeps, it keeps under it.")
    name: str
    currency: str
    unit: str
    tasks: list[dict[str, Any]]


class Me(BaseModel):
    """Who you are, and in which project."""

    name: str
    role: RoleName
    csrf: str | None = Field(description="To be sent as X-CSRF-Token by a browser; a token needs none.")
    project: ProjectOut
    accounts: bool


# -- leading ---------------------------------------------------------------------------------------------------------
class StateOut(BaseModel):
    """Where the campaign stands."""

    round: int
    phase: Literal["annotating", "training", "ended", "failed"]
    asked: int
    answered: int
    skipped: int
    spent: int
    budget: int
    why: str | None = Field(default=None, description="Why it has ended or failed.")
    open: int = Field(description="Items of all rounds that are waited for.")
    written: int = Field(description="Counts what was written; another number, another state.")


class RoundRequest(Message):
    """Train the next round now."""

    key: Key
    close: bool = Field(default=False, description="Go on without what is not answered.")
    round: int | None = Field(default=None, ge=-1, le=1_000_000, description="The round that is meant.")


class SettingsRequest(Message):
    """Change what the next round is run with."""

    changes: Changes
    key: Key
    after: int | None = Field(
        default=None, ge=0, le=1_000_000, description="The number of the newest change that is known; else refused."
    )


class PreviewRequest(Message):
    """What if?"""

    changes: Changes


class Job(BaseModel):
    """A preview under way, or what it found."""

    job: str
    done: bool
    progress: float = 0.0
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class AdviceRequest(Message):
    """Ask how to split money between the tasks."""

    amount: float = Field(gt=0, le=1_000_000_000, allow_inf_nan=False, description="In the money of the prices.")


class AdviceOut(BaseModel):
    """Advice on a split under way, or what was found."""

    amount: str
    asked_at: dict[str, Any] = Field(description="The round it was asked in, and what had been spent by then.")
    done: bool
    progress: float = 0.0
    what: str = ""
    result: dict[str, Any] | None = None
    wrong: ErrorBody | None = None


class NewestAdvice(BaseModel):
    """The newest advice on a split, if any was asked for."""

    advice: AdviceOut | None = None


class OverlapSettings(Message):
    """The share of items that several people answer, and how many those are."""

    share: float = Field(default=0.0, ge=0, le=1)
    people: int = Field(default=2, ge=2, le=20)


class OverlapAnswer(BaseModel):
    """What one person said."""

    person: str
    labels: dict[str, Any]
    at: str


class OverlapItem(BaseModel):
    """An item that several people answered."""

    item: dict[str, Any]
    answers: list[OverlapAnswer]
    disagree: list[str] = Field(description="The tasks on which they differ.")
    adjudicated: OverlapAnswer | None


class OverlapList(BaseModel):
    """Items that several people answered, those on which they differ first."""

    items: list[OverlapItem]
    total: int
    disagree: int
    settings: OverlapSettings


class AgreementOut(BaseModel):
    """How far people agree on one task."""

    items: int
    people: int
    cohen: float | None
    krippendorff: float | None
    span_f1: float | None
    same: float | None


class Imported(BaseModel):
    """What became of a file."""

    answered: int
    repeated: int
    not_asked: int = Field(description="Items that nobody is asked about now.")
    incomplete: int = Field(description="Items without a label for every task that is asked for.")
    cost: str
    cost_units: int
