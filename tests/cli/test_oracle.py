"""``bursar oracle``: what it prints and leaves, what it refuses, and with which exit code."""

from __future__ import annotations

import json
import shutil
from multiprocessing import active_children
from pathlib import Path

import pytest

from bursar.campaign import Campaign, load_config
from bursar.cli.show import SearchDisplay
from bursar.learners import LEARNERS
from bursar.oracle import run_comparison
from tests.tiny import HashedEncoder, WordCounts

CAMPAIGN = """
tasks = ["intent"]
compare = ["RANDOM"]
[corpus]
items = 400
pool_items = 80
dev_items = 20
test_items = 30
[budget]
seed_items = 10
per_round = 90
rounds = 2
[strategy]
name = "MT-AVG"
[learner]
name = "word-counts"
"""
QUICK = ["--steps", "20", "--greedy-steps", "5"]
REACHED = "of the way from random to the best order found"


@pytest.fixture(autouse=True)
def small_things(monkeypatch):
    LEARNERS.add("word-counts", WordCounts)
    monkeypatch.setattr("bursar.oracle.probe.frozen_encoder", HashedEncoder)
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    yield
    LEARNERS._entries.pop("word-counts")


@pytest.fixture
def bursar(bursar):
    """This process alone knows the learner, so runs stay in it."""
    return lambda *arguments: bursar(*arguments, *(["--workers", "1"] if arguments[:1] == ("run",) else []))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a campaign and its finished run, to copy."""
    from bursar.campaign import Run, run_campaign

    folder = tmp_path_factory.mktemp("finished")
    (folder / "spring.toml").write_text(CAMPAIGN)
    LEARNERS.add("word-counts", WordCounts)
    run_campaign(Run(folder / "runs" / "spring", load_config(folder / "spring.toml")))
    LEARNERS._entries.pop("word-counts")
    return folder


@pytest.fixture
def here(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_help_helps(bursar):
    code, out, _ = bursar("oracle", "--help")
    assert code == 0
    assert "bursar oracle spring.toml" in out


def test_a_finished_run_gets_its_table_its_files_and_its_page(bursar, here):
    code, out, errors = bursar("oracle", "spring.toml", *QUICK)
    assert code == 0
    for words in ("20 random orders", "MT-AVG", "Best order found", "20 annealing steps", "5 greedy"):
        assert words in out
    assert "best" in errors
    assert json.loads((here / "runs/spring/oracle.json").read_text())["plan"]["steps"] == 20
    assert not (here / "runs/spring/oracle.state.json").exists()
    assert "How far from the best?" in (here / "runs/spring/report.html").read_text()


def test_saved_evaluations_are_printed_if_proposals_were_dropped(bursar, here, monkeypatch):
    update = SearchDisplay.update
    assert "were dropped" not in bursar("oracle", "spring.toml", *QUICK)[2]  # the probe judges all sets of one at once

    def dropping(self, state, plan):
        state.dropped, state.spared = 3, 7
        update(self, state, plan)

    monkeypatch.setattr(SearchDisplay, "update", dropping)
    errors = bursar("oracle", "spring.toml", *QUICK, "--seed", "5")[2]
    assert "3 were dropped before all their sets were judged, which saved 7 evaluations." in errors


def test_the_report_has_the_sentence_if_there_is_a_gap(bursar, here, monkeypatch):
    monkeypatch.setattr("bursar.oracle.comparison.OrderComparison.way", lambda self, part="test": 0.2)
    code, out, _ = bursar("oracle", "spring.toml", *QUICK)
    assert code == 0
    assert f"MT-AVG reached {out.split('MT-AVG reached ')[1].split(' ')[0]} {REACHED}" in out
    assert REACHED in (here / "runs/spring/report.html").read_text()


def test_a_runs_folder_will_do_and_the_page_may_go_elsewhere(bursar, here):
    first = json.loads(bursar("oracle", "spring.toml", *QUICK, "--json")[1])
    code, out, errors = bursar("oracle", "runs/spring", *QUICK, "--json", "--out", "page.html")
    second = json.loads(out)
    assert (code, errors) == (0, "")
    assert second.pop("page") == "page.html"
    assert second == {key: value for key, value in first.items() if key != "page"}
    assert "How far from the best?" in Path("page.html").read_text()
    assert json.loads(bursar("report", "runs/spring", "--json")[1])["oracle"]["seed"] == 0


def test_stopped_anywhere_it_goes_on_to_the_same_result(bursar, here, monkeypatch):
    whole = bursar("oracle", "runs/spring", *QUICK, "--json")[1]
    (here / "runs/spring/oracle.json").unlink()
    from bursar.cli import show

    def stop(display, state, plan):
        if state.step >= 12:
            raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(show.SearchDisplay, "update", stop)
        code, _, errors = bursar("oracle", "runs/spring", *QUICK)
    assert code == 1
    assert "run the same command again" in errors
    assert json.loads((here / "runs/spring/oracle.state.json").read_text())["state"]["step"] >= 12
    assert not (here / "runs/spring/oracle.json").exists()
    assert bursar("oracle", "runs/spring", *QUICK, "--json")[1] == whole


def test_networks_judge_the_same_in_other_processes_and_after_a_stop(bursar, here, monkeypatch):
    asked = ["oracle", "runs/spring", "--judge", "aoe", "--steps", "4", "--greedy-steps", "1"]
    whole = json.loads(bursar(*asked, "--engine", "here", "--json")[1])
    assert (whole["judge"], whole["plan"]["cooling"]) == ("aoe", 2_500 / 4)
    (here / "runs/spring/oracle.json").unlink()
    from bursar.cli import show

    def stop(display, state, plan):
        if state.step >= 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(show.SearchDisplay, "update", stop)
        assert bursar(*asked, "--engine", "processes:2")[0] == 1
    assert not active_children()
    assert json.loads((here / "runs/spring/oracle.state.json").read_text())["state"]["step"] >= 2
    assert json.loads(bursar(*asked, "--engine", "processes:2", "--json")[1]) == whole
    assert not active_children()
    assert "scored by AOE" in bursar(*asked)[1]


def test_the_probe_stays_where_it_is_and_says_so(bursar, here, monkeypatch):
    monkeypatch.setattr("bursar.compute.Processes.worker_pool", None)
    code, out, errors = bursar("oracle", "spring.toml", *QUICK, "--engine", "processes:2")
    assert code == 0
    assert "The probe runs in this process" in errors
    assert "scored by a probe" in out
    code, _, errors = bursar("oracle", "spring.toml", *QUICK, "--engine", "ray:127.0.0.2:1")
    assert code == 0


def test_the_judge_of_the_campaign_holds_unless_another_is_given(bursar, here):
    (here / "spring.toml").write_text(CAMPAIGN + '[oracle]\nsteps = 2\ncooling = 7.0\njudge = "aoe"\nengine = "here"\n')
    found = json.loads(bursar("oracle", "spring.toml", "--json")[1])
    assert (found["judge"], found["plan"]["cooling"]) == ("aoe", 7.0)
    found = json.loads(bursar("oracle", "spring.toml", "--judge", "probe", "--json")[1])
    assert (found["judge"], found["plan"]["cooling"]) == ("probe", 50_000 / 2)  # γ = 7 was meant for the other


def test_the_campaigns_own_settings_hold_unless_others_are_given(bursar, here):
    (here / "spring.toml").write_text(CAMPAIGN + "[oracle]\nsteps = 8\ngreedy_steps = 1\ncooling = 2\n")
    plan = json.loads(bursar("oracle", "spring.toml", "--json")[1])["plan"]
    assert plan == {"steps": 8, "greedy_steps": 1, "cooling": 2.0}
    plan = json.loads(bursar("oracle", "spring.toml", "--json", "--steps", "10")[1])["plan"]
    assert plan == {"steps": 10, "greedy_steps": 2, "cooling": 5000.0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.toml"], "none.toml"),
        (["."], "is not the folder of a run"),
        (["spring.toml", "--run", "elsewhere"], "bursar run spring.toml --run elsewhere"),
        (["runs/spring", "--run", "elsewhere"], "elsewhere"),
        (["spring.toml", "--steps", "-1"], "--steps"),
        (["spring.toml", "--steps", "many"], "--steps"),
        (["spring.toml", "--greedy-steps", "-1"], "--greedy-steps"),
        (["spring.toml", "--cooling", "-0.1"], "--cooling = -0.1"),
        (["spring.toml", "--cooling", "nan"], "--cooling = nan"),
        (["spring.toml", "--seed", "-1"], "--seed"),
        (["spring.toml", "--out", "."], "--out . is a folder"),
        (["other.toml"], "seed was 0, now 3"),
        (["more.toml"], "strategies"),
        (["bad.toml"], "bad.toml: oracle.stepz is no key"),
        (["low.toml"], "low.toml: oracle.steps = -4"),
        (["spring.toml", "--judge", "prope"], "use probe, aoe, cnn, lstm, tagger"),
        (["spring.toml", "--judge", ""], "no judge ''"),
        (["spring.toml", "--judge", "tagger"], "'tagger' cannot judge intent"),
        (["spring.toml", "--engine", "threads"], "no engine 'threads'"),
        (["spring.toml", "--engine", "processes:0"], "0 processes are too few"),
        (["judge.toml"], "judge.toml: oracle: there is no judge 'prope'"),
        (["engine.toml"], "engine.toml: oracle: there is no engine 'threads'"),
    ],
)
def test_bad_input_exits_with_2_names_what_is_wrong_and_leaves_nothing(bursar, here, arguments, said):
    (here / "other.toml").write_text('name = "spring"\nseed = 3\n' + CAMPAIGN)
    (here / "more.toml").write_text('name = "spring"\n' + CAMPAIGN.replace('["RANDOM"]', '["RANDOM", "MT-MIN"]'))
    (here / "bad.toml").write_text('name = "spring"\n' + CAMPAIGN + "[oracle]\nstepz = 4\n")
    (here / "low.toml").write_text('name = "spring"\n' + CAMPAIGN + "[oracle]\nsteps = -4\n")
    (here / "judge.toml").write_text('name = "spring"\n' + CAMPAIGN + '[oracle]\njudge = "prope"\n')
    (here / "engine.toml").write_text('name = "spring"\n' + CAMPAIGN + '[oracle]\nengine = "threads"\n')
    before = sorted(here.rglob("*"))
    code, out, errors = bursar("oracle", *arguments)
    assert code == 2
    assert said in errors
    assert "Traceback" not in errors + out
    assert sorted(path for path in here.rglob("*") if path.name != "run.lock") == [
        path for path in before if path.name != "run.lock"
    ]


def test_a_campaign_that_was_never_run_is_refused_with_the_command(bursar, tmp_path):
    (tmp_path / "autumn.toml").write_text(CAMPAIGN)
    code, _, errors = bursar("oracle", "autumn.toml")
    assert code == 2
    assert "runs/autumn is not the folder of a run" in errors
    assert "bursar run autumn.toml" in errors
    assert not (tmp_path / "runs").exists()


def test_an_unfinished_run_is_refused_with_the_command(bursar, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "autumn.toml").write_text(CAMPAIGN)
    with monkeypatch.context() as stopping:
        stopping.setattr("bursar.campaign.Campaign.run", stopped)
        bursar("run", "autumn.toml")
    code, _, errors = bursar("oracle", "autumn.toml")
    assert code == 2
    assert "not finished" in errors
    assert "with: bursar run autumn.toml" in errors


def test_a_live_campaign_is_refused(bursar, tmp_path):
    (tmp_path / "live.toml").write_text(CAMPAIGN)
    campaign = Campaign(load_config(tmp_path / "live.toml"), tmp_path / "runs" / "live")
    campaign.ask()
    campaign.close()
    for target in ("live.toml", "runs/live"):
        code, _, errors = bursar("oracle", target)
        assert code == 2
        assert "annotated by people" in errors


def test_a_run_with_an_oracle_section_ends_with_the_search(bursar, here):
    (here / "spring.toml").write_text(CAMPAIGN + "[oracle]\nsteps = 8\n")
    code, out, _ = bursar("run", "spring.toml")
    assert code == 0
    assert "best order found" in out
    assert "How far from the best?" in (here / "runs/spring/report.html").read_text()
