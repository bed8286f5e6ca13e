"""A late answer, whose item has gone to someone else, is kept and can be sent once the item is free."""

from __future__ import annotations

import pytest

from tests.web.annotate.samples import KINDS

pytestmark = pytest.mark.browser


def test_an_answer_to_an_item_that_somebody_else_took_over_is_kept_and_sent_when_they_let_go(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, {"text": "one"}, {"text": "two"})
    page = hand(served).ready()
    page.expected.append("409 (Conflict)")
    database, clock = served.app_state.database, served.app_state.database.clock
    database.clock = lambda: clock() + 2 * served.app_state.queue.seconds  # the page's lease has run out
    item = served.app_state.session.wanted()[0].id
    lease = served.app_state.assignments.next("somebody else").lease
    assert lease.item == item
    page.press("3").send()
    page.sees(".notice-bar", "someone else is annotating this item now").sees(".notice-bar", "Your answer is kept here")
    assert served.answers() == []
    served.app_state.queue.release(lease.id, "somebody else")
    page.click('.notice-bar button:has-text("Reopen")')
    page.until(lambda: page.chosen("intent") == ["table"])
    page.send()
    assert [(answer["item"], answer["labels"]) for answer in served.answers()] == [(item, {"intent": "table"})]
