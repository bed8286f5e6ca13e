"""Units of work: in order, each once, retried where that helps, and never run again when they are finished."""

from __future__ import annotations

import json
import os
import signal
from functools import partial

import numpy as np
import pytest

from bursar.compute import (
    THIS_PROCESS,
    ArrayStore,
    ComputeError,
    Processes,
    ResultStore,
    address,
    make_engine,
    run_units,
    split_evenly,
)
from bursar.errors import ConfigError
from tests.compute.works import Unpacked, runs, settings, square, total, troubled, unsendable, where, with_large


class Diary:
    """A watcher that writes everything down."""

    def __init__(self):
        self.pages = []

    def begun(self, total, stored):
        self.pages.append(("begun", total, stored))

    def reported(self, unit, what):
        self.pages.append(("reported", unit["x"], what))

    def finished(self, unit, result, seconds):
        self.pages.append(("finished", unit["x"], result))

    def retried(self, unit, why):
        self.pages.append(("retried", unit["x"], why))


@pytest.fixture(params=["here", "processes:2"])
def engine(request):
    return make_engine(request.param)


@pytest.fixture(scope="module")
def two():
    """Two processes that the tests of this file share."""
    with Processes(2) as engine:
        yield engine


def expected(numbers):
    return [{"square": x**2, "third": x / 3} for x in numbers]


def test_results_come_in_the_order_of_the_units_and_equal_units_run_once(tmp_path, engine):
    numbers = [5, 3, 5, 1, 3]
    assert run_units(partial(square, tmp_path), [{"x": x} for x in numbers], engine=engine) == expected(numbers)
    assert runs(tmp_path) == {5: 1, 3: 1, 1: 1}


def test_a_watcher_is_told_everything_in_order(tmp_path, engine):
    diary = Diary()
    store = ResultStore(tmp_path / "store")
    work = partial(square, tmp_path)
    store.put(address(work, {"x": 9}), {"x": 9}, "known")
    run_units(work, [{"x": 9}, {"x": 2}, {"x": 2}], engine=engine, store=store, watcher=diary)
    report = ("reported", 2, ("squaring", 2))
    assert diary.pages == [("begun", 2, 1), report, ("finished", 2, expected([2])[0])]


def test_no_units_need_no_workers(engine):
    assert run_units(settings, [], engine=engine) == []


# -- the store ------------------------------------------------------------------------------------------------------
def test_a_finished_unit_is_never_run_again(tmp_path, engine):
    work, store = partial(square, tmp_path), ResultStore(tmp_path / "store")
    run_units(work, [{"x": 1}, {"x": 2}], engine=engine, store=store)
    results = run_units(work, [{"x": x} for x in range(4)], engine=engine, store=store)
    assert results == expected(range(4))
    assert runs(tmp_path) == dict.fromkeys(range(4), 1)


def test_a_result_that_is_none_is_a_result(tmp_path):
    store = ResultStore(tmp_path)
    store.put("1f", {}, None)
    assert "1f" in store
    assert store.get("1f", "default") is None


@pytest.mark.parametrize("damage", [b"", b'{"unit": {"x"', b"\0" * 40, b"[]", b'{"unit": {}}', b"\xff\xfe"])
def test_a_damaged_result_is_run_again(tmp_path, damage):
    work, store = partial(square, tmp_path), ResultStore(tmp_path / "store")
    run_units(work, [{"x": 1}, {"x": 2}], store=store)
    (tmp_path / "store" / f"{address(work, {'x': 2})}.json").write_bytes(damage)
    assert run_units(work, [{"x": 1}, {"x": 2}], store=store) == expected([1, 2])
    assert runs(tmp_path) == {1: 1, 2: 2}
    assert len(list(store)) == 2


def test_fresh_and_stored_results_are_the_same(tmp_path):
    def work(unit, tell):
        return (1, 0.1 + 0.2, float("inf"), {2: None})

    work.__qualname__ = "work"
    fresh, stored = (run_units(work, [{}], store=ResultStore(tmp_path)) for _ in range(2))
    assert fresh == stored == [[1, 0.1 + 0.2, float("inf"), {"2": None}]]


def test_a_store_holds_what_the_result_is_of_and_nothing_else(tmp_path):
    run_units(partial(square, tmp_path), [{"x": 3}], store=ResultStore(tmp_path / "store"))
    (path,) = (tmp_path / "store").iterdir()
    assert json.loads(path.read_text()) == {"unit": {"x": 3}, "result": expected([3])[0]}


