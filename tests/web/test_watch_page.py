"""The watch page in a real browser: results and live updates."""

from __future__ import annotations

import json
import re
import shutil
import sys
from contextlib import suppress

import pytest

from bursar.ledger import Answer
from bursar.web.jobs import ADVICE_FILE
from tests.web.annotating import Hand, Served, write_project
from tests.web.small import make_project, right

pytestmark = pytest.mark.browser

AUDITED = {"audit": {"share": 0.3, "shadow": True}, "budget": {"seed_items": 10, "per_round": 1.5, "rounds": 4}}
KIND = {"kind": "classification", "labels": ["a", "b"]}
BAYES = {"name": "scikit", "estimator": "naive-bayes"}
HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>"
DRAWN = "#oracle [data-part]:not([aria-busy])"
SLOW = "import sys, time\n{}\nsys.stdin.read()"
STAGE = 'print(\'{{"event": "stage", "round": 0, "what": "{}", "done": {}}}\', flush=True)'


class Watcher(Hand):
    """A lead before the watch page."""

    def opens(self, url):
        self.tab.goto(f"{url}/watch")
        return self.sees(DRAWN)

    def overflow(self):
        """By how many pixels the page is wider than the screen."""
        return self.tab.evaluate("document.documentElement.scrollWidth - innerWidth")

    def table(self, part, title):
        """The numbers behind a chart, as rows of text."""
        self.tab.locator(f"#{part} summary", has_text=title).click()
        rows = self.tab.locator(f"#{part} details[open] tbody tr").all()
        return [row.locator("td").all_inner_texts() for row in rows]


class Live(Served):
    """A project whose trainings are processes of the test's choice, as the server starts them."""

    def answer(self, most=None):
        for want in self.app_state.session.wanted()[:most]:
            labels = {task: right(want.id)[task] for task in want.tasks}
            self.app_state.assignments.answer(Answer(want.id, labels, "Eve"))
        self.app_state.changed()

    def trains_by(self, script):
        """Let the trainer run a script instead of training, from now on."""
        from bursar.web.training import Trainer

        self.app_state.trainer._command = [sys.executable, "-c", script]
        self.app_state.trainer.start = lambda: Trainer.start(self.app_state.trainer)
        self.app_state.trainer.start()

    def stop(self):
        self.app_state.trainer.stop()
        super().stop()


