"""The decide page in a real browser: settings are changed, previewed, applied, discarded and refused."""

from __future__ import annotations

import shutil

import pytest

from bursar.annotation.round_worker import preview_round
from bursar.campaign.decisions import RoundSelection
from bursar.ledger import Answer
from tests.web.annotating import Hand, Served, until
from tests.web.small import make_project, right

pytestmark = pytest.mark.browser

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PER_ROUND = "budget.per_round"


class Lead(Hand):
    """A lead before the decide page."""

    def opens(self, url):
        self.tab.goto(f"{url}/decide")
        self.sees("#panel")
        return self

    def field(self, name):
        return self.tab.locator(f'[data-field="{name}"]')

    def write(self, name, value):
        self.field(name).fill(value)
        return self

    def choose(self, name, value):
        self.field(name).select_option(value)
        return self

    def beside(self, name, look):
        """What stands beside a field: `wrong`, `was` or `hint`."""
        return self.tab.locator(f'.setting:has([data-field="{name}"]) small.{look}').inner_text()

    def changes(self):
        """The list of what is being changed, one line each."""
        lines = self.tab.locator("#changes li > div").all_inner_texts()
        return [" ".join(line.replace("becomes", "→").split()) for line in lines]

    def use(self):
        self.click("#use")
        return self.sees("#notice.good")

    def preview(self):
        self.click("#preview")
        return self.until(lambda: self.count("#preview-progress[hidden]") == 1)

    def row(self, name):
        """A row of the comparison."""
        rows = self.tab.locator("table.compare tbody tr").filter(has_text=name)
        return [text.split("\n")[0] for text in rows.first.locator("td").all_inner_texts()]


def answer_all(served):
    for want in served.app_state.session.wanted():
        labels = {task: right(want.id)[task] for task in want.tasks}
        seconds = {"reading": 4.0, "intent": 3.0, "slots": 2.0}
        served.app_state.assignments.answer(Answer(want.id, labels, "Bob", seconds))


def in_this_process(served):
    """Previews without a process of their own, which takes seconds to start; one test has the real thing."""
    served.app_state.session.preview = lambda changes, progress=None: preview_round(
        served.folder, changes, lambda told: None
    )
    return served


@pytest.fixture(scope="module")
def opened_project(tmp_path_factory):
    """A project whose first round is open, to be copied."""
    folder = make_project(tmp_path_factory.mktemp("template") / "project")
    served = Served(folder)
    answer_all(served)
    served.train()
    served.stop()
    served.app_state.close()
    return folder


@pytest.fixture
def served(opened_project, tmp_path):
    server = in_this_process(Served(shutil.copytree(opened_project, tmp_path / "project")))
    yield server
    server.stop()
    server.app_state.close()


@pytest.fixture
def new_project(tmp_path):
    """Serves a project before its first answer."""
    served = []

    def of(**changes):
        served.append(Served(make_project(tmp_path / "new", **changes)))
        return served[-1]

    yield of
    for one in served:
        one.stop()
        one.app_state.close()


@pytest.fixture
def lead(browser):
    """Opens the page in a browser of its own; what goes wrong there and was not expected is a failure."""
    opened = []

    def of(served, width=1280, height=900, scheme="light", deaf=False):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        found = Lead(context.new_page())
        if deaf:  # it hears of nothing that others do
            found.tab.route("**/api/events", lambda route: route.abort())
            found.expected.append("ERR_FAILED")
        opened.append((context, found))
        return found.opens(served.url)

    yield of
    for context, found in opened:
        assert [error for error in found.errors if not any(part in error for part in found.expected)] == []
        context.close()


def in_force(served):
    return served.app_state.session.settings.to_json()["settings"]


# -- changing ----------------------------------------------------------------------------------------------------------
def test_a_changed_field_is_listed_with_what_it_was_until_it_is_taken_back(served, lead):
    page = lead(served)
    assert page.changes() == []
    assert page.tab.locator("#use").is_disabled()
    page.write(PER_ROUND, "1.2").write("budget.rounds", "4")
    assert page.changes() == ["Per round €0.80 → €1.20", "Rounds 2 → 4"]
    assert page.beside(PER_ROUND, "was") == "Current: €0.80"
    page.click('[aria-label="Undo: Per round"]')
    assert page.changes() == ["Rounds 2 → 4"]
    assert page.field(PER_ROUND).input_value() == "0.8"
    assert page.sent == []


