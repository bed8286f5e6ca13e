"""Advice on a split, beside the server: one question at a time, kept, and nothing worse than no advice if it breaks."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from bursar.allocation import Informativeness, ReductionRate, SplitEstimates, SplitProblem
from bursar.allocation.advice import advise
from bursar.allocation.split_inputs import inputs_of_run
from bursar.annotation.session import SessionState
from bursar.web.advice_worker import advice_view
from bursar.web.http_errors import HTTPError
from bursar.web.jobs import ADVICE_FILE, STAGES, Advising
from tests.campaign.test_allocating import CAMPAIGN

FOUND = {"budget": "€2.00", "shares": [], "gains": [], "whole": "", "reasons": [], "informs": {}, "tables": []}
TELLS = f"""
import json
print(json.dumps({{"event": "stage", "what": "who informs whom", "done": 1.0}}), flush=True)
print(json.dumps({{"event": "stage", "what": "how fast tasks saturate", "done": 0.5}}), flush=True)
print(json.dumps({{"event": "advice", "found": {FOUND!r}}}), flush=True)
"""
STAYS = (
    'import time; print(\'{"event": "stage", "what": "who informs whom", "done": 0.3}\', flush=True); time.sleep(600)'
)
REFUSES = (
    'import sys; print(\'{"event": "failed", "error": "too few labels", "fix": "annotate"}\', flush=True); sys.exit(2)'
)
CRASHES = "import sys; sys.exit('out of memory')"


class Noted:
    """A hub that remembers what everybody was told."""

    def __init__(self):
        self.told = []

    def publish(self, event, data):
        self.told.append((event, dict(data)))


@pytest.fixture
def advising(tmp_path):
    """Advice by a script in the place of the worker; ends with the test."""
    made = []

    def make(script, hub=None):
        told = SessionState(2, "annotating", 10, 0, 0, 300, 900)
        made.append(Advising(tmp_path, hub or Noted(), lambda: told))
        made[-1]._command = lambda folder, money: [sys.executable, "-c", script]
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


# -- asking ----------------------------------------------------------------------------------------------------------
def test_what_was_found_is_told_kept_and_there_again_after_a_restart(advising, tmp_path):
    hub = Noted()
    found = advising(TELLS, hub).start("2")
    until(lambda: found.done)
    assert (found.result, found.wrong) == (FOUND, None)
    until(lambda: hub.told and hub.told[-1] == ("advice", {"done": True, "progress": 1.0, "what": ""}))
    assert hub.told[0] == ("advice", {"done": False, "progress": 0.25, "what": "who informs whom"})
    again = advising(STAYS).newest
    assert (again.amount, again.asked_at, again.done, again.result) == ("2", {"round": 2, "spent": 300}, True, FOUND)


def test_progress_counts_all_stages(advising):
    asking = advising(STAYS)
    found = asking.start("2")
    until(lambda: found.what)
    assert (found.what, found.progress) == ("who informs whom", 0.075)  # 0.3 of the first of four


def test_the_same_question_again_is_the_one_under_way_and_another_is_refused(advising):
    asking = advising(STAYS)
    first = asking.start("2")
    assert asking.start("2") is first
    with pytest.raises(HTTPError) as refused:
        asking.start("3")
    assert (refused.value.status, refused.value.kind) == (409, "advice_under_way")
    assert asking.newest is first


def test_a_child_that_is_killed_leaves_a_reason_and_the_next_question_is_taken(advising, tmp_path):
    asking = advising(STAYS)
    first = asking.start("2")
    until(lambda: asking._process is not None)
    asking._process.kill()
    until(lambda: first.done)
    assert first.result is None
    assert "code -9" in first.wrong.error
    assert not (tmp_path / ADVICE_FILE).exists()
    assert asking.start("3") is not first


@pytest.mark.parametrize(
    ("script", "error", "fix"), [(REFUSES, "too few labels", "annotate"), (CRASHES, "out of memory", "try again")]
)
def test_a_child_that_cannot_say_says_why(advising, script, error, fix):
    found = advising(script).start("2")
    until(lambda: found.done)
    assert (found.wrong.error, found.wrong.fix, found.result) == (error, fix, None)


def test_a_failure_does_not_throw_away_what_was_found_before(advising):
    found = advising(TELLS).start("2")
    until(lambda: found.done)
    broken = advising(CRASHES).start("3")
    until(lambda: broken.done)
    assert advising(CRASHES).newest.amount == "2"


def test_closing_ends_the_child_and_keeps_nothing_of_it(advising, tmp_path):
    asking = advising(STAYS)
    asking.start("2")
    until(lambda: asking._process is not None)
    child = asking._process
    asking.close()
    until(lambda: child._process.poll() is not None)
    assert not (tmp_path / ADVICE_FILE).exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"amount": "2"}',
        json.dumps({"amount": "2", "asked_at": {"round": 1, "spent": 2}, "done": False, "result": FOUND}),
        json.dumps({"amount": "2", "asked_at": {"round": 1, "spent": 2}, "done": True, "result": {"rows": []}}),
        json.dumps({"amount": "2", "asked_at": {}, "done": True, "result": FOUND}),
        json.dumps({"amount": 2, "asked_at": 3, "done": True, "result": FOUND}),
    ],
)
def test_a_file_that_is_not_as_we_write_it_is_no_advice(advising, tmp_path, text):
    (tmp_path / ADVICE_FILE).write_text(text)
    assert advising(STAYS).newest is None


# -- what the page is told -------------------------------------------------------------------------------------------
def split(joint=None):
    """Two tasks at 10 a label; the first tells the second a half."""
    informs = Informativeness(("a", "b"), np.array([[1, 0.5], [0, 1]]), np.array([[0, 0.1], [0.1, 0]]))
    rates = {"a": ReductionRate(0.5, 0.4, 0.6, 10), "b": ReductionRate(0.5, 0.4, 0.6, 10)}
    return advise(
        SplitProblem(SplitEstimates(informs, rates), prices=(10, 10), budget=200, joint=joint),
        method="exact" if joint is None else "together",
    )


@pytest.mark.parametrize("joint", [None, 12])
def test_shares_of_the_money_add_up_whether_or_not_items_are_labelled_for_all_tasks(joint):
    found = split(joint)
    shown = advice_view(found, {})
    assert sum(row["share"] for row in shown["shares"]) == pytest.approx(1)
    tasks = [row["task"] for row in shown["shares"]]
    assert tasks == (["a", "b"] if joint is None else [None, "a", "b"])
    if joint is not None:
        assert found.split.together > 1
        assert f"{found.split.together} items at 12 units each" in shown["shares"][0]["note"]
    json.dumps(shown, allow_nan=False)


def test_gains_and_who_informs_whom_are_those_of_the_split():
    found = split()
    shown = advice_view(found, {"informer": "given"})
    assert [(row["low"], row["middle"], row["high"]) for row in shown["gains"]] == [
        (gain.low, gain.value, gain.high) for gain in found.gains.values()
    ]
    assert shown["informs"] == {"tasks": ["a", "b"], "value": [[1, 0.5], [0, 1]], "error": [[0, 0.1], [0.1, 0]]}
    assert next(table["title"] for table in shown["tables"]) == "Split"
    assert shown["reasons"] == list(found.reasons)


# -- the child -------------------------------------------------------------------------------------------------------
def work(*arguments):
    command = [sys.executable, "-m", "bursar.web.advice_worker", *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_child_splits_a_runs_money_by_its_labels(tmp_path):
    from bursar.campaign.config import parse_config
    from bursar.campaign.runs import Run, run_campaign

    learner = {"name": "probe"}  # without training steps: probes tell who informs whom
    config = parse_config(CAMPAIGN | {"learner": learner, "budget": {"seed_items": 40, "per_round": 100, "rounds": 1}})
    run_campaign(Run(tmp_path / "run", config))
    code, events = work(tmp_path / "run", "200")
    assert code == 0, events
    assert [event["event"] for event in events[:-1]] == ["stage"] * (len(events) - 1)
    assert list(dict.fromkeys(event["what"] for event in events[:-1])) == list(STAGES)
    found = events[-1]["found"]
    assert found["budget"] == "200 units"
    assert sum(row["share"] for row in found["shares"]) == pytest.approx(1)


def test_the_child_says_what_is_wrong_with_a_folder(tmp_path):
    code, events = work(tmp_path / "nowhere", "200")
    assert code == 2
    assert [event["event"] for event in events] == ["failed"]
    assert work(tmp_path)[0] == 2


def test_money_is_split_at_the_prices_in_force(app_state):
    before = inputs_of_run(app_state.session.folder).costs
    app_state.assignments.change({"costs": {"intent": {"per_item": 0.3}}}, "Anna", "ten-times-as-much")
    after = inputs_of_run(app_state.session.folder).costs
    intent = list(app_state.session.corpus.schema.values())[:1]
    words, counts = np.array([4]), {"intent": np.array([1])}
    prices = [int(costs.price(intent, words, counts).own[0, 0]) for costs in (before, after)]
    assert prices == [3, 30]


# -- over the API ----------------------------------------------------------------------------------------------------
def test_nobody_asked_is_no_advice_and_only_a_lead_may_ask(crew):
    assert crew("Anna").get("/api/advice").json() == {"advice": None}
    assert crew("Bob").get("/api/advice").status_code == 403
    assert crew("Bob").post("/api/advice", json={"amount": 2}).status_code == 403


@pytest.mark.parametrize("amount", [0, -1, 1e12, "much"])
def test_an_amount_that_is_none_is_refused(local_user, amount):
    assert local_user.post("/api/advice", json={"amount": amount}).status_code == 422


def test_a_question_over_the_api_is_taken_a_second_refused_and_the_first_answered(local_user, app_state):
    app_state.advising._command = lambda folder, money: [sys.executable, "-c", STAYS]
    reply = local_user.post("/api/advice", json={"amount": 2.5})
    assert (reply.status_code, reply.json()["amount"], reply.json()["done"]) == (202, "2.5", False)
    assert reply.json()["asked_at"] == {"round": 0, "spent": 0}
    other = local_user.post("/api/advice", json={"amount": 3})
    assert (other.status_code, other.json()["kind"]) == (409, "advice_under_way")
    until(lambda: app_state.advising._process is not None)
    app_state.advising._process.kill()
    until(lambda: local_user.get("/api/advice").json()["advice"]["done"])
    assert local_user.get("/api/advice").json()["advice"]["wrong"]["kind"] == "no_advice"
