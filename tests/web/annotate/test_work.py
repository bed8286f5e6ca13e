"""Annotating from the first suggestion to the last round: what is sent, and that nothing is lost."""

from __future__ import annotations

import json

import pytest

from tests.web.annotate.samples import EVERY, GOLD, HEADS, KINDS, LINKED, LINKS, PARSED, SCORE, SENTENCE, TREE
from tests.web.annotating import Killable, write_project

pytestmark = pytest.mark.browser


# -- suggestions -----------------------------------------------------------------------------------------------------
SAYS = {
    "intent": {"label": "table", "confidence": 0.82, "sure": "very likely"},
    "slots": {"label": [[4, 6, "city"], [7, 8, "time"]], "confidence": 0.6, "sure": "likely"},
}


def test_a_suggestion_is_shown_and_is_no_answer_until_somebody_takes_it(project, hand):
    served = project(KINDS, SENTENCE)
    served.suggestions = SAYS
    page = hand(served).ready()
    assert page.text(".label.ghost").split("\n") == ["3", "table"]
    assert page.texts(".flag.ghost bdi") == ["city", "time"]
    assert page.texts(".task .sure") == ["very likely", "likely"]
    assert (page.chosen("intent"), page.spans()) == ([], [])
    page.press("Enter").sees("#status", "Still missing: intent: choose a label; slots: mark the spans")
    page.press("a")
    assert page.answered("intent")
    assert not page.answered("slots")
    page.press("1").press("Control+z")  # the page has gone on to the spans: a number labels the first word
    page.press("a").send()
    assert served.labels() == {"intent": "table", "slots": [[4, 6, "city"], [7, 8, "time"]]}


def test_all_suggestions_are_taken_and_taken_back_at_once(project, hand):
    served = project(KINDS, SENTENCE)
    served.suggestions = SAYS
    page = hand(served).ready().press("Shift+A")
    assert page.answered("intent")
    assert page.answered("slots")
    page.press("Control+z")
    assert not page.answered("intent")
    assert not page.answered("slots")
    page.click('.flag.ghost:has-text("time")').label("intent", "music").send()
    assert served.labels() == {"intent": "music", "slots": [[7, 8, "time"]]}


@pytest.mark.parametrize(
    ("tasks", "text", "label"),
    [
        (EVERY, PARSED, {"pos": ["DET", "NOUN", "VERB", "NOUN"]}),
        (LINKS, LINKED, {"terms": [[0, 1, "method"]], "rel": GOLD}),
        (LINKS, LINKED, {"terms": [], "rel": []}),
        (TREE, PARSED, {"tree": HEADS}),
        ({"slots": KINDS["slots"]}, SENTENCE, {"slots": []}),
    ],
)
def test_a_suggestion_of_every_kind_is_drawn_and_taken_with_one_key(project, hand, tasks, text, label):
    served = project(tasks, text)
    served.suggestions = {n: {"label": said, "confidence": 0.5, "sure": "likely"} for n, said in label.items()}
    page = hand(served).ready()
    assert page.texts(".task .sure") == ["likely"] * len(label)
    for name in label:
        assert page.count(".ghost") > 0
        assert not page.answered(name)
        page.press("a")
    assert page.count("#stage .ghost") == 0
    page.send()
    assert served.labels() == label


def test_a_number_that_is_suggested_is_marked_on_the_scale_and_taken_to_the_nearest_step(project, hand):
    served = project(SCORE, "A man plays.", pair="Somebody plays music.")
    served.suggestions = {"similarity": {"label": 3.2177, "confidence": 0.6, "sure": "likely"}}
    page = hand(served).ready().sees(".remark", "Suggestion: 3.22").sees(".mark").sees(".sure", "likely")
    page.press("a").send()
    assert served.labels() == {"similarity": 3.2}


def test_a_suggestion_that_makes_no_sense_is_left_out(project, hand):
    served = project(KINDS, SENTENCE)
    served.suggestions = {"intent": {"label": "table", "confidence": 0.7}, "slots": {"label": 7, "confidence": 0.7}}
    page = hand(served).ready().press("Shift+A")
    assert page.answered("intent")
    assert not page.answered("slots")


# -- sending, time ---------------------------------------------------------------------------------------------------
def test_reading_ends_with_the_first_edit_and_every_task_has_its_own_time(project, hand):
    served = project(KINDS, SENTENCE)
    page = hand(served).ready().press("1", "n").send()
    (body,) = [body for path, body in page.sent if path == "/answers"]
    assert set(body["seconds"]) == {"reading", "intent", "slots"} - ({"intent"} - set(body["seconds"]))
    assert all(0 <= seconds < 600 for seconds in body["seconds"].values())
    assert body["lease"]


