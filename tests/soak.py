"""A thousand random kills of whatever writes answers: a ledger's writer, ``bursar run`` and ``bursar serve``.

``python -m tests.soak`` goes on where the counts in the file end; ``--kills 50`` stops after 50 of them. After
every few kills the counts are written down: how many answers were acknowledged, and how many of those were lost.
An opening that is refused after a kill, a doubled answer or another ending than an undisturbed run's is an error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bursar.annotation.session import AnnotationSession
from bursar.ledger.log import audit_log
from bursar.ledger.places import read_only
from tests.campaign.test_kill import fingerprints, finish, start, strike
from tests.ledger.ledgers import PostgresPlace, SQLitePlace
from tests.ledger.test_kill import write_and_kill
from tests.postgres import PostgresServer
from tests.web.processes import Crew, Server, people_with_tokens
from tests.web.small import make_project
from tests.web.test_load import SHARED, check_ledger

TARGETS = {"ledger": 700, "campaign": 100, "server": 200}
PIECES = {"ledger": 25, "campaign": 10, "server": 20}  # kills between two writes of the counts
OUT = Path(__file__).parents[1] / "docs" / "soak.json"
TOML = """
tasks = ["intent", "slots"]
compare = ["RANDOM"]
[corpus]
items = 400
dev_items = 20
test_items = 30
[budget]
seed_items = 60
per_round = 600
rounds = 4
[learner]
name = "scikit"
estimator = "naive-bayes"
[audit]
share = 0.15
"""


@dataclass
class Count:
    """Kills so far, answers that were acknowledged before them, and how many of those were not there afterwards."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0


# -- the ledger --------------------------------------------------------------------------------------------------------
def kill_writers(folder: Path, count: Count, kills: int, rng: np.random.Generator) -> None:
    """Kill a process that writes to a ledger, while it opens it or while it writes; every fifth piece on a server."""
    server = PostgresServer() if rng.random() < 0.2 else None
    try:
        for number in range(kills):
            if number % 5 == 0:  # a new ledger: kills hit its making, too
                file = folder / f"{number}" / "ledger.sqlite"
                place = PostgresPlace(server, f"p{number}", file.parent) if server else SQLitePlace(file)
                first = known = 0
            opening = bool(rng.random() < 0.4)
            last = max(known - 1, write_and_kill(place, first, rng.uniform(0.0, 0.25), opening=opening))
            ledger = place.open()
            keys = ledger.keys()
            acknowledged = {f"k{n}" for n in range(last + 1)}
            count.kills += 1
            count.acknowledged += last + 1 - known
            count.lost += len(acknowledged - keys)
            assert len(keys) <= last + 2, "an answer is there twice"
            assert ledger.spent() == 3 * len(keys)
            with read_only(place.place) as connection:
                assert audit_log(connection).problems == []
            ledger.close()
            first, known = max(last, 0), last + 1
    finally:
        if server is not None:
            server.stop()


# -- the campaign ------------------------------------------------------------------------------------------------------
def kill_runs(folder: Path, count: Count, kills: int, rng: np.random.Generator) -> None:
    """Kill ``bursar run``: what its ledgers hold stays there, and it ends as an undisturbed run does."""
    toml, one = folder / "campaign.toml", ("--workers", "1")
    toml.write_text(TOML)
    begun = time.monotonic()
    finish(folder / "whole", toml, *one)
    took, expected = time.monotonic() - begun, fingerprints(folder / "whole")
    struck = runs = 0
    while struck < kills:
        run, held = folder / f"run-{runs}", set[tuple[str, str]]()
        runs += 1
        while struck < kills:
            process = start(run, toml, *one)
            try:
                if struck % 3:  # most kills hit while it writes, others at any time
                    _wait_for_answers(run, process)
                process.wait(timeout=rng.uniform(0.0, 0.5 if struck % 3 else 0.9) * took)
                assert process.returncode == 0, process.stderr.read().decode()
                break  # it got to the end
            except subprocess.TimeoutExpired:
                struck += 1
                strike(process, alone=struck % 2 == 0)
            count.kills += 1
            found = _keys(run)
            count.acknowledged += len(found - held)
            count.lost += len(held - found)
            held |= found
        finish(run, toml, *one)
        count.lost += len(held - _keys(run))
        assert fingerprints(run) == expected, "a killed run ended otherwise than an undisturbed one"


