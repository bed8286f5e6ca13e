"""Rounds whose money is split between tasks: that selections keep to the split, and that it is decided once."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, SplitProblem, exact
from bursar.allocation.adviser import FEWEST, AllocationAdviser, BudgetSplit, capped, estimates_of, importance_of, paid
from bursar.annotation.round_worker import preview_round
from bursar.campaign import GoldAnnotator
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import LabelValue, RoundSelection, SplitDecision
from bursar.errors import ConfigError
from bursar.selection import Candidates
from bursar.tasks import Prices
from tests.campaign.lives import answer_all, one_corpus, start, train  # noqa: F401 a fixture
from tests.campaign.small import config_of

GIVEN = {
    "rater": "given",
    "rater_settings": {"betas": {"intent": 0.5, "slots": 0.8}},
    "informer": "probe",
    "informer_settings": {"repetitions": 2},
}


def config(**changes):
    table = {"strategy": {"name": "UDJS"}, "budget": {"seed_items": 24, "rounds": 2}, "allocation": GIVEN}
    return config_of(**(table | changes))


def run(folder, chosen):
    campaign = Campaign(chosen, folder)
    campaign.run(GoldAnnotator(campaign.corpus))
    return campaign


def labels_of(ledger, round):
    """How many labels of each task a round's strategy chose."""
    found = {"intent": 0, "slots": 0}
    for item in ledger.decision(RoundSelection, round).items:
        for task in item.tasks if item.purpose == "strategy" else ():
            found[task] += 1
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, word_counts):
    campaign = run(tmp_path_factory.mktemp("split"), config())
    yield campaign
    campaign.close()


# -- what a round does -------------------------------------------------------------------------------------------------
def test_no_task_gets_more_labels_than_its_part(undisturbed):
    for round in (1, 2):
        caps, bought = undisturbed.ledger.decision(RoundSelection, round).caps, labels_of(undisturbed.ledger, round)
        assert all(bought[task] <= caps[task] for task in caps)
        assert sum(bought.values()) > 0


def test_the_split_is_decided_before_the_selection_and_tells_what_it_went_by(undisturbed):
    decided = undisturbed.ledger.decision(SplitDecision, 1)
    assert undisturbed.ledger.decision(SplitDecision, 0) is None
    assert decided.known.labels == {"intent": 24, "slots": 24}
    assert decided.known.rates["slots"][0] == 0.8
    assert decided.known.unknown == ()
    assert sum(decided.labels[task] * decided.prices[task] for task in decided.labels) <= decided.money
    later = undisturbed.ledger.decision(SplitDecision, 2).known.labels
    assert {task: 24 + sum(labels.values()) for task, labels in by_task(undisturbed, 1).items()} == later


def by_task(campaign, round):
    """Labels of each task that a round bought, by purpose."""
    found = {"intent": {}, "slots": {}}
    for item in campaign.ledger.decision(RoundSelection, round).items:
        for task in item.tasks:
            found[task][item.purpose] = found[task].get(item.purpose, 0) + 1
    return found


def test_a_round_has_a_certificate_within_its_split(undisturbed):
    certificate = undisturbed.ledger.decision(RoundSelection, 1).certificate
    assert certificate.objective <= certificate.bound


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_that_of_the_choice_within_the_split(seed):
    """With few labels of one task allowed it bounds less than what could be chosen without, and is still tight."""
    strategy, pool = config(strategy={"name": "UDJS+BLP_AL"}).strategy.make(), pool_of(seed=seed)
    free = strategy.select(pool, 150, seed=1)
    within = strategy.select(capped(pool, {"intent": 4, "slots": 60}), 150, seed=1)
    assert within.tasks.sum(axis=0)[0] == 4 < free.tasks.sum(axis=0)[0]
    assert within.certificate.objective <= within.certificate.bound < free.certificate.objective
    assert within.certificate.bound <= 1.001 * within.certificate.objective


def test_a_campaign_without_the_section_decides_nothing_about_a_split(tmp_path):
    campaign = run(tmp_path, config(allocation=None, budget={"seed_items": 24, "rounds": 1}))
    assert campaign.ledger.decisions(SplitDecision) == []
    assert campaign.ledger.decision(RoundSelection, 1).caps is None
    assert campaign.config.model_dump()["allocation"] is None
    campaign.close()


