"""docs/guides/extending.md, followed literally: every file on that page works as it is written there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(heading: str, language: str = "python") -> list[str]:
    """The files under a heading of the page."""
    page = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [code for found, code in BLOCK.findall(section) if found == language]


@pytest.fixture
def place(tmp_path):
    """A folder with a copy of the package; files that are put next to it are found first."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def put(path: Path, code: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")


def run(place: Path, *command: str) -> str:
    found = os.pathsep.join(str(folder) for folder in (place / "src", place, ROOT / "src", ROOT))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def contract(place: Path, suite: str, name: str) -> None:
    """Run a contract suite on what was added; its name is in the name of every test on it."""
    out = run(
        place, "-m", "pytest", f"tests/contracts/{suite}.py", "-k", name, "-m", "not soak", "-p", "no:cacheprovider"
    )
    assert re.search(r"\d+ passed", out), out


# -- in the repository -----------------------------------------------------------------------------------------------
def test_a_task_kind_is_one_file_with_a_widget_and_an_example(place):
    kind, example = blocks("A task kind")
    put(place / "src/bursar/tasks/multilabel.py", kind)
    put(place / "src/bursar/web/static/annotate/multilabel.js", blocks("A task kind", "js")[0])
    put(place / "tests/tasks/test_multilabel.py", example)
    contract(place, "test_tasks", "multilabel")
    out = run(place, "-c", EVERYWHERE)
    assert out.splitlines() == [
        "/static/annotate/multilabel.js",
        "[['a', 'c'], []]",
        "the learner 'probe' cannot train 'topics' (multilabel)",
    ]


EVERYWHERE = """
from pathlib import Path
from tempfile import TemporaryDirectory
from bursar.annotation.projects import task_of
from bursar.corpus import CorpusBuilder, read, write
from bursar.errors import LearnerError
from bursar.learners import make_learner
from bursar.web.pages import widget_path

task = task_of("topics:multilabel:a,b,c")
print(widget_path(task))
builder = CorpusBuilder({"topics": task.describe()})
for id, labels in (("u1", ["a", "c"]), ("u2", [])):
    builder.add(id, text="play jazz", labels={"topics": labels})
with TemporaryDirectory() as folder:
    write(builder.build(), Path(folder), "label-studio")
    print([item.labels["topics"] for item in read(folder)])
try:
    make_learner("probe", {"topics": task}, {})
except LearnerError as wrong:
    print(wrong.message)
"""


def test_a_format_is_one_file_with_a_contract(place):
    code, contract_of_it = blocks("A format")
    put(place / "src/bursar/corpus/formats/fasttext.py", code)
    put(place / "tests/corpus/test_fasttext.py", contract_of_it)
    contract(place, "test_formats", "fasttext")


def test_a_learner_is_one_file(place):
    (code,) = blocks("A learner")
    put(place / "src/bursar/learners/catalog/frequencies.py", code)
    contract(place, "test_learners", "frequencies")


def test_a_study_is_one_file(tmp_path):
    from experiments.studies.arms import Place
    from experiments.studies.study import STUDIES, run_study

    (code,) = blocks("A study")
    exec(compile(code, "test_sizes.py", "exec"), {"__name__": "test_sizes"})
    study = STUDIES["test-sizes"]
    out = tmp_path / "test-sizes.json"
    results = run_study(study, scale="small", place=Place(tmp_path, tmp_path), out=out, command="run test-sizes")
    assert results.complete
    errors = [row[0].ours for row in results.findings().tables[0].rows.values()]
    assert errors[1] < errors[0] < 0.2


# -- in a package of one's own ---------------------------------------------------------------------------------------
def test_entry_points_are_found_and_a_campaign_runs_on_them(tmp_path):
    scores, picks = blocks("A strategy")
    put(tmp_path / "my_package/__init__.py", "")
    put(tmp_path / "my_package/frequencies.py", blocks("A learner")[0])
    put(tmp_path / "my_package/strategies.py", scores + "\n\n" + picks)
    put(tmp_path / "my_package/measures.py", blocks("A confidence measure")[0])
    page = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
    (declared,) = [code for language, code in BLOCK.findall(page) if language == "toml"]
    points = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", declared).replace('"', "") + MORE_POINTS
    put(tmp_path / "my_package-1.dist-info/entry_points.txt", points)
    put(tmp_path / "my_package-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    put(tmp_path / "campaign.toml", CAMPAIGN)
    out = run(tmp_path, "-m", "bursar", "run", f"{tmp_path}/campaign.toml", "--run", f"{tmp_path}/run", "--json")
    assert list(json.loads(out)["arms"]) == ["BARGAIN", "LONG-AND-UNSURE"]
    out = run(tmp_path, "-c", "from bursar.uncertainty import MEASURES; print(MEASURES['squared-margin'].name)")
    assert out.strip() == "squared-margin"


MORE_POINTS = """
[bursar.strategies]
LONG-AND-UNSURE = my_package.strategies:long_and_unsure
BARGAIN = my_package.strategies:bargain
[bursar.measures]
squared-margin = my_package.measures:squared_margin
"""
CAMPAIGN = """
tasks = ["intent", "slots"]
compare = ["LONG-AND-UNSURE"]
corpus = { items = 200 }
budget = { seed_items = 10, per_round = 100, rounds = 2 }
strategy = { name = "BARGAIN" }
learner = { name = "frequencies" }
"""
