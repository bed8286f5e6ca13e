"""Studies from the command line: listed, run, stopped, gone on with, and shown."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from experiments.bench import harness
from experiments.display import UnitsDisplay, naming, stage_of
from experiments.studies.findings import Answer, Cell, Findings, Table
from experiments.studies.study import STUDIES, Results, Study

ARMS = ("MT-R", "MT-AVG")
TRAP = "stop-here"  # a file in the folder of the runs: whoever finds it is interrupted


def grid(scale):
    seeds = 2 if scale == "small" else 3
    return [{"strategy": arm, "seed": seed, "setup": {"pool": 9}} for seed in range(seeds) for arm in ARMS]


def work(unit, tell, *, place):
    with open(place.runs / "ran.txt", "a") as diary:
        diary.write(f"{unit['strategy']} {unit['seed']}\n")
    if unit["seed"] == 1 and (place.runs / TRAP).exists():
        raise KeyboardInterrupt
    tell((1, "training", 0.5))
    return {"score": 70.0 + 5 * ARMS.index(unit["strategy"]) + unit["seed"], "seconds": 2.0}


def analyse(runs, scale):
    scores = {arm: [run["result"]["score"] for run in runs if run["unit"]["strategy"] == arm] for arm in ARMS}
    rows = {arm: [Cell(sum(found) / len(found), None, 80.0)] for arm, found in scores.items() if found}
    answer = Answer("Q1", "Is choosing better than luck?", "yes", "Five points in every run.", "It is.")
    return Findings("Choosing wins.", [answer], [Table("Table 1", "scores", ["intent"], rows)])


@pytest.fixture(autouse=True)
def luck():
    STUDIES.add("luck", Study("luck", "Choosing and luck", "paper 9, section 1", grid, work, analyse))
    yield
    STUDIES._entries.pop("luck")


def times_run(folder="runs/studies"):
    """How often each unit was begun."""
    lines = (Path(folder) / "ran.txt").read_text().splitlines()
    return {line: lines.count(line) for line in lines}


EVERY_UNIT_ONCE = {"MT-R 0": 1, "MT-AVG 0": 1, "MT-R 1": 1, "MT-AVG 1": 1}


# -- running ----------------------------------------------------------------------------------------------------------
def test_a_study_runs_in_processes_and_run_again_runs_no_unit_again(command):
    code, _, errors = command("run", "luck", "--engine", "processes:2")
    assert code == 0
    assert times_run() == EVERY_UNIT_ONCE
    assert "4 of 4 done" in errors
    code, _, errors = command("run", "luck", "--engine", "processes:2")
    assert code == 0
    assert times_run() == EVERY_UNIT_ONCE
    assert "4 of 4 done (4 from before)" in errors
    Path("experiments/results/luck.json").unlink()  # either the file or the folder is enough to go on from
    assert command("run", "luck", "--engine", "here")[0] == 0
    assert times_run() == EVERY_UNIT_ONCE


def test_at_the_end_it_says_what_was_answered_and_where_everything_is(command):
    code, out, _ = command("run", "luck", "--engine", "here")
    assert code == 0
    assert "Choosing wins." in out
    for words in ("Q1 Is choosing better than luck?", "yes", "Five points in every run."):
        assert words in out
    assert "Results: experiments/results/luck.json" in out
    assert "Report: runs/studies/luck/report.html" in out
    assert "Choosing and luck" in Path("runs/studies/luck/report.html").read_text(encoding="utf-8")


def test_the_command_that_is_kept_is_what_a_user_types_and_names_no_folder(command, tmp_path):
    command(
        "run",
        "luck",
        "--engine",
        "here",
        "--data",
        tmp_path,
        "--runs",
        tmp_path / "work",
        "--out",
        tmp_path / "kept.json",
    )
    assert Results.read(tmp_path / "kept.json").command == "python -m experiments run luck --scale small"
    assert str(tmp_path) not in (tmp_path / "kept.json").read_text()
    assert str(tmp_path) not in (tmp_path / "work/luck/report.html").read_text(encoding="utf-8")


def test_some_seeds_can_be_run_first(command):
    code, out, _ = command("run", "luck", "--engine", "here", "--seeds", "1")
    assert code == 0
    assert times_run() == {"MT-R 1": 1, "MT-AVG 1": 1}
    assert "Not finished: 2 of 4 units; seed 1 whole." in out
    command("run", "luck", "--engine", "here")
    assert times_run() == EVERY_UNIT_ONCE


def test_scales_have_files_of_their_own(command):
    assert command("run", "luck", "--engine", "here", "--scale", "paper")[0] == 0
    assert len(Results.read(Path("experiments/results/luck-paper.json")).runs) == 6
    assert Path("runs/studies/luck/report-paper.html").exists()
    assert not Path("experiments/results/luck.json").exists()


def test_machines_get_one_json_object_and_the_report_gives_the_same(command):
    code, out, errors = command("run", "luck", "--engine", "here", "--json")
    found = json.loads(out)
    assert (code, errors) == (0, "")
    assert found["units"] == {"finished": 4, "all": 4}
    assert (found["seeds"], found["seconds"]) == ([0, 1], 8.0)
    assert found["findings"]["answers"][0]["verdict"] == "yes"
    reported = json.loads(command("report", "luck", "--json")[1])
    assert {**reported, "results": found["results"], "page": found["page"]} == found


def test_stopping_exits_with_1_keeps_what_is_finished_and_the_same_command_goes_on(command):
    Path("runs/studies").mkdir(parents=True)
    Path("runs/studies", TRAP).touch()
    code, _, errors = command("run", "luck", "--engine", "here")
    assert code == 1
    assert "2 of 4 units are finished and saved" in errors
    assert "run the same command again to resume" in errors
    assert len(Results.read(Path("experiments/results/luck.json")).runs) == 2
    Path("runs/studies", TRAP).unlink()
    assert command("run", "luck", "--engine", "here")[0] == 0
    assert times_run() == EVERY_UNIT_ONCE | {"MT-R 1": 2}  # it was stopped in the middle of that one


# -- asking -----------------------------------------------------------------------------------------------------------
def test_the_list_says_what_there_is(command, tmp_path):
    command("run", "luck", "--engine", "here", "--seeds", "0")
    (tmp_path / "data/atis").mkdir(parents=True)
    code, out, _ = command("list", "--json")
    found = {study["name"]: study for study in json.loads(out)["studies"]}
    assert code == 0
    assert found["granularity"]["data"] == {"atis": True, "snips": False}
    assert found["luck"]["source"] == "paper 9, section 1"
    (there,) = found["luck"]["results"]
    assert there["units"] == {"finished": 2, "all": 4}
    assert (there["scale"], there["seeds"], there["whole_seeds"]) == ("small", [0], [0])


def test_the_list_for_people_shows_the_same(command):
    command("run", "luck", "--engine", "here", "--seeds", "0")
    code, out, _ = command("list")
    assert code == 0
    assert "Choosing and luck (paper 9, section 1)" in out
    assert "small: 2 of 4 units, seeds 0" in out
    assert "snips (not found)" in out


def test_a_damaged_file_of_results_does_not_spoil_the_list(command):
    Path("experiments/results").mkdir(parents=True)
    Path("experiments/results/luck.json").write_text("{")
    code, out, _ = command("list")
    assert code == 0
    assert "experiments/results/luck.json is not a valid results file" in out


def test_the_help_names_every_command(command):
    code, out, _ = command("--help")
    assert code == 0
    assert all(name in out for name in ("list", "run", "report", "bench", "laws"))
    code, out, _ = command("run", "--help")
    assert code == 0
    assert "--engine" in out


def test_a_page_can_be_written_from_a_file_of_results_to_any_place(command, tmp_path):
    command("run", "luck", "--engine", "here", "--out", "kept.json")
    code, out, _ = command("report", "luck", "--results", "kept.json", "--out", "page.html")
    assert (code, out.strip()) == (0, "Report: page.html")
    assert "Table 1" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "luk"], "did you mean 'luck'?"),
        (["report", "luk"], "did you mean 'luck'?"),
        (["report", "luck"], "python -m experiments run luck"),
        (["report", "granularity", "--results", "kept.json"], "results of study luck"),
        (["report", "luck", "--results", "none.json"], "none.json"),
        (["run", "luck", "--scale", "huge"], "small or paper"),
        (["run", "luck", "--seeds", "0,7"], "no seed '7'"),
        (["run", "luck", "--seeds", "all"], "no seed 'all'"),
        (["run", "luck", "--engine", "steam"], "no engine 'steam'"),
        (["run", "granularity"], "needs atis, snips"),
        (["--fast"], "--fast"),
        (["bench", "speed"], "no benchmark 'speed'"),
        (["bench", "selection", "--case", "none"], "greedy-1m"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(command, arguments, said):
    Results("luck", "small", "python -m experiments run luck", [], 4).write(Path("kept.json"))
    code, out, errors = command(*arguments)
    assert code == 2
    assert said in " ".join(errors.split())
    assert "Traceback" not in errors + out


# -- watching ---------------------------------------------------------------------------------------------------------
def display_on(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)
    return UnitsDisplay("luck, small scale", grid("small"), 2, console), console


def shown(display):
    console = Console(file=io.StringIO(), width=100)
    console.print(display.render())
    return console.file.getvalue()


def test_a_running_unit_is_shown_by_what_it_is_with_its_round_and_stage():
    display, _ = display_on(terminal=True)
    first, second, *_ = grid("small")
    display.begun(4, 1)
    display.reported(first, (2, "training", 0.43))
    display.reported(second, (0, "scoring", 0.1))
    text = shown(display)
    assert "MT-R · seed 0" in text
    assert "round 2: training" in text
    assert "MT-AVG · seed 0" in text
    assert "round 0: scoring" in text
    display.finished(first, {}, 30.0)
    display.retried(second, "its process ended with code -9")
    text = shown(display)
    assert "MT-R · seed 0" not in text
    assert "2 of 4 done (1 from before) · 2 running · 1 tried again · 30 s per unit · 30 s left" in text


def test_without_a_terminal_there_are_plain_lines_and_a_flood_of_units_is_no_flood_of_lines():
    display, console = display_on(terminal=False)
    units = [{"seed": seed} for seed in range(500)]
    with display:
        display.begun(len(units), 0)
        for unit in units:
            display.reported(unit, (1, "training", 0.5))
            display.finished(unit, {}, 0.001)
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert "500 of 500 done" in text.splitlines()[-1]
    assert len(text.splitlines()) < 10


def test_names_and_stages_are_read_from_whatever_units_are_and_tell():
    units = [{"data": "ewt:email", "weights": {"relations": share}, "trust": share == 1} for share in (0.25, 1.0)]
    name = naming(units)
    assert [name(unit) for unit in units] == ["relations 0.25", "relations 1 · trust"]
    assert naming(units[:1])(units[0]) == "the only unit"
    assert stage_of(("loading", 0.5)) == ("loading", 0.5)
    assert stage_of({"odd": 1}) == ("{'odd': 1}", None)
    assert stage_of((1, "training", 7)) == ("round 1: training", 1.0)


# -- benchmarks --------------------------------------------------------------------------------------------------------
def test_benchmarks_print_one_line_a_case(command, monkeypatch):
    quick = harness.Case("quick", "nothing against nothing", lambda: (lambda: None, lambda: None), repeats=1)
    monkeypatch.setattr("experiments.bench.selection.CASES", [quick])
    code, out, _ = command("bench", "selection", "--json")
    assert code == 0
    line = json.loads(out)
    assert line["case"] == "selection/quick"
    assert {"ours", "theirs", "ratio", "unit"} <= set(line)
