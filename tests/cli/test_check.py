"""``bursar check``: a sound project, and every problem by its name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bursar.annotation.round_worker import next_round
from bursar.annotation.session import AnnotationSession
from bursar.ledger import Answer
from bursar.ledger.places import open_store
from bursar.ledger.records import LossAccepted
from bursar.ledger.schema import begin_log
from bursar.web.database import DATABASE_FILE, WebDatabase
from tests.ledger.ledgers import SQLitePlace
from tests.ledger.test_losses import past_triggers
from tests.web.small import make_project, right


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project in its second round, with a model, suggestions and accounts."""
    folder = make_project(tmp_path_factory.mktemp("check") / "project")
    session = AnnotationSession.open(folder)
    for want in session.wanted():
        session.recorder.record(Answer(want.id, right(want.id), "ann", {"reading": 1.0}))
    first = session.ledger.answers()[0].item
    session.recorder.record(Answer(first, right(first), "bob", role="overlap"))
    session.recorder.record(Answer(first, {"intent": "music"}, "lead", role="correction", key="better"))
    next_round(folder, lambda event: None)
    session.close()
    WebDatabase.open(folder / DATABASE_FILE).close()
    return folder


@pytest.fixture
def project(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "project"))


def test_a_sound_project_passes_and_lists_what_was_checked(bursar, project):
    code, out, err = bursar("check", project)
    assert (code, err) == (0, "")
    for what in ("settings and data", "ledger: entries", "answers", "money", "models", "suggestions", "accounts"):
        assert what in out
    code, out, _ = bursar("check", project, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["sound"]
    assert len(result["checks"]) == 8


def test_a_folder_without_a_project_is_refused(bursar, tmp_path):
    code, _, err = bursar("check", tmp_path)
    assert code == 2
    assert "is not a run or project" in err


def ledger(project):
    return SQLitePlace(project / "ledger.sqlite")


def change_a_charge(project):
    past_triggers(ledger(project), "UPDATE charges SET actual = actual + 1 WHERE id = 2")
    relog(project)


def answer_an_unknown_item(project):
    past_triggers(ledger(project), "UPDATE entries SET item = 'u4711' WHERE id = 2")
    relog(project)


def answer_in_another_language(project):
    past_triggers(ledger(project), """UPDATE entries SET label = '"Musik"' WHERE task = 'intent' AND id = 3""")
    relog(project)


def relog(project):
    """Digests of what is there now."""
    ledger(project).raw("DELETE FROM log")
    store = open_store(project / "ledger.sqlite")
    with store.writer.begin() as connection:
        begin_log(connection)
    store.writer.dispose()
    (project / "ledger.head").unlink()


def change_an_answer(project):
    past_triggers(ledger(project), """UPDATE entries SET label = '"alarm"' WHERE id = (SELECT min(id) FROM entries)""")


def spoil(name):
    def damage(project):
        (found,) = sorted(project.glob(name))[:1]
        found.write_bytes(b"\xff spoilt" * 500)

    return damage


def cut(project):
    text = (project / "ledger.sqlite").read_bytes()
    (project / "ledger.sqlite").write_bytes(text[: len(text) // 2])


def change_data(project):
    settings = project / "campaign.json"
    settings.write_text(settings.read_text().replace('"corpus": "', '"corpus": "0'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (change_a_charge, "ledger: money: 'round 0: u"),
        (answer_an_unknown_item, "u4711"),
        (answer_in_another_language, "Musik"),
        (change_an_answer, "is not what was recorded"),
        (spoil("models/*/fit.json"), "fit.json cannot be read"),
        (spoil("suggestions/round-01.json"), "round-01.json cannot be read"),
        (spoil("suggestions/pool-01.npz"), "pool-01.npz cannot be read"),
        (spoil("web.sqlite"), "web.sqlite cannot be opened"),
        (spoil("ledger.sqlite"), "file is not a database"),
        (spoil("ledger.head"), "ledger.head is damaged"),
        (cut, "malformed"),
        (change_data, "was started on another corpus"),
        (spoil("campaign.json"), "campaign.json cannot be read"),
    ],
)
def test_every_problem_is_named(bursar, project, damage, said):
    damage(project)
    code, out, err = bursar("check", project)
    assert code == 2
    assert said in err
    assert "problems" in out
    code, out, _ = bursar("check", project, "--json")
    assert code == 2
    assert not json.loads(out)["sound"]


def test_a_loss_that_is_accepted_is_recorded_and_the_project_goes_on(bursar, project):
    (project / "ledger.sqlite").unlink()
    code, _, err = bursar("report", project)
    assert code == 2
    assert "bursar check" in err
    code, out, _ = bursar("check", project, "--accept-loss")
    assert code == 0
    assert "ledger.sqlite is missing: this project had" in out
    assert "Accepted: this is entry 1 of the ledger" in out
    assert bursar("report", project)[0] == 0
    assert bursar("check", project)[0] == 0
    code, out, _ = bursar("check", project, "--accept-loss", "--json")
    assert json.loads(out)["accepted"] == []
    session = AnnotationSession.open(project)
    assert [accepted.had["entry"] > 10 for accepted in session.ledger.decisions(LossAccepted)] == [True]
    session.close()


def test_the_ledger_of_a_campaign_without_a_run_is_checked_alone(bursar, project):
    (project / "campaign.json").unlink()
    code, out, _ = bursar("check", project)
    assert code == 0
    assert "only the ledger" in out


@pytest.mark.parametrize("command", [["serve"], ["report"], ["check"]])
def test_a_lost_ledger_ends_a_command_with_2(bursar, project, command):
    (project / "ledger.sqlite").write_bytes(b"")
    code, _, err = bursar(*command, project)
    assert code == 2
    assert "ledger.sqlite is empty: this project had" in err
    assert "put a backup of ledger.sqlite back" in err
