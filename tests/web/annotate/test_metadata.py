"""The other columns of an item's table, beside its text: on the annotation page and on the review page."""

from __future__ import annotations

import pytest

from bursar.web.queue import Overlap
from tests.web.annotate.samples import KINDS, SENTENCE
from tests.web.small import HOSTILE

pytestmark = pytest.mark.browser

INTENT = {"intent": KINDS["intent"]}
LONG = "a longer remark of the agent " * 4
BESIDE = {"Ticket": 7, "Kunde": HOSTILE, "Datum": {"$date": "2026-05-01"}, "Leer": None, "Remark": LONG}
INSIDE = "!!document.querySelector('.metadata script, .metadata img') || 'hacked' in window"


def test_short_columns_are_shown_beside_the_text_and_long_ones_on_request(own_project, hand):
    page = hand(own_project(INTENT, {"text": SENTENCE, "metadata": BESIDE})).ready().sees(".stage .metadata")
    assert page.texts(".metadata > dl dt") == ["Ticket", "Kunde", "Datum"]
    assert page.texts(".metadata > dl dd") == ["7", HOSTILE, "2026-05-01"]
    assert page.text(".metadata summary") == "1 more column"
    assert not page.tab.locator(".metadata details dl").is_visible()
    page.click(".metadata summary")
    assert page.texts(".metadata details dd") == [LONG.strip()]
    assert page.tab.evaluate(INSIDE) is False
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    assert page.tab.locator(".metadata").evaluate(size) < page.tab.locator(".reading").first.evaluate(size)


def test_an_item_without_a_table_has_nothing_beside_it_and_the_next_one_has_its_own(own_project, hand):
    first, second = {"text": SENTENCE}, {"text": f"{SENTENCE} again", "metadata": {"Ticket": 8}}
    page = hand(own_project(INTENT, first, second)).ready()
    seen = {}
    for _ in range(2):
        seen[page.text(".reading")] = page.texts(".metadata dd")
        page.label("intent", "music").send()
    assert seen == {first["text"]: [], second["text"]: ["8"]}


def test_keys_still_answer_after_more_columns_were_opened(own_project, hand):
    page = hand(own_project(INTENT, {"text": SENTENCE, "metadata": BESIDE}, {"text": SENTENCE})).ready()
    page.click(".metadata summary").press("Escape").label("intent", "music").send()


def test_a_lead_sees_the_columns_beside_what_people_disagree_on(own_project, hand):
    served = own_project(INTENT, {"text": SENTENCE, "metadata": BESIDE})
    served.app_state.queue.set_overlap(Overlap(1.0, 2))
    for person, label in (("Bob", "music"), ("Eve", "table")):
        served.answer_as(person, "u0", {"intent": label})
    page = hand(served)
    page.tab.goto(f"{served.url}/review")
    page.sees(".case .metadata")
    assert page.texts(".case .metadata > dl dd") == ["7", HOSTILE, "2026-05-01"]
    assert page.tab.evaluate(INSIDE) is False
