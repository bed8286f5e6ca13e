"""The annotation page in a real browser: every kind of task by mouse and by keyboard."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.corpus.words import find_words
from tests.web.annotate.samples import (
    EVERY,
    GOLD,
    HEADS,
    KINDS,
    LINKED,
    LINKS,
    MANY,
    PARSED,
    SCORE,
    SENTENCE,
    STRANGE,
    TREE,
)

pytestmark = pytest.mark.browser


# -- classification --------------------------------------------------------------------------------------------------
def test_a_number_key_chooses_a_class_and_enter_sends_it(project, hand):
    served = project({"intent": KINDS["intent"]}, SENTENCE)
    page = hand(served).ready()
    assert page.text("#stage") == SENTENCE
    page.press("3")
    assert page.chosen("intent") == ["table"]
    page.press("2").send()
    assert served.labels() == {"intent": "music"}
    assert page.chosen("intent") == []  # of the next item


def click_send(page):
    """Send with the mouse, and wait until it is with the server and something else is shown."""
    page.until(lambda: page.count("#send.primary"))
    page.tab.evaluate("document.querySelector('.task').dataset.old = 'yes'")
    page.click("#send")
    page.until(lambda: page.count("[data-old]") == 0 and page.kept("/outbox/") == 0)


def test_a_click_chooses_a_class_and_another_sends_it(project, hand):
    served = project({"intent": KINDS["intent"]}, SENTENCE)
    page = hand(served).ready().label("intent", "alarm")
    click_send(page)
    assert served.labels() == {"intent": "alarm"}


def test_edits_are_undone_and_done_again_by_the_mouse(project, hand):
    served = project(KINDS, SENTENCE)
    page = hand(served).ready().label("intent", "alarm").label("intent", "music").click(".none")
    for _ in range(3):
        page.click("#undo")
    assert page.tab.locator("#undo").is_disabled()
    page.click("#redo").click("#redo")
    assert page.chosen("intent") == ["music"]
    assert not page.answered("slots")
    page.click("#redo")
    click_send(page)
    assert served.labels() == {"intent": "music", "slots": []}


def test_one_of_two_hundred_labels_is_found_by_typing(project, hand):
    labels = [f"topic-{number:03}" for number in range(MANY)]
    served = project({"topic": {"kind": "classification", "labels": labels}}, SENTENCE)
    page = hand(served).ready().press("/").types("17")
    assert page.text(".label.active .name") == "topic-170"  # where a part of the name begins so, before the others
    page.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    assert page.chosen("topic") == ["topic-171"]
    page.send()
    assert served.labels() == {"topic": "topic-171"}
    page.press("0").types("no such").sees(".nothing").press("Escape")
    assert page.count(".label:visible") > 9
    page.click('.label:has-text("topic-004")').send()
    assert served.labels() == {"topic": "topic-004"}


# -- spans -----------------------------------------------------------------------------------------------------------
def test_spans_are_marked_by_dragging_and_by_clicking(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready()
    page.drag_words(SENTENCE, 4, 5).label("slots", "city")
    page.click_word(SENTENCE, 7).label("slots", "person")
    assert page.spans() == ["city", "person"]
    page.click_word(SENTENCE, 7).label("slots", "time")  # a span that is hit is relabelled
    page.drag_words(SENTENCE, 0, 2).label("slots", "person")
    page.click('.entry:has-text("book a table") .drop')
    page.send()
    assert served.labels() == {"slots": [[4, 6, "city"], [7, 8, "time"]]}


def test_spans_are_marked_by_the_keyboard_alone(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready()
    page.press(*["ArrowRight"] * 4, "Shift+ArrowRight", "1")
    assert page.spans() == ["time"]
    page.press("2")  # says something else of the same span
    page.press("ArrowRight", "ArrowRight", "1")
    page.press("Home", "Shift+End", "3")
    assert page.spans() == ["person"]  # over all the others: spans of this task do not nest
    page.press("Control+z")
    assert sorted(page.spans()) == ["city", "time"]
    page.press("e", "Backspace", "Control+z", "Control+z", "Control+Shift+z", "Control+Shift+z", "Control+z")
    page.send()
    assert served.labels() == {"slots": [[4, 6, "city"], [7, 8, "time"]]}


def test_a_label_clicked_first_marks_whatever_is_dragged_over_then(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready().label("slots", "city")
    page.drag_words(SENTENCE, 0, 1).drag_words(SENTENCE, 4, 5).press("Escape").drag_words(SENTENCE, 6, 7)
    assert page.spans() == ["city", "city"]
    page.send()
    assert served.labels() == {"slots": [[0, 2, "city"], [4, 6, "city"]]}


def test_that_there_are_no_spans_is_said_and_not_assumed(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready().press("Enter").sees("#status", "confirm that there are none")
    page.press("n").send()
    assert served.labels() == {"slots": []}
    page.click(".none").send()
    assert served.labels() == {"slots": []}


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_words_beyond_the_basic_plane_and_from_right_to_left_are_the_words_of_the_corpus(project, hand, way):
    served = project({"slots": KINDS["slots"]}, STRANGE)
    page = hand(served).ready()
    last = len(find_words(STRANGE)) - 1
    hebrew = find_words(STRANGE).index((STRANGE.index("א"), STRANGE.index("ת") + 1))
    if way == "mouse":
        page.drag_words(STRANGE, last - 1, last).label("slots", "person")
        page.click_word(STRANGE, hebrew).label("slots", "city")
    else:
        page.press("End", "Shift+ArrowLeft", "3", "Home", *["ArrowRight"] * hebrew, "2")
    assert page.texts(".entry .quote") == ["אילת", "𝔘𝔫𝔦 friends"]
    page.send()
    assert served.labels() == {"slots": [[hebrew, hebrew + 1, "city"], [last - 1, last + 1, "person"]]}


def test_in_a_text_from_right_to_left_the_arrow_keys_go_the_way_they_point(project, hand):
    served = project({"slots": KINDS["slots"]}, "أيقظني في السابعة")
    page = hand(served).ready().press("ArrowLeft", "ArrowLeft", "1").send()
    assert served.labels() == {"slots": [[2, 3, "time"]]}
    page.press("End", "ArrowRight", "1").send()
    assert served.labels() == {"slots": [[1, 2, "time"]]}


def test_nested_spans_stand_on_levels_of_their_own(hand, project):
    served = project(LINKS, SENTENCE)  # spans that are linked are trained as spans, and may overlap
    page = hand(served).ready()
    page.drag_words(SENTENCE, 2, 7).label("terms", "other")
    page.drag_words(SENTENCE, 4, 5).label("terms", "method")
    page.drag_words(SENTENCE, 5, 6).label("terms", "task")
    one, two, other = (page.centre(f'.flag:has-text("{label}")')[1] for label in ("method", "task", "other"))
    assert other > max(one, two) > min(one, two)  # the longest is farthest from the text
    page.press("j", "n").send()
    assert served.labels() == {"terms": [[2, 8, "other"], [4, 6, "method"], [5, 7, "task"]], "rel": []}


def test_of_two_hundred_kinds_of_spans_one_is_found_by_typing_and_one_by_scrolling(project, hand):
    labels = [f"kind-{number:03}" for number in range(MANY)]
    served = project({"slots": {"kind": "tagging", "labels": labels}}, SENTENCE)
    page = hand(served).ready().press("End", "/").types("199").press("Enter")
    page.click_word(SENTENCE, 0).label("slots", "kind-150")
    assert page.spans() == ["kind-150", "kind-199"]
    page.send()
    assert served.labels() == {"slots": [[0, 1, "kind-150"], [7, 8, "kind-199"]]}


# -- a label for every word ------------------------------------------------------------------------------------------
def test_every_word_is_labelled_by_the_keyboard_which_goes_on_by_itself(project, hand):
    served = project(EVERY, PARSED)
    page = hand(served).ready().press("3", "1", "4").press("Enter").sees("#status", "1 word of 4 has no label")
    page.press("ArrowLeft", "2", "Shift+ArrowLeft", "Backspace", "e", "1").press("e", "1")
    assert page.texts(".cells .set .tag") == ["DET", "NOUN", "NOUN", "NOUN"]
    page.press("Home", "ArrowRight", "ArrowRight", "2").send()
    assert served.labels() == {"pos": ["DET", "NOUN", "VERB", "NOUN"]}


def test_every_word_is_labelled_by_the_mouse(project, hand):
    served = project(EVERY, PARSED)
    page = hand(served).ready()
    page.drag(page.centre("[data-word='1']"), page.centre("[data-word='3']")).label("pos", "NOUN")
    page.click("[data-word='0']").label("pos", "DET").click("[data-word='2']").label("pos", "VERB").send()
    assert served.labels() == {"pos": ["DET", "NOUN", "VERB", "NOUN"]}


# -- relations -------------------------------------------------------------------------------------------------------
def test_relations_are_drawn_by_pointing_at_two_spans(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("n")  # no terms: the page goes on to the relations
    for word, kind in ((0, "method"), (4, "task"), (6, "task")):
        page.click_word(LINKED, word).label("rel", kind).press("Escape")
    page.click_word(LINKED, 0).click_word(LINKED, 4).label("rel", "used-for")
    page.click_word(LINKED, 4).click_word(LINKED, 6).label("rel", "part-of")
    assert page.count(".arcs .arc:not(.ghost)") == 2
    page.click('button:has-text("Reverse")').send()
    assert served.labels() == {"terms": [], "rel": GOLD}


def test_relations_are_drawn_by_the_keyboard_alone(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("n", "1", *["ArrowRight"] * 4, "2", "ArrowRight", "ArrowRight", "2")
    page.press("Home", "r", "Enter", "2", "1")  # the second number says another relation of the same spans
    page.press("End", "r", "ArrowLeft", "2")  # a number may come at once
    page.press("l", "l", "Backspace", "Control+z")
    assert page.texts(".entry .what") == ["used-for", "part-of"]
    page.send()
    assert served.labels() == {"terms": [], "rel": GOLD}
    page.press("n", "Enter").sees("#status", "confirm that there are no relations").press("n").send()
    assert served.labels() == {"terms": [], "rel": []}


def test_the_spans_of_a_task_beside_it_are_there_to_be_linked(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("1", "End", "2", "ArrowLeft", "3").press("j").press("Home", "r", "Enter", "1")
    page.press("Home", "Backspace").sees("#status", "belongs to another task")
    page.send()
    link = [[0, 1, "method"], [6, 7, "task"], "used-for"]
    assert served.labels() == {"terms": [[0, 1, "method"], [5, 6, "other"], [6, 7, "task"]], "rel": [link]}


# -- trees -----------------------------------------------------------------------------------------------------------
def test_words_are_dragged_to_their_heads(project, hand):
    served = project(TREE, PARSED)
    page = hand(served).ready()
    for word, (head, label) in enumerate(HEADS, start=1):
        page.drag(page.centre(f"[data-place='{word}']"), page.centre(f"[data-place='{head}']"))
        if head:
            page.label("tree", label)
    assert page.texts(".arc text") == ["det", "nsubj", "root", "obj"]
    page.send()
    assert served.labels() == {"tree": HEADS}
    for word, (head, label) in enumerate(HEADS, start=1):  # the same by clicks
        page.click(f"[data-place='{word}']").click(f"[data-place='{head}']")
        if head:
            page.label("tree", label)
    page.send()
    assert served.labels() == {"tree": HEADS}


def test_heads_are_chosen_by_the_keyboard_and_a_loop_is_told_before_it_is_sent(project, hand):
    served = project(TREE, PARSED)
    page = hand(served).ready().press("h", "ArrowRight", "Enter", "4")  # from the root past the word itself to “dog”
    assert page.texts(".arc text") == ["det"]
    page.press("Enter").sees("#status", "3 words of 4 have no head")
    page.press("h", "Enter", "2")  # “dog” on “the”, which hangs on it
    page.press("r", "ArrowUp", "Enter", "3", "Enter").sees("#status", "“the” and “dog” form a loop")
    assert page.count(".arc.looped") == 2
    page.press("Home", "ArrowRight", "h", "ArrowRight", "Enter")
    assert page.count(".arc.looped") == 0
    page.send()
    assert served.labels() == {"tree": HEADS}


# -- numbers, pairs, images ------------------------------------------------------------------------------------------
def test_a_number_is_set_by_arrows_by_typing_and_by_the_slider(project, hand):
    served = project(SCORE, "A man plays.", pair="Somebody plays music.")
    page = hand(served).ready()
    assert page.text(".half:nth-child(2)").endswith("Somebody plays music.")
    first, second = (page.tab.locator(f".half:nth-child({side})").bounding_box() for side in (1, 2))
    assert first["x"] + first["width"] <= second["x"]
    page.press("Enter").sees("#status", "enter a number")
    page.press("ArrowRight", "Shift+ArrowRight", "ArrowLeft").send()
    assert served.labels() == {"similarity": 3.5}
    page.types("7").press("Enter").sees("#status", "a number from 0 to 5").press("Backspace").types("4,25").send()
    assert served.labels() == {"similarity": 4.25}


def test_a_number_is_set_by_dragging_and_by_clicking_the_slider(project, hand):
    served = project(SCORE, "A man plays.", pair="Somebody plays music.")
    page = hand(served).ready()
    box = page.tab.locator(".slider").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.drag((box["x"] + box["width"] / 2, middle), (box["x"] + box["width"] - 1, middle))
    click_send(page)
    assert served.labels() == {"similarity": 5}
    page.tab.mouse.click(box["x"] + 1, middle)
    click_send(page)
    assert served.labels() == {"similarity": 0}


def test_an_image_fits_its_place_grows_and_is_labelled(project, hand):
    pixels = np.arange(28 * 28, dtype=np.uint8).reshape(28, 28)
    served = project({"digit": {"kind": "classification", "labels": ["one", "two"]}}, image=pixels)
    page = hand(served).ready()
    page.until(lambda: page.tab.evaluate("document.querySelector('.picture').naturalWidth") == 28)
    frame, small = (page.tab.locator(part).bounding_box() for part in (".viewer", ".picture"))
    assert 200 < small["height"] <= frame["height"]
    page.press("+").press("+")
    assert page.tab.locator(".picture").bounding_box()["height"] > 1.5 * small["height"]
    page.click('button:has-text("Fit")').press("2").send()
    assert served.labels() == {"digit": "two"}
    page.label("digit", "one")
    click_send(page)
    assert served.labels() == {"digit": "one"}
