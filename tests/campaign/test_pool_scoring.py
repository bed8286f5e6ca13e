"""Scoring in shards: the same bits wherever it is done, lost workers, runs that are killed in the middle."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bursar.annotation.round_worker import main as round_worker
from bursar.annotation.round_worker import next_round
from bursar.campaign import Run, load_config, pool_scoring, run_campaign
from bursar.campaign.models import SavedModel
from bursar.compute import THIS_PROCESS, ArrayStore, Processes
from bursar.errors import ConfigError, LearnerError
from bursar.selection import make_strategy
from tests.campaign.lives import answer_all, one_corpus, start  # noqa: F401
from tests.campaign.pools import STRATEGIES, Pool, assert_same, config_of, decisions
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(pool_scoring, "SHARD", 64)
    monkeypatch.setattr(pool_scoring, "FEW", 128)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return Pool(tmp_path_factory.mktemp("pool"))


@pytest.fixture(scope="module")
def two():
    with Processes(2) as engine:
        yield engine


@pytest.fixture(scope="module")
def whole(pool):
    """What the model says of the pool in one piece, here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_scoring, "SHARD", 10_000)
        return pool.all_answers(pool.scoring())


class Refusing:
    """An engine that must not be used."""

    workers = 2

    def worker_pool(self, on_report):
        raise AssertionError("few items are scored here")


# -- the same bits ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [30, 64, 97])
def test_shards_of_any_size_change_no_bit(pool, whole, monkeypatch, size):
    monkeypatch.setattr(pool_scoring, "SHARD", size)
    assert_same(pool.all_answers(pool.scoring()), whole)


def test_an_item_alone_has_the_confidence_that_it_has_among_others(pool, whole, monkeypatch):
    monkeypatch.setattr(pool_scoring, "SHARD", 1)
    some = pool.items.take(np.arange(60))
    for name in STRATEGIES:
        scored = pool.scoring().scores(pool.learner, make_strategy(name), some, seed=3)
        np.testing.assert_array_equal(scored.confidence, whole[f"{name} confidence"][:60])


def test_processes_change_no_bit_of_what_a_model_says(pool, whole, two):
    assert_same(pool.all_answers(pool.scoring(two)), whole)


def test_kept_shards_change_no_bit(pool, whole, two, tmp_path):
    assert_same(pool.all_answers(pool.scoring(two, tmp_path)), whole)
    assert_same(pool.all_answers(pool.scoring(Refusing(), tmp_path)), whole)


@pytest.mark.parametrize("strategy", [*STRATEGIES, "BADGE"])
def test_a_campaign_decides_the_same_with_every_engine(two, tmp_path, strategy):
    config = config_of(tiny_encoder(tmp_path / "encoder"), strategy)
    assert decisions(config, tmp_path / "two", two) == decisions(config, tmp_path / "here")


@pytest.mark.parametrize("learner", [{"name": "probe"}, {"name": "scikit"}, {"name": "aoe", "epochs": 2}])
def test_other_learners_are_scored_elsewhere_too(two, tmp_path, learner):
    if learner["name"] == "probe":
        learner = {**learner, "encoder": str(tiny_encoder(tmp_path / "encoder"))}
    config = config_of(tmp_path, learner=learner)
    assert decisions(config, tmp_path / "two", two) == decisions(config, tmp_path / "here")


# -- where and when --------------------------------------------------------------------------------------------------
def test_few_items_start_no_worker_and_leave_no_file(pool, tmp_path):
    some = pool.items.take(np.arange(128))
    scored = pool.scoring(Refusing(), tmp_path).scores(pool.learner, make_strategy("MT-AVG"), some, seed=0)
    assert scored.confidence.shape == (128, 2)
    assert not list(tmp_path.iterdir())


def test_no_items_have_no_scores(pool):
    scored = pool.scoring().scores(pool.learner, make_strategy("MT-AVG"), pool.items.take(np.arange(0)), seed=0)
    assert scored.confidence.shape == (0, 2)
    assert not scored.guesses


def test_a_model_is_loaded_once_and_the_next_takes_its_place(pool):
    first = pool.models.saved()
    learner = first.load()
    assert first.load() is learner
    files = {**first.files, "more.txt": b"other bytes, another model"}
    other = SavedModel(first.learner, first.options, first.tasks, files)
    assert other.digest != first.digest
    assert other.kind == first.kind
    assert other.load() is learner  # its encoder need not be read again


def test_a_worker_that_cannot_load_the_model_says_what_may_be_the_matter(pool):
    saved = pool.models.saved()
    other = SavedModel(saved.learner, {**saved.options, "batch_size": 3}, saved.tasks, saved.files)
    with pytest.raises(LearnerError, match=r"a worker cannot load the model: .*other tasks or settings.*precision"):
        other.load()


def test_a_model_that_was_removed_from_disk_is_written_again(pool, two, whole):
    shutil.rmtree(pool.models.folder)
    scored = pool.scoring(two).scores(pool.learner, make_strategy("MT-AVG"), pool.items, seed=3)
    np.testing.assert_array_equal(scored.confidence, whole["MT-AVG confidence"])


