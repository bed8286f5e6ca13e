"""``bursar predict``: every item of a project with its labels, by the newest model where there is no other."""

from __future__ import annotations

import json
import shutil
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

from bursar.annotation.labelled import OWN_MODELS
from bursar.annotation.round_worker import next_round
from bursar.annotation.session import AnnotationSession
from bursar.corpus import read
from bursar.ledger import Answer
from bursar.predictions import load_model
from tests.web.small import make_project, right


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Bob answered the first round and one item of the second, for which a model was trained."""
    folder = make_project(tmp_path_factory.mktemp("trained") / "project", audit={"share": 0.3})
    with closing(AnnotationSession.open(folder)) as session:
        for want in session.wanted():
            session.recorder.record(Answer(want.id, {task: right(want.id)[task] for task in want.tasks}, "Bob"))
        next_round(folder, lambda event: None)
        session.refresh()
        want = session.wanted()[0]
        session.recorder.record(Answer(want.id, {task: right(want.id)[task] for task in want.tasks}, "Eve"))
    return folder


@pytest.fixture
def project(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "project")


def test_a_spreadsheet_has_every_item_and_says_who_labelled_it(bursar, project):
    code, out, err = bursar("predict", project, "--out", "labelled.xlsx")
    assert code == 0, err
    assert "Wrote 46 items to labelled.xlsx" in out
    frame = pd.read_excel("labelled.xlsx")
    assert [*frame.columns[:3]] == ["id", "split", "text"]
    by = frame["intent by"].value_counts().to_dict()
    assert by == {"person Bob": 8, "person Eve": 1, "given": 6, "model": 31}
    people = frame[frame["intent by"].str.startswith("person")]
    assert people["intent"].tolist() == [right(item)["intent"] for item in people["id"]]
    assert frame["intent sure"].notna().tolist() == (frame["intent by"] == "model").tolist()
    assert frame["intent"].notna().all()


def test_labels_below_a_threshold_are_left_out_and_the_summary_counts_them(bursar, project):
    code, out, _ = bursar("predict", project, "--out", "l.csv", "--threshold", "intent=0.9", "--json")
    assert code == 0
    found, frame = json.loads(out), pd.read_csv("l.csv")
    weak = frame["intent by"] == "below threshold"
    assert frame["intent"].isna().tolist() == weak.tolist()
    assert (frame["intent sure"][weak] < 0.9).all()
    about = found["accepted"]["intent"]
    assert (about["items"], about["accepted"]) == (31, 31 - weak.sum())
    assert about["source"] == "development items"
    assert found["accepted"]["slots"]["threshold"] == 0
    assert found["by"]["intent"] == {"given": 6, "model": 31, "person Bob": 8, "person Eve": 1}


def test_without_a_file_only_the_summary_is_shown(bursar, project):
    code, out, _ = bursar("predict", project)
    assert code == 0
    assert "intent: all: 31 labels of the model" in out
    assert not [*project.parent.glob("*.xlsx")]


def test_other_formats_hold_the_labels_as_those_of_the_corpus(bursar, project):
    code, _, err = bursar("predict", project, "--out", "l.jsonl", "--format", "jsonl")
    assert code == 0, err
    assert all(column.present.all() for column in read("l.jsonl").labels.values())
    code, _, err = bursar("predict", project, "--out", "spans", "--format", "conll", "--tasks", "slots")
    assert code == 2
    assert "lose = " in err
    code, _, err = bursar("predict", project, "--out", "s", "-f", "conll", "--tasks", "slots", "--lose", "spacing,ids")
    assert code == 0, err


def test_a_model_that_is_not_saved_any_more_is_trained_again_beside_the_project(bursar, project):
    first = bursar("predict", project, "--out", "a.csv")
    assert first[0] == 0
    shutil.rmtree(project / "models")
    code, out, err = bursar("predict", project, "--out", "b.csv")
    assert code == 0, err
    assert not (project / "models").exists()
    assert len([*(project / OWN_MODELS).glob("*/fit.json")]) == 1
    assert "trained on 9 items" in out  # the answer that came since is known to it
    assert pd.read_csv("b.csv")["intent"].notna().all()
    code, _, err = bursar("check", project)
    assert code == 0, err


def test_without_a_model_it_says_what_to_do(bursar, tmp_path):
    folder = make_project(tmp_path / "new")
    with closing(AnnotationSession.open(folder)):
        pass
    code, _, err = bursar("predict", folder, "--out", "l.xlsx")
    assert code == 2
    assert "has no model yet: its first round is not annotated (8 items are open)" in err
    assert f"bursar serve {folder}" in err
    assert not (tmp_path / "l.xlsx").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threshold", "intent=2"], "is not a threshold"),
        (["--threshold", "mood=0.5"], "there is no task 'mood'"),
        (["--out", "l.doc"], "no known kind of table"),
        (["--out", "l", "--format", "klingon"], "klingon"),
        (["--format", "conll"], "--out FILE"),
        (["--tasks", "mood"], "there is no task 'mood'"),
    ],
)
def test_what_makes_no_sense_is_refused(bursar, project, arguments, said):
    code, _, err = bursar("predict", project, *arguments)
    assert code == 2
    assert said in err


def test_the_ledger_and_the_models_stay_as_they_are(bursar, project):
    def files():
        kept = [*project.glob("models/**/*"), *project.glob("ledger*")]
        return {path: path.read_bytes() for path in kept if path.is_file() and path.suffix not in (".sqlite-shm",)}

    before = files()
    assert bursar("predict", project, "--out", "l.csv")[0] == 0
    assert files() == before


# -- export-model ------------------------------------------------------------------------------------------------------
def test_the_newest_model_is_exported_and_labels_as_the_project_does(bursar, project):
    code, out, err = bursar("export-model", project, "model")
    assert code == 0, err
    assert "README.md" in out
    assert bursar("predict", project, "--out", "l.csv")[0] == 0
    frame = pd.read_csv("l.csv")
    found = load_model("model").predict(frame["text"].tolist()).to_frame()
    own = frame["intent by"] == "model"
    assert found["intent"][own].tolist() == frame["intent"][own].tolist()
    assert np.allclose(found["intent sure"][own], frame["intent sure"][own])
    code, _, err = bursar("export-model", project, "model")
    assert code == 2
    assert "already exists" in err