def rounds_of(served, rounds):
    """Answer and train so many rounds."""
    for _ in range(rounds):
        served.answer()
        served.train()
    return served


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The folder of a project after three rounds; tests copy it."""
    folder = tmp_path_factory.mktemp("learned") / "project"
    served = Live(make_project(folder, items=120, **AUDITED))
    rounds_of(served, 3)
    served.stop()
    return folder


@pytest.fixture
def serve(tmp_path):
    served = []

    def of(folder=None, **changes):
        place = tmp_path / f"project-{len(served)}"
        if folder is None:
            make_project(place, **changes)
        else:
            shutil.copytree(folder, place)
        served.append(Live(place))
        return served[-1]

    yield of
    for one in served:
        with suppress(Exception):
            one.stop()


@pytest.fixture
def watch(browser):
    """Opens the page; whatever the console complains of is a failure."""
    opened = []

    def of(served, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        opened.append((context, Watcher(context.new_page())))
        return opened[-1][1].opens(served.url)

    yield of
    for context, page in opened:
        assert [error for error in page.errors if not any(part in error for part in page.expected)] == []
        context.close()


# -- what came of it -------------------------------------------------------------------------------------------------
def test_curves_and_tiles_say_what_the_audit_slices_say(serve, watch, learned):
    served = serve(learned)
    page = watch(served)
    result = served.app_state.result()
    slices = result.main.audit
    assert page.count("#curves .plot svg") == 3  # all tasks, and each
    assert page.count("#curves figure:first-of-type .dot") > 0
    newest = slices[-1].scores
    mean = sum(score.score for score in newest.values()) / len(newest)
    assert page.texts("#tiles .value")[2].replace("\u202f", " ") == f"{100 * mean:.1f} %"
    assert "Round 3 of 4 is being annotated" in page.text("#headline")
    assert page.texts("#tiles dt") == ["Answered", "Spent", "Score", "Cost against random"]
    rows = page.table("curves", "Audit slices")
    assert [row[2] for row in rows] == [str(part.items) for part in slices]


def test_the_table_behind_the_bars_has_the_ledgers_numbers(serve, watch, learned):
    served = serve(learned)
    lines = served.app_state.session.ledger.spending()
    rows = watch(served).table("spending", "All charges")
    assert sorted(row[-1] for row in rows) == sorted(f"€{line.actual / 100:.2f}" for line in lines)
    assert len(rows) == len(lines) > 8


def test_a_point_is_read_with_the_keyboard_and_with_the_mouse(serve, watch, learned):
    page = watch(serve(learned))
    plot = page.tab.locator("#curves .plot").nth(1)
    plot.focus()
    page.press("ArrowRight")
    first = page.text("#curves .readout:not([hidden])")
    assert re.match(r"Audit slice: [\d.]+\s%.* at €[\d.]+, on \d+ items", first)
    page.press("ArrowRight")
    assert page.text("#curves .readout:not([hidden])") != first
    page.press("Escape")
    assert page.count("#curves .readout:not([hidden])") == 0
    bar = page.tab.locator("#spending .bar").first
    bar.scroll_into_view_if_needed()
    bar.hover()
    page.sees("#spending .readout", "for reading")


def test_words_that_look_like_markup_stay_text(tmp_path, serve, watch):
    """Names of tasks and what a training complains of are others' words."""
    tasks = {HOSTILE: KIND, "other": KIND}
    place = write_project(tmp_path / "hostile", tasks, [{"text": f"text {k}"} for k in range(8)], learner=BAYES)
    served = serve(place)
    for want in served.app_state.session.wanted():
        labels = dict.fromkeys(want.tasks, "a" if int(want.id[1:]) % 2 else "b")
        served.app_state.assignments.answer(Answer(want.id, labels, "Eve"))
    served.app_state.trainer.failure = HOSTILE
    page = watch(served)
    assert HOSTILE in page.text("#lead")
    assert HOSTILE.lower() in page.text("#spending").lower()
    assert page.tab.evaluate("window.hacked") is None
    assert page.count("main img, main script") == 0


# -- empty states ----------------------------------------------------------------------------------------------------
def test_a_new_project_says_what_to_do_and_leads_there(serve, watch):
    page = watch(serve())
    assert page.text("#headline") == "The seed items are being annotated"
    assert page.count(".empty") == 7
    assert "Answer the seed items under Annotate" in page.text("#curves")
    assert page.tab.locator("#train").is_hidden()
    page.click("#live-annotate")
    page.tab.wait_for_url("**/annotate")


def test_an_ended_campaign_offers_no_training(serve, watch):
    served = rounds_of(serve(budget={"rounds": 1}), 2)
    page = watch(served)
    assert page.text("#headline") == "The campaign has ended"
    assert page.tab.locator("#live").is_hidden()
    assert "There is no next round: all rounds are done" in page.text("#next")
    assert "bursar oracle" in page.text("#oracle")


# -- training --------------------------------------------------------------------------------------------------------
def test_progress_moves_while_a_round_trains_and_people_go_on_annotating(serve, watch):
    served = serve(budget={"seed_items": 8, "per_round": 0.8, "rounds": 2, "ahead": 0.5})
    steps = [STAGE.format("training", done) + "\nsys.stdin.readline()" for done in (0.25, 0.75)]
    served.trains_by(SLOW.format("\n".join(steps)))
    page = watch(served)
    served.answer(4)
    page.sees("#live-what", "training, 25 %")
    assert page.tab.locator("#live-bar").evaluate("bar => bar.value") == 0.25
    page.sees("#live-words", "4 items are open").sees("#headline", "The model is being trained on the seed items")
    served.answer(1)  # while the round is being trained
    page.sees("#live-words", "3 items are open")
    page.until(lambda: page.texts("#tiles .value")[0] == "5 of 8")
    pipe = served.app_state.trainer._process._process.stdin
    pipe.write("\n")
    pipe.flush()
    page.sees("#live-what", "training, 75 %")
    later = watch(served)  # whoever comes later is told how far it is
    later.sees("#live-what", "training, 75 %")


