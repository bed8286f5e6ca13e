"""From labels and laws to a verdict a task: which law is asked, at what, and what is warned of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder
from bursar.laws.advice import Laws, advise
from bursar.laws.relatedness import relatedness
from tests.laws.planted import planted_laws

LAWS = planted_laws()
SCHEMA = {
    "first": {"kind": "tagging", "labels": ["p", "q"], "every_word": True},
    "second": {"kind": "tagging", "labels": ["p", "q"], "every_word": True},
    "third": {"kind": "classification", "labels": ["a", "b"]},
}


def corpus(tasks=("first", "second"), same=0.95, items=80):
    """Words whose second tag is most often the first; the class of an item is drawn."""
    rng = np.random.default_rng(4)
    builder = CorpusBuilder({name: SCHEMA[name] for name in tasks})
    for at in range(items):
        first = rng.integers(2, size=5)
        second = np.where(rng.random(5) < same, first, 1 - first)
        labels = {"first": [*map("pq".__getitem__, first)], "second": [*map("pq".__getitem__, second)]}
        labels["third"] = "ab"[rng.integers(2)]
        builder.add(f"u{at}", text="a b c d e", labels={name: labels[name] for name in tasks})
    return builder.build()


def advice(units, **options):
    return advise(corpus(**options), units, LAWS)["tasks"]


def test_closely_related_tasks_are_told_to_be_trained_together():
    told = advise(corpus(), {"first": 4000, "second": 4000}, LAWS)
    for name, other in (("first", "second"), ("second", "first")):
        task = told["tasks"][name]
        assert (task["verdict"], task["law"], task["n"]) == ("helps", "balanced", 4000)
        assert task["ami"]["value"] == relatedness(corpus()).pair(name, other).ami
        assert task["warnings"] == []
    assert told["record"]["balanced"]["settings"] == 60
    assert told["laws"]["single"]["text"] == LAWS.single.formula.text


def test_hardly_related_tasks_are_told_to_be_trained_apart():
    assert {task["verdict"] for task in advice({"first": 4000, "second": 4000}, same=0.6).values()} == {"harms"}


def test_a_task_with_fewer_labels_than_the_others_is_asked_of_the_unbalanced_law():
    told = advice({"first": 2000, "second": 5000})
    assert (told["first"]["law"], told["first"]["n_other"], told["first"]["verdict"]) == ("unbalanced", 5000, "helps")
    assert told["second"]["verdict"] == "cannot tell"  # no law covers others with fewer
    assert "no law covers that" in told["second"]["warnings"][0]


def test_without_an_unbalanced_law_unevenness_cannot_be_told():
    balanced = Laws({"balanced": LAWS.joint["balanced"]}, LAWS.single)
    told = advise(corpus(), {"first": 2000, "second": 5000}, balanced)["tasks"]["first"]
    assert (told["law"], told["verdict"]) == ("balanced", "cannot tell")


def test_another_kind_than_the_law_was_learned_from_is_warned_of():
    units = dict.fromkeys(("first", "second", "third"), 3000)
    told = advice(units, tasks=("first", "second", "third"))
    assert told["third"]["warnings"] == ["the law was learned from tagging, and this is classification"]
    assert told["first"]["warnings"] == []
    unknown = {name: replace(law, about={}) for name, law in LAWS.joint.items()}
    plain = advise(corpus(tasks=("first", "third")), {"first": 3000, "third": 3000}, Laws(unknown, LAWS.single))
    assert plain["tasks"]["third"]["warnings"] == []


def test_laws_are_read_from_a_folder(tmp_path):
    for name, law in LAWS.named().items():
        law.save(tmp_path / f"{name}.json")
    again = Laws.load(tmp_path)
    units = {"first": 2000, "second": 5000}
    assert advise(corpus(), units, again)["tasks"] == advise(corpus(), units, LAWS)["tasks"]
    (tmp_path / "unbalanced.json").unlink()
    assert list(Laws.load(tmp_path).joint) == ["balanced"]


def test_a_folder_without_the_laws_is_refused_by_the_file_that_is_missing(tmp_path):
    with pytest.raises(Exception, match=r"has no law single\.json"):
        Laws.load(tmp_path)
