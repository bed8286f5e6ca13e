"""The API for leads, and the pages behind it: rounds, settings, previews, events."""

from __future__ import annotations

import json
import sys
import time
from uuid import uuid4

from tests.web.conftest import PASSWORD, refused
from tests.web.small import HOSTILE


# -- leading ---------------------------------------------------------------------------------------------------------
def test_the_next_round_is_not_begun_while_the_round_is_open(local_user):
    refused(local_user.post("/api/rounds", json={"key": str(uuid4())}), 409, "open_items")
    body = {"key": str(uuid4()), "close": True, "round": 5}
    refused(local_user.post("/api/rounds", json=body), 409, "other_round")


def test_a_training_that_fails_is_shown_and_tried_again_when_a_lead_asks(local_user, app_state):
    said = json.dumps({"event": "failed", "error": "the disk is full", "fix": "make room"})
    app_state.trainer._command = [sys.executable, "-c", f"print({said!r}); raise SystemExit(2)"]
    for _ in range(8):
        assert local_user.answer(local_user.take()).status_code == 200
    state = wait_for(local_user, lambda state: state["phase"] == "failed")
    assert state["why"] == "the disk is full. Fix: make room"
    told = local_user.take()
    assert (told["lease"], told["reason"]) == (None, "failed")
    assert "the disk is full" in told["message"]
    app_state.trainer._command = [sys.executable, "-c", "import time; time.sleep(60)"]
    reply = local_user.post("/api/rounds", json={"key": str(uuid4()), "round": 0})
    assert reply.status_code == 202
    wait_for(local_user, lambda state: state["phase"] == "training" and state["why"] is None)


def test_closing_a_round_returns_what_is_open_to_the_pool(local_user, app_state):
    app_state.trainer._command = [sys.executable, "-c", "import time; time.sleep(60)"]
    for _ in range(3):
        local_user.answer(local_user.take())
    reply = local_user.post("/api/rounds", json={"key": str(uuid4()), "close": True, "round": 0})
    assert reply.status_code == 202
    assert app_state.session.wanted() == []
    assert wait_for(local_user, lambda state: state["phase"] == "training")["answered"] == 3


def wait_for(browser, holds):
    until = time.monotonic() + 60
    while not holds(state := browser.get("/api/state").json()):
        assert time.monotonic() < until, state
        time.sleep(0.02)
    return state


