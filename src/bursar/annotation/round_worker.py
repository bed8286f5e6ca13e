"""Worker process that trains the next round of a campaign with human annotators.

``python -m bursar.annotation.round_worker FOLDER`` closes the round and opens the next one. With ``--preview`` and
changes as JSON, it only previews the next round. It prints events to standard output, one JSON object per line:
``stage``, ``scored``, then ``opened``, ``waiting``, ``ended`` or ``preview``. Exit codes are those of the command line,
and 75 after a storage fault. It may be killed at any time; running it again gives the same result. ``--trust`` loads
saved models that could run code, ``--engine`` selects where the pool is scored.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from bursar.annotation.preview import preview
from bursar.annotation.subprocess_events import SendEvent, run_worker
from bursar.annotation.suggestions import leave
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.folder import Lock
from bursar.campaign.participants import Observer
from bursar.campaign.runs import Run
from bursar.compute import THIS_PROCESS, Engine, make_engine
from bursar.errors import ConfigError

SUGGESTIONS = "suggestions"  # folder of the suggestions


def next_round(folder: Path, send: SendEvent, *, trust: bool = False, engine: Engine = THIS_PROCESS) -> str:
    """Train, score and select. Returns ``opened``, ``ended``, or ``waiting`` if answers are missing."""
    with ExitStack() as stack:
        stack.callback(Lock(folder / "training.lock", patience=30).release)  # an earlier process may still be ending
        campaign = stack.enter_context(closing(_campaign(folder, send, trust, engine)))
        campaign.offered = partial(leave, folder / SUGGESTIONS, campaign)
        waiting, round = len(campaign.state.open()), campaign.state.rounds_opened
        if not campaign.state.complete(waiting, campaign.state.terms()):
            raise ConfigError(f"round {round} still has {waiting} open items", fix="answer them, or close the round")
        outcome = campaign.advance()
        send({"event": outcome, "round": campaign.state.rounds_opened, "why": campaign.state.ended})
        return outcome


def preview_round(folder: Path, changes: Mapping[str, Any], send: SendEvent, *, trust: bool = False) -> dict[str, Any]:
    """Preview the next round under changed settings and under the current ones."""
    with closing(_campaign(folder, send, trust)) as campaign:
        found = preview(campaign, changes, folder / SUGGESTIONS)
    send({"event": "preview", "found": found})
    return found


def _campaign(folder: Path, send: SendEvent, trust: bool, engine: Engine = THIS_PROCESS) -> Campaign:
    run, sender = Run.open(folder, trust=trust), _EventSender(send)
    return Campaign(run.config, folder, parts=run.parts, watcher=sender, lock=False, trust=trust, engine=engine)


class _EventSender(Observer):
    """An observer that forwards events."""

    def __init__(self, send: SendEvent) -> None:
        self._send = send

    def stage(self, round: int, what: str, done: float) -> None:
        self._send({"event": "stage", "round": round, "what": what, "done": float(f"{done:.3f}")})  # fewer events

    def scored(self, record: RoundRecord) -> None:
        self._send({"event": "scored", "round": record.round, "record": record.model_dump(mode="json")})


def main(arguments: list[str]) -> int:
    """Run as a worker process; returns the exit code."""
    reader = argparse.ArgumentParser(prog="python -m bursar.annotation.round_worker")
    reader.add_argument("folder", type=Path)
    reader.add_argument("--trust", action="store_true")
    reader.add_argument("--engine", default="here")
    reader.add_argument("--preview", metavar="CHANGES", type=json.loads)
    given = reader.parse_args(arguments)

    def work(send: SendEvent) -> None:
        if given.preview is not None:
            preview_round(given.folder, given.preview, send, trust=given.trust)
        else:
            with make_engine(given.engine) as engine:
                next_round(given.folder, send, trust=given.trust, engine=engine)

    return run_worker(work, niceness=5)  # lower priority than the server


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
