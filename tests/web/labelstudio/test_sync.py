"""Push and pull with an in-memory Label Studio: nothing is duplicated or lost."""

from __future__ import annotations

import json

import pytest

from bursar.annotation import round_worker as live_worker
from bursar.annotation.session import AnnotationSession
from bursar.errors import BursarError, ConfigError, StudioError
from bursar.ledger.records import CORRECTION, OVERLAP
from bursar.web.labelstudio import sync as module
from bursar.web.labelstudio.sync import FILE, Sync, SyncState, watch_project
from tests.web.labelstudio.fake_studio import FakeStudio
from tests.web.small import make_project, right


@pytest.fixture
def studio():
    return FakeStudio()


@pytest.fixture
def session(tmp_path):
    opened = AnnotationSession.open(make_project(tmp_path / "run"))
    yield opened
    opened.close()


@pytest.fixture
def sync(session, studio):
    return Sync(session, studio)


def answer_all(studio, session, person=1):
    for want in session.wanted():
        studio.annotate(session.corpus, want.id, right(want.id), person)


# -- there -------------------------------------------------------------------------------------------------------------
def test_what_is_asked_is_sent_once_however_often_it_is_pushed(sync, studio, session):
    first = sync.push()
    again = sync.push()
    assert (first.new, first.there, again.new, again.there) == (8, 0, 0, 8)
    assert sorted(task["data"]["id"] for task in studio.tasks.values()) == sorted(want.id for want in session.wanted())
    assert len(studio.projects) == 1


def test_a_push_that_is_cut_off_goes_on_where_it_was(sync, studio, session, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    studio.fails_after = 1
    with pytest.raises(StudioError):
        sync.push()
    studio.fails_after = None
    assert (Sync(session, studio).push().new, len(studio.tasks), len(studio.projects)) == (5, 8, 1)


def test_a_project_that_was_made_before_its_number_could_be_written_down_is_found(sync, studio, session):
    sync.push()
    path = session.folder / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"project": None}))
    assert Sync(session, studio).push().there == 8
    assert len(studio.projects) == 1


def test_a_project_whose_description_was_changed_is_still_the_runs(sync, studio, session):
    project = sync.push().project
    studio.projects[project]["description"] = "what we do in spring"
    assert Sync(session, studio).push().there == 8
    assert len(studio.projects) == 1


