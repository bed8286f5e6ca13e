"""``bursar label-studio`` before a Label Studio in memory; the real one is in tests/web/test_label_studio.py."""

from __future__ import annotations

import json
import threading
import urllib.request

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.web.labelstudio import client
from tests.web.labelstudio.shelf import Shelf
from tests.web.small import make_project, right, write_corpus

CAMPAIGN = """
[corpus]
source = "corpus.jsonl"
test_items = 1
[costs]
pricing = "PRICING"
[budget]
seed_items = 8
per_round = 40
rounds = 1
[learner]
name = "scikit"
estimator = "naive-bayes"
"""


@pytest.fixture
def shelf(monkeypatch):
    """Every server that is asked for is this one."""
    found = Shelf()
    found.whoami = lambda: "ada@example.com"
    found.page_of = lambda project: f"{found.url}/projects/{project}/data"
    monkeypatch.setattr(client, "Studio", lambda url, token: found)
    monkeypatch.setenv("BURSAR_LABEL_STUDIO_TOKEN", "secret")
    monkeypatch.delenv("BURSAR_LABEL_STUDIO_URL", raising=False)
    return found


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "project")


@pytest.fixture
def campaign(tmp_path):
    write_corpus(tmp_path / "corpus.jsonl")
    path = tmp_path / "spring.toml"
    path.write_text(CAMPAIGN.replace("PRICING", "predicted"))
    return path


def answer(shelf, project, count=None):
    live = AnnotationSession.open(project)
    for want in live.wanted()[:count]:
        shelf.annotate(live.corpus, want.id, right(want.id))
    live.close()


@pytest.mark.parametrize("command", [[], ["push"], ["pull"]])
def test_every_command_has_help(bursar, command):
    code, out, _ = bursar("label-studio", *command, "--help")
    assert (code, "Usage" in out) == (0, True)
    assert not command or "BURSAR_LABEL_STUDIO_TOKEN" in out


def test_a_projects_items_are_sent_and_answers_taken_in(bursar, shelf, project):
    code, out, _ = bursar("label-studio", "push", project, "--url", shelf.url)
    assert (code, out) == (0, f"Round 0: 8 items sent. {shelf.url}/projects/1/data\n")
    code, out, _ = bursar("label-studio", "push", project)  # the address is known from now on
    assert (code, out) == (0, f"Round 0: 0 items sent; 8 already there. {shelf.url}/projects/1/data\n")
    answer(shelf, project, 3)
    code, out, err = bursar("label-studio", "pull", project)
    assert (code, err) == (0, "")
    assert out.startswith("Round 0: 3 answered for €")
    assert out.endswith("5 items open, 3 of 8 answered.\n")
    assert bursar("label-studio", "pull", project)[1] == "Round 0: nothing new. 5 items open, 3 of 8 answered.\n"


def test_a_round_that_is_complete_is_said_to_be_so(bursar, shelf, project):
    bursar("label-studio", "push", project, "--url", shelf.url)
    answer(shelf, project)
    assert "The round is complete. Push" in bursar("label-studio", "pull", project)[1]


def test_machines_get_json(bursar, shelf, project):
    code, out, err = bursar("label-studio", "push", project, "--url", shelf.url, "--json")
    assert (code, err) == (0, "")
    pushed = json.loads(out)
    assert {key: pushed[key] for key in ("round", "phase", "open", "ready", "new", "there", "suggested")} == {
        "round": 0,
        "phase": "annotating",
        "open": 8,
        "ready": False,
        "new": 8,
        "there": 0,
        "suggested": 0,
    }
    answer(shelf, project, 2)
    assert len(json.loads(bursar("label-studio", "pull", project, "--json")[1])["answered"]) == 2


def test_what_cannot_be_used_is_named_on_standard_error(bursar, shelf, project):
    bursar("label-studio", "push", project, "--url", shelf.url)
    item = next(iter(shelf.tasks.values()))["data"]["id"]
    shelf.submit(item, [])
    code, out, err = bursar("label-studio", "pull", project)
    assert (code, "nothing new" in out) == (0, True)
    assert "not imported" in err
    assert f"'{item}'" in err
    assert "'intent'" in err


