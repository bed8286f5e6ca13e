"""Campaigns: within budget, resumable anywhere, honest about what they know."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign import Campaign, GoldAnnotator, Run, run_campaign
from bursar.campaign.audit import audit_scores, audit_slices
from bursar.campaign.decisions import AuditPredictions, RoundRecord, RoundSelection
from bursar.campaign.savings import savings_of
from bursar.campaign.splits import load_parts
from bursar.errors import BursarError, ConfigError, LedgerError
from bursar.ledger import Annotation, Ledger, Submission
from tests.campaign.small import config_of
from tests.tiny import WordCounts


@pytest.fixture(scope="module")
def parts():
    return load_parts(config_of())


@pytest.fixture
def make(tmp_path, parts):
    def maker(folder="run", **changes):
        config = config_of(**changes)
        return Campaign(config, tmp_path / folder, parts=load_parts(config) if "corpus" in changes else parts)

    return maker


def gold(campaign):
    return GoldAnnotator(campaign.corpus)


def test_no_round_spends_more_than_it_may(make):
    campaign = make()
    campaign.run(gold(campaign))
    seed = campaign.ledger.spent(round=0)
    for number in range(1, 4):
        assert sum(campaign.ledger.spent(round=r) for r in range(1, number + 1)) <= number * 200
        assert campaign.ledger.spent(round=number) > 150
    assert campaign.ledger.spent() <= seed + 600


def test_a_purse_is_never_overdrawn(make):
    campaign = make(budget={"total": 500, "seed_items": 20, "per_round": 200, "rounds": 9})
    campaign.run(gold(campaign))
    assert 400 < campaign.ledger.spent() <= 500


def test_money_is_charged_by_the_papers_formula(make):
    campaign = make()
    campaign.run(gold(campaign))
    view = campaign.ledger.view()
    expected = sum(int(view.reading[i]) + 3 + len(view[i].labels["slots"]) for i in range(len(view)))
    assert campaign.ledger.spent() == expected


def test_no_item_is_bought_twice(make):
    campaign = make()
    campaign.run(gold(campaign))
    chosen = [item.id for selection in campaign.ledger.decisions(RoundSelection) for item in selection.items]
    assert len(chosen) == len(set(chosen)) == len(campaign.ledger.view())


def test_two_runs_of_one_seed_are_one_ledger_and_another_seed_is_another(make):
    first, second, other = make("a"), make("b"), make("c", seed=1)
    for campaign in (first, second, other):
        campaign.run(gold(campaign))
    assert first.ledger.fingerprint() == second.ledger.fingerprint() != other.ledger.fingerprint()


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("strategy", ["MT-AVG", "RANDOM"])
def test_a_campaign_stopped_at_any_write_ends_in_the_same_ledger(make, monkeypatch, strategy):
    undisturbed = make("whole", strategy={"name": strategy})
    undisturbed.run(gold(undisturbed))
    expected = undisturbed.ledger.fingerprint()

    writes = {"left": 10**9}

    def dying(method):
        def write(self, *arguments):
            writes["left"] -= 1
            if writes["left"] < 0:
                raise Killed
            return method(self, *arguments)

        return write

    monkeypatch.setattr(Ledger, "submit", dying(Ledger.submit))
    monkeypatch.setattr(Ledger, "decide", dying(Ledger.decide))
    rng = np.random.default_rng(0)
    for number, patience in enumerate([1, 2, 3, *rng.integers(4, 60, 6).tolist()]):
        for attempt in range(1000):
            campaign = make(f"killed-{number}", strategy={"name": strategy})
            writes["left"] = patience + attempt % 3
            try:
                campaign.run(gold(campaign))
                break
            except Killed:
                campaign.close()
        writes["left"] = 10**9
        assert campaign.ledger.fingerprint() == expected


def test_asking_twice_without_telling_asks_for_the_same(make):
    campaign = make()
    first, second = campaign.ask(), campaign.ask()
    assert first == second
    assert first.round == 0
    assert len(first) == 20


def test_telling_a_part_leaves_the_rest_to_be_asked(make):
    campaign = make()
    ask = campaign.ask()
    answers = {w.id: gold(campaign).annotate(w.id, w.tasks) for w in ask.items[:5]}
    assert not any(receipt.repeated for receipt in campaign.tell(answers))
    assert all(receipt.repeated for receipt in campaign.tell(answers))
    assert campaign.ask().items == ask.items[5:]


def test_an_answer_that_nobody_asked_for_is_refused(make):
    campaign = make()
    campaign.ask()
    outside = campaign.corpus.split("test").ids[0]
    with pytest.raises(ConfigError, match=outside):
        campaign.tell({outside: {"intent": "x"}})


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"intent": "set_alarm"}, "answer for all of those tasks"),
        ({}, "answered for nothing"),
        ({"intent": "set_alarm", "slots": [], "mood": "glad"}, "mood"),
        ({"intent": "no_such_intent", "slots": []}, "no_such_intent"),
        ({"intent": "set_alarm", "slots": [[0, 99, "time"]]}, "99"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_leaves_no_trace(make, answers, said):
    campaign = make()
    item = campaign.ask().items[0].id
    before = campaign.ledger.fingerprint()
    with pytest.raises(BursarError, match=said):
        campaign.tell({item: answers})
    assert campaign.ledger.fingerprint() == before


def test_an_answer_sent_again_after_its_round_is_no_trouble(make):
    campaign = make()
    first = campaign.ask()
    answers = {w.id: gold(campaign).annotate(w.id, w.tasks) for w in first.items}
    campaign.tell(answers)
    assert campaign.ask().round == 1
    spent = campaign.ledger.spent()
    assert all(receipt.repeated for receipt in campaign.tell(answers))
    backwards = {item: dict(reversed(labels.items())) for item, labels in answers.items()}
    assert all(receipt.repeated for receipt in campaign.tell(backwards))
    assert campaign.ledger.spent() == spent


def test_a_label_taken_back_leaves_the_audit_readable(make):
    campaign = make(audit={"share": 0.2})
    campaign.run(gold(campaign))
    item = campaign.ledger.bought(purposes=("audit",))[0]
    back = Submission("back", (Annotation(item, "slots", None),), purpose="correction", round=1)
    campaign.ledger.submit(back)
    slices = audit_slices(campaign.ledger, campaign.corpus.schema)
    assert len(slices[0].model["slots"]) == len(slices[0].model["intent"]) - 1
    assert audit_scores(slices, campaign.corpus.schema)
    savings_of(campaign.ledger, campaign.corpus.schema, test_items=0)


def test_a_learner_is_never_shown_gold_that_was_not_bought(make, monkeypatch):
    predict_proba = WordCounts.predict_proba
    seen = []

    def spy(self, items, **more):
        seen.append((set(items.ids.tolist()), any(column.present.any() for column in items.labels.values())))
        return predict_proba(self, items, **more)

    monkeypatch.setattr(WordCounts, "predict_proba", spy)
    campaign = make()
    campaign.run(gold(campaign))
    pool = set(campaign.corpus.ids.take(campaign.pool).tolist())
    assert seen
    assert not any(shown for ids, shown in seen if ids & pool)


def test_tasks_that_the_learner_cannot_train_are_refused_before_anything_is_bought(tmp_path):
    config = config_of(tasks=["intent", "dependencies"], learner={"name": "probe"})
    campaign = Campaign(config, tmp_path / "run")
    with pytest.raises(BursarError, match="dependencies"):
        campaign.ask()
    assert campaign.ledger.spent() == 0
    assert campaign.ledger.decision(RoundSelection, 0) is None


def test_the_strategy_never_sees_the_audit_reserve_and_every_round_buys_its_slice(make):
    campaign = make(audit={"share": 0.2})
    campaign.run(gold(campaign))
    reserve = set(campaign.corpus.ids.take(campaign.audit.reserve).tolist())
    assert campaign.audit.count > 1
    for selection in campaign.ledger.decisions(RoundSelection):
        bought = {p: {i.id for i in selection.items if i.purpose == p} for p in ("seed", "strategy", "audit")}
        assert not (bought["strategy"] | bought["seed"]) & reserve
        assert bought["audit"] <= reserve
        if selection.round > 0:
            assert len(bought["audit"]) == campaign.audit.count


def test_the_audit_share_may_be_nothing(make):
    campaign = make(audit={"share": 0.0})
    campaign.run(gold(campaign))
    assert not campaign.ledger.decisions(AuditPredictions)


def test_the_seed_items_do_not_depend_on_the_strategy_or_the_audit(make):
    first, second = make("a"), make("b", strategy={"name": "RANDOM"}, audit={"share": 0.0})
    assert [w.id for w in first.ask().items] == [w.id for w in second.ask().items]


def test_a_pool_that_runs_out_ends_the_campaign(make):
    campaign = make(corpus={"items": 600, "pool_items": 40}, budget={"per_round": 5000, "rounds": 5})
    campaign.run(gold(campaign))
    view = campaign.ledger.view()
    assert len(view) + len(set(campaign.audit.reserve.tolist())) >= 40
    assert campaign.ask() is None


def test_a_pool_smaller_than_the_seed_is_refused(make):
    with pytest.raises(ConfigError, match="seed_items"):
        make(corpus={"items": 600, "pool_items": 10})


def test_no_rounds_means_the_seed_alone(make):
    campaign = make(budget={"rounds": 0})
    campaign.run(gold(campaign))
    assert len(campaign.ledger.decisions(RoundRecord)) == 1


def test_a_round_too_poor_to_buy_anything_ends_the_campaign(make):
    campaign = make(budget={"per_round": 1})
    campaign.run(gold(campaign))
    assert campaign.state.rounds_opened == 0


def test_patience_ends_a_campaign_that_gets_no_better(make):
    campaign = make(budget={"per_round": 15, "rounds": 40, "patience": 2})
    campaign.run(gold(campaign))
    assert campaign.state.rounds_opened < 40
    scores = [record.dev for record in campaign.ledger.decisions(RoundRecord)]
    assert max(scores[-2:]) <= max(scores[:-2])


def test_predicted_prices_record_estimate_and_actual_and_keep_a_reserve(make):
    campaign = make(costs={"pricing": "predicted", "reserve": 0.5})
    campaign.run(gold(campaign))
    spending = [row for row in campaign.ledger.spending() if row.purpose == "strategy"]
    assert any(row.estimate != row.actual for row in spending if row.what == "slots")
    for selection in campaign.ledger.decisions(RoundSelection):
        if selection.budget is not None:
            assert sum(sum(i.estimate.values()) for i in selection.items) <= selection.budget <= 2 * 200 / 1.5


def test_predicted_prices_never_look_at_gold(make, parts):
    """The same campaign on a pool whose labels are hidden selects the same items, as long as the answers agree."""
    campaign = make("open", costs={"pricing": "predicted"})
    hidden = make("hidden", costs={"pricing": "predicted"})
    labels = {}
    for name, column in parts.corpus.labels.items():
        blind = column.present.copy()
        blind[parts.pool] = False
        rows = column.rows
        kept = rows.values[np.repeat(blind, rows.lengths)]
        labels[name] = type(column)(
            blind, type(rows)(kept, np.concatenate([[0], np.cumsum(np.where(blind, rows.lengths, 0))]))
        )
    hidden.corpus = hidden.ledger.corpus = parts.corpus.with_labels(labels)
    for c in (campaign, hidden):
        c.run(gold(campaign))
    assert campaign.ledger.fingerprint() == hidden.ledger.fingerprint()


def test_arms_share_the_seed_and_spend_alike(tmp_path, parts):
    result = run_campaign(Run(tmp_path / "run", config_of(compare=["random"]), parts))
    first, other = (result.arms[arm].rounds for arm in ("MT-AVG", "RANDOM"))
    assert first[0] == other[0]
    assert abs(first[-1].spent - other[-1].spent) < 40
    assert set(result.comparison) == {"MT-AVG", "RANDOM"}


def test_a_run_is_not_gone_on_with_under_other_settings(tmp_path, parts):
    run_campaign(Run(tmp_path / "run", config_of(), parts))
    with pytest.raises(ConfigError, match=r"budget\.per_round was 200"):
        run_campaign(Run(tmp_path / "run", config_of(budget={"per_round": 300}), parts))


def test_a_run_that_was_refused_at_the_door_can_be_started_with_other_settings(tmp_path):
    wrong = config_of(tasks=["intent", "dependencies"], learner={"name": "probe"})
    with pytest.raises(BursarError, match="dependencies"):
        run_campaign(Run(tmp_path / "run", wrong))
    result = run_campaign(Run(tmp_path / "run", config_of()))
    assert len(result.main.rounds) == 4


def test_a_run_is_not_gone_on_with_on_another_corpus(tmp_path, parts):
    run_campaign(Run(tmp_path / "run", config_of(), parts))
    other = config_of(corpus={"seed": 9})
    with pytest.raises(ConfigError, match="another corpus"):
        run_campaign(Run(tmp_path / "run", other))


def test_going_on_with_a_finished_run_changes_nothing(tmp_path, parts):
    run = Run(tmp_path / "run", config_of(compare=["random"]), parts)
    first = run_campaign(run)
    assert run_campaign(run) == first == Run.open(tmp_path / "run").result()


def test_two_processes_do_not_run_one_folder(tmp_path, parts):
    run = Run(tmp_path / "run", config_of(), parts)
    with run.locked(), pytest.raises(LedgerError, match="another process"):
        run_campaign(Run(tmp_path / "run", config_of(), parts))


def test_two_campaigns_do_not_write_to_one_folder(make, monkeypatch):
    first, second = make(), make()
    first.ask()
    with pytest.raises(LedgerError, match="another process"):
        second.ask()
    first.close()
    assert second.ask() is not None


def test_a_folder_is_not_gone_on_with_under_other_settings_by_the_library_either(make):
    first = make()
    first.ask()
    first.close()
    with pytest.raises(ConfigError, match="other settings"):
        make(budget={"per_round": 300}).ask()


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(ConfigError, match="holds no run"):
        Run.open(tmp_path)


def test_a_task_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Exception, match="'mood'"):
        load_parts(config_of(tasks=["mood"]))


def test_models_are_trained_once_a_set(make, monkeypatch):
    fits = []
    fit = WordCounts.fit
    monkeypatch.setattr(WordCounts, "fit", lambda self, a, **k: fits.append(tuple(a.ids.tolist())) or fit(self, a, **k))
    campaign = make()
    campaign.run(gold(campaign))
    assert len(fits) == len(set(fits))
    campaign.close()
    again = make()
    again.run(gold(again))
    assert len(fits) == len(set(fits))
