"""The laws that come with the package: found by name, or plainly not there."""

from __future__ import annotations

import pytest

from bursar.errors import ConfigError
from bursar.laws import Law, cards, packaged_laws
from bursar.laws.advice import track_record
from tests.laws.planted import planted_laws


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An installation with no law in it."""
    monkeypatch.setattr(cards, "SHIPPED", tmp_path / "packaged")
    return tmp_path / "packaged"


def test_packaged_laws_are_found_by_name(folder):
    laws = planted_laws()
    for name, law in {**laws.joint, "single": laws.single}.items():
        law.save(folder / f"{name}.json")
    assert packaged_laws() == ["balanced", "single", "unbalanced"]
    assert Law.packaged().variables == ("n", "tasks", "ami")
    assert Law.packaged("single").variables == ("n",)
    with pytest.raises(ConfigError, match=r"no packaged law 'best'.*balanced, single, unbalanced"):
        Law.packaged("best")


def test_an_installation_without_a_law_says_so(folder):
    assert packaged_laws() == []
    with pytest.raises(ConfigError, match=r"no packaged law in this installation.*bursar laws fit"):
        Law.packaged()


def test_whatever_is_packaged_here_is_whole():
    for name in packaged_laws():
        law = Law.packaged(name)
        assert law.provenance
        assert law.ranges["n"].low < law.ranges["n"].high
        assert name == "single" or track_record(law, Law.packaged("single")).settings > 20