def test_a_store_tells_a_result_it_cannot_hold(tmp_path):
    with pytest.raises(TypeError, match=r"the result of \{'x': 1\} is not JSON"):
        ResultStore(tmp_path).put("1f", {"x": 1}, {1, 2})
    assert list(tmp_path.iterdir()) == []


def test_the_address_is_of_the_function_and_the_unit_and_not_of_folders(tmp_path):
    here = address(square, {"x": 1, "of": ["a"]})
    assert here == address(partial(partial(square, tmp_path)), {"of": ("a",), "x": 1})
    assert len({here, address(square, {"x": 2, "of": ["a"]}), address(where, {"x": 1, "of": ["a"]})}) == 3
    with pytest.raises(TypeError, match="JSON"):
        address(square, {"x": {1}})


def test_results_of_a_function_without_a_name_are_not_stored(tmp_path):
    with pytest.raises(TypeError, match="lambda"):
        run_units(lambda unit, tell: 1, [{}], store=ResultStore(tmp_path))


# -- arrays ---------------------------------------------------------------------------------------------------------
def test_a_unit_is_filled_only_when_it_is_about_to_run_and_its_arrays_are_kept(tmp_path, engine):
    filled = []

    def fill(unit):
        filled.append(unit["x"])
        return {**unit, "array": np.arange(unit["x"], dtype=np.float32)}

    store, units = ArrayStore(tmp_path), [{"x": x} for x in range(4)]
    run_units(total, units[:2], engine=engine, store=store, fill=fill)
    results = run_units(total, units, engine=engine, store=store, fill=fill)
    assert filled == [0, 1, 2, 3]
    assert [result["sum"].tolist() for result in results] == [[0], [0], [1], [3]]
    assert all(result["array"].dtype == np.float32 for result in results)
    assert sorted(unit["x"] for unit, _ in store) == [0, 1, 2, 3]


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "no zip"])
def test_damaged_arrays_are_not_there(tmp_path, damage):
    store = ArrayStore(tmp_path)
    store.put("1f", {"x": 1}, {"array": np.arange(1000)})
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    middle = len(whole) // 2
    changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    file.write_bytes({"empty": b"", "cut": whole[:middle], "changed": changed, "no zip": b"0" * 99}[damage])
    assert "1f" not in store
    assert list(store) == []


def test_a_store_of_arrays_neither_writes_nor_runs_objects(tmp_path):
    store = ArrayStore(tmp_path)
    with pytest.raises(TypeError, match="not an array of numbers or strings"):
        store.put("1f", {}, {"object": np.array([Unpacked(str(tmp_path))], dtype=object)})
    np.savez(tmp_path / "2e.npz", unit=np.array("{}"), array=np.array([Unpacked(str(tmp_path))], dtype=object))
    assert store.get("2e") is None
    assert not list(tmp_path.glob("unpacked.*"))


# -- trouble --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("trouble", "why"),
    [("killed", "ended with code -9"), ("exit", "ended with code 7"), ("disk", "OSError: the disk is away")],
)
def test_a_unit_that_is_lost_is_run_again_and_the_others_are_not(tmp_path, two, trouble, why):
    units = [{"x": x, "trouble": trouble, "times": 2 * (x == 1)} for x in range(5)]
    diary = Diary()
    store = ResultStore(tmp_path / "store")
    results = run_units(partial(troubled, tmp_path), units, engine=two, store=store, watcher=diary)
    assert results == [x**2 for x in range(5)]
    assert runs(tmp_path) == {0: 1, 1: 3, 2: 1, 3: 1, 4: 1}
    retried = [page for page in diary.pages if page[0] == "retried"]
    assert [x for _, x, _ in retried] == [1, 1]
    assert all(why in reason for _, _, reason in retried)


def test_want_of_memory_is_tried_again_in_this_process_too(tmp_path):
    unit = {"x": 3, "trouble": "memory", "times": 1}
    assert run_units(partial(troubled, tmp_path), [unit], engine=THIS_PROCESS) == [9]


def test_a_unit_that_is_lost_every_time_is_named_after_all_others_have_run(tmp_path, two):
    units = [{"x": x, "trouble": "killed", "times": 9 * (x == 1)} for x in range(4)]
    store = ResultStore(tmp_path / "store")
    with pytest.raises(ComputeError, match=r'"x": 1.*tried 3 times and given up.*ended with code -9') as raised:
        run_units(partial(troubled, tmp_path), units, engine=two, store=store)
    assert "memory" in raised.value.fix
    assert sorted(unit["x"] for unit, _ in store) == [0, 2, 3]


