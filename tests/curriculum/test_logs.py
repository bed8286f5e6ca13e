"""Logs of training steps: what is written is what is read, and what cannot be learned from is refused with its row."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.curriculum import Course, StepLog, make_policy
from bursar.curriculum.logs import read_logs
from bursar.errors import ConfigError, DataError

TASKS = ("intent", "slots", "urgency")


def some_log(steps=20, seed=0, tasks=TASKS, after=True):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(len(tasks)), steps)
    return StepLog(
        tasks,
        tuple(range(10, 10 + len(tasks))),
        steps + 5,
        rng.integers(len(tasks), size=steps),
        probabilities,
        rng.exponential(size=steps),
        rng.exponential(size=steps) if after else None,
        make_policy("exp3s").describe(),
        seed,
    )


def assert_same(first, second):
    for field in fields(StepLog):
        if field.name != "earned":
            a, b = getattr(first, field.name), getattr(second, field.name)
            assert type(a) is type(b), field.name
            assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b, field.name


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 50), st.integers(0, 10**6), st.booleans())
def test_what_is_written_is_what_is_read(tmp_path_factory, steps, seed, after):
    file = tmp_path_factory.mktemp("logs") / "a.parquet"
    log = some_log(steps, seed, after=after)
    log.write(file)
    assert_same(StepLog.read(file), log)


def test_a_file_has_the_columns_that_are_promised(tmp_path):
    log = some_log()
    log.write(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["step", "task", "probability", "loss", "loss_after", "reward", "probabilities"]
    assert table["step"].to_pylist() == list(range(20))
    assert table["task"].to_pylist() == [TASKS[at] for at in log.taken]
    assert table["probability"].to_pylist() == log.probability.tolist()
    assert table["reward"].to_pylist() == log.rewards("improving").tolist()
    some_log(after=False).write(tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet")["loss_after"].null_count == 20


def test_the_same_log_is_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        some_log(seed=3).write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_log_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    some_log(seed=1).write(tmp_path / "a.parquet")
    old = (tmp_path / "a.parquet").read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        some_log(seed=2).write(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == old
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_log_knows_the_course_that_it_is_of():
    assert some_log(seed=7).course == Course(TASKS, (10, 11, 12), 25, 7)


# -- rewards ---
def test_rewards_are_those_of_equation_16():
    """A task's first step earns nothing; a later one 1 - exp(-loss) if its loss has fallen since."""
    taken, before = np.array([0, 1, 0, 0, 1, 0]), np.array([2.0, 1.0, 1.5, 1.5, 1.2, 0.5])
    log = StepLog(("a", "b"), (1, 1), 6, taken, np.full((6, 2), 0.5), before)
    np.testing.assert_allclose(log.rewards(), [0, 0, 1 - np.exp(-1.5), 0, 0, 1 - np.exp(-0.5)])


def test_a_reward_that_needs_what_was_not_measured_says_so():
    with pytest.raises(ConfigError, match="needs the loss after every step"):
        some_log(after=False).rewards("prediction-gain")
    log = some_log()
    np.testing.assert_allclose(log.rewards("prediction-gain"), log.before - log.after)