def test_training_now_asks_when_items_are_open_and_then_trains_without_them(serve, watch):
    served = serve()
    served.answer(6)
    served.trains_by(SLOW.format(STAGE.format("training", 0.5)))
    page = watch(served)
    page.sees("#live-words", "2 items left to answer")
    page.click("#train").sees("#ask-words", "2 items are not answered yet")
    page.press("Escape")  # to leave it leaves it
    assert served.app_state.state().open == 2
    page.click("#train").click("#ask-yes")
    page.sees("#live-what", "training, 50 %")
    assert served.app_state.state().open == 0
    page.sees("#headline", "The model is being trained on the seed items")


def test_a_training_that_fails_says_why_and_can_be_tried_again(serve, watch):
    served = serve()
    failure = '{"event": "failed", "error": "the disk is full", "fix": "make room"}'
    served.trains_by(f"import sys; print({failure!r}); sys.exit(2)")
    page = watch(served)
    served.answer()
    page.sees("#lead", "The disk is full. Fix: make room. No answers are lost")
    served.app_state.trainer._command = [sys.executable, "-c", SLOW.format(STAGE.format("training", 0.5))]
    assert page.text("#train") == "Try again"
    page.click("#train").sees("#live-what", "training, 50 %")


def test_a_round_that_was_trained_appears_without_loading_the_page_anew(serve, watch):
    served = serve()
    page = watch(served)
    page.tab.evaluate("window.same = true")
    served.answer()
    page.until(lambda: page.texts("#tiles .value")[0] == "8 of 8")
    served.train()
    page.sees("#headline", "Round 1 of 2 is being annotated")
    page.until(lambda: page.count("#trust .plot svg") == 2)
    assert page.tab.evaluate("window.same") is True


# -- the next round --------------------------------------------------------------------------------------------------
def test_the_next_round_is_shown_with_items_money_and_what_the_model_is_unsure_of(serve, watch, learned):
    served = serve(learned)
    page = watch(served).click("#next button").sees("#next .shares")
    titles = page.texts("#next .tile dt")
    values = dict(zip(titles, page.texts("#next .tile .value"), strict=True))
    found = served.app_state.session.preview({})["now"]
    assert values["Items of round 4"] == str(found["items"])
    assert values["Labels"] == str(sum(found["labels"].values()))
    assert values["Cost"] == f"€{found['cost'] / 100:.2f}"
    assert "Predicted gain" in titles
    assert [row.split()[0] for row in page.texts("#next .shares .value")] == [str(n) for n in found["labels"].values()]


def test_what_was_found_of_the_next_round_stays_while_others_annotate(serve, watch, learned):
    served = serve(learned)
    page = watch(served).click("#next button").sees("#next .shares")
    served.answer(1)
    page.sees("#next .note", "").until(lambda: "Preview again" in page.text("#next"))
    page.until(lambda: page.texts("#tiles .value")[0].startswith("1 of"))
    assert page.count("#next .shares") == 1


# -- splitting -------------------------------------------------------------------------------------------------------
def advice_script(served):
    """A child that tells a stage, waits for a word, and then tells a split as the real one does."""
    informs = {"tasks": ["intent", "slots"], "value": [[1, 0.4], [0.1, 1]], "error": [[0, 0.1], [0.05, 0]]}
    gain = {"gain": "12", "between": "9 to 14", "low": 9, "middle": 12, "high": 14}
    found = {
        "budget": "€2.00",
        "shares": [
            {"task": "intent", "money": "€1.50", "share": 0.75, "note": "75 %, 50 labels"},
            {"task": "slots", "money": "€0.50", "share": 0.25, "note": "25 %, 12 labels"},
        ],
        "gains": [gain | {"task": "intent"}, gain | {"task": "slots"}],
        "whole": "24 labels’ worth",
        "reasons": ["A label of intent advances slots by 0.40."],
        "informs": informs,
        "tables": [{"title": "Split", "columns": ["Task"], "rows": [["intent"], ["slots"]]}],
    }
    last = json.dumps({"event": "advice", "found": found})
    stage = STAGE.format("who informs whom", 0.6)
    served.app_state.advising._command = lambda folder, money: [
        sys.executable,
        "-c",
        "import select, sys\n"
        f"while not select.select([sys.stdin], [], [], 0.6)[0]:\n    {stage}\n"  # as the real one: again and again
        f"sys.stdin.readline()\nprint({last!r}, flush=True)",
    ]


