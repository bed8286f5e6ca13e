"""The API for annotators: get, answer, correct, skip; overlap; accounts and tokens."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from bursar.ledger import Answer
from bursar.web.agreement import agreement_by_task
from bursar.web.queue import Overlap
from tests.web.conftest import PASSWORD, refused
from tests.web.small import INTENTS, SLOTS, right


# -- taking and answering --------------------------------------------------------------------------------------------
def test_somebody_alone_is_you_and_leads(local_user):
    me = local_user.meet()
    assert (me["name"], me["role"], me["accounts"]) == ("you", "lead", False)
    assert [(task["name"], task["kind"]) for task in me["project"]["tasks"]] == [
        ("intent", "classification"),
        ("slots", "tagging"),
    ]
    assert me["project"]["tasks"][0]["labels"] == list(INTENTS)
    assert me["project"]["tasks"][1]["labels"] == list(SLOTS)
    assert (me["project"]["name"], me["project"]["currency"], me["project"]["unit"]) == ("Small project", "€", "0.01")


def test_an_item_comes_with_all_that_a_page_needs(local_user):
    taken = local_user.take()
    assert taken["tasks"] == ["intent", "slots"]
    assert (taken["round"], taken["purpose"], taken["suggestions"]) == (0, "answer", {})
    assert taken["progress"] == {"round": 0, "answered": 0, "asked": 8, "skipped": 0, "mine": 0}
    assert taken["lease"]["seconds"] == 600
    item = taken["item"]
    letters = list(item["text"])
    assert all("".join(letters[start:end]).strip() for start, end in item["words"])
    assert local_user.get(f"/api/items/{item['id']}").json() == item


def test_an_answer_is_charged_once_and_counted(local_user):
    taken = local_user.take()
    body = {"key": str(uuid4()), "lease": taken["lease"]["id"], "item": taken["item"]["id"]}
    body["labels"] = right(body["item"])
    first = local_user.post("/api/answers", json=body)
    assert first.status_code == 200
    assert first.json()["key"] == body["key"]
    assert first.json()["repeated"] is False
    words = len(taken["item"]["words"])
    assert first.json()["cost_units"] == words + 3 + len(body["labels"]["slots"])
    assert first.json()["cost"] == f"€{first.json()['cost_units'] / 100:.2f}"
    for again in (body, body | {"key": str(uuid4()), "lease": None}):
        assert local_user.post("/api/answers", json=again).json()["repeated"] is True
    state = local_user.get("/api/state").json()
    assert (state["answered"], state["spent"]) == (1, first.json()["cost_units"])
    assert local_user.take()["progress"] == {"round": 0, "answered": 1, "asked": 8, "skipped": 0, "mine": 1}


def test_a_lease_that_a_killed_server_left_behind_goes_with_the_repeated_answer(local_user, app_state):
    taken = local_user.take()
    item, session = taken["item"]["id"], app_state.session
    session.recorder.record(Answer(item, right(item), "you"))  # and then it was killed
    app_state.assignments.index.replace(item, session.ledger.answers(item))
    assert len(app_state.queue.leases()) == 1
    assert local_user.answer(taken).json()["repeated"] is True
    assert app_state.queue.leases() == []


def test_a_page_that_is_loaded_anew_gets_its_item_back_and_may_fetch_ahead(local_user):
    first, again = local_user.take(), local_user.take()
    assert again["lease"]["id"] == first["lease"]["id"]
    ahead = local_user.take(known=[first["lease"]["id"]])
    assert ahead["item"]["id"] != first["item"]["id"]


def test_two_people_are_given_different_items(crew):
    taken = {name: crew(name).take()["item"]["id"] for name in ("Anna", "Bob", "Eve")}
    assert len(set(taken.values())) == 3


def test_a_lease_is_renewed_and_given_back(crew):
    taken = crew("Bob").take()
    lease = f"/api/leases/{taken['lease']['id']}"
    assert crew("Bob").post(f"{lease}/renew", json={}).json()["id"] == taken["lease"]["id"]
    refused(crew("Eve").post(f"{lease}/renew", json={}), 404, "no_lease")
    refused(crew("Eve").delete(lease), 404, "no_lease")
    assert crew("Bob").delete(lease).status_code == 204
    assert crew("Eve").take()["item"]["id"] == taken["item"]["id"]


def test_an_answer_after_its_lease_ran_out_is_taken_unless_somebody_else_was_faster(crew, app_state):
    app_state.queue.seconds = -1.0  # every lease has run out when it is given
    bob, eve = crew("Bob").take(), crew("Eve").take()
    assert bob["item"]["id"] == eve["item"]["id"]
    assert crew("Bob").answer(bob).status_code == 200
    refused(crew("Eve").answer(eve), 409, "answered_by_other")
    assert crew("Bob").answer(bob).json()["repeated"] is True


def test_nobody_answers_an_item_that_somebody_else_has_before_them_without_a_lease(crew):
    taken = crew("Bob").take()
    refused(crew("Eve").answer(taken, lease=None), 409, "leased_by_other")
    assert crew("Bob").answer(taken, lease=None).status_code == 200


def test_another_answer_to_the_same_item_is_a_correction_or_refused(local_user):
    taken = local_user.take()
    local_user.answer(taken)
    other = {"intent": next(i for i in INTENTS if i != right(taken["item"]["id"])["intent"]), "slots": []}
    refused(local_user.answer(taken, labels=other), 409, "answered_before")
    body = {"key": str(uuid4()), "item": taken["item"]["id"], "labels": other}
    assert local_user.post("/api/corrections", json=body).json()["repeated"] is False
    assert local_user.post("/api/corrections", json=body).json()["repeated"] is True
    mine = local_user.get("/api/mine").json()["answers"]
    assert [(entry["item"], entry["labels"]) for entry in mine] == [(taken["item"]["id"], other)]
    exported = [json.loads(line) for line in local_user.get("/api/export").text.splitlines()][1:]
    assert [item["labels"] for item in exported] == [other]


def test_only_those_who_answered_an_item_or_lead_correct_it(crew):
    taken = crew("Bob").take()
    crew("Bob").answer(taken)
    body = {"key": str(uuid4()), "item": taken["item"]["id"], "labels": right(taken["item"]["id"])}
    refused(crew("Eve").post("/api/corrections", json=body), 403, "not_yours")
    assert crew("Anna").post("/api/corrections", json=body).status_code == 200


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"labels": {"intent": "nonsense", "slots": []}}, 400),
        ({"labels": {"intent": "alarm"}}, 400),
        ({"labels": {"intent": "alarm", "slots": [[0, 99, "time"]]}}, 400),
        ({"labels": {"intent": "alarm", "slots": [], "more": 1}}, 400),
        ({"labels": {}}, 422),
        ({"item": "no such item"}, 404),
        ({"item": "u"}, 404),
        ({"key": "short"}, 422),
        ({"seconds": {"reading": -1}}, 422),
        ({"seconds": {"nothing": 1}}, 422),
        ({"unknown": 1}, 422),
    ],
)
def test_a_wrong_answer_is_refused_and_leaves_nothing(local_user, changes, status):
    taken = local_user.take()
    reply = local_user.answer(taken, **changes)
    assert reply.status_code == status, reply.text
    assert set(reply.json()) == {"error", "fix", "kind"}
    assert local_user.get("/api/state").json()["answered"] == 0
    assert local_user.answer(taken).status_code == 200


def test_an_item_that_nobody_asked_about_is_not_answered(local_user, app_state):
    wanted = {want.id for want in app_state.session.wanted()}
    item = next(id for id in app_state.session.corpus.ids.tolist() if id not in wanted and id.startswith("u"))
    body = {"key": str(uuid4()), "item": item, "labels": right(item)}
    refused(local_user.post("/api/answers", json=body), 409, "not_asked")


def test_a_skipped_item_leaves_the_round(local_user):
    taken = local_user.take()
    body = {"key": str(uuid4()), "lease": taken["lease"]["id"], "item": taken["item"]["id"], "reason": "no language"}
    for _ in range(2):
        assert local_user.post("/api/skips", json=body).json() == {}
    state = local_user.get("/api/state").json()
    assert (state["skipped"], state["answered"], state["spent"]) == (1, 0, 0)
    assert local_user.take()["item"]["id"] != taken["item"]["id"]


def test_when_all_is_before_others_one_is_told_to_wait(crew):
    bob = crew("Bob")
    known = []
    while (taken := bob.take(known=known))["lease"]["id"] not in known:
        known.append(taken["lease"]["id"])
    eve = [crew("Eve").take(known=known) for _ in range(1)]
    while eve[-1]["lease"]:
        known = [entry["lease"]["id"] for entry in eve]
        eve.append(crew("Eve").take(known=known))
        if len(eve) > 10:
            break
    left = crew("Anna").take()
    assert left["lease"] is None
    assert (left["reason"], left["retry_after"] > 0) == ("all_leased", True)


# -- several people --------------------------------------------------------------------------------------------------
@pytest.fixture
def twice(app_state):
    app_state.queue.set_overlap(Overlap(1.0, 2))
    return app_state


def test_where_overlap_is_asked_for_two_people_answer_and_a_third_is_not_asked(crew, twice):
    bob, eve = crew("Bob").take(), crew("Eve").take()
    assert bob["item"]["id"] == eve["item"]["id"]
    assert crew("Bob").answer(bob).status_code == 200
    second = crew("Eve").answer(eve)
    assert second.status_code == 200
    assert second.json()["repeated"] is False
    assert crew("Anna").take()["item"]["id"] != bob["item"]["id"]
    refused(crew("Anna").answer(bob), 409, "answered_by_other")
    assert twice.session.state().answered == 1


def test_an_item_that_one_person_has_answered_is_offered_to_another_as_overlap(crew, twice):
    bob = crew("Bob").take()
    crew("Bob").answer(bob)
    eve = crew("Eve").take()
    assert (eve["item"]["id"], eve["purpose"], eve["tasks"]) == (bob["item"]["id"], "overlap", bob["tasks"])
    assert crew("Bob").take()["item"]["id"] != bob["item"]["id"]


def disagree(crew):
    """Bob is right about two items; Eve is right about the second."""
    items = []
    for wrong in (True, False):
        for name in ("Bob", "Eve"):
            taken = crew(name).take()
            item = taken["item"]["id"]
            labels = right(item)
            if wrong and name == "Eve":
                labels = {"intent": next(i for i in INTENTS if i != labels["intent"]), "slots": labels["slots"]}
            assert crew(name).answer(taken, labels=labels).status_code == 200
        items.append(item)
    return items


def test_a_lead_sees_where_people_differ_and_decides(crew, twice):
    differ, alike = disagree(crew)
    found = crew("Anna").get("/api/overlap").json()
    assert (found["total"], found["disagree"]) == (2, 1)
    first = found["items"][0]
    assert (first["item"]["id"], first["disagree"], first["adjudicated"]) == (differ, ["intent"], None)
    assert {answer["person"] for answer in first["answers"]} == {"Bob", "Eve"}
    body = {"key": str(uuid4()), "item": differ, "labels": right(differ)}
    refused(crew("Bob").post("/api/adjudications", json=body), 403, "leads_only")
    assert crew("Anna").post("/api/adjudications", json=body).json()["repeated"] is False
    found = crew("Anna").get("/api/overlap").json()
    assert (found["total"], found["disagree"]) == (2, 0)
    decided = next(case for case in found["items"] if case["item"]["id"] == differ)
    assert (decided["adjudicated"]["person"], decided["adjudicated"]["labels"]) == ("Anna", right(differ))
    assert crew("Anna").get("/api/overlap?which=open").json()["items"] == []
    exported = [json.loads(line) for line in crew("Anna").get("/api/export").text.splitlines()][1:]
    assert {item["id"]: item["labels"] for item in exported} == {differ: right(differ), alike: right(alike)}


def test_a_correction_is_for_whoever_gave_the_answer_and_before_a_lead_decides(crew, twice):
    item, _ = disagree(crew)  # Bob answered first, Eve beside him
    body = {"item": item, "labels": right(item)}

    def send(name):
        return crew(name).post("/api/corrections", json=body | {"key": str(uuid4())})

    refused(send("Eve"), 409, "only_compared")
    assert send("Bob").status_code == 200
    crew("Anna").post("/api/adjudications", json=body | {"key": str(uuid4())})
    refused(send("Bob"), 409, "adjudicated")
    assert send("Anna").status_code == 200


def test_agreement_is_told_task_by_task_also_after_the_server_was_started_anew(crew, twice, project, open_app_state):
    disagree(crew)
    found = crew("Anna").get("/api/agreement").json()
    assert found["intent"]["items"] == 2
    assert found["intent"]["people"] == 2
    assert found["intent"]["same"] == 0.5
    assert found["slots"]["same"] == 1.0
    twice.close()
    again = open_app_state(project)
    assert agreement_by_task(again.session.corpus, again.assignments.index.shared())["intent"].same == 0.5
    assert again.queue.overlap == Overlap(1.0, 2)


def test_overlap_is_set_by_leads_within_bounds(crew, app_state):
    chosen = {"share": 0.25, "people": 3}
    assert crew("Anna").put("/api/overlap/settings", json=chosen).json() == chosen
    assert crew("Anna").get("/api/overlap/settings").json() == chosen
    refused(crew("Bob").put("/api/overlap/settings", json=chosen), 403, "leads_only")
    for wrong in ({"share": 1.5}, {"share": -0.1}, {"people": 1}, {"people": 99}):
        assert crew("Anna").put("/api/overlap/settings", json=wrong).status_code == 422


# -- people ----------------------------------------------------------------------------------------------------------
def test_the_first_account_ends_being_you(local_user, app_state):
    body = {"name": "Anna", "role": "annotator", "password": PASSWORD}
    refused(local_user.post("/api/people", json=body), 409, "first_leads")
    assert local_user.post("/api/people", json=body | {"role": "lead"}).status_code == 201
    refused(local_user.get("/api/state"), 401, "signed_out")
    me = local_user.sign_in("Anna").meet()
    assert (me["name"], me["role"], me["accounts"]) == ("Anna", "lead", True)


def test_annotators_annotate_and_decide_nothing(crew):
    bob = crew("Bob")
    for method, path, body in [
        ("GET", "/api/people", None),
        ("POST", "/api/people", {"name": "Max", "password": PASSWORD}),
        ("DELETE", "/api/people/Eve", None),
        ("POST", "/api/people/Eve/password", {"password": PASSWORD}),
        ("GET", "/api/settings", None),
        ("POST", "/api/settings", {"changes": {}, "key": "12345678"}),
        ("POST", "/api/preview", {"changes": {}}),
        ("GET", "/api/preview/x", None),
        ("POST", "/api/rounds", {"key": "12345678"}),
        ("GET", "/api/overlap", None),
        ("GET", "/api/overlap/settings", None),
        ("POST", "/api/adjudications", {"key": "12345678", "item": "u1", "labels": {"intent": "alarm"}}),
        ("GET", "/api/agreement", None),
        ("GET", "/api/dashboard", None),
        ("GET", "/api/export", None),
        ("GET", "/api/formats", None),
        ("POST", "/api/import?name=a.jsonl", None),
    ]:
        refused(bob.request(method, path, json=body), 403, "leads_only")


def test_people_are_listed_with_what_they_did(crew):
    crew("Bob").answer(crew("Bob").take())
    crew("Bob").take()
    found = {person["name"]: person for person in crew("Anna").get("/api/people").json()["people"]}
    assert {name: (p["role"], p["answers"], p["holds"]) for name, p in found.items()} == {
        "Anna": ("lead", 0, 0),
        "Bob": ("annotator", 1, 1),
        "Eve": ("annotator", 0, 0),
    }


def test_somebody_who_is_removed_gives_their_items_back(crew):
    taken = crew("Bob").take()
    assert crew("Anna").delete("/api/people/bob").status_code == 204
    refused(crew("Bob").get("/api/state"), 401, "signed_out")
    assert crew("Eve").take()["item"]["id"] == taken["item"]["id"]


def test_ones_own_password_needs_the_old_one(crew, browser_of):
    path, new = "/api/people/Bob/password", "another password"
    refused(crew("Bob").post(path, json={"password": new}), 403, "wrong_password")
    refused(crew("Bob").post(path, json={"password": new, "old": "wrong"}), 403, "wrong_password")
    assert crew("Bob").post(path, json={"password": new, "old": PASSWORD}).status_code == 204
    assert crew("Bob").get("/api/state").status_code == 200
    browser_of().sign_in("Bob", new)
    assert crew("Anna").post(path, json={"password": PASSWORD}).status_code == 204
    refused(crew("Bob").get("/api/state"), 401, "signed_out")


def test_a_token_does_what_its_owner_may_and_needs_no_csrf(crew, browser_of):
    made = crew("Bob").post("/api/tokens", json={"label": "script"})
    assert made.status_code == 201
    program = browser_of()
    program.headers["Authorization"] = f"Bearer {made.json()['token']}"
    del program.headers["Origin"]
    taken = program.take()
    assert program.answer(taken).status_code == 200
    refused(program.get("/api/people"), 403, "leads_only")
    listed = crew("Bob").get("/api/tokens").json()["tokens"]
    assert [(token["label"], "token" in token) for token in listed] == [("script", False)]
    assert crew("Eve").get("/api/tokens").json()["tokens"] == []
    assert crew("Bob").delete(f"/api/tokens/{listed[0]['id']}").status_code == 204
    refused(program.get("/api/state"), 401, "signed_out")
