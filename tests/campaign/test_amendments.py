"""Settings that change while a campaign runs: from the next round on, checked, and never forgotten."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bursar.annotation.round_worker import preview_round
from bursar.annotation.session import AnnotationSession
from bursar.campaign import Run, run_campaign
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundPrices, RoundSelection
from bursar.campaign.setting_changes import changed_config, check_changed_config, differences
from bursar.errors import BursarError, ConfigError
from bursar.ledger import Answer
from bursar.report.summary import summarise
from tests.campaign.lives import (  # noqa: F401
    answer_all,
    gold_answer,
    live_config,
    one_corpus,
    remembered,
    selected,
    start,
    train,
)
from tests.campaign.small import config_of


def corpus():
    return replace(remembered(200, 0).with_tasks(["intent", "slots"]), groups=None)


# -- one change ---
def test_a_change_says_only_what_is_new_and_null_takes_a_key_back_to_its_default():
    plain = parse_config({"budget": {"total": 900, "rounds": 7}, "costs": {"slots": {"per_item": 2, "per_span": 3}}})
    after = changed_config(plain, [{"budget": {"total": None, "per_round": 80}}, {"costs": {"slots": {"per_span": 4}}}])
    assert (after.budget.total, after.budget.per_round, after.budget.rounds) == (None, 80, 7)
    assert after.costs.prices == {"slots": {"per_item": 2, "per_span": 4}}


def test_changes_one_after_the_other_are_all_of_them_at_once():
    plain = parse_config({})
    first, second = {"budget": {"per_round": 80}}, {"budget": {"rounds": 9}, "strategy": {"name": "MT-MIN"}}
    both = {"budget": {"per_round": 80, "rounds": 9}, "strategy": {"name": "MT-MIN"}}
    assert changed_config(plain, [first, second]).digest == changed_config(plain, [both]).digest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "no table"),
        ("more", "no table"),
        ({"seed": 3}, "seed is fixed"),
        ({"learner": {"name": "probe"}}, "learner is fixed"),
        ({"audit": {"share": 0.5}}, "audit is fixed"),
        ({"budget": 5}, "budget = 5"),
        ({"budget": {"seed_items": 5}}, "budget.seed_items is fixed"),
        ({"budget": {"counts": "items"}}, "budget.counts is fixed"),
        ({"costs": {"unit": 0.5}}, "costs.unit is fixed"),
        ({"costs": {"pricing": "gold"}}, "costs.pricing is fixed"),
        ({"budget": {"per_round": -1}}, "greater than 0"),
        ({"budget": {"per_rond": 1}}, "per_rond is no key"),
        ({"strategy": {"name": "MT-AVGG"}}, "did you mean 'MT-AVG'"),
        ({"strategy": {"name": "MT-MAX", "weights": {"intent": 1}}}, "takes no weights"),
        ({"limits": {"tasks": {"slots": {"at_most": -1}}}}, "limits.tasks"),
        ({"costs": {"measured": True}}, "costs.hourly"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_like_a_file_that_cannot_be_run(change, said):
    with pytest.raises(BursarError, match=said.replace(".", r"\.")):
        changed_config(parse_config({}), [change])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budget": {"rounds": 5}}, "nothing would change"),
        ({"costs": {"mood": {"per_item": 1}}}, "costs.mood"),
        ({"costs": {"slots": {"per_word": 1}}}, "costs.slots.per_word"),
        ({"strategy": {"name": "MT-EC-mood"}}, "mood"),
        ({"strategy": {"weights": {"mood": 1}}}, "mood"),
        ({"limits": {"tasks": {"mood": {"at_most": 3}}}}, "mood"),
        ({"limits": {"group": {"at_most": 3}}}, "no groups"),
        ({"strategy": {"name": "MT-AVG+BLP"}}, "all its money at once"),
        ({"costs": {"measured": True, "hourly": 20}}, "costs.unit"),
    ],
)
def test_a_change_that_does_not_suit_the_corpus_or_the_campaign_is_refused(change, said):
    plain = parse_config({})
    with pytest.raises(BursarError, match=said.replace(".", r"\.")):
        check_changed_config(plain, changed_config(plain, [change]), corpus())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([{"budget": {"per_round": 80}}], {"budget.per_round": (500.0, 80.0)}),
        ([{"budget": {"per_round": 80}}, {"budget": {"per_round": None}}], {}),
        ([{"budget": {"total": 900}}], {"budget.total": (None, 900.0)}),
        ([{"costs": {"slots": {"per_span": 4}}}], {"costs.slots.per_span": (None, 4)}),
        (
            [{"strategy": {"name": "MT-RRF", "weights": {"slots": 2}}}],
            {"strategy.name": ("AUTO", "MT-RRF"), "strategy.weights.slots": (None, 2)},
        ),
        (
            [{"limits": {"tasks": {"slots": {"at_most": 3}}}}],
            {"limits.tasks.slots.at_most": (None, 3), "limits.tasks.slots.at_least": (None, 0)},
        ),
        (
            [{"strategy": {"name": "UDJS"}, "allocation": {"method": "exact"}}],
            {"strategy.name": ("AUTO", "UDJS"), "allocation.method": (None, "exact")},
        ),
    ],
)
def test_what_differs_is_told_setting_by_setting_with_both_values(changes, said):
    plain = parse_config({})
    after = changed_config(plain, changes)
    there, back = (
        {".".join(one["key"]): (one["before"], one["after"]) for one in differences(*pair)}
        for pair in ((plain, after), (after, plain))
    )
    assert there == said
    assert back == {key: values[::-1] for key, values in said.items()}


# -- in a campaign ---
@pytest.fixture
def live(tmp_path):
    opened = start(tmp_path / "project", audit={"share": 0.0}, budget={"rounds": 1})
    yield opened
    opened.close()


def test_a_campaign_whose_rounds_are_done_goes_on_when_it_is_given_more(live):
    answer_all(live)
    train(live)
    answer_all(live)
    assert train(live) == "ended"
    assert live.state().why == "all rounds are done"
    live.settings.change({"budget": {"rounds": 2}}, "lead")
    assert live.state().phase == "training"
    assert live.ready()
    assert train(live) == "opened"
    assert live.state().round == 2
    answer_all(live)
    assert train(live) == "ended"
    live.settings.change({"budget": {"rounds": 3, "total": live.ledger.spent()}}, "lead")
    assert train(live) == "ended"
    assert live.state().why == "the money is spent"
    live.settings.change({"budget": {"total": None}}, "lead")
    assert train(live) == "opened"
    bought = [item for number in range(4) for item in selected(live, number)]
    assert len(bought) == len(set(bought))


def test_a_simulated_run_that_is_over_goes_on_with_people_when_it_is_given_more(tmp_path):
    config = config_of(compare=["RANDOM"], corpus={"items": 200}, budget={"rounds": 1, "per_round": 100})
    run_campaign(Run(tmp_path / "run", config))
    live = AnnotationSession.open(tmp_path / "run")
    assert (live.state().phase, live.ready()) == ("ended", False)
    live.settings.change({"budget": {"rounds": 2}}, "lead")
    assert train(live) == "opened"
    answer_all(live)
    assert live.run.result().main.setting_changes[0].changes == {"budget": {"rounds": 2}}
    live.close()


def test_a_report_names_every_strategy_that_has_chosen_a_round(live):
    answer_all(live)
    assert train(live) == "opened"
    answer_all(live)
    live.settings.change({"strategy": {"name": "MT-MIN"}}, "lead")
    live.settings.change({"strategy": {"name": "MT-MAX"}, "budget": {"rounds": 3}}, "lead")
    assert summarise(live.run.result()).lead[0].startswith("MT-AVG spent ")  # the others have not bought anything
    assert train(live) == "opened"
    result = live.run.result()
    assert result.main.strategies == ("MT-AVG", "MT-MAX")
    assert summarise(result).lead[0].startswith("MT-AVG, then MT-MAX spent ")


def test_every_round_gets_the_money_of_the_settings_it_was_decided_under(live):
    answer_all(live)
    live.settings.change({"budget": {"per_round": 60, "rounds": 4}, "costs": {"reserve": 0.0}}, "lead")
    train(live)
    answer_all(live)
    live.settings.change({"budget": {"per_round": 200}}, "lead")
    train(live)
    budgets = [live.ledger.decision(RoundSelection, number).budget for number in (1, 2)]
    assert budgets == [60, 60 + 200 - live.ledger.spent(round=1)]


def test_an_answer_costs_what_it_did_when_it_was_asked_for(live):
    want = live.wanted()[0]
    live.settings.change({"costs": {"intent": {"per_item": 50}}}, "lead")
    words = len(live.item(want.id)["words"])
    answer = gold_answer(live, want)
    assert live.recorder.record(answer).cost == words + 3 + len(answer.labels["slots"])
    answer_all(live)
    train(live)
    want = live.wanted()[0]
    answer = gold_answer(live, want)
    assert live.recorder.record(answer).cost == len(live.item(want.id)["words"]) + 50 + len(answer.labels["slots"])
    assert live.settings.prices()["now"]["intent"] == {"per_item": 50.0}


def test_another_strategy_chooses_the_next_round_and_history_says_who_wanted_it(live):
    live.settings.change({"strategy": {"name": "RANDOM"}}, "anna", "key 1")
    live.settings.change({"strategy": {"name": "RANDOM"}}, "anna", "key 1")  # sent twice, made once
    assert live.settings.to_json()["history"][0]["since_round"] is None
    answer_all(live)
    train(live)
    found = live.settings.to_json()
    assert found["settings"]["strategy"]["name"] == "RANDOM"
    assert [(e["number"], e["by"], e["since_round"], e["changes"]) for e in found["history"]] == [
        (1, "anna", 1, {"strategy": {"name": "RANDOM"}})
    ]
    assert found["history"][0]["differences"] == [{"key": ["strategy", "name"], "before": "MT-AVG", "after": "RANDOM"}]
    assert found["choices"]["strategy"]["base"] == "RANDOM"
    assert live.ledger.decision(RoundSelection, 1).setting_changes == 1
    json.dumps(found)


def test_a_refused_change_leaves_no_trace(live):
    before = live.ledger.fingerprint()
    with pytest.raises(ConfigError, match=r"budget\.per_round"):
        live.settings.change({"budget": {"per_round": 0}}, "lead")
    with pytest.raises(ConfigError, match="nothing would change"):
        live.settings.change({"budget": {"rounds": 1}}, "lead")
    assert live.ledger.fingerprint() == before


def test_a_change_that_comes_while_a_round_is_decided_counts_for_the_one_after(live):
    live.settings.change({"budget": {"rounds": 3}}, "lead")
    answer_all(live)

    def tell(event):
        if event["event"] == "scored":
            live.settings.change({"strategy": {"name": "RANDOM"}}, "lead")

    train(live, tell)
    assert live.ledger.decision(RoundSelection, 1).setting_changes == 1
    answer_all(live)
    train(live)
    assert live.ledger.decision(RoundSelection, 2).setting_changes == 2
    assert [entry["since_round"] for entry in live.settings.to_json()["history"]] == [1, 2]


def test_a_correction_that_comes_while_a_round_is_decided_counts_for_the_one_after(tmp_path):
    undisturbed, corrected = (start(tmp_path / name, audit={"share": 0.0}) for name in ("a", "b"))
    for live in (undisturbed, corrected):
        answer_all(live)
    item = corrected.ledger.view().ids[0]

    def tell(event):
        if event["event"] == "scored":
            labels = corrected.corpus.schema["intent"].labels
            for number, label in enumerate(labels):  # whatever was said, it is something else at the end
                fix = Answer(item, {"intent": label}, "ann", role="correction", key=f"key {number}")
                corrected.recorder.record(fix)

    train(undisturbed)
    train(corrected, tell)
    assert selected(undisturbed, 1) == selected(corrected, 1)
    last = len(corrected.corpus.schema["intent"].labels) - 1
    assert corrected.ledger.view().labels["intent"].rows[0].tolist() == [[last]]
    for live in (undisturbed, corrected):
        live.close()


def test_measured_prices_follow_the_seconds_and_are_written_with_their_round(tmp_path):
    costs = {"unit": 0.0001, "hourly": 36.0, "measured": True, "reading": {"per_word": 0.001}}
    costs |= {"intent": {"per_item": 0.01}, "slots": {"per_span": 0.01}}
    live = start(tmp_path / "project", costs=costs, budget={"per_round": 3, "rounds": 2}, audit={"share": 0.0})
    first = live.settings.costs
    for want in live.wanted():  # a cent a second: intents take 4
        words = len(live.item(want.id)["words"])
        live.recorder.record(gold_answer(live, want, seconds={"reading": 0.5 * words, "intent": 4.0, "slots": 1.0}))
    assert live.settings.costs == first
    pace = live.settings.measured_speed()
    assert pace["intent"]["observations"] == 12
    assert pace["intent"]["per_item"] == pytest.approx((12 * 4 + 20 * 1) / 32, abs=1e-3)
    train(live)
    decided = live.ledger.decision(RoundPrices, 1).prices
    assert decided["intent"] == {"per_item": pytest.approx(0.0213, abs=1e-4)}
    assert live.settings.prices()["now"]["intent"] == decided["intent"]
    want = live.wanted()[0]
    receipt = live.recorder.record(gold_answer(live, want))
    spans = len(gold_answer(live, want).labels["slots"])
    words = len(live.item(want.id)["words"])
    money = sum(
        decided[what].get(key, 0) * count
        for what, key, count in [
            ("reading", "per_item", 1),
            ("reading", "per_word", words),
            ("intent", "per_item", 1),
            ("slots", "per_item", 1),
            ("slots", "per_span", spans),
        ]
    )
    assert receipt.cost == pytest.approx(money / 0.0001)
    live.close()


# -- what if ---
def quiet(event):
    pass


def test_a_preview_decides_nothing_and_says_what_comes_and_goes(tmp_path):
    live = start(tmp_path / "project", audit={"share": 0.2})
    with pytest.raises(ConfigError, match="no model yet"):
        preview_round(live.folder, {"budget": {"per_round": 200}}, quiet)
    answer_all(live)
    train(live)
    answer_all(live)
    before = live.ledger.fingerprint()
    found = preview_round(live.folder, {"budget": {"per_round": 200}, "strategy": {"name": "RANDOM"}}, quiet)
    assert live.ledger.fingerprint() == before
    now, then = found["now"], found["then"]
    assert found["round"] == 2
    assert (now["strategy"], then["strategy"]) == ("MT-AVG", "RANDOM")
    assert now["cost"] <= now["budget"] < then["budget"]
    assert now["items"] == found["same"] + found["removed"]
    assert then["items"] == found["same"] + found["added"]
    assert then["labels"] == {"intent": then["items"], "slots": then["items"]}
    assert now["audit"] == then["audit"] > 0
    live.close()


def test_a_preview_by_what_the_model_left_is_one_by_the_model_itself(tmp_path):
    live = start(tmp_path / "project", audit={"share": 0.0})
    answer_all(live)
    train(live)
    change = {"strategy": {"name": "MT-MIN+BLP_AL"}}
    quick = preview_round(live.folder, change, quiet)
    for file in (live.folder / "suggestions").glob("pool-*"):
        file.unlink()
    assert preview_round(live.folder, change, quiet) == quick
    live.close()


def test_a_preview_of_a_campaign_that_would_be_over_says_why(tmp_path):
    live = start(tmp_path / "project", audit={"share": 0.0}, budget={"rounds": 1})
    answer_all(live)
    train(live)
    found = preview_round(live.folder, {"budget": {"rounds": 2}}, quiet)
    assert found["now"]["why"] == "all rounds are done"
    assert found["now"]["items"] == 0
    assert found["then"]["items"] > 0
    live.close()


def test_a_setting_that_results_depend_on_is_part_of_a_campaigns_fingerprint():
    assert live_config(budget={"ahead": 0.2}).digest != live_config().digest