# -- progress and trouble --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["here", "two"])
def test_progress_comes_from_all_shards_and_ends_at_1(pool, where, two, monkeypatch):
    monkeypatch.setattr(pool_scoring, "SHARD", 150)
    told = []
    scoring = pool.scoring(two if where == "two" else THIS_PROCESS)
    scoring.scores(pool.learner, make_strategy("MT-AVG"), pool.items, 0, lambda *what: told.append(what))
    assert {what for what, _ in told} == {"scoring"}
    shares = [done for _, done in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > 2  # a shard is not all or nothing


def test_the_shard_of_a_worker_that_is_killed_is_scored_again(pool, whole, two):
    told = []

    def progress(what, done):
        told.append(what)
        if len(told) == 1:
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    scored = pool.scoring(two).scores(pool.learner, make_strategy("MT-AVG"), pool.items, 3, progress)
    np.testing.assert_array_equal(scored.confidence, whole["MT-AVG confidence"])
    again = [what for what in told if "again" in what]
    assert len(again) == 1
    assert "scoring, items" in again[0]
    assert "code -9" in again[0]


@pytest.mark.parametrize("where", ["here", "two"])
def test_finished_shards_are_not_scored_again_after_a_crash(pool, whole, two, tmp_path, where):
    engine = two if where == "two" else THIS_PROCESS

    def crash(what, done):
        if len(list(tmp_path.glob("*.npz"))) == 2:
            raise KeyboardInterrupt

    asked = (pool.learner, make_strategy("MT-AVG"), pool.items, 3)
    with pytest.raises(KeyboardInterrupt):
        pool.scoring(engine, tmp_path).scores(*asked, crash)
    kept = {unit["from"] for unit, _ in ArrayStore(tmp_path)}
    assert len(kept) == 2
    told = []
    scored = pool.scoring(THIS_PROCESS, tmp_path).scores(*asked, lambda *what: told.append(what))
    assert told[0] == ("scoring", 2 / 5)
    np.testing.assert_array_equal(scored.confidence, whole["MT-AVG confidence"])


def test_shards_of_another_model_or_seed_or_other_items_are_not_taken(pool, tmp_path):
    def scored_anew(strategy="MT-AVG", items=pool.items, seed=0, saved=pool.models.saved):
        before = len(list(tmp_path.iterdir()))
        scoring = pool_scoring.PoolScoring(saved, tmp_path)
        scoring.scores(pool.learner, make_strategy(strategy), items, seed)
        return len(list(tmp_path.iterdir())) - before

    saved = pool.models.saved()
    other = SavedModel(saved.learner, saved.options, saved.tasks, {**saved.files, "more": b""})
    assert scored_anew() == 5
    assert scored_anew() == 0
    assert scored_anew(seed=1) == 5
    assert scored_anew("COVER") == 5
    assert scored_anew(items=pool.items.take(np.arange(10, 300))) == 5
    assert scored_anew(saved=lambda: other) == 5


TOML = """
tasks = ["intent", "slots"]
[corpus]
items = 9000
dev_items = 20
test_items = 20
[budget]
seed_items = 30
per_round = 150
rounds = 1
[strategy]
name = "MT-AVG"
[learner]
encoder = "{encoder}"
epochs = 2
evaluate_every = 1
learning_rate = 0.01
[audit]
shadow = false
"""


def test_a_run_that_is_killed_while_scoring_goes_on_with_the_finished_shards(tmp_path, monkeypatch):
    toml, folder = tmp_path / "campaign.toml", tmp_path / "run"
    toml.write_text(TOML.format(encoder=tiny_encoder(tmp_path / "encoder")))
    command = [sys.executable, "-m", "bursar", "run", toml, "--run", folder, "--json", "--engine", "processes:2"]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 200
    while len(list(folder.glob("scoring/*.npz"))) < 2 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(list(folder.glob("scoring/*.npz")))
    assert kept >= 2, process.stderr.read().decode()
    monkeypatch.undo()  # the sizes are those of the command
    told = []
    began = pool_scoring._Watcher.begun
    monkeypatch.setattr(
        pool_scoring._Watcher, "begun", lambda self, *counts: (told.append(counts), began(self, *counts))
    )
    config = load_config(toml)
    with Run(folder, config).locked():  # whoever was killed is gone
        pass
    result = run_campaign(Run(folder, config))
    assert [stored for _, stored in told if stored] == [kept]
    assert not (folder / "scoring").exists()
    undisturbed = run_campaign(Run(tmp_path / "other", config))
    assert result.arms["MT-AVG"].selections == undisturbed.arms["MT-AVG"].selections


# -- the doors -------------------------------------------------------------------------------------------------------
def test_a_served_round_is_scored_by_the_engine_it_is_given(tmp_path, two, monkeypatch):
    used = []
    pool = two.worker_pool
    monkeypatch.setattr(two, "worker_pool", lambda on_report: (used.append(1), pool(on_report))[1])
    learner = {"name": "probe", "encoder": str(tiny_encoder(tmp_path / "encoder"))}
    live = start(tmp_path / "project", learner=learner, corpus={"items": 300, "dev": None, "test": None})
    answer_all(live)
    live.close()
    assert next_round(tmp_path / "project", lambda event: None, engine=two) == "opened"
    assert used


def test_an_unknown_engine_is_refused_before_a_round_or_a_project_is_opened(tmp_path, capfd):
    from bursar.web.app_state import AppState

    assert round_worker(["--engine", "threads", str(tmp_path)]) == 2
    assert "there is no engine 'threads'" in capfd.readouterr().out
    live = start(tmp_path / "project")
    live.close()
    with pytest.raises(ConfigError, match="there is no engine 'threads'"):
        AppState(tmp_path / "project", engine="threads")
