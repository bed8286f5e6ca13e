"""What takes seconds to import is imported by those who need it, and by nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "sympy", "sklearn", "scipy.stats", "numba", "ray")


@pytest.mark.parametrize(
    "module",
    [
        "bursar.cli",
        "bursar.campaign",
        "bursar.annotation.session",
        "bursar.report",
        "bursar.web.server",
        "bursar.oracle",
    ],
)
def test_reading_a_campaign_and_serving_its_page_imports_no_heavy_library(module: str) -> None:
    asked = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
