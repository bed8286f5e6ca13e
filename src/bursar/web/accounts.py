"""Who is there: people with passwords and roles, their sessions and tokens; or nobody but whoever sits at the machine.

A project without accounts belongs to the person at this machine, who is called *you* and leads it. With the first
account that ends: everybody signs in.
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

from bursar.errors import StorageError
from bursar.web import database as tables
from bursar.web.database import WebDatabase
from bursar.web.http_errors import HTTPError

Role = Literal["lead", "annotator"]
ROLES: tuple[Role, ...] = ("lead", "annotator")
YOU = "you"
NAME = r"^\w[\w .@+-]{0,63}$"
SHORTEST, LONGEST = 8, 256  # password
IDLE = 7 * 24 * 3600.0  # seconds after which a session that is not used has ended
OLDEST = 30 * 24 * 3600.0  # and one that is used
TOUCH = 3600.0  # how often its use is written down
HASHES_AT_ONCE = 2  # each takes 64 MB and a core


@dataclass(frozen=True)
class Person:
    """Somebody with an account."""

    name: str
    role: Role
    created_at: float


@dataclass(frozen=True)
class Caller:
    """Whoever sends a request."""

    name: str
    role: Role
    csrf: str | None  # what a browser must send along; a token comes from no browser and needs none
    number: int | None = None  # of the account; none where there are no accounts
    session: str | None = None  # the digest of the session, if it is one

    @property
    def is_lead(self) -> bool:
        return self.role == "lead"


@dataclass(frozen=True)
class Token:
    """A key for programs, as it is listed; what it is was shown when it was made."""

    id: str
    label: str
    created_at: float
    used_at: float | None


class Accounts:
    """Everybody who may use a project.

    >>> import tempfile, pathlib
    >>> database = WebDatabase.open(pathlib.Path(tempfile.mkdtemp()) / "web.sqlite")
    >>> accounts = Accounts(database, hasher=argon2.PasswordHasher(time_cost=1, memory_cost=64))
    >>> accounts.local_user.is_lead, accounts.exist()
    (True, False)
    >>> accounts.add("Anna", "lead", "correct horse")
    >>> cookie = accounts.sign_in("anna", "correct horse", "127.0.0.1")
    >>> accounts.by_cookie(cookie).name
    'Anna'
    >>> database.close()
    """

    def __init__(self, database: WebDatabase, hasher: argon2.PasswordHasher | None = None) -> None:
        self.database = database
        self._hasher = hasher or argon2.PasswordHasher()
        self._attempts = Attempts(database.clock)
        self._cores = threading.BoundedSemaphore(HASHES_AT_ONCE)
        self._dummy_hash = ""  # a hash that unknown names are checked against, which takes as long as a real one
        self.local_user = Caller(YOU, "lead", database.secret("csrf"))

    # -- people ------------------------------------------------------------------------------------------------------
    def exist(self) -> bool:
        """Whether there is any account."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(tables.people.c.id).limit(1)).first() is not None

    def people(self) -> list[Person]:
        """Everybody with an account, by name."""
        p = tables.people.c
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(p.name, p.role, p.created_at).order_by(p.folded)).all()
        return [Person(*row) for row in rows]

    def add(self, name: str, role: Role, password: str) -> None:
        """Make an account. The first one must lead, or nobody could."""
        name = checked_name(name)
        _check_password(password)
        if role not in ROLES:
            raise HTTPError(422, "bad_role", f"{role!r} is no role", fix=f"use {' or '.join(ROLES)}")
        hashed = self._hash(password)
        with self.database.writing() as connection:
            known = connection.execute(sa.select(tables.people.c.folded)).scalars().all()
            if not known and role != "lead":
                raise HTTPError(409, "first_leads", "the first account has to be a lead", fix="give it the role lead")
            if folded(name) in known:
                raise HTTPError(409, "name_taken", f"there is a {name!r} already", fix="choose another name")
            row = {"name": name, "folded": folded(name), "role": role, "password": hashed}
            connection.execute(tables.people.insert().values(**row, created_at=self.database.clock()))

    def remove(self, name: str) -> None:
        """Take an account away, with its sessions, tokens and leases. What the person annotated stays."""
        with self.database.writing() as connection:
            person = self._find(connection, name)
            leads = connection.execute(sa.select(tables.people.c.id).where(tables.people.c.role == "lead")).all()
            if person.role == "lead" and len(leads) == 1:
                raise HTTPError(409, "last_lead", f"{person.name!r} is the only lead", fix="add another lead first")
            self._sign_out_everywhere(connection, person.id)
            connection.execute(tables.tokens.delete().where(tables.tokens.c.person == person.id))
            connection.execute(tables.leases.delete().where(tables.leases.c.person == person.name))
            connection.execute(tables.people.delete().where(tables.people.c.id == person.id))

    def set_password(self, name: str, password: str, keep: str | None = None) -> None:
        """Give a person another password and end their sessions, but for the one that asked for it."""
        _check_password(password)
        hashed = self._hash(password)
        with self.database.writing() as connection:
            person = self._find(connection, name)
            connection.execute(tables.people.update().where(tables.people.c.id == person.id).values(password=hashed))
            self._sign_out_everywhere(connection, person.id, keep)

    def is_password(self, name: str, password: str, address: str) -> bool:
        """Whether this is the person's password. Whoever guesses too often has to wait."""
        p = tables.people.c
        self._attempts.begin(folded(name), address)
        with self.database.reading() as connection:
            found = connection.execute(sa.select(p.id, p.password).where(p.folded == folded(name))).first()
        if not self._matches(None if found is None else found.password, password):
            return False
        self._attempts.forget(folded(name), address)
        if found is not None and self._hasher.check_needs_rehash(found.password):
            hashed = self._hash(password)
            with self.database.writing() as connection:
                connection.execute(tables.people.update().where(p.id == found.id).values(password=hashed))
        return True

    # -- sessions ----------------------------------------------------------------------------------------------------
    def sign_in(self, name: str, password: str, address: str, old: str | None = None) -> str:
        """What the cookie of a new session holds; the session before it, if there was one, ends."""
        if not self.is_password(name, password, address):
            raise HTTPError(401, "wrong_password", "the name or the password is wrong", fix="try again")
        cookie, now = secrets.token_urlsafe(32), self.database.clock()
        with self.database.writing() as connection:
            person = self._find(connection, name)
            connection.execute(tables.sessions.delete().where(tables.sessions.c.expires_at < now))
            if old is not None:
                connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == _digest(old)))
            row = {"digest": _digest(cookie), "person": person.id, "csrf": secrets.token_urlsafe(32)}
            connection.execute(tables.sessions.insert().values(**row, created_at=now, expires_at=now + IDLE))
        return cookie

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == _digest(cookie)))

    def by_cookie(self, cookie: str) -> Caller | None:
        """Whose session this is, if it is one that has not ended."""
        s, p, now = tables.sessions.c, tables.people.c, self.database.clock()
        query = (
            sa.select(s.digest, s.csrf, s.created_at, s.expires_at, p.id, p.name, p.role)
            .join_from(tables.sessions, tables.people, s.person == p.id)
            .where(s.digest == _digest(cookie), s.expires_at > now)
        )
        with self.database.reading() as connection:
            found = connection.execute(query).first()
        if found is None:
            return None
        until = min(now + IDLE, found.created_at + OLDEST)
        if until - found.expires_at > TOUCH:
            with suppress(StorageError), self.database.writing() as connection:  # a full disk ends no session
                connection.execute(tables.sessions.update().where(s.digest == found.digest).values(expires_at=until))
        return Caller(found.name, found.role, found.csrf, found.id, found.digest)

    # -- tokens ------------------------------------------------------------------------------------------------------
    def make_token(self, caller: Caller, label: str) -> tuple[Token, str]:
        """A key for programs, and what it is: that is shown now and never again."""
        secret = f"bursar_{secrets.token_urlsafe(32)}"
        made = Token(secrets.token_hex(8), label, self.database.clock(), None)
        with self.database.writing() as connection:
            row = {"id": made.id, "digest": _digest(secret), "person": caller.number, "label": label}
            connection.execute(tables.tokens.insert().values(**row, created_at=made.created_at))
        return made, secret

    def tokens(self, caller: Caller) -> list[Token]:
        """A person's tokens, the oldest first."""
        t = tables.tokens.c
        query = sa.select(t.id, t.label, t.created_at, t.used_at).where(t.person == caller.number)
        with self.database.reading() as connection:
            return [Token(*row) for row in connection.execute(query.order_by(t.created_at, t.id))]

    def remove_token(self, caller: Caller, id: str) -> None:
        """Take a person's token away."""
        t = tables.tokens.c
        with self.database.writing() as connection:
            gone = connection.execute(tables.tokens.delete().where(t.id == id, t.person == caller.number))
        if not gone.rowcount:
            raise HTTPError(404, "no_token", "you have no such token")

    def by_token(self, secret: str) -> Caller | None:
        """Whose token this is. One that was made before there were accounts ends with the first of them."""
        t, p, now = tables.tokens.c, tables.people.c, self.database.clock()
        query = (
            sa.select(t.id, t.person, t.used_at, p.name, p.role)
            .join_from(tables.tokens, tables.people, t.person == p.id, isouter=True)
            .where(t.digest == _digest(secret))
        )
        with self.database.reading() as connection:
            found = connection.execute(query).first()
        if found is None or (found.name is None and (found.person is not None or self.exist())):
            return None
        if found.used_at is None or now - found.used_at > TOUCH:
            with suppress(StorageError), self.database.writing() as connection:
                connection.execute(tables.tokens.update().where(t.id == found.id).values(used_at=now))
        return Caller(found.name or YOU, found.role or "lead", None, found.person)

    # -- small things ------------------------------------------------------------------------------------------------
    def _find(self, connection: sa.Connection, name: str) -> Any:
        p = tables.people.c
        found = connection.execute(sa.select(p.id, p.name, p.role).where(p.folded == folded(name))).first()
        if found is None:
            raise HTTPError(404, "no_person", f"there is nobody called {name!r} here")
        return found

    def _sign_out_everywhere(self, connection: sa.Connection, person: int, keep: str | None = None) -> None:
        s = tables.sessions.c
        connection.execute(tables.sessions.delete().where(s.person == person, s.digest != (keep or "")))

    def _hash(self, password: str) -> str:
        with self._cores:
            return self._hasher.hash(password)

    def _matches(self, hashed: str | None, password: str) -> bool:
        """Check a password, in the same time for a name that is not there."""
        if not self._dummy_hash:
            self._dummy_hash = self._hash(secrets.token_urlsafe(16))
        with self._cores:
            try:
                self._hasher.verify(self._dummy_hash if hashed is None else hashed, password)
            except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHash):
                return False
        return hashed is not None


