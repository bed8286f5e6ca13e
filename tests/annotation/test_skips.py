"""A skip that a lead undoes is as if it had not been, and its item is asked about again."""

from __future__ import annotations

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.campaign.decisions import RoundSelection, SelectedItem
from bursar.errors import LedgerError
from tests.campaign.lives import answer_all, gold_answer, one_corpus, selected, start, train  # noqa: F401


@pytest.fixture(params=["sqlite", "postgresql"])
def project(request, tmp_path, place_for_ledger):
    """Opens live campaigns whose ledgers are kept in files, or on a server."""
    opened = []

    def of(name, **changes):
        if request.param == "postgresql":
            changes["ledger"] = {"url": place_for_ledger("postgresql").place}
        opened.append(start(tmp_path / name, **changes))
        return opened[-1]

    yield of
    for live in opened:
        live.close()


def skip_one(live, at=0):
    want = live.wanted()[at]
    live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
    return want


def ids(live):
    return [want.id for want in live.wanted()]


def test_an_item_is_asked_about_again_when_its_skip_is_undone_also_after_a_restart(project):
    live = project("p")
    asked, state = ids(live), live.state()
    want = skip_one(live, 3)
    live.undo_skip(f"key {want.id}", "lea")
    assert ids(live) == asked
    again = live.state()
    assert (again.skipped, again.budget, again.open) == (0, state.budget, state.open)
    live.close()
    live = AnnotationSession.open(live.folder)
    assert ids(live) == asked
    assert [skip.undone_by for skip in live.ledger.skips(undone=True)] == ["lea"]
    live.recorder.record(gold_answer(live, want))
    assert live.state().answered == 1
    live.close()


def test_the_next_round_is_chosen_as_if_nothing_had_been_skipped_resumed_or_not(project):
    plain, undone, resumed = project("a"), project("b"), project("c")
    for live in (undone, resumed):
        for at in (0, 4):
            live.undo_skip(f"key {skip_one(live, at).id}", "lea")
    resumed.close()
    resumed = AnnotationSession.open(resumed.folder)
    for live in (plain, undone, resumed):
        answer_all(live)
        train(live)
    assert selected(plain, 1) == selected(undone, 1) == selected(resumed, 1)
    resumed.close()


def test_a_skip_that_is_sent_again_after_it_was_undone_changes_nothing(project):
    live = project("p")
    want = skip_one(live)
    live.undo_skip(f"key {want.id}", "lea")
    assert live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve").repeated
    assert want.id in ids(live)
    live.recorder.skip("another key", want.id, "still unclear", "eve")
    assert want.id not in ids(live)


def test_an_item_of_an_earlier_round_is_asked_about_first_and_waited_for(tmp_path):
    live = start(tmp_path / "p")
    want = skip_one(live)
    answer_all(live)
    train(live)
    assert live.state().round == 1
    live.undo_skip(f"key {want.id}", "lea")
    assert live.wanted()[0] == want
    answer_all(live, leave=0)
    assert want.id in live.ledger.view().ids.tolist()
    live.close()


def test_an_item_of_a_round_that_was_closed_returns_to_the_pool(tmp_path):
    live = start(tmp_path / "p")
    want = skip_one(live)
    answer_all(live, leave=2)
    live.close_round("lea")
    assert (want.id, "intent") in live.campaign_state.declined()
    live.undo_skip(f"key {want.id}", "lea")
    assert live.campaign_state.declined() == set()
    assert want.id not in ids(live)
    assert train(live) == "opened"
    live.close()


def test_what_the_budget_cannot_pay_is_not_asked_about_again(tmp_path):
    live = start(tmp_path / "p", budget={"total": 150, "rounds": 5})
    while live.wanted():
        want = live.wanted()[-1]
        answer_all(live, leave=1)
        live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
        train(live)
    spent = live.state().spent
    key = live.ledger.skips()[0].key
    with pytest.raises(LedgerError, match="no money is left"):
        live.undo_skip(key, "lea")
    live.settings.change({"budget": {"total": 200}}, "lea")
    live.undo_skip(key, "lea")
    assert (live.state().phase, live.state().spent) == ("annotating", spent)
    live.close()


def test_an_item_that_is_asked_about_for_other_tasks_is_not_asked_about_twice_at_once(tmp_path):
    live = start(tmp_path / "p")
    want = skip_one(live)
    item = SelectedItem(id=want.id, tasks=("slots",), purpose="strategy", estimate={"slots": 1})
    answer_all(live)
    live.ledger.decide(RoundSelection(round=1, budget=10, items=(item,)))
    live.refresh()
    assert ids(live) == [want.id]
    with pytest.raises(LedgerError, match="for other tasks"):
        live.undo_skip(f"key {want.id}", "lea")
    live.close()
