from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import CorpusBuilder, read, write
from bursar.corpus.formats.topv2 import read_parse
from bursar.errors import DataError

HEADER = "domain\tutterance\tsemantic_parse\n"


def put(folder: Path, *rows: str, name: str = "alarm_train.tsv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_words_of_the_parse_are_placed_in_the_utterance(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "alarm\tWake me at seven!\t[IN:CREATE Wake me [SL:TIME at seven ] ! ]"))
    item = corpus[0]
    assert (item.id, item.group, item.text) == ("alarm-train-000001", "alarm", "Wake me at seven!")
    assert item.words == ["Wake", "me", "at", "seven", "!"]
    assert item.labels == {"intent": "CREATE", "slots": [[2, 4, "TIME"]]}


def test_only_the_outermost_slots_count() -> None:
    parse = "[IN:A x [SL:B [IN:C [SL:D y ] z ] ] [SL:E w ] ]"
    assert read_parse(parse) == ("A", ["x", "y", "z", "w"], [(1, 3, "B"), (3, 4, "E")])


def test_a_slot_without_words_is_none() -> None:
    assert read_parse("[IN:A x [SL:B ] ]") == ("A", ["x"], [])


def test_domains_and_splits_number_their_items_apart(tmp_path: Path) -> None:
    put(tmp_path, "alarm\ta\t[IN:X a ]", "timer\tb\t[IN:X b ]", "alarm\tc\t[IN:X c ]")
    put(tmp_path, "alarm\td\t[IN:X d ]", name="alarm_eval.tsv")
    ids = ["alarm-train-000001", "timer-train-000001", "alarm-train-000002", "alarm-dev-000001"]
    assert read(tmp_path).ids.tolist() == ids


@pytest.mark.parametrize(
    "row",
    [
        "alarm\tgo\t[IN:X go",
        "alarm\tgo\t[IN:X go ] ]",
        "alarm\tgo\t[IN:X go ] on",
        "alarm\tgo\t[IN: go ]",
        "alarm\tgo\tgo",
        "alarm\tgo\t[IN:X stay ]",
        "alarm\tgo on\t[IN:X go ]",
        "alarm\tgo",
        "\tgo\t[IN:X go ]",
        "alarm\tgo\t[IN:X [SL: go ] ]",
    ],
)
def test_a_broken_row_is_refused_with_its_line(row: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path, "alarm\tfine\t[IN:X fine ]", row))
    assert caught.value.line == 3


def test_another_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "alarm_train.tsv"
    path.write_text("a\tb\tc\n")
    with pytest.raises(DataError, match="expected the header"):
        read(path, "topv2")


@pytest.mark.parametrize("text", ["]", "[IN:X", "a ] b"])
def test_words_that_are_brackets_are_not_written(text: str, tmp_path: Path) -> None:
    builder = CorpusBuilder({"intent": {"kind": "classification"}, "slots": {"kind": "tagging"}})
    places = [(m, m + len(w)) for w in text.split() for m in [text.index(w)]]
    builder.add("d-train-000001", text=text, words=places, group="d", labels={"intent": "X", "slots": []})
    with pytest.raises(DataError, match="has no parse"):
        write(builder.build(), tmp_path / "out", "topv2")
