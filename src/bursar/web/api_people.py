"""The API for people: sign in and out, accounts, tokens."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from bursar.web.accounts import OLDEST, Token, folded
from bursar.web.api import REFUSALS, CallerHere, LeadHere, SiteHere, moment
from bursar.web.api_models import (
    Me,
    NewPassword,
    NewPerson,
    People,
    PersonShown,
    ProjectShown,
    SignIn,
    TokenMade,
    TokenRequest,
    Tokens,
    TokenShown,
)
from bursar.web.http_errors import Problem

router = APIRouter(prefix="/api", tags=["people"], responses=REFUSALS)
NAME = Path(min_length=1, max_length=64)
MOST_TOKENS = 50  # of one person


@router.get("/me", summary="Who you are")
def me(site: SiteHere, me: CallerHere) -> Me:
    """Your name and role, the token that a browser must send along, and the project with its tasks."""
    live = site.live
    project = ProjectShown(
        id=site.cookie,
        name=live.config.name,
        currency=live.costs.currency,
        unit=str(live.costs.unit),
        tasks=live.tasks(),
    )
    return Me(name=me.name, role=me.role, csrf=me.csrf, project=project, accounts=me.number is not None)


@router.post("/login", status_code=204, summary="Sign in")
def sign_in(request: Request, response: Response, site: SiteHere, given: SignIn) -> None:
    """Begin a session: the answer sets its cookie."""
    if not site.accounts.exist():
        raise Problem(409, "no_accounts", "this project has no accounts: there is nothing to sign in to")
    address = request.client.host if request.client else ""
    cookie = site.accounts.sign_in(given.name, given.password, address, request.cookies.get(site.cookie))
    response.set_cookie(
        site.cookie, cookie, max_age=int(OLDEST), path="/", secure=site.door.secure, httponly=True, samesite="strict"
    )


@router.post("/logout", status_code=204, summary="Sign out")
def sign_out(request: Request, response: Response, site: SiteHere, me: CallerHere) -> None:
    """End the session."""
    cookie = request.cookies.get(site.cookie)
    if cookie:
        site.accounts.sign_out(cookie)
    response.delete_cookie(site.cookie, path="/", secure=site.door.secure, httponly=True, samesite="strict")


# -- accounts --------------------------------------------------------------------------------------------------------
@router.get("/people", summary="Everybody")
def people(site: SiteHere, me: LeadHere) -> People:
    """Everybody with an account, and what they did."""
    holds = Counter(lease.person for lease in site.queue.leases())
    return People(
        people=[
            PersonShown(
                name=person.name,
                role=person.role,
                created_at=moment(person.created_at),
                answers=site.desk.answers_of(person.name),
                holds=holds[person.name],
            )
            for person in site.accounts.people()
        ],
        accounts=me.number is not None,
    )


@router.post("/people", status_code=201, summary="Add somebody")
def add_person(site: SiteHere, me: LeadHere, new: NewPerson) -> People:
    """Make an account. The first one must be a lead; from then on everybody signs in."""
    site.accounts.add(new.name, new.role, new.password)
    return people(site, me)


@router.post("/people/{name}/password", status_code=204, summary="Change a password")
def set_password(
    request: Request, site: SiteHere, me: CallerHere, name: Annotated[str, NAME], new: NewPassword
) -> None:
    """Your own with the old one; a lead may give somebody else a new one. Their other sessions end."""
    own = me.number is not None and folded(name) == folded(me.name)
    if own:
        address = request.client.host if request.client else ""
        if new.old is None or not site.accounts.is_password(me.name, new.old, address):
            raise Problem(403, "wrong_password", "the old password is wrong", fix="send it as old")
    elif not me.leads:
        raise Problem(403, "leads_only", "only a lead may give somebody else a password")
    site.accounts.set_password(name, new.password, keep=me.session if own else None)


@router.delete("/people/{name}", status_code=204, summary="Take an account away")
def remove_person(site: SiteHere, me: LeadHere, name: Annotated[str, NAME]) -> None:
    """The person can no longer sign in. What they annotated stays."""
    site.accounts.remove(name)


# -- tokens ----------------------------------------------------------------------------------------------------------
@router.get("/tokens", summary="Your tokens")
def tokens(site: SiteHere, me: CallerHere) -> Tokens:
    """As they are listed; what they are was shown when they were made."""
    return Tokens(tokens=[_shown(token) for token in site.accounts.tokens(me)])


@router.post("/tokens", status_code=201, summary="Make a token")
def make_token(site: SiteHere, me: CallerHere, asked: TokenRequest) -> TokenMade:
    """A key for a program, with your rights. It is shown now and never again."""
    if len(site.accounts.tokens(me)) >= MOST_TOKENS:
        raise Problem(409, "too_many_tokens", f"you have {MOST_TOKENS} tokens", fix="take one away first")
    token, secret = site.accounts.make_token(me, asked.label)
    return TokenMade(**_shown(token).model_dump(), token=secret)


@router.delete("/tokens/{id}", status_code=204, summary="Take a token away")
def remove_token(site: SiteHere, me: CallerHere, id: Annotated[str, Path(min_length=1, max_length=100)]) -> None:
    """The program that has it can do nothing any more."""
    site.accounts.remove_token(me, id)


def _shown(token: Token) -> TokenShown:
    used = None if token.used_at is None else moment(token.used_at)
    return TokenShown(id=token.id, label=token.label, created_at=moment(token.created_at), used_at=used)
