"""The page in a real browser: it draws, stays within the screen, answers its reader and calls nobody."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from bursar.report import render
from tests.report.results import KINDS, make_corpus, make_reliability, make_result
from tests.report.test_page import BETTER, HOSTILE
from tests.report.test_stopping import advised

pytestmark = pytest.mark.browser

LONG = ("x" * 500, "https://example.org/" + "path/" * 90, "أيقظني في السابعة " * 40)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOUR = "getComputedStyle(document.querySelector('[data-chart] .plot .line')).stroke"
WIDTH = "document.querySelector('.plot svg').getBoundingClientRect().width"


@pytest.fixture(scope="module")
def show(browser, tmp_path_factory):
    """Opens a page; what went wrong in it, and what it asked the network for, is kept."""
    folder, opened = tmp_path_factory.mktemp("pages"), []

    def open_page(html: str, width: int = 1280) -> SimpleNamespace:
        path = folder / f"{len(opened)}.html"
        path.write_text(html, encoding="utf-8")
        tab = browser.new_page(viewport={"width": width, "height": 844}, color_scheme="light")
        found = SimpleNamespace(tab=tab, errors=[], requests=[])
        tab.on("console", lambda message: found.errors.append(message.text))
        tab.on("pageerror", lambda error: found.errors.append(str(error)))
        tab.on("request", lambda request: found.requests.append(request.url))
        tab.goto(path.as_uri())
        opened.append(tab)
        return found

    yield open_page
    for tab in opened:
        tab.close()


def until(tab, holds: str) -> bool:
    """Ask until it is true: the page's own policy forbids the browser's way of waiting."""
    for _ in range(50):
        if tab.evaluate(holds):
            return True
        tab.wait_for_timeout(100)
    return False


@pytest.fixture(scope="module")
def hostile(show):
    return show(render(make_result(BETTER, audit=5), make_corpus(texts=HOSTILE)))


def test_every_chart_is_drawn_without_an_error_and_nothing_leaves_the_page(hostile):
    places = hostile.tab.locator(".plot").count()
    assert places == 3 + 1 + 2
    assert until(hostile.tab, f"document.querySelectorAll('.plot > svg').length === {places}")
    assert hostile.errors == []
    assert [url for url in hostile.requests if not url.startswith("file:")] == []
    assert len(hostile.requests) == 1


def test_a_hostile_text_is_read_and_not_run(hostile):
    assert hostile.tab.evaluate("window.hacked") is None
    assert hostile.tab.locator("img").count() == 0
    assert "</script><!-- <img src=x onerror=hacked=1>" in hostile.tab.locator(".item .text").first.inner_text()


def test_choosing_a_round_changes_the_items_and_the_histograms(hostile):
    tab = hostile.tab
    bars = '[...document.querySelectorAll("[data-histogram] .bar")].map((bar) => bar.getAttribute("x")).join()'
    before = tab.evaluate(bars)
    assert tab.locator(".columns:visible").get_attribute("data-round") == "2"
    tab.locator("#items-round").select_option("0")
    assert tab.locator(".columns:visible").get_attribute("data-round") == "0"
    assert tab.locator("#confidence-round").input_value() == "0"
    assert until(tab, f"{bars} && {bars} !== '{before}'")
    assert "40 items" in tab.locator("[data-histogram] .plot").first.get_attribute("aria-label")
    tab.locator("#confidence-round").select_option("2")
    assert until(tab, f"{bars} === '{before}'")


def test_a_reliability_diagram_is_drawn_with_a_point_a_bin_and_says_what_it_shows(show):
    record = make_reliability((40, 0.3, 0.5), (0, 0, 0), (60, 0.9, 0.7))
    tab = show(render(make_result(BETTER, reliability={"intent": record, "slots": record}), make_corpus())).tab
    assert tab.locator("[data-chart^=reliability]").count() == 2
    diagram = tab.locator("[data-chart=reliability-0] .plot")
    assert (diagram.locator(".dot").count(), diagram.locator(".bar").count()) == (2, 2)
    assert "Confidence 0.30, accuracy 0.50: 40 items" in diagram.get_attribute("aria-label")


def test_the_next_rounds_are_drawn_with_their_band_and_said_in_words(show):
    found = show(render(advised((0.3, 0.45, 0.55, 0.62, 0.68)), make_corpus()))
    scores, agreement = (found.tab.locator(f"[data-chart=stopping-{k}] .plot") for k in range(2))
    assert scores.locator(".band").count() == 1
    assert scores.locator(".dot").count() == 5
    assert agreement.locator(".dot").count() == 2 * 4  # of two tasks
    assert "in two rounds" in scores.get_attribute("aria-label")
    assert found.errors == []


def test_a_point_is_read_with_the_keyboard_and_with_the_mouse(show):
    tab = show(render(make_result(BETTER), make_corpus())).tab
    plot = tab.locator("[data-chart=curve-0] .plot")
    plot.focus()
    tab.keyboard.press("ArrowRight")
    assert plot.locator(".readout").inner_text().replace("\u202f", " ").startswith("MT-AVG: 40.0 % at 100 units")
    tab.keyboard.press("Escape")
    assert plot.locator(".readout").is_hidden()
    tab.locator("[data-chart=spending] .bar").first.hover()
    assert "40 units for reading" in tab.locator("[data-chart=spending] .readout").inner_text()


@pytest.mark.parametrize("scores", [(0.8, 0.8, 0.8, 0.8), (0.4, 0.41, 0.8, 0.81), (0.2, 0.2, 0.9, 0.9)])
def test_names_at_the_ends_of_lines_never_overlap_and_stay_within_the_chart(show, scores):
    arms = {arm: (0.3, score) for arm, score in zip(("MT-AVG", "RANDOM", "MT-MIN", "MT-MAX"), scores, strict=True)}
    tab = show(render(make_result(arms, money=(100, 200)), make_corpus())).tab
    names = tab.locator("[data-chart=curve-0] .plot .name")
    places = sorted(names.evaluate_all("all => all.map((one) => Number(one.getAttribute('y')))"))
    assert len(places) == 4
    assert all(below - above >= 15.9 for above, below in pairwise(places))
    assert 0 < places[0] < places[-1] < 250


def test_charts_follow_the_theme(hostile):
    light = hostile.tab.evaluate(COLOUR)
    hostile.tab.emulate_media(color_scheme="dark")
    assert until(hostile.tab, f"{COLOUR} !== '{light}'")
    hostile.tab.emulate_media(color_scheme="light")
    assert until(hostile.tab, f"{COLOUR} === '{light}'")


def test_charts_fit_the_paper_and_come_back(hostile):
    wide = hostile.tab.evaluate(WIDTH)
    hostile.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert hostile.tab.evaluate(WIDTH) < 690
    assert hostile.tab.locator("details:not([open])").count() == 0
    hostile.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert until(hostile.tab, f"Math.abs({WIDTH} - {wide}) < 2")
    assert hostile.tab.locator("details[open]").count() == 0


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(lambda: render(make_result(BETTER), make_corpus(texts=LONG)), id="long texts"),
        pytest.param(
            lambda: render(
                make_result(
                    BETTER,
                    tasks=tuple(KINDS),
                    config={"costs": {"unit": 0.01, "currency": "USD "}},
                    reliability=dict.fromkeys(KINDS, make_reliability((40, 0.3, 0.5), (60, 0.9, 0.7))),
                ),
                make_corpus(tuple(KINDS)),
            ),
            id="five tasks",
        ),
    ],
)
def test_neither_phone_nor_tablet_nor_paper_is_too_narrow(show, page):
    found = show(page(), width=390)
    found.tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert found.tab.evaluate(OVERFLOW) <= 0
    found.tab.set_viewport_size({"width": 820, "height": 900})
    assert until(found.tab, f"{OVERFLOW} <= 0")  # charts are resized a moment later
    found.tab.emulate_media(media="print")
    found.tab.set_viewport_size({"width": 690, "height": 900})
    found.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert found.tab.evaluate(OVERFLOW) <= 0
    assert found.errors == []
