"""From a spreadsheet to a labelled spreadsheet: `bursar new`, three rounds in a browser, and the file that it gives."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

from bursar.predictions.predictions import readable_cells
from bursar.simulation import assistant_corpus
from tests.web.annotating import Hand, Killable
from tests.web.test_whole_campaign import TASKS, Annotator

pytestmark = pytest.mark.browser

ROUNDS = 3


@pytest.fixture
def corpus():
    return assistant_corpus(200, seed=4).with_tasks(list(TASKS))


@pytest.fixture
def sheet(corpus, tmp_path):
    """The texts with two columns of their own."""
    texts = [item.text for item in corpus]
    columns = {"Ticket": [f"T-{n:03d}" for n in range(len(texts))], "Body": texts, "Cost": [n / 4 for n in range(200)]}
    frame = pd.DataFrame(columns)
    frame.to_excel(tmp_path / "m.xlsx", index=False)
    return frame


@pytest.fixture
def served(corpus, sheet, tmp_path):
    kinds = {"intent": "classification", "slots": "tagging"}
    tasks = [f"{name}:{kind}:{','.join(corpus.schema[name].labels)}" for name, kind in kinds.items()]
    prices = [f"--price={price}" for price in ("intent.per_item=0.05", "slots.per_span=0.05", "reading.per_word=0.01")]
    money = ["--budget=5", f"--rounds={ROUNDS}", "--seed-items=8", "--hourly=36", *prices]
    command = [sys.executable, "-m", "bursar", "new", str(tmp_path / "project"), "--from", str(tmp_path / "m.xlsx")]
    command += [*(f"--tasks={task}" for task in tasks), *money, "--learner=scikit", "--strategy=MT-AVG", "--yes"]
    subprocess.run(command, check=True, capture_output=True)
    server = Killable(tmp_path / "project")
    yield server
    server.kill()


def test_a_workbook_comes_back_with_the_labels_of_people_and_of_the_model(served, browser, corpus, sheet):
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 800})
    page = Hand(context.new_page()).opens(served.url)
    person, rounds = Annotator(page, corpus), []
    while True:
        page.until(lambda: page.count("#workspace:not([hidden]) .task.active") or "ended" in page.text("#waiting"))
        if page.count("#workspace:not([hidden])") == 0:
            break
        rounds.append(page.text("#round"))
        person.answer_one()
    assert len(set(rounds)) == ROUNDS + 1  # with the seed items
    page.tab.goto(f"{served.url}/files")
    with page.tab.expect_download() as labelled:
        page.click("#labelled button")
    found = pd.read_excel(labelled.value.path())
    assert page.errors == []
    context.close()
    pd.testing.assert_frame_equal(found[list(sheet)], sheet)
    for task in TASKS:
        same = found[task].fillna("") == readable_cells(corpus, task)
        by_person = found[f"{task} by"].str.startswith("person")
        assert by_person.sum() == len(rounds)
        assert same[by_person].all()
        assert (found[f"{task} by"][~by_person] == "model").all()
        assert same[~by_person].mean() > 1.5 / len(corpus.schema[task].labels)  # it learned
