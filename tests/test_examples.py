"""Every script in examples/ runs as it is, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SAYS = {  # a part of what each prints
    "ask_and_tell.py": "the budget is spent",
    "compare_strategies.py": "Report: runs/compare/report.html",
    "own_spreadsheet.py": "{'model': 240, 'person annotator': 60}",
    "own_strategy.py": "LONG-AND-UNSURE+BLP_AL",
    "select_with_own_scores.py": "1000 True",
    "split_budget.py": "largest loss if one estimate is wrong",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_is_short_and_runs_as_it_is(script, tmp_path):
    lines = script.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 30
    assert lines[0].startswith('"""')
    places = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert SAYS[script.name] in done.stdout
    assert "Warning" not in done.stderr


def test_every_example_is_known():
    assert [script.name for script in SCRIPTS] == sorted(SAYS)
