"""What takes seconds to import is imported by those who need it, and by nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "sympy", "sklearn", "scipy.stats", "numba", "ray", "spacy")


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


@pytest.mark.parametrize(
    ("missing", "work", "extra"),
    [
        (
            "numba",
            "import numpy as np; from bursar.learners.lockstep.average import affine; affine(*3 * [np.ones((1, 1))])",
            "oracle",
        ),
        (
            "cmaes",
            "from bursar.curriculum.improve import CmaEs, evolve; evolve(lambda p: p[:, 0], 0.0, 2, CmaEs())",
            "policies",
        ),
    ],
)
def test_what_one_adviser_alone_needs_is_asked_for_by_name(missing: str, work: str, extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\n{work}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert f"{missing} is not installed. Fix: install it: pip install 'bursar[{extra}]'" in found.stderr
