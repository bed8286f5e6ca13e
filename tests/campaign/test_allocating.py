"""A campaign's seed labels become a split: measured, priced, within the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.allocation import BASELINES, Context, Informativeness, ReductionRate, SplitEstimates, advise, together
from bursar.allocation.informativeness import Probing
from bursar.allocation.rates import PseudoLabels, only
from bursar.allocation.split_inputs import SplitInputs, inputs_of, inputs_of_run, measure
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import parse_config
from bursar.campaign.runs import Run, run_campaign
from bursar.corpus import CorpusBuilder, write
from bursar.errors import AllocationError, ConfigError
from bursar.simulation import assistant_corpus
from tests.same import differences

CAMPAIGN = {
    "tasks": ["intent", "urgency"],
    "corpus": {"items": 400},
    "budget": {"seed_items": 60, "rounds": 0},
    "strategy": {"name": "MT-AVG"},
    "learner": {"name": "probe"},
    "limits": {"tasks": {"urgency": {"at_most": 30}}},
}


@pytest.fixture(scope="module")
def material():
    return inputs_of(parse_config(CAMPAIGN))


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
    found = inputs_of_run(tmp_path / "run")
    assert sorted(found.annotated.ids.tolist()) == sorted(material.annotated.ids.tolist())


def test_a_run_that_chose_items_is_rated_on_those_it_drew_and_what_it_has_much_of_counts_less(tmp_path):
    table = {**CAMPAIGN, "strategy": {"name": "UDJS"}, "budget": {"seed_items": 60, "per_round": 400, "rounds": 1}}
    table |= {"limits": {"tasks": {"urgency": {"at_most": 0}}}, "audit": {"share": 0.1}}
    run = Run(tmp_path / "run", parse_config(table))
    run_campaign(run, workers=1)
    found = inputs_of_run(tmp_path / "run")
    assert 60 < len(found.drawn) < len(found.annotated)
    ledger_rater = measure(found, informer="probe", rater="ledger")
    labels = {name: int(column.present.sum()) for name, column in found.annotated.labels.items()}
    assert {name: rate.block for name, rate in ledger_rater.estimates.rates.items()} == pytest.approx(labels)
    alike = {name: ReductionRate(0.5, 0.5, 0.5, many) for name, many in labels.items()}
    moved = replace(ledger_rater, estimates=replace(ledger_rater.estimates, rates=alike))
    importance = dict(zip(found.tasks, moved.problem(1000).importance, strict=True))
    assert importance["intent"] < importance["urgency"] <= 1


def test_a_run_without_its_ledger_is_left_as_it_is(tmp_path):
    Run(tmp_path / "run", parse_config(CAMPAIGN)).pin()
    for file in (tmp_path / "run").glob("ledger.sqlite*"):
        file.unlink()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AllocationError, match="has bought nothing yet"):
        inputs_of_run(tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


def test_prices_are_what_labels_of_the_seed_items_cost(measured):
    problem, items = measured.problem(500), measured.inputs.annotated
    reading = items.words.astype(float)
    assert problem.prices[0] == int(np.ceil((reading + 3).mean()))  # a word a unit, three for an intent
    assert max(problem.prices) < problem.joint < sum(problem.prices)


def test_a_split_keeps_to_the_campaigns_limits_and_money(measured):
    for method in ("exact", "together", "greedy"):
        split = advise(measured.problem(700), measured.context, method=method).split
        assert split.cost <= 700
        assert split.counts[1] <= 30


def test_limits_of_a_round_count_once_for_every_round(measured):
    config = parse_config({**CAMPAIGN, "budget": {**CAMPAIGN["budget"], "rounds": 3}})
    longer = replace(measured, inputs=replace(measured.inputs, config=config))
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
    assert measured.scores["intent"] > 0.1


def test_one_task_alone_is_nothing_to_split():
    with pytest.raises(ConfigError, match="nothing to split"):
        measure(inputs_of(parse_config({**CAMPAIGN, "tasks": ["intent"], "limits": {}})), informer="probe")


def test_a_task_without_seed_labels_is_named(material):
    none = material.annotated.unlabelled().labels["urgency"]
    bare = material.annotated.with_labels({"intent": material.annotated.labels["intent"], "urgency": none})
    with pytest.raises(AllocationError, match=r"task 'urgency' has no seed labels"):
        measure(replace(material, annotated=bare), informer="probe")


# -- items that people annotate ---
ITEMS = assistant_corpus(200, seed=2).with_tasks(["intent", "urgency"])
POOL = len(ITEMS.in_split("train"))


@pytest.fixture
def campaign_of(tmp_path):
    """A campaign on a file in which the first so many items of the pool are labelled for each task."""

    def made(more=None, **labelled):
        there = {task: np.zeros(len(ITEMS), dtype=bool) for task in ITEMS.schema}
        for task, many in labelled.items():
            there[task][ITEMS.in_split("train")[:many]] = True
        some = ITEMS.with_labels({task: only(ITEMS.labels[task], mask) for task, mask in there.items()})
        write(some, tmp_path / "items.jsonl", "jsonl")
        table = {**CAMPAIGN, "corpus": {"source": str(tmp_path / "items.jsonl")}, "limits": {}, **(more or {})}
        return parse_config(table)

    return made


@pytest.mark.parametrize("pricing", ["gold", "predicted"])
def test_what_a_pool_without_labels_has_of_them_is_looked_at_all_of_it(campaign_of, pricing):
    found = inputs_of(campaign_of({"costs": {"pricing": pricing}}, intent=30, urgency=20))
    assert [int(column.present.sum()) for column in found.annotated.labels.values()] == [30, 20]
    assert len(found.pool) == POOL - 30
    assert found.room == (POOL - 30, POOL - 20)


def test_a_pool_without_labels_is_split_for_by_guessing_some(campaign_of):
    measured = measure(inputs_of(campaign_of(intent=40, urgency=40)), informer="probe")
    split = advise(measured.problem(300), measured.context, method="together").split
    assert 0 < split.cost <= 300
    assert {rate.source for rate in measured.estimates.rates.values()} == {"pseudo-labels"}


def test_tasks_without_labels_are_all_named_with_what_to_do(campaign_of):
    with pytest.raises(AllocationError, match=r"tasks 'intent', 'urgency' have no seed labels.*split 'train'"):
        measure(inputs_of(campaign_of()), informer="probe")
    with pytest.raises(AllocationError, match=r"task 'urgency' has no seed labels.*label about 20 items"):
        measure(inputs_of(campaign_of(intent=30)), informer="probe")
    with pytest.raises(AllocationError, match=r"'urgency' has 4 seed labels: too few.*label at least \d+ items"):
        measure(inputs_of(campaign_of(intent=30, urgency=4)), informer="probe")


def test_where_every_item_has_some_label_none_is_guessed_and_that_is_said_at_once(campaign_of, monkeypatch):
    material = inputs_of(campaign_of(intent=POOL, urgency=40))
    assert material.room == (0, POOL - 40)
    found = measure(material, informer="probe")
    assert found.rater == "ledger"
    split = advise(found.problem(200), found.context, method="together").split
    assert (split.counts[0], split.together) == (0, 0)
    monkeypatch.setattr(Probing, "measure", lambda *a, **k: pytest.fail("it was measured"))
    with pytest.raises(AllocationError, match=r"no unlabelled items.*'ledger'"):
        measure(material, informer="probe", rater="pseudo-labels")


def test_where_everything_is_bought_there_is_nothing_to_split(material):
    with pytest.raises(AllocationError, match="nothing to buy"):
        measure(replace(material, pool=material.pool.take(np.arange(0))), informer="probe")


def test_a_simulation_over_items_without_labels_says_so(campaign_of, tmp_path):
    with pytest.raises(ConfigError, match=rf"30 of the pool's {POOL} items have a label for every task.*bursar new"):
        Campaign(campaign_of(intent=30, urgency=30), tmp_path / "run")


def test_asking_begins_nothing_where_the_campaign_will_be_kept(material):
    config = parse_config({**CAMPAIGN, "ledger": {"url": "postgresql://nowhere.invalid/team"}})
    assert not differences(inputs_of(config).annotated, material.annotated)


def test_both_texts_of_a_pair_are_read_and_paid_for():
    tasks = {name: {"kind": "classification", "labels": ["a", "b"]} for name in ("same", "tone")}
    builder = CorpusBuilder(tasks)
    for number in range(4):
        builder.add(f"i{number}", text="three short words", pair="and two", labels={"same": "a", "tone": "b"})
    items = builder.build()
    config = parse_config({"learner": {"name": "probe"}})
    known = Informativeness(("same", "tone"), np.eye(2), np.zeros((2, 2)))
    estimates = SplitEstimates(known, dict.fromkeys(("same", "tone"), ReductionRate(0.5, 0.5, 0.5, 10)))
    material = SplitInputs(config, config.costs.model(items.schema.values()), items.take(np.arange(2)), items)
    problem = material.problem(100, estimates)
    assert problem.prices == (3 + 2 + 3,) * 2  # words to read, and three units a class
    assert problem.joint == 3 + 2 + 3 + 3


# -- what is taken if nothing is said ----------------------------------------------------------------------------------
def test_a_run_is_rated_by_its_own_labels_and_what_has_not_begun_by_guesses(tmp_path, material, monkeypatch):
    monkeypatch.setattr(PseudoLabels, "growth", lambda *a: pytest.fail("labels were guessed"))
    run = Run(tmp_path / "run", parse_config(CAMPAIGN))
    run_campaign(run, workers=1)
    assert measure(inputs_of_run(tmp_path / "run"), informer="probe").rater == "ledger"
    with pytest.raises(pytest.fail.Exception, match="labels were guessed"):
        measure(material, informer="probe")


def test_a_learner_without_steps_is_measured_by_probes(material):
    found = measure(material, rater="ledger").estimates.informativeness
    assert found.about["informer"] == "probe"


def test_money_that_cannot_be_split_is_refused_before_anything_is_measured(material):
    assert material.check(700, "together").budget == 700
    wanting = parse_config({**CAMPAIGN, "limits": {"tasks": {"intent": {"at_least": 50}}}})
    with pytest.raises(AllocationError, match="minimums cost"):
        replace(material, config=wanting).check(100, "exact")
    with pytest.raises(AllocationError, match="no reduction rate is given for task 'intent'"):
        measure(material, rater="given")


def test_no_more_items_are_labelled_for_all_tasks_than_lack_all_labels(campaign_of):
    """Ten items lack both labels, and most others one of them."""
    material = inputs_of(campaign_of(intent=POOL - 10, urgency=40))
    problem = material.problem(10_000, SplitEstimates.unknown(material.tasks))
    assert problem.items == len(material.pool) == 10
    for split in (together(problem), BASELINES["same items"](problem, Context(), np.random.default_rng(0))):
        assert split.together <= 10
