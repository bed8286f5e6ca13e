"""Fixtures of the tests of annotation: the small live campaign of the campaign tests."""

from tests.campaign.conftest import live, word_counts  # noqa: F401
