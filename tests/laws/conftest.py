"""A table whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.planted import observed


@pytest.fixture(scope="session")
def root_table():
    """The score is 0.0055 √(n · AMI)."""
    return observed(lambda n, tasks, ami: 0.0055 * np.sqrt(n * ami))
