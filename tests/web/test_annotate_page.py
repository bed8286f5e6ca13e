"""The annotate page in a real browser before a real server: every kind of task by mouse and by keyboard."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.corpus.words import find_words
from bursar.errors import LabelError
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging
from tests.web.annotating import Hand, Killable, Served, write_project

pytestmark = pytest.mark.browser

SENTENCE = "book a table in New York for seven"
KINDS = {
    "intent": {"kind": "classification", "labels": ["alarm", "music", "table"]},
    "slots": {"kind": "tagging", "labels": ["time", "city", "person"]},
}
STRANGE = "🙂 e\u0301te\u0301 in 👩\u200d👧 אילת with 𝔘𝔫𝔦 friends"
EVERY = {"pos": {"kind": "tagging", "labels": ["NOUN", "VERB", "DET", "ADP"], "every_word": True}}
LINKS = {
    "terms": {"kind": "tagging", "labels": ["method", "task", "other"]},
    "rel": {"kind": "relations", "labels": ["used-for", "part-of"], "entity_types": ["method", "task"]},
}
LINKED = "CRFs are used for tagging and parsing"
TREE = {"tree": {"kind": "parsing", "labels": ["root", "nsubj", "obj", "det"]}}
PARSED = "the dog chased it"
SCORE = {"similarity": {"kind": "regression", "low": 0, "high": 5}}
MANY = 200
HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1> & \u202eturned\u202c"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Serves a project of items with one text, for all tests that ask for the same."""
    served = {}

    def of(tasks, text=None, items=40, **item):
        name = repr((tasks, text, item))
        if name not in served:
            folder = tmp_path_factory.mktemp("projects") / "project"
            lines = [({} if text is None else {"text": text}) | item for _ in range(items)]
            served[name] = Served(write_project(folder, tasks, lines))
        served[name].suggestions = {}
        return served[name]

    yield of
    for one in served.values():
        one.stop()


@pytest.fixture
def own_project(tmp_path):
    """Serves a project that the test has for itself."""
    served = []

    def of(tasks, *items, **more):
        served.append(Served(write_project(tmp_path / f"project-{len(served)}", tasks, items, **more)))
        return served[-1]

    yield of
    for one in served:
        one.stop()


