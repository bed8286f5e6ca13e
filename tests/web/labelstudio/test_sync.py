"""Push and pull against a Label Studio in memory: nothing twice, nothing lost, whatever is done in between."""

from __future__ import annotations

import json

import pytest

from bursar.annotation import round_worker as live_worker
from bursar.annotation.session import AnnotationSession
from bursar.errors import BursarError, ConfigError, StudioError
from bursar.ledger.records import CORRECTION, OVERLAP
from bursar.web.labelstudio import sync as module
from bursar.web.labelstudio.sync import FILE, Memory, Sync, keep_in_step
from tests.web.labelstudio.shelf import Shelf
from tests.web.small import make_project, right


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def live(tmp_path):
    opened = AnnotationSession.open(make_project(tmp_path / "run"))
    yield opened
    opened.close()


@pytest.fixture
def sync(live, shelf):
    return Sync(live, shelf)


def answer_all(shelf, live, person=1):
    for want in live.wanted():
        shelf.annotate(live.corpus, want.id, right(want.id), person)


# -- there -------------------------------------------------------------------------------------------------------------
def test_what_is_asked_is_sent_once_however_often_it_is_pushed(sync, shelf, live):
    first = sync.push()
    again = sync.push()
    assert (first.new, first.there, again.new, again.there) == (8, 0, 0, 8)
    assert sorted(task["data"]["id"] for task in shelf.tasks.values()) == sorted(want.id for want in live.wanted())
    assert len(shelf.projects) == 1


def test_a_push_that_is_cut_off_goes_on_where_it_was(sync, shelf, live, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    shelf.fails_after = 1
    with pytest.raises(StudioError):
        sync.push()
    shelf.fails_after = None
    assert (Sync(live, shelf).push().new, len(shelf.tasks), len(shelf.projects)) == (5, 8, 1)


def test_a_project_that_was_made_before_its_number_could_be_written_down_is_found(sync, shelf, live):
    sync.push()
    path = live.folder / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"project": None}))
    assert Sync(live, shelf).push().there == 8
    assert len(shelf.projects) == 1


def test_a_project_whose_description_was_changed_is_still_the_runs(sync, shelf, live):
    project = sync.push().project
    shelf.projects[project]["description"] = "what we do in spring"
    assert Sync(live, shelf).push().there == 8
    assert len(shelf.projects) == 1