def test_an_error_that_stays_is_raised_as_it_is(tmp_path, engine):
    with pytest.raises(OSError, match="the disk is away"):
        run_units(partial(troubled, tmp_path), [{"x": 1, "trouble": "disk", "times": 9}], engine=engine, retries=1)
    assert runs(tmp_path) == {1: 2}


@pytest.mark.parametrize(("trouble", "error"), [("wrong", ConfigError), ("odd", RuntimeError)])
def test_any_other_error_is_raised_at_once_with_its_traceback(tmp_path, two, trouble, error):
    with pytest.raises(error) as raised:
        run_units(partial(troubled, tmp_path), [{"x": 1, "trouble": trouble, "times": 9}], engine=two)
    assert runs(tmp_path) == {1: 1}
    notes = "\n".join(raised.value.__notes__)
    assert "works.py" in notes
    assert "in troubled" in notes
    assert '"x": 1' in notes


def test_an_error_in_this_process_names_its_unit(tmp_path):
    with pytest.raises(ConfigError) as raised:
        run_units(partial(troubled, tmp_path), [{"x": 1, "trouble": "wrong", "times": 9}])
    assert '"x": 1' in raised.value.__notes__[0]


def test_work_or_results_that_cannot_be_sent_are_told(two):
    with pytest.raises(ConfigError, match="top of a module"):
        run_units(lambda unit, tell: 1, [{}], engine=two)
    with pytest.raises(Exception, match="pickle"):
        run_units(unsendable, [{}], engine=two)


# -- processes ------------------------------------------------------------------------------------------------------
def test_a_process_takes_unit_after_unit(tmp_path):
    pids = run_units(partial(where, tmp_path), [{"x": x} for x in range(12)], engine=Processes(2))
    assert os.getpid() not in pids
    assert len(set(pids)) == 2
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_processes_of_an_entered_engine_serve_every_call(tmp_path):
    with Processes(1) as engine:
        first, second = (run_units(partial(where, tmp_path), [{"x": 1}], engine=engine)[0] for _ in range(2))
        os.kill(first, signal.SIGKILL)
        third = run_units(partial(where, tmp_path), [{"x": 1}], engine=engine)[0]
    assert first == second != third
    with pytest.raises(ProcessLookupError):
        os.kill(third, 0)


def test_the_work_is_sent_to_a_process_once_and_not_with_every_unit(tmp_path):
    large = Unpacked(str(tmp_path))
    with Processes(1) as engine:
        for units in ([{"x": 1}, {"x": 2}, {"x": 3}], [{"x": 4}]):
            run_units(partial(with_large, large), units, engine=engine)
    assert len(list(tmp_path.glob("unpacked.*"))) == 1


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 2), (3, 1), (8, 1)])
def test_the_cores_are_shared_out_among_the_workers(monkeypatch, workers, threads):
    monkeypatch.setattr("bursar.compute.processes.cores", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    # torch never takes more threads than there are real cores, however many it is allowed
    (found,) = run_units(settings, [{"torch": workers == 3}], engine=Processes(workers))
    assert set(found) == {threads}
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ


# -- names, shards --------------------------------------------------------------------------------------------------
def test_engines_are_found_by_name():
    assert make_engine("here") is THIS_PROCESS
    assert make_engine("processes:3").workers == 3
    assert make_engine("processes", workers=5).workers == 5
    assert make_engine("processes").workers >= 1
    for text, workers in [("threads", None), ("processes:x", None), ("processes:0", None), ("processes:2", 3)]:
        with pytest.raises(ConfigError, match="Fix: "):
            make_engine(text, workers)
    with pytest.raises(ConfigError, match="choose processes:4"):
        make_engine("here", 4)


def test_shards_hold_everything_once_in_order_and_none_is_empty():
    for count in range(20):
        for shards in range(1, 8):
            cuts = split_evenly(count, shards)
            assert [i for cut in cuts for i in range(count)[cut]] == list(range(count))
            sizes = [cut.stop - cut.start for cut in cuts]
            assert len(cuts) == min(count, shards)
            assert not sizes or (min(sizes) >= 1 and max(sizes) - min(sizes) <= 1)
