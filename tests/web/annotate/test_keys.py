"""Keys go to the active task, and Tab follows the tasks as shown on the screen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.web.annotate.samples import EVERY, KINDS, LINKS, PARSED, SCORE, SENTENCE, TREE

pytestmark = pytest.mark.browser

SPANS = {"slots": KINDS["slots"]}
INTENT = {"intent": KINDS["intent"]}
MOOD = {"mood": {"kind": "classification", "labels": ["good", "bad"]}}
ORDER = {"intent": KINDS["intent"], **SPANS, **SCORE}  # a class, spans, a score
EVERY_KIND = INTENT | SPANS | LINKS | TREE | EVERY | SCORE | MOOD
MANY = {"topic": {"kind": "classification", "labels": [f"topic-{number:03}" for number in range(30)]}}


def active(page):
    """The task that is worked on, which the focus must be in."""
    name = page.tab.locator(".task.active").get_attribute("data-task")
    focused = page.tab.evaluate(
        "(() => { const at = document.activeElement; const task = at.closest('[data-task]')?.dataset.task;"
        " return task ?? (at.closest('.text') ? 'the text' : at.id || at.tagName); })()"
    )
    assert focused in (name, "the text"), f"{name} is active and {focused} has the focus"
    return name


def walk(page, key, steps):
    found = []
    for _ in range(steps):
        page.press(key)
        found.append(active(page))
    return found


# -- the order -------------------------------------------------------------------------------------------------------
def test_after_spans_are_marked_tab_goes_on_to_the_next_task_and_leaves_the_class_alone(project, hand):
    served = project(ORDER, SENTENCE)
    page = hand(served).ready().press("3")  # which goes on to the spans
    page.drag_words(SENTENCE, 4, 5).label("slots", "city").press("Tab", "4")
    assert page.chosen("intent") == ["table"]
    page.send()
    assert served.labels() == {"intent": "table", "slots": [[4, 6, "city"]], "similarity": 4}


def test_after_spans_are_marked_by_keys_tab_goes_on_and_back(project, hand):
    served = project(ORDER, SENTENCE)
    hand(served).ready().press("3", "End", "1", "Tab", "2", "Shift+Tab", "2", "Shift+Tab", "1").send()
    assert served.labels() == {"intent": "alarm", "slots": [[7, 8, "city"]], "similarity": 2}


def test_tab_goes_through_tasks_of_every_kind_in_their_order_and_back(project, hand):
    names = list(EVERY_KIND)
    page = hand(project(EVERY_KIND, PARSED)).ready()
    assert active(page) == names[0]
    assert walk(page, "Tab", len(names) - 1) == names[1:]
    assert walk(page, "Shift+Tab", len(names) - 1) == names[-2::-1]


def test_tab_goes_through_the_tasks_of_a_pair_and_of_an_image(project, hand):
    page = hand(project(SCORE | MOOD, "A man plays.", pair="Somebody plays.")).ready()
    assert (active(page), walk(page, "Tab", 1), walk(page, "Shift+Tab", 1)) == ("similarity", ["mood"], ["similarity"])
    two = {"digit": {"kind": "classification", "labels": ["one", "two"]}} | MOOD
    pixels = np.arange(28 * 28, dtype=np.uint8).reshape(28, 28)
    page = hand(project(two, image=pixels)).ready()
    page.click('button:has-text("Fit")')
    assert (active(page), walk(page, "Tab", 1), walk(page, "Shift+Tab", 1)) == ("digit", ["mood"], ["digit"])
    page.click(".picture").press("2")
    assert (active(page), page.chosen("digit")) == ("mood", ["two"])


@pytest.mark.parametrize("part", [".title", ".accept", ".label >> nth=2", ".pick", ".drop"])
def test_tab_goes_on_from_whatever_part_of_a_task_has_the_focus(project, hand, part):
    served = project(ORDER, SENTENCE)
    served.suggestions = {"slots": {"label": [[4, 6, "city"]], "confidence": 0.9}}
    page = hand(served).ready().press("1", "2")
    page.tab.locator(f'[data-task="slots"] {part}').focus()
    assert (walk(page, "Tab", 1), walk(page, "Shift+Tab", 2)) == (["similarity"], ["slots", "intent"])


def test_what_was_marked_for_another_task_is_picked_and_deleted_with_one_click(project, hand):
    page = hand(project(ORDER, SENTENCE)).ready().press("1", "2", "Tab")
    page.click('[data-task="slots"] .pick')
    assert active(page) == "slots"
    page.press("Tab").click('[data-task="slots"] .drop')
    assert (active(page), page.spans()) == ("slots", [])


def test_tab_goes_on_from_a_field_that_is_typed_in(project, hand):
    page = hand(project(MANY | SCORE | MOOD, SENTENCE)).ready().press("/").types("17")
    assert walk(page, "Tab", 1) == ["similarity"]
    page.types("3")
    assert walk(page, "Tab", 1) == ["mood"]
    assert walk(page, "Shift+Tab", 2) == ["similarity", "topic"]
    assert page.chosen("topic") == []


def test_after_the_last_task_tab_goes_to_send_and_from_there_back(project, hand):
    page = hand(project(ORDER, SENTENCE)).ready().press("Shift+Tab")
    focused = "document.activeElement.id"
    assert page.tab.evaluate(focused) == "show-keys"
    assert walk(page, "Tab", 3) == list(ORDER)
    page.press("Tab")
    assert page.tab.evaluate(focused) == "send"
    assert walk(page, "Shift+Tab", 1) == ["similarity"]


# -- what keys change ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("elsewhere", ["#send", "#back", "#show-keys", "a[href]"])
def test_a_key_pressed_outside_of_the_tasks_changes_none(project, hand, elsewhere):
    served = project(INTENT | MOOD, SENTENCE)
    served.suggestions = {"mood": {"label": "bad", "confidence": 0.9}}
    page = hand(served).ready().press("1", "1")
    page.tab.locator(elsewhere).first.focus()
    page.press("2", "Backspace", "a")
    assert (page.chosen("intent"), page.chosen("mood")) == (["alarm"], ["good"])


def test_to_accept_all_leaves_what_was_answered_as_it_is(project, hand):
    served = project(INTENT | SPANS | MOOD, SENTENCE)
    served.suggestions = {
        "intent": {"label": "table", "confidence": 0.9},
        "slots": {"label": [[4, 6, "city"]], "confidence": 0.9},
        "mood": {"label": "bad", "confidence": 0.9},
    }
    hand(served).ready().press("1", "End", "1", "Shift+A").send()
    assert served.labels() == {"intent": "alarm", "slots": [[7, 8, "time"]], "mood": "bad"}


def test_keys_are_for_the_task_again_when_the_list_of_keys_is_closed(project, hand):
    page = hand(project(INTENT, SENTENCE)).ready().click("#show-keys").sees("dialog", "next task")
    page.press("Escape").until(lambda: page.count("dialog") == 0)
    page.press("2")
    assert page.chosen("intent") == ["music"]
