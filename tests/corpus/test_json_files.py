from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.corpus.formats.json_files import first_object, json_array, write_json_array
from bursar.errors import DataError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def put(folder: Path, text: str) -> Path:
    path = folder / "items.json"
    path.write_bytes(text.encode())
    return path


@given(
    records=st.lists(
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), JSON, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_with_a_line_for_each(
    records: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("json") / "items.json"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        write_json_array(file, records)
    assert [*json_array(path)] == [(line, record) for line, record in enumerate(records, start=2)]
    assert json.loads(path.read_text(encoding="utf-8")) == records


def test_objects_know_the_line_they_begin_on_however_they_are_laid_out(tmp_path: Path) -> None:
    path = put(tmp_path, '\n [ {"a":\n1}\n\n, {"b": "]"}, {"c": "\\n"}\n]\n\n')
    assert [*json_array(path)] == [(2, {"a": 1}), (5, {"b": "]"}), (5, {"c": "\n"})]
    assert first_object(path) == {"a": 1}


def test_an_empty_array_holds_nothing(tmp_path: Path) -> None:
    assert [*json_array(put(tmp_path, "[ ]"))] == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{}", 1),
        ("\nnull", 2),
        ("[\n{},\n]", 3),
        ("[\n{}\n{}]", 3),
        ("[{}\n", 1),
        ("[\n{}, 7]", 2),
        ("[\n\n{'a': 1}]", 3),
        ('[\n{"a": "\\ud800"}]', 2),
        ("[{}]\n\nx", 3),
        ('[{},\n{"a": ' + "[" * 100_000 + "]", 2),
        ('[\n{"a": ' + "9" * 5000 + "}]", 2),
        ("[", 1),
    ],
)
def test_what_is_no_array_of_objects_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(DataError) as caught:
        [*json_array(put(tmp_path, text))]
    assert (caught.value.line, caught.value.path) == (line, str(tmp_path / "items.json"))


@pytest.mark.parametrize("text", ["", " \n", "{}", "[7]", "[", "no"])
def test_where_there_is_no_first_object_nothing_is_guessed(tmp_path: Path, text: str) -> None:
    assert first_object(put(tmp_path, text)) == {}
