"""A real Label Studio, both ways. ``make test-label-studio`` installs one in an environment of its own and runs this.

It is found in ``.label-studio/`` or named by ``BURSAR_LABEL_STUDIO``; without one the tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bursar.annotation.session import AnnotationSession
from bursar.corpus import CorpusBuilder, read, write
from bursar.corpus.formats.label_studio import config_of
from bursar.corpus.formats.label_studio_results import Design, results_of
from bursar.corpus.words import find_words
from bursar.errors import StudioError
from bursar.ledger.records import CORRECTION, OVERLAP
from bursar.web.labelstudio.client import Studio
from bursar.web.labelstudio.sync import Sync, WebhookListener
from bursar.web.labelstudio.tasks import annotations_in, design_for
from tests.same import differences
from tests.web.annotating import write_project
from tests.web.label_studio_server import EXECUTABLE, NAME, PASSWORD, Server
from tests.web.small import make_project, right

INTENT = {"kind": "classification", "labels": ["alarm", "music now"]}
SLOTS = {"kind": "tagging", "labels": ["time", "who & when"]}
ALL = {
    "intent": INTENT,
    "slots": SLOTS,
    "pos": {"kind": "tagging", "labels": ["N", "V"], "every_word": True},
    "tree": {"kind": "parsing", "labels": ["root", "obj"]},
    "links": {"kind": "relations", "labels": ["of", "to"], "entity_types": ["time", "who & when"]},
    "score": {"kind": "regression", "low": 0, "high": 5},
}
TEXTS = ["wake 😀👨‍👩‍👧 me at seven today", "שלום 😀 עולם at seven today", "line one\r\nline <b>two</b> &amp; today"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not EXECUTABLE.is_file():
        pytest.skip(f"there is no Label Studio at {EXECUTABLE} (make test-label-studio)")
    started = Server(tmp_path_factory.mktemp("label-studio"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def studio(server):
    return Studio(server.url, server.token)


@pytest.fixture
def open_run():
    opened = []

    def open_folder(folder):
        opened.append(AnnotationSession.open(folder))
        return opened[-1]

    yield open_folder
    for session in opened:
        session.close()


def said_as_results(session, item, labels):
    """Labels of an item as the results of an annotation."""
    corpus = session.corpus
    at = int(corpus.positions([item])[0])
    places = corpus.texts.spans[at].tolist() if corpus.texts is not None else []
    return results_of(design_for(corpus), labels, corpus[at].text or "", places)


def labels_for(words):
    """Labels of every kind for an item of so many words; spans overlap, and one is there twice."""
    slots = [[0, 1, "time"], [0, 2, "who & when"], [1, 2, "time"], [words - 1, words, "time"]]
    return {
        "intent": "music now",
        "slots": slots,
        "pos": ["N" if at % 2 else "V" for at in range(words)],
        "tree": [[at, "obj" if at else "root"] for at in range(words)],
        "links": [[slots[0], slots[1], "of"], [slots[1], slots[3], "to"], [slots[3], slots[0], "of"]],
        "score": 3.25,
    }


# -- the client --------------------------------------------------------------------------------------------------------
def test_a_token_and_an_address_are_told_to_be_right_or_wrong(server, studio):
    assert studio.whoami() == NAME
    with pytest.raises(StudioError, match=r"Invalid token.*Fix: give a token") as caught:
        Studio(server.url, "f" * 40).whoami()
    assert caught.value.status == 401
    with pytest.raises(StudioError, match="Fix: see that the address"):
        Studio(f"{server.url}/nowhere", server.token).whoami()


def test_a_project_is_found_by_its_mark_and_a_stranger_is_not(studio):
    project = studio.create_project(
        "ab", "x mark-1 y", config_of(Design.of(CorpusBuilder({"intent": INTENT}).build().schema))
    )
    assert studio.find_project("mark-1") == project
    assert studio.find_project("mark-1", known=project) == project
    assert studio.find_project("mark-1", known=987654) == project
    assert studio.find_project("mark-2", known=project) is None


def test_a_project_whose_description_was_changed_is_still_the_runs(small, server):
    _, sync, project = small
    server.ask("PATCH", f"/api/projects/{project}/", json={"description": "what we do in spring"})
    again = sync.push()
    assert (again.project, again.there) == (project, 8)


def test_an_address_is_told_of_annotations_once(studio, server):
    project = studio.create_project(
        "hooked", "", config_of(Design.of(CorpusBuilder({"intent": INTENT}).build().schema))
    )
    first = studio.register_webhook(project, "http://127.0.0.1:9/hook")
    assert studio.register_webhook(project, "http://127.0.0.1:9/hook") == first
    assert [hook["id"] for hook in server.ask("GET", "/api/webhooks/", params={"project": project})] == [first]


def test_an_annotation_there_rings_the_bell_here(small, server, studio):
    session, sync, project = small
    with WebhookListener("http://127.0.0.1:0/annotated") as webhook:
        studio.register_webhook(project, webhook.url)
        webhook.wait(0)
        item = session.wanted()[0].id
        task = server.task(project, item)
        server.annotate(task, said_as_results(session, item, right(item)))
        assert webhook.wait(60)
    assert sync.pull().answered == [item]


# -- every kind of label -----------------------------------------------------------------------------------------------
def test_all_kinds_go_there_as_suggestions_and_come_back_the_same(tmp_path, server, studio, open_run, monkeypatch):
    session = open_run(write_project(tmp_path / "run", ALL, [{"text": text, "pair": "another text"} for text in TEXTS]))
    labels = {item: labels_for(int(session.corpus.words[at])) for at, item in enumerate(session.corpus.ids.tolist())}
    told = {item: {t: {"label": v, "confidence": 0.5} for t, v in own.items()} for item, own in labels.items()}
    monkeypatch.setattr(session, "suggestions", told.get)
    sync = Sync(session, studio)
    pushed = sync.push()
    assert (pushed.new, pushed.suggested) == (3, 3)
    for item in labels:
        task = server.task(pushed.project, item)
        prediction = task["predictions"][0]
        assert prediction["result"] == said_as_results(session, item, labels[item])
        server.annotate(task, prediction["result"])
    pulled = sync.pull()
    assert (sorted(pulled.answered), pulled.problems) == (sorted(labels), [])
    found = session.ledger.view()
    assert {found[at].id: found[at].labels for at in range(len(found))} == labels


def test_nothing_marked_says_that_there_is_nothing(tmp_path, server, studio, open_run):
    session = open_run(write_project(tmp_path / "run", {"slots": SLOTS}, [{"text": "seven"}, {"text": "x"}]))
    sync = Sync(session, studio)
    project = sync.push().project
    server.annotate(server.task(project, "u0"), [])
    assert sync.pull().answered == ["u0"]
    assert session.ledger.view()[0].labels == {"slots": []}


def test_images_are_sent_and_their_classes_come_back(tmp_path, server, studio, open_run):
    kinds = {"kind": {"kind": "classification", "labels": ["cat", "dog"]}}
    image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    session = open_run(write_project(tmp_path / "run", kinds, [{"image": image}, {"image": image}]))
    sync = Sync(session, studio)
    project = sync.push().project
    task = server.tasks(project)[0]
    server.annotate(task, said_as_results(session, task["data"]["id"], {"kind": "dog"}))
    assert sync.pull().answered == [task["data"]["id"]]
    assert session.ledger.view()[0].labels == {"kind": "dog"}


# -- what people do in between -----------------------------------------------------------------------------------------
@pytest.fixture
def small(tmp_path, studio, open_run):
    session = open_run(make_project(tmp_path / "run"))
    sync = Sync(session, studio)
    return session, sync, sync.push().project


def test_pushing_twice_leaves_one_task_an_item(small, server):
    session, sync, project = small
    again = sync.push()
    assert (again.project, again.new, again.there) == (project, 0, 8)
    assert sorted(t["data"]["id"] for t in server.tasks(project)) == sorted(want.id for want in session.wanted())


def test_pulling_twice_doubles_nothing(small, server):
    session, sync, project = small
    items = [want.id for want in session.wanted()[:3]]
    for item in items:
        server.annotate(server.task(project, item), said_as_results(session, item, right(item)))
    assert sorted(sync.pull().answered) == sorted(items)
    ledger = session.ledger.fingerprint()
    assert not sync.pull().anything
    assert session.ledger.fingerprint() == ledger
    assert session.ledger.annotators() == [NAME]


def test_an_item_that_is_skipped_is_declined(small, server):
    session, sync, project = small
    item = session.wanted()[0].id
    server.annotate(server.task(project, item), [], was_cancelled=True)
    assert sync.pull().skipped == [item]
    assert not sync.pull().anything
    assert item not in [want.id for want in session.wanted()]


def test_two_people_on_one_item_are_told_apart(small, server):
    session, sync, project = small
    item = session.wanted()[0].id
    task, bo = server.task(project, item), server.person("bo")
    server.annotate(task, said_as_results(session, item, {"intent": "alarm", "slots": []}))
    server.annotate(task, said_as_results(session, item, {"intent": "music", "slots": []}), completed_by=bo)
    pulled = sync.pull()
    assert (pulled.answered, pulled.beside) == ([item], [item])
    assert not sync.pull().anything
    assert {(e.annotator, e.role, e.labels["intent"]) for e in session.ledger.answers(item)} == {
        (NAME, "answer", "alarm"),
        ("bo@example.com", OVERLAP, "music"),
    }


def test_an_annotation_that_is_edited_later_is_a_correction(small, server):
    session, sync, project = small
    item = session.wanted()[0].id
    task = server.task(project, item)
    annotation = server.annotate(task, said_as_results(session, item, {"intent": "alarm", "slots": []}))
    sync.pull()
    changed = said_as_results(session, item, {"intent": "music", "slots": [[0, 1, "time"]]})
    server.ask("PATCH", f"/api/annotations/{annotation}/", json={"result": changed})
    assert sync.pull().corrected == [item]
    assert not sync.pull().anything
    assert session.ledger.view()[0].labels == {"intent": "music", "slots": [[0, 1, "time"]]}
    assert CORRECTION in {entry.role for entry in session.ledger.answers(item)}


def test_an_annotation_that_is_deleted_later_stays_in_the_ledger(small, server):
    session, sync, project = small
    item = session.wanted()[0].id
    annotation = server.annotate(server.task(project, item), said_as_results(session, item, right(item)))
    sync.pull()
    server.ask("DELETE", f"/api/annotations/{annotation}/")
    assert sync.pull().deleted == [item]
    assert not sync.pull().anything
    assert session.ledger.view().ids.tolist() == [item]


def test_how_long_it_took_is_known(small, server):
    session, _, project = small
    item = session.wanted()[0].id
    server.annotate(server.task(project, item), said_as_results(session, item, right(item)), lead_time=4.75)
    assert [said.seconds for said in annotations_in(session.corpus, server.task(project, item))] == [4.75]


# -- files -------------------------------------------------------------------------------------------------------------
def test_a_corpus_goes_there_in_a_file_and_its_export_is_read_as_the_same(tmp_path, server, studio):
    builder = CorpusBuilder(ALL)
    for number, text in enumerate(TEXTS):
        builder.add(f"u{number}", split="dev", text=text, group="g", labels=labels_for(len(find_words(text))))
    builder.add("bare", text="nobody has looked at this")
    corpus = builder.build()
    write(corpus, tmp_path / "there" / "tasks.json", "label-studio")
    config = (tmp_path / "there" / "tasks.xml").read_text()
    project = studio.create_project("files", "", config)
    tasks = json.loads((tmp_path / "there" / "tasks.json").read_text())
    assert studio.import_tasks(project, tasks) == 4
    exported = server.http.get(
        f"/api/projects/{project}/export", params={"exportType": "JSON", "download_all_tasks": "true"}
    )
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "project-1.json").write_bytes(exported.content)
    again = read(tmp_path / "back" / "project-1.json", config=str(tmp_path / "there" / "tasks.xml"))
    assert not differences(corpus, again.take(again.positions(corpus.ids.tolist())))


# -- the command line --------------------------------------------------------------------------------------------------
def test_a_campaign_is_annotated_from_its_file_to_its_end(tmp_path, server):
    make_project(tmp_path / "made")
    table = json.loads((tmp_path / "made" / "campaign.json").read_text())["campaign"]
    (tmp_path / "trial.toml").write_text(
        f"""[corpus]
