"""Predictions of every kind of task: the labels of people, then those that came, then the model's; and as tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from bursar.corpus import CorpusBuilder, Labels, read
from bursar.corpus.formats.table_files import write_table
from bursar.errors import ConfigError, DataError
from bursar.learners import learner as contract
from bursar.learners import make_learner
from bursar.predictions import Predictions, held_out
from bursar.predictions.predictions import IN_ONE_CELL
from bursar.simulation import assistant_corpus
from tests.tiny import WordCounts, tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(120, seed=3)  # five tasks, one of every kind


@pytest.fixture(scope="module")
def learner(corpus, tmp_path_factory):
    options = {"encoder": str(tiny_encoder(tmp_path_factory.mktemp("encoder"))), "epochs": 2, "learning_rate": 1e-2}
    made = make_learner("transformer", corpus.schema, options)
    made.fit(corpus.take(np.arange(80)))
    return made


@pytest.fixture(scope="module")
def found(learner, corpus):
    """Items 0 to 9 came with a label for every task, 10 to 19 for intents only, which Anna gave."""
    labels = {}
    for name, column in corpus.labels.items():
        present = np.arange(len(corpus)) < (20 if name == "intent" else 10)
        source = np.where(present, np.arange(len(corpus)), len(corpus))
        labels[name] = Labels.concatenate([column, Labels.none(1, corpus.schema[name])]).take(source)
    people = {(corpus.ids[at], "intent"): "person Anna" for at in range(10, 20)}
    return Predictions.of(learner, replace(corpus, labels=labels), people=people)


def test_every_item_has_a_valid_label_for_every_task(found, corpus):
    assert len(found) == len(corpus)
    assert found.tasks == list(corpus.schema)
    for prediction in found:
        words = len(corpus[int(corpus.positions([prediction.id])[0])].words)
        for name, task in corpus.schema.items():
            assert task.value(task.encode(prediction.labels[name], words)) == prediction.labels[name]


def test_labels_that_are_known_are_kept_and_say_whose_they_are(found, corpus):
    for at in range(10):
        assert found[at].labels == corpus[at].labels
        assert set(found[at].by.values()) == {"given"}
        assert set(found[at].sure.values()) == {None}
    for at in range(10, 20):
        assert found[at].labels["intent"] == corpus[at].labels["intent"]
        assert found[at].by == {name: "person Anna" if name == "intent" else "model" for name in corpus.schema}
        assert found[at].sure["intent"] is None
    assert found.counts()["intent"] == {"given": 10, "person Anna": 10, "model": 100}
    assert found.counts()["slots"] == {"given": 10, "model": 110}


def test_the_model_is_as_sure_as_its_suggestions_and_its_labels_are_those_of_predict(found, learner, corpus):
    rest = corpus.take(np.arange(20, len(corpus))).unlabelled()
    for name, rows in learner.predict(rest).items():
        assert found.corpus.labels[name].rows.take(np.arange(20, len(corpus))).equals(rows)
        sure = found.sure[name][20:]
        assert ((sure >= 0) & (sure <= 1)).all()


def test_items_are_predicted_in_chunks_with_the_same_result(found, learner, corpus, monkeypatch):
    monkeypatch.setattr(contract, "ITEMS_PER_CHUNK", 7)
    again = Predictions.of(learner, corpus.unlabelled())
    for name in corpus.schema:
        some = np.arange(20, len(corpus))
        assert again.corpus.labels[name].rows.take(some).equals(found.corpus.labels[name].rows.take(some))
        assert np.array_equal(again.sure[name][some], found.sure[name][some])


def test_below_a_threshold_only_labels_of_the_model_are_left_out(found, corpus):
    middle = float(np.nanmedian(found.sure["slots"]))
    above = found.above({"slots": middle})
    weak = found.sure["slots"] < middle
    assert weak.any()
    assert np.array_equal(above.corpus.labels["slots"].present, ~weak)
    assert above.counts()["slots"]["below threshold"] == weak.sum()
    assert above.counts()["intent"] == found.counts()["intent"]
    about = next(a for a in found.accepted({"slots": middle}) if a.task == "slots")
    assert (about.items, about.accepted) == (110, 110 - weak.sum())
    with pytest.raises(ConfigError, match="no task 'mood'"):
        found.above({"mood": 0.5})


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx", ".parquet", ".json", ".jsonl"])
def test_a_file_says_the_same_as_the_frame(found, tmp_path, ending):
    file = tmp_path / f"labelled{ending}"
    found.write(file)
    readers = {".csv": pd.read_csv, ".xlsx": pd.read_excel, ".parquet": pd.read_parquet, ".json": pd.read_json}
    readers |= {".tsv": lambda path: pd.read_csv(path, sep="\t")}
    readers |= {".jsonl": lambda path: pd.read_json(path, lines=True)}
    theirs, ours = readers[ending](file), found.to_frame()
    flat = ending in (".csv", ".tsv", ".xlsx")
    assert [*theirs.columns] == [name for name in ours.columns if not (flat and name.endswith(" json"))]
    for name in theirs.columns:
        if name.endswith(" json"):
            said = [json.loads(cell) if isinstance(cell, str) else cell for cell in theirs[name]]
            assert said == ours[name].tolist()
        elif ours[name].dtype.kind == "f":
            assert np.allclose(theirs[name], ours[name], equal_nan=True, atol=1e-9)
        else:
            assert theirs[name].fillna("").tolist() == ours[name].fillna("").tolist()


def test_a_corpus_with_these_labels_is_written_in_any_format(found, tmp_path):
    found.write(tmp_path / "native.jsonl", "jsonl")
    again = read(tmp_path / "native.jsonl")
    for name in found.tasks:
        assert again.labels[name].rows.equals(found.corpus.labels[name].rows)
    found.with_tasks(["slots"]).write(tmp_path / "spans", "conll", lose="spacing,ids,groups")
    spans = read(tmp_path / "spans", "conll")
    assert spans.labels["entities"].rows.lengths.tolist() == found.corpus.labels["slots"].rows.lengths.tolist()
    with pytest.raises(DataError, match="conll has no place for task 'intent'"):
        found.write(tmp_path / "all", "conll", lose="spacing,ids,groups")
    with pytest.raises(ConfigError, match="no known kind of table"):
        found.write(tmp_path / "labelled.doc")


def test_structured_labels_are_readable_in_a_cell(found, corpus):
    frame = found.to_frame()
    item, cell = corpus[0], frame["slots"][0]
    parts = [f'{label}: "{item.text[item.spans[a][0] : item.spans[b - 1][1]]}"' for a, b, label in item.labels["slots"]]
    assert cell == "; ".join(parts)
    assert frame["dependencies"][0].count(";") == len(item.words) - 1
    for name, task in corpus.schema.items():
        assert (f"{name} json" in frame.columns) == (task.kind not in IN_ONE_CELL)


# -- tables that come home ---------------------------------------------------------------------------------------------
INTENTS = ["alarm", "music"]


def counts(corpus):
    learner = WordCounts(corpus.schema)
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": INTENTS}})
    builder.add("a", text="wake me", labels={"intent": "alarm"})
    builder.add("b", text="play jazz", labels={"intent": "music"})
    learner.fit(builder.build())
    return learner


@pytest.mark.parametrize("bodies", [["wake me", "play jazz", "play"], ["wake me", 42, "play"]])
def test_a_spreadsheet_comes_back_with_its_columns_in_their_order_and_the_labels_after_them(tmp_path, bodies):
    when = [datetime(2026, 5, day) for day in (1, 2, 3)]
    table = {"Received": when, "Body": bodies, "Ticket": [7, 8, 9]}
    write_table(table, tmp_path / "mails.xlsx")
    corpus = read(tmp_path / "mails.xlsx", text="Body", tasks={"intent": INTENTS})
    Predictions.of(counts(corpus), corpus).write(tmp_path / "labelled.xlsx")
    again = pd.read_excel(tmp_path / "labelled.xlsx")
    assert [*again.columns] == ["Received", "Body", "Ticket", "intent", "intent sure", "intent by"]
    assert again["Received"].tolist() == [pd.Timestamp(day) for day in when]
    assert again["Body"].tolist() == bodies
    assert again["Ticket"].tolist() == [7, 8, 9]
    assert again["intent"].tolist()[::2] == ["alarm", "music"]


def test_a_column_that_is_named_like_a_task_is_kept_as_it_was(tmp_path):
    pd.DataFrame({"text": ["wake me", "play"], "intent": ["alarm", None]}).to_csv(tmp_path / "t.csv", index=False)
    corpus = read(tmp_path / "t.csv", text="text", labels={"intent": "intent"}, tasks={"intent": INTENTS})
    frame = Predictions.of(counts(corpus), corpus).to_frame()
    assert frame["intent"].fillna("").tolist() == ["alarm", ""]
    assert frame["intent label"].tolist() == ["alarm", "music"]
    assert frame["intent label by"].tolist() == ["given", "model"]


def test_held_out_items_say_where_the_model_is_right(learner, corpus):
    rest = corpus.take(np.arange(80, 120))
    known = held_out(learner, rest)
    assert {name: len(about) for name, about in known.items()} == dict.fromkeys(corpus.schema, 40)
    score = learner.evaluate(rest)["intent"]["accuracy"]
    assert known["intent"].right.mean() == pytest.approx(score)
    for name, task in corpus.schema.items():
        gold = rest.labels[name].rows
        assert task.agrees(gold, gold).all()
