"""The files beside a run that hold answers, and the states of searches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bursar.corpus.formats.format import replacing
from bursar.oracle.run_question import KIND


@dataclass(frozen=True)
class AnswerFiles:
    """A file for the latest question, and files beside it for earlier ones, so that no search is lost.

    A question is identified by its ``asked`` value: fingerprint, plan and seed.
    """

    file: Path

    def find(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is stored for a question."""
        return next((found for file in self._files(asked) if question_in(found := read_json(file)) == asked), None)

    def put(self, asked: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Store an answer to the latest question."""
        self.make_room(asked)
        write_json(self.file, found)
        self._aside(asked).unlink(missing_ok=True)

    def make_room(self, asked: Mapping[str, Any]) -> None:
        """Rename the file if it holds another question."""
        latest = question_in(read_json(self.file))
        if latest is not None and latest != asked:
            self.file.replace(self._aside(latest))

    def drop(self, asked: Mapping[str, Any]) -> None:
        """Delete what is stored for a question."""
        for file in self._files(asked):
            file.unlink(missing_ok=True)

    def _files(self, asked: Mapping[str, Any]) -> tuple[Path, Path]:
        return self.file, self._aside(asked)

    def _aside(self, asked: Any) -> Path:
        digest = hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=4).hexdigest()
        return self.file.with_name(f"{self.file.stem}-{digest}.json")


def question_in(found: Mapping[str, Any]) -> Any:
    """The question of a stored value."""
    return found.get("asked") if found.get("kind") == KIND else None


def read_json(file: Path) -> dict[str, Any]:
    """The contents of a file; empty if it is missing or damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(file: Path, found: Mapping[str, Any]) -> None:
    """Write a file, whole or not at all."""
    with replacing(file) as stream:
        json.dump(found, stream, allow_nan=False)
