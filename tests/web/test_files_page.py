"""The files page in a real browser: export, labelled data and import."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

from bursar.ledger import Answer
from tests.web.annotating import Served
from tests.web.small import make_project, right

pytestmark = pytest.mark.browser

REFUSED = "Failed to load resource"  # what a browser says of every refusal


@pytest.fixture
def served(tmp_path):
    server = Served(make_project(tmp_path / "project"))
    yield server
    server.stop()


@pytest.fixture
def tab(browser, served):
    """The page, with whatever goes wrong in it kept."""
    context = browser.new_context(accept_downloads=True)
    tab = context.new_page()
    tab.errors = []
    tab.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.on("console", lambda said: said.type == "error" and REFUSED not in said.text and tab.errors.append(said.text))
    tab.goto(f"{served.url}/files")
    yield tab
    assert tab.errors == []
    context.close()


def answer(served, count):
    items = [want.id for want in served.app_state.session.wanted()[:count]]
    for item in items:
        served.app_state.assignments.answer(Answer(item, right(item), "you"))
    return items


def test_what_was_annotated_is_downloaded_in_the_format_and_for_the_tasks_that_are_chosen(served, tab):
    tab.click("#export button")
    tab.locator("#notice", has_text="Nothing has been annotated yet.").wait_for()
    items = answer(served, 3)
    with tab.expect_download() as native:
        tab.click("#export button")
    lines = [json.loads(line) for line in native.value.path().read_text().splitlines()]
    assert native.value.suggested_filename == "Small-project.jsonl"
    assert {line["id"]: line["labels"] for line in lines[1:]} == {item: right(item) for item in items}
    tab.select_option("#export [name=format]", "doccano")
    tab.uncheck('#export [name=tasks][value="slots"]')
    with tab.expect_download() as classes:
        tab.click("#export button")
    lines = [json.loads(line) for line in classes.value.path().read_text().splitlines()]
    assert {line["id"]: line["label"] for line in lines} == {item: [right(item)["intent"]] for item in items}
    tab.locator("#notice", has_text="Downloaded Small-project.doccano.").wait_for()


def test_what_a_format_cannot_say_is_told_and_lost_only_when_that_is_ticked(served, tab):
    answer(served, 3)
    tab.select_option("#export [name=format]", "slots")
    tab.click("#export button")
    tab.locator("#notice.wrong", has_text="lose = ").wait_for()
    for box in tab.locator("#export [name=lose]").all():
        box.check()
    tab.click("#export button")
    tab.locator("#notice.good", has_text="Downloaded").wait_for()


def test_labelled_data_is_downloaded_with_the_errors_to_expect(served, tab):
    tab.click("#labelled button")
    tab.locator("#notice.wrong", has_text="no model yet").wait_for(timeout=120_000)
    answer(served, 8)
    served.train()
    assert tab.locator("#labelled [name=lose]").first.is_hidden()  # a table can hold everything
    tab.fill('#labelled [data-task="intent"]', "0.9")
    with tab.expect_download(timeout=120_000) as excel:
        tab.click("#labelled button")
    frame = pd.read_excel(io.BytesIO(excel.value.path().read_bytes()))
    assert excel.value.suggested_filename == "Small-project-labelled.xlsx"
    assert len(frame) == 46
    assert (frame["intent by"] == "person you").sum() == 8
    assert (frame["intent sure"][frame["intent by"] == "model"] >= 0.9).all()
    tab.locator("#labelled-found li", has_text="intent: accept the model above 0.9").wait_for()
    tab.locator("#labelled-found li", has_text="errors").first.wait_for()
    tab.select_option("#labelled [name=format]", "conll")
    assert tab.locator("#labelled [name=lose]").first.is_visible()
    tab.uncheck('#labelled [name=tasks][value="intent"]')
    for box in tab.locator("#labelled [name=lose]").all():
        box.check()
    with tab.expect_download(timeout=120_000) as spans:
        tab.click("#labelled button")
    assert spans.value.suggested_filename == "Small-project-labelled.conll.zip"
    tab.reload()
    tab.locator("#labelled-found li", has_text="slots: all").wait_for()
    with tab.expect_download() as again:
        tab.click("#labelled-found a")
    assert again.value.path().read_bytes() == spans.value.path().read_bytes()


def test_a_file_of_answers_is_brought_in_once_and_a_wrong_one_leaves_nothing(served, tab, tmp_path):
    asked = [want.id for want in served.app_state.session.wanted()][:4]
    first = {"bursar": 1, "tasks": served_tasks(served)}
    made = [{"id": item, "text": served.app_state.session.item(item)["text"], "labels": right(item)} for item in asked]
    file = tmp_path / "Bob’s answers (1).jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [first, *made[:3], made[3] | {"labels": {}}]))
    tab.set_input_files("#import [name=file]", file)
    tab.fill("#import [name=annotator]", "Bob")
    tab.click("#import button")
    tab.locator("#notice.good", has_text="Imported 3 answers, for €").wait_for()
    assert "1 without a label for every requested task" in tab.locator("#notice").inner_text()
    assert {answer.annotator for answer in served.app_state.session.ledger.answers()} == {"Bob"}
    tab.click("#import button")
    tab.locator("#notice", has_text="No answers were imported.").wait_for()
    file.write_text(json.dumps(first) + "\n" + json.dumps(made[3] | {"text": "a text of five other words"}) + "\n")
    tab.set_input_files("#import [name=file]", file)
    tab.click("#import button")
    tab.locator("#notice.wrong", has_text="has a different text in this file").wait_for()
    assert served.get("/api/state")["answered"] == 3


def served_tasks(served):
    return {name: task.describe() for name, task in served.app_state.session.corpus.schema.items()}
