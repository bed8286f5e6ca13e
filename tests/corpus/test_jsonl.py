from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder, read, write
from bursar.errors import DataError
from tests.same import differences


def put(folder: Path, *records: Any, name: str = "items.jsonl") -> Path:
    path = folder / name
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_text_is_all_that_an_item_needs(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, {"text": "wake me at 7"}))
    item = corpus[0]
    assert (item.id, item.split, item.words) == ("line-000001", "train", ["wake", "me", "at", "7"])


def test_tasks_are_told_by_the_look_of_their_labels(tmp_path: Path) -> None:
    labels = {
        "intent": "alarm",
        "slots": [[0, 1, "x"]],
        "pos": ["A", "B"],
        "tree": [[0, "root"], [1, "obj"]],
        "links": [[[0, 1, "x"], [1, 2, "y"], "r"]],
        "score": 0.5,
    }
    corpus = read(put(tmp_path, {"text": "wake me", "labels": labels}))
    kinds = {name: task.kind for name, task in corpus.schema.items()}
    assert kinds == {
        "intent": "classification",
        "slots": "tagging",
        "pos": "tagging",
        "tree": "parsing",
        "links": "relations",
        "score": "regression",
    }
    assert corpus[0].labels == labels


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("{", "not JSON"),
        ('{"text": "a"} {"text": "b"}', "more after column"),
        ("[1]", "not a JSON object"),
        ({"text": 1}, "must be strings"),
        ({"text": "a", "id": 7}, "id must be a string"),
        ({"text": "a", "colour": "red"}, "unknown key 'colour'"),
        ({"id": "x"}, "either a text or an image"),
        ({"text": "a b", "words": [[0, 9]]}, "words must be"),
        ({"text": "a b", "words": [[2, 3], [0, 1]]}, r"\[0, 1\] is not"),
        ({"text": "a b", "words": [[0, 0]]}, "words must be"),
        ({"text": "a b", "words": [[True, 2]]}, "words must be"),
        ({"text": "a b", "words": [[0.0, 1]]}, "words must be"),
        ({"text": "a b", "words": [[0, 1, 2]]}, "words must be"),
        ({"text": "a b", "words": "ab"}, "words must be"),
        ({"text": "a", "labels": [1]}, "labels must map"),
        ({"text": "a", "labels": {"t": None}}, "no label of a known kind"),
        ({"text": "a", "labels": {"t": 10**400}}, "must be a number"),
        ({"text": "\ud800"}, "no character"),
        ({"text": "a", "labels": {"t": "\udfff"}}, "no character"),
        ({"image": [[1, 2], [3]]}, "rows of numbers"),
        ({"image": [[300]]}, "rows of numbers"),
        ({"bursar": 2}, "version"),
        ({"bursar": 1, "tasks": {"t": {"kind": "haiku"}}}, "no known kind"),
    ],
)
def test_a_line_that_is_no_item_is_refused_with_its_number(record: Any, words: str, tmp_path: Path) -> None:
    path = put(tmp_path, {"text": "fine"}, record)
    with pytest.raises(DataError, match=words) as caught:
        read(path)
    assert caught.value.line == 2


def test_an_escaped_pair_of_surrogates_is_a_character(tmp_path: Path) -> None:
    assert read(put(tmp_path, '{"text": "\\ud83d\\ude00"}'))[0].text == "😀"


def test_an_id_that_comes_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="used before") as caught:
        read(put(tmp_path, {"id": "a", "text": "x"}, {"id": "a", "text": "y"}))
    assert (caught.value.line, caught.value.item) == (2, "a")


def test_a_truncated_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = put(tmp_path, {"text": "one"}, {"text": "two"})
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.line == 2


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    for n in range(50):
        builder.add(f"u{n}", text=f"{n * n} apples")
    path = tmp_path / "items.jsonl.gz"
    write(builder.build(), path, "jsonl")
    good = path.read_bytes()
    for bad in (good[: len(good) // 2], good[:40] + b"\xff\xff\xff" + good[43:]):
        path.write_bytes(bad)
        with pytest.raises(DataError):
            read(path, "jsonl")


def test_a_folder_has_a_file_a_split(tmp_path: Path) -> None:
    put(tmp_path, {"text": "a"}, name="train.jsonl")
    put(tmp_path, {"text": "b"}, name="valid.jsonl")
    corpus = read(tmp_path)
    assert [(corpus[at].id, corpus[at].split) for at in range(2)] == [
        ("train-000001", "train"),
        ("valid-000001", "dev"),
    ]


def test_images_are_written_and_read(tmp_path: Path) -> None:
    builder = CorpusBuilder({"label": {"kind": "classification"}})
    builder.add("a", image=np.array([[0, 255]], dtype=np.uint8), labels={"label": "x"})
    corpus = builder.build()
    write(corpus, tmp_path / "images.jsonl", "jsonl")
    assert not differences(corpus, read(tmp_path / "images.jsonl"))


def test_images_that_are_not_bytes_are_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    builder.add("a")
    with pytest.raises(DataError, match="images of bytes"):
        write(builder.build(images=np.zeros((1, 2, 2))), tmp_path / "images.jsonl", "jsonl")


def test_a_schema_that_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    header = {"bursar": 1, "tasks": {"mood": {"kind": "classification"}}}
    with pytest.raises(DataError, match="the schema says"):
        read(put(tmp_path, header, {"text": "a"}), schema={"mood": {"kind": "regression"}})


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = put(tmp_path, {"text": "old"})
    builder = CorpusBuilder()
    builder.add("a")
    with pytest.raises(DataError):
        write(builder.build(images=np.zeros((1, 2, 2))), path, "jsonl")
    assert read(path)[0].text == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["items.jsonl"]


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, {"text": "old"}))
    with pytest.raises(DataError, match="cannot be written"):
        write(corpus, tmp_path / "items.jsonl" / "inside.jsonl", "jsonl")


def test_more_splits_than_anybody_needs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="splits"):
        read(put(tmp_path, *({"text": "a", "split": f"s{n}"} for n in range(1001))))