@pytest.fixture(scope="module")
def tab(browser):
    """One tab for most tests: a new browser for each would cost more than the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Hand(context.new_page())
    context.close()


@pytest.fixture
def hand(browser, tab):
    """Opens the page as somebody who was never there before; whatever goes wrong there is a failure."""
    contexts, hands = [], [tab]

    def of(served, beside=None, **options):
        if beside is not None:
            hands.append(Hand(beside.tab.context.new_page()).opens(served.url))
        elif options:
            contexts.append(browser.new_context(**options))
            hands.append(Hand(contexts[-1].new_page()).opens(served.url))
        else:
            tab.comes_to(served.url)
            return tab
        return hands[-1]

    yield of
    for one in hands:
        assert [error for error in one.errors if not any(part in error for part in one.expected)] == []
    for one in hands[1:]:
        one.tab.close()
    for context in contexts:
        context.close()


# -- classification --------------------------------------------------------------------------------------------------
def test_a_number_key_chooses_a_class_and_enter_sends_it(project, hand):
    served = project({"intent": KINDS["intent"]}, SENTENCE)
    page = hand(served).ready()
    assert page.text("#stage") == SENTENCE
    page.press("3")
    assert page.chosen("intent") == ["table"]
    page.press("2").send()
    assert served.said() == {"intent": "music"}
    assert page.chosen("intent") == []  # of the next item


def test_a_click_chooses_a_class_and_another_sends_it(project, hand):
    served = project({"intent": KINDS["intent"]}, SENTENCE)
    page = hand(served).ready().label("intent", "alarm")
    page.until(lambda: page.count("#send.primary"))
    page.tab.evaluate("document.querySelector('.task').dataset.old = 'yes'")
    page.click("#send")
    page.until(lambda: page.count("[data-old]") == 0 and page.kept("/outbox/") == 0)
    assert served.said() == {"intent": "alarm"}


def test_one_of_two_hundred_labels_is_found_by_typing(project, hand):
    labels = [f"topic-{number:03}" for number in range(MANY)]
    served = project({"topic": {"kind": "classification", "labels": labels}}, SENTENCE)
    page = hand(served).ready().press("/").types("17")
    assert page.text(".label.active .name") == "topic-170"  # where a part of the name begins so, before the others
    page.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    assert page.chosen("topic") == ["topic-171"]
    page.send()
    assert served.said() == {"topic": "topic-171"}
    page.press("0").types("no such").sees(".nothing").press("Escape")
    assert page.count(".label:visible") > 9
    page.click('.label:has-text("topic-004")').send()
    assert served.said() == {"topic": "topic-004"}


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
    assert served.said() == {"slots": [[4, 6, "city"], [7, 8, "time"]]}


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
    assert served.said() == {"slots": [[4, 6, "city"], [7, 8, "time"]]}


def test_a_label_clicked_first_marks_whatever_is_dragged_over_then(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready().label("slots", "city")
    page.drag_words(SENTENCE, 0, 1).drag_words(SENTENCE, 4, 5).press("Escape").drag_words(SENTENCE, 6, 7)
    assert page.spans() == ["city", "city"]
    page.send()
    assert served.said() == {"slots": [[0, 2, "city"], [4, 6, "city"]]}


def test_that_there_are_no_spans_is_said_and_not_assumed(project, hand):
    served = project({"slots": KINDS["slots"]}, SENTENCE)
    page = hand(served).ready().press("Enter").sees("#status", "say that there are none")
    page.press("n").send()
    assert served.said() == {"slots": []}
    page.click(".none").send()
    assert served.said() == {"slots": []}


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
    assert served.said() == {"slots": [[hebrew, hebrew + 1, "city"], [last - 1, last + 1, "person"]]}


def test_in_a_text_from_right_to_left_the_arrow_keys_go_the_way_they_point(project, hand):
    served = project({"slots": KINDS["slots"]}, "أيقظني في السابعة")
    page = hand(served).ready().press("ArrowLeft", "ArrowLeft", "1").send()
    assert served.said() == {"slots": [[2, 3, "time"]]}
    page.press("End", "ArrowRight", "1").send()
    assert served.said() == {"slots": [[1, 2, "time"]]}


def test_nested_spans_stand_on_levels_of_their_own(hand, project):
    served = project(LINKS, SENTENCE)  # spans that are linked are trained as spans, and may overlap
    page = hand(served).ready()
    page.drag_words(SENTENCE, 2, 7).label("terms", "other")
    page.drag_words(SENTENCE, 4, 5).label("terms", "method")
    page.drag_words(SENTENCE, 5, 6).label("terms", "task")
    one, two, other = (page.centre(f'.flag:has-text("{label}")')[1] for label in ("method", "task", "other"))
    assert other > max(one, two) > min(one, two)  # the longest is farthest from the text
    page.press("j", "n").send()
    assert served.said() == {"terms": [[2, 8, "other"], [4, 6, "method"], [5, 7, "task"]], "rel": []}


# -- a label for every word ------------------------------------------------------------------------------------------
def test_every_word_is_labelled_by_the_keyboard_which_goes_on_by_itself(project, hand):
    served = project(EVERY, PARSED)
    page = hand(served).ready().press("3", "1", "4").press("Enter").sees("#status", "1 word of 4 has no label")
    page.press("ArrowLeft", "2", "Shift+ArrowLeft", "Backspace", "e", "1").press("e", "1")
    assert page.texts(".cells .set .tag") == ["DET", "NOUN", "NOUN", "NOUN"]
    page.press("Home", "ArrowRight", "ArrowRight", "2").send()
    assert served.said() == {"pos": ["DET", "NOUN", "VERB", "NOUN"]}


def test_every_word_is_labelled_by_the_mouse(project, hand):
    served = project(EVERY, PARSED)
    page = hand(served).ready()
    page.drag(page.centre("[data-word='1']"), page.centre("[data-word='3']")).label("pos", "NOUN")
    page.click("[data-word='0']").label("pos", "DET").click("[data-word='2']").label("pos", "VERB").send()
    assert served.said() == {"pos": ["DET", "NOUN", "VERB", "NOUN"]}


# -- relations -------------------------------------------------------------------------------------------------------
GOLD = [[[0, 1, "method"], [4, 5, "task"], "used-for"], [[6, 7, "task"], [4, 5, "task"], "part-of"]]


def test_relations_are_drawn_by_pointing_at_two_spans(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("n")  # no terms: the page goes on to the relations
    for word, kind in ((0, "method"), (4, "task"), (6, "task")):
        page.click_word(LINKED, word).label("rel", kind).press("Escape")
    page.click_word(LINKED, 0).click_word(LINKED, 4).label("rel", "used-for")
    page.click_word(LINKED, 4).click_word(LINKED, 6).label("rel", "part-of")
    assert page.count(".arcs .arc:not(.ghost)") == 2
    page.click('button:has-text("Turn round")').send()
    assert served.said() == {"terms": [], "rel": GOLD}


def test_relations_are_drawn_by_the_keyboard_alone(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("n", "1", *["ArrowRight"] * 4, "2", "ArrowRight", "ArrowRight", "2")
    page.press("Home", "r", "Enter", "2", "1")  # the second number says another relation of the same spans
    page.press("End", "r", "ArrowLeft", "2")  # a number may come at once
    page.press("l", "l", "Backspace", "Control+z")
    assert page.texts(".entry .what") == ["used-for", "part-of"]
    page.send()
    assert served.said() == {"terms": [], "rel": GOLD}
    page.press("n", "Enter").sees("#status", "say that there are no relations").press("n").send()
    assert served.said() == {"terms": [], "rel": []}


def test_the_spans_of_a_task_beside_it_are_there_to_be_linked(project, hand):
    served = project(LINKS, LINKED)
    page = hand(served).ready().press("1", "End", "2", "ArrowLeft", "3").press("j").press("Home", "r", "Enter", "1")
    page.press("Home", "Backspace").sees("#status", "belongs to another task")
    page.send()
    link = [[0, 1, "method"], [6, 7, "task"], "used-for"]
    assert served.said() == {"terms": [[0, 1, "method"], [5, 6, "other"], [6, 7, "task"]], "rel": [link]}


# -- trees -----------------------------------------------------------------------------------------------------------
HEADS = [[2, "det"], [3, "nsubj"], [0, "root"], [3, "obj"]]


def test_words_are_dragged_to_their_heads(project, hand):
    served = project(TREE, PARSED)
    page = hand(served).ready()
    for word, (head, label) in enumerate(HEADS, start=1):
        page.drag(page.centre(f"[data-place='{word}']"), page.centre(f"[data-place='{head}']"))
        if head:
            page.label("tree", label)
    assert page.texts(".arc text") == ["det", "nsubj", "root", "obj"]
    page.send()
    assert served.said() == {"tree": HEADS}
    for word, (head, label) in enumerate(HEADS, start=1):  # the same by clicks
        page.click(f"[data-place='{word}']").click(f"[data-place='{head}']")
        if head:
            page.label("tree", label)
    page.send()
    assert served.said() == {"tree": HEADS}


def test_heads_are_chosen_by_the_keyboard_and_a_loop_is_told_before_it_is_sent(project, hand):
    served = project(TREE, PARSED)
    page = hand(served).ready().press("h", "ArrowRight", "Enter", "4")  # from the root past the word itself to “dog”
    assert page.texts(".arc text") == ["det"]
    page.press("Enter").sees("#status", "3 words of 4 have no head")
    page.press("h", "Enter", "2")  # “dog” on “the”, which hangs on it
    page.press("r", "ArrowUp", "Enter", "3", "Enter").sees("#status", "“the” and “dog” hang on each other")
    assert page.count(".arc.looped") == 2
    page.press("Home", "ArrowRight", "h", "ArrowRight", "Enter")
    assert page.count(".arc.looped") == 0
    page.send()
    assert served.said() == {"tree": HEADS}


# -- numbers, pairs, images ------------------------------------------------------------------------------------------
def test_a_number_is_set_by_arrows_by_typing_and_by_the_slider(project, hand):
    served = project(SCORE, "A man plays.", pair="Somebody plays music.")
    page = hand(served).ready()
    assert page.text(".half:nth-child(2)").endswith("Somebody plays music.")
    first, second = (page.tab.locator(f".half:nth-child({side})").bounding_box() for side in (1, 2))
    assert first["x"] + first["width"] <= second["x"]
    page.press("Enter").sees("#status", "set a number")
    page.press("ArrowRight", "Shift+ArrowRight", "ArrowLeft").send()
    assert served.said() == {"similarity": 3.5}
    page.types("7").press("Enter").sees("#status", "a number from 0 to 5").press("Backspace").types("4,25").send()
    assert served.said() == {"similarity": 4.25}
    page.tab.locator(".slider").fill("1.5")
    page.send("Enter")
    assert served.said() == {"similarity": 1.5}


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
    assert served.said() == {"digit": "two"}


# -- suggestions -----------------------------------------------------------------------------------------------------
SAYS = {
    "intent": {"label": "table", "confidence": 0.72},
    "slots": {"label": [[4, 6, "city"], [7, 8, "time"]], "confidence": 0.6},
}


def test_a_suggestion_is_shown_and_is_no_answer_until_somebody_takes_it(project, hand):
    served = project(KINDS, SENTENCE)
    served.suggestions = SAYS
    page = hand(served).ready()
    assert page.text(".label.ghost").split("\n") == ["3", "table", "72 %"]
    assert page.texts(".flag.ghost bdi") == ["city", "time"]
    assert (page.chosen("intent"), page.spans()) == ([], [])
    page.press("Enter").sees("#status", "Still to do: intent: choose a label; slots: mark the spans")
    page.press("a")
    assert page.answered("intent")
    assert not page.answered("slots")
    page.press("1").press("Control+z")  # the page has gone on to the spans: a number labels the first word
    page.press("a").send()
    assert served.said() == {"intent": "table", "slots": [[4, 6, "city"], [7, 8, "time"]]}


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
    assert served.said() == {"intent": "music", "slots": [[7, 8, "time"]]}


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
    served.suggestions = {name: {"label": said, "confidence": 0.5} for name, said in label.items()}
    page = hand(served).ready()
    for name in label:
        assert page.count(".ghost") > 0
        assert not page.answered(name)
        page.press("a")
    assert page.count("#stage .ghost") == 0
    page.send()
    assert served.said() == label


def test_a_number_that_is_suggested_is_marked_on_the_scale_and_taken_to_the_nearest_step(project, hand):
    served = project(SCORE, "A man plays.", pair="Somebody plays music.")
    served.suggestions = {"similarity": {"label": 3.2177, "confidence": 0.6}}
    page = hand(served).ready().sees(".remark", "The model says 3.22 (60 % sure).").sees(".mark")
    page.press("a").send()
    assert served.said() == {"similarity": 3.2}


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


@pytest.fixture(scope="module")
def modules(browser, project):
    """The page's modules, to call their functions."""
    context = browser.new_context()
    yield Hand(context.new_page()).opens(project({"intent": KINDS["intent"]}, SENTENCE).url).module
    context.close()