def test_what_is_used_stands_in_the_history_and_the_next_round_obeys(served, lead):
    page = lead(served)
    page.sees("#no-history")
    page.write(PER_ROUND, "0.4").choose("base", "RANDOM").use()
    assert [body["changes"] for path, body in page.sent if path == "/settings"] == [
        {"budget": {"per_round": 0.4}, "strategy": {"name": "RANDOM"}}
    ]
    assert page.changes() == []
    told = page.text("#history tr")
    assert "you" in told
    assert "Per round" in told
    assert "the next round" in told
    answer_all(served)
    served.train()
    assert served.app_state.session.campaign_state.terms_of(2).strategy.name == "RANDOM"
    bought = served.app_state.session.ledger.decision(RoundSelection, 2)
    saved = 80 - served.app_state.session.ledger.spent(round=1)
    assert bought.budget == int((40 + saved) / 1.1)  # a tenth is kept back for overruns
    page.sees("#standing", "Round 2").sees("#history tr", "round 2")


def test_discarding_puts_every_field_back_and_sends_nothing(served, lead):
    page = lead(served)
    before = page.field(PER_ROUND).input_value()
    page.write(PER_ROUND, "5").choose("base", "MT-MIN").write("at_most slots", "3").click("#discard")
    assert page.changes() == []
    assert page.field(PER_ROUND).input_value() == before
    assert page.field("base").input_value() == "MT-AVG"
    assert page.sent == []
    assert in_force(served)["budget"]["per_round"] == 0.8


def test_what_is_written_survives_a_look_at_another_page(served, lead):
    page = lead(served).write(PER_ROUND, "1.2")
    page.tab.goto(f"{served.url}/people")
    page.opens(served.url)
    assert page.changes() == ["Per round €0.80 → €1.20"]
    page.click("#discard").opens(served.url)
    assert page.changes() == []


def test_the_newest_change_comes_first_in_the_history_and_names_are_no_markup(served, lead):
    served.app_state.assignments.change({"budget": {"rounds": 3}}, "Anna", "key-00001")
    served.app_state.assignments.change({"budget": {"rounds": 4}}, "<img src=x onerror=hacked=1>", "key-00002")
    page = lead(served)
    rows = page.tab.locator("#history tr").all_inner_texts()
    assert "3 becomes 4" in " ".join(rows[0].split())
    assert "<img src=x" in rows[0]
    assert "Anna" in rows[1]
    assert page.tab.evaluate("globalThis.hacked") is None


# -- looking ahead -----------------------------------------------------------------------------------------------------
def test_a_preview_compares_both_rounds_beside_the_server_and_spends_nothing(opened_project, tmp_path, lead):
    served = Served(shutil.copytree(opened_project, tmp_path / "project"))
    before = served.app_state.session.ledger.fingerprint()
    page = lead(served).write(PER_ROUND, "1.6").preview().sees("table.compare")
    found = preview_round(served.folder, {"budget": {"per_round": 1.6}}, lambda told: None)
    now, then = found["now"], found["then"]
    assert then["items"] > now["items"]
    assert page.row("Items") == [str(now["items"]), str(then["items"]), f"+{then['items'] - now['items']}"]
    assert page.row("Budget")[:2] == [f"€{side['budget'] / 100:.2f}" for side in (now, then)]
    assert page.row("Labels of slots")[1] == str(then["labels"]["slots"])
    assert page.row("Strategy") == ["MT-AVG", "MT-AVG", "same"]
    page.until(lambda: page.count(".only.then li .text") == found["added"])
    assert sorted(page.texts(".only.then li .mono")) == sorted(found["added_items"])
    assert "still open" in page.text("#preview-words")
    assert served.app_state.session.ledger.fingerprint() == before
    assert page.tab.evaluate("globalThis.hacked") is None
    served.stop()
    served.app_state.close()


def test_with_nothing_changed_a_preview_shows_the_next_round_as_it_is(served, lead):
    page = lead(served).preview().sees("table.compare.alone")
    found = preview_round(served.folder, {}, lambda told: None)
    assert page.row("Items") == [str(found["now"]["items"])]
    assert page.count(".only") == 0


def test_a_preview_that_no_longer_holds_says_so(served, lead):
    page = lead(served).write(PER_ROUND, "1.6").preview().sees("table.compare")
    assert not page.tab.locator("#preview-stale").is_visible()
    page.write(PER_ROUND, "1.7").sees("#preview-stale", "Preview again")
    page.write(PER_ROUND, "1.6").until(lambda: not page.tab.locator("#preview-stale").is_visible())
    want = served.app_state.session.wanted()[0]
    served.answer_as("Bob", want.id, {task: right(want.id)[task] for task in want.tasks})
    served.app_state.changed()
    page.sees("#preview-stale", "new answers")


def test_a_campaign_that_would_end_is_told_before_it_is_done(served, lead):
    page = lead(served).write("budget.rounds", "1").preview().sees("#preview-found .notice", "all rounds are done")
    assert page.row("Items")[1] == "0"


