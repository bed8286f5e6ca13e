"""doccano's lines: the four kinds of project, as its export writes them, and what people do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import DataError

ENTITIES = [
    {"id": 4, "label": "PER", "start_offset": 0, "end_offset": 3},
    {"id": 9, "label": "PER", "start_offset": 8, "end_offset": 10},
]
LINK = {"id": 1, "from_id": 9, "to_id": 4, "type": "met-by"}


def put(folder: Path, *records: Any, name: str = "all.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("record", "labels"),
    [
        ({"label": ["alarm"]}, {"label": "alarm"}),
        ({"labels": ["alarm"]}, {"label": "alarm"}),
        ({"label": [[0, 3, "PER"]]}, {"entities": [[0, 1, "PER"]]}),
        ({"labels": [[0, 3, "PER"], [0, 7, "X"]]}, {"entities": [[0, 1, "PER"], [0, 2, "X"]]}),
        ({"cats": ["meeting"], "entities": [[8, 10, "PER"]]}, {"label": "meeting", "entities": [[2, 3, "PER"]]}),
        ({"cats": [], "entities": []}, {"entities": []}),
        (
            {"entities": ENTITIES, "relations": [LINK]},
            {
                "entities": [[0, 1, "PER"], [2, 3, "PER"]],
                "relations": [[[2, 3, "PER"], [0, 1, "PER"], "met-by"]],
            },
        ),
    ],
)
def test_every_kind_of_project_is_guessed_and_read(tmp_path: Path, record: Any, labels: Any) -> None:
    path = put(tmp_path, {"id": 7, "text": "Ada met Bo", "Comments": [], "source": "web"} | record)
    assert guess_format(path).name == "doccano"
    corpus = read(path)
    assert (corpus[0].id, corpus[0].labels) == ("7", labels)


def test_an_empty_list_is_one_of_spans_where_the_others_are(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, {"text": "a", "label": []}, {"text": "Ada", "label": [[0, 3, "PER"]]}))
    assert [corpus[at].labels for at in range(2)] == [{"entities": []}, {"entities": [[0, 1, "PER"]]}]


def test_an_empty_list_of_classes_says_nothing(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, {"text": "a", "label": []}, {"text": "b", "label": ["x"]}))
    assert [corpus[at].labels for at in range(2)] == [{}, {"label": "x"}]


def test_where_nobody_has_labelled_anything_the_schema_says_what_it_would_be(tmp_path: Path) -> None:
    path = put(tmp_path, {"text": "a", "label": []})
    assert read(path)[0].labels == {}
    assert read(path, schema={"entities": {"kind": "tagging"}})[0].labels == {"entities": []}


def test_files_of_a_folder_are_splits_and_lines_without_ids_are_named_by_place(tmp_path: Path) -> None:
    put(tmp_path, {"text": "a", "label": ["x"]}, name="train.jsonl")
    put(tmp_path, {"text": "b", "label": ["y"]}, name="valid.jsonl")
    corpus = read(tmp_path)
    assert [(corpus[at].id, corpus[at].split) for at in range(2)] == [
        ("train-000001", "train"),
        ("valid-000001", "dev"),
    ]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": 7, "label": ["x"]}, "needs a text"),
        ({"label": ["x"]}, "needs a text"),
        ({"id": True, "text": "a"}, "id must be"),
        ({"text": "a", "split": 7}, "must be a string, not"),
        ({"text": "a", "words": [[0, 2]]}, "words must be"),
        ({"text": "a", "label": ["x", "y"]}, "one class, and this one has 2"),
        ({"text": "a", "label": [7]}, "classes must be"),
        ({"text": "a", "label": {"x": 1}}, "classes must be"),
        ({"text": "a", "entities": 7}, "spans must be a list"),
        ({"text": "a", "entities": [[0, 2, "x"]]}, "within the 1 characters"),
        ({"text": "ab", "entities": [[0, 1, "x"]]}, "cuts the word 'ab'"),
        ({"text": "a", "entities": [[0, 1]]}, "a span must be"),
        ({"text": "a", "entities": [{"start_offset": 0}]}, "a span must be"),
        ({"text": "a", "relations": []}, "relations without entities"),
        ({"text": "Ada met Bo", "entities": ENTITIES, "relations": [LINK | {"to_id": 5}]}, "no entity's id"),
        ({"text": "Ada met Bo", "entities": ENTITIES, "relations": [LINK | {"to_id": [5]}]}, "a relation must"),
        ({"text": "Ada met Bo", "entities": ENTITIES, "relations": {}}, "a relation must"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_item(tmp_path: Path, record: Any, words: str) -> None:
    path = put(tmp_path, {"id": "u1", "text": "fine", "label": ["x"]}, {"id": "u2"} | record)
    with pytest.raises(DataError, match=words) as caught:
        read(path, "doccano")
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert caught.value.item == ("u2" if "id" not in record else None)


def test_half_words_are_widened_when_that_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, {"text": "seven", "entities": [[1, 4, "time"]]})
    assert read(path, cut="widen")[0].labels == {"entities": [[0, 1, "time"]]}


def test_what_is_written_is_what_a_project_imports(tmp_path: Path) -> None:
    builder = CorpusBuilder({"label": {"kind": "classification"}, "entities": {"kind": "tagging"}})
    builder.add("u1", text="😀 at seven", labels={"label": "alarm", "entities": [[2, 3, "time"]]})
    write(builder.build(), tmp_path / "out.jsonl", "doccano")
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) == {
        "id": "u1",
        "split": "train",
        "text": "😀 at seven",
        "cats": ["alarm"],
        "entities": [[5, 10, "time"]],
    }


@pytest.mark.parametrize(
    ("schema", "labels", "words"),
    [
        ({"label": "classification", "entities": "tagging", "relations": "relations"}, {}, "at once"),
        ({"relations": "relations"}, {}, "needs a task 'entities'"),
        ({"intent": "classification"}, {}, "no place for task 'intent'"),
        (
            {"entities": "tagging", "relations": "relations"},
            {"entities": [], "relations": [[[0, 1, "x"], [0, 1, "x"], "y"]]},
            "no entity",
        ),
    ],
)
def test_what_no_project_has_room_for_is_refused(tmp_path: Path, schema: Any, labels: Any, words: str) -> None:
    builder = CorpusBuilder({name: {"kind": kind} for name, kind in schema.items()})
    builder.add("u1", text="one", labels=labels)
    with pytest.raises(DataError, match=words):
        write(builder.build(), tmp_path / "out.jsonl", "doccano")
    assert not [*tmp_path.iterdir()]
