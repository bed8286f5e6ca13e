"""What is imported with metadata comes back identical: through a project, and through every kind of table."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.annotation.projects import DATA_FILE, Wishes, create_project, draft_project, with_wished_tasks
from bursar.corpus import Corpus, read
from bursar.corpus.formats.table_files import write_table
from bursar.corpus.formats.tables import corpus_columns

COLUMNS: dict[str, list[Any]] = {
    "Ticket": [f"00{number}" for number in range(30)],
    "Body": [f"where is order {number}?\nIt is late…" for number in range(30)],
    "Day": [datetime(2026, 5, 1 + number % 28, 9, 30) if number % 3 else None for number in range(30)],
    "Cost": [number / 7 for number in range(30)],
    "Took": [timedelta(hours=number, seconds=1) for number in range(30)],
    "Open": [bool(number % 2) for number in range(30)],
    "Größe, cm": list(range(30)),
    "Note": ["=1+1" if number % 5 == 0 else 'a "quoted"; cell' for number in range(30)],
    "Category": ["order" if number % 4 == 0 else None for number in range(30)],
}
AS_TEXT = {".csv", ".tsv"}  # files that hold texts only


def cells(corpus: Corpus) -> dict[str, list[Any]]:
    """All columns of the table that a corpus came from, in order."""
    assert corpus.metadata is not None
    assert corpus.texts is not None
    kept = corpus.metadata
    texts = corpus.texts.strings.tolist()
    return {name: texts if name == kept.text else kept.column(name) for name in kept.order}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet", ".json", ".jsonl"])
def test_a_project_keeps_every_cell_and_every_kind_of_table_gives_them_back(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"m{suffix}"
    write_table(COLUMNS, source)
    corpus = read(source, text="Body", id="Ticket", labels={"intent": "Category"})
    before = cells(corpus)
    assert list(before) == list(COLUMNS)
    if suffix in (".xlsx", ".parquet"):
        assert before == COLUMNS
    wished = with_wished_tasks(corpus, ["intent:classification:order,refund"])
    create_project(tmp_path / "project", draft_project(wished, Wishes("p", 0.3, learner="scikit")))
    held = read(tmp_path / "project" / DATA_FILE)
    assert cells(held) == before
    assert held.metadata is not None
    assert held.metadata.labels == ("Category",)
    write_table(cells(held), tmp_path / f"again{suffix}")
    again = read(tmp_path / f"again{suffix}", text="Body", id="Ticket", labels={"intent": "Category"})
    assert cells(again) == before
    assert (tmp_path / f"again{suffix}").read_bytes() == source.read_bytes() or suffix in (".xlsx", ".parquet")


def test_labels_and_metadata_come_back_from_a_table_of_ours(tmp_path: Path) -> None:
    write_table(COLUMNS, tmp_path / "m.parquet")
    corpus = read(tmp_path / "m.parquet", text="Body", id="Ticket", labels={"intent": "Category"})
    for suffix in (".csv", ".xlsx", ".parquet", ".jsonl"):
        write_table(corpus_columns(corpus), tmp_path / f"ours{suffix}")
        found = read(tmp_path / f"ours{suffix}")
        assert found.ids.tolist() == corpus.ids.tolist()
        assert found.labels["intent"].present.tolist() == corpus.labels["intent"].present.tolist()
        assert [found[at].labels for at in range(30)] == [corpus[at].labels for at in range(30)]
        assert found.metadata is not None
        shown = [None if cell is None else str(cell) for cell in found.metadata.column("Note")]
        assert shown == COLUMNS["Note"]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20),
    st.dates(date(1900, 1, 1)),
    st.datetimes(datetime(1900, 1, 1)),
    st.timedeltas(timedelta(0), timedelta(days=1000)),
    st.dictionaries(st.sampled_from(["$date", "$$date", "$oid"]), st.text("0123", max_size=4), max_size=1),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text("abc$", max_size=6), st.integers(), max_size=2),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=2, max_size=5))
def test_any_cell_of_a_frame_comes_back_from_the_native_format(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, Any]]
) -> None:
    frame = pd.DataFrame({"a": [], "b": [], "text": []}, dtype=object)
    frame["a"] = pd.Series([row[0] for row in rows], dtype=object)
    frame["b"] = pd.Series([row[1] for row in rows], dtype=object)
    frame["text"] = [f"some words {number}" for number in range(len(rows))]
    corpus = read(frame, text="text")
    path = tmp_path_factory.mktemp("native") / "m.jsonl"
    from bursar.corpus import write

    write(corpus, path, "jsonl")
    assert cells(read(path)) == cells(corpus)
    assert [type(cell) for cell in cells(read(path))["a"]] == [type(cell) for cell in cells(corpus)["a"]]
    assert np.array_equal(read(path).words, corpus.words)
