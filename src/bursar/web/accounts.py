"""Accounts of a project: people with passwords and roles, their sessions and API tokens.

A project without accounts has one local user, called *you*, who is a lead. Once there is an account, everyone has to
sign in.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import unicodedata
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import argon2
import sqlalchemy as sa
from pydantic import BaseModel

from bursar.errors import StorageError
from bursar.web import database as tables
from bursar.web.database import Timestamp, WebDatabase
from bursar.web.http_errors import HTTPError

Role = Literal["lead", "annotator"]
ROLES: tuple[Role, ...] = ("lead", "annotator")
YOU = "you"
NAME = r"^\w[\w .@+-]{0,63}$"
MIN_PASSWORD, MAX_PASSWORD = 8, 256  # password
IDLE_SECONDS = 7 * 24 * 3600.0  # after which an unused session ends
MAX_AGE = 30 * 24 * 3600.0  # after which any session ends
REFRESH_SECONDS = 3600.0  # between two updates of a last use
HASHES_AT_ONCE = 2  # each takes 64 MB and a core


class Person(BaseModel):
    """A person with an account."""

    name: str
    role: Role
    created_at: Timestamp


@dataclass(frozen=True)
class Caller:
    """The sender of a request."""

    name: str
    role: Role
    csrf: str | None  # token that a browser must send; None for API tokens
    number: int | None = None  # of the account; None in a project without accounts
    session: str | None = None  # digest of the session cookie, if there is one

    @property
    def is_lead(self) -> bool:
        return self.role == "lead"


class Token(BaseModel):
    """An API token as listed, without its secret."""

    id: str
    label: str
    created_at: Timestamp
    used_at: Timestamp | None = None


class Accounts:
    """The people who may use a project."""

    def __init__(self, database: WebDatabase, hasher: argon2.PasswordHasher | None = None) -> None:
        self.database = database
        self._hasher = hasher or argon2.PasswordHasher()
        self._attempts = Attempts(database.clock)
        self._hash_slots = threading.BoundedSemaphore(HASHES_AT_ONCE)
        self._dummy_hash = ""  # checked for unknown names, so that they take as long as known ones
        self.local_user = Caller(YOU, "lead", database.secret("csrf"))

    # -- people ------------------------------------------------------------------------------------------------------
    def exist(self) -> bool:
        return self.database.first(sa.select(tables.people.c.id)) is not None

    def people(self) -> list[Person]:
        p = tables.people.c
        rows = self.database.rows(sa.select(p.name, p.role, p.created_at).order_by(p.folded))
        return [Person.model_validate(row._asdict()) for row in rows]

    def add(self, name: str, role: Role, password: str) -> None:
        """Create an account. The first must be a lead."""
        name = checked_name(name)
        _check_password(password)
        if role not in ROLES:
            raise HTTPError(422, "bad_role", f"{role!r} is not a role", fix=f"use {' or '.join(ROLES)}")
        hashed = self._hash(password)
        with self.database.writing() as connection:
            known = connection.execute(sa.select(tables.people.c.folded)).scalars().all()
            if not known and role != "lead":
                raise HTTPError(409, "first_leads", "the first account must be a lead", fix="give it the role lead")
            if folded(name) in known:
                raise HTTPError(409, "name_taken", f"the name {name!r} is taken", fix="choose another name")
            row = {"name": name, "folded": folded(name), "role": role, "password": hashed}
            connection.execute(tables.people.insert().values(**row, created_at=self.database.clock()))

    def remove(self, name: str) -> None:
        """Remove an account with its sessions, tokens and leases. The person's annotations stay."""
        with self.database.writing() as connection:
            person = self._find(connection, name)
            leads = connection.execute(sa.select(tables.people.c.id).where(tables.people.c.role == "lead")).all()
            if person.role == "lead" and len(leads) == 1:
                raise HTTPError(409, "last_lead", f"{person.name!r} is the only lead", fix="add another lead first")
            connection.execute(tables.sessions.delete().where(tables.sessions.c.person == person.id))
            connection.execute(tables.tokens.delete().where(tables.tokens.c.person == person.id))
            connection.execute(tables.leases.delete().where(tables.leases.c.person == person.name))
            connection.execute(tables.people.delete().where(tables.people.c.id == person.id))

    def set_password(self, name: str, password: str, keep: str | None = None) -> None:
        """Set a person's password and end their sessions, except ``keep``."""
        _check_password(password)
        hashed = self._hash(password)
        with self.database.writing() as connection:
            person = self._find(connection, name)
            connection.execute(tables.people.update().where(tables.people.c.id == person.id).values(password=hashed))
            s = tables.sessions.c
            connection.execute(tables.sessions.delete().where(s.person == person.id, s.digest != (keep or "")))

    def is_password(self, name: str, password: str, address: str) -> bool:
        """Whether this is the person's password. Limits the rate of attempts."""
        p = tables.people.c
        self._attempts.begin(folded(name), address)
        found = self.database.first(sa.select(p.id, p.password).where(p.folded == folded(name)))
        if not self._matches(None if found is None else found.password, password):
            return False
        self._attempts.forget(folded(name), address)
        if found is not None and self._hasher.check_needs_rehash(found.password):
            hashed = self._hash(password)
            self.database.write(tables.people.update().where(p.id == found.id).values(password=hashed))
        return True

    # -- sessions ----------------------------------------------------------------------------------------------------
    def sign_in(self, name: str, password: str, address: str, old: str | None = None) -> str:
        """Start a session and return its cookie; the old session, if any, ends."""
        if not self.is_password(name, password, address):
            raise HTTPError(401, "wrong_password", "wrong name or password", fix="try again")
        cookie, now = secrets.token_urlsafe(32), self.database.clock()
        with self.database.writing() as connection:
            person = self._find(connection, name)
            connection.execute(tables.sessions.delete().where(tables.sessions.c.expires_at < now))
            if old is not None:
                connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == _digest(old)))
            row = {"digest": _digest(cookie), "person": person.id, "csrf": secrets.token_urlsafe(32)}
            connection.execute(tables.sessions.insert().values(**row, created_at=now, expires_at=now + IDLE_SECONDS))
        return cookie

    def sign_out(self, cookie: str) -> None:
        self.database.write(tables.sessions.delete().where(tables.sessions.c.digest == _digest(cookie)))

    def by_cookie(self, cookie: str) -> Caller | None:
        """The owner of a session cookie; None if the session has ended."""
        s, p, now = tables.sessions.c, tables.people.c, self.database.clock()
        query = (
            sa.select(s.digest, s.csrf, s.created_at, s.expires_at, p.id, p.name, p.role)
            .join_from(tables.sessions, tables.people, s.person == p.id)
            .where(s.digest == _digest(cookie), s.expires_at > now)
        )
        found = self.database.first(query)
        if found is None:
            return None
        until = min(now + IDLE_SECONDS, found.created_at + MAX_AGE)
        if until - found.expires_at > REFRESH_SECONDS:
            with suppress(StorageError):  # a full disk must not end a session
                self.database.write(tables.sessions.update().where(s.digest == found.digest).values(expires_at=until))
        return Caller(found.name, found.role, found.csrf, found.id, found.digest)

    # -- tokens ------------------------------------------------------------------------------------------------------
    def make_token(self, caller: Caller, label: str) -> tuple[Token, str]:
        """Create an API token; returns it with its secret, which is not stored."""
        secret = f"bursar_{secrets.token_urlsafe(32)}"
        made = Token(id=secrets.token_hex(8), label=label, created_at=self.database.clock())
        row = {"id": made.id, "digest": _digest(secret), "person": caller.number, "label": label}
        self.database.write(tables.tokens.insert().values(**row, created_at=made.created_at))
        return made, secret

    def tokens(self, caller: Caller) -> list[Token]:
        """A person's tokens, oldest first."""
        t = tables.tokens.c
        query = sa.select(t.id, t.label, t.created_at, t.used_at).where(t.person == caller.number)
        rows = self.database.rows(query.order_by(t.created_at, t.id))
        return [Token.model_validate(row._asdict()) for row in rows]

    def remove_token(self, caller: Caller, id: str) -> None:
        t = tables.tokens.c
        if not self.database.write(tables.tokens.delete().where(t.id == id, t.person == caller.number)):
            raise HTTPError(404, "no_token", "you have no token with this id")

    def by_token(self, secret: str) -> Caller | None:
        """The owner of a token. Tokens of the local user end with the first account."""
        t, p, now = tables.tokens.c, tables.people.c, self.database.clock()
        query = (
            sa.select(t.id, t.person, t.used_at, p.name, p.role)
            .join_from(tables.tokens, tables.people, t.person == p.id, isouter=True)
            .where(t.digest == _digest(secret))
        )
        found = self.database.first(query)
        if found is None or (found.name is None and (found.person is not None or self.exist())):
            return None
        if found.used_at is None or now - found.used_at > REFRESH_SECONDS:
            with suppress(StorageError):
                self.database.write(tables.tokens.update().where(t.id == found.id).values(used_at=now))
        return Caller(found.name or YOU, found.role or "lead", None, found.person)

    # -- helpers -----------------------------------------------------------------------------------------------------
    def _find(self, connection: sa.Connection, name: str) -> Any:
        p = tables.people.c
        found = connection.execute(sa.select(p.id, p.name, p.role).where(p.folded == folded(name))).first()
        if found is None:
            raise HTTPError(404, "no_person", f"there is no account {name!r}")
        return found

    def _hash(self, password: str) -> str:
        with self._hash_slots:
            return self._hasher.hash(password)

    def _matches(self, hashed: str | None, password: str) -> bool:
        """Check a password in constant time, whether or not the name exists."""
        if not self._dummy_hash:
            self._dummy_hash = self._hash(secrets.token_urlsafe(16))
        with self._hash_slots:
            try:
                self._hasher.verify(self._dummy_hash if hashed is None else hashed, password)
            except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHash):
                return False
        return hashed is not None


