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
import os
import stat
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bursar.annotation.preview import preview
from bursar.annotation.suggestions import leave
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.lock import Lock
from bursar.campaign.round_plan import Offer
from bursar.campaign.runs import Run
from bursar.compute import THIS_PROCESS, Engine, make_engine
from bursar.errors import BursarError, ConfigError, is_storage_fault
from bursar.learners import Learner

NO_STORAGE = os.EX_TEMPFAIL  # exit code for storage faults, which are worth a retry
SUGGESTIONS = "suggestions"  # folder of the suggestions
ProgressCallback = Callable[[Mapping[str, Any]], None]


def next_round(folder: Path, tell: ProgressCallback, *, trust: bool = False, engine: Engine = THIS_PROCESS) -> str:
    """Train, score and select. Returns ``opened``, ``ended``, or ``waiting`` if answers are missing."""
    run = Run.open(folder, trust=trust)
    lock = Lock(folder / "training.lock", patience=30)  # an earlier process may still be ending
    try:
        campaign = Campaign(
            run.config, folder, parts=run.parts, watcher=_ProgressTeller(tell), lock=False, trust=trust, engine=engine
        )

        def offered(offer: Offer, learner: Learner) -> None:
            waiting = campaign.state.open()
            leave(folder / SUGGESTIONS, campaign.corpus, offer, waiting, learner, str(campaign.models.newest))

        campaign.offered = offered
        try:
            waiting = len(campaign.state.open())
            if not campaign.state.complete(waiting, campaign.state.terms()):
                raise ConfigError(
                    f"round {campaign.rounds_opened} still has {waiting} open items",
                    fix="answer them, or close the round",
                )
            outcome = campaign.advance()
            tell({"event": outcome, "round": campaign.rounds_opened, "why": campaign.ended})
            return outcome
        finally:
            campaign.close()
    finally:
        lock.release()


def preview_round(
    folder: Path, changes: Mapping[str, Any], tell: ProgressCallback, *, trust: bool = False
) -> dict[str, Any]:
    """Preview the next round under changed settings and under the current ones."""
    run = Run.open(folder, trust=trust)
    campaign = Campaign(run.config, folder, parts=run.parts, watcher=_ProgressTeller(tell), lock=False, trust=trust)
    try:
        found = preview(campaign, changes, folder / SUGGESTIONS)
    finally:
        campaign.close()
    tell({"event": "preview", "found": found})
    return found


class _ProgressTeller:
    """An observer that forwards events."""

    def __init__(self, tell: ProgressCallback) -> None:
        self.tell = tell

    def stage(self, round: int, what: str, done: float) -> None:
        self.tell({"event": "stage", "round": round, "what": what, "done": round_done(done)})

    def scored(self, record: RoundRecord) -> None:
        self.tell({"event": "scored", "round": record.round, "record": record.model_dump(mode="json")})


def round_done(done: float) -> float:
    """Progress rounded to thousandths, to limit the number of events."""
    return round(float(done), 3)


def main(arguments: list[str]) -> int:
    """Run as a worker process; returns the exit code."""
    reader = argparse.ArgumentParser(prog="python -m bursar.annotation.round_worker")
    reader.add_argument("folder", type=Path)
    reader.add_argument("--trust", action="store_true")
    reader.add_argument("--engine", default="here")
    reader.add_argument("--preview", metavar="CHANGES", type=json.loads)
    given = reader.parse_args(arguments)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the events
    last = {"line": ""}

    def tell(event: Mapping[str, Any]) -> None:
        line = json.dumps(event, ensure_ascii=False)
        if line != last["line"]:
            last["line"] = line
            out.write(line + "\n")
            out.flush()

    end_with_parent()
    with suppress(OSError):
        os.nice(5)  # lower priority than the server
    try:
        if given.preview is not None:
            preview_round(given.folder, given.preview, tell, trust=given.trust)
        else:
            with make_engine(given.engine) as engine:
                next_round(given.folder, tell, trust=given.trust, engine=engine)
    except BursarError as wrong:
        tell({"event": "failed", "error": wrong.message, "fix": wrong.fix})
        sys.stderr.write(f"{wrong}\n")
        return NO_STORAGE if is_storage_fault(wrong) else 2
    except BrokenPipeError:
        return 1
    except Exception as broken:
        traceback.print_exc()
        tell({"event": "failed", "error": f"{type(broken).__name__}: {broken}", "fix": None})
        return NO_STORAGE if is_storage_fault(broken) else 1
    return 0


def end_with_parent() -> None:
    """If standard input is a pipe, exit when the parent closes it or ends."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def wait() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
