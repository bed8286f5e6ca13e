"""Tables of scores in, tables of chosen items out: what they hold, and what is said of those that do not."""

from __future__ import annotations

import csv
import io
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import DataError, SelectionError
from bursar.selection import Limits, make_strategy
from bursar.selection.scores import (
    Columns,
    CostUnits,
    check_target,
    csv_text,
    read_scores,
    selection_table,
    write_selection,
)


@pytest.fixture
def table(tmp_path):
    def write(text, name="scores.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def parquet(path, **columns):
    pq.write_table(pa.table({name.replace("__", ":"): values for name, values in columns.items()}), path)
    return path


# -- money -----------------------------------------------------------------------------------------------------------
@given(st.lists(st.decimals(0, 10**6, places=4), min_size=1, max_size=20), st.integers(0, 9))
@settings(max_examples=300, deadline=None)
def test_decimals_are_counted_exactly(amounts, places):
    amounts = [round(a, places) for a in amounts]
    units = CostUnits.of(np.array([float(a) for a in amounts]))
    assert units.places <= min(places, 4)
    counted = units.whole(np.array([float(a) for a in amounts])).tolist()
    assert [units.money(n) for n in counted] == amounts


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_a_cost_is_never_counted_as_less_than_it_is(amounts):
    units = CostUnits.of(np.array(amounts))
    for amount, counted in zip(amounts, units.whole(np.array(amounts)).tolist(), strict=True):
        exact, charged = Fraction(amount), Fraction(counted, 10**units.places)
        assert charged >= exact * (1 - Fraction(2) ** -50)
        assert charged <= exact * (1 + Fraction(2) ** -49) + Fraction(1, 10**units.places)


def test_what_floats_do_to_the_last_digit_is_not_taken_for_money():
    assert CostUnits.of(np.array([0.1 + 0.2])) == CostUnits(1)
    assert CostUnits(1).whole(np.array([0.1 + 0.2])).tolist() == [3]


def test_a_third_is_rounded_up_at_the_ninth_place():
    units = CostUnits.of(np.array([1 / 3, 0.5]))
    assert units.places == 9
    assert units.whole(np.array([1 / 3, 0.5])).tolist() == [333_333_334, 500_000_000]


@pytest.mark.parametrize(
    ("budget", "counted"),
    [
        ("0.3", 30),
        ("0.309999", 30),
        ("1e-999999999", 0),
        ("1e999999999", 2**62),
        ("0", 0),
        ("4611686018427387904", 2**62),
    ],
)
def test_a_budget_never_grows_by_rounding(budget, counted):
    assert CostUnits(2).floor(Decimal(budget)) == counted


def test_costs_that_cannot_be_counted_are_refused():
    with pytest.raises(SelectionError, match="add up to 1e\\+19"):
        CostUnits(0).whole(np.array([1e19]))
    with pytest.raises(SelectionError, match="fewer decimals"):
        CostUnits(9).whole(np.array([5e9, 0.123456789]))


# -- columns ---------------------------------------------------------------------------------------------------------
def test_tasks_are_in_the_order_of_their_confidence_columns():
    columns = Columns.of(["cost:b", "confidence:b", "note", "id", "", "confidence:a:x", "hours:ana:a:x", "group"])
    assert columns.tasks == ("b", "a:x")
    assert columns.hours == {("ana", "a:x"): "hours:ana:a:x"}
    assert columns.ignored == ("note",)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["id", "confidance:x"], "did you mean 'confidence:x'"),
        (["id", "confidence:x", "Unnamed: 0"], "'Unnamed: 0' has an unknown prefix"),
        (["id", "confidence:x", "cost:y"], "'cost:y': there is no column 'confidence:y'"),
        (["id", "confidence:x", "hours:ana:y"], "'hours:ana:y': there is no column 'confidence:y'"),
        (["id", "confidence:x", "hours:x"], "'hours:x': there is no column"),
        (["confidence:x", "ID"], "no column 'id'"),
        (["id", "text"], "no column of confidences"),
        (["id", "confidence:x", "confidence:x"], "two columns 'confidence:x'"),
        (["id", "text", "text", "confidence:x"], "two columns 'text'"),
        (["id", "confidence:"], "no valid task name"),
        (["id", "confidence:a;b"], "no valid task name"),
        (["id", "confidence:reading", "cost:reading"], "a task is called 'reading' too"),
        (["id", *(f"confidence:{n}" for n in range(63))], "63 tasks"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(names, said):
    with pytest.raises(DataError) as refused:
        Columns.of(names)
    assert said in str(refused.value)


# -- reading ---------------------------------------------------------------------------------------------------------
def test_what_is_not_given_has_its_default(table):
    scores = read_scores(table("id,confidence:a,confidence:b,cost:b\nu2,0.5,0.25,2.5\nu1,1,0,3\n"))
    assert scores.ids.to_pylist() == ["u1", "u2"]
    assert scores.confidence.tolist() == [[1, 0], [0.5, 0.25]]
    assert scores.reading.tolist() == [0, 0]
    assert scores.own.tolist() == [[1, 3], [1, 2.5]]
    assert (scores.groups, scores.hours, scores.units.places) == (None, {}, 1)


def test_csv_and_parquet_say_the_same(table, tmp_path):
    text = "id,confidence:a,cost:reading,group,hours:ana:a\n007,0.5,1.5,x,0.1\nb,0.25,2,,0.2\n"
    one = read_scores(table(text))
    other = read_scores(
        parquet(
            tmp_path / "scores.parquet",
            id=["b", "007"],
            confidence__a=pa.array([0.25, 0.5], pa.float32()),
            cost__reading=pa.array([Decimal("2.0"), Decimal("1.5")]),
            group=pa.array([None, "x"]).dictionary_encode(),
            hours__ana__a=pa.array([0.2, 0.1], pa.float32()),
        )
    )
    for scores in (one, other):
        assert scores.ids.to_pylist() == ["007", "b"]
        assert scores.confidence.tolist() == [[0.5], [0.25]]
        assert scores.reading.tolist() == [1.5, 2]
        assert scores.hours["ana"].tolist() == [[0.1], [0.2]]
        assert scores.cap(1).group.tolist()[0] != scores.cap(1).group.tolist()[1]


def test_whole_numbers_in_parquet_may_be_ids(tmp_path):
    assert read_scores(parquet(tmp_path / "s.parquet", id=[7, 11], confidence__a=[0, 1])).ids.to_pylist() == ["11", "7"]


def test_short_floats_are_taken_as_the_decimals_that_they_stand_for(tmp_path):
    path = parquet(tmp_path / "s.parquet", id=["x"], confidence__a=[0.5], cost__a=pa.array([0.1], pa.float32()))
    assert read_scores(path).units == CostUnits(1)


def test_a_mark_at_the_start_blanks_around_numbers_and_blank_lines_do_no_harm(table):
    scores = read_scores(table(b"\xef\xbb\xbfid,confidence:a\r\n\r\nx, .5 \r\ny,5e-1\r\n"))
    assert scores.ids.to_pylist() == ["x", "y"]
    assert scores.confidence.tolist() == [[0.5], [0.5]]


def test_a_text_that_nobody_looks_at_may_be_in_any_encoding_and_of_any_length(table):
    long = b"\xe9" * (9 << 20)
    assert len(read_scores(table(b'id,confidence:a,text\nx,0.5,"' + long + b'"\ny,0.5,z\n'))) == 2


def test_items_without_a_group_stand_alone(table):
    cap = read_scores(table("id,confidence:a,group\na,0,\nb,0,x\nc,0,\nd,0,x\n")).cap(1)
    assert len(set(cap.group.tolist())) == len(cap.at_most) - 1 == 3
    assert cap.group[1] == cap.group[3]


def test_the_order_of_rows_does_not_matter(table):
    lines = [f"u{n},{n % 7 / 10},{n % 3},g{n % 4}\n" for n in range(50)]
    one, other = (
        read_scores(table("id,confidence:a,cost:a,group\n" + "".join(order))) for order in (lines, lines[::-1])
    )
    assert one.ids.equals(other.ids)
    assert np.array_equal(one.confidence, other.confidence)
    assert np.array_equal(one.cap(2).group, other.cap(2).group)


HEAD = "id,confidence:a,cost:a\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "scores.csv: the file is empty"),
        ("\n\n", "scores.csv: the file is empty"),
        ("\nid,confidance:a\n", "scores.csv:2: column 'confidance:a'"),
        ("id;confidence:a\nx;0.5\n", "scores.csv:1: columns are separated by ';'"),
        (HEAD + "x,0.5\n", "scores.csv:2: the line has 2 cells, but the header has 3"),
        (HEAD + '"x\ny",0.5,1\nz,0,5,1\n', "scores.csv:4: the line has 4 cells"),
        (HEAD + "x,0.5,1\n,0.5,1\n", "scores.csv:3: column 'id' is empty"),
        (HEAD + "  ,0.5,1\n", "scores.csv:2: column 'id' is empty"),
        (HEAD + "x,0.5,1\n\n" + '"y\n\nz",0.5,1\nx,0.5,1\n', "scores.csv:7: item 'x': the id is in line 2 already"),
        (HEAD + "x,high,1\n", "scores.csv:2: item 'x': column 'confidence:a' holds 'high'"),
        (HEAD + "x,,1\n", "scores.csv:2: item 'x': column 'confidence:a' is empty"),
        (HEAD + "x,NaN,1\n", "scores.csv:2: item 'x': column 'confidence:a' holds 'NaN'"),
        (HEAD + "x,NA,1\n", "scores.csv:2: item 'x': column 'confidence:a' holds 'NA'"),
        (HEAD + "x,1.01,1\n", "scores.csv:2: item 'x': column 'confidence:a' holds '1.01'"),
        (HEAD + "x,-0.1,1\n", "scores.csv:2: item 'x': column 'confidence:a' holds '-0.1'"),
        (HEAD + "x,0.1,-1\n", "scores.csv:2: item 'x': column 'cost:a' holds '-1'"),
        (HEAD + "x,0.1,\n", "scores.csv:2: item 'x': column 'cost:a' is empty"),
        (HEAD + "x,0.1,inf\n", "scores.csv:2: item 'x': column 'cost:a' holds 'inf'"),
        (HEAD + 'x,0.1,"1,5"\n', "scores.csv:2: item 'x': column 'cost:a' holds '1,5'"),
        ("id,confidence:a,hours:ana:a\nx,0.1,soon\n", "column 'hours:ana:a' holds 'soon'"),
        (HEAD.encode() + b"\xe9,0.5,1\n", "scores.csv:2: column 'id' is not text in UTF-8"),
        ("id,confidence:a\n".encode("utf-16"), "scores.csv:1: this is not text in UTF-8"),
        ('id,confidence:a,t\nx,0.5,"tea\ny,0.4,coffee\n', "scores.csv:2: a quote is opened and not closed"),
        ('id,confidence:a,t\nx,0.5,"tea\ny,0.4,"coffee"\n', "scores.csv:2: a quote is opened and not closed"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(table, text, said):
    with pytest.raises(DataError) as refused:
        read_scores(table(text))
    assert said in str(refused.value)


@pytest.mark.parametrize("row", [0, 1, 4_321, 9_999])
def test_the_first_cell_that_is_no_number_is_found(table, row):
    cells = ["0.5"] * 10_000
    cells[row] = cells[-1] = "half"
    lines = "".join(f"u{n:05d},{cell}\n" for n, cell in enumerate(cells))
    with pytest.raises(DataError, match=f"scores.csv:{row + 2}: item 'u{row:05d}'.*'half'"):
        read_scores(table("id,confidence:a\n" + lines))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": ["x", "x"], "confidence__a": [0, 1]}, "s.parquet: row 2: item 'x': the id is in row 1 already"),
        ({"id": ["x", None], "confidence__a": [0, 1]}, "s.parquet: row 2: column 'id' is empty"),
        (
            {"id": ["x", "y"], "confidence__a": [0.5, None]},
            "s.parquet: row 2: item 'y': column 'confidence:a' is empty",
        ),
        (
            {"id": ["x", "y"], "confidence__a": [0.5, 2.0]},
            "s.parquet: row 2: item 'y': column 'confidence:a' holds 2.0",
        ),
        ({"id": ["x"], "confidence__a": [True]}, "s.parquet: column 'confidence:a' holds bool"),
        ({"id": ["x"], "confidence__a": ["sure"]}, "s.parquet: row 1: item 'x': column 'confidence:a' holds 'sure'"),
        ({"id": [0.5], "confidence__a": [0.5]}, "s.parquet: column 'id' holds double"),
        ({"id": ["x"], "confidence__a": [0.5], "cost__a": [math.inf]}, "row 1: item 'x': column 'cost:a' holds inf"),
        ({"id": ["x"]}, "s.parquet: there is no column of confidences"),
    ],
)
def test_a_bad_parquet_is_refused_with_its_row(tmp_path, columns, said):
    with pytest.raises(DataError) as refused:
        read_scores(parquet(tmp_path / "s.parquet", **columns))
    assert said in str(refused.value)


