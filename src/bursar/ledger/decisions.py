"""Decisions in a ledger: a class for each kind, encoded and decoded here and nowhere else."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from bursar.errors import LedgerError
from bursar.ledger.records import dump


class JsonRecord(BaseModel):
    """An immutable value that can be written as JSON and read back."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Decision(JsonRecord):
    """What was decided about a round. A round has at most one decision of each kind."""

    kind: ClassVar[str]
    round: int  # a running number for kinds that do not belong to a round

    @property
    def stored_kind(self) -> str:
        """The kind under which it is stored."""
        return self.kind

    def encoded(self) -> str:
        """The body as JSON; the round and the kind have columns of their own."""
        return dump(self.model_dump(mode="json", exclude={"round"})) or ""

    @classmethod
    def decoded(cls, round: int, body: str) -> Self:
        """Read a decision of this kind back."""
        try:
            found: Any = json.loads(body)
            return cls.model_validate({"round": round} | found)
        except (ValidationError, TypeError) as wrong:
            raise LedgerError(f"round {round}: its {cls.kind} cannot be read: {wrong}") from None


class SkipUndone(Decision):
    """A skip no longer counts."""

    kind = "skip undone"
    skip: str  # its key
    by: str


class LossAccepted(Decision):
    """The ledger has lost entries, and goes on with what is left."""

    kind = "accepted loss"
    lost: str
    had: dict[str, Any] | None = None  # the head file; None if it was damaged
    kept: int  # entries
    content: str  # digest of what is left