def test_before_the_first_model_the_page_says_when_previews_begin(new_project, lead):
    page = lead(new_project())
    assert "no model yet" in page.text("#preview-words")
    assert page.tab.locator("#preview").is_disabled()
    page.write(PER_ROUND, "1.2").use()


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (PER_ROUND, "0", "above 0"),
        (PER_ROUND, "", "above 0"),
        ("budget.rounds", "2.5", "whole number"),
        ("price per_item intent", "0.035", "multiple of €0.01"),
        ("at_most slots", "-1", "whole number"),
    ],
)
def test_a_mistake_is_shown_beside_its_field_and_nothing_is_sent(served, lead, name, value, said):
    page = lead(served).write(name, value)
    assert said in page.beside(name, "wrong")
    assert page.field(name).get_attribute("aria-invalid") == "true"
    for press in ("#use", "#preview"):
        page.click(press)
        assert page.tab.evaluate("document.activeElement.dataset.field") == name
    assert page.sent == []
    page.click("#discard")
    assert page.count(".is-wrong") == 0


def test_what_the_server_refuses_is_shown_beside_its_field(new_project, lead):
    served = new_project(corpus={"dev": None})
    page = lead(served)
    page.expected.append("400")
    page.click(".more summary").write("budget.patience", "2").click("#use").sees("#refusal")
    assert "needs development items" in page.beside("budget.patience", "wrong")
    assert "budget.patience" not in page.beside("budget.patience", "wrong")  # in the words of the form
    assert page.tab.evaluate("document.activeElement.dataset.field") == "budget.patience"
    assert in_force(served)["budget"].get("patience") is None
    page.write("budget.patience", "").write(PER_ROUND, "1.2")
    assert not page.tab.locator("#refusal").is_visible()
    page.use()


def test_a_strategy_that_cannot_keep_to_limits_is_marked_before_it_is_sent(served, lead):
    page = lead(served).write("at_most slots", "3").choose("base", "MT-PAR")
    assert "does not support limits" in page.beside("base", "wrong")
    page.write("at_most slots", "")
    assert page.beside("base", "wrong") == ""


def test_an_unreachable_server_loses_nothing_and_the_change_is_made_once(served, lead):
    page = lead(served).write(PER_ROUND, "1.2")
    page.expected.append("ERR_FAILED")
    page.tab.route("**/api/settings", lambda route: route.abort())
    page.click("#use").sees("#refusal", "cannot be reached")
    assert page.changes() == ["Per round €0.80 → €1.20"]
    page.tab.unroute("**/api/settings")
    page.use()
    keys = {body["key"] for path, body in page.sent if path == "/settings"}
    assert len(keys) == 1
    assert len(served.app_state.session.settings.to_json()["history"]) == 1


# -- two leads ---------------------------------------------------------------------------------------------------------
def test_what_somebody_else_changes_is_told_at_once_and_what_was_written_stays(served, lead):
    page = lead(served).write(PER_ROUND, "1.2")
    served.app_state.assignments.change({"budget": {"per_round": 2, "rounds": 5}}, "Eve", "key-00001")
    served.app_state.changed()
    page.sees("#notice", "Eve has changed Per round, Rounds")
    assert page.changes() == ["Per round €2.00 → €1.20"]
    assert page.field("budget.rounds").input_value() == "5"
    page.use()
    assert in_force(served)["budget"] | {"per_round": 1.2, "rounds": 5} == in_force(served)["budget"]


def test_who_did_not_hear_of_another_change_is_asked_to_look_before_using_theirs(served, lead):
    page = lead(served, deaf=True).write(PER_ROUND, "1.2")
    page.expected.append("409")
    served.app_state.assignments.change({"budget": {"per_round": 2}}, "Eve", "key-00001")
    page.click("#use").sees("#refusal", "settings have been changed")
    assert in_force(served)["budget"]["per_round"] == 2
    assert page.changes() == ["Per round €2.00 → €1.20"]
    assert "Eve" in page.text("#history")
    page.use()
    assert in_force(served)["budget"]["per_round"] == 1.2
    assert page.count("#history tr") == 2


# -- strategies --------------------------------------------------------------------------------------------------------
def test_weights_are_sent_for_all_tasks_and_go_with_a_strategy_that_takes_none(served, lead):
    page = lead(served).write("weight slots", "3")
    assert page.changes() == ["Weight of slots 1 → 3"]
    assert page.texts(".weight .share") == ["25 %", "75 %"]
    page.use()
    assert in_force(served)["strategy"]["weights"] == {"intent": 1, "slots": 3}
    page.choose("base", "MT-MAX")
    assert page.changes() == ["Strategy MT-AVG → MT-MAX", "Task weights intent 1, slots 3 → equal"]
    assert not page.field("weight slots").is_visible()
    page.use()
    assert in_force(served)["strategy"] == {**in_force(served)["strategy"], "name": "MT-MAX", "weights": {}}


