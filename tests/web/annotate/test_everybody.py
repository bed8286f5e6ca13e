"""The annotation page with unusual texts, users and screens: everything is shown, can be annotated, and is saved."""

from __future__ import annotations

import pytest

from bursar.corpus.words import find_words
from tests.web.annotate.samples import ALL, EVERY, HEADS, HOSTILE, KINDS, MANY, PARSED, SENTENCE, TREE

pytestmark = pytest.mark.browser


# -- whatever texts hold ---------------------------------------------------------------------------------------------
def test_a_hostile_text_is_read_marked_and_saved_and_never_run(project, hand):
    tasks = {
        "<b>intent": {"kind": "classification", "labels": ["<img src=x onerror=hacked=1>", "b"]},
        "slots": {"kind": "tagging", "labels": ["<script>hacked=1</script>", "\u202eb"]},
    }
    served = project(tasks, HOSTILE)
    page = hand(served).ready()
    assert page.texts(".words") == [HOSTILE]
    page.press("1", "1", "End", "2", "?", "Escape", "s", "Escape").send()
    last = len(find_words(HOSTILE))
    spans = [[0, 1, "<script>hacked=1</script>"], [last - 1, last, "\u202eb"]]
    assert served.labels() == {"<b>intent": "<img src=x onerror=hacked=1>", "slots": spans}
    page.press("b").sees("#banner")
    assert page.tab.evaluate("window.hacked") is None
    assert page.count("#main img, #main b, #main script") == 0
    assert all(url.startswith(served.url) for url in page.requests)


def test_fifty_thousand_characters_and_two_hundred_labels_are_shown_marked_and_saved(own_project, hand):
    text = ("word " * 10_000)[:50_000]
    tasks = {
        "slots": KINDS["slots"],
        "topic": {"kind": "classification", "labels": [f"topic {number}" for number in range(MANY)]},
    }
    served = own_project(tasks, {"text": text}, {"text": text})
    page = hand(served).ready()
    assert page.tab.evaluate("document.querySelectorAll('#stage *').length") < 50  # the text is one node
    page.press("End", "Shift+ArrowUp", "1").press("j", "/").types("topic 177").press("Enter")
    assert page.tab.evaluate("document.querySelector('#stage').scrollTop") > 1000
    page.send()
    ((start, end, label),) = served.labels()["slots"]
    assert (end, label, served.labels()["topic"]) == (10_000, "time", "topic 177")
    assert 9_900 < start < 9_999


def test_of_ten_thousand_words_to_label_only_those_near_the_view_are_made(own_project, hand):
    served = own_project(EVERY | TREE, {"text": "word " * 10_000}, {"text": "b"})
    page = hand(served).ready()
    assert page.count(".cells .word") < 2_000
    page.press("End", "1")
    assert page.text(".cells .word.set").split() == ["word", "NOUN"]
    page.press("j", "End", "h", "ArrowLeft", "Enter", "2", "End")
    assert page.count(".cell") < 400
    assert page.texts(".arc text") == ["nsubj"]


def test_what_is_shown_has_names_and_roles_and_is_announced(project, hand):
    served = project(ALL, SENTENCE)
    page = hand(served).ready()
    assert SENTENCE in page.text("#spoken")
    page.tab.get_by_role("radiogroup", name="intent").get_by_role("radio", name="alarm").wait_for()
    page.tab.get_by_role("application", name="Text, to mark the spans of slots").wait_for()
    page.tab.get_by_role("slider", name="similarity").wait_for()
    page.tab.get_by_role("region", name="Tasks").wait_for()
    page.press("2")
    assert page.tab.get_by_role("radio", name="music").get_attribute("aria-checked") == "true"
    page.press("ArrowRight")
    assert page.text("#spoken") == "a"
    unnamed = "[...document.querySelectorAll('button, input')].filter(one => !one.textContent.trim() && !one.ariaLabel)"
    assert page.tab.evaluate(f"{unnamed}.length") == 0


def test_the_keys_are_shown_for_the_tasks_at_hand_and_focus_is_seen(project, hand):
    served = project(KINDS, SENTENCE)
    page = hand(served).ready().press("?").sees("dialog", "label the selection")
    page.press("Escape")
    page.until(lambda: page.count("dialog") == 0)
    focused = "(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle; })()"
    for _ in range(4):  # the spans, Send, Back, Skip
        page.press("Tab")
        assert page.tab.evaluate(focused) != "none"


@pytest.mark.parametrize(("size", "scheme"), [((1280, 800), "light"), ((820, 1180), "dark"), ((390, 844), "light")])
def test_everything_fits_the_screen_and_can_be_hit_with_a_finger(project, hand, size, scheme):
    served = project(ALL, SENTENCE * 3)
    page = hand(served, viewport={"width": size[0], "height": size[1]}, color_scheme=scheme).ready()
    root = "document.documentElement"
    assert page.tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0
    assert page.tab.evaluate(f"{root}.scrollHeight - {root}.clientHeight") <= 0
    small = """[...document.querySelectorAll("#main button, #main input")].filter(one => one.checkVisibility()
        && !one.matches(".flag") && one.getBoundingClientRect().height < 40).map(one => one.outerHTML)"""
    assert page.tab.evaluate(small) == []


def test_a_tablet_is_enough(project, hand):
    served = project(KINDS | TREE, PARSED)
    page = hand(served, viewport={"width": 820, "height": 1180}, has_touch=True).ready()
    tap = page.tab.touchscreen.tap
    tap(*page.centre('[data-task="intent"] .label:nth-child(2)'))
    tap(*page.centre('[data-task="slots"] .title'))
    tap(*page.at_word(PARSED, 1))
    tap(*page.centre('[data-task="slots"] .label:nth-child(3)'))
    tap(*page.centre('[data-task="tree"] .title'))
    for word, (head, label) in enumerate(HEADS, start=1):
        tap(*page.centre(f"[data-place='{word}']"))
        tap(*page.centre(f"[data-place='{head}']"))
        if head:
            tap(*page.centre(f'[data-task="tree"] .label:has-text("{label}")'))
    tap(*page.centre("#send"))
    page.until(lambda: served.answers())
    assert served.labels() == {"intent": "music", "slots": [[1, 2, "person"]], "tree": HEADS}