def test_an_item_is_skipped_with_a_reason(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, {"text": "one"}, {"text": "two"}, {"text": "three"})
    page = hand(served).ready()
    first = page.text("#stage")
    page.press("s", "3", "Tab").types("it is a song").send("Enter")
    (body,) = [body for path, body in page.sent if path == "/skips"]
    assert body["reason"] == "None of the labels fits: it is a song"
    assert page.text("#stage") != first
    page.click("#skip")
    page.click('button:has-text("Cancel")')
    assert served.get("/api/state")["skipped"] == 1
    second = page.text("#stage")
    page.click("#skip").click('.reason:has-text("personal data")').click('button:has-text("Skip this item")')
    page.until(lambda: page.text("#stage") != second and page.kept("/outbox/") == 0)
    assert [skip.reason for skip in served.app_state.session.ledger.skips()] == [
        body["reason"],
        "It contains personal data",
    ]


def test_what_was_sent_is_opened_again_and_corrected(own_project, hand):
    served = own_project(KINDS, *({"text": SENTENCE} for _ in range(4)))
    page = hand(served).ready().press("1", "n").send().press("2", "n").send().press("3")
    page.press("b").sees("#banner", "You sent this")
    assert page.chosen("intent") == ["music"]
    page.press("b").sees("#banner")
    page.until(lambda: page.chosen("intent") == ["alarm"])
    page.press("3").send()
    page.sees("#status", "Change saved.")
    assert page.chosen("intent") == ["table"]  # the item that was left half done
    assert [answer["labels"]["intent"] for answer in served.answers()] == ["music", "table"]
    page.press("b").sees("#banner").press("1", "Escape")
    page.until(lambda: page.chosen("intent") == ["table"])
    assert [answer["labels"]["intent"] for answer in served.answers()] == ["music", "table"]


# -- nothing is lost -------------------------------------------------------------------------------------------------
def test_a_tab_closed_in_the_middle_of_an_answer_finds_it_again(project, hand):
    served = project(KINDS, SENTENCE)
    before = hand(served).ready()
    page = hand(served, beside=before)
    page.ready().press("2", "1")
    answered = served.get("/api/state")["answered"]
    page.tab.close()
    again = hand(served, beside=before).ready().sees("#status", "Restored your unsent answer.")
    assert (again.chosen("intent"), again.spans()) == (["music"], ["time"])
    again.send()
    assert served.labels() == {"intent": "music", "slots": [[0, 1, "time"]]}
    assert served.get("/api/state")["answered"] == answered + 1
    assert again.kept("/draft/") == 0


def visit(tab, url):
    """Go there, also while the browser is still on its way to the page that says that there was nobody."""
    for _ in range(20):
        try:
            return tab.goto(url)
        except Exception as wrong:
            if "interrupted by another navigation" not in str(wrong):
                raise
            tab.wait_for_timeout(200)
    raise AssertionError(f"{url} cannot be visited")


def test_answers_wait_while_the_server_is_gone_and_are_sent_once_and_in_order(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, *({"text": f"item {number}"} for number in range(30)))
    page = hand(served).ready()
    page.until(lambda: sum(path == "/next" for path, _ in page.sent) == 2)  # one is fetched ahead
    page.tab.wait_for_timeout(100)
    served.stop()
    page.press("1").press("Enter").sees("#unsent", "1 unsent answer")
    page.sees("#workspace").press("2").press("Enter").sees("#waiting", "The server cannot be reached")
    assert "2 unsent answers" in page.text("#unsent")
    with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
        page.tab.reload()  # the tab is lost with all that was in it
    served.start()
    visit(page.tab, f"{served.url}/annotate")
    page.ready()
    page.until(lambda: len(served.answers()) == 2)
    assert [answer["labels"]["intent"] for answer in served.answers()] == ["music", "alarm"]
    assert page.kept("/outbox/") == 0
    assert served.get("/api/state")["answered"] == 2


def test_an_answer_outlives_a_session_that_has_ended(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, {"text": "one"}, {"text": "two"}, {"text": "three"})
    served.app_state.accounts.add("Anna", "lead", "correct horse")
    page = hand(served)
    page.expected.append("401 (Unauthorized)")

    def sign_in():
        page.tab.fill("[name=name]", "Anna")
        page.tab.fill("[name=password]", "correct horse")
        page.press("Enter").ready()

    sign_in()
    page.press("2").tab.context.clear_cookies()
    page.press("Enter").sees("#waiting h1", "You are signed out").sees("#waiting", "1 unsent answer")
    page.click('#waiting a:has-text("Sign in")')
    sign_in()
    page.until(lambda: page.kept("/outbox/") == 0)
    assert [entry.labels for entry in served.app_state.session.ledger.answers()] == [{"intent": "music"}]


def test_two_tabs_have_different_items_and_send_each_once(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, *({"text": f"item {number}"} for number in range(6)))
    first = hand(served).ready()
    second = hand(served, beside=first).ready()
    assert first.text("#stage") != second.text("#stage")
    first.press("1").send()
    second.press("2").send()
    assert first.text("#stage") != second.text("#stage")
    assert sorted(answer["labels"]["intent"] for answer in served.answers()) == ["alarm", "music"]