CLOCK = """({ Clock }, steps) => {
    const clock = new Clock({}, 0);
    for (const [what, ...rest] of steps) clock[what](...rest);
    return clock.total();
}"""


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([["charge", "reading", 3], ["charge", "intent", 4.25]], {"reading": 3, "intent": 1.25}),
        ([["alive", 50], ["alive", 100], ["charge", "reading", 110]], {"reading": 110}),
        ([["charge", "reading", 1000]], {"reading": 60}),  # nobody was there
        ([["pause", 10], ["resume", 500], ["charge", "reading", 505]], {"reading": 15}),
        ([["pause", 10], ["alive", 30], ["charge", "reading", 40]], {"reading": 10}),
        ([["charge", "intent", 5], ["charge", "slots", 3], ["charge", "intent", 7]], {"intent": 9, "slots": 0}),
    ],
)
def test_time_without_a_sign_of_a_person_is_not_counted(modules, steps, seconds):
    assert modules("clock", CLOCK, steps) == seconds


def test_an_item_is_skipped_with_a_reason(own_project, hand):
    served = own_project({"intent": KINDS["intent"]}, {"text": "one"}, {"text": "two"}, {"text": "three"})
    page = hand(served).ready()
    first = page.text("#stage")
    page.press("s", "3", "Tab").types("it is a song").send("Enter")
    (body,) = [body for path, body in page.sent if path == "/skips"]
    assert body["reason"] == "None of the labels fits: it is a song"
    assert page.text("#stage") != first
    page.click("#skip")
    page.click('button:has-text("Keep it")')
    assert served.get("/api/state")["skipped"] == 1


