"""What a campaign gives its strategy, and what it does with the answer."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign import Campaign, GoldAnnotator
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.splits import load_parts
from bursar.errors import ConfigError, SelectionError
from tests.campaign.small import config_of
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def run(tmp_path):
    made = []

    def runner(**changes):
        config = config_of(**changes)
        made.append(Campaign(config, tmp_path / f"run{len(made)}", parts=load_parts(config)))
        made[-1].run(GoldAnnotator(made[-1].corpus))
        return made[-1]

    yield runner
    for campaign in made:
        campaign.close()


def bought_by(campaign, purpose="strategy"):
    """Round to (id, tasks) of what the strategy asked for."""
    return {
        selection.round: [(i.id, i.tasks) for i in selection.items if i.purpose == purpose]
        for selection in campaign.ledger.decisions(RoundSelection)
    }


def test_an_item_bought_for_one_task_can_be_bought_for_the_other_later(run):
    campaign = run(strategy={"name": "UDJS+BLP_AL"}, budget={"rounds": 6}, corpus={"pool_items": 120})
    bought = [pair for entries in bought_by(campaign).values() for pair in entries]
    items = [item for item, _ in bought]
    labels = [(item, task) for item, tasks in bought for task in tasks]
    assert len(set(items)) < len(items)
    assert len(set(labels)) == len(labels)
    view = campaign.ledger.view()
    assert not (view.labels["intent"].present & view.labels["slots"].present).all()


def test_exact_rounds_carry_their_certificate(run):
    campaign = run(strategy={"name": "MT-MIN+BLP_AL"})
    for selection in campaign.ledger.decisions(RoundSelection)[1:]:
        assert selection.certificate.optimal
        assert selection.certificate.objective == pytest.approx(selection.certificate.bound)


def test_an_answer_sent_again_is_taken_for_the_round_that_asked_for_it(run):
    campaign = run(strategy={"name": "UDJS+BLP_AL"}, budget={"rounds": 6}, corpus={"pool_items": 120})
    bought = [pair for entries in bought_by(campaign).values() for pair in entries]
    twice = next(item for item, _ in bought if sum(item == other for other, _ in bought) == 2)
    gold, before = GoldAnnotator(campaign.corpus), campaign.ledger.fingerprint()
    for item, tasks in bought:
        if item == twice:
            campaign.tell({item: gold.annotate(item, tasks)}, gold.name)
    assert campaign.ledger.fingerprint() == before


def test_a_strategy_that_decides_once_spends_all_rounds_in_the_first(run):
    campaign = run(strategy={"name": "MT-AVG+BLP"}, audit={"share": 0.0})
    assert sorted(bought_by(campaign)) == [0, 1]
    assert 580 < campaign.ledger.spent(round=1) <= 600
    assert campaign.state.ended == "all rounds are done"


def test_limits_of_a_round_are_as_many_times_larger_when_one_decision_is_for_all_rounds(run):
    campaign = run(strategy={"name": "MT-AVG+BLP"}, limits={"tasks": {"slots": {"at_most": 4}}}, audit={"share": 0.0})
    assert len(bought_by(campaign)[1]) == 12


def test_random_labelling_keeps_to_limits_too_so_that_it_can_be_compared(run):
    limits = {"tasks": {"slots": {"at_most": 4}}, "group": {"by": "label:intent", "at_most": 1}}
    campaign = run(strategy={"name": "RANDOM"}, limits=limits, audit={"share": 0.0})
    assert [len(entries) for number, entries in bought_by(campaign).items() if number] == [4, 4, 4]


def test_a_budget_can_count_items(run):
    campaign = run(budget={"counts": "items", "per_round": 10}, audit={"share": 0.2})
    rounds = campaign.ledger.decisions(RoundSelection)
    assert [len(selection.items) for selection in rounds] == [20, 10, 10, 10]
    assert [len(bought_by(campaign, "audit")[number]) for number in (1, 2, 3)] == [2, 2, 2]


def test_weights_reach_the_strategy(run):
    first, second = (
        bought_by(run(strategy={"name": "MT-AVG", "weights": weights}))[1]
        for weights in ({"intent": 1, "slots": 0}, {"intent": 0, "slots": 1})
    )
    one = bought_by(run(strategy={"name": "MT-EC-slots"}))[1]
    assert second == one != first


def test_no_round_breaks_a_limit(run):
    limits = {
        "tasks": {"intent": {"at_most": 5}, "slots": {"at_least": 8}},
        "group": {"by": "label:intent", "at_most": 2},
        "hours": {"anna": {"at_most": 0.5, "tasks": {"slots": {"per_item": 0.01, "per_word": 0.002}}}},
    }
    campaign = run(strategy={"name": "UDJS+BLP_AL"}, limits=limits, audit={"share": 0.0})
    words = dict(zip(campaign.corpus.ids.tolist(), campaign.corpus.words.tolist(), strict=True))
    for number, entries in bought_by(campaign).items():
        if number:
            slots = [item for item, tasks in entries if "slots" in tasks]
            assert sum("intent" in tasks for _, tasks in entries) <= 5
            assert len(slots) >= 8
            assert sum(0.01 + 0.002 * words[item] for item in slots) <= 0.5 + 1e-9


def test_limits_that_the_money_does_not_reach_end_the_campaign_with_the_reason(run):
    campaign = run(strategy={"name": "MT-AVG+BLP_AL"}, limits={"tasks": {"slots": {"at_least": 90}}})
    assert "labels of slots" in campaign.state.ended
    assert sorted(bought_by(campaign)) == [0]


@pytest.mark.parametrize(
    ("name", "bins"),
    [
        *((name, "length") for name in ("K-CENTER", "BADGE", "BATCHBALD", "MT-AVGDA", "ST-EC-intent")),
        *((name, bins) for name in ("BALD+IDMR", "MIN-CONF+BLP_AL+IDMR") for bins in ("length", "cluster")),
    ],
)
def test_strategies_get_the_evidence_that_they_look_at(run, tmp_path_factory, name, bins):
    encoder = str(tiny_encoder(tmp_path_factory.mktemp("encoder")))
    campaign = run(
        strategy={"name": name, "bins": bins, "bin_count": 3},
        learner={"name": "transformer", "encoder": encoder, "epochs": 1},
        budget={"rounds": 2, "per_round": 100},
        corpus={"pool_items": 80, "test_items": 5, "dev_items": 5},
        audit={"share": 0.0},
    )
    assert all(len(entries) for number, entries in bought_by(campaign).items() if number)
    if name == "ST-EC-intent":
        assert len(campaign.models.untrained().models) == 2


def test_output_matching_keeps_labels_in_proportion(run):
    campaign = run(strategy={"name": "MT-AVG+IDMR", "bins": "label:intent"}, budget={"rounds": 2, "per_round": 300})
    plain = run(strategy={"name": "MT-AVG"}, budget={"rounds": 2, "per_round": 300})
    gold = campaign.corpus.labels["intent"].rows.values[:, 0]
    everything = np.bincount(gold[campaign.pool], minlength=gold.max() + 1) / len(campaign.pool)

    def distance(of):
        chosen = of.corpus.positions([item for entries in bought_by(of).values() for item, _ in entries])
        return np.abs(np.bincount(gold[chosen], minlength=len(everything)) / len(chosen) - everything).sum()

    assert distance(campaign) < distance(plain)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": {"name": "MT-EC-slot"}}, "slot"),
        ({"strategy": {"name": "MT-AVG", "weights": {"intents": 1}}}, "intents"),
        ({"strategy": {"name": "MT-MAX", "weights": {"intent": 1}}}, "takes no weights"),
        ({"strategy": {"name": "MT-PAR+BLP_AL"}}, "gives no scores"),
        ({"strategy": {"name": "MT-AVG+IDMR", "bins": "label:slots"}}, "more than one label"),
        ({"strategy": {"name": "MT-AVG+IDMR", "bins": "size"}}, "size"),
        ({"strategy": {"name": "MT-AVG+FAST"}}, "FAST"),
        ({"limits": {"tasks": {"tree": {"at_most": 5}}}}, "tree"),
        ({"limits": {"tasks": {"slots": {"at_most": 5}}}, "strategy": {"name": "MT-PAR"}}, "cannot keep to limits"),
    ],
)
def test_what_no_round_could_be_chosen_by_is_refused_at_the_door(run, changes, said):
    with pytest.raises((ConfigError, SelectionError), match=said):
        run(**changes)
