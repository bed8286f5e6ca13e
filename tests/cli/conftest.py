"""What tests of the command line share."""

from __future__ import annotations

import sys

import pytest

from bursar.cli import main


@pytest.fixture
def bursar(capsys, monkeypatch, tmp_path):
    """Types a command in an empty folder; gives its exit code, what it printed, and what it printed as an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bursar", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
