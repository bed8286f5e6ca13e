"""A whole campaign on the built-in corpus: `bursar serve`, a browser, keyboard input, and background training."""

from __future__ import annotations

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.campaign import Run, run_campaign
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundPrices, RoundRecord
from bursar.cli.runs import demo_config
from tests.web.annotating import Hand, Killable, Served

pytestmark = pytest.mark.browser

TASKS = ("intent", "slots")
ROUNDS = 3
HOURLY = 36.0  # a cent a second
PRICES = {"reading": {"per_word": 0.01}, "intent": {"per_item": 0.05}, "slots": {"per_span": 0.05}}
QUICK = {"name": "scikit", "estimator": "naive-bayes"}
SMALL = {"items": 400, "pool_items": 120, "dev_items": 20, "test_items": 60}


class Annotator:
    """Somebody who knows what is right, and has a keyboard."""

    def __init__(self, page, corpus):
        self.page, self.corpus = page, corpus
        self.labels = {task: list(corpus.schema[task].labels) for task in TASKS}
        self.gold = {corpus[at].text: corpus[at].labels for at in range(len(corpus))}
        self.helped = 0  # items of which the model had an idea

    def answer_one(self):
        right = self.gold[self.page.text("#stage .words")]
        suggested = self.page.texts('[data-task="intent"] .label.ghost .name')
        self.helped += self.page.count(".ghost") > 0
        if suggested == [right["intent"]]:
            self.page.press("a")  # which also goes on to the spans
        else:
            self.choose("intent", right["intent"])
        for start, end, label in right["slots"]:
            self.page.press("Home", *["ArrowRight"] * start, *["Shift+ArrowRight"] * (end - start - 1))
            self.choose("slots", label)
        if not right["slots"]:
            self.page.press("n")
        self.page.until(lambda: all(self.page.answered(task) for task in TASKS))
        self.page.send()

    def choose(self, task, label):
        place = self.labels[task].index(label)
        if place < 9:
            self.page.press(str(place + 1))
        else:
            self.page.press("/").types(label).press("Enter")


@pytest.fixture
def served(tmp_path):
    """A project on the built-in corpus, as `bursar serve` opens it."""
    table = {
        "name": "Three rounds",
        "tasks": list(TASKS),
        "corpus": SMALL,
        "costs": {"unit": 0.0001, "hourly": HOURLY, "measured": True, "pricing": "predicted"} | PRICES,
        "budget": {"seed_items": 5, "per_round": 1.2, "rounds": ROUNDS},
        "strategy": {"name": "MT-AVG"},
        "learner": QUICK,
        "audit": {"share": 0.2},
    }
    Run(tmp_path / "project", parse_config(table)).pin()
    server = Killable(tmp_path / "project")
    yield server
    server.kill()


def test_three_rounds_are_annotated_by_keys_and_trained_beside_until_the_end_is_told(served, browser):
    corpus = Run.open(served.folder).parts.corpus
    page = Hand(browser.new_page(viewport={"width": 1280, "height": 800})).opens(served.url)
    person, seen = Annotator(page, corpus), []
    while True:
        page.until(lambda: page.count("#workspace:not([hidden]) .task.active") or "ended" in page.text("#waiting"))
        if page.count("#workspace:not([hidden])") == 0:
            break
        seen.append(page.text("#round"))
        person.answer_one()
    page.sees("#waiting h1", "The campaign has ended").sees('#waiting a[href="/watch"]')
    assert list(dict.fromkeys(seen)) == ["Seed items", *(f"Round {number}" for number in range(1, ROUNDS + 1))]
    assert page.errors == []
    assert 0 < person.helped < len(seen)  # the models were trained, and had an idea at times
    page.tab.close()
    served.kill()
    check_ledger(served.folder, corpus, answered=len(seen))


def check_ledger(folder, corpus, answered):
    """Every answer is in the ledger as it was meant, with its seconds; prices follow them; every round was scored."""
    session = AnnotationSession.open(folder)
    try:
        view = session.ledger.view()
        assert len(view) == answered == len(session.ledger.answers())
        gold = corpus.take(corpus.positions(view.ids.tolist()))
        assert [view[at].labels for at in range(len(view))] == [gold[at].labels for at in range(len(view))]
        assert [record.round for record in session.ledger.decisions(RoundRecord)] == list(range(ROUNDS + 1))
        pace = session.settings.measured_speed()
        assert pace["reading"]["observations"] == answered
        assert session.settings.prices()["now"] == session.ledger.decision(RoundPrices, ROUNDS).prices != PRICES
    finally:
        session.close()


def test_the_project_of_the_demo_opens_where_it_ended_and_can_be_gone_on_with(tmp_path, browser):
    demo = demo_config().model_dump(mode="json")
    small = {
        "corpus": demo["corpus"] | SMALL,
        "learner": QUICK,
        "budget": {"seed_items": 5, "per_round": 60, "rounds": 1},
    }
    run_campaign(Run(tmp_path / "demo", parse_config(demo | small)))
    served = Served(tmp_path / "demo")
    try:
        tab = browser.new_page()
        page = Hand(tab)
        tab.goto(served.url)
        tab.wait_for_url("**/watch")
        page.opens(served.url).sees("#waiting h1", "The campaign has ended")
        tab.evaluate(MORE_ROUNDS)
        served.train()
        page.ready()
        assert page.text("#round") == "Round 2"
        assert page.errors == []
        tab.close()
    finally:
        served.stop()


MORE_ROUNDS = """async () => {
    const { csrf } = await (await fetch("/api/me")).json();
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
    const body = JSON.stringify({ key: "more-rounds", changes: { budget: { rounds: 2 } } });
    const reply = await fetch("/api/settings", { method: "POST", headers, body });
    if (!reply.ok) throw new Error(await reply.text());
}"""