def test_a_section_that_splits_nothing_chooses_as_without_one(tmp_path):
    found = []
    for name, section in (("none", {"method": "none"}), ("without", None)):
        campaign = run(tmp_path / name, config(allocation=section, budget={"seed_items": 24, "rounds": 1}))
        found.append(campaign.ledger.decision(RoundSelection, 1))
        campaign.close()
    assert found[0] == found[1]


# -- killed and resumed ------------------------------------------------------------------------------------------------
class Killed(Exception):
    pass


@pytest.mark.parametrize("place", ["after the split", "while measuring"])
def test_a_campaign_killed_around_the_split_ends_in_the_same_ledger(undisturbed, tmp_path, monkeypatch, place):
    def killed(*_, **__):
        raise Killed

    campaign = Campaign(config(), tmp_path)
    with monkeypatch.context() as patch:
        if place == "after the split":
            patch.setattr(BudgetSplit, "select", killed)
        else:
            patch.setattr(AllocationAdviser, "label_value", killed)
        with pytest.raises(Killed):
            campaign.run(GoldAnnotator(campaign.corpus))
    campaign.close()
    with monkeypatch.context() as patch:
        if place == "after the split":  # what is decided is not measured again
            measure = AllocationAdviser.label_value
            asked = []
            patch.setattr(AllocationAdviser, "label_value", lambda _, *a, **k: asked.append(1) or measure(*a, **k))
        campaign = run(tmp_path, config())
    assert campaign.ledger.fingerprint() == undisturbed.ledger.fingerprint()
    if place == "after the split":
        assert len(asked) == 1  # for the second round alone
    campaign.close()


# -- people ------------------------------------------------------------------------------------------------------------
def test_a_live_campaign_is_split_and_previewed_by_what_was_known(tmp_path):
    live = start(
        tmp_path, strategy={"name": "UDJS"}, budget={"seed_items": 24, "per_round": 150}, allocation=GIVEN | {}
    )
    try:
        answer_all(live)
        train(live)
        caps = live.ledger.decision(RoundSelection, 1).caps
        bought = labels_of(live.ledger, 1)
        assert all(bought[task] <= caps[task] for task in caps)
        answer_all(live, leave=1)
        found = preview_round(live.folder, {"limits": {"tasks": {"slots": {"at_most": 0}}}}, lambda event: None)
        assert found["then"]["labels"]["slots"] == found["then"]["audit"]
        assert live.ledger.decision(SplitDecision, 2) is None  # a preview decides nothing
        live.settings.change({"allocation": {"method": "none"}}, "ann")
        answer_all(live)
        train(live)
        assert live.ledger.decision(RoundSelection, 2).caps is None
    finally:
        live.close()


# -- what is not known -------------------------------------------------------------------------------------------------
def test_tasks_with_too_few_labels_to_tell_anything_from_share_the_money(tmp_path):
    chosen = config(budget={"seed_items": FEWEST - 8, "rounds": 1}, audit={"share": 0.0}, allocation={})
    campaign = run(tmp_path, chosen)
    decided = campaign.ledger.decision(SplitDecision, 1)
    assert decided.known.unknown == ("intent", "slots")
    assert decided.known.informs["intent"]["slots"] == (0.0, 1.0)
    assert all(labels > 0 for labels in decided.labels.values())
    campaign.close()


def test_money_below_the_cheapest_label_ends_the_campaign_and_says_so(tmp_path):
    campaign = run(tmp_path, config(budget={"seed_items": 24, "per_round": 1, "rounds": 2}, audit={"share": 0.0}))
    assert campaign.state.ended == "the remaining items are too expensive"
    campaign.close()


# -- what labels are worth now -----------------------------------------------------------------------------------------
def known(labels, rates, informs=0.0):
    tasks = tuple(labels)
    return LabelValue(
        labels=labels,
        rates={name: (rates[name], rates[name], rates[name], float(labels[name])) for name in tasks},
        informs={a: {b: (informs, 0.0) for b in tasks if b != a} for a in tasks},
    )


def test_tasks_at_the_seed_count_alike_and_those_with_more_labels_count_less():
    rates = {"a": 0.6, "b": 0.6}
    assert importance_of(known({"a": 50, "b": 50}, rates), ("a", "b"), 50) == (1.0, 1.0)
    more = importance_of(known({"a": 50, "b": 500}, rates), ("a", "b"), 50)
    assert more[0] == 1.0 > more[1]


