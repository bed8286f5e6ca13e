"""A live campaign: what is answered is kept, what is declined is gone, what is decided is decided once."""

from __future__ import annotations

import threading

import pytest

from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.models import Models
from bursar.errors import BursarError, ConfigError, LabelError, LedgerError
from bursar.ledger import Answer, Ledger
from bursar.simulation import assistant_corpus
from tests.campaign.lives import answer_all, gold_answer, live_config, one_corpus, selected, start, train  # noqa: F401
from tests.tiny import WordCounts


def another_intent(live, answer):
    return next(label for label in live.corpus.schema["intent"].labels if label != answer.labels["intent"])


# -- answers ---
def test_a_new_campaign_asks_for_its_seed_items_at_once_and_suggests_nothing(live):
    state, wanted = live.state(), live.wanted()
    assert (state.round, state.phase, state.asked, state.answered, state.spent) == (0, "annotating", 12, 0, 0)
    assert [want.id for want in wanted] == selected(live, 0)
    assert {live.suggestions(want.id) == {} for want in wanted} == {True}


def test_an_answer_is_on_disk_when_it_returns_and_its_item_open_no_more(live):
    want = live.wanted()[0]
    receipt = live.recorder.record(gold_answer(live, want, seconds={"reading": 2.5, "intent": 1.0}))
    beside = Ledger.open(live.folder / "ledger.sqlite", live.corpus)
    assert beside.view()[0].id == want.id
    assert [(t.what, t.seconds) for t in beside.timings()] == [("reading", 2.5), ("intent", 1.0)]
    assert beside.spent() == receipt.cost == live.state().spent > 0
    beside.close()
    assert want.id not in [other.id for other in live.wanted()]


def test_the_same_answer_again_changes_nothing_whatever_its_seconds(live):
    want = live.wanted()[0]
    first = live.recorder.record(gold_answer(live, want))
    before = live.ledger.fingerprint()
    again = live.recorder.record(gold_answer(live, want, seconds={"reading": 9.0}))
    assert (first.repeated, again.repeated, again.key) == (False, True, first.key)
    assert live.ledger.fingerprint() == before


def test_of_two_people_the_first_answer_is_bought_and_the_second_refused(live):
    want = live.wanted()[0]
    live.recorder.record(gold_answer(live, want, "ann"))
    with pytest.raises(LedgerError, match="someone else"):
        live.recorder.record(gold_answer(live, want, "bob"))


def test_who_answered_otherwise_before_is_told_to_correct(live):
    want = live.wanted()[0]
    answer = gold_answer(live, want)
    live.recorder.record(answer)
    other = another_intent(live, answer)
    with pytest.raises(LedgerError, match="correction"):
        live.recorder.record(Answer(want.id, {**answer.labels, "intent": other}, "ann"))


