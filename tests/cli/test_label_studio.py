"""``bursar label-studio`` before a Label Studio in memory; the real one is in tests/web/test_label_studio.py."""

from __future__ import annotations

import json
import threading
import urllib.request

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.web.labelstudio import client
from tests.web.labelstudio.fake_studio import FakeStudio
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
def studio(monkeypatch):
    """Every server that is asked for is this one."""
    found = FakeStudio()
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


def answer(studio, project, count=None):
    session = AnnotationSession.open(project)
    for want in session.wanted()[:count]:
        studio.annotate(session.corpus, want.id, right(want.id))
    session.close()


@pytest.mark.parametrize("command", [[], ["push"], ["pull"]])
def test_every_command_has_help(bursar, command):
    code, out, _ = bursar("label-studio", *command, "--help")
    assert (code, "Usage" in out) == (0, True)
    assert not command or "BURSAR_LABEL_STUDIO_TOKEN" in out


def test_a_projects_items_are_sent_and_answers_taken_in(bursar, studio, project):
    code, out, _ = bursar("label-studio", "push", project, "--url", studio.url)
    assert (code, out) == (0, f"Round 0: 8 items sent. {studio.url}/projects/1/data\n")
    code, out, _ = bursar("label-studio", "push", project)  # the address is known from now on
    assert (code, out) == (0, f"Round 0: 0 items sent; 8 already there. {studio.url}/projects/1/data\n")
    answer(studio, project, 3)
    code, out, err = bursar("label-studio", "pull", project)
    assert (code, err) == (0, "")
    assert out.startswith("Round 0: 3 answered for €")
    assert out.endswith("5 items open, 3 of 8 answered.\n")
    assert bursar("label-studio", "pull", project)[1] == "Round 0: nothing new. 5 items open, 3 of 8 answered.\n"


def test_a_round_that_is_complete_is_said_to_be_so(bursar, studio, project):
    bursar("label-studio", "push", project, "--url", studio.url)
    answer(studio, project)
    assert "The round is complete. Push" in bursar("label-studio", "pull", project)[1]


def test_machines_get_json(bursar, studio, project):
    code, out, err = bursar("label-studio", "push", project, "--url", studio.url, "--json")
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
    answer(studio, project, 2)
    assert len(json.loads(bursar("label-studio", "pull", project, "--json")[1])["answered"]) == 2


def test_what_cannot_be_used_is_named_on_standard_error(bursar, studio, project):
    bursar("label-studio", "push", project, "--url", studio.url)
    item = next(iter(studio.tasks.values()))["data"]["id"]
    studio.submit(item, [])
    code, out, err = bursar("label-studio", "pull", project)
    assert (code, "nothing new" in out) == (0, True)
    assert "not imported" in err
    assert f"'{item}'" in err
    assert "'intent'" in err


def test_a_campaigns_file_starts_a_run_and_goes_on_with_it(bursar, studio, campaign, tmp_path):
    assert "8 items sent" in bursar("label-studio", "push", campaign, "--url", studio.url)[1]
    assert (tmp_path / "runs" / "spring" / "campaign.json").exists()
    assert "8 already there" in bursar("label-studio", "push", campaign)[1]
    assert "nothing new" in bursar("label-studio", "pull", campaign)[1]
    assert "8 items sent" in bursar("label-studio", "push", campaign, "--run", "other", "--url", studio.url)[1]


def test_a_simulation_is_refused_before_anything_is_made(bursar, studio, campaign, tmp_path):
    campaign.write_text(CAMPAIGN.replace("PRICING", "gold"))
    code, _, err = bursar("label-studio", "push", campaign, "--url", studio.url)
    assert (code, "simulation" in err, "predicted" in err) == (2, True, True)
    assert not (tmp_path / "runs").exists()
    assert not studio.projects


def test_an_address_and_a_token_are_asked_for(bursar, studio, project, monkeypatch):
    code, _, err = bursar("label-studio", "push", project)
    assert (code, "--url" in err) == (2, True)
    monkeypatch.delenv("BURSAR_LABEL_STUDIO_TOKEN")
    code, _, err = bursar("label-studio", "push", project, "--url", studio.url)
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
def test_what_is_given_wrong_exits_with_2(bursar, studio, project, arguments, words):
    code, _, err = bursar("label-studio", *arguments, "--url", studio.url)
    assert (code, words in err) == (2, True), err


def test_a_wrong_address_exits_with_2_and_starts_no_run(bursar, campaign, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.0)
    code, _, err = bursar("label-studio", "push", campaign, "--url", "http://127.0.0.1:1", "--token", "x" * 40)
    assert (code, "cannot be reached" in err) == (2, True)
    assert not (tmp_path / "runs").exists()


def test_a_webhook_wakes_the_watch_and_is_registered_for_the_project(bursar, studio, project):
    """The pause is an hour, so that only the bell can end it."""
    hooks = []

    def register(number, url):
        hooks.append((number, url))
        threading.Thread(target=ring, args=(url,)).start()
        return 1

    def ring(url):
        answer_open(studio)
        urllib.request.urlopen(url, data=b"{}", timeout=30)

    bursar("label-studio", "push", project, "--url", studio.url)
    session = AnnotationSession.open(project)
    session.settings.change({"budget": {"rounds": 0}}, "ann")  # the seed items are all
    ids = [want.id for want in session.wanted()]
    corpus = session.corpus
    session.close()

    def answer_open(there):
        for item in ids:
            there.annotate(corpus, item, right(item))

    studio.register_webhook = register
    address = ("--watch", "--every", "3600", "--webhook", "http://127.0.0.1:0/hook")
    code, out, err = bursar("label-studio", "pull", project, *address)
    assert code == 0, err
    assert "The campaign has ended" in out
    assert [number for number, _ in hooks] == [1]


def test_a_webhook_needs_a_watch_and_an_address(bursar, studio, project):
    bursar("label-studio", "push", project, "--url", studio.url)
    code, _, err = bursar("label-studio", "pull", project, "--webhook", "http://127.0.0.1:0/")
    assert (code, "--watch" in err) == (2, True)
    code, _, err = bursar("label-studio", "pull", project, "--watch", "--webhook", "nowhere")
    assert (code, "not a webhook address" in err) == (2, True)
