"""Tests that need what a machine may not have are skipped by its name, and fail where it must be there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import NEEDS, lacking, module_for

HOME = Path(__file__).parents[1]
A_BROWSER_TEST = "experiments/tests/studies/test_page.py::test_a_phone_is_not_too_narrow"


def test_what_is_lacking_is_skipped_by_name_or_fails_where_it_must_be_there(monkeypatch):
    monkeypatch.delenv(NEEDS, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no chromium here"):
        lacking("chromium", "no chromium here")
    with pytest.raises(pytest.skip.Exception, match="no such module"):
        module_for("chromium", "bursar.nothing", "no such module")
    monkeypatch.setenv(NEEDS, "postgresql,chromium")
    with pytest.raises(pytest.fail.Exception, match=f"no chromium here, and {NEEDS} says"):
        lacking("chromium", "no chromium here")
    with pytest.raises(pytest.fail.Exception, match="no such module"):
        module_for("postgresql", "bursar.nothing", "no such module")
    with pytest.raises(pytest.skip.Exception):
        lacking("label-studio", "no Label Studio here")


@pytest.mark.parametrize(("needs", "code", "said"), [("", 0, "SKIPPED"), ("chromium", 1, "ERROR")])
def test_on_a_machine_without_chromium_browser_tests_are_skipped_unless_it_must_be_there(tmp_path, needs, code, said):
    command = [sys.executable, "-m", "pytest", "-rsE", "-p", "no:cacheprovider", A_BROWSER_TEST]
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path), NEEDS: needs, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=HOME, env=bare, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout
    assert "there is no chromium on this machine" in done.stdout


def test_ci_says_what_must_be_there():
    said = (HOME / ".ci" / "run").read_text()
    assert f"{NEEDS}=chromium,postgresql" in said
    assert os.access(HOME / ".ci" / "run", os.X_OK)
