"""Finding things by name."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar import registry
from bursar.errors import ConfigError, is_storage_fault
from bursar.registry import Registry, suggestion
from bursar.tasks import KINDS, Tagging


def a_registry(*names: str) -> Registry[str]:
    made: Registry[str] = Registry("strategy", "bursar.nothing")
    for name in names:
        made.add(name, name.upper())
    return made


NAMES = ("random", "entropy", "dropout-agreement", "reciprocal-rank-fusion", "pareto", "independent")


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(NAMES), st.data())
def test_a_name_with_one_wrong_character_is_answered_with_the_right_one(name, data):
    at = data.draw(st.integers(0, len(name) - 1))
    slip = data.draw(st.sampled_from(["", "x", name[at] * 2]))
    wrong = name[:at] + slip + name[at + 1 :]
    if wrong == name:
        return
    with pytest.raises(ConfigError, match=f"did you mean '{name}'") as raised:
        a_registry(*NAMES)[wrong]
    assert repr(wrong) in str(raised.value)


def test_a_name_in_capitals_is_answered_with_the_known_spelling():
    with pytest.raises(ConfigError, match="did you mean 'pareto'"):
        a_registry(*NAMES)["PARETO"]


def test_a_name_near_nothing_is_answered_with_all_that_is_known():
    with pytest.raises(ConfigError) as raised:
        a_registry("random", "pareto")["zzzz"]
    assert raised.value.message == "there is no strategy 'zzzz'"
    assert raised.value.fix == "Known: random, pareto"


def test_names_come_in_the_order_they_were_added():
    made = a_registry("b", "a", "c")
    assert made.names() == list(made) == ["b", "a", "c"]
    assert "a" in made
    assert "d" not in made
    assert None not in made


def test_adding_gives_the_thing_back():
    made = a_registry()
    assert made.add("it", "thing") == "thing"
    assert made["it"] == "thing"


def test_a_third_party_is_found_by_entry_point_once_and_never_replaces_a_built_in(monkeypatch):
    asked = []

    def entry_points(group):
        asked.append(group)
        theirs = {"theirs": "THEIRS", "ours": "not ours"}
        return [SimpleNamespace(name=name, load=lambda thing=thing: thing) for name, thing in theirs.items()]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    made = a_registry("ours")
    assert made["ours"] == "OURS"
    assert asked == []  # what is built in needs no search
    assert made["theirs"] == "THEIRS"
    assert made["ours"] == "OURS"
    assert made.names() == ["ours", "theirs"]
    assert asked == ["bursar.nothing"]


def test_the_task_kinds_are_a_registry():
    assert set(KINDS) >= {"classification", "tagging", "parsing", "relations", "regression"}
    assert KINDS["tagging"] is Tagging
    with pytest.raises(ConfigError, match=r"there is no task kind 'taging'.*did you mean 'tagging'"):
        KINDS["taging"]


def test_what_is_added_lazily_is_imported_when_it_is_asked_for():
    made: Registry[type] = Registry("task", "bursar.nothing")
    made.add_lazily("tagging", "bursar.tasks:Tagging")
    made.add_lazily("nowhere", "bursar.no_such_module:Thing")
    assert made.names() == ["tagging", "nowhere"]
    assert made["tagging"] is made["tagging"] is Tagging
    with pytest.raises(ModuleNotFoundError):
        made["nowhere"]


def test_only_a_name_that_is_near_is_suggested():
    assert suggestion("Learnr", ["learner", "budget"]) == "did you mean 'learner'? "
    assert suggestion("x", ["learner"]) == ""


def test_a_full_disk_is_a_fault_of_the_storage_and_a_missing_file_is_not():
    assert is_storage_fault(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_storage_fault(FileNotFoundError())
