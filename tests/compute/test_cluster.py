"""Units on a Ray cluster of two nodes, both on this machine, one of which is killed in the end."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest

from bursar.compute import ComputeError, ResultStore, make_engine, run_units
from bursar.errors import ConfigError
from tests.compute.nodes import MISSING, await_both
from tests.compute.study import ANSWER, alive, await_the_middle, pids, start
from tests.compute.works import gated_square, node, runs, settings, troubled

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


def await_nobody(folder):
    """Until those are gone who were in the middle of a unit; others may wait for more to do."""
    busy = pids(folder, range(4, 8))
    for _ in range(200):
        if not any(alive(pid) for pid in busy):
            return
        time.sleep(0.1)
    raise AssertionError(f"still at work: {[pid for pid in busy if alive(pid)]}")


def is_connected():
    import ray

    return ray.is_initialized()


@pytest.fixture(scope="module")
def cluster(nodes):
    with make_engine(nodes.doors["direct"]) as engine:
        await_both(engine)
        yield engine
    assert not is_connected()


class Diary:
    def __init__(self, at_finished=lambda count: None):
        self.words, self.done, self.retries = [], [], []
        self.at_finished = at_finished

    def begun(self, total, stored):
        pass

    def reported(self, unit, what):
        assert unit["x"] not in self.done
        self.words.append(what)

    def finished(self, unit, result, seconds):
        self.done.append(unit["x"])
        self.at_finished(len(self.done))

    def retried(self, unit, why):
        self.retries.append((unit["x"], why))


def test_nobody_at_an_address_is_told_at_once(nodes):
    assert not is_connected()
    with pytest.raises(ConfigError, match=r"no Ray cluster can be reached at 127.0.0.2:1: .*ray start --head"):
        make_engine("ray:127.0.0.2:1").workers


def test_through_a_client_server_results_and_words_arrive_and_are_kept(nodes, tmp_path):
    diary, store, work = Diary(), ResultStore(tmp_path / "store"), partial(node, tmp_path)
    units = [{"x": x, "seconds": 0.5} for x in range(6)]
    with make_engine(nodes.doors["client"]) as engine:
        await_both(engine)
        results = run_units(work, units, engine=engine, store=store, watcher=diary)
        assert run_units(work, units, engine=engine, store=store) == results
        with pytest.raises(ConfigError, match="unit 7 is wrong"):
            run_units(partial(troubled, tmp_path), [{"x": 7, "trouble": "wrong", "times": 9}], engine=engine)
    assert not is_connected()
    assert [result["square"] for result in results] == [x**2 for x in range(6)]
    assert {result["node"] for result in results} == {"127.0.0.2", "127.0.0.3"}
    assert sorted(diary.words) == [["node", x] for x in range(6)]
    assert runs(tmp_path) == {**dict.fromkeys(range(6), 1), 7: 1}


def test_units_run_on_every_node_and_their_words_arrive(cluster, tmp_path):
    diary = Diary()
    units = [{"x": x, "seconds": 0.5} for x in range(6)]
    results = run_units(partial(node, tmp_path), units, engine=cluster, watcher=diary)
    assert [result["square"] for result in results] == [x**2 for x in range(6)]
    assert {result["node"] for result in results} == {"127.0.0.2", "127.0.0.3"}
    assert sorted(diary.words) == [["node", x] for x in range(6)]
    assert runs(tmp_path) == dict.fromkeys(range(6), 1)


def test_a_unit_on_a_node_has_one_thread(cluster):
    assert run_units(settings, [{"torch": False}], engine=cluster) == [[1, 1, 1]]


def test_a_killed_worker_is_told_and_its_unit_run_again_as_often_as_allowed(cluster, tmp_path):
    work, diary = partial(troubled, tmp_path), Diary()
    assert run_units(work, [{"x": 3, "trouble": "killed", "times": 1}], engine=cluster, watcher=diary) == [9]
    ((x, why),) = diary.retries
    assert x == 3
    assert "WorkerCrashedError" in why
    with pytest.raises(ComputeError, match=r'"x": 4.*tried once and given up'):
        run_units(work, [{"x": 4, "trouble": "killed", "times": 9}], engine=cluster, retries=0)
    assert runs(tmp_path) == {3: 2, 4: 1}


def test_an_error_on_a_node_comes_with_its_traceback(cluster, tmp_path):
    with pytest.raises(ConfigError, match="unit 1 is wrong") as raised:
        run_units(partial(troubled, tmp_path), [{"x": 1, "trouble": "wrong", "times": 9}], engine=cluster)
    assert "in troubled" in raised.value.__notes__[0]


def test_a_ray_that_is_started_is_used_and_left_alone(cluster):
    assert run_units(settings, [{"torch": False}], engine=make_engine("ray")) == [[1, 1, 1]]
    assert is_connected()


def test_an_interrupted_call_leaves_nobody_at_work_on_a_cluster_that_stays(cluster, tmp_path):
    def interrupt(count):
        if count == 4:
            await_the_middle(tmp_path, 2)
            raise KeyboardInterrupt

    work, store = partial(gated_square, tmp_path), ResultStore(tmp_path / "store")
    with pytest.raises(KeyboardInterrupt):
        run_units(work, [{"x": x} for x in range(8)], engine=cluster, store=store, watcher=Diary(interrupt))
    await_nobody(tmp_path)
    assert len(runs(tmp_path)) == 6  # those that waited were never begun
    assert is_connected()


@pytest.mark.parametrize("door", ["direct", "client"])
def test_ctrl_c_keeps_what_is_finished_and_leaves_nobody_at_work(nodes, cluster, tmp_path, door):
    study = start(tmp_path, nodes.doors[door])
    await_the_middle(tmp_path, 2, study)
    os.killpg(study.pid, signal.SIGINT)
    said = study.communicate(timeout=30)[1]
    # What Ray's client imports at exit makes Python 3.11 forget that it should end by the signal: then it is 1.
    assert study.returncode == -signal.SIGINT or (door, study.returncode) == ("client", 1), said
    assert said.count("Traceback") == said.count("KeyboardInterrupt") == 1, said
    await_nobody(tmp_path)
    store = ResultStore(tmp_path / "store")
    assert {unit["x"] for unit, _ in store} == {0, 1, 2, 3}
    before = runs(tmp_path)
    assert list(before.values()) == [1] * 6  # those that waited were never begun
    (tmp_path / "go").touch()
    results = run_units(partial(gated_square, tmp_path), [{"x": x} for x in range(8)], engine=cluster, store=store)
    assert repr(results) == ANSWER
    assert runs(tmp_path) == {x: before.get(x, 0) + (x >= 4) for x in range(8)}


def test_when_a_node_is_killed_all_units_finish_and_no_finished_one_is_run_again(nodes, cluster, tmp_path):
    before = []

    def kill_the_worker(count):
        if count == 3:
            before.extend(diary.done)
            nodes.kill("worker")

    units = [{"x": x, "seconds": 0.7} for x in range(8)]
    diary, store, work = Diary(kill_the_worker), ResultStore(tmp_path / "store"), partial(node, tmp_path)
    results = run_units(work, units, engine=cluster, store=store, watcher=diary)
    assert [result["square"] for result in results] == [x**2 for x in range(8)]
    assert sorted(diary.done) == list(range(8))
    again = {x for x, times in runs(tmp_path).items() if times > 1}
    assert len(before) == 3
    assert not again & set(before)
    assert again <= {x for x, _ in diary.retries}
    counted = runs(tmp_path)
    assert run_units(work, units, engine=cluster, store=store) == results
    assert runs(tmp_path) == counted


@pytest.mark.parametrize(("engine", "missing"), [("ray", "ray"), ("ray://h:1", "grpc")])
def test_what_is_not_installed_is_named_with_the_way_to_it(monkeypatch, engine, missing):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else True)
    with pytest.raises(ConfigError, match=rf"needs {missing}, .*bursar\[cluster\]"):
        make_engine(engine)
