"""Leases are checked: without one, an item cannot be answered or skipped; late answers are not lost."""

from __future__ import annotations

from uuid import uuid4

import pytest
import sqlalchemy as sa

from bursar.ledger import Answer
from bursar.web import database as tables
from bursar.web.queue import DAY, Overlap
from tests.web.conftest import refused
from tests.web.small import right

MADE_UP = ("made-up", "made-up.0123456789abcdef01234567", "no.ä", ".")


def skip(browser, taken, **changes):
    body = {"key": str(uuid4()), "lease": taken["lease"]["id"], "item": taken["item"]["id"], "reason": "unclear"}
    return browser.post("/api/skips", json=body | changes)


@pytest.fixture
def later(app_state):
    """Moves the server's clock."""

    def move(seconds):
        clock = app_state.database.clock
        app_state.database.clock = lambda: clock() + seconds

    return move


# -- made up, or somebody else's ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("lease", MADE_UP)
def test_a_made_up_lease_neither_takes_nor_skips_an_item_that_another_person_holds(crew, app_state, lease):
    taken = crew("Bob").take()
    refused(crew("Eve").answer(taken, lease=lease), 409, "no_lease")
    refused(skip(crew("Eve"), taken, lease=lease), 409, "no_lease")
    state = app_state.session.state()
    assert (state.answered, state.skipped) == (0, 0)
    assert crew("Bob").answer(taken).status_code == 200


def test_a_lease_of_another_person_is_refused_for_answers_and_for_skips(crew, app_state):
    taken = crew("Bob").take()
    refused(crew("Eve").answer(taken), 409, "no_lease")
    refused(skip(crew("Eve"), taken), 409, "no_lease")
    assert app_state.queue.holders((0, taken["item"]["id"])) == ["Bob"]


def test_a_lease_for_another_item_is_refused(crew):
    bob, eve = crew("Bob").take(), crew("Eve").take()
    item = bob["item"]["id"]
    refused(crew("Eve").answer(eve, item=item, labels=right(item)), 409, "no_lease")
    refused(skip(crew("Eve"), eve, item=item), 409, "no_lease")


def test_an_item_that_another_person_holds_is_not_skipped_without_a_lease(crew):
    taken = crew("Bob").take()
    for name in ("Eve", "Anna"):
        refused(skip(crew(name), taken, lease=None), 409, "leased_by_other")
    assert skip(crew("Bob"), taken, lease=None).status_code == 200


# -- late, and sent again ----------------------------------------------------------------------------------------------
def test_a_lease_that_ran_out_still_answers_and_skips_while_the_item_is_free(crew, later):
    known = [crew("Bob").take()]
    known.append(crew("Bob").take(known=[known[0]["lease"]["id"]]))
    later(2 * 600)
    assert crew("Bob").answer(known[0]).status_code == 200
    assert skip(crew("Bob"), known[1]).status_code == 200


def test_a_lease_that_the_server_has_forgotten_still_answers_while_the_item_is_free(crew, app_state, later):
    taken = crew("Bob").take()
    later(2 * DAY)
    with app_state.database.writing() as connection:
        connection.execute(tables.leases.delete())
    assert crew("Bob").answer(taken).status_code == 200


def test_a_lease_that_ran_out_and_was_taken_over_neither_answers_nor_skips(crew, app_state, later):
    bob = crew("Bob").take()
    later(2 * 600)
    eve = crew("Eve").take()
    assert eve["item"]["id"] == bob["item"]["id"]
    refused(crew("Bob").answer(bob), 409, "leased_by_other")
    refused(skip(crew("Bob"), bob), 409, "leased_by_other")
    assert crew("Eve").answer(eve).status_code == 200


def test_an_answer_sent_again_is_acknowledged_whatever_became_of_its_lease(crew, app_state, later):
    taken = crew("Bob").take()
    assert crew("Bob").answer(taken).status_code == 200
    assert app_state.queue.leases() == []
    later(2 * DAY)
    assert crew("Bob").answer(taken).json()["repeated"] is True
    assert app_state.session.state().answered == 1


def test_a_skip_sent_again_is_acknowledged_after_its_lease_is_gone(crew, app_state):
    taken = crew("Bob").take()
    key = str(uuid4())
    assert [skip(crew("Bob"), taken, key=key).status_code for _ in range(2)] == [200, 200]
    assert app_state.session.state().skipped == 1


def test_leases_hold_across_a_restart_of_the_server(crew, app_state, project, open_app_state):
    taken = crew("Bob").take()
    item, lease = taken["item"]["id"], taken["lease"]["id"]
    app_state.close()
    again = open_app_state(project)
    assert again.queue.was_issued(lease, item, "Bob")
    assert not again.queue.was_issued(lease, item, "Eve")
    assert again.assignments.answer(Answer(item, right(item), "Bob"), lease).repeated is False


def test_a_lease_that_an_earlier_version_gave_is_known_while_it_lasts(crew, app_state):
    taken = crew("Bob").take()
    with app_state.database.writing() as connection:
        connection.execute(sa.update(tables.leases).values(id="as-it-was-before"))
    assert crew("Bob").answer(taken, lease="as-it-was-before").status_code == 200


# -- several people on one item ----------------------------------------------------------------------------------------
def test_where_two_people_answer_an_item_a_third_takes_neither_place(crew, app_state):
    app_state.queue.set_overlap(Overlap(1.0, 2))
    bob, eve = crew("Bob").take(), crew("Eve").take()
    assert bob["item"]["id"] == eve["item"]["id"]
    refused(crew("Anna").answer(bob, lease=None), 409, "leased_by_other")
    assert crew("Bob").answer(bob).status_code == 200
    refused(crew("Anna").answer(bob, lease=None), 409, "leased_by_other")  # the second place is Eve's
    refused(crew("Anna").answer(bob, lease="made-up"), 409, "no_lease")
    assert crew("Eve").answer(eve).status_code == 200
    assert {answer.annotator for answer in app_state.session.ledger.answers()} == {"Bob", "Eve"}


def test_an_item_with_room_for_two_is_not_skipped_by_a_third_while_one_holds_it(crew, app_state):
    app_state.queue.set_overlap(Overlap(1.0, 2))
    taken = crew("Bob").take()
    refused(skip(crew("Eve"), taken, lease=None), 409, "leased_by_other")
    assert skip(crew("Bob"), taken).status_code == 200
