"""What ``import bursar`` shows, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import bursar


def test_every_public_name_is_there_with_an_example_that_runs():
    """The examples run with the other doctests (``make test``)."""
    assert set(bursar.__all__) == set(bursar._HOMES)
    assert 25 <= len(bursar.__all__) <= 30
    without = [name for name in bursar.__all__ if ">>> " not in (getattr(bursar, name).__doc__ or "")]
    assert without == []


def test_importing_bursar_is_quick_and_brings_no_torch():
    code = (
        "import time; start = time.perf_counter(); import bursar; took = time.perf_counter() - start;"
        "import sys; heavy = {'torch', 'transformers', 'sqlalchemy', 'numpy'} & set(sys.modules);"
        "print(took, sorted(heavy))"
    )
    found = min(
        (
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            for _ in range(3)
        ),
        key=lambda out: float(out.split()[0]),
    )
    took, heavy = found.split(maxsplit=1)
    assert float(took) < 0.3
    assert heavy.strip() == "[]"


def test_the_command_line_helps_without_torch():
    code = "import sys; from bursar.cli import app; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