# -- several logs ---
def test_logs_whose_tasks_stand_in_another_order_are_put_into_that_of_the_first(tmp_path):
    first, second = some_log(seed=1), some_log(seed=2)
    turned = second.in_order_of(("urgency", "intent", "slots"))
    first.write(tmp_path / "1.parquet")
    turned.write(tmp_path / "2.parquet")
    found = read_logs([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert_same(found[0], first)
    assert_same(found[1], second)
    assert turned.tasks == ("urgency", "intent", "slots")
    assert turned.sizes == (12, 10, 11)
    for name in ("improving", "prediction-gain"):
        np.testing.assert_array_equal(turned.rewards(name), second.rewards(name))
    np.testing.assert_array_equal(turned.probability, second.probability)


def test_logs_of_other_tasks_are_refused_with_both_files(tmp_path):
    some_log().write(tmp_path / "1.parquet")
    some_log(tasks=("intent", "mood")).write(tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet: its tasks are intent, mood, but .*1\.parquet are intent"):
        read_logs([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    with pytest.raises(DataError, match="there is no log"):
        read_logs([])


# -- what is refused ---
def damaged(column, change):
    """A log's table with one column changed, or left out."""

    def damage(table):
        place = table.column_names.index(column)
        if change is None:
            return table.remove_column(place)
        values = change(table[column].to_pylist())
        return table.set_column(place, column, pa.array(values))

    return damage


def at_row(row, value):
    return lambda values: [*values[: row - 1], value, *values[row:]]


def metadata(**changes):
    def damage(table):
        about = json.loads(table.schema.metadata[b"bursar"]) | changes
        return table.replace_schema_metadata({b"bursar": json.dumps(about)})

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damaged("probabilities", None), "no column 'probabilities'"),
        (damaged("task", None), "no column 'task'"),
        (damaged("loss", None), "no column 'loss'"),
        (damaged("step", None), "no column 'step'"),
        (
            damaged("probabilities", lambda rows: [[0.0, 0.0, 1.0]] * len(rows)),
            "row 1: task 'slots' was trained with a probability of 0",
        ),
        (damaged("probabilities", at_row(4, [0.5, 0.5, 0.5])), "row 4: its probabilities .* do not sum to 1"),
        (damaged("probabilities", at_row(4, [1.5, -1.0, 0.5])), "row 4: its probabilities"),
        (damaged("probabilities", at_row(4, [0.5, float("nan"), 0.5])), "row 4: its probabilities"),
        (damaged("probabilities", at_row(4, [0.5, None, 0.5])), "row 4: its probabilities"),
        (damaged("probabilities", at_row(6, [0.5, 0.5])), "row 6: it has 2 probabilities for 3 tasks"),
        (damaged("probabilities", at_row(6, None)), "row 6: it has 0 probabilities"),
        (damaged("probabilities", lambda rows: [0.5] * len(rows)), "'probabilities' does not hold lists"),
        (damaged("probabilities", lambda rows: [["a", "b", "c"]] * len(rows)), "does not hold lists of numbers"),
        (damaged("task", at_row(3, "mood")), "row 3: its task is 'mood', and the tasks are intent, slots, urgency"),
        (damaged("task", at_row(3, None)), "row 3: its task is None"),
        (damaged("loss", at_row(20, float("nan"))), "row 20: the loss is not a number"),
        (damaged("loss", at_row(2, float("inf"))), "row 2: the loss is not a number"),
        (damaged("loss", at_row(2, None)), "row 2: the loss is not a number"),
        (damaged("loss", at_row(2, -0.5)), "row 2: the loss is -0.5, which is not a negative log-likelihood"),
        (damaged("loss", lambda rows: ["low"] * len(rows)), "the column 'loss' is not numeric"),
        (damaged("loss_after", at_row(9, float("nan"))), "row 9: the loss after is not a number"),
        (damaged("loss_after", at_row(9, None)), "row 9: the loss after is not a number"),
        (damaged("step", at_row(5, 2)), "row 5: step 2 is not in order"),
        (lambda table: table.slice(0, 0), "the log has no steps"),
        (lambda table: table.replace_schema_metadata(None), "its metadata lacks the tasks"),
        (metadata(tasks=["intent", "slots"]), "its metadata lacks"),
        (metadata(tasks=["intent", "slots", "slots"]), "its metadata lacks"),
        (metadata(sizes="many"), "its metadata lacks"),
        (metadata(planned=None), "its metadata lacks"),
        (metadata(policy="exp3s"), "its metadata lacks"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_the_file_and_the_row(damage, said, tmp_path):
    log = some_log(seed=2)
    log = replace(log, taken=np.where(np.arange(20) == 0, 1, log.taken))
    log.write(tmp_path / "a.parquet")
    pq.write_table(damage(pq.read_table(tmp_path / "a.parquet")), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=rf"bad\.parquet: .*{said}"):
        StepLog.read(tmp_path / "bad.parquet")


@pytest.mark.parametrize("content", [b"", b"step,task\n0,intent\n", b"PAR1" + bytes(50) + b"PAR1"])
def test_what_is_no_parquet_file_is_refused_by_name(content, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.parquet: it is no log of training steps in Parquet"):
        StepLog.read(tmp_path / "bad.parquet")


def test_a_log_that_was_cut_off_is_refused_by_name(tmp_path):
    some_log().write(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-200])
    with pytest.raises(DataError, match=r"a\.parquet"):
        StepLog.read(tmp_path / "a.parquet")


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"none\.parquet: there is no such file"):
        StepLog.read(tmp_path / "none.parquet")
