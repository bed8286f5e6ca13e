"""Argilla's folders and records: questions of the kinds we know, several people, and what people do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import ConfigError, DataError

TEXT = "😀 at seven"
LABEL = {"value": "alarm", "user_id": "u"}
SPANS = {"value": [{"start": 5, "end": 10, "label": "time"}], "user_id": "u"}
QUESTIONS = {
    "intent": {"type": "label_selection", "options": [{"value": "alarm", "text": "An alarm"}, {"value": "music"}]},
    "slots": {"type": "span", "field": "prompt", "options": [{"value": "time"}]},
    "stars": {"type": "rating", "options": [{"value": 1}, {"value": 5}]},
}


def record(id: str = "r1", responses: Any = None, **more: Any) -> dict[str, Any]:
    about = {"metadata": {}, "vectors": {}, "status": "completed", "_server_id": "x"}
    given = {"intent": [LABEL]} if responses is None else responses
    suggestions = {"intent": {"value": "music", "score": 0.9, "agent": "m"}}
    return {"id": id, "fields": {"text": TEXT}, "suggestions": suggestions, "responses": given} | about | more


def put(folder: Path, *records: Any, questions: Any = None, fields: Any = ("text",)) -> Path:
    (folder / "records.json").write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]", encoding="utf-8")
    if questions is not None:
        (folder / ".argilla").mkdir()
        settings = {
            "guidelines": None,
            "allow_extra_metadata": False,
            "fields": [{"name": name, "required": True, "settings": {"type": "text"}} for name in fields],
            "questions": [{"name": name, "settings": about} for name, about in questions.items()],
        }
        (folder / ".argilla" / "settings.json").write_text(json.dumps(settings))
        (folder / ".argilla" / "dataset.json").write_text(json.dumps({"name": "mine"}))
    return folder


def test_a_dataset_is_guessed_and_read_by_its_settings(tmp_path: Path) -> None:
    responses = {"intent": [LABEL], "slots": [SPANS], "stars": [{"value": 4, "user_id": "u"}]}
    put(tmp_path, record(responses=responses, fields={"prompt": TEXT}), questions=QUESTIONS, fields=("prompt",))
    assert guess_format(tmp_path).name == "argilla"
    corpus = read(tmp_path)
    assert corpus[0].labels == {"intent": "alarm", "slots": [[2, 3, "time"]], "stars": 4.0}
    assert corpus.schema["intent"].labels == ("alarm", "music")


def test_records_alone_are_told_by_their_look(tmp_path: Path) -> None:
    responses = {
        "intent": [LABEL],
        "slots": [SPANS],
        "stars": [{"value": 4}],
        "tags": [{"value": ["one"]}],
        "none": [{"value": []}],
    }
    corpus = read(put(tmp_path, record(responses=responses)) / "records.json")
    assert corpus[0].labels == {"intent": "alarm", "slots": [[2, 3, "time"]], "stars": 4.0, "tags": "one"}


def test_suggestions_and_answers_that_nobody_gave_are_no_labels(tmp_path: Path) -> None:
    corpus = read(
        put(
            tmp_path,
            record("a"),
            record("b", {}),
            record("c", {"intent": []}),
            record("d", {"intent": [{"value": None}]}),
        )
    )
    assert [corpus[at].labels for at in range(4)] == [{"intent": "alarm"}, {}, {}, {}]


def test_responses_that_disagree_are_refused_unless_it_is_said_which_one_counts(tmp_path: Path) -> None:
    put(tmp_path, record("a", {"intent": [LABEL, LABEL]}), record("b", {"intent": [LABEL, {"value": "music"}]}))
    with pytest.raises(DataError, match="two responses to 'intent' disagree") as caught:
        read(tmp_path)
    assert (caught.value.line, caught.value.item) == (3, "b")
    assert read(tmp_path, several="first")[1].labels == {"intent": "alarm"}
    assert read(tmp_path, several="last")[1].labels == {"intent": "music"}
    with pytest.raises(ConfigError, match="several"):
        read(tmp_path, several="both")


def test_questions_of_other_kinds_are_skipped_by_name(tmp_path: Path) -> None:
    put(tmp_path, record(responses={"why": [{"value": "because"}]}), questions={"why": {"type": "text"}})
    with pytest.raises(DataError, match=r"question 'why' is of type 'text'.*Fix: skip = why"):
        read(tmp_path)
    assert read(tmp_path, skip="why")[0].labels == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fields": {"other": "x"}}, r"no text field 'text'.*one of: other"),
        ({"fields": 7}, "must be objects"),
        ({"fields": {"text": "x", "pair": 7}}, "pair must be a string"),
        ({"metadata": {"words": "0-99"}}, "words must be"),
        ({"metadata": {"words": [1]}}, "words must be"),
        ({"responses": {"intent": 7}}, "must be a list of objects"),
        ({"responses": {"intent": [7]}}, "must be a list of objects"),
        ({"responses": {"intent": [{"value": ["a", "b"]}]}}, "has 2 here"),
        ({"responses": {"slots": [{"value": [7]}]}}, "a span of 'slots' must have"),
        ({"responses": {"slots": [{"value": [{"start": 6, "end": 10, "label": "time"}]}]}}, "cuts the word 'seven'"),
        ({"responses": {"rank": [{"value": {"a": 1}}]}}, "no label of a known kind.*skip = rank"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_item(tmp_path: Path, change: Any, words: str) -> None:
    put(tmp_path, record("a", {"intent": [LABEL], "slots": [SPANS]}), record("b") | change)
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path)
    assert (caught.value.path, caught.value.line, caught.value.item) == (str(tmp_path / "records.json"), 3, "b")


def test_settings_that_are_none_are_refused_with_their_file(tmp_path: Path) -> None:
    put(tmp_path, record(), questions={})
    settings = tmp_path / ".argilla" / "settings.json"
    for text in (
        "",
        "[]",
        "{}",
        '{"questions": [], "fields": [7]}',
        '{"questions": [{"name": "q", "settings": {"type": "span", "options": [{}]}}], "fields": []}',
    ):
        settings.write_text(text)
        with pytest.raises(DataError) as caught:
            read(tmp_path)
        assert caught.value.path == str(settings)


def test_what_is_written_is_what_from_disk_reads(tmp_path: Path) -> None:
    builder = CorpusBuilder(
        {"intent": {"kind": "classification"}, "stars": {"kind": "regression", "low": 1, "high": 3}}
    )
    builder.add("u1", text=TEXT, group="g", labels={"intent": "alarm", "stars": 2})
    write(builder.build(), tmp_path / "mine", "argilla", user="me")
    (found,) = json.loads((tmp_path / "mine" / "records.json").read_text(encoding="utf-8"))
    assert found == {
        "id": "u1",
        "fields": {"text": TEXT},
        "metadata": {"split": "train", "group": "g"},
        "responses": {
            "intent": [{"value": "alarm", "user_id": "me"}],
            "stars": [{"value": 2, "user_id": "me"}],
        },
        "suggestions": {},
    }
    settings = json.loads((tmp_path / "mine" / ".argilla" / "settings.json").read_text())
    assert [question["settings"]["type"] for question in settings["questions"]] == ["label_selection", "rating"]
    assert [option["value"] for option in settings["questions"][1]["settings"]["options"]] == [1, 2, 3]
    assert json.loads((tmp_path / "mine" / ".argilla" / "dataset.json").read_text())["name"] == "mine"


@pytest.mark.parametrize(
    ("name", "task", "label", "words"),
    [
        ("Intent", {"kind": "classification"}, "x", "no question called 'Intent'"),
        ("text", {"kind": "classification"}, "x", "no question called 'text'"),
        ("score", {"kind": "regression", "low": 0, "high": 0.5}, 0.5, "whole numbers from 0 to 10"),
        ("score", {"kind": "regression", "low": 0, "high": 11}, 1, "whole numbers from 0 to 10"),
        ("score", {"kind": "regression", "low": 0, "high": 5}, 0.5, "whole numbers, not by 0.5"),
        ("pos", {"kind": "tagging", "every_word": True}, ["N"], "no question for task 'pos'"),
        ("tree", {"kind": "parsing"}, [[0, "root"]], "no question for task 'tree'"),
    ],
)
def test_what_no_question_asks_is_refused(tmp_path: Path, name: str, task: Any, label: Any, words: str) -> None:
    builder = CorpusBuilder({name: task})
    builder.add("u1", text="one", labels={name: label})
    with pytest.raises(DataError, match=words):
        write(builder.build(), tmp_path / "out", "argilla")
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