def test_another_server_gets_a_project_of_its_own_and_nothing_is_bought_twice(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    studio.annotate(session.corpus, item, right(item))
    sync.pull()
    spent, other = session.state().spent, FakeStudio()
    there = Sync(session, other)
    assert there.push().new == 7
    assert (there.pull().anything, session.state().spent) == (False, spent)


def test_suggestions_are_sent_with_the_items_that_have_some(sync, studio, session, monkeypatch):
    item = session.wanted()[0].id
    told = {"intent": {"label": "music", "confidence": 0.25}, "slots": {"label": [[0, 1, "time"]], "confidence": 0.75}}
    monkeypatch.setattr(session, "suggestions", lambda id: told if id == item else {})
    assert sync.push().suggested == 1
    prediction = studio.task(item)["predictions"][0]
    assert (prediction["score"], [result["from_name"] for result in prediction["result"]]) == (0.5, ["intent", "slots"])


def test_a_simulation_is_refused(tmp_path, studio):
    session = AnnotationSession.open(
        make_project(tmp_path / "run", costs={"pricing": "gold"}, corpus={"pool": "dev"}, budget={"seed_items": 2})
    )
    try:
        with pytest.raises(ConfigError, match="simulation"):
            Sync(session, studio)
    finally:
        session.close()


# -- and back ----------------------------------------------------------------------------------------------------------
def test_what_people_say_is_bought_once_however_often_it_is_pulled(sync, studio, session):
    sync.push()
    asked = [want.id for want in session.wanted()]
    for item in asked[:5]:
        studio.annotate(session.corpus, item, right(item))
    first = sync.pull()
    ledger, again = session.ledger.fingerprint(), sync.pull()
    assert sorted(first.answered) == sorted(asked[:5])
    assert (again.anything, session.ledger.fingerprint()) == (False, ledger)
    assert first.cost == session.state().spent > 0
    said = {item: session.ledger.answers(item)[-1].labels for item in asked[:5]}
    assert said == {item: right(item) for item in asked[:5]}
    assert session.ledger.annotators() == ["ada@example.com"]
    assert sorted(want.id for want in session.wanted()) == sorted(asked[5:])


@pytest.mark.parametrize("forgotten", ["all of it", "the file"])
def test_a_pull_that_is_killed_before_it_remembers_buys_nothing_again(sync, studio, session, forgotten):
    sync.push()
    before = (session.folder / FILE).read_text()
    answer_all(studio, session)
    skipped, edited = (want.id for want in session.wanted()[:2])
    studio.edit(studio.task(skipped)["annotations"][0], was_cancelled=True, result=[])
    sync.pull()
    ledger = session.ledger.fingerprint()
    (session.folder / FILE).write_text(before)
    assert Sync(session, studio).pull().anything is False
    assert session.ledger.fingerprint() == ledger
    if forgotten == "all of it":  # and somebody changed their mind before it was run again
        (session.folder / FILE).write_text(before)
        wrong = (
            {"intent": "alarm", "slots": []} if right(edited)["intent"] == "music" else {"intent": "music", "slots": []}
        )
        annotation = studio.task(edited)["annotations"][0]
        studio.task(edited)["annotations"].remove(annotation)
        studio.annotate(session.corpus, edited, wrong, id=annotation["id"])
        assert Sync(session, studio).pull().corrected == [edited]
        assert session.ledger.view()[int(session.ledger.view().positions([edited])[0])].labels == wrong


def test_a_change_after_the_pull_is_a_correction_that_costs_nothing(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    annotation = studio.annotate(session.corpus, item, {"intent": "alarm", "slots": []})
    sync.pull()
    spent = session.state().spent
    studio.edit(annotation, result=studio.annotate(session.corpus, item, {"intent": "music", "slots": []})["result"])
    studio.task(item)["annotations"].pop()
    assert sync.pull().corrected == [item]
    assert sync.pull().anything is False
    assert [(e.labels["intent"], e.role) for e in session.ledger.answers(item)][-1] == ("music", CORRECTION)
    assert session.state().spent == spent


def test_a_change_that_says_the_same_is_nothing(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    annotation = studio.annotate(session.corpus, item, right(item))
    sync.pull()
    studio.edit(annotation, lead_time=99)
    assert sync.pull().anything is False


def test_what_is_deleted_there_stays_here_and_is_told_once(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    annotation = studio.annotate(session.corpus, item, right(item))
    sync.pull()
    studio.delete(item, annotation)
    assert sync.pull().deleted == [item]
    assert sync.pull().anything is False
    assert session.ledger.view().ids.tolist() == [item]


def test_somebody_elses_answer_is_recorded_beside_the_first(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    studio.annotate(session.corpus, item, {"intent": "alarm", "slots": []}, person=1)
    studio.annotate(session.corpus, item, {"intent": "music", "slots": []}, person=2)
    pulled = sync.pull()
    assert (pulled.answered, pulled.beside) == ([item], [item])
    assert sync.pull().anything is False
    assert {(e.annotator, e.role, e.labels["intent"]) for e in session.ledger.answers(item)} == {
        ("ada@example.com", "answer", "alarm"),
        ("bo@example.com", OVERLAP, "music"),
    }
    assert session.ledger.view()[0].labels["intent"] == "alarm"


def test_a_second_annotation_by_the_same_person_corrects_the_first(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    studio.annotate(session.corpus, item, {"intent": "alarm", "slots": []})
    sync.pull()
    studio.annotate(session.corpus, item, {"intent": "music", "slots": []})
    assert sync.pull().corrected == [item]
    assert sync.pull().anything is False


def test_whoever_skips_an_item_declines_it(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    skipped = studio.submit(item, [], was_cancelled=True)
    assert sync.pull().skipped == [item]
    assert sync.pull().anything is False
    assert item not in [want.id for want in session.wanted()]
    studio.edit(skipped, was_cancelled=False, result=studio.annotate(session.corpus, item, right(item))["result"])
    problems = sync.pull().problems
    assert len(problems) == 2
    assert all(repr(item) in problem for problem in problems)


def test_what_cannot_be_used_is_named_and_waits_until_it_is_mended(sync, studio, session):
    sync.push()
    item, other = (want.id for want in session.wanted()[:2])
    annotation = studio.submit(item, [])
    studio.annotate(session.corpus, other, right(other))
    pulled = sync.pull()
    assert pulled.answered == [other]
    assert "'intent'" in pulled.problems[0]
    assert item in pulled.problems[0]
    studio.edit(annotation, result=studio.annotate(session.corpus, item, right(item), person=2)["result"])
    studio.task(item)["annotations"].pop()
    assert sync.pull().answered == [item]


def test_an_answer_to_a_round_that_went_on_without_it_is_refused_and_nothing_is_paid(sync, studio, session):
    sync.push()
    item = session.wanted()[0].id
    session.close_round()
    studio.annotate(session.corpus, item, right(item))
    pulled = sync.pull()
    assert (pulled.answered, session.state().spent) == ([], 0)
    assert "the item is not open" in pulled.problems[0]


def test_tasks_of_others_in_the_project_are_left_alone(sync, studio, session):
    project = sync.push().project
    studio.import_tasks(project, [{"data": {"text": "mine"}}, {"data": {"id": 7, "round": "x", "tasks": []}}])
    assert sync.pull().anything is False
    assert sync.push().new == 0


def test_a_pull_before_any_push_says_what_to_do(sync):
    with pytest.raises(ConfigError, match="push it first"):
        sync.pull()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2}', '{"version": 1, "url": "u", "mark": "m", "project": 1, "taken": {"x": {}}}'],
)
def test_a_memory_that_is_broken_is_refused_by_its_name(sync, studio, session, text):
    (session.folder / FILE).write_text(text)
    with pytest.raises(BursarError, match=FILE):
        Sync(session, studio)


def test_what_is_remembered_is_read_back_the_same(sync, studio, session):
    sync.push()
    answer_all(studio, session)
    sync.pull()
    again = SyncState.load(session.folder)
    assert again == sync.sync_state
    assert len(again.taken) == 8


def test_rounds_follow_each_other_to_the_end_with_suggestions_from_the_second_on(sync, studio, session, monkeypatch):
    def next_round(progress):
        live_worker.next_round(session.folder, lambda event: None)  # here, and not in a process that has to start
        session.refresh()

    monkeypatch.setattr(session, "next_round", next_round)
    sync.push()
    told = []

    def annotators():
        for task in studio.tasks.values():
            if not task["annotations"]:
                studio.annotate(
                    session.corpus, task["data"]["id"], {t: right(task["data"]["id"])[t] for t in task["data"]["tasks"]}
                )

    why = watch_project(sync, pause=annotators, report=told.append)
    assert why == "all rounds are done"
    assert {task["data"]["round"] for task in studio.tasks.values()} == {0, 1, 2}
    assert all("predictions" in task for task in studio.tasks.values() if task["data"]["round"])
    assert not session.wanted()
