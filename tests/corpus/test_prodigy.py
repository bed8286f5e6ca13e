"""Prodigy's lines: as db-out writes them, answers of all three kinds, and what people do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import DataError

HASHES = {"_input_hash": 1, "_task_hash": 2, "_view_id": "ner_manual", "_session_id": None}
SPAN = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
OTHER = {"start": 9, "end": 11, "token_start": 3, "token_end": 3, "label": "PER"}
TOKENS = [
    {"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": "met", "start": 4, "end": 7, "id": 1, "ws": True},
    {"text": " ", "start": 8, "end": 9, "id": 2, "ws": False},
    {"text": "Bo", "start": 9, "end": 11, "id": 3, "ws": False},
]
TEXT = "Ada met  Bo"
OPTIONS = [{"id": "meeting", "text": "A meeting"}, {"id": "parting", "text": "A parting"}]


def put(folder: Path, *records: Any) -> Path:
    path = folder / "annotations.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("record", "labels"),
    [
        ({"spans": [SPAN], "tokens": TOKENS}, {"entities": [[0, 1, "PER"]]}),
        ({"spans": [SPAN]}, {"entities": [[0, 1, "PER"]]}),
        ({"options": OPTIONS, "accept": ["meeting"]}, {"label": "meeting"}),
        ({"options": OPTIONS, "accept": []}, {}),
        ({"label": "meeting"}, {"label": "meeting"}),
        (
            {
                "spans": [SPAN, OTHER],
                "relations": [{"head": 0, "child": 3, "head_span": SPAN, "child_span": OTHER, "label": "met"}],
            },
            {"entities": [[0, 1, "PER"], [2, 3, "PER"]], "relations": [[[0, 1, "PER"], [2, 3, "PER"], "met"]]},
        ),
    ],
)
def test_every_view_is_guessed_and_read(tmp_path: Path, record: Any, labels: Any) -> None:
    path = put(tmp_path, {"text": TEXT, "answer": "accept", "meta": {"source": "web"}} | HASHES | record)
    assert guess_format(path).name == "prodigy"
    corpus = read(path)
    assert (corpus[0].id, corpus[0].words, corpus[0].labels) == ("line-000001", ["Ada", "met", "Bo"], labels)


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_what_was_not_accepted_has_no_labels(tmp_path: Path, answer: str) -> None:
    assert read(put(tmp_path, {"text": TEXT, "spans": [SPAN], "label": "meeting", "answer": answer}))[0].labels == {}


def test_an_accepted_line_without_marks_says_that_there_are_none(tmp_path: Path) -> None:
    lines = [{"text": TEXT, "spans": [SPAN], "answer": "accept"}, {"text": "x", "answer": "accept"}, {"text": "y"}]
    corpus = read(put(tmp_path, *lines))
    assert [corpus[at].labels for at in range(3)] == [{"entities": [[0, 1, "PER"]]}, {"entities": []}, {}]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": None, "spans": []}, "needs a text"),
        ({"answer": "yes"}, "the answer must be"),
        ({"meta": {"id": "u2", "split": 7}}, "must be a string, not"),
        ({"tokens": 7}, "tokens must be"),
        ({"tokens": [{"text": "Ada"}]}, "words must be"),
        ({"tokens": [{"text": "Ada", "start": 0, "end": 99}]}, "words must be"),
        ({"spans": 7}, "spans must be a list"),
        ({"spans": [7]}, "a span must have"),
        ({"spans": [SPAN | {"end": 2}]}, "cuts the word 'Ada'"),
        ({"spans": [SPAN | {"label": None}]}, "a label must be"),
        ({"accept": ["meeting", "parting"]}, "2 are accepted"),
        ({"accept": {"meeting": 1}}, "must be a list of options"),
        ({"relations": 7}, "relations must be a list"),
        ({"relations": [{"head": 0, "child": 2, "label": "x"}]}, "must have head_span"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_item(tmp_path: Path, record: Any, words: str) -> None:
    path = put(tmp_path, {"text": TEXT, "spans": [SPAN]}, {"text": TEXT, "meta": {"id": "u2"}} | record)
    with pytest.raises(DataError, match=words) as caught:
        read(path)
    assert (caught.value.path, caught.value.line, caught.value.item) == (str(path), 2, "u2")


def test_half_words_are_widened_when_that_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, {"text": TEXT, "spans": [SPAN | {"start": 1}]})
    assert read(path, cut="widen")[0].labels == {"entities": [[0, 1, "PER"]]}


def test_what_has_all_labels_is_accepted_and_the_rest_is_for_prodigy_to_ask_about(tmp_path: Path) -> None:
    builder = CorpusBuilder({"label": {"kind": "classification"}, "entities": {"kind": "tagging"}})
    builder.add("u1", text="at seven", group="g", labels={"label": "alarm", "entities": [[1, 2, "time"]]})
    builder.add("u2", text="now", labels={"entities": []})
    write(builder.build(), tmp_path / "out.jsonl", "prodigy")
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {
        "text": "at seven",
        "tokens": [
            {"text": "at", "start": 0, "end": 2, "id": 0, "ws": True},
            {"text": "seven", "start": 3, "end": 8, "id": 1, "ws": False},
        ],
        "meta": {"id": "u1", "split": "train", "group": "g"},
        "options": [{"id": "alarm", "text": "alarm"}],
        "accept": ["alarm"],
        "spans": [{"start": 3, "end": 8, "token_start": 1, "token_end": 1, "label": "time"}],
        "answer": "accept",
    }
    assert (second["spans"], "answer" in second, "accept" in second) == ([], False, False)


def test_a_word_of_blanks_is_refused(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}})
    builder.add("u1", text="a  b", words=[(0, 1), (1, 2)])
    with pytest.raises(DataError, match="word of blanks"):
        write(builder.build(), tmp_path / "out.jsonl", "prodigy")
