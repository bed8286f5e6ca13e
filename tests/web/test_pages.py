"""The people and review pages in a real browser."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bursar.ledger import Answer
from bursar.web.queue import Overlap
from tests.web.annotating import Served
from tests.web.conftest import PASSWORD
from tests.web.small import HOSTILE, make_project, right

pytestmark = pytest.mark.browser

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
NOISE = ("autocomplete attributes", "Password forms")  # advice of Chromium's on forms


@pytest.fixture
def served(tmp_path):
    """A project that asks about the hostile item first."""
    server = Served(make_project(tmp_path / "project", items=8))
    yield server
    server.stop()


@pytest.fixture
def tab_of(browser):
    """Tabs, each with cookies of its own; what goes wrong in them is kept."""
    opened = []

    def open_tab(width=1280):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light")
        tab = context.new_page()
        tab.set_default_timeout(60_000)
        found = SimpleNamespace(tab=tab, errors=[])
        tab.on("console", lambda message: found.errors.append(message.text))
        tab.on("pageerror", lambda error: found.errors.append(str(error)))
        opened.append(context)
        return found

    yield open_tab
    for context in opened:
        context.close()


def complaints(found):
    return [error for error in found.errors if not any(noise in error for noise in NOISE)]


def sign_in(tab, name, password=PASSWORD):
    tab.fill("[name=name]", name)
    tab.fill("[name=password]", password)
    tab.click("button[type=submit]")


def differ(served):
    """Bob and Eve answer all items; about the hostile one they differ."""
    app_state = served.app_state
    for name, role in (("Anna", "lead"), ("Bob", "annotator"), ("Eve", "annotator")):
        app_state.accounts.add(name, role, PASSWORD)
    app_state.queue.set_overlap(Overlap(1.0, 2))
    for want in app_state.session.wanted():
        for name in ("Bob", "Eve"):
            labels = right(want.id)
            if name == "Eve" and want.id == "u0":
                labels = {"intent": "alarm", "slots": [[0, 1, "time"]]}
            app_state.assignments.answer(Answer(want.id, labels, name))


def test_the_first_page_of_a_new_project_leads_on_to_its_first_item(served, tab_of):
    found = tab_of()
    tab = found.tab
    tab.goto(served.url)
    tab.wait_for_url("**/start")
    assert tab.locator("h1").inner_text() == "Small project"
    assert tab.locator(".schemes h3").all_inner_texts() == ["intent", "slots"]
    tab.get_by_role("link", name="Annotate", exact=True).last.click()
    tab.locator("#workspace .task.active").wait_for()
    tab.keyboard.press("1")
    tab.keyboard.press("n")
    tab.keyboard.press("Enter")
    tab.locator("#progress", has_text="1 of 8 answered, 1 by you").wait_for()
    tab.goto(served.url)  # whoever has begun goes on
    tab.wait_for_url("**/annotate")
    assert complaints(found) == []


def test_from_being_alone_to_being_several(served, tab_of):
    found = tab_of()
    tab = found.tab
    tab.goto(f"{served.url}/people")
    tab.fill("#new-person [name=name]", "Anna")
    tab.fill("#new-person [name=password]", PASSWORD)
    tab.click("#new-person button")
    tab.wait_for_url("**/login?next=/people")
    sign_in(tab, "Anna", "wrong password")
    tab.locator("#wrong").wait_for()
    assert tab.locator("#wrong").inner_text() == "Wrong name or password."
    sign_in(tab, "anna")
    tab.wait_for_url("**/people")
    tab.locator("#rows tr").wait_for()
    tab.fill("#new-person [name=name]", "Bob")
    tab.fill("#new-person [name=password]", PASSWORD)
    tab.click("#new-person button")
    tab.locator("#rows tr").nth(1).wait_for()
    assert [row.split("\n")[0].split("\t")[0] for row in tab.locator("#rows tr").all_inner_texts()] == [
        "Anna (you)",
        "Bob",
    ]
    tab.click("#new-token button")
    tab.locator("#ask[open]").wait_for()
    secret = tab.locator("#ask-secret").inner_text()
    assert served.app_state.accounts.by_token(secret).name == "Anna"
    tab.click("#ask-yes")
    tab.locator("#token-rows tr").wait_for()
    assert secret not in tab.content()
    tab.locator("#rows tr").nth(1).get_by_role("button", name="Remove").click()
    tab.click("#ask-yes")
    tab.locator("#notice", has_text="Account of Bob removed.").wait_for()
    assert [person.name for person in served.app_state.accounts.people()] == ["Anna"]
    tab.click("#sign-out")
    tab.wait_for_url("**/login")
    assert [error for error in complaints(found) if "401" not in error] == []


def test_a_link_to_elsewhere_is_not_followed_after_signing_in(served, tab_of):
    served.app_state.accounts.add("Anna", "lead", PASSWORD)
    tab = tab_of().tab
    for elsewhere in ("https://evil.example/", "//evil.example/", "/\\\\evil.example/", "javascript:alert(1)"):
        tab.context.clear_cookies()
        tab.goto(f"{served.url}/login?next={elsewhere}")
        sign_in(tab, "Anna")
        tab.wait_for_url(lambda url: "/login" not in url)
        assert tab.url.startswith(served.url)


def test_where_people_differ_a_lead_decides_and_no_text_is_run(served, tab_of):
    differ(served)
    found = tab_of()
    tab = found.tab
    tab.goto(f"{served.url}/review")
    sign_in(tab, "Anna")
    tab.locator(".case").wait_for()
    assert tab.locator(".case").count() == 1
    assert tab.locator(".case .text").inner_text() == HOSTILE
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("main img").count() == 0
    assert tab.locator("#agreement-rows tr").first.locator("td").first.inner_text() == "88 %"
    stands = tab.get_by_role("button", name="Use these labels")
    assert stands.is_disabled()
    for task in tab.locator(".case .task").all():
        task.locator(".choice", has_text="Bob").click()
    assert stands.is_enabled()
    stands.click()
    tab.locator("#no-cases").wait_for()
    assert served.app_state.assignments.index.adjudicated("u0").labels == right("u0")
    tab.check("#all")
    tab.locator(".case").nth(7).wait_for()
    assert complaints(found) == []


def test_a_skip_reaches_the_lead_with_its_reason_and_is_asked_about_again(served, tab_of):
    for name, role in (("Anna", "lead"), ("Bob", "annotator")):
        served.app_state.accounts.add(name, role, PASSWORD)
    bob, anna = tab_of(), tab_of(390)
    bob.tab.goto(f"{served.url}/annotate")
    sign_in(bob.tab, "Bob")
    bob.tab.locator(".task.active").wait_for()
    text = bob.tab.locator("#stage").inner_text()
    bob.tab.keyboard.press("s")
    bob.tab.locator(".reason", has_text="None of the labels").click()
    bob.tab.fill("dialog textarea", "is it <b>a song</b>?")
    bob.tab.get_by_role("button", name="Skip this item").click()
    bob.tab.locator("#progress", has_text="1 skipped").wait_for()
    anna.tab.goto(f"{served.url}/review")
    sign_in(anna.tab, "Anna")
    card = anna.tab.locator(".skip")
    card.wait_for()
    assert card.locator(".text").inner_text() == text
    assert card.locator(".person").inner_text() == "Bob"
    assert card.locator("q").inner_text() == "None of the labels fits: is it <b>a song</b>?"
    assert anna.tab.evaluate(OVERFLOW) <= 0
    card.get_by_role("button", name="Undo skip").click()
    anna.tab.locator("#notice", has_text="is open again").wait_for()
    anna.tab.locator("#no-skips").wait_for()
    assert served.app_state.session.state().skipped == 0
    anna.tab.check("#all-skips")
    anna.tab.locator(".skip", has_text="undone by Anna").wait_for()
    anna.tab.goto(f"{served.url}/annotate")  # an item that nobody has comes in its old place: first
    anna.tab.locator(".task.active").wait_for()
    assert anna.tab.locator("#stage").inner_text() == text
    assert complaints(bob) == complaints(anna) == []


def test_the_share_of_overlap_is_set(served, tab_of):
    tab = tab_of().tab
    tab.goto(f"{served.url}/review")
    tab.locator("#overlap-words", has_text="one person").wait_for()
    tab.fill("#overlap [name=share]", "25")
    tab.fill("#overlap [name=people]", "3")
    tab.click("#overlap button")
    tab.locator("#overlap-words", has_text="25 %").wait_for()
    assert served.app_state.queue.overlap == Overlap(0.25, 3)


def test_no_page_is_wider_than_the_screen_or_complains(served, tab_of):
    for width in (390, 820, 1280):
        found = tab_of(width)
        for path in ("start", "people", "review", "files", "watch", "decide", "api/docs", "nothing"):
            found.tab.goto(f"{served.url}/{path}")
            found.tab.wait_for_load_state("networkidle" if path in ("people", "review", "files") else "load")
            assert found.tab.evaluate(OVERFLOW) <= 0, (path, width)
        assert [error for error in complaints(found) if "404" not in error] == []


def test_the_colours_are_chosen_and_stay(served, tab_of):
    tab = tab_of().tab
    tab.goto(f"{served.url}/start")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(colour)
    tab.click("#theme")  # light, as it is
    assert tab.evaluate(colour) == light
    tab.click("#theme")
    dark = tab.evaluate(colour)
    assert dark != light
    tab.reload()
    assert tab.evaluate(colour) == dark
    tab.click("#theme")  # as the machine has it
    tab.emulate_media(color_scheme="dark")
    assert tab.evaluate(colour) == dark


def test_the_report_runs_in_its_box(served, tab_of):
    found = tab_of()
    found.tab.goto(f"{served.url}/report")
    found.tab.locator("h1", has_text="Small project").wait_for()
    assert found.tab.evaluate("self.origin") == "null"