def test_asking_for_a_split_shows_progress_then_the_split_and_keeps_it_over_a_restart(serve, watch, learned):
    served = serve(learned)
    advice_script(served)
    page = watch(served)
    page.tab.fill("#split input", "2")
    page.click("#split form button").sees("#split .busy", "Measuring who informs whom: 15 %")
    assert page.tab.locator("#split form button").is_disabled()
    served.answer(1)  # what somebody else does leaves the question and its amount alone
    page.until(lambda: page.texts("#tiles .value")[0].startswith("1 of"))
    assert page.tab.input_value("#split input") == "2"
    pipe = served.app_state.advising._process._process.stdin
    pipe.write("\n")
    pipe.flush()
    page.sees("#split .heat")
    assert page.texts("#split .shares .value") == ["€1.50", "€0.50"]
    assert page.texts("#split .reasons li") == ["A label of intent advances slots by 0.40."]
    assert page.table("split", "Split") == [["intent"], ["slots"]]
    assert (served.folder / ADVICE_FILE).exists()
    served.stop()
    page.sees("#line", "Connection lost")
    served.start()
    page.until(lambda: page.text("#line") == "")
    later = watch(served).sees("#split .heat")
    assert later.texts("#split .shares .value") == ["€1.50", "€0.50"]
    assert "was spent. Get new advice." in later.text("#split")


def test_a_split_that_cannot_be_told_says_why(serve, watch, learned):
    served = serve(learned)
    failure = '{"event": "failed", "error": "too few labels of slots", "fix": "annotate more"}'
    served.app_state.advising._command = lambda *_: [
        sys.executable,
        "-c",
        f"import sys; print({failure!r}); sys.exit(2)",
    ]
    page = watch(served).click("#split form button")
    page.sees("#split .notice.wrong", "Too few labels of slots. Annotate more.")
    assert page.tab.locator("#split form button").is_enabled()


# -- the line --------------------------------------------------------------------------------------------------------
def test_a_line_that_is_lost_is_found_again_and_the_page_catches_up(serve, watch):
    served = serve()
    page = watch(served)
    served.stop()
    page.sees("#line", "Connection lost. Reconnecting")
    served.start()
    served.answer(3)
    page.until(lambda: page.text("#line") == "")
    page.until(lambda: page.texts("#tiles .value")[0] == "3 of 8")


def test_an_open_table_and_the_focus_stay_when_numbers_change(serve, watch, learned):
    served = serve(learned)
    page = watch(served)
    before = page.table("spending", "All charges")
    page.tab.locator("#spending .plot").focus()
    served.answer(2)
    rows = page.tab.locator("#spending details[open] tbody tr")
    page.until(lambda: rows.count() > len(before))
    assert page.tab.evaluate("document.activeElement.className") == "plot"


# -- looks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [1280, 820, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_and_no_word_is_cut_off(serve, watch, learned, width, scheme):
    page = watch(serve(learned), viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.click("#next button").sees("#next .shares")
    assert page.overflow() <= 0
    cut = page.tab.evaluate(
        """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
            const frame = plot.getBoundingClientRect();
            return [...plot.querySelectorAll("text")].filter((text) => {
                const box = text.getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 8 || box.bottom > frame.bottom + 1;
            }).map((text) => text.textContent);
        })"""
    )
    assert cut == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper(serve, watch, learned, scheme):
    page = watch(serve(learned), color_scheme=scheme)
    ratios = page.tab.evaluate(
        """() => {
            const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number)
                .map((part) => (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
                .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
            const paper = light(getComputedStyle(document.body).backgroundColor);
            const between = (one, two) => (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
            const against = (colour) => between(light(colour), paper);
            return [...document.querySelectorAll(".plot text, .intro, .aside, .tile .note, .verdict")]
                .map((node) => against(getComputedStyle(node)[node instanceof SVGElement ? "fill" : "color"]));
        }"""
    )
    assert len(ratios) > 30
    assert min(ratios) >= 4.5