def test_what_was_sent_is_opened_again_and_corrected(own_project, hand):
    served = own_project(KINDS, *({"text": SENTENCE} for _ in range(4)))
    page = hand(served).ready().press("1", "n").send().press("2", "n").send().press("3")
    page.press("b").sees("#banner", "You sent this")
    assert page.chosen("intent") == ["music"]
    page.press("b").sees("#banner")
    page.until(lambda: page.chosen("intent") == ["alarm"])
    page.press("3").send()
    page.sees("#status", "Your change is saved.")
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
    again = hand(served, beside=before).ready().sees("#status", "Here is what you had not sent yet.")
    assert (again.chosen("intent"), again.spans()) == (["music"], ["time"])
    again.send()
    assert served.said() == {"intent": "music", "slots": [[0, 1, "time"]]}
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
    page.press("1").press("Enter").sees("#unsent", "1 answer waits to be sent")
    page.sees("#bench").press("2").press("Enter").sees("#waiting", "The server cannot be reached")
    assert "2 answers wait to be sent" in page.text("#unsent")
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
    served.site.accounts.add("Anna", "lead", "correct horse")
    page = hand(served)
    page.expected.append("401 (Unauthorized)")

    def sign_in():
        page.tab.fill("[name=name]", "Anna")
        page.tab.fill("[name=password]", "correct horse")
        page.press("Enter").ready()

    sign_in()
    page.press("2").tab.context.clear_cookies()
    page.press("Enter").sees("#waiting h1", "You are signed out").sees("#waiting", "1 answer waits to be sent")
    page.click('#waiting a:has-text("Sign in")')
    sign_in()
    page.until(lambda: page.kept("/outbox/") == 0)
    assert [entry.label for entry in served.site.live.answers()] == ["music"]


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
    served.answer_as("somebody else", served.site.queue.leases()[0].item, {"intent": "alarm"})
    page.press("3").send()
    page.sees(".notice-bar", "Somebody else answered this item").sees(".notice-bar .quote")
    assert page.count("#bench:visible") == 1  # and there is something else to do
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
    served.site.hub.publish("stage", {"round": 1, "what": "training", "done": 0.4})
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
    assert served.said() == {"<b>intent": "<img src=x onerror=hacked=1>", "slots": spans}
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
    ((start, end, label),) = served.said()["slots"]
    assert (end, label, served.said()["topic"]) == (10_000, "time", "topic 177")
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


