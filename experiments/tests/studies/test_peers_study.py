"""The table of the front page is the committed result, and the result is of the jobs as they are now."""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

import pytest

from bursar.corpus import read
from bursar.simulation import assistant_corpus
from experiments.bench.peers.environments import dependencies
from experiments.studies.peers import BURSAR, FINE_TUNED, JOBS, SCRIPTS, front_page_table, grid, write_job
from experiments.studies.study import Results

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "experiments" / "results" / "peers.json"


@pytest.fixture(scope="module")
def found():
    return Results.read(RESULTS)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_front_page_shows_the_committed_result(found, page):
    assert front_page_table(found.runs) in (ROOT / page).read_text(encoding="utf-8")


def test_every_library_did_the_job_with_every_seed(found):
    assert [run["unit"] for run in found.runs] == grid("small")


def test_the_lines_that_are_counted_are_those_of_the_jobs_as_they_are(found):
    for run in found.runs:
        tree = ast.parse((SCRIPTS / f"{JOBS[run['unit']['library']].script}.py").read_text())
        (job,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "job"]
        written = {line for node in ast.walk(job) if hasattr(node, "lineno") for line in (node.lineno, node.end_lineno)}
        docstring = job.body[0]
        inside = [line for line in written if not docstring.lineno <= line <= docstring.end_lineno]
        assert len(inside) <= run["result"]["lines"] <= job.end_lineno - job.lineno + 1


@pytest.mark.parametrize("library", [name for name in JOBS if name not in (BURSAR, FINE_TUNED)])
def test_a_peer_runs_in_the_version_that_its_name_tells(library):
    name, version = library.lower().split()
    pins = {pin.lower() for pin in dependencies(SCRIPTS / f"{JOBS[library].script}.py") if "==" in pin}
    assert {f"{name}=={version}", f"{name}-python=={version}"} & pins


def test_all_libraries_of_a_seed_are_given_the_same_pool_and_start(tmp_path):
    corpus = assistant_corpus(300, seed=1).with_tasks(["intent"])
    unit = {"seed": 3, "pool": 60, "start": 10, "rounds": 2, "per_round": 5}
    given = [json.loads(write_job(unit, corpus, folder).read_text()) for folder in _folders(tmp_path, 2)]
    assert given[0]["start"] == given[1]["start"]
    assert len(set(given[0]["start"])) == 10
    rows = [list(csv.DictReader(Path(job["pool"]).read_text().splitlines())) for job in given]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 60
    assert len(read(given[0]["test"], text="text", labels={"intent": "label"})) == len(corpus.split("test"))


def _folders(place: Path, count: int) -> list[Path]:
    folders = [place / str(number) for number in range(count)]
    for folder in folders:
        folder.mkdir()
    return folders