def test_a_campaigns_file_starts_a_run_and_goes_on_with_it(bursar, shelf, campaign, tmp_path):
    assert "8 items sent" in bursar("label-studio", "push", campaign, "--url", shelf.url)[1]
    assert (tmp_path / "runs" / "spring" / "campaign.json").exists()
    assert "8 already there" in bursar("label-studio", "push", campaign)[1]
    assert "nothing new" in bursar("label-studio", "pull", campaign)[1]
    assert "8 items sent" in bursar("label-studio", "push", campaign, "--run", "other", "--url", shelf.url)[1]


def test_a_simulation_is_refused_before_anything_is_made(bursar, shelf, campaign, tmp_path):
    campaign.write_text(CAMPAIGN.replace("PRICING", "gold"))
    code, _, err = bursar("label-studio", "push", campaign, "--url", shelf.url)
    assert (code, "simulation" in err, "predicted" in err) == (2, True, True)
    assert not (tmp_path / "runs").exists()
    assert not shelf.projects


def test_an_address_and_a_token_are_asked_for(bursar, shelf, project, monkeypatch):
    code, _, err = bursar("label-studio", "push", project)
    assert (code, "--url" in err) == (2, True)
    monkeypatch.delenv("BURSAR_LABEL_STUDIO_TOKEN")
    code, _, err = bursar("label-studio", "push", project, "--url", shelf.url)
    assert (code, "BURSAR_LABEL_STUDIO_TOKEN" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pull", "project"], "push it first"),
        (["push", "nowhere"], "holds no run"),
        (["push", "nowhere.toml"], "no such file"),
        (["push", "project", "--run", "other"], "pass only one of the two"),
    ],
)
def test_what_is_given_wrong_exits_with_2(bursar, shelf, project, arguments, words):
    code, _, err = bursar("label-studio", *arguments, "--url", shelf.url)
    assert (code, words in err) == (2, True), err


def test_a_wrong_address_exits_with_2_and_starts_no_run(bursar, campaign, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.0)
    code, _, err = bursar("label-studio", "push", campaign, "--url", "http://127.0.0.1:1", "--token", "x" * 40)
    assert (code, "cannot be reached" in err) == (2, True)
    assert not (tmp_path / "runs").exists()


def test_a_webhook_wakes_the_watch_and_is_registered_for_the_project(bursar, shelf, project):
    """The pause is an hour, so that only the bell can end it."""
    hooks = []

    def register(number, url):
        hooks.append((number, url))
        threading.Thread(target=ring, args=(url,)).start()
        return 1

    def ring(url):
        answer_open(shelf)
        urllib.request.urlopen(url, data=b"{}", timeout=30)

    bursar("label-studio", "push", project, "--url", shelf.url)
    live = AnnotationSession.open(project)
    live.change({"budget": {"rounds": 0}}, "ann")  # the seed items are all
    ids = [want.id for want in live.wanted()]
    corpus = live.corpus
    live.close()

    def answer_open(there):
        for item in ids:
            there.annotate(corpus, item, right(item))

    shelf.register_webhook = register
    address = ("--watch", "--every", "3600", "--webhook", "http://127.0.0.1:0/hook")
    code, out, err = bursar("label-studio", "pull", project, *address)
    assert code == 0, err
    assert "The campaign has ended" in out
    assert [number for number, _ in hooks] == [1]


def test_a_webhook_needs_a_watch_and_an_address(bursar, shelf, project):
    bursar("label-studio", "push", project, "--url", shelf.url)
    code, _, err = bursar("label-studio", "pull", project, "--webhook", "http://127.0.0.1:0/")
    assert (code, "--watch" in err) == (2, True)
    code, _, err = bursar("label-studio", "pull", project, "--watch", "--webhook", "nowhere")
    assert (code, "no address" in err) == (2, True)
