"""What the tests of campaigns share."""

from __future__ import annotations

import pytest

from bursar.learners import LEARNERS
from tests.campaign.lives import start
from tests.tiny import WordCounts


@pytest.fixture(autouse=True, scope="module")
def word_counts():
    LEARNERS.add("word-counts", WordCounts)
    yield
    LEARNERS._entries.pop("word-counts")


@pytest.fixture
def live(tmp_path):
    opened = start(tmp_path / "project")
    yield opened
    opened.close()