source = {json.dumps(table["corpus"]["source"])}
test_items = 1
[costs]
pricing = "predicted"
[budget]
seed_items = 8
per_round = 40
rounds = 1
[learner]
name = "scikit"
estimator = "naive-bayes"
[audit]
share = 0.1
shadow = false
"""
    )
    environment = os.environ | {"BURSAR_LABEL_STUDIO_TOKEN": server.token, "OMP_NUM_THREADS": "1"}

    def bursar(*arguments):
        command = [sys.executable, "-m", "bursar", "label-studio", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    (pushed,) = bursar("push", "trial.toml", "--url", server.url, "--json")
    assert (pushed["new"], pushed["suggested"], pushed["page"]) == (
        8,
        0,
        f"{server.url}/projects/{pushed['project']}/data",
    )

    def annotate_all():
        session = AnnotationSession.open(tmp_path / "runs" / "trial")
        try:
            for task in server.tasks(pushed["project"]):
                if not task["annotations"]:
                    server.annotate(task, said_as_results(session, task["data"]["id"], right(task["data"]["id"])))
        finally:
            session.close()

    annotate_all()
    (pulled,) = bursar("pull", "trial.toml", "--json")
    assert (len(pulled["answered"]), pulled["ready"]) == (8, True)
    (second,) = bursar("push", "trial.toml", "--json")
    assert second["round"] == 1
    audited = [
        task for task in server.tasks(pushed["project"]) if task["data"]["round"] == 1 and not task["predictions"]
    ]
    assert (
        len(audited) == second["new"] - second["suggested"] > 0
    )  # what measures the model is sent without suggestions
    annotate_all()
    *_, last = bursar("pull", "trial.toml", "--watch", "--every", "0.1", "--json")
    assert last == {"ended": "all rounds are done"}


# -- its page ----------------------------------------------------------------------------------------------------------
PLACE_OF = """(word) => {
  const walker = document.createTreeWalker(document.querySelector('.lsf-richtext__container'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const at = node.data.indexOf(word);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + word.length);
    const box = range.getBoundingClientRect();
    return [box.left + 2, (box.top + box.bottom) / 2, box.right - 2];
  }
}"""


@pytest.mark.browser
def test_what_a_person_marks_with_the_mouse_is_what_comes_back(
    tmp_path, server, studio, open_run, browser, monkeypatch
):
    session = open_run(
        write_project(
            tmp_path / "run",
            {"slots": SLOTS, "intent": INTENT, "score": ALL["score"]},
            [{"text": text} for text in TEXTS],
        )
    )
    first = {"slots": {"label": [[0, 1, "time"]], "confidence": 0.5}, "intent": {"label": "alarm", "confidence": 0.5}}
    monkeypatch.setattr(session, "suggestions", lambda item: first)
    sync = Sync(session, studio)
    project = sync.push().project
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{server.url}/user/login/")
    page.fill("input[name=email]", NAME)
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url(lambda url: "login" not in url)
    for task in server.tasks(project):
        page.goto(f"{server.url}/projects/{project}/data?task={task['id']}&labeling=1")
        page.wait_for_selector(".lsf-richtext__container .htx-highlight")  # the suggestion is shown
        page.get_by_text("who & when").first.click()
        left, middle, right_end = page.evaluate(PLACE_OF, "today")
        page.mouse.move(left, middle)
        page.mouse.down()
        page.mouse.move((left + right_end) / 2, middle, steps=5)
        page.mouse.move(right_end, middle, steps=5)
        page.mouse.up()
        page.wait_for_function("document.querySelectorAll('.lsf-richtext__container .htx-highlight').length == 2")
        page.fill("input[type=number]", "3.25")
        with page.expect_response(lambda reply: "annotations" in reply.url and reply.request.method == "POST"):
            page.click("button:has-text('Submit')")
    page.close()
    pulled = sync.pull()
    assert (len(pulled.answered), pulled.problems) == (3, [])
    found = session.ledger.view()
    for at in range(len(found)):
        item = found[at]
        assert item.labels["intent"] == "alarm"
        assert item.labels["score"] == 3.25
        assert sorted((item.words[a], kind) for a, _, kind in item.labels["slots"]) == sorted(
            [(item.words[0], "time"), ("today", "who & when")]
        )