@pytest.mark.parametrize(
    ("labels", "seconds", "said"),
    [
        ({"intent": None, "slots": []}, {}, "no label for task 'intent'"),
        ({}, {}, "answered for nothing"),
        ({"intent": "set_alarm"}, {}, "all of those tasks"),
        ({"intent": "no such", "slots": []}, {}, "no such"),
        ({"intent": "set_alarm", "slots": [[0, 99, "time"]]}, {}, "99"),
        ({"intent": "set_alarm", "slots": []}, {"reading": -1.0}, "seconds"),
        ({"intent": "set_alarm", "slots": []}, {"reading": float("nan")}, "seconds"),
        ({"intent": "set_alarm", "slots": []}, {"sleeping": 1.0}, "sleeping"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_leaves_no_trace(live, labels, seconds, said):
    want, before = live.wanted()[0], live.ledger.fingerprint()
    with pytest.raises(BursarError, match=said):
        live.recorder.record(Answer(want.id, labels, "ann", seconds))
    assert live.ledger.fingerprint() == before
    assert live.wanted()[0] == want


def test_what_nobody_asked_for_and_what_does_not_exist_is_refused(live):
    asked = {want.id for want in live.wanted()}
    stranger = next(id for id in live.corpus.ids.tolist() if id not in asked)
    with pytest.raises(ConfigError, match="no round asks about"):
        live.recorder.record(Answer(stranger, {"intent": "set_alarm", "slots": []}, "ann"))
    with pytest.raises(BursarError, match="no such item"):
        live.item("nowhere")


@pytest.mark.parametrize(
    ("options", "nests"),
    [
        ({}, False),
        ({"tag_head": "crf"}, False),
        ({"tag_head": "spans"}, True),
        ({"tag_head": "spans", "heads": {"slots": "linear"}}, False),
    ],
)
def test_spans_may_overlap_where_the_head_is_over_spans(options, nests, tmp_path):
    schema = assistant_corpus(20, seed=0).with_tasks(["intent", "slots"]).schema
    models = Models(tmp_path, parse_config({"learner": options}), schema)
    assert ("slots" in models.may_nest) == nests


def test_spans_that_overlap_are_refused_where_the_learner_knows_one_tag_a_word(tmp_path):
    live = start(tmp_path / "project", learner={"name": "scikit", "estimator": "naive-bayes"})
    assert {task["name"]: task.get("nested") for task in live.tasks()} == {"intent": None, "slots": False}
    want = live.wanted()[0]
    answer = gold_answer(live, want)
    label = live.corpus.schema["slots"].labels[0]
    with pytest.raises(LabelError, match="overlap"):
        live.recorder.record(Answer(want.id, {**answer.labels, "slots": [[0, 2, label], [1, 3, label]]}, "ann"))
    assert not live.recorder.record(answer).repeated
    live.close()


def test_an_item_asked_about_twice_for_other_tasks_is_answered_by_its_tasks(tmp_path):
    live = start(tmp_path / "project", strategy={"name": "UDJS"}, budget={"rounds": 6}, audit={"share": 0.0})
    seen, twice = {}, None
    while twice is None and live.state().phase != "ended":
        twice = next((want for want in live.wanted() if want.id in seen), None)
        if twice is None:
            seen |= {want.id: gold_answer(live, want) for want in live.wanted()}
            answer_all(live)
            train(live)
    assert twice is not None
    assert not set(seen[twice.id].labels) & set(twice.tasks)
    assert live.recorder.record(seen[twice.id]).repeated  # the earlier answer, sent again
    assert twice in live.wanted()
    assert not live.recorder.record(gold_answer(live, twice)).repeated
    assert twice not in live.wanted()
    live.close()


def test_a_budget_of_items_counts_items(tmp_path):
    live = start(tmp_path / "project", budget={"counts": "items", "per_round": 5, "rounds": 2}, audit={"share": 0.0})
    assert (live.state().spent, live.state().budget) == (0, 22)
    live.recorder.skip("key", live.wanted()[0].id, "unclear", "eve")
    live.recorder.record(gold_answer(live, live.wanted()[0]))
    assert (live.state().spent, live.state().budget) == (1, 21)
    answer_all(live)
    train(live)
    before = live.state()
    live.refresh()
    assert (before.spent, before.budget) == (live.state().spent, live.state().budget) == (11, 21)
    assert len(live.wanted()) == 5
    live.close()


def test_checking_answers_writes_nothing(live):
    want, before = live.wanted()[0], live.ledger.fingerprint()
    live.recorder.check([gold_answer(live, want)])
    with pytest.raises(BursarError, match="no such intent"):
        live.recorder.check([Answer(want.id, {"intent": "no such intent", "slots": []}, "ann")])
    assert live.ledger.fingerprint() == before


def test_many_people_at_once_lose_nothing_and_double_nothing(live):
    wanted, receipts, refused = live.wanted(), [], []

    def work(name):
        for want in wanted:
            try:
                receipts.append(live.recorder.record(gold_answer(live, want, name)))
            except LedgerError as wrong:
                refused.append(wrong)

    people = [threading.Thread(target=work, args=(f"person {n}",)) for n in range(4)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert len(receipts) == len(wanted) == len(live.ledger.view())
    assert len(refused) == 3 * len(wanted)
    assert live.state().spent == live.ledger.spent() == sum(receipt.cost for receipt in receipts)
    assert live.ready()


# -- what stands ---
def test_a_correction_stands_costs_nothing_and_is_learned_by_the_next_model(live, monkeypatch):
    want = live.wanted()[0]
    answer_all(live)
    spent = live.ledger.spent()
    other = another_intent(live, gold_answer(live, want))
    assert not live.recorder.record(Answer(want.id, {"intent": other}, "ann", role="correction", key="key 1")).repeated
    assert live.recorder.record(Answer(want.id, {"intent": other}, "ann", role="correction", key="key 1")).repeated
    assert live.ledger.spent() == live.state().spent == spent
    seen, fit = [], WordCounts.fit

    def spy(self, annotated, **more):
        seen.append({annotated.ids[i]: annotated[i].labels["intent"] for i in range(len(annotated))})
        return fit(self, annotated, **more)

    monkeypatch.setattr(WordCounts, "fit", spy)
    train(live)
    assert seen[0][want.id] == other


def test_what_was_never_answered_cannot_be_corrected(live):
    want = live.wanted()[0]
    with pytest.raises(LedgerError, match="answer it first"):
        live.recorder.record(gold_answer(live, want, "ann", role="correction", key="key 1"))


def test_an_overlap_is_paid_for_and_does_not_stand_until_it_is_adjudicated(live):
    want = live.wanted()[0]
    first = gold_answer(live, want)
    cost = live.recorder.record(first).cost
    other = another_intent(live, first)
    theirs = Answer(want.id, {**first.labels, "intent": other}, "bob", role="overlap")
    assert live.recorder.record(theirs).cost == cost
    assert live.recorder.record(theirs).repeated
    own = Answer(want.id, first.labels, "ann", role="overlap")
    assert live.recorder.record(own).repeated  # their own is no second opinion
    assert live.state().spent == live.ledger.spent() == 2 * cost
    assert live.ledger.view()[0].labels["intent"] == first.labels["intent"]
    live.recorder.record(Answer(want.id, {"intent": other}, "lead", role="adjudication", key="key 1"))
    assert live.ledger.view()[0].labels["intent"] == other
    assert [a.annotator for a in live.ledger.answers(want.id)] == ["ann", "bob", "lead"]
    assert live.state().answered == 1


# -- declined and given up ---
def test_a_declined_item_costs_nothing_and_nobody_is_asked_about_it_again(live):
    gone = []
    for _ in range(3):
        want = live.wanted()[0]
        gone.append(want.id)
        live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
        live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
        assert want.id not in [other.id for other in live.wanted()]
        answer_all(live)
        assert live.state().skipped == 1
        assert train(live) in ("opened", "ended")
    rounds = [set(selected(live, number)) for number in range(3)]
    assert [sum(item in asked for asked in rounds) for item in gone] == [1, 1, 1]
    assert live.ledger.spent_on(gone) == 0
    assert not set(gone) & set(live.ledger.view().ids.tolist())
    with pytest.raises(LedgerError, match="is not open"):
        live.recorder.skip("another key", gone[0], "unclear", "eve")
    with pytest.raises(LedgerError, match="was skipped"):
        live.recorder.record(Answer(gone[0], {"intent": "set_alarm", "slots": []}, "ann"))


def test_the_money_of_declined_items_buys_others(tmp_path):
    declining, answering = start(tmp_path / "a"), start(tmp_path / "b")
    for live in (declining, answering):
        answer_all(live)
        train(live)
    for want in declining.wanted()[:5]:
        declining.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
    for live in (declining, answering):
        answer_all(live)
        train(live)
    budgets = [live.ledger.decision(RoundSelection, 2).budget for live in (declining, answering)]
    assert budgets[0] > budgets[1]
    spent = [live.ledger.spent(round=1) for live in (declining, answering)]
    assert (budgets[0] - budgets[1]) == pytest.approx((spent[1] - spent[0]) / 1.1, abs=2)
    for live in (declining, answering):
        live.close()


def test_a_round_that_is_closed_gives_its_items_back_and_takes_no_late_answers(live):
    answer_all(live)
    train(live)
    strategy = [want for want in live.wanted() if want.purpose == "strategy"]
    late = strategy[-1]
    answer_all(live, leave=len(live.wanted()) - 2)
    live.close_round("lead")
    assert live.wanted() == []
    assert live.ready()
    assert live.state().answered == 2
    with pytest.raises(LedgerError, match="went on without it"):
        live.recorder.record(gold_answer(live, late))
    assert train(live) == "opened"
    assert {want.id for want in strategy[2:]} & set(selected(live, 2))
    answer_all(live)
    assert len(live.ledger.view()) == 12 + 2 + len(selected(live, 2))


def test_where_everything_is_declined_other_random_items_are_asked_for(live):
    first = {want.id for want in live.wanted()}
    for want in live.wanted():
        live.recorder.skip(f"key {want.id}", want.id, "no idea", "eve")
    assert train(live) == "opened"
    wanted = live.wanted()
    assert {want.purpose for want in wanted} == {"seed"}
    assert len(wanted) == 12
    assert not first & {want.id for want in wanted}
    answer_all(live)
    assert train(live) == "opened"
    assert {want.purpose for want in live.wanted()} >= {"strategy"}
