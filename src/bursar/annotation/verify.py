"""Verifies a project: settings, data, ledgers, charges, models and other files in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bursar.annotation.round_worker import SUGGESTIONS
from bursar.campaign.config import CONFIG_FILE, CampaignConfig
from bursar.campaign.folder import LEDGER_FILE, Lock, ledger_place
from bursar.campaign.pricing import charges_of
from bursar.campaign.runs import Run
from bursar.campaign.state import GIVEN, CampaignState
from bursar.errors import BursarError, ConfigError
from bursar.ledger import Answer, Ledger
from bursar.ledger.losses import HeadFile, accept_loss, audit_entries, file_problems, find_loss, how_to_restore
from bursar.ledger.records import ANSWER, OVERLAP

PAID = (ANSWER, OVERLAP)
SHOWN = 5  # problems of one kind that are listed; the rest is counted


@dataclass(frozen=True)
class Finding:
    """The result of one check, with its problems."""

    what: str
    found: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """The ledger of one campaign in a project, and what is needed to read it."""

    arm: str  # such as " of RANDOM"; empty for the project's own campaign
    folder: Path
    place: str | Path
    begun: bool
    config: CampaignConfig | None = None

    @property
    def name(self) -> str:
        return f"ledger{self.arm}"

    @property
    def head(self) -> HeadFile:
        """The head file, which records the state of the ledger."""
        found = HeadFile.of_ledger(self.place, self.folder)
        assert found is not None  # only in-memory ledgers have none
        return found


# -- the whole project -------------------------------------------------------------------------------------------------
def verify_project(folder: Path) -> list[Finding]:
    """Check everything in a project folder. Changes nothing, except that an older ledger is migrated."""
    run, settings = _settings(folder)
    found = [settings]
    for kept in _ledgers(folder, run):
        found += [*_verify_ledger(kept, run), *_verify_files(kept)]
    return found


def accept_losses(folder: Path) -> list[str]:
    """Accept lost entries: record the loss in each ledger that has lost some."""
    run, _ = _settings(folder)
    accepted = []
    with ExitStack() as stack:
        stack.callback(Lock(folder / "run.lock", patience=0.5).release)
        for kept in _ledgers(folder, run):
            lost = find_loss(kept.place, kept.head, kept.begun)
            if lost is None and (problems := audit_entries(kept.place)[1]):
                lost = f"{kept.place} is damaged: {'; '.join(_few(problems))}"
            if lost is not None:
                entry = accept_loss(kept.place, kept.head, lost)
                accepted.append(f"{lost}. Accepted: this is entry {entry} of the ledger")
    return accepted


def _settings(folder: Path) -> tuple[Run | None, Finding]:
    """The run in a folder; None if there is only a ledger, or if settings or data cannot be read."""
    what = "settings and data"
    if not (folder / CONFIG_FILE).exists():
        if not Ledger.exists(folder / LEDGER_FILE):
            raise ConfigError(f"{folder} is not a run or project", fix="give the folder of a run or a project")
        return None, Finding(what, f"no {CONFIG_FILE}: only the ledger is checked")
    try:
        run = Run.open(folder)
    except BursarError as wrong:
        return None, Finding(what, "not usable", (str(wrong),))
    return run, Finding(what, f"{len(run.parts.corpus):,} items, unchanged")


def _ledgers(folder: Path, run: Run | None) -> Iterator[Kept]:
    if run is None:
        yield Kept("", folder, folder / LEDGER_FILE, begun=(folder / CONFIG_FILE).exists())
        return
    for arm in run.arms:
        first = arm == run.arms[0]
        if first or run.has_ledger(arm):
            config, place = run.config_of(arm), run.folder_of(arm)
            yield Kept("" if first else f" of {arm}", place, ledger_place(config, place), first, config)


# -- ledgers -----------------------------------------------------------------------------------------------------------
def _verify_ledger(kept: Kept, run: Run | None) -> list[Finding]:
    try:
        lost = find_loss(kept.place, kept.head, kept.begun)
    except BursarError as wrong:
        return [Finding(kept.name, "cannot be read", (str(wrong),))]
    if lost is not None:
        return [Finding(kept.name, "entries are lost", (f"{lost}. Fix: {how_to_restore(kept.place, kept.head)}",))]
    broken = file_problems(kept.place)
    if broken:
        return [Finding(kept.name, "the file is damaged", _few(broken))]
    if run is None or kept.config is None:
        return [_verify_entries(kept)]
    try:
        ledger = Ledger.open(kept.place, run.parts.corpus, folder=kept.folder)
    except BursarError as wrong:
        return [Finding(kept.name, "cannot be opened", (str(wrong),))]
    with closing(ledger):
        state = CampaignState(kept.config, ledger)
        return [_verify_entries(kept), _verify_answers(kept.name, state), _verify_charges(kept.name, state)]


def _verify_entries(kept: Kept) -> Finding:
    count, problems = audit_entries(kept.place)
    return Finding(f"{kept.name}: entries", f"{count:,}, compared with their digests", _few(problems))


def _verify_answers(name: str, state: CampaignState) -> Finding:
    """Answers to unknown items or tasks, and labels that cannot be decoded."""
    said = [(answer, one) for answer in state.ledger.answers() for one in answer.annotations()]
    problems = []
    for answer, annotation in said:
        try:
            state.ledger.check([annotation])
        except BursarError as wrong:
            problems.append(f"{answer.key!r} by {answer.annotator}: {wrong.message}")
    return Finding(f"{name}: answers", f"{len(said):,}, all of known items and tasks", _few(problems))


def _verify_charges(name: str, state: CampaignState) -> Finding:
    """Answers whose charge differs from the price of their labels in that round."""
    charged, problems = state.ledger.charged(), []
    for answer in state.ledger.answers():
        paid = charged.pop(answer.key, {})
        try:
            due = _due(state, answer)
        except BursarError:  # cannot be decoded: reported by the check of answers
            continue
        if paid != due:
            problems.append(f"{answer.key!r}: {sum(paid.values())} was charged, but {sum(due.values())} is due")
    problems += [f"{key!r}: {sum(paid.values())} was charged without an answer" for key, paid in charged.items()]
    spent = state.terms().costs.show(state.ledger.spent())
    return Finding(f"{name}: money", f"{spent} spent, charge by charge", _few(problems))


def _due(state: CampaignState, answer: Answer) -> dict[str, int]:
    """The cost of an answer by cost item; empty for corrections and labels that came with the data."""
    corpus, want = state.ledger.corpus, state.wanted(answer.round).get(answer.item)
    if want is None or answer.purpose == GIVEN or answer.role not in PAID:
        return {}
    item = corpus.take(corpus.positions([answer.item]))
    charges = charges_of(state.terms_of(answer.round).costs, item, answer.annotations(), want.estimate)
    return {charge.what: charge.actual for charge in charges}


# -- other files -------------------------------------------------------------------------------------------------------
def _verify_files(kept: Kept) -> Iterator[Finding]:
    """Models, suggestions and the database of the web server."""
    checks: list[tuple[str, str, Callable[[Path], object]]] = [
        (f"models{kept.arm}", "models/*/fit.json", lambda file: json.loads(file.read_bytes())["best"]),
        (f"suggestions{kept.arm}", f"{SUGGESTIONS}/round-*.json", lambda file: json.loads(file.read_bytes())["items"]),
        ("scores of the pool", f"{SUGGESTIONS}/pool-*.npz", _read_arrays),
    ]
    for what, pattern, read in checks:
        files, problems = sorted(kept.folder.glob(pattern)), []
        for file in files:
            try:
                read(file)
            except Exception as wrong:  # a damaged file can raise anything
                problems.append(f"{file} cannot be read: {wrong}")
        if files:
            yield Finding(what, f"{len(files):,} read", _few(problems))
    server = kept.folder / "web.sqlite"
    if server.exists():
        yield Finding("accounts and leases", server.name, _few(file_problems(server)))


def _read_arrays(file: Path) -> None:
    with np.load(file, allow_pickle=False) as arrays:
        for name in arrays.files:
            arrays[name]


def _few(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - SHOWN
    return (*problems[:SHOWN], *([f"and {more:,} more"] if more > 0 else []))
