"""Leases: who annotates which item next. ``choose`` is the rule, a pure function; ``Queue`` keeps the leases."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Protocol

import sqlalchemy as sa
from pydantic import ConfigDict, Field

from bursar.web import database as tables
from bursar.web.database import WebDatabase
from bursar.web.http_errors import HTTPError

LEASE_SECONDS = 600.0  # duration of a lease
MAX_LEASES = 5  # per person: the current item and a few fetched ahead

DAY = 24 * 3600.0
Key = tuple[int, str]  # round and item


@dataclass(frozen=True)
class Overlap:
    """The share of items that several people answer, to measure agreement; chosen by a hash of their ids."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # as the body of a request

    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    people: Annotated[int, Field(ge=2, le=20)] = 2

    def people_for(self, item: str) -> int:
        return self.people if draw(item) < self.share else 1


def draw(item: str) -> float:
    """A pseudo-random number from 0 to 1, determined by the item's id."""
    return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=8).digest()) / 2**64


@dataclass(frozen=True)
class WorkItem:
    """An item of a round that can be assigned, and the people who have answered it."""

    round: int
    item: str
    answered: frozenset[str] = frozenset()

    @property
    def key(self) -> Key:
        return self.round, self.item


@dataclass(frozen=True)
class Lease:
    """A time-limited reservation of an item for one person."""

    id: str
    round: int
    item: str
    person: str
    expires_at: float

    @property
    def key(self) -> Key:
        return self.round, self.item


def choose(
    person: str, work: Iterable[WorkItem], held: Mapping[Key, Collection[str]], overlap: Overlap
) -> WorkItem | None:
    """The first item that this person has not answered or leased, and that needs more people."""
    for piece in work:
        holders = held.get(piece.key, ())
        if person in piece.answered or person in holders:
            continue
        if len(piece.answered.union(holders)) < overlap.people_for(piece.item):
            return piece
    return None


class WorkSource(Protocol):
    """Where the queue gets its items from."""

    def work(self) -> Iterable[WorkItem]:
        """The items that can be assigned, in order. Read lazily."""

    def is_open(self, key: Key) -> bool:
        """Whether this item can still be assigned."""


class Queue:
    """The leases of a project. They survive a restart of the server."""

    def __init__(self, database: WebDatabase, seconds: float = LEASE_SECONDS) -> None:
        self.database = database
        self.seconds = seconds
        self.overlap = Overlap(**database.get("overlap", {}))
        self._secret = database.secret("leases").encode()
        self._lock = threading.Lock()  # threads wait here rather than in the database

    def set_overlap(self, chosen: Overlap) -> None:
        """Change and store the overlap settings."""
        self.database.put("overlap", asdict(chosen))
        self.overlap = chosen

    def next(self, person: str, open: WorkSource, known: Collection[str] = ()) -> Lease | None:
        """Lease the next item to a person; None if there is none.

        ``known`` holds the ids of the leases that the person's page has. The person's other leases come first: a page
        that was reloaded gets its item back.
        """
        with self._lock, self.database.writing() as connection:
            now, leases = self.database.clock(), _all(connection)
            mine = [lease for lease in leases if lease.person == person and open.is_open(lease.key)]
            forgotten = [lease for lease in mine if lease.id not in known]
            if forgotten or len(mine) >= MAX_LEASES:
                return _renewed(connection, (forgotten or mine)[0], now + self.seconds)
            held: dict[Key, list[str]] = {}
            for lease in leases:
                if lease.expires_at > now or lease.person == person:
                    held.setdefault(lease.key, []).append(lease.person)
            chosen = choose(person, open.work(), held, self.overlap)
            if chosen is None:
                return None
            _forget_expired(connection, chosen.key, now)
            nonce = secrets.token_urlsafe(12)
            id = f"{nonce}.{self._signature(nonce, chosen.item, person)}"
            lease = Lease(id, *chosen.key, person, now + self.seconds)
            connection.execute(tables.leases.insert().values(**vars(lease)))
            return lease

    def renew(self, id: str, person: str) -> Lease:
        """Extend a lease. An expired lease can be renewed unless the item has gone to someone else."""
        with self._lock, self.database.writing() as connection:
            return _renewed(connection, self._find(connection, id, person), self.database.clock() + self.seconds)

    def release(self, id: str, person: str) -> None:
        with self._lock, self.database.writing() as connection:
            lease = self._find(connection, id, person)
            connection.execute(tables.leases.delete().where(tables.leases.c.id == lease.id))

    def settle(self, key: Key, person: str, over: bool) -> None:
        """Remove the person's lease after an answer; all leases of the item if it is ``over``."""
        leases = tables.leases.c
        done = sa.and_(leases.round == key[0], leases.item == key[1])
        with self._lock, self.database.writing() as connection:
            connection.execute(tables.leases.delete().where(done if over else done & (leases.person == person)))

    def was_issued(self, id: str, item: str, person: str) -> bool:
        """Whether this lease was issued to this person for this item, even if it has expired.

        Ids are signed, so a late answer can be distinguished from a forged lease even after the lease is deleted.
        Leases of earlier versions are not signed; they are valid while they are in the database.
        """
        nonce, _, signature = id.partition(".")
        if hmac.compare_digest(signature.encode(), self._signature(nonce, item, person).encode()):
            return True
        leases = tables.leases.c
        query = sa.select(leases.id).where(leases.id == id, leases.item == item, leases.person == person)
        return self.database.first(query) is not None

    def _signature(self, nonce: str, item: str, person: str) -> str:
        content = json.dumps([nonce, item, person]).encode()
        return hashlib.blake2b(content, key=self._secret, digest_size=12).hexdigest()

    def holders(self, key: Key) -> list[str]:
        return [lease.person for lease in self.leases() if lease.key == key]

    def leases(self) -> list[Lease]:
        """All leases that have not expired, oldest first."""
        now = self.database.clock()
        with self.database.reading() as connection:
            return [lease for lease in _all(connection) if lease.expires_at > now]

    def _find(self, connection: sa.Connection, id: str, person: str) -> Lease:
        found = next((lease for lease in _all(connection) if lease.id == id and lease.person == person), None)
        if found is None:
            raise HTTPError(404, "no_lease", "you do not hold this lease: it has expired or was released")
        return found


def _all(connection: sa.Connection) -> list[Lease]:
    leases = tables.leases.c
    columns = leases.id, leases.round, leases.item, leases.person, leases.expires_at
    return [Lease(*row) for row in connection.execute(sa.select(*columns).order_by(leases.number))]


def _forget_expired(connection: sa.Connection, key: Key, now: float) -> None:
    """Delete expired leases of an item that is assigned again, and all leases that expired more than a day ago."""
    leases = tables.leases.c
    given = (leases.round == key[0]) & (leases.item == key[1]) & (leases.expires_at <= now)
    connection.execute(tables.leases.delete().where(given | (leases.expires_at <= now - DAY)))


def _renewed(connection: sa.Connection, lease: Lease, expires_at: float) -> Lease:
    connection.execute(tables.leases.update().where(tables.leases.c.id == lease.id).values(expires_at=expires_at))
    return Lease(lease.id, *lease.key, lease.person, expires_at)