def test_another_server_gets_a_project_of_its_own_and_nothing_is_bought_twice(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    shelf.annotate(live.corpus, item, right(item))
    sync.pull()
    spent, other = live.state().spent, Shelf()
    there = Sync(live, other)
    assert there.push().new == 7
    assert (there.pull().anything, live.state().spent) == (False, spent)


def test_suggestions_are_sent_with_the_items_that_have_some(sync, shelf, live, monkeypatch):
    item = live.wanted()[0].id
    told = {"intent": {"label": "music", "confidence": 0.25}, "slots": {"label": [[0, 1, "time"]], "confidence": 0.75}}
    monkeypatch.setattr(live, "suggestions", lambda id: told if id == item else {})
    assert sync.push().suggested == 1
    prediction = shelf.task(item)["predictions"][0]
    assert (prediction["score"], [result["from_name"] for result in prediction["result"]]) == (0.5, ["intent", "slots"])


def test_a_simulation_is_refused(tmp_path, shelf):
    live = AnnotationSession.open(
        make_project(tmp_path / "run", costs={"pricing": "gold"}, corpus={"pool": "dev"}, budget={"seed_items": 2})
    )
    try:
        with pytest.raises(ConfigError, match="simulation"):
            Sync(live, shelf)
    finally:
        live.close()


# -- and back ----------------------------------------------------------------------------------------------------------
def test_what_people_say_is_bought_once_however_often_it_is_pulled(sync, shelf, live):
    sync.push()
    asked = [want.id for want in live.wanted()]
    for item in asked[:5]:
        shelf.annotate(live.corpus, item, right(item))
    first = sync.pull()
    ledger, again = live.ledger.fingerprint(), sync.pull()
    assert sorted(first.answered) == sorted(asked[:5])
    assert (again.anything, live.ledger.fingerprint()) == (False, ledger)
    assert first.cost == live.state().spent > 0
    said = {item: {e.task: e.label for e in live.answers(item)} for item in asked[:5]}
    assert said == {item: right(item) for item in asked[:5]}
    assert live.ledger.annotators() == ["ada@example.com"]
    assert sorted(want.id for want in live.wanted()) == sorted(asked[5:])


@pytest.mark.parametrize("forgotten", ["all of it", "the file"])
def test_a_pull_that_is_killed_before_it_remembers_buys_nothing_again(sync, shelf, live, forgotten):
    sync.push()
    before = (live.folder / FILE).read_text()
    answer_all(shelf, live)
    skipped, edited = (want.id for want in live.wanted()[:2])
    shelf.edit(shelf.task(skipped)["annotations"][0], was_cancelled=True, result=[])
    sync.pull()
    ledger = live.ledger.fingerprint()
    (live.folder / FILE).write_text(before)
    assert Sync(live, shelf).pull().anything is False
    assert live.ledger.fingerprint() == ledger
    if forgotten == "all of it":  # and somebody changed their mind before it was run again
        (live.folder / FILE).write_text(before)
        wrong = (
            {"intent": "alarm", "slots": []} if right(edited)["intent"] == "music" else {"intent": "music", "slots": []}
        )
        annotation = shelf.task(edited)["annotations"][0]
        shelf.task(edited)["annotations"].remove(annotation)
        shelf.annotate(live.corpus, edited, wrong, id=annotation["id"])
        assert Sync(live, shelf).pull().corrected == [edited]
        assert live.view()[int(live.view().positions([edited])[0])].labels == wrong


def test_a_change_after_the_pull_is_a_correction_that_costs_nothing(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    annotation = shelf.annotate(live.corpus, item, {"intent": "alarm", "slots": []})
    sync.pull()
    spent = live.state().spent
    shelf.edit(annotation, result=shelf.annotate(live.corpus, item, {"intent": "music", "slots": []})["result"])
    shelf.task(item)["annotations"].pop()
    assert sync.pull().corrected == [item]
    assert sync.pull().anything is False
    assert [(e.label, e.role) for e in live.answers(item) if e.task == "intent"][-1] == ("music", CORRECTION)
    assert live.state().spent == spent


def test_a_change_that_says_the_same_is_nothing(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    annotation = shelf.annotate(live.corpus, item, right(item))
    sync.pull()
    shelf.edit(annotation, lead_time=99)
    assert sync.pull().anything is False


def test_what_is_deleted_there_stays_here_and_is_told_once(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    annotation = shelf.annotate(live.corpus, item, right(item))
    sync.pull()
    shelf.delete(item, annotation)
    assert sync.pull().deleted == [item]
    assert sync.pull().anything is False
    assert live.view().ids.tolist() == [item]


def test_somebody_elses_answer_is_recorded_beside_the_first(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    shelf.annotate(live.corpus, item, {"intent": "alarm", "slots": []}, person=1)
    shelf.annotate(live.corpus, item, {"intent": "music", "slots": []}, person=2)
    pulled = sync.pull()
    assert (pulled.answered, pulled.beside) == ([item], [item])
    assert sync.pull().anything is False
    assert {(e.annotator, e.role, e.label) for e in live.answers(item) if e.task == "intent"} == {
        ("ada@example.com", "answer", "alarm"),
        ("bo@example.com", OVERLAP, "music"),
    }
    assert live.view()[0].labels["intent"] == "alarm"


def test_a_second_annotation_by_the_same_person_corrects_the_first(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    shelf.annotate(live.corpus, item, {"intent": "alarm", "slots": []})
    sync.pull()
    shelf.annotate(live.corpus, item, {"intent": "music", "slots": []})
    assert sync.pull().corrected == [item]
    assert sync.pull().anything is False


def test_whoever_skips_an_item_declines_it(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    skipped = shelf.submit(item, [], was_cancelled=True)
    assert sync.pull().skipped == [item]
    assert sync.pull().anything is False
    assert item not in [want.id for want in live.wanted()]
    shelf.edit(skipped, was_cancelled=False, result=shelf.annotate(live.corpus, item, right(item))["result"])
    problems = sync.pull().problems
    assert len(problems) == 2
    assert all(repr(item) in problem for problem in problems)


def test_what_cannot_be_used_is_named_and_waits_until_it_is_mended(sync, shelf, live):
    sync.push()
    item, other = (want.id for want in live.wanted()[:2])
    annotation = shelf.submit(item, [])
    shelf.annotate(live.corpus, other, right(other))
    pulled = sync.pull()
    assert pulled.answered == [other]
    assert "'intent'" in pulled.problems[0]
    assert item in pulled.problems[0]
    shelf.edit(annotation, result=shelf.annotate(live.corpus, item, right(item), person=2)["result"])
    shelf.task(item)["annotations"].pop()
    assert sync.pull().answered == [item]


def test_an_answer_to_a_round_that_went_on_without_it_is_refused_and_nothing_is_paid(sync, shelf, live):
    sync.push()
    item = live.wanted()[0].id
    live.close_round()
    shelf.annotate(live.corpus, item, right(item))
    pulled = sync.pull()
    assert (pulled.answered, live.state().spent) == ([], 0)
    assert "nobody waits for it" in pulled.problems[0]


def test_tasks_of_others_in_the_project_are_left_alone(sync, shelf, live):
    project = sync.push().project
    shelf.import_tasks(project, [{"data": {"text": "mine"}}, {"data": {"id": 7, "round": "x", "tasks": []}}])
    assert sync.pull().anything is False
    assert sync.push().new == 0


def test_a_pull_before_any_push_says_what_to_do(sync):
    with pytest.raises(ConfigError, match="push it first"):
        sync.pull()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2}', '{"version": 1, "url": "u", "mark": "m", "project": 1, "taken": {"x": {}}}'],
)
def test_a_memory_that_is_broken_is_refused_by_its_name(sync, shelf, live, text):
    (live.folder / FILE).write_text(text)
    with pytest.raises(BursarError, match=FILE):
        Sync(live, shelf)


def test_what_is_remembered_is_read_back_the_same(sync, shelf, live):
    sync.push()
    answer_all(shelf, live)
    sync.pull()
    again = Memory.load(live.folder)
    assert again == sync.memory
    assert len(again.taken) == 8


def test_rounds_follow_each_other_to_the_end_with_suggestions_from_the_second_on(sync, shelf, live, monkeypatch):
    def next_round(progress):
        live_worker.next_round(live.folder, lambda event: None)  # here, and not in a process that has to start
        live.refresh()

    monkeypatch.setattr(live, "next_round", next_round)
    sync.push()
    told = []

    def annotators():
        for task in shelf.tasks.values():
            if not task["annotations"]:
                shelf.annotate(
                    live.corpus, task["data"]["id"], {t: right(task["data"]["id"])[t] for t in task["data"]["tasks"]}
                )

    why = keep_in_step(sync, pause=annotators, told=told.append)
    assert why == "all rounds are done"
    assert {task["data"]["round"] for task in shelf.tasks.values()} == {0, 1, 2}
    assert all("predictions" in task for task in shelf.tasks.values() if task["data"]["round"])
    assert not live.wanted()