# -- everybody can use it --------------------------------------------------------------------------------------------
ALL = KINDS | LINKS | TREE | EVERY | SCORE


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
    page = hand(served).ready().press("?").sees("dialog", "label the words chosen")
    page.press("Escape")
    page.until(lambda: page.count("dialog") == 0)
    focused = "(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle; })()"
    for _ in range(6):
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
    assert served.said() == {"intent": "music", "slots": [[1, 2, "person"]], "tree": HEADS}


# -- what the page takes for complete is what the tasks take ----------------------------------------------------------
MISSING = """async ({ kindOf }, { task, words, values }) => {
    const { Passage } = await import("/static/annotate/text.js");
    const item = { words: Array.from({ length: words }, (_, at) => [2 * at, 2 * at + 1]), text: "a ".repeat(words) };
    const passage = new Passage(item.text, item.words);
    const kind = kindOf(task);
    return values.map((value) => {
        const state = kind.read(value, task, item);
        return [kind.missing(state, task, item, passage), kind.value(state, task, item)];
    });
}"""


def test_the_page_finds_a_tree_complete_just_when_the_task_does(modules):
    task = Parsing("tree", ("root", "det"))
    draw = np.random.default_rng(3)
    for words in (1, 2, 3, 4, 5):
        heads = draw.integers(0, words + 1, (150, words))
        heads = [row for row in heads.tolist() if all(head != at for at, head in enumerate(row, start=1))]
        values = [[[head, "det"] for head in row] for row in heads]
        found = modules(
            "kinds", MISSING, {"task": {"kind": "parsing", "labels": ["root", "det"]}, "words": words, "values": values}
        )
        assert [missing == "" for missing, _ in found] == [accepts(task, value, words) for value in values]
        assert [value for _, value in found] == values


