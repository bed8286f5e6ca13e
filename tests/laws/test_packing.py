"""The laws that come with the package: made from a study's results, found by name, or plainly not there."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.laws import Effort, Law, Observations, cards, packaged_laws
from bursar.laws.gains import track_record
from bursar.laws.packing import packed
from tests.laws.planted import planted_laws

ABOUT = {"study": "laws, scale small", "command": "python -m experiments run laws", "kinds": ["tagging"]}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An installation with no law in it."""
    monkeypatch.setattr(cards, "SHIPPED", tmp_path / "packaged")
    return tmp_path / "packaged"


@pytest.fixture(scope="module")
def made():
    """Laws as a study found them, without single tasks beside them, and its tables."""
    laws = planted_laws()
    fits = {}
    for name, law in laws.joint.items():
        told = law.describe() | {"held_out": law.describe()["held_out"] | {"alone": []}}
        fits[name] = {"n": told | {"variables": ["n"]}, ", ".join(law.variables): told}
    rng = np.random.default_rng(2)
    single = [
        {"n": n, "n_other": 0, "tasks": 1, "architecture": "shared", "seed": seed}
        | {"score": 0.002 * np.sqrt(n) + rng.normal(0, 0.002)}
        for n in range(1000, 6001, 500)
        for seed in range(5)
    ]
    joint = {"n": 1000, "n_other": 1000, "tasks": 2, "ami": 0.5, "alpha": 0.9, "architecture": "shared", "score": 0.2}
    tables = dict.fromkeys(fits, Observations.of([joint | {"seed": seed} for seed in range(3)]))
    return packed(fits, tables | {"single": Observations.of(single)}, ABOUT, effort=Effort(40, 4)), laws


def test_the_study_s_laws_of_all_variables_are_packed_as_they_were_found(made):
    found, laws = made
    for name, law in laws.joint.items():
        assert found[name].formula.exact == law.formula.exact
        assert found[name].ranges == law.ranges
        assert found[name].held_out.score == law.held_out.score


def test_a_packed_law_knows_how_single_tasks_did_and_where_it_came_from(made):
    found, laws = made
    alone = found["balanced"].held_out.alone
    assert np.isfinite(alone).all()
    assert np.allclose(alone, laws.joint["balanced"].held_out.alone, atol=0.01)
    assert track_record(found["balanced"], found["single"]).decided > 30
    assert found["balanced"].about["command"] == "python -m experiments run laws"
    assert (found["balanced"].about["models"], found["single"].about["models"]) == (3, 55)
    assert "by python -m experiments run laws" in found["single"].provenance


def test_the_law_of_single_tasks_has_every_seed_as_a_row(made):
    single = made[0]["single"]
    assert single.variables == ("n",)
    assert single.about["rows"] == 55
    assert single.held_out.half_width(0.9) is not None
    assert single.predict(n=3000).value == pytest.approx(0.002 * np.sqrt(3000), abs=0.01)


def test_packaged_laws_are_found_by_name(folder):
    for name, law in planted_laws().named().items():
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
