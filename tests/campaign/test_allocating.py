"""A campaign's seed labels become a split: measured, priced, within the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.allocation import answer
from bursar.allocation.probing import Probing
from bursar.campaign.allocating import material_of, material_of_run, measure
from bursar.campaign.config import parse_config
from bursar.campaign.runs import Run, run_campaign
from bursar.errors import AllocationError, ConfigError

CAMPAIGN = {
    "tasks": ["intent", "urgency"],
    "corpus": {"items": 400},
    "budget": {"seed_items": 60, "rounds": 0},
    "learner": {"name": "probe"},
    "limits": {"tasks": {"urgency": {"at_most": 30}}},
}


@pytest.fixture(scope="module")
def material():
    return material_of(parse_config(CAMPAIGN))


@pytest.fixture(scope="module")
def measured(material):
    return measure(material, informer="probe")


def test_what_has_not_begun_is_measured_on_its_seed_items(material):
    assert len(material.annotated) == 60
    assert all(column.present.all() for column in material.annotated.labels.values())
    assert not any(column.present.any() for column in material.pool.labels.values())
    assert not set(material.annotated.ids.tolist()) & set(material.pool.ids.tolist())


def test_a_run_is_measured_on_what_it_was_told(tmp_path, material):
    run = Run(tmp_path / "run", parse_config(CAMPAIGN))
    run_campaign(run, workers=1)
    found = material_of_run(tmp_path / "run")
    assert sorted(found.annotated.ids.tolist()) == sorted(material.annotated.ids.tolist())


def test_prices_are_what_labels_of_the_seed_items_cost(measured):
    problem, items = measured.problem(500), measured.material.annotated
    reading = items.words.astype(float)
    assert problem.prices[0] == int(np.ceil((reading + 3).mean()))  # a word a unit, three for an intent
    assert max(problem.prices) < problem.joint < sum(problem.prices)


def test_a_split_keeps_to_the_campaigns_limits_and_money(measured):
    for method in ("exact", "together", "greedy"):
        split = answer(measured.problem(700), measured.context, method=method).split
        assert split.cost <= 700
        assert split.counts[1] <= 30


def test_limits_of_a_round_count_once_for_every_round(measured):
    config = parse_config({**CAMPAIGN, "budget": {**CAMPAIGN["budget"], "rounds": 3}})
    longer = replace(measured, material=replace(measured.material, config=config))
    assert measured.problem(700).most[1] == 30
    assert longer.problem(700).most[1] == 90


def test_a_campaign_with_a_way_to_split_is_measured_in_that_way(material):
    betas = {"intent": 0.9, "urgency": 0.2}
    section = {"informer": "probe", "rater": "given", "rater_settings": {"betas": betas}}
    strategy = {"name": "UDJS"}
    config = parse_config({**CAMPAIGN, "allocation": section, "strategy": strategy})
    found = measure(replace(material, config=config))
    assert {name: rate.beta for name, rate in found.estimates.rates.items()} == betas


def test_a_rater_that_cannot_be_made_is_refused_before_anything_is_measured(material, monkeypatch):
    monkeypatch.setattr(Probing, "measure", lambda *a, **k: pytest.fail("it was measured"))
    with pytest.raises((AllocationError, ConfigError), match="law"):
        measure(material, informer="probe", rater="law")


def test_seed_scores_say_how_hard_tasks_are(measured):
    assert set(measured.scores) == {"intent", "urgency"}
    assert all(0 <= score <= 1 for score in measured.scores.values())
    assert measured.scores["intent"] > 0.3


def test_one_task_alone_is_nothing_to_split():
    with pytest.raises(ConfigError, match="nothing to split"):
        measure(material_of(parse_config({**CAMPAIGN, "tasks": ["intent"], "limits": {}})), informer="probe")


def test_a_task_without_seed_labels_is_named(material):
    none = material.annotated.unlabelled().labels["urgency"]
    bare = material.annotated.with_labels({"intent": material.annotated.labels["intent"], "urgency": none})
    with pytest.raises(AllocationError, match=r"task 'urgency' has no seed labels"):
        measure(replace(material, annotated=bare), informer="probe")
