"""Assignments know which items need more answers without searching all answered ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bursar.ledger import Answer
from bursar.web.assignments import AnswerIndex
from bursar.web.queue import Overlap

OVERLAPS = [Overlap(), Overlap(0.5, 2), Overlap(1.0, 2), Overlap(1.0, 3)]
ITEMS = [f"u{number}" for number in range(8)]
STEPS = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 1), st.sampled_from(ITEMS), st.sampled_from("abc")),
    st.tuples(st.just("ask"), st.integers(0, 1), st.sampled_from(OVERLAPS)),
)


@given(st.lists(STEPS, max_size=60))
def test_what_is_kept_is_what_a_search_would_find_whatever_was_asked_before(steps):
    index = AnswerIndex()
    answered = {0: {}, 1: {}}
    for what, round, *rest in steps:
        if what == "answer":
            item, person = rest
            answered[round].setdefault(item, set()).add(person)
            index.add(Answer(item, {"intent": "alarm"}, person, round=round))
        else:
            (overlap,) = rest
            found = [item for item, people in answered[round].items() if len(people) < overlap.people_for(item)]
            assert index.short_of_answers(round, overlap) == found


def test_items_answered_before_overlap_was_asked_for_are_given_to_others_then(app_state):
    items = [want.id for want in app_state.session.wanted()[:2]]
    for item in items:
        app_state.assignments.answer(Answer(item, {"intent": "alarm", "slots": []}, "Ann"))
    assert app_state.assignments.next("Bob").lease.item not in items
    app_state.queue.set_overlap(Overlap(1.0, 2))
    given = app_state.assignments.next("Eve")
    assert (given.lease.item, given.purpose) == (items[0], "overlap")
    assert app_state.assignments.next("Ann").lease.item not in items  # nobody is asked twice
