"""What some tests need of the machine. Where it is not there they are skipped by its name, or fail if it must be.

``BURSAR_NEEDS`` names what must be there, parted by commas: ``.ci/run`` says ``chromium,postgresql``, so that
tests that were skipped are never taken for tests that passed.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import NoReturn

import pytest

NEEDS = "BURSAR_NEEDS"


def lacking(what: str, words: str) -> NoReturn:
    """End a test that cannot be run here."""
    if what in os.environ.get(NEEDS, "").split(","):
        pytest.fail(f"{words}, and {NEEDS} says that {what} must be here", pytrace=False)
    pytest.skip(words)


def module_for(what: str, name: str, words: str) -> ModuleType:
    """A module that tests of something need."""
    try:
        return importlib.import_module(name)
    except ImportError:
        lacking(what, words)