def _wait_for_answers(run: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until a run writes to a ledger, or ends."""

    def written() -> list[int]:
        return sorted(file.stat().st_mtime_ns for file in run.rglob("ledger.head"))

    before = written()
    while written() == before and process.poll() is None:
        time.sleep(0.01)


def _keys(run: Path) -> set[tuple[str, str]]:
    """The answers that a run's ledgers hold, by file and key; read as anybody could, past the ledger."""
    found = set()
    for file in run.rglob("ledger.sqlite"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30)) as raw:
            if raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'submissions'").fetchone():
                found |= {(str(file), key) for (key,) in raw.execute("SELECT key FROM submissions")}
    return found


# -- the server --------------------------------------------------------------------------------------------------------
def kill_servers(folder: Path, count: Count, kills: int, rng: np.random.Generator) -> None:
    """Kill ``bursar serve`` while people annotate; whoever loses the line sends the same again."""
    items, people = 4000, [f"person {number}" for number in range(6)]
    make_project(folder / "project", items=items, budget={"seed_items": items})
    tokens = people_with_tokens(folder / "project", people, SHARED)
    server = Server(folder / "project").start()
    crew = Crew(server.port, tokens, SHARED, think=0.05, seed=int(rng.integers(1 << 30)))

    def meanwhile() -> None:
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.2))
            server.kill()
            count.kills += 1
            server.start()

    try:
        crew.run(0.0, meanwhile)
        code, _, words = server.stop()
    finally:
        server.process.kill()
    assert code == 0, words
    assert crew.trouble == [], crew.trouble
    live = AnnotationSession.open(folder / "project")
    held = {(answer.item, answer.annotator) for answer in live.ledger.answers()}
    live.close()
    acknowledged = {(item, name) for item, names in crew.acknowledged.items() for name in names}
    count.acknowledged += len(acknowledged)
    count.lost += len(acknowledged - held)
    check_ledger(folder / "project", crew, items)


# -- counting ----------------------------------------------------------------------------------------------------------
PARTS: dict[str, Callable[[Path, Count, int, np.random.Generator], None]] = {
    "ledger": kill_writers,
    "campaign": kill_runs,
    "server": kill_servers,
}


def soak(out: Path, most: int | None) -> int:
    """Continue from the counts in a file, to the end or for a number of kills; returns how many answers were lost."""
    counts = _read(out)
    left = sum(TARGETS.values()) if most is None else most
    while left > 0 and (open_parts := [part for part in PARTS if counts[part].kills < TARGETS[part]]):
        part = min(open_parts, key=lambda name: counts[name].kills / TARGETS[name])
        count = counts[part]
        kills = min(PIECES[part], TARGETS[part] - count.kills, left)
        folder = Path(tempfile.mkdtemp(prefix="bursar-soak-"))
        try:
            PARTS[part](folder, count, kills, np.random.default_rng([count.kills, len(part)]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        left -= kills
        _write(out, counts)
        print(time.strftime("%H:%M:%S"), part, asdict(count), flush=True)  # noqa: T201
    return sum(count.lost for count in counts.values())


def _read(out: Path) -> dict[str, Count]:
    known = json.loads(out.read_text())["parts"] if out.exists() else {}
    counts = {part: Count(**known.get(part, {})) for part in PARTS}
    whole = all(counts[part].kills >= TARGETS[part] for part in PARTS)
    return {part: Count() for part in PARTS} if whole else counts


def _write(out: Path, counts: dict[str, Count]) -> None:
    total = Count(*(sum(getattr(count, name) for count in counts.values()) for name in asdict(Count())))
    about = {
        "what": "random SIGKILLs; answers that were acknowledged before them, and how many of those were lost",
        "command": "make soak (in pieces: make soak KILLS=100)",
        "parts": {part: asdict(count) for part, count in counts.items()},
        "total": asdict(total),
    }
    draft = out.with_name(f"{out.name}.draft")
    draft.write_text(json.dumps(about, indent=1) + "\n")
    draft.replace(out)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, help="stop after this number of kills; by default, go on to the end")
    parser.add_argument("--out", type=Path, default=OUT, help="the file of the counts")
    given = parser.parse_args()
    sys.exit(1 if soak(given.out, given.kills) else 0)
