"""What a preview says beside the numbers: whether it is sure to come true, and how unsure the model is."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from bursar.annotation.preview import doubt_of
from bursar.annotation.round_worker import preview_round
from bursar.campaign.decisions import RoundSelection, SplitDecision
from tests.campaign.lives import answer_all, one_corpus, selected, start, train  # noqa: F401


def quiet(event):
    pass


@pytest.fixture
def live(tmp_path):
    opened = start(tmp_path / "project", audit={"share": 0.0}, budget={"rounds": 1})
    answer_all(opened)
    train(opened)
    yield opened
    opened.close()


def test_while_items_are_open_nothing_is_settled(live):
    assert not preview_round(live.folder, {"budget": {"rounds": 2}}, quiet)["settled"]
    answer_all(live, leave=1)
    assert not preview_round(live.folder, {"budget": {"rounds": 2}}, quiet)["settled"]


@pytest.mark.parametrize(
    "change",
    [
        {"budget": {"rounds": 2}},
        {"budget": {"rounds": 2}, "strategy": {"name": "MT-MIN+BLP_AL"}},
        {"budget": {"rounds": 2}, "strategy": {"name": "UDJS"}, "limits": {"tasks": {"slots": {"at_most": 3}}}},
    ],
)
def test_what_is_settled_is_bought_when_it_is_used(live, change):
    answer_all(live)
    assert train(live) == "ended"
    found = preview_round(live.folder, change, quiet)
    assert found["settled"]
    live.settings.change(change, "lead")
    assert train(live) == "opened"
    bought = live.ledger.decision(RoundSelection, 2)
    assert found["then"]["items"] == len(bought.items) == found["added"]  # as it was there would be no round at all
    assert set(found["added_items"]) <= set(selected(live, 2))
    assert found["then"]["cost"] == sum(sum(item.estimate.values()) for item in bought.items)
    assert found["then"]["certificate"] == (bought.certificate and bought.certificate.model_dump())


def test_a_settled_split_goes_by_the_answers_that_came_since_the_last_one(tmp_path):
    live = start(
        tmp_path / "project",
        audit={"share": 0.0},
        corpus={"items": 300},
        budget={"rounds": 1, "seed_items": 40},
        strategy={"name": "UDJS"},
        allocation={"method": "exact", "rater": "given", "rater_settings": {"betas": {"intent": 0.4, "slots": 0.8}}},
    )
    answer_all(live)
    train(live)
    answer_all(live)
    train(live)
    found = preview_round(live.folder, {"budget": {"rounds": 2}}, quiet)
    live.settings.change({"budget": {"rounds": 2}}, "lead")
    train(live)
    known = [split.known.labels for split in live.ledger.decisions(SplitDecision)]
    assert known[0] != known[1]
    items = live.ledger.decision(RoundSelection, 2).items
    labels = {task: sum(task in item.tasks for item in items) for task in ("intent", "slots")}
    assert (found["settled"], found["then"]["labels"]) == (True, labels)
    live.close()


def test_with_nothing_changed_both_rounds_are_the_same(live):
    live.settings.change({"budget": {"rounds": 2}}, "lead")
    found = preview_round(live.folder, {}, quiet)
    assert found["now"] == found["then"]
    assert found["now"]["items"] == found["same"] > 0
    assert (found["added"], found["removed"]) == (0, 0)


def test_doubt_is_the_mean_over_the_labels_that_would_be_bought(live):
    change = {"budget": {"rounds": 2}, "strategy": {"name": "UDJS"}}
    found = preview_round(live.folder, change, quiet)["then"]
    assert found["measure"] == "entropy"
    assert {task for task, count in found["labels"].items() if count} == set(found["doubt"])
    assert all(0 <= value <= 1 for value in found["doubt"].values())
    json.dumps(found)


def test_doubt_is_of_what_was_chosen_for_a_task_and_of_nothing_else():
    confidence = np.array([[0.9, 0.5], [0.2, 0.4], [0.7, 0.1]])
    pool = SimpleNamespace(confidence=confidence, tasks=("intent", "slots"))
    chosen = SimpleNamespace(items=np.array([0, 2]), tasks=np.array([[True, False], [True, False]]))
    offer = SimpleNamespace(pool=pool, chosen=chosen, measure="entropy")
    assert doubt_of(offer) == {"intent": pytest.approx((0.1 + 0.3) / 2)}
    offer.measure = None
    assert doubt_of(offer) == {}


def test_a_model_that_is_not_asked_has_no_doubt(tmp_path):
    live = start(tmp_path / "project", audit={"share": 0.0}, costs={"pricing": "gold"})
    answer_all(live)
    train(live)
    found = preview_round(live.folder, {"strategy": {"name": "RANDOM"}}, quiet)
    assert found["now"]["doubt"]
    assert (found["then"]["measure"], found["then"]["doubt"]) == (None, {})
    assert found["then"]["items"] > 0
    live.close()