def test_an_answer_that_comes_too_late_is_kept_for_its_writer(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, {"text": "one"}, {"text": "two"})
    page = hand(served).ready()
    page.expected.append("409 (Conflict)")
    served.answer_as("somebody else", served.app_state.queue.leases()[0].item, {"intent": "alarm"})
    page.press("3").send()
    page.sees(".notice-bar", "Someone else answered this item").sees(".notice-bar .quote")
    assert page.count("#workspace:visible") == 1  # and there is something else to do
    page.tab.reload()
    page.ready().sees(".notice-bar")
    page.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click('.notice-bar button:has-text("Copy")').sees('.notice-bar button:has-text("Copied")')
    assert json.loads(page.tab.evaluate("navigator.clipboard.readText()"))["labels"] == {"intent": "table"}
    page.click('.notice-bar button:has-text("Dismiss")')
    assert page.kept("/kept/") == 0


QUICK = {
    "learner": {"name": "scikit", "estimator": "naive-bayes"},
    "budget": {"seed_items": 2, "per_round": 20, "rounds": 1},
}


# -- nothing to do ---------------------------------------------------------------------------------------------------
def test_rounds_follow_each_other_without_a_click_until_the_end_is_told(own_project, hand):
    texts = ("wake me at six", "play some jazz", "wake me early", "play a song")
    served = own_project({"intent": KINDS["intent"]}, *({"text": text} for text in texts), **QUICK)
    page = hand(served).ready()

    def answer():
        page.press("1" if "wake" in page.text("#stage") else "2").send()

    answer()
    answer()
    page.sees("#waiting h1", "The next round is being prepared")
    page.press("b").sees("#banner", "You sent this").press("Escape")  # meanwhile one may look at what one sent
    page.sees("#waiting h1", "The next round is being prepared")
    served.app_state.hub.publish("stage", {"round": 1, "what": "training", "done": 0.4})
    page.sees(".stage-name", "Training the model · 40 %")
    served.train()
    page.ready()
    assert page.text("#round") == "Round 1"
    assert page.count(".label.ghost") == 1  # the model that was trained meanwhile has an opinion
    answer()
    answer()
    page.sees("#waiting h1", "The next round is being prepared")
    served.train()
    page.sees("#waiting h1", "The campaign has ended").sees('#waiting a[href="/watch"]')


# -- the progress strip ----------------------------------------------------------------------------------------------
def strip(page):
    bar = "(() => { const bar = document.getElementById('progress-bar'); return bar.value / bar.max; })()"
    return page.text("#round"), page.text("#progress"), page.tab.evaluate(bar)


def test_the_progress_is_there_after_a_reload_with_a_draft(own_project, hand):
    served = own_project(KINDS, *({"text": f"item {number}"} for number in range(4)))
    page = hand(served).ready().press("1", "n").send()
    page.press("2")
    page.tab.reload()
    page.ready().sees("#status", "Restored")
    assert strip(page) == ("Seed items", "1 of 4 answered, 1 by you", 0.25)


def test_the_progress_reaches_the_end_when_the_round_is_done_also_where_items_were_skipped(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, *({"text": f"item {number}"} for number in range(3)))
    page = hand(served).ready().press("1").send()
    page.press("s", "3").send("Enter")
    assert strip(page) == ("Seed items", "1 of 2 answered, 1 by you, 1 skipped", 0.5)
    page.press("1", "Enter").sees("#waiting h1", "The next round is being prepared")
    assert strip(page) == ("Seed items", "2 of 2 answered, 2 by you, 1 skipped", 1)
    page.tab.reload()
    page.sees("#waiting h1", "The next round is being prepared")
    assert strip(page) == ("Seed items", "2 of 2 answered, 2 by you, 1 skipped", 1)


# -- the real thing, killed ------------------------------------------------------------------------------------------
@pytest.mark.soak
def test_a_server_that_is_killed_again_and_again_has_every_answer_once(tmp_path, hand):
    items = [{"text": f"item {number}"} for number in range(60)]
    folder = write_project(tmp_path / "project", {"intent": KINDS["intent"]}, items)
    served = Killable(folder)
    page = hand(served).ready()
    said = []
    for number in range(24):
        page.until(lambda: page.count("#workspace:not([hidden])"))
        text = page.text("#stage")
        page.press(str(1 + number % 3), "Enter")
        if number % 4 == 3:  # in the middle of sending, most likely
            served.kill()
            served.start()
        page.until(lambda text=text: page.count("#workspace:not([hidden])") == 0 or page.text("#stage") != text)
        said.append((text, ["alarm", "music", "table"][number % 3]))
    page.until(lambda: page.kept("/outbox/") == 0)
    answers = [(answer["text"], answer["labels"]["intent"]) for answer in served.answers()]
    assert sorted(answers) == sorted(said)
    assert served.get("/api/state")["answered"] == len(said)
    served.kill()