def test_what_is_no_file_of_scores_is_refused(table, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, said in [
        (tmp_path / "none.csv", "there is no such file"),
        (tmp_path / "folder.csv", "this is a folder"),
        (table("id", "scores.xlsx"), "neither .csv nor .parquet"),
        (table("id,confidence:a\nx,0.5\n", "scores.parquet"), "cannot be read as Parquet"),
        (table("", "nothing.parquet"), "cannot be read as Parquet"),
    ]:
        with pytest.raises(DataError) as refused:
            read_scores(path)
        assert said in str(refused.value)


# -- writing ---------------------------------------------------------------------------------------------------------
IDS = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('",\n\r;\t'), min_size=1)


@given(st.lists(IDS.filter(str.strip), min_size=1, max_size=8, unique=True))
@settings(max_examples=200, deadline=None)
def test_any_id_survives_the_way_through_csv(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "scores.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "confidence:a,b", "cost:a,b"], *([name, 0.5, 1.5] for name in ids)])
    scores = read_scores(path)
    chosen = make_strategy("MT-AVG").select(scores.pool(Limits()), 10**6)
    rows = list(csv.reader(io.StringIO(csv_text(selection_table(scores, chosen)), newline="")))
    assert rows == [["id", "tasks", "cost"], *([name, "a,b", "1.5"] for name in sorted(ids))]


def test_both_kinds_of_file_hold_what_was_chosen(table, tmp_path):
    scores = read_scores(table("id,confidence:a,confidence:b,cost:a\nx,0.9,0.2,0.25\n007,0.1,1,1.5\n"))
    chosen = make_strategy("UDJS+BLP_AL").select(scores.pool(Limits()), scores.units.floor(Decimal(100)))
    found = selection_table(scores, chosen)
    write_selection(found, tmp_path / "chosen.csv")
    write_selection(found, tmp_path / "chosen.parquet")
    assert (tmp_path / "chosen.csv").read_text() == "id,tasks,cost\n007,a,1.5\nx,a;b,1.25\n"
    assert pq.read_table(tmp_path / "chosen.parquet").to_pydict() == {
        "id": ["007", "x"],
        "tasks": ["a", "a;b"],
        "cost": [1.5, 1.25],
    }


def test_whole_costs_stay_whole(table):
    scores = read_scores(table("id,confidence:a,cost:a\nx,0.5,3\n"))
    chosen = make_strategy("MT-AVG").select(scores.pool(Limits()), 5)
    assert csv_text(selection_table(scores, chosen)) == "id,tasks,cost\nx,a,3\n"


def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(tmp_path, table):
    source = table("id,confidence:a\n")
    (tmp_path / "folder.csv").mkdir()
    for name, said in [
        ("chosen.txt", "neither .csv nor .parquet"),
        ("none/chosen.csv", "there is no folder"),
        ("folder.csv", "this is a folder"),
        ("scores.csv", "this is the file of scores"),
    ]:
        with pytest.raises(DataError) as refused:
            check_target(tmp_path / name, source)
        assert said in str(refused.value)


def test_a_file_that_cannot_be_written_whole_is_not_written_at_all(table, tmp_path, monkeypatch):
    target = tmp_path / "chosen.csv"
    target.write_text("what was there")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="No space left"):
        write_selection(pa.table({"id": ["x"], "tasks": ["a"], "cost": [1]}), target)
    assert target.read_text() == "what was there"
    assert [path.name for path in tmp_path.iterdir()] == ["chosen.csv"]
