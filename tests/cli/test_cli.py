"""The command line: what it prints, what it refuses, and with which exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command

from bursar.cli import app
from bursar.learners import LEARNERS
from tests.same import differences
from tests.small_disk import small_disk
from tests.tiny import WordCounts

CAMPAIGN = """
tasks = ["intent", "slots"]
compare = ["RANDOM"]
[corpus]
items = 400
dev_items = 20
test_items = 30
[budget]
seed_items = 15
per_round = 150
rounds = 2
[strategy]
name = "MT-AVG"
[learner]
name = "word-counts"
"""

SCHEMA = {"intent": {"kind": "classification", "labels": ["a", "b"]}, "slots": {"kind": "tagging", "labels": ["t"]}}
JSONL = (
    json.dumps({"bursar": 1, "tasks": SCHEMA})
    + """
{"id": "1", "split": "train", "text": "wake me at seven", "labels": {"intent": "a", "slots": [[3, 4, "t"]]}}
{"id": "2", "split": "train", "text": "play jazz", "labels": {"intent": "b"}}
{"id": "3", "split": "test", "text": "stop", "group": "doc"}
"""
)


@pytest.fixture(autouse=True)
def word_counts():
    LEARNERS.add("word-counts", WordCounts)
    yield
    LEARNERS._entries.pop("word-counts")


@pytest.fixture
def bursar(bursar):
    """This process alone knows the learner, so runs stay in it."""

    def run(*arguments):
        alone = ["--workers", "1"] if arguments[:1] == ("run",) and not {"--help", "--workers"} & {*arguments} else []
        return bursar(*arguments, *alone)

    return run


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(JSONL)
    return path


@pytest.fixture
def campaign(tmp_path):
    path = tmp_path / "spring.toml"
    path.write_text(CAMPAIGN)
    return path


@pytest.mark.parametrize(
    "command", [[], ["data"], ["data", "stats"], ["data", "convert"], ["run"], ["report"], ["demo"], ["bench"]]
)
def test_every_command_has_help(bursar, command):
    code, out, _ = bursar(*command, "--help")
    assert code == 0
    assert "Usage" in out


def _commands(command, path=()):
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from _commands(part, (*path, name))


def test_help_shows_what_is_in_brackets_and_no_type_of_flags(bursar):
    for path, command in _commands(get_command(app)):
        code, out, _ = bursar(*path, "--help")
        assert (code, "<bool" in out) == (0, False), path
        shown = " ".join(out.replace("│", " ").split())
        texts = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
        for part in {part for text in texts for part in re.findall(r"\[[^\]]+\]", text)} - {"[bold]", "[/bold]"}:
            assert part in shown, (path, part)


def test_the_version_is_printed(bursar):
    code, out, _ = bursar("--version")
    assert (code, out.split()[0]) == (0, "bursar")


def test_stats_count_items_tasks_and_labels(bursar, data):
    code, out, _ = bursar("data", "stats", data, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["items"] == {"train": 2, "test": 1}
    assert found["groups"] == {"train": 0, "test": 1}
    assert found["total"] == 3
    assert found["tasks"]["intent"] == {
        "kind": "classification",
        "counted": "label",
        "annotated": {"train": 2, "test": 0},
        "labels": {"a": 1, "b": 1},
    }
    assert found["tasks"]["slots"]["labels"] == {"t": 1}


def test_stats_for_people_show_the_same(bursar, data):
    code, out, _ = bursar("data", "stats", data)
    assert code == 0
    assert "labelled for intent" in out


def test_the_built_in_corpus_has_stats_too(bursar):
    code, out, _ = bursar("data", "stats", "builtin", "--set", "items=200", "--json")
    assert code == 0
    assert json.loads(out)["total"] == 200


def test_data_sets_are_listed_with_their_formats(bursar, data, tmp_path):
    (tmp_path / "notes.bin").write_bytes(b"\x00\x01")
    code, out, _ = bursar("data", "list", tmp_path, "--json")
    assert code == 0
    assert {(d["name"], d["format"]) for d in json.loads(out)["data"]} == {("builtin", "builtin"), (str(data), "jsonl")}


def test_converting_there_and_back_gives_the_same_corpus(bursar, data, tmp_path):
    from bursar.corpus import read

    assert bursar("data", "convert", data, tmp_path / "again.jsonl", "--to", "jsonl")[0] == 0
    assert not differences(read(data), read(tmp_path / "again.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["data", "stats", "none.jsonl"], "no such file"),
        (["data", "stats", "data.jsonl", "--format", "conl"], "conll"),
        (["data", "stats", "data.jsonl", "--set", "speed=9"], "speed"),
        (["data", "stats", "data.jsonl", "--set", "speed"], "key=value"),
        (["data", "stats", "builtin", "--set", "items=many"], "items=many"),
        (["data", "list", "nowhere"], "nowhere"),
        (["data", "convert", "data.jsonl", "x", "--to", "pdf"], "pdf"),
        (["run", "none.toml"], "none.toml"),
        (["report", "nowhere"], "holds no run"),
        (["run", "spring.toml", "--seed", "-1"], "seed"),
        (["fly"], "fly"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(bursar, data, campaign, arguments, said):
    code, out, errors = bursar(*arguments)
    assert code == 2
    assert said in errors
    assert "Traceback" not in errors + out


def test_a_bad_line_is_named(bursar, tmp_path):
    (tmp_path / "bad.jsonl").write_text(JSONL + '{"id": "4", "text": "x", "labels": {"intent": "c"}}\n')
    code, _, errors = bursar("data", "stats", "bad.jsonl")
    assert code == 2
    assert "bad.jsonl:5: item '4': task 'intent': unknown label 'c'" in errors


def test_a_breakdown_exits_with_1_and_no_traceback(bursar, data, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr("bursar.cli.data.corpus_stats", broken)
    code, _, errors = bursar("data", "stats", data)
    assert code == 1
    assert "a bug" in errors
    assert "Traceback" not in errors


def test_stopping_exits_with_1_and_says_how_to_go_on(bursar, campaign, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bursar.campaign.Campaign.run", stopped)
    code, _, errors = bursar("run", campaign)
    assert code == 1
    assert "run the same command again" in errors


def test_a_campaign_runs_shows_its_rounds_and_leaves_a_page(bursar, campaign, tmp_path):
    code, out, errors = bursar("run", campaign)
    assert code == 0
    assert (tmp_path / "runs/spring/report.html").exists()
    assert "mean score" in out
    assert errors.count("RANDOM") >= 3
    assert "MT-AVG" in errors


def test_a_campaign_for_machines_prints_one_json_object(bursar, campaign):
    code, out, _ = bursar("run", campaign, "--json")
    result = json.loads(out)
    assert code == 0
    assert [r["round"] for r in result["arms"]["MT-AVG"]["rounds"]] == [0, 1, 2]
    assert json.loads(bursar("report", "runs/spring", "--json")[1]) == result


def test_a_finished_run_is_not_run_again_and_fresh_starts_again(bursar, campaign):
    first = json.loads(bursar("run", campaign, "--json")[1])
    assert json.loads(bursar("run", campaign, "--json")[1]) == first
    assert json.loads(bursar("run", campaign, "--json", "--fresh")[1]) == first


def test_changed_settings_do_not_go_into_an_old_run(bursar, campaign):
    bursar("run", campaign, "--json")
    code, _, errors = bursar("run", campaign, "--json", "--seed", "5")
    assert code == 2
    assert "seed was 0, now 5" in errors


def test_fresh_does_not_remove_a_folder_that_is_no_run(bursar, campaign, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    code, _, _ = bursar("run", campaign, "--run", "precious", "--fresh")
    assert code == 2
    assert (tmp_path / "precious" / "thesis.txt").exists()


def test_a_report_of_a_run_can_be_written_elsewhere(bursar, campaign, tmp_path):
    bursar("run", campaign, "--json")
    code, out, _ = bursar("report", "runs/spring", "--out", tmp_path / "page.html")
    assert code == 0
    assert (tmp_path / "page.html").exists()
    assert "page.html" in out


@pytest.mark.parametrize("name", ["study", "bench"])
def test_commands_that_moved_say_where_to(bursar, name):
    code, out, errors = bursar(name, "savings", "--json")
    assert (code, out) == (2, "")
    assert "python -m experiments" in errors


def test_tasks_can_be_left_out_and_renamed_on_the_way(bursar, data, tmp_path):
    arguments = ["--tasks", "slots", "--rename", "slots=entities", "--to", "jsonl"]
    assert bursar("data", "convert", data, tmp_path / "other.jsonl", *arguments)[0] == 0
    code, out, _ = bursar("data", "stats", tmp_path / "other.jsonl", "--json")
    assert code == 0
    assert list(json.loads(out)["tasks"]) == ["entities"]


@pytest.mark.parametrize("campaign", ["/dev/null", "empty.toml", "cut.toml", "."])
def test_what_is_no_campaign_is_not_run(bursar, tmp_path, campaign):
    (tmp_path / "empty.toml").touch()
    (tmp_path / "cut.toml").write_text('tasks = ["intent", "slo')
    before = sorted(tmp_path.iterdir())
    code, _, err = bursar("run", campaign)
    assert code == 2
    assert f"bursar: {campaign} is " in err
    assert "name at least the tasks" in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_strategy_beside_that_the_learner_cannot_serve_stops_the_run_before_it_begins(bursar, tmp_path):
    (tmp_path / "spring.toml").write_text(
        'tasks = ["intent"]\ncompare = ["RANDOM", "BALD"]\n[learner]\nname = "scikit"\n'
    )
    for fresh in ([], ["--fresh"]):
        code, _, err = bursar("run", "spring.toml", *fresh)
        assert code == 2
        assert "spring.toml: strategy BALD needs dropout passes, which the learner 'scikit' does not give" in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--engine", "threads"], "there is no engine 'threads'. Fix: choose one of: here, processes"),
        (["--engine", "processes:0"], "0 processes are too few"),
        (["--engine", "ray://127.0.0.1:1"], "no Ray cluster can be reached at ray://127.0.0.1:1"),
        (["--engine", "processes:2", "--workers", "2"], "remove --workers or --engine"),
    ],
)
def test_an_engine_that_cannot_be_used_is_refused_before_anything_is_cleared(bursar, tmp_path, more, complaint):
    (tmp_path / "small.toml").write_text(CAMPAIGN)
    assert bursar("run", tmp_path / "small.toml", "--json")[0] == 0
    before = sorted((tmp_path / "runs" / "small").iterdir())
    code, _, said = bursar("run", tmp_path / "small.toml", "--fresh", *more)
    assert code == 2
    assert complaint in said
    assert sorted((tmp_path / "runs" / "small").iterdir()) == before


def test_a_run_goes_on_with_another_engine_and_its_settings_are_the_same(bursar, tmp_path):
    (tmp_path / "small.toml").write_text(CAMPAIGN)
    first = bursar("run", tmp_path / "small.toml", "--json")
    assert bursar("run", tmp_path / "small.toml", "--json", "--engine", "processes:2") == first


def test_help_of_the_command_line_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['bursar', '--help']; from bursar.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_full_disk_is_named_and_nothing_is_left_on_it(bursar, tmp_path):
    (tmp_path / "m.csv").write_text("id,text\n" + "".join(f"{n},where is order {n}\n" for n in range(40)))
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        disk.fill()
        new = ("--from", "m.csv", "--tasks", "intent:classification:a,b", "--budget", "0.3", "--yes")
        for command in (("new", "disk/project", *new), ("data", "convert", "m.csv", "disk/m.xlsx", "--to", "xlsx")):
            code, _, said = bursar(*command)
            assert (code, "internal error" in said, "free space on the disk" in said) == (1, False, True)
        assert [path.name for path in disk.folder.iterdir()] == ["filler"]


def test_columns_that_a_format_has_no_place_for_are_named(bursar, tmp_path):
    (tmp_path / "m.csv").write_text("id,text,Agent\n1,where is it,Ann\n2,stop,Bob\n")
    code, _, said = bursar("data", "convert", "m.csv", "there.jsonl", "--to", "doccano")
    assert (code, said.strip()) == (0, "Left out, as doccano holds no columns of your own: Agent")
    assert bursar("data", "convert", "m.csv", "there.xlsx", "--to", "xlsx")[2] == ""