def test_a_slider_and_its_number_are_one_weight(served, lead):
    page = lead(served)
    page.tab.locator('[data-slider="intent"]').focus()
    page.press("Home")
    assert page.field("weight intent").input_value() == "0"
    assert page.texts(".weight .share") == ["0 %", "100 %"]
    page.write("weight slots", "0")
    assert "Give at least one task" in page.beside("weight intent", "wrong")


def test_a_way_of_spending_and_matching_make_the_strategys_name(served, lead):
    page = lead(served).choose("base", "MT-MIN").choose("spending", "BLP_AL")
    page.field("matching").check()
    page.write("strategy.bin_count", "3").use()
    strategy = in_force(served)["strategy"]
    assert (strategy["name"], strategy["bin_count"]) == ("MT-MIN+BLP_AL+IDMR", 3)
    page.choose("base", "MT-PAR")  # which gives no scores
    assert page.changes() == ["Strategy MT-MIN+BLP_AL+IDMR → MT-PAR+IDMR"]


def test_money_is_split_between_tasks_only_by_a_strategy_that_buys_labels_one_by_one(served, lead):
    page = lead(served)
    assert page.field("split").is_disabled()
    assert "UDJS" in page.beside("split", "hint")
    page.choose("base", "UDJS").choose("split", "exact").use()
    assert in_force(served)["allocation"]["method"] == "exact"
    page.choose("base", "MT-AVG")
    assert page.changes() == ["Strategy UDJS → MT-AVG", "Budget split between tasks exact → no"]
    page.use()
    assert in_force(served)["allocation"]["method"] == "none"


def test_a_limit_is_set_and_taken_away_again(served, lead):
    page = lead(served).write("at_most slots", "3").choose("group.by", "label:intent").write("group.at_most", "2").use()
    limits = in_force(served)["limits"]
    assert limits["tasks"] == {"slots": {"at_most": 3, "at_least": 0}}
    assert limits["group"] == {"by": "label:intent", "at_most": 2}
    page.write("at_most slots", "").choose("group.by", "").use()
    assert not in_force(served)["limits"]["tasks"]
    assert in_force(served)["limits"]["group"] is None
    assert "no limit" in page.text("#history tr")


def test_measured_seconds_become_prices_at_what_an_hour_costs(served, lead):
    page = lead(served)
    page.click("button:has-text('Use measured prices')")
    assert "the cost of an hour" in page.beside("costs.hourly", "wrong")
    page.write("costs.hourly", "36")  # a cent a second
    assert "3.0 s → €0.03" in page.text('.setting:has([data-field="price per_item intent"]) .makes')
    page.click("button:has-text('Use measured prices')")
    assert page.field("price per_item intent").input_value() == "0.03"
    page.use()
    assert in_force(served)["costs"]["hourly"] == 36


# -- who looks and how -------------------------------------------------------------------------------------------------
def test_everything_works_by_keyboard_alone(served, lead):
    page = lead(served)

    def tab_to(selector):
        for _ in range(60):
            page.press("Tab")
            if page.tab.evaluate("one => document.activeElement.matches(one)", selector):
                return
        raise AssertionError(f"no way to {selector}")

    tab_to(f'[data-field="{PER_ROUND}"]')
    page.press("Control+a").types("1.6").press("Enter").sees("table.compare")
    assert page.tab.evaluate("document.activeElement.id") == "preview-title"
    tab_to("#use")
    page.press("Enter").sees("#notice.good")
    assert in_force(served)["budget"]["per_round"] == 1.6
    assert page.tab.evaluate("document.activeElement.id") == "panel-title"


@pytest.mark.parametrize(("width", "scheme"), [(820, "light"), (820, "dark"), (390, "light")])
def test_on_a_narrow_screen_the_buttons_stay_in_sight_and_nothing_is_cut_off(served, lead, width, scheme):
    page = lead(served, width=width, height=1000, scheme=scheme).write(PER_ROUND, "1.6")
    for place in (0, 600, 1200):
        page.tab.evaluate("place => scrollTo(0, place)", place)
        box = page.tab.locator("#use").bounding_box()
        assert 0 <= box["y"] <= 1000 - box["height"]
    page.preview().sees("table.compare")
    assert page.tab.evaluate(OVERFLOW) <= 0
    page.use()
    assert page.tab.evaluate(OVERFLOW) <= 0


def test_an_ended_campaign_says_how_it_goes_on(served, lead):
    answer_all(served)
    served.train()
    answer_all(served)
    served.train()
    page = lead(served).sees("#state", "The campaign has ended: all rounds are done. To continue, raise the budget")
    page.write("budget.rounds", "3").preview().sees("#preview-words", "The round will be exactly this")
    page.use()
    until(lambda: served.app_state.state().phase == "training")
    page.sees("#state", "is being prepared")