def test_the_worth_of_labels_falls_by_no_more_than_the_square_of_their_number():
    [worth] = importance_of(known({"a": 100}, {"a": 1e-6}), ("a",), 10)
    assert worth == pytest.approx(0.01)
    [worth] = importance_of(known({"a": 100}, {"a": 1.0}), ("a",), 10)
    assert worth == 1.0


def test_what_is_known_is_read_in_the_order_of_the_tasks():
    said = known({"b": 30, "a": 20}, {"a": 0.5, "b": 0.9})
    said.informs["a"]["b"] = (0.7, 0.1)
    found = estimates_of(said, ("a", "b"))
    assert found.tasks == ("a", "b")
    assert found.informativeness.value.tolist() == [[1.0, 0.7], [0.0, 1.0]]
    assert found.rates["b"] == ReductionRate(0.9, 0.9, 0.9, 30.0)


def test_the_gain_of_an_important_task_counts_for_more():
    nobody = Informativeness(("a", "b"), np.eye(2), np.zeros((2, 2)))
    rates = {"a": ReductionRate(0.5, 0.5, 0.5, 10), "b": ReductionRate(0.5, 0.5, 0.5, 10)}
    problem = SplitProblem(SplitEstimates(nobody, rates), prices=(1, 1), budget=40, importance=(1.0, 0.25))
    assert exact(problem).counts == (30, 10)  # a quarter is two blocks further down
    assert problem.gains((10, 10)).tolist() == [[10.0, 0.0], [0.0, 2.5]]


# -- splits of a pool --------------------------------------------------------------------------------------------------
class TermsOf:
    """What a split looks at."""

    def __init__(self, chosen):
        self.config, self.strategy = chosen, chosen.strategy.make()
        self.costs = chosen.costs.model([])


def pool_of(items=60, seed=0):
    rng = np.random.default_rng(seed)
    prices = Prices(("intent", "slots"), rng.integers(2, 6, items), rng.integers(1, 9, (items, 2)))
    return Candidates([f"u{n:03}" for n in range(items)], rng.random((items, 2)), prices)


@pytest.mark.parametrize("method", ["exact", "greedy", "robust", "together"])
@pytest.mark.parametrize("name", ["UDJS", "UDJS+BLP_AL", "UDJS+RATIO_AL"])
def test_a_choice_keeps_to_the_money_and_to_the_split(method, name):
    for seed in range(3):
        terms = TermsOf(config(allocation={"method": method}, strategy={"name": name}))
        said = known({"intent": 30, "slots": 90}, {"intent": 0.5, "slots": 0.8}, informs=0.3)
        pool = pool_of(seed=seed)
        split = BudgetSplit.of(terms, said, pool, 150)
        chosen, caps = split.select(terms, pool, 150, seed=1)
        assert 100 <= chosen.total <= 150
        assert (chosen.tasks.sum(axis=0) <= list(caps.values())).all()


def test_reading_that_several_tasks_share_buys_more_labels():
    terms = TermsOf(config(strategy={"name": "UDJS"}))
    prices = Prices(("intent", "slots"), np.full(60, 20), np.ones((60, 2), dtype=np.int64))
    pool = Candidates([f"u{n:03}" for n in range(60)], np.zeros((60, 2)), prices)  # as unsure of all
    split = BudgetSplit.of(terms, known({"intent": 30, "slots": 30}, {"intent": 0.7, "slots": 0.7}), pool, 420)
    assert split.caps == {"intent": 10, "slots": 10}
    chosen, caps = split.select(terms, pool, 420, seed=1)
    assert paid(pool, chosen) == {"intent": 11, "slots": 11}
    assert caps == {"intent": 19, "slots": 19}
    assert chosen.total == 418


def test_a_task_whose_part_is_nothing_gets_nothing():
    pool = pool_of()
    chosen = config().strategy.make().select(capped(pool, {"intent": 0, "slots": 7}), 150)
    assert chosen.tasks.sum(axis=0).tolist() == [0, 7]


def test_limits_hold_for_the_split_as_well():
    terms = TermsOf(config(limits={"tasks": {"intent": {"at_most": 3}, "slots": {"at_least": 5}}}))
    said = known({"intent": 30, "slots": 30}, {"intent": 0.9, "slots": 0.1})
    assert BudgetSplit.of(terms, said, pool_of(), 150).caps["intent"] == 3
    scarce = BudgetSplit.of(terms, said, pool_of(), 10)
    assert scarce.caps["slots"] == 5  # the strategy keeps to the minimum, or says that it cannot


