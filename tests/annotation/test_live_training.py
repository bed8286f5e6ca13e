"""Three rounds with people in threads and training in processes of its own, one of which is killed: nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from bursar.annotation.session import AnnotationSession
from bursar.campaign import GoldAnnotator
from bursar.campaign.decisions import RoundRecord, RoundSelection
from bursar.errors import ConfigError
from bursar.ledger import Answer
from tests.campaign.lives import gold_answer, one_corpus, selected, start  # noqa: F401

CHEAP = {"name": "scikit", "estimator": "naive-bayes"}


class Stopped(BaseException):
    """Whoever listens to a child stops listening, and the child is killed."""


def annotate(live, seed):
    """Three people answer all that is open; one in ten is declined, one in ten answered wrongly and then corrected."""
    wanted = live.wanted()
    answered = []

    def work(name, mine):
        for want in mine:
            luck = np.random.default_rng([seed, *want.id.encode()]).random()
            answer = gold_answer(live, want, name, seconds={"reading": 2.0, "intent": 1.0})
            if luck < 0.1:
                live.recorder.skip(f"skip {want.id}", want.id, "unclear", name)
                continue
            if luck > 0.9:
                live.recorder.record(gold_answer(live, want, name, seconds={"reading": 2.0}))
                for key, slots in (("wrong", []), ("right", answer.labels["slots"])):
                    fix = Answer(want.id, {"slots": slots}, name, role="correction", key=f"{key} {want.id}")
                    live.recorder.record(fix)
            else:
                assert not live.recorder.record(answer).repeated
            assert live.recorder.record(answer).repeated
            answered.append(want.id)

    people = [threading.Thread(target=work, args=(name, wanted[n::3])) for n, name in enumerate(["ann", "bob", "eve"])]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert live.wanted() == []
    return answered


def test_a_live_campaign_of_three_rounds_with_a_killed_training_and_a_raised_budget(tmp_path):
    live = start(tmp_path / "project", learner=CHEAP, budget={"rounds": 2, "per_round": 100, "seed_items": 30})
    answered, told = annotate(live, 0), []

    def stop(what, done):
        if what == "scoring":
            raise Stopped

    before = live.ledger.fingerprint()
    with pytest.raises(Stopped):
        live.next_round(stop)
    assert live.ledger.decision(RoundSelection, 1) is None
    scored = live.ledger.decision(RoundRecord, 0)
    live.close()

    live = AnnotationSession.open(tmp_path / "project")  # as after a server's end
    assert live.ready()
    live.next_round(lambda what, done: told.append(what))
    assert "scoring" in told
    assert live.ledger.decision(RoundRecord, 0) == scored
    assert live.state().round == 1
    assert live.ledger.fingerprint() != before
    for number in (1, 2):
        assert all(live.suggestions(want.id) for want in live.wanted() if want.purpose == "strategy")
        answered += annotate(live, number)
        live.next_round()
    assert live.state().phase == "ended"
    live.settings.change({"budget": {"rounds": 3}}, "lead")
    live.next_round()
    assert live.state().round == 3
    answered += annotate(live, 3)

    asked = [item for number in range(4) for item in selected(live, number)]
    declined = {skip.item for skip in live.ledger.skips()}
    assert len(answered) == len(set(answered))
    assert sorted([*answered, *declined]) == sorted(asked) == sorted(set(asked))
    view, gold = live.ledger.view(), GoldAnnotator(live.corpus)
    assert sorted(view.ids.tolist()) == sorted(answered)
    for at in range(len(view)):
        assert view[at].labels == gold.annotate(view[at].id, ["intent", "slots"])
    first = [a for a in live.ledger.answers() if a.role == "answer"]
    assert len(first) == len(answered)
    paid = sum(3 + len(item.words) + len(item.labels["slots"]) for item in map(view.__getitem__, range(len(view))))
    assert live.state().spent == live.ledger.spent() == paid
    live.close()


def test_a_child_that_cannot_go_on_says_why(tmp_path):
    live = start(tmp_path / "project", learner=CHEAP)
    with pytest.raises(ConfigError, match="still has 12 open items"):
        live.next_round()
    assert live.state().phase == "failed"
    assert "still has 12 open items" in live.state().why
    with pytest.raises(ConfigError, match="nothing would change"):
        live.preview({"budget": {"rounds": 2}})
    live.close()


def test_a_worker_ends_when_whoever_started_it_is_gone(tmp_path):
    """Its input is a pipe whose other end its parent holds; here nobody does, so it ends before it has begun."""
    live = start(tmp_path / "project", learner=CHEAP)
    folder, before = live.folder, live.ledger.fingerprint()
    for want in live.wanted():
        live.recorder.record(gold_answer(live, want))
    live.close()
    command = [sys.executable, "-m", "bursar.annotation.round_worker", str(folder)]
    child = subprocess.run(command, input="", capture_output=True, text=True, timeout=300)
    assert child.returncode == 1
    again = AnnotationSession.open(folder)
    assert again.ledger.fingerprint() != before
    assert again.state().round == 0
    assert again.ready()
    again.close()
