"""Shared fixtures of the annotation page tests: served projects, and tabs of a real browser."""

from __future__ import annotations

import pytest

from tests.web.annotate.samples import KINDS, SENTENCE
from tests.web.annotating import Hand, Served, write_project


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


@pytest.fixture(scope="module")
def modules(browser, project):
    """The page's modules, to call their functions."""
    context = browser.new_context()
    yield Hand(context.new_page()).opens(project({"intent": KINDS["intent"]}, SENTENCE).url).module
    context.close()