class Attempts:
    """Passwords tried of late, by name and by address: too many, and the next has to wait.

    Only the pair of both is held to a few, so that nobody can lock somebody else out from elsewhere; the name and the
    address alone may have more. An attempt counts when it begins, so many at once are still too many.
    """

    WINDOW = 300.0  # seconds that an attempt counts
    MOST = {"pair": 5, "address": 30, "name": 100}
    MOST_KEYS = 20_000  # keys that are remembered

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tried: dict[tuple[str, ...], deque[float]] = {}

    def begin(self, name: str, address: str) -> None:
        """Count an attempt, or refuse it and say when the next is welcome."""
        now = self._clock()
        with self._lock:
            keys = self._keys(name, address)
            for what, key in keys.items():
                tried = self._tried.get(key, deque())
                while tried and tried[0] <= now - self.WINDOW:
                    tried.popleft()
                if len(tried) >= self.MOST[what]:
                    wait = max(1, round(tried[0] + self.WINDOW - now + 0.5))
                    raise HTTPError(
                        429,
                        "too_many_attempts",
                        "too many passwords were tried",
                        fix=f"wait {wait} seconds",
                        retry_after=wait,
                    )
            for key in keys.values():
                self._tried.setdefault(key, deque()).append(now)
            while len(self._tried) > self.MOST_KEYS:
                del self._tried[next(iter(self._tried))]

    def forget(self, name: str, address: str) -> None:
        """The password was right: what was tried before for this name does not count, nor this attempt for the address.

        What was tried from there for other names still does, or one good account would open the door to guessing.
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
    """A name as it is compared: whatever its case and its spelling in Unicode.

    >>> folded("Ann\\u0065\\u0301") == folded("ANN\\u00c9")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def checked_name(name: str) -> str:
    """A name that can be written, read and told from others.

    >>> checked_name("Anna B.")
    'Anna B.'
    """
    name = unicodedata.normalize("NFC", name)
    if not re.fullmatch(NAME, name) or name != name.strip():
        raise HTTPError(
            422,
            "bad_name",
            f"{name!r} cannot be a name",
            fix="use 1 to 64 letters, digits and . _ - @ +, with blanks only inside",
        )
    return name


def _check_password(password: str) -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise HTTPError(422, "bad_password", f"a password has {SHORTEST} to {LONGEST} characters", fix="choose another")


def same_secret(mine: str, yours: str) -> bool:
    """Whether two secrets are the same, in a time that tells nothing.

    >>> same_secret("a", "a"), same_secret("a", "ä")
    (True, False)
    """
    return hmac.compare_digest(mine.encode(), yours.encode())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
