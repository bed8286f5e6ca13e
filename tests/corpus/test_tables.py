"""Tables as people have them: any columns, any delimiter, several encodings; and back again."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from openpyxl import Workbook

from bursar.corpus import CorpusBuilder, read, spans, write
from bursar.errors import BursarError, ConfigError, DataError, SchemaError
from tests.same import differences

ROWS = [(7, "where is my order", "order"), (8, "please send my money back", "refund"), (9, "stop", None)]


def workbook(path: Path, *rows: tuple[Any, ...]) -> Path:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_by_its_columns_and_says_what_was_found_out(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", ("Ticket", "Body", "Category"), *ROWS)
    corpus = read(path)
    assert corpus.ids.tolist() == ["7", "8", "9"]
    assert corpus[1].text == "please send my money back"
    assert corpus[1].metadata == {"Ticket": 8, "Category": "refund"}
    assert corpus.notes == (
        "sheet 'Sheet'",
        "text: column 'Body'",
        "ids: column 'Ticket'",
        "kept as metadata: Category",
    )


def test_labels_are_read_from_the_columns_that_are_named(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", ("Ticket", "Body", "Category"), *ROWS)
    corpus = read(path, labels={"intent": "Category"}, tasks={"slots": spans("product")})
    assert [item.labels for item in (corpus[at] for at in range(3))] == [{"intent": "order"}, {"intent": "refund"}, {}]
    assert corpus.schema["slots"].labels == ("product",)
    with pytest.raises(DataError, match="unknown label"):
        read(path, labels={"intent": "Category"}, tasks={"intent": ["order"]})


def test_delimiter_and_header_are_options_of_a_csv_file_only(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("wake me at seven;alarm, please\nplay some jazz;music, please\n")
    corpus = read(tmp_path / "m.csv", "csv", delimiter=";", header="no", text="column 1")
    assert [item.metadata for item in (corpus[0], corpus[1])] == [
        {"column 2": "alarm, please"},
        {"column 2": "music, please"},
    ]
    (tmp_path / "m.json").write_text('[{"text": "play some jazz"}]')
    with pytest.raises(BursarError, match="format 'json' has no option 'delimiter' here"):
        read(tmp_path / "m.json", "json", delimiter=";")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_delimiter_and_encoding_of_a_csv_file_are_found_out(delimiter: str, encoding: str, tmp_path: Path) -> None:
    rows = [["Nr", "Grüße", "Text"], ["007", "5,5", "Wie geht's?"], ["008", "a;b", "Zwei\nZeilen"]]
    lines = [delimiter.join(f'"{cell}"' for cell in row) for row in rows]
    path = tmp_path / "m.csv"
    path.write_bytes("\r\n".join(lines).encode(encoding))
    corpus = read(path)
    assert [corpus[at].text for at in range(2)] == ["Wie geht's?", "Zwei\nZeilen"]
    assert corpus[0].metadata == {"Nr": "007", "Grüße": "5,5"}
    assert corpus.ids.tolist() == ["007", "008"]


def test_a_table_without_a_header_is_read_from_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("1,where is my order please\n2,send it back to me\n")
    corpus = read(path)
    assert len(corpus) == 2
    assert "without a header" in corpus.notes[0]
    assert corpus[0].text == "where is my order please"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"id#text\na#hello\n", {"delimiter": "#"}),
        (b"id\ttext\na\thello, you\n", {"delimiter": r"\t"}),
        ("id,text\na,こんにちは\n".encode("shift-jis"), {"encoding": "shift-jis"}),
        (b"b,hello you\na,yes\n", {"header": "no", "text": "column 2"}),
        (b"text,text 2\nno,yes\n", {"header": True, "text": "text"}),
    ],
)
def test_what_is_found_out_about_a_file_may_be_named_instead(
    content: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(content)
    corpus = read(path, **options)
    assert len(corpus) == content.count(b"\n") - (options.get("header") != "no")


def test_options_of_a_file_that_it_does_not_have_are_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", ("Ticket", "Body"), (7, "where is my order"))
    assert len(read(path, sheet="Sheet")) == 1
    with pytest.raises(ConfigError, match=r"format 'xlsx' has no option 'delimiter'.*it has sheet, header"):
        read(path, delimiter=";")
    (tmp_path / "m.csv").write_text("id,text\n1,hello\n")
    with pytest.raises(ConfigError, match="delimiter = ';;'"):
        read(tmp_path / "m.csv", delimiter=";;")


def test_the_name_of_a_format_is_enough_for_a_table_with_any_file_name(tmp_path: Path) -> None:
    path = tmp_path / "m.dat"
    path.write_text("id,text\n1,hello\n")
    assert read(path, "csv")[0].text == "hello"


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (",text,n\n0,hello you,3\n1,b c,4\n", ["column 1", "text", "n"]),  # the index of a data frame
        ("id,text,\n1,hello you,\n", ["id", "text"]),  # an empty column at the end
        ("sep=;\nid;text\n1;hello, you\n", ["id", "text"]),  # a line for Excel
    ],
)
def test_a_header_with_a_gap_or_a_line_above_it_is_a_header(content: str, columns: list[str], tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(content)
    corpus = read(path)
    assert corpus.metadata is not None
    assert list(corpus.metadata.order) == columns
    assert str(corpus[0].text).startswith("hello")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_recognised(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes("id,text\n1,Łódź\n".encode(encoding))
    assert read(path)[0].text == "Łódź"


def test_rows_of_another_width_are_refused_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("id,text\n1,hello\n2,one,two\n3,fine\n4,three,four\n")
    with pytest.raises(DataError, match=r"m\.csv:3: the row has 3 cells, and the first row has 2 \(so have line 5\)"):
        read(path)


def test_rows_without_a_text_are_refused_or_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("id,text\n1,hello\n2,\n3,fine\n4, \n")
    with pytest.raises(DataError, match=r"m\.csv:3: column 'text' has no text in lines 3, 5"):
        read(path)
    corpus = read(path, skip_empty=True)
    assert corpus.ids.tolist() == ["1", "3"]
    assert "passed over without a text: lines 3, 5" in corpus.notes


def test_a_quoted_cell_that_does_not_end_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text('id,text\n1,hello\n2,"never ends\n3,fine\n')
    with pytest.raises(DataError, match=r"m\.csv:3: not a row of cells: a quoted cell does not end"):
        read(path)


def test_a_column_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", ("Ticket", "Body"), (1, "where is my order"))
    with pytest.raises(DataError, match="did you mean 'Body'"):
        read(path, text="Boddy")


def test_repeated_ids_are_refused_if_named_and_not_used_if_not(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("id,text\n1,hello\n1,again\n")
    with pytest.raises(DataError, match=r"m\.csv:3: item '1': this id was used before"):
        read(path, id="id")
    assert read(path).ids.tolist() == ["row-000002", "row-000003"]


def test_a_table_that_does_not_say_what_is_the_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("a,b\none two,three four\nfive six,seven eight\n")
    with pytest.raises(DataError, match="not clear which column holds the text"):
        read(path)
    assert read(path, text="b")[0].text == "three four"


def test_a_frame_is_read_as_it_is_and_missing_values_are_empty_cells() -> None:
    frame = pd.DataFrame(
        {"n": [1.5, None], "when": pd.to_datetime(["2026-01-02", None]), "msg": ["hello my friend", "bye"]}
    )
    corpus = read(frame, text="msg")
    assert corpus[0].metadata == {"n": 1.5, "when": datetime(2026, 1, 2)}
    assert corpus[1].metadata == {"n": None, "when": None}
    with pytest.raises(BursarError, match="cannot read a list"):
        read([1, 2])


def test_metadata_survives_the_native_format_value_by_value(tmp_path: Path) -> None:
    rows = [("Body", "Day", "When", "Code", "Share", "Done"), ("hello there you", None, None, "007", 0.1, True)]
    rows.append(("and good bye", date(2026, 5, 1), datetime(2026, 5, 1, 12, 30), "=1+1", 3, False))
    frame = pd.DataFrame(rows[1:], columns=list(rows[0]), dtype=object)
    corpus = read(frame, text="Body")
    write(corpus, tmp_path / "data.jsonl", "jsonl")
    again = read(tmp_path / "data.jsonl")
    assert differences(corpus, again) == []
    assert again.metadata is not None
    assert again.metadata.order == rows[0]
    assert again.metadata.text == "Body"
    assert again[1].metadata["When"] == datetime(2026, 5, 1, 12, 30)


def test_columns_of_labels_are_kept_and_not_shown_beside_the_item(tmp_path: Path) -> None:
    rows = [(7, date(2026, 5, 1), "where is my order", "order", 0.5), (8, None, "stop", None, 2.0)]
    path = workbook(tmp_path / "m.xlsx", ("Ticket", "Day", "Body", "Category", "Cost"), *rows)
    write(read(path, labels={"intent": "Category"}), tmp_path / "m.jsonl", "jsonl")
    found = read(tmp_path / "m.jsonl").metadata
    assert found is not None
    assert found.row(0)["Category"] == "order"
    assert found.labels == ("Category",)
    assert [[cell["value"] for cell in found.shown(at)] for at in range(2)] == [["7", "2026-05-01", "0.5"], ["8", "2"]]


def test_metadata_goes_with_its_items(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["one", "two", "three"], "n": [1, 2, 3]})
    corpus = read(frame)
    assert corpus.take(np.array([2, 0]))[0].metadata == {"n": 3}
    assert corpus.digest() == read(frame.drop(columns="n")).digest()  # no result depends on it


def test_what_a_table_cannot_hold_is_refused_by_item(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    builder.add("a", text="fine")
    builder.add("b", text=" ")
    with pytest.raises(DataError, match="item 'b'"):
        write(builder.build(), tmp_path / "out.csv", "csv")
    builder = CorpusBuilder()
    builder.add("a", text="a bell\x07")
    with pytest.raises(DataError, match="control characters"):
        write(builder.build(), tmp_path / "out.xlsx", "xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_looks_like_a_formula_stays_a_text(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    builder.add("a", text="=1+1", metadata={"c": "+49 30"})
    write(builder.build(), tmp_path / "out.xlsx", "xlsx")
    assert read(tmp_path / "out.xlsx")[0].text == "=1+1"
    assert pd.read_excel(tmp_path / "out.xlsx").to_dict("records")[0]["text"] == "=1+1"


def test_jsonl_with_keys_of_its_own_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"Body": "hello my friend", "tags": ["a"]}\n{"Body": "bye", "x": {"y": 1}}\n')
    corpus = read(path)
    assert corpus[0].metadata == {"tags": ["a"], "x": None}
    assert corpus[1].metadata == {"tags": None, "x": {"y": 1}}


@pytest.mark.parametrize(("encoding", "said"), [("utf-16", "UTF-16"), ("cp1252", "Windows-1252")])
def test_plain_text_in_an_encoding_of_windows_is_read_and_said(encoding: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes("Grüße\r\nZwei\r\n".encode(encoding))
    corpus = read(path)
    assert [corpus[at].text for at in range(2)] == ["Grüße", "Zwei"]
    assert corpus.notes == (f"one item per line, {said}",)


def test_the_first_sheet_with_cells_is_read(tmp_path: Path) -> None:
    book = Workbook()
    second = book.create_sheet("Data")
    second.append(["id", "text"])
    second.append([1, "hello you"])
    book.save(tmp_path / "m.xlsx")
    assert read(tmp_path / "m.xlsx").notes[0] == "sheet 'Data' of 2"
    with pytest.raises(DataError, match=r"'Sheet' is empty.*name another one"):
        read(tmp_path / "m.xlsx", sheet="Sheet")


def test_a_sheet_with_a_header_alone_has_no_item(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only a header"):
        read(workbook(tmp_path / "m.xlsx", ("Ticket", "Body")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.xls", b"\xd0\xcf\x11\xe0", r"\.xls files cannot be read.*save it as \.xlsx"),
        ("m.json", b'[{"text": "hello', "not JSON"),
        ("m.json", b'{"data": [{"text": "hello you"}]}', "array"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_is_wrong_with_it(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / name)


def test_columns_of_a_frame_may_be_numbers() -> None:
    frame = pd.DataFrame({0: ["where is it", "stop"], 1: ["order", "refund"]})
    corpus = read(frame, text=0, labels={"intent": 1})  # type: ignore[arg-type, dict-item]
    assert corpus[1].labels == {"intent": "refund"}
    with pytest.raises(ConfigError, match="cannot read a Series"):
        read(frame[0])


def test_plain_text_is_read_by_line_or_by_paragraph(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("one\ntwo\n\nthree\n")
    assert [read(path)[at].text for at in range(2)] == ["one\ntwo", "three"]
    assert len(read(path, unit="line")) == 3
    path.write_text("one\ntwo\n")
    assert read(path).ids.tolist() == ["line-000001", "line-000002"]


def test_tasks_may_be_described_for_any_format(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("one\ntwo\n")
    corpus = read(tmp_path / "m.txt", tasks={"tone": ["calm", "angry"], "score": {"kind": "regression", "high": 5}})
    assert list(corpus.schema) == ["tone", "score"]
    with pytest.raises(SchemaError, match="describes no task"):
        read(tmp_path / "m.txt", tasks={"tone": 7})
