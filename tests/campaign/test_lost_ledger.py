"""A project whose ledger is lost is refused at every door, until the ledger is back or the loss is accepted."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from bursar.annotation.round_worker import next_round, preview_round
from bursar.annotation.session import AnnotationSession
from bursar.campaign import Campaign, Run
from bursar.errors import LedgerError
from bursar.ledger import Ledger
from tests.campaign.lives import answer_all, live_config, one_corpus, start  # noqa: F401
from tests.web.small import make_project


@pytest.fixture
def project(tmp_path):
    """A project with a round of answers, closed, and a backup of its ledger from before the last of them."""
    folder = tmp_path / "project"
    live = start(folder)
    answer_all(live, leave=3)
    live.close()
    shutil.copy(folder / "ledger.sqlite", tmp_path / "backup.sqlite")
    live = AnnotationSession.open(folder)
    answer_all(live)
    live.close()
    return folder


def put_back_older(project):
    shutil.copy(project.parent / "backup.sqlite", project / "ledger.sqlite")


def delete(project):
    (project / "ledger.sqlite").unlink()


def delete_with_head(project):
    delete(project)
    (project / "ledger.head").unlink()


def cut(project):
    text = (project / "ledger.sqlite").read_bytes()
    (project / "ledger.sqlite").write_bytes(text[: len(text) // 2])


DAMAGES = {
    delete: r"ledger\.sqlite is missing: this project had 14 entries",
    delete_with_head: r"ledger\.sqlite is missing: this project was begun",
    put_back_older: r"ledger\.sqlite ends at entry 11: this project had 14 entries",
    cut: r"ledger\.sqlite cannot be opened as a ledger: database disk image is malformed",
}
DOORS = {
    "serve": AnnotationSession.open,
    "run": lambda folder: Run(folder, live_config()).pin(),
    "report": lambda folder: Run.open(folder).result(),
    "Campaign": lambda folder: Campaign(live_config(), folder),
    "training": lambda folder: next_round(folder, lambda event: None),
    "preview": lambda folder: preview_round(folder, {}, lambda event: None),
}


def files(folder):
    """All files but locks and what SQLite keeps while a file is open."""
    passing = ("lock", "-shm", "-wal")
    return {str(f): f.read_bytes() for f in folder.rglob("*") if f.is_file() and not f.name.endswith(passing)}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_lost_ledger_is_refused_at_every_door_and_nothing_is_written(project, damage):
    damage(project)
    before = files(project)
    for door in DOORS.values():
        with pytest.raises(LedgerError, match=DAMAGES[damage]) as refused:
            door(project)
        assert "put a backup of" in refused.value.fix
        assert "--accept-loss" in refused.value.fix
    assert files(project) == before


def test_a_training_worker_says_what_is_lost(tmp_path):
    project = make_project(tmp_path / "project")
    AnnotationSession.open(project).close()
    delete(project)
    command = [sys.executable, "-m", "bursar.annotation.round_worker", str(project)]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert ended.returncode == 2
    assert "ledger.sqlite is missing: this project had 2 entries" in ended.stdout


def test_a_strategy_beside_whose_ledger_is_lost_is_not_left_out_of_the_result(tmp_path):
    folder = tmp_path / "run"
    config = live_config(compare=["RANDOM"])
    run = Run(folder, config)
    run.pin()
    for arm in run.arms:
        campaign = run.campaign(arm)
        campaign.begin()
        campaign.close()
    (folder / "compare" / "RANDOM" / "ledger.sqlite").unlink()
    with pytest.raises(LedgerError, match=r"RANDOM/ledger\.sqlite is missing: this project had 2 entries"):
        Run.open(folder).result()


def test_a_ledger_that_is_put_back_is_gone_on_with(project):
    whole = project.parent / "whole.sqlite"
    shutil.copy(project / "ledger.sqlite", whole)
    put_back_older(project)
    with pytest.raises(LedgerError):
        AnnotationSession.open(project)
    shutil.copy(whole, project / "ledger.sqlite")
    live = AnnotationSession.open(project)
    assert live.state().answered == 12
    live.close()


def test_a_project_that_was_copied_moved_or_made_anew_is_no_loss(project):
    copied = project.with_name("copied")
    shutil.copytree(project, copied)
    moved = project.rename(project.with_name("moved"))
    for folder in (copied, moved):
        live = AnnotationSession.open(folder)
        assert live.state().answered == 12
        live.close()
    start(project).close()
    assert Ledger.exists(project / "ledger.sqlite")


def test_a_run_on_a_server_whose_schema_was_dropped_is_refused(place_for_ledger, tmp_path):
    place = place_for_ledger("postgresql")
    live = start(tmp_path / "project", ledger={"url": place.place})
    answer_all(live)
    live.close()
    place.raw(f'DROP SCHEMA "{place.schema}" CASCADE')
    with pytest.raises(LedgerError, match="holds no ledger: this project had 14 entries"):
        AnnotationSession.open(tmp_path / "project")