def accepts(task, value, words):
    try:
        task.encode(value, words)
    except LabelError:
        return False
    return True


@pytest.mark.parametrize(
    ("task", "values"),
    [
        (Classification("a", ("x", "y")), ["x", "y"]),
        (Tagging("a", ("x", "y")), [[], [[0, 1, "x"]], [[0, 3, "y"], [3, 4, "x"]]]),
        (Tagging("a", ("x", "y"), every_word=True), [["x", "y", "x", "x"]]),
        (Relations("a", ("r",), entity_types=("x", "y")), [[], [[[0, 1, "x"], [2, 4, "y"], "r"]]]),
        (Regression("a", low=-1, high=1), [0, -1, 0.125]),
    ],
)
def test_every_label_of_a_task_is_read_shown_and_sent_as_it_was(modules, task, values):
    found = modules("kinds", MISSING, {"task": {"name": "a"} | task.describe(), "words": 4, "values": values})
    assert found == [["", value] for value in values]
    assert all(accepts(task, value, 4) for value in values)


DRAFT = """({ makeDraft, edit, undo, redo }, steps) => {
    let draft = makeDraft({ item: "u", tasks: ["a", "b"], states: { a: null, b: null }, key: "k" });
    return steps.map(([what, ...rest]) => {
        draft = { edit, undo, redo }[what](draft, ...rest);
        return [draft.states.a, draft.states.b];
    });
}"""


def test_every_edit_is_undone_and_done_again_in_order(modules):
    draw = np.random.default_rng(5)
    steps = [
        ["edit", "ab"[draw.integers(2)], int(draw.integers(3))]
        if draw.random() < 0.5
        else [["undo", "redo"][draw.integers(2)]]
        for _ in range(300)
    ]
    found = modules("draft", DRAFT, steps)
    past, future, state, expected = [], [], (None, None), []
    for what, *rest in steps:
        if what == "edit":
            after = (rest[1], state[1]) if rest[0] == "a" else (state[0], rest[1])
            if after != state:
                past, future, state = [*past, state], [], after
        elif what == "undo" and past:
            past, future, state = past[:-1], [state, *future], past[-1]
        elif what == "redo" and future:
            past, future, state = [*past, state], future[1:], future[0]
        expected.append(list(state))
    assert found == expected


def test_offsets_in_code_points_become_places_in_a_string(modules):
    for text in (STRANGE, SENTENCE, "", "👩‍👩‍👧‍👦", "a👍b"):
        words = find_words(text)
        slices = "({ Passage }, [text, words]) => words.map((_, at) => new Passage(text, words).word(at))"
        assert modules("text", slices, [text, words]) == [text[start:end] for start, end in words]


# -- the real thing, killed ------------------------------------------------------------------------------------------
@pytest.mark.soak
def test_a_server_that_is_killed_again_and_again_has_every_answer_once(tmp_path, hand):
    items = [{"text": f"item {number}"} for number in range(60)]
    folder = write_project(tmp_path / "project", {"intent": KINDS["intent"]}, items)
    served = Killable(folder)
    page = hand(served).ready()
    said = []
    for number in range(24):
        page.until(lambda: page.count("#bench:not([hidden])"))
        text = page.text("#stage")
        page.press(str(1 + number % 3), "Enter")
        if number % 4 == 3:  # in the middle of sending, most likely
            served.kill()
            served.start()
        page.until(lambda text=text: page.count("#bench:not([hidden])") == 0 or page.text("#stage") != text)
        said.append((text, ["alarm", "music", "table"][number % 3]))
    page.until(lambda: page.kept("/outbox/") == 0)
    answers = [(answer["text"], answer["labels"]["intent"]) for answer in served.answers()]
    assert sorted(answers) == sorted(said)
    assert served.get("/api/state")["answered"] == len(said)
    served.kill()
