from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import CorpusBuilder, read, write
from bursar.errors import DataError
from tests.same import differences

DOCUMENT: dict[str, Any] = {
    "doc_key": "d",
    "sentences": [["Ada", "sings", "."], ["Bo", "hears", "Ada", "Lee"]],
    "ner": [[[0, 0, "PER"]], [[3, 3, "PER"], [5, 6, "PER"], [6, 6, "NAME"]]],
    "relations": [[], [[3, 3, 5, 6, "hears"]]],
    "clusters": [[[0, 0], [5, 6]]],
}


def put(folder: Path, *documents: Any) -> Path:
    path = folder / "train.json"
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path


def test_sentences_are_items_and_documents_are_groups(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, DOCUMENT))
    assert [(corpus[at].id, corpus[at].group) for at in range(2)] == [("d-0", "d"), ("d-1", "d")]


def test_spans_of_the_document_become_spans_of_the_sentence(tmp_path: Path) -> None:
    labels = read(put(tmp_path, DOCUMENT))[1].labels
    assert labels["entities"] == [[0, 1, "PER"], [2, 4, "PER"], [3, 4, "NAME"]]
    assert labels["relations"] == [[[0, 1, "PER"], [2, 4, "PER"], "hears"]]


def test_a_document_without_a_key_is_named_by_its_line(tmp_path: Path) -> None:
    path = put(tmp_path, DOCUMENT, {key: value for key, value in DOCUMENT.items() if key != "doc_key"})
    corpus = read(path)
    assert (corpus[2].id, corpus[2].group) == ("train-000002-0", "train-000002")
    write(corpus, tmp_path / "again", "dygie")
    written = [json.loads(line) for line in (tmp_path / "again" / "train.json").read_text().splitlines()]
    assert ["doc_key" in document for document in written] == [True, False]
    assert not differences(corpus, read(tmp_path / "again"))


def test_a_document_without_annotations_has_items_without_labels(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, {"sentences": [["a"]]}, DOCUMENT))
    assert corpus[0].labels == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ner": [[[2, 3, "X"]], []]}, "is outside its sentence"),
        ({"ner": [[[3, 3, "X"]], []]}, "is outside its sentence"),
        ({"ner": [[[-1, 0, "X"]], []]}, "is outside its sentence"),
        ({"ner": [[[1, 0, "X"]], []]}, "is outside its sentence"),
        ({"ner": [[["0", 0, "X"]], []]}, "two numbers"),
        ({"ner": [[[0, 0]], []]}, "an entity must be"),
        ({"ner": [[[0, 0, 7]], []], "relations": [[], []]}, "non-empty string"),
        ({"ner": [[]]}, "1 lists for 2 sentences"),
        ({"ner": "none"}, "must be a list"),
        ({"relations": [[[0, 0, 1, 1, "r"]], []]}, "is no entity"),
        ({"relations": [[[0, 0, 3, 3, "r"]], []]}, "is outside its sentence"),
        ({"relations": [[[0, 0, "r"]], []]}, "a relation must be"),
        ({"ner": [[[0, 0, "A"], [0, 0, "B"]], []], "relations": [[[0, 0, 0, 0, "r"]], []]}, "several types: A, B"),
        ({"sentences": []}, "no sentences"),
        ({"sentences": [["a", ""], ["b"]], "ner": [[], []], "relations": [[], []]}, "not empty"),
        ({"sentences": [["a", 1], ["b"]], "ner": [[], []], "relations": [[], []]}, "must be strings"),
        ({"doc_key": 7}, "doc_key"),
    ],
)
def test_a_broken_document_is_refused_with_its_line(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    other = {"doc_key": "e", "sentences": [["fine"]]}
    with pytest.raises(DataError, match=words) as caught:
        read(put(tmp_path, other, DOCUMENT | change), "dygie")
    assert caught.value.line == 2


def test_a_document_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="used before"):
        read(put(tmp_path, DOCUMENT, DOCUMENT))


def test_relations_without_entities_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no entities"):
        read(put(tmp_path, {"sentences": [["a"]], "relations": [[]]}))


def test_a_relation_between_no_entities_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}, "relations": {"kind": "relations"}})
    labels = {"entities": [[0, 1, "A"]], "relations": [[[0, 1, "A"], [1, 2, "B"], "r"]]}
    builder.add("d-0", text="x y", group="d", labels=labels)
    with pytest.raises(DataError, match=r"item 'd-0'.*no entity"):
        write(builder.build(), tmp_path / "out", "dygie")


def test_a_document_that_is_labelled_in_part_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}})
    builder.add("d-0", text="x", group="d", labels={"entities": []})
    builder.add("d-1", text="y", group="d")
    with pytest.raises(DataError, match=r"item 'd-1'.*some sentences only"):
        write(builder.build(), tmp_path / "out", "dygie")