@pytest.mark.parametrize("per_round", [180, 228])
@pytest.mark.parametrize("method", ["exact", "robust", "together"])
def test_minimums_that_reading_an_item_once_pays_for_are_bought_in_every_round(tmp_path, method, per_round):
    """Ten labels of each task cost 220 and more if every one is of another item: more than a round has."""
    limits = {"tasks": {name: {"at_least": 10} for name in ("intent", "slots")}}
    changes = {"budget": {"seed_items": 24, "per_round": per_round, "rounds": 2}, "audit": {"share": 0.0}}
    chosen = config(strategy={"name": "UDJS+BLP_AL"}, limits=limits, allocation={**GIVEN, "method": method}, **changes)
    campaign = run(tmp_path, chosen)
    assert campaign.state.ended == "all rounds are done"
    for one in (1, 2):
        wanted = campaign.state.wanted(one).values()
        assert all(sum(name in want.tasks for want in wanted) >= 10 for name in ("intent", "slots"))
    campaign.close()


def test_labels_that_all_seem_to_harm_are_split_as_if_they_did_not_and_the_ledger_is_told():
    rates, labels = {"intent": 0.7, "slots": 0.7}, {"intent": 30, "slots": 30}
    harming, helping = (
        BudgetSplit.of(TermsOf(config()), known(labels, rates, informs=informs), pool_of(), 150)
        for informs in (-1.5, 0.5)
    )
    assert sum(harming.caps.values()) > 0
    assert harming.set_aside
    assert harming.decision(1).set_aside
    assert harming.paying({"intent": 9}).set_aside
    assert not helping.decision(1).set_aside


# -- refused at the door -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"allocation": {"method": "luck"}}, "allocation.method = 'luck'. Fix: use exact, greedy"),
        ({"allocation": {"informer": "lookahed"}}, "no informer 'lookahed'. Fix: did you mean 'lookahead'"),
        ({"allocation": {"rater": "law-of-nature"}}, "there is no rater"),
        ({"allocation": {"rater_settings": {"points": 4}}}, "rater_settings is set without a rater"),
        ({"allocation": {"share": 4}}, "allocation.share is no key. Fix: did you mean audit.share. Use informer"),
        ({"allocation": {"informer": 4}}, "allocation.informer = 4"),
        ({"strategy": {"name": "EQB-DJS"}}, "EQB-DJS cannot keep to limits"),
        ({"strategy": {"name": "MT-PAR"}}, "MT-PAR cannot keep to limits"),
        ({"strategy": {"name": "MT-AVG"}}, "MT-AVG buys items for all tasks at once.*UDJS"),
        ({"strategy": {"name": "RANDOM"}}, "RANDOM buys items for all tasks at once"),
        ({"budget": {"counts": "items"}}, "a second label of an item costs nothing"),
    ],
)
def test_a_split_that_cannot_be_is_refused_with_a_fix(changes, said):
    with pytest.raises(ConfigError, match=said):
        config(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": ["intent"]}, "one task, 'intent'"),
        (
            {"allocation": {"rater": "given", "rater_settings": {"betas": {"intent": 0.4}}}},
            "no reduction rate is given for task 'slots'",
        ),
        ({"allocation": {"rater": "law"}}, "allocation: the rater 'law' needs a law"),
        ({"allocation": {"informer": "probe", "informer_settings": {"repetitions": 0}}}, "repetitions = 0"),
        ({"allocation": {"informer": "alignment"}}, "has no training steps.*informer 'probe'"),
    ],
)
def test_what_a_campaign_could_not_measure_is_refused_before_anything_is_bought(tmp_path, changes, said):
    with pytest.raises(ConfigError, match=said):
        Campaign(config(**changes), tmp_path).ask()
    if (tmp_path / "ledger.sqlite").exists():
        campaign = Campaign(config(allocation=None), tmp_path)
        assert campaign.state.rounds_opened == -1
        campaign.close()


def test_a_strategy_that_is_compared_is_split_where_that_can_be():
    chosen = config(compare=["RANDOM", "UDJS+BLP_AL"])
    assert chosen.arm("UDJS+BLP_AL").splits
    assert not chosen.arm("RANDOM").splits
    assert parse_config({"allocation": {"method": "none"}}).strategy.name == "AUTO"
