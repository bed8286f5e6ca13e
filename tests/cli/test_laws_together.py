"""``bursar laws advise`` and ``check``: what they say of data, a campaign and a run, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bursar.campaign import Run, load_config, run_campaign
from bursar.corpus import write
from bursar.laws import cards
from bursar.learners import LEARNERS
from bursar.simulation import assistant_corpus
from tests.laws.planted import planted_laws
from tests.tiny import WordCounts

CAMPAIGN = """
tasks = ["intent", "slots"]
[corpus]
items = 400
pool_items = 80
dev_items = 40
test_items = 30
[budget]
seed_items = 10
per_round = 90
rounds = 1
[learner]
name = "word-counts"
"""
TITLE = "Should these tasks be trained together?"


@pytest.fixture(autouse=True)
def word_counts():
    LEARNERS.add("word-counts", WordCounts)
    yield
    LEARNERS._entries.pop("word-counts")


@pytest.fixture(autouse=True)
def no_packaged_laws(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(cards, "SHIPPED", tmp_path_factory.mktemp("installation"))


@pytest.fixture
def packaged(no_packaged_laws):
    """An installation with laws."""
    for name, law in planted_laws().named().items():
        law.save(cards.SHIPPED / f"{name}.json")


@pytest.fixture
def campaign(bursar):
    Path("spring.toml").write_text(CAMPAIGN)
    return "spring.toml"


@pytest.fixture
def run(campaign):
    run_campaign(Run(Path("runs/spring"), load_config(campaign)))
    return "runs/spring"


@pytest.fixture
def data(bursar):
    write(assistant_corpus(120).with_tasks(["intent", "slots"]), Path("requests.jsonl"), "jsonl")
    return "requests.jsonl"


@pytest.mark.parametrize("command", ["advise", "check"])
def test_every_command_has_help_with_an_example(bursar, command):
    code, out, _ = bursar("laws", command, "--help")
    assert code == 0
    assert f"bursar laws {command} " in out


# -- advice ---
def test_a_campaign_is_advised_before_it_buys_anything(bursar, packaged, campaign, tmp_path):
    before = set(tmp_path.rglob("*"))
    code, out, errors = bursar("laws", "advise", campaign)
    assert code == 0
    assert TITLE in out
    assert "what the budget buys, about" in out
    assert "the law was learned from tagging, and this is classification" in errors
    assert "Saved for bursar laws check: runs/spring-together/before.json" in out
    assert {path.name for path in set(tmp_path.rglob("*")) - before if path.is_file()} == {"before.json"}


def test_data_are_advised_at_what_is_labelled_or_at_so_many_items(bursar, packaged, data):
    code, out, _ = bursar("laws", "advise", data, "--json")
    result = json.loads(out)
    assert code == 0
    assert set(result["tasks"]) == {"intent", "slots"}
    assert {task["verdict"] for task in result["tasks"].values()} <= {"helps", "harms", "cannot tell"}
    assert result["page"] is None
    fewer = json.loads(bursar("laws", "advise", data, "--items", 30, "--json")[1])
    assert 0 < fewer["tasks"]["slots"]["n"] < result["tasks"]["slots"]["n"]
    assert fewer["pairs"] == result["pairs"]


def test_advice_on_a_run_is_saved_and_shown_in_its_report(bursar, packaged, run):
    code, out, _ = bursar("laws", "advise", run)
    assert code == 0
    assert f"Report: {run}/report.html" in out
    assert TITLE in Path(run, "report.html").read_text()
    assert set(json.loads(Path(run, "together.json").read_text())) == {"kind", "advice"}


def test_laws_of_one_s_own_are_asked_by_their_folder(bursar, data, tmp_path):
    for name, law in planted_laws(about={"sources": ["my table"]}).named().items():
        law.save(tmp_path / "mine" / f"{name}.json")
    code, out, _ = bursar("laws", "advise", data, "--laws", "mine")
    assert code == 0
    assert "on my table" in out


# -- the check ---
def test_a_run_is_checked_and_prediction_and_measurement_stand_on_its_page(bursar, packaged, run):
    code, out, errors = bursar("laws", "check", run, "--seeds", 1)
    assert code == 0
    assert "training alone, seed 0" in errors
    assert "For the measurement, the campaign’s learner" in out
    page = Path(run, "report.html").read_text()
    assert "Predicted by the law" in page
    assert '<li><i style="background:var(--arm-1)"></i>Measured</li>' in page
    code, again, errors = bursar("laws", "check", run, "--seeds", 1)
    assert (code, again) == (0, out)
    assert "training" not in errors


def test_what_was_said_before_buying_is_what_a_check_of_the_run_judges(bursar, packaged, campaign):
    said = json.loads(bursar("laws", "advise", campaign, "--json")[1])
    run_campaign(Run(Path("runs/spring"), load_config(campaign)))
    result = json.loads(bursar("laws", "check", "runs/spring", "--seeds", 1, "--json")[1])
    assert result["advice"]["tasks"] == said["tasks"]
    assert result["advice"]["when"] == "before buying"
    page = Path("runs/spring/report.html").read_text()
    assert "By the law, asked before buying," in page
    _, out, _ = bursar("laws", "check", "runs/spring", "--seeds", 1)
    assert "Predicted by the law, before buying" in out


def test_a_run_in_another_folder_is_judged_by_what_was_said_before_too(bursar, packaged, campaign):
    bursar("laws", "advise", campaign)
    run_campaign(Run(Path("elsewhere/first"), load_config(campaign)))
    result = json.loads(bursar("laws", "check", "elsewhere/first", "--seeds", 1, "--json")[1])
    assert result["advice"]["when"] == "before buying"


def test_what_was_said_of_a_campaign_with_other_settings_is_not_judged(bursar, packaged, campaign):
    bursar("laws", "advise", campaign)
    Path(campaign).write_text(CAMPAIGN.replace("per_round = 90", "per_round = 80"))
    run_campaign(Run(Path("runs/spring"), load_config(campaign)))
    result = json.loads(bursar("laws", "check", "runs/spring", "--seeds", 1, "--json")[1])
    assert "when" not in result["advice"]
    assert result["advice"]["basis"] == "what the run has bought"


def test_a_check_needs_neither_a_law_nor_a_run(bursar, campaign):
    code, out, errors = bursar("laws", "check", campaign, "--seeds", 1, "--json")
    result = json.loads(out)
    assert code == 0
    assert set(result) == {"check", "page", "no_advice"}
    assert result["no_advice"] == "no packaged law in this installation"
    assert Path("runs/spring-together/together.json").exists()
    assert "Traceback" not in errors


# -- what is refused ---
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["advise", "DATA"], "no packaged law in this installation"),
        (["advise", "none.jsonl", "--laws", "LAWS"], "none.jsonl: there is no such file or folder"),
        (["advise", "CAMPAIGN", "--laws", "LAWS", "--items", "30"], "--items is for data"),
        (["advise", "DATA", "--laws", "nowhere"], "nowhere has no law single.json"),
        (["advise", "DATA", "--laws", "LAWS", "--format", "magic"], "magic"),
        (["check", "CAMPAIGN", "--folder", "DATA"], "--folder requests.jsonl is a file"),
        (["check", "CAMPAIGN", "--seeds", "0"], "--seeds"),
    ],
)
def test_what_is_wrong_ends_with_2_and_a_sentence_and_leaves_nothing(
    bursar, data, campaign, tmp_path, tmp_path_factory, arguments, said
):
    laws = tmp_path_factory.mktemp("laws")
    for name, law in planted_laws().named().items():
        law.save(laws / f"{name}.json")
    files = {"DATA": data, "CAMPAIGN": campaign, "LAWS": laws}
    before = set(tmp_path.rglob("*"))
    code, out, errors = bursar("laws", *(files.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert said in errors
    assert "Traceback" not in errors
    assert set(tmp_path.rglob("*")) == before