class Attempts:
    """Limits recent password attempts by name, by address, and by the pair of both.

    The pair has the strictest limit, so that nobody can lock another person out from a different address. An attempt
    counts from its start, so that parallel attempts are limited too.
    """

    WINDOW = 300.0  # seconds for which an attempt counts
    MOST = {"pair": 5, "address": 30, "name": 100}
    MOST_KEYS = 20_000  # keys in memory

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tried: dict[tuple[str, ...], deque[float]] = {}

    def begin(self, name: str, address: str) -> None:
        """Count an attempt; raises if there were too many, with the time to wait."""
        now = self._clock()
        with self._lock:
            keys = self._keys(name, address)
            for what, key in keys.items():
                tried = self._tried.get(key, deque())
                while tried and tried[0] <= now - self.WINDOW:
                    tried.popleft()
                if len(tried) >= self.MOST[what]:
                    wait = max(1, round(tried[0] + self.WINDOW - now + 0.5))
                    error, fix = "too many password attempts", f"wait {wait} seconds"
                    raise HTTPError(429, "too_many_attempts", error, fix=fix, retry_after=wait)
            for key in keys.values():
                self._tried.setdefault(key, deque()).append(now)
            while len(self._tried) > self.MOST_KEYS:
                del self._tried[next(iter(self._tried))]

    def forget(self, name: str, address: str) -> None:
        """After a correct password, drop the attempts for this name and this attempt for the address.

        Earlier attempts from the address for other names still count; otherwise one valid account would allow guessing.
        """
        with self._lock:
            keys = self._keys(name, address)
            for what in ("pair", "name"):
                self._tried.pop(keys[what], None)
            if self._tried.get(keys["address"]):
                self._tried[keys["address"]].pop()

    @staticmethod
    def _keys(name: str, address: str) -> dict[str, tuple[str, ...]]:
        return {"pair": ("pair", name, address), "address": ("address", address), "name": ("name", name)}


def folded(name: str) -> str:
    """A name for comparison: case-folded and normalized."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def checked_name(name: str) -> str:
    """The normalized name; raises if it has characters that are not allowed."""
    name = unicodedata.normalize("NFC", name)
    if not re.fullmatch(NAME, name) or name != name.strip():
        fix = "use 1 to 64 letters, digits and . _ - @ +, with spaces only inside"
        raise HTTPError(422, "bad_name", f"{name!r} is not a valid name", fix=fix)
    return name


def _check_password(password: str) -> None:
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        error = f"a password must have {MIN_PASSWORD} to {MAX_PASSWORD} characters"
        raise HTTPError(422, "bad_password", error, fix="choose another")


def same_secret(mine: str, yours: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(mine.encode(), yours.encode())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
