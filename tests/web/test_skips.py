"""Skips: leads see them with their reasons and can undo them."""

from __future__ import annotations

import sys
from uuid import uuid4

import pytest

from tests.web.annotating import until
from tests.web.conftest import refused
from tests.web.small import make_project


def skip(browser, taken, reason="None of the labels fits: it is a song", key=None):
    body = {"key": key or str(uuid4()), "lease": taken["lease"]["id"], "item": taken["item"]["id"], "reason": reason}
    assert browser.post("/api/skips", json=body).status_code == 200
    return body


def test_a_lead_reads_why_an_item_was_skipped_and_has_it_asked_about_again(crew):
    taken = crew("Bob").take()
    sent = skip(crew("Bob"), taken)
    found = crew("Anna").get("/api/skips").json()
    (shown,) = found["skips"]
    assert found["total"] == 1
    assert (shown["person"], shown["reason"], shown["round"]) == ("Bob", "None of the labels fits: it is a song", 0)
    assert (shown["item"]["id"], shown["tasks"], shown["undone_by"]) == (sent["item"], ["intent", "slots"], None)
    assert shown["at"].startswith("20")
    undo = {"skip": shown["key"]}
    for _ in range(2):  # the same again changes nothing
        assert crew("Anna").post("/api/skips/undo", json=undo).json() == {"asked": True}
    assert crew("Anna").get("/api/skips").json() == {"skips": [], "total": 0}
    (undone,) = crew("Anna").get("/api/skips", params={"which": "all"}).json()["skips"]
    assert undone["undone_by"] == "Anna"
    again = crew("Eve").take()
    assert again["item"]["id"] == sent["item"]
    assert crew("Eve").answer(again).status_code == 200


def test_a_skip_that_comes_again_after_it_was_undone_takes_nobodys_item(crew, app_state):
    taken = crew("Bob").take()
    sent = skip(crew("Bob"), taken)
    crew("Anna").post("/api/skips/undo", json={"skip": sent["key"]})
    lease = crew("Eve").take()["lease"]["id"]
    assert crew("Bob").post("/api/skips", json=sent).json() == {}
    assert lease in [held.id for held in app_state.queue.leases()]
    assert sent["item"] in [want.id for want in app_state.session.wanted()]


def test_only_a_lead_undoes_a_skip_and_only_one_that_is_there(crew):
    sent = skip(crew("Bob"), crew("Bob").take())
    for name in ("Bob", "Eve"):
        refused(crew(name).post("/api/skips/undo", json={"skip": sent["key"]}), 403, "leads_only")
        refused(crew(name).get("/api/skips"), 403, "leads_only")
    refused(crew("Anna").post("/api/skips/undo", json={"skip": "no such"}), 400, "bad_ledger")
    assert crew("Anna").get("/api/skips").json()["total"] == 1


def test_a_skip_is_not_undone_while_the_next_round_is_being_trained(crew, app_state):
    app_state.trainer._command = [sys.executable, "-c", "import time; time.sleep(60)"]  # which ends with the server
    sent = skip(crew("Bob"), crew("Bob").take())
    while (taken := crew("Eve").take())["lease"]:
        crew("Eve").answer(taken)
    until(lambda: crew("Anna").get("/api/state").json()["phase"] == "training", 20)
    refused(crew("Anna").post("/api/skips/undo", json={"skip": sent["key"]}), 409, "training")
    assert crew("Anna").get("/api/skips").json()["total"] == 1


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_what_is_asked_about_again_is_so_for_the_next_server(place, tmp_path, open_app_state, place_for_ledger):
    kept = {"ledger": {"url": place_for_ledger(place).place}} if place == "postgresql" else {}
    app_state = open_app_state(make_project(tmp_path / "project", **kept))
    item = app_state.session.wanted()[2].id
    app_state.assignments.skip("Bob", "key-of-bob", item, "unclear")
    assert app_state.assignments.undo_skip("Anna", "key-of-bob")
    asked = [want.id for want in app_state.session.wanted()]
    app_state.close()
    again = open_app_state(tmp_path / "project")
    assert [want.id for want in again.session.wanted()] == asked
    assert item in asked
