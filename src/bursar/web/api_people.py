"""The API for people: sign in and out, accounts, tokens."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from bursar.web.accounts import MAX_AGE, MAX_PASSWORD, MIN_PASSWORD, Person, Role, Token, folded
from bursar.web.api import ERROR_RESPONSES, AppStateDep, CallerDep, LeadDep, RequestBody
from bursar.web.http_errors import HTTPError
from bursar.web.pages import widget_path

router = APIRouter(prefix="/api", tags=["people"], responses=ERROR_RESPONSES)
NAME = Path(min_length=1, max_length=64)
MOST_TOKENS = 50  # per person
Password = Annotated[str, Field(min_length=MIN_PASSWORD, max_length=MAX_PASSWORD)]


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
    role: Role
    csrf: str | None = Field(description="Send it as X-CSRF-Token from a browser; not needed with an API token.")
    project: ProjectOut
    accounts: bool


class SignIn(RequestBody):
    """Credentials."""

    name: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=MAX_PASSWORD)


@router.get("/me", summary="Who you are")
def me(app_state: AppStateDep, me: CallerDep) -> Me:
    """Your name and role, the CSRF token for browsers, and the project with its tasks."""
    session = app_state.session
    project = ProjectOut(
        id=app_state.cookie,
        name=session.config.name,
        currency=session.settings.costs.currency,
        unit=str(session.settings.costs.unit),
        tasks=[task | {"widget": widget_path(session.corpus.schema[task["name"]])} for task in session.tasks()],
    )
    return Me(name=me.name, role=me.role, csrf=me.csrf, project=project, accounts=me.number is not None)


@router.post("/login", status_code=204, summary="Sign in")
def sign_in(request: Request, response: Response, app_state: AppStateDep, given: SignIn) -> None:
    """Start a session; the response sets its cookie."""
    if not app_state.accounts.exist():
        raise HTTPError(409, "no_accounts", "this project has no accounts, so there is no sign-in")
    address = request.client.host if request.client else ""
    cookie = app_state.accounts.sign_in(given.name, given.password, address, request.cookies.get(app_state.cookie))
    secure = app_state.host_policy.secure
    response.set_cookie(app_state.cookie, cookie, int(MAX_AGE), secure=secure, httponly=True, samesite="strict")


@router.post("/logout", status_code=204, summary="Sign out")
def sign_out(request: Request, response: Response, app_state: AppStateDep, me: CallerDep) -> None:
    """End the session."""
    cookie = request.cookies.get(app_state.cookie)
    if cookie:
        app_state.accounts.sign_out(cookie)
    secure = app_state.host_policy.secure
    response.delete_cookie(app_state.cookie, secure=secure, httponly=True, samesite="strict")


# -- accounts --------------------------------------------------------------------------------------------------------
class NewPerson(RequestBody):
    """A new account."""

    name: str = Field(min_length=1, max_length=64)
    role: Role = "annotator"
    password: Password


class NewPassword(RequestBody):
    """A new password. The old one is required to change your own."""

    password: Password
    old: str | None = Field(default=None, max_length=MAX_PASSWORD)


class PersonOut(Person):
    """An account and its activity."""

    answers: int
    holds: int = Field(description="Items the person holds now.")


class People(BaseModel):
    """All accounts."""

    people: list[PersonOut]
    accounts: bool


@router.get("/people", summary="List accounts")
def people(app_state: AppStateDep, me: LeadDep) -> People:
    """All accounts and their activity."""
    holds = Counter(lease.person for lease in app_state.queue.leases())
    return People(
        people=[
            PersonOut(**vars(person), answers=app_state.assignments.index.count(person.name), holds=holds[person.name])
            for person in app_state.accounts.people()
        ],
        accounts=me.number is not None,
    )


@router.post("/people", status_code=201, summary="Add an account")
def add_person(app_state: AppStateDep, me: LeadDep, new: NewPerson) -> People:
    """Create an account. The first must be a lead; from then on, everyone has to sign in."""
    app_state.accounts.add(new.name, new.role, new.password)
    return people(app_state, me)


@router.post("/people/{name}/password", status_code=204, summary="Change a password")
def set_password(
    request: Request, app_state: AppStateDep, me: CallerDep, name: Annotated[str, NAME], new: NewPassword
) -> None:
    """Change your own password, with the old one; a lead may also set other people's. Their other sessions end."""
    own = me.number is not None and folded(name) == folded(me.name)
    if own:
        address = request.client.host if request.client else ""
        if new.old is None or not app_state.accounts.is_password(me.name, new.old, address):
            raise HTTPError(403, "wrong_password", "the old password is wrong", fix="send your current password as old")
    elif not me.is_lead:
        raise HTTPError(403, "leads_only", "only a lead may set other people's passwords")
    app_state.accounts.set_password(name, new.password, keep=me.session if own else None)


@router.delete("/people/{name}", status_code=204, summary="Remove an account")
def remove_person(app_state: AppStateDep, me: LeadDep, name: Annotated[str, NAME]) -> None:
    """The person can no longer sign in. Their annotations stay."""
    app_state.accounts.remove(name)


# -- tokens ----------------------------------------------------------------------------------------------------------
class TokenRequest(RequestBody):
    """A new API token."""

    label: str = Field(default="", max_length=100)


class TokenMade(Token):
    """A new token with its secret, which is shown only once."""

    token: str


@router.get("/tokens", summary="List your tokens")
def tokens(app_state: AppStateDep, me: CallerDep) -> dict[str, list[Token]]:
    """Your API tokens, without their secrets."""
    return {"tokens": app_state.accounts.tokens(me)}


@router.post("/tokens", status_code=201, summary="Create a token")
def make_token(app_state: AppStateDep, me: CallerDep, asked: TokenRequest) -> TokenMade:
    """An API token with your permissions. Its secret is shown only once."""
    if len(app_state.accounts.tokens(me)) >= MOST_TOKENS:
        raise HTTPError(409, "too_many_tokens", f"you have {MOST_TOKENS} tokens", fix="remove one first")
    token, secret = app_state.accounts.make_token(me, asked.label)
    return TokenMade(**vars(token), token=secret)


@router.delete("/tokens/{id}", status_code=204, summary="Remove a token")
def remove_token(app_state: AppStateDep, me: CallerDep, id: Annotated[str, Path(min_length=1, max_length=100)]) -> None:
    """Revoke a token."""
    app_state.accounts.remove_token(me, id)