def test_a_strategy_that_the_learner_cannot_serve_is_neither_offered_nor_taken_nor_previewed(local_user, app_state):
    changes = {"strategy": {"name": "BALD"}}
    said = refused(
        local_user.post("/api/settings", json={"changes": changes, "key": "k" * 8}), 400, "bad_config"
    ).json()
    begun = local_user.post("/api/preview", json={"changes": changes}).json()
    until = time.monotonic() + 60
    while not (found := local_user.get(f"/api/preview/{begun['job']}").json())["done"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    for wrong in (said, found["wrong"]):
        assert "strategy BALD needs dropout passes, which the learner 'scikit' does not give" in wrong["error"]
        assert "transformer" in wrong["fix"]
    assert app_state.session.campaign_state.setting_changes() == []
    offered = [one["name"] for one in local_user.get("/api/settings").json()["choices"]["strategies"]]
    assert "MT-AVG" in offered
    assert not {"BALD", "K-CENTER"} & {*offered}


def test_settings_are_changed_once_and_stand_in_the_ledger(local_user, app_state):
    before = local_user.get("/api/settings").json()
    assert before["settings"]["budget"]["per_round"] == 0.8
    body = {"changes": {"budget": {"per_round": 1.6}}, "key": str(uuid4())}
    for _ in range(2):
        after = local_user.post("/api/settings", json=body).json()
        assert after["settings"]["budget"]["per_round"] == 1.6
        assert [(entry["number"], entry["by"]) for entry in after["history"]] == [(1, "you")]
    wrong = {"changes": {"budget": {"per_round": -1}}, "key": str(uuid4())}
    refused(local_user.post("/api/settings", json=wrong), 400, "bad_config")


def test_a_change_by_somebody_who_does_not_know_the_newest_one_is_refused(crew, app_state):
    anna = crew("Anna")
    app_state.accounts.add("Carl", "lead", PASSWORD)
    carl = crew("Carl")
    first = {"changes": {"budget": {"per_round": 1.6}}, "key": str(uuid4()), "after": 0}
    second = {"changes": {"budget": {"per_round": 2.4}}, "key": str(uuid4()), "after": 0}
    assert anna.post("/api/settings", json=first).status_code == 200
    said = refused(carl.post("/api/settings", json=second), 409, "changed_meanwhile")
    assert "Anna" in said.json()["error"]
    assert carl.get("/api/settings").json()["settings"]["budget"]["per_round"] == 1.6
    assert anna.post("/api/settings", json=first).status_code == 200  # sent again: it was made, and knew all there was
    assert carl.post("/api/settings", json=second | {"after": 1}).status_code == 200
    assert anna.post("/api/settings", json=first | {"key": str(uuid4()), "after": None}).status_code == 200
    assert [entry["by"] for entry in anna.get("/api/settings").json()["history"]] == ["Anna", "Carl", "Anna"]


def test_a_preview_that_cannot_be_made_says_why(local_user):
    begun = local_user.post("/api/preview", json={"changes": {"budget": {"per_round": -1}}})
    assert begun.status_code == 202
    until = time.monotonic() + 60
    while not (found := local_user.get(f"/api/preview/{begun.json()['job']}").json())["done"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert found["result"] is None
    assert "per_round" in found["wrong"]["error"]
    refused(local_user.get("/api/preview/nothing"), 404, "no_preview")


def test_the_dashboard_is_the_runs_result(local_user):
    found = local_user.get("/api/dashboard").json()
    assert found["state"]["phase"] == "annotating"
    assert found["result"]["name"] == "Small project"
    assert set(found["result"]["tasks"]) == {"intent", "slots"}


# -- pages -----------------------------------------------------------------------------------------------------------
def test_every_page_is_there_for_a_lead_and_holds_no_text_of_an_item(local_user):
    for path in ("/start", "/annotate", "/watch", "/decide", "/review", "/people", "/api/docs"):
        reply = local_user.get(path)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert "onerror" not in reply.text
        assert "<script>" not in reply.text  # no script but those in files
        assert " style=" not in reply.text


def test_the_text_of_an_item_travels_as_json_only(local_user, app_state):
    reply = local_user.get("/api/items/u0")
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["text"] == HOSTILE
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_one_is_led_to_where_one_goes_on(local_user, crew, browser_of):
    home = browser_of().get("/", follow_redirects=False)
    assert (home.status_code, home.headers["location"]) == (303, "/login")
    assert crew("Bob").get("/", follow_redirects=False).headers["location"] == "/annotate"
    assert crew("Anna").get("/", follow_redirects=False).headers["location"] == "/start"
    crew("Bob").answer(crew("Bob").take())
    assert crew("Anna").get("/", follow_redirects=False).headers["location"] == "/annotate"
    assert browser_of().get("/watch", follow_redirects=False).headers["location"] == "/login?next=/watch"
    assert crew("Bob").get("/watch").status_code == 403
    assert crew("Bob").get("/people").status_code == 200
    assert browser_of().get("/login").status_code == 200


def test_a_page_that_is_not_there_says_so_to_people_and_to_programs(local_user):
    page = local_user.get("/nothing", headers={"Accept": "text/html"})
    assert (page.status_code, "<html" in page.text) == (404, True)
    refused(local_user.get("/nothing", headers={"Accept": "*/*"}), 404, "no_page")
    refused(local_user.get("/api/nothing", headers={"Accept": "text/html"}), 404, "no_page")
    refused(local_user.delete("/api/state"), 405, "no_method")


def test_the_description_of_the_api_is_whole(local_user):
    api = local_user.get("/api/openapi.json").json()
    assert len(api["paths"]) > 25
    for methods in api["paths"].values():
        for call in methods.values():
            assert call["summary"]
            assert call["description"]
