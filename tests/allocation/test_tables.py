"""Tables of one's own estimates: three formats that say the same, and what is wrong in them told with its place."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import numpy as np
import pytest

from bursar.allocation import exact
from bursar.allocation.tables import read_estimate_table
from bursar.errors import AllocationError, DataError

TOML = """\
unit = 0.01
currency = "€"
joint_price = 0.22

[tasks.intent]
price = 0.05
beta = 0.6
low = 0.5
high = 0.7
block = 200
seed_score = 0.71

[tasks."named entities"]
price = 0.12
beta = 0.8
low = 0.7
high = 0.9
block = 200
min = 100
cap = 5000

[informativeness.intent]
"named entities" = [0.25, 0.08]

[informativeness."named entities"]
intent = 0.4
"""

CSV = """\
task,price,beta,low,high,block,seed_score,min,cap,informs:intent,error:intent,\
informs:named entities,error:named entities
intent,0.05,0.6,0.5,0.7,200,0.71,,,,,0.25,0.08
named entities,0.12,0.8,0.7,0.9,200,,100,5000,0.4,,1,
"""


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write


def as_json(toml=TOML):
    import tomllib

    return json.dumps(tomllib.loads(toml), indent=2)


# -- what is read ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["toml", "json", "csv"])
def test_three_formats_say_the_same(written, kind):
    table = read_estimate_table(written(f"tasks.{kind}", {"toml": TOML, "json": as_json(), "csv": CSV}[kind]))
    assert table.estimates.tasks == ("intent", "named entities")
    assert table.prices == (5, 12)
    assert (table.least, table.most) == ((0, 100), (None, 5000))
    assert dict(table.scores) == {"intent": 0.71}
    np.testing.assert_array_equal(table.estimates.informativeness.value, [[1, 0.25], [0.4, 1]])
    np.testing.assert_array_equal(table.estimates.informativeness.error, [[0, 0.08], [0, 0]])
    rate = table.estimates.rates["named entities"]
    assert (rate.beta, rate.low, rate.high, rate.block) == (0.8, 0.7, 0.9, 200)
    if kind != "csv":  # which has no place for them
        assert table.joint == 22
        assert table.costs.show(123456) == "€1,234.56"
    assert table.costs.unit == Decimal("0.01")


def test_the_least_that_is_needed(written):
    table = read_estimate_table(written("tasks.toml", "[tasks.a]\nprice = 3\nbeta = 0.5\nblock = 10\n"))
    rate = table.estimates.rates["a"]
    assert (rate.low, rate.beta, rate.high) == (0.5, 0.5, 0.5)
    assert (table.least, table.most, table.joint, dict(table.scores)) == ((0,), (None,), None, {})
    assert exact(table.problem(20)).counts == (6,)


def test_without_a_unit_it_is_the_finest_decimal_of_the_prices(written):
    table = read_estimate_table(
        written("tasks.toml", TOML.replace("unit = 0.01\n", "").replace("price = 0.12", "price = 0.125"))
    )
    assert table.costs.unit == Decimal("0.001")
    assert table.prices == (50, 125)
    assert table.joint == 220
    whole = read_estimate_table(written("whole.csv", "task,price,beta,block\na,300,0.5,10\n"))
    assert (whole.costs.unit, whole.prices) == (1, (300,))


def test_a_budget_is_rounded_down_to_whole_units(written):
    table = read_estimate_table(written("tasks.toml", TOML))
    assert table.problem("400.009").budget == 40_000
    assert table.problem(Decimal("0.29") + 12).budget == 1229  # 12.29 / 0.01 in floating point is 1228.99…
    for budget in ("nan", "-1", "1e13"):
        with pytest.raises(AllocationError, match="a budget of"):
            table.problem(budget)


def test_minimums_beyond_the_budget_are_told_in_money(written):
    with pytest.raises(AllocationError, match=r"minimums cost €12.00, and the budget is €11.50: task 'named entities'"):
        read_estimate_table(written("tasks.toml", TOML)).problem(11.5)


# -- what is wrong ---------------------------------------------------------------------------------------------------
def complaint(file):
    with pytest.raises(DataError) as wrong:
        read_estimate_table(file)
    return str(wrong.value).replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("price = 0.12", "", "FILE:13: task 'named entities': price is missing"),
        ("beta = 0.6", "", "FILE:5: task 'intent': beta is missing. Fix: label a few items"),
        ("block = 200\nmin", "min", "FILE:13: task 'named entities': block is missing"),
        ("price = 0.12", "price = 0", "FILE:14: task 'named entities': price = 0. Fix: give a number above 0"),
        ("price = 0.12", 'price = "cheap"', "FILE:14: task 'named entities': price = \"cheap\""),
        ("price = 0.12", "price = true", "FILE:14: task 'named entities': price = true"),
        (
            "price = 0.12",
            "price = 1e13",
            "FILE:14: task 'named entities': price = 1E+13. Fix: give a number up to",
        ),
        ("price = 0.12", "price = nan", "FILE:14: task 'named entities': price = NaN"),
        (
            "price = 0.12",
            "price = 0.125",
            "FILE:14: task 'named entities': price = 0.125 is not a whole number of units",
        ),
        ("beta = 0.8", "beta = 1.2", "FILE:15: task 'named entities': beta = 1.2. Fix: give low ≤ beta ≤ high"),
        ("low = 0.7", "low = 0", "FILE:16: task 'named entities': low = 0"),
        ("low = 0.7", "low = 0.85", "FILE:15: task 'named entities': a reduction rate of 0.8 (0.85 to 0.9)"),
        ("block = 200\nmin", "block = -1\nmin", "FILE:18: task 'named entities': a block of -1 labels"),
        ("seed_score = 0.71", "seed_score = 71", "FILE:11: task 'intent': seed_score = 71"),
        ("min = 100", "min = 1.5", "FILE:19: task 'named entities': min = 1.5"),
        ("cap = 5000", "cap = 50", "FILE:20: task 'named entities': cap = 50 is below min = 100"),
        ("cap = 5000", "cup = 5000", "FILE:20: task 'named entities': there is no key 'cup'"),
        ("[0.25, 0.08]", "[0.25, -1]", "FILE:23: task 'intent': the standard error for 'named entities' is -1"),
        ("[0.25, 0.08]", "[1, 2, 3]", "FILE:23: task 'intent': informativeness for 'named entities'"),
        ("[0.25, 0.08]", '"much"', "FILE:23: task 'intent': named entities = \"much\""),
        ("intent = 0.4", "intents = 0.4", "FILE:26: task 'named entities': informs no task 'intents'"),
        ("intent = 0.4", '"named entities" = 2', "FILE:26: task 'named entities': informs itself by 2, not 1"),
        ("[informativeness.intent]", "[informativeness.mood]", "FILE: informativeness.mood is of no task"),
        ("unit = 0.01", "unit = 0", "FILE:1: unit = 0. Fix: give the smallest amount"),
        ("unit = 0.01", "units = 0.01", "FILE:1: there is no key 'units'"),
        ('currency = "€"', "currency = 3", "FILE:2: currency = 3"),
        ("joint_price = 0.22", "joint_price = -1", "FILE:3: joint_price = -1"),
        ("[tasks.intent]", "[tasks.intent", "FILE:5: this is not TOML"),
        ("[tasks.intent]", '[tasks.""]', "FILE:5: task '': it has no name"),
        (TOML, "tasks = " + 5000 * "[" + 5000 * "]", "FILE: tables are nested too deep"),
        (TOML, "", "FILE: there are no tasks"),
        (TOML, "tasks = 3", "FILE:1: tasks = 3 is no table"),
        (TOML, "tasks = ['a']", 'FILE:1: tasks = ["a"] is no table'),
        (
            "joint_price = 0.22",
            "joint_price = 0.11",
            "FILE:3: joint_price = 0.11 is below the price of one label of 'named",
        ),
        (TOML, "corpus = 3", "FILE:1: there is no key 'corpus'. Fix: if this is a campaign, leave --table out"),
        (TOML, "[tasks]\nintent = 3", "FILE: task 'intent': 3 is no table"),
    ],
)
def test_what_is_wrong_in_toml_is_told_with_its_place(written, old, new, said):
    assert old in TOML
    assert complaint(written("tasks.toml", TOML.replace(old, new))).startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"price": 0.12', '"price": -2', "FILE:LINE: task 'named entities': price = -2"),
        ('"beta": 0.6', '"beta": NaN', "FILE:LINE: task 'intent': beta = NaN"),
        ('"beta": 0.6', '"beta": 0.6, "beta": 0.7', "FILE: the key 'beta' is given twice"),
        ('"intent": 0.4', '"intent": null', "FILE:LINE: task 'named entities': intent = null"),
        ('"joint_price": 0.22', '"joint_price": 0.22 0', "FILE:LINE: this is not JSON"),
        ('"joint_price": 0.22', '"joint_price": ' + 9999 * "[" + 9999 * "]", "FILE: tables are nested too deep"),
    ],
)
def test_what_is_wrong_in_json_is_told_with_its_place(written, old, new, said):
    text = as_json().replace(old, new, 1)
    line = text[: text.index(new)].count("\n") + 1
    assert complaint(written("tasks.json", text)).startswith(said.replace("LINE", str(line)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("named entities,0.12", "named entities,abc", "FILE:3: task 'named entities': price = \"abc\""),
        ("named entities,0.12", "intent,0.12", "FILE:3: task 'intent' is given twice"),
        ("0.25,0.08", "0.25", "FILE:2: there are 12 cells, and the header has 13"),
        ("informs:intent", "informs:mood", "FILE:1: column 'informs:mood' is of no task"),
        ("informs:intent", "inform:intent", "FILE:1: column 'inform:intent' is of no task"),
        ("task,price", "name,price", "FILE:1: the first column is not 'task'. Fix: begin with task,price"),
        ("task,price", "task;price", "FILE:1: the first column is not 'task'. Fix: separate cells by commas, not by ;"),
        ("low,high", "high,high", "FILE:1: column 'high' occurs twice"),
        ("named entities,0.12", '"named entities,0.12', "FILE:3: this is not CSV"),
        (",0.6,0.5", ",,0.5", "FILE:2: task 'intent': beta is missing"),
        ("0.25,0.08", ",0.08", "FILE:2: task 'intent': error:named entities is given without informs:named entities"),
        (CSV, "", "FILE:1: the first column is not 'task'"),
        (CSV, "task,price\n", "FILE: there are no tasks"),
    ],
)
def test_what_is_wrong_in_csv_is_told_with_its_line(written, old, new, said):
    assert old in CSV
    assert complaint(written("tasks.csv", CSV.replace(old, new, 1))).startswith(said)


def test_a_file_that_cannot_be_read_is_told(written, tmp_path):
    assert "there is no such file" in complaint(tmp_path / "none.toml")
    assert "unknown format '.yaml'. Fix: use one of .toml, .json, .csv" in complaint(written("tasks.yaml", TOML))
    (tmp_path / "folder.toml").mkdir()
    assert "this is a folder" in complaint(tmp_path / "folder.toml")
    (tmp_path / "latin.toml").write_bytes(b'currency = "\xa3"\n')
    assert "not text in UTF-8" in complaint(tmp_path / "latin.toml")
    assert "not a table of estimates" in complaint(written("list.json", "[1, 2]"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.toml", "[tasks.a]\nprice = 1e-99999999\nbeta = 0.5\nblock = 10\n"),
        ("t.toml", "[tasks.a]\nprice = 1e-99999999999999999999\nbeta = 0.5\nblock = 10\n"),
        ("t.toml", f"[tasks.a]\nprice = {'9' * 5000}\nbeta = 0.5\nblock = 10\n"),
        ("t.json", '{"tasks": {"a": {"price": 1e-99999999999999999999, "beta": 0.5, "block": 10}}}'),
        ("t.json", f'{{"tasks": {{"a": {{"price": {"9" * 5000}, "beta": 0.5, "block": 10}}}}}}'),
        ("t.csv", f"task,price,beta,block\na,{'9' * 5000},0.5,10\n"),
        ("t.csv", "task,price,beta,block\na,1e-99999999,0.5,10\n"),
    ],
)
def test_numbers_that_nobody_counts_in_are_refused_at_once(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    started = time.process_time()
    with pytest.raises(DataError) as caught:
        read_estimate_table(file)
    assert time.process_time() - started < 1
    assert len(str(caught.value)) < 400 + len(str(file))


@pytest.mark.parametrize("budget", ["abc", "1e-99999999", "1e999", "nan", "-1"])
def test_a_budget_that_is_no_money_is_refused(tmp_path, budget):
    file = tmp_path / "t.csv"
    file.write_text("task,price,beta,block\na,1,0.5,10\n")
    with pytest.raises(AllocationError, match="a budget of"):
        read_estimate_table(file).problem(budget)


def test_a_blank_error_is_none(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("task,price,beta,block,informs:b,error:b\na,1,0.5,10,0.4, \nb,1,0.5,10,,\n")
    assert read_estimate_table(file).estimates.informativeness.value[0, 1] == 0.4
