"""What tests of the experiments share."""

from __future__ import annotations

import sys

import pytest

from bursar.cli import run_app
from experiments.__main__ import app


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Types a command in an empty folder; gives its exit code, what it printed, and what it printed as an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "320")
    monkeypatch.setenv("BURSAR_DATA", str(tmp_path / "data"))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run_app(app)
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
