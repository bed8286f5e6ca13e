"""The table of trained models: merged without doubles, averaged over seeds, and refused by file, row and column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.errors import ConfigError, DataError
from bursar.laws import Observations, append

MODEL = {"n": 1000, "n_other": 1000, "tasks": 3, "ami": 0.4, "alpha": 0.9, "architecture": "shared"}
SINGLE = {"n": 1000, "n_other": 0, "tasks": 1, "architecture": "shared"}


def table(*rows):
    return Observations.of([MODEL | {"seed": 0, "score": 0.5} | row for row in rows])


def file_of(tmp_path, **columns):
    """A table with some columns replaced."""
    whole = table({}, {"seed": 1}).table
    for name, values in columns.items():
        place = whole.column_names.index(name)
        whole = whole.remove_column(place)
        if values is not None:
            whole = whole.append_column(name, pa.array(values))
    pq.write_table(whole, tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


# -- merging ---
def test_the_same_model_stands_in_a_merged_table_once():
    merged = table({}, {"seed": 1}).merged(table({"seed": 1}, {"seed": 2}))
    assert merged.column("seed").tolist() == [0, 1, 2]


def test_models_that_differ_in_any_setting_are_kept_apart():
    changes = [{"n": 2000}, {"n_other": 1500}, {"tasks": 4}, {"alpha": 0.8}, {"architecture": "gated"}, {"seed": 1}]
    changes += [{"source": "news"}, {"settings": "b4"}]
    assert len(table({}).merged(*(table(change) for change in changes))) == 1 + len(changes)


def test_one_model_with_two_scores_is_refused():
    with pytest.raises(DataError, match=r"has the scores 0\.5 and 0\.6"):
        table({}).merged(table({"score": 0.6}))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_tables_does_not_matter(seeds, random):
    rows = [table({"seed": seed, "score": seed / 10}) for seed in seeds]
    shuffled = random.sample(rows, len(rows))
    assert rows[0].merged(*rows[1:]).table.equals(shuffled[0].merged(*shuffled[1:]).table)


def test_appending_to_a_file_twice_changes_nothing(tmp_path):
    file = tmp_path / "deep" / "table.parquet"
    rows = table({}, {"seed": 1})
    append(file, rows)
    first = file.read_bytes()
    append(file, rows)
    assert file.read_bytes() == first
    assert len(append(file, table({"seed": 2}))) == 3
    assert len(Observations.read(file)) == 3


def test_a_refused_append_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "table.parquet"
    append(file, table({}))
    before = file.read_bytes()
    with pytest.raises(DataError):
        append(file, table({"score": 0.9}))
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


# -- averaging ---
def test_scores_are_averaged_over_seeds_and_nothing_else():
    rows = [
        {"seed": seed, "score": score, "n": n}
        for n, scores in ((500, (0.2, 0.4)), (900, (0.5,)))
        for seed, score in enumerate(scores)
    ]
    found = table(*rows).averaged()
    assert found.variables["n"].tolist() == [500, 900]
    assert found.score == pytest.approx([0.3, 0.5])
    assert found.runs.tolist() == [2, 1]
    assert found.deviation[0] == pytest.approx(np.std([0.2, 0.4], ddof=1))
    assert found.noise == pytest.approx(0.02 / 2)


def test_a_setting_keeps_its_mean_ami_though_every_seed_draws_its_own_labels():
    found = table({"ami": 0.38}, {"ami": 0.42, "seed": 1}).averaged()
    assert found.variables["ami"] == pytest.approx([0.4])


def test_single_tasks_have_no_ami_and_are_left_out_where_it_is_asked_for():
    rows = Observations.of([MODEL | {"seed": 0, "score": 0.5}, SINGLE | {"seed": 0, "score": 0.4}])
    averages = rows.averaged()
    X, y, left_out = averages.matrix(["n", "ami"])
    assert (X.tolist(), y.tolist(), left_out) == ([[1000, 0.4]], [0.5], 1)
    assert averages.matrix(["n"])[2] == 0


def test_an_ami_below_0_is_read_as_unrelated():
    assert table({"ami": -0.002}).averaged().matrix(["ami"])[0].tolist() == [[0]]


@pytest.mark.parametrize(("names", "said"), [(["mood"], "'mood'"), ([], "none"), (["n", "n"], "each once")])
def test_variables_that_are_not_there_are_refused(names, said):
    with pytest.raises(ConfigError, match=said):
        table({}).averaged().matrix(names)


# -- what is wrong with a file ---
def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = Observations.of([MODEL | {"seed": 0, "score": 0.5}, SINGLE | {"seed": 0, "score": 0.4, "source": "news"}])
    rows.write(tmp_path / "table.parquet")
    assert Observations.read(tmp_path / "table.parquet").table.equals(rows.table)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"score": None}, "there is no column 'score'"),
        ({"score": [0.5, 1.5]}, r"row 2, column 'score': 1\.5 is out of range.*from 0 to 1"),
        ({"score": [float("nan"), 0.5]}, r"row 1, column 'score'"),
        ({"score": [0.5, None]}, r"row 2, column 'score': it is empty"),
        ({"score": ["high", "low"]}, "column 'score' does not hold numbers"),
        ({"n": [0, 5]}, r"row 1, column 'n': 0 is out of range.*1 or more"),
        ({"n": [1000.5, 5]}, "column 'n' does not hold"),
        ({"ami": [0.4, None]}, r"row 2, column 'ami': it is empty"),
        ({"ami": [0.4, 1.01]}, r"row 2, column 'ami'"),
        ({"alpha": [0.4, -0.01]}, r"row 2, column 'alpha'"),
        ({"single": [False, True]}, r"row 2, column 'single': it is true with 3 tasks"),
        ({"architecture": ["shared", None]}, r"row 2, column 'architecture'"),
    ],
)
def test_a_bad_table_is_refused_by_file_row_and_column(tmp_path, columns, said):
    file = file_of(tmp_path, **columns)
    with pytest.raises(DataError, match=said) as refused:
        Observations.read(file)
    assert str(file) in str(refused.value)


def test_what_is_no_table_is_refused_by_its_name(tmp_path):
    (tmp_path / "text.parquet").write_text("n,score\n")
    for name, said in (("text.parquet", "no table"), ("none.parquet", "no such file"), (".", "folder")):
        with pytest.raises(DataError, match=said):
            Observations.read(tmp_path / name)


def test_a_row_with_a_strange_column_is_refused():
    with pytest.raises(DataError, match="row 1: there is no column 'f1'"):
        table({"f1": 0.5})
