"""Labels of a whole project: whose they are, which model gives the rest, and what its errors are counted on."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from bursar.annotation.labelled import known_labels, newest_model, predict_project
from bursar.annotation.session import AnnotationSession
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import AuditPredictions
from bursar.ledger import Answer
from bursar.ledger.records import ADJUDICATION, CORRECTION
from tests.campaign.lives import answer_all, gold_answer, one_corpus, start, train  # noqa: F401

AUDIT = {"share": 0.3, "shadow": False}


@pytest.fixture
def live(tmp_path):
    """Two rounds are answered, and a third one is open."""
    session = start(tmp_path / "run", audit=AUDIT, budget={"rounds": 4})
    for _ in range(3):
        answer_all(session)
        train(session)
    yield session
    session.close()


def test_errors_are_counted_on_audit_items_as_they_were_predicted_before_they_were_labelled(live):
    found, model = predict_project(live.folder)
    bought = live.ledger.bought(purposes=("audit",))
    decided = [predicted for predicted in live.ledger.decisions(AuditPredictions) if predicted.round < 3]
    assert sorted(bought) == sorted(item for predicted in decided for item in predicted.ids)
    known = model.about.held_out["intent"]
    assert known.source == "audit items, each predicted before it was labelled"
    assert len(known) == len(bought) > 4
    expected = [
        guess == live.corpus[int(live.corpus.positions([item])[0])].labels["intent"]
        for predicted in decided
        for item, guess in zip(predicted.ids, predicted.model["intent"], strict=True)
    ]
    assert sorted(known.right.tolist()) == sorted(expected)
    assert found.held_out["intent"] is known


def test_an_open_slice_does_not_count_as_its_easy_items_may_be_answered_first(live):
    before = len(newest_of(live).about.held_out["intent"])
    (want, *_) = [want for want in live.wanted() if want.purpose == "audit"]
    live.recorder.record(gold_answer(live, want))
    assert len(newest_of(live).about.held_out["intent"]) == before


def newest_of(live):
    campaign = Campaign(live.config, live.folder, parts=live.parts, lock=False)
    with closing(campaign):
        return newest_model(campaign)


def test_the_newest_model_is_the_one_that_chose_the_open_round(live):
    model = newest_of(live)
    assert model.round == 2
    assert model.about.items == len(live.ledger.view())
    before = sorted(path.name for path in (live.folder / "models").iterdir())
    live.recorder.record(gold_answer(live, live.wanted()[0]))
    again = newest_of(live)  # the answer since then does not start a training
    assert (again.round, again.about.items) == (2, model.about.items)
    assert sorted(path.name for path in (live.folder / "models").iterdir()) == before


def test_the_newest_correction_or_adjudication_says_whose_label_it_is(live):
    first, second = live.ledger.bought()[:2]
    gold = live.corpus[int(live.corpus.positions([first])[0])].labels
    live.recorder.record(Answer(first, {"intent": gold["intent"]}, "Eve", role=CORRECTION, key="c1 long enough"))
    live.recorder.record(Answer(second, {"intent": gold["intent"]}, "Zoe", role=ADJUDICATION, key="a1 long enough"))
    found, _ = predict_project(live.folder)
    by = {prediction.id: prediction.by for prediction in found}
    assert by[first] == {"intent": "person Eve", "slots": "person ann"}
    assert by[second] == {"intent": "person Zoe", "slots": "person ann"}
    assert found[int(found.corpus.positions([second])[0])].labels["intent"] == gold["intent"]


def test_labels_that_the_pool_came_with_stay_hidden_and_those_of_other_splits_count(live):
    corpus = live.corpus
    others = np.arange(len(corpus)) % 5 == 0
    codes = np.where(others, 1, 0).astype(np.int16)
    parts = replace(live.parts, corpus=replace(corpus, splits=("train", "test"), split_codes=codes))
    items, people = known_labels(parts, live.ledger, "train")
    bought = np.isin(items.ids.tolist(), live.ledger.view().ids.tolist())
    assert np.array_equal(items.labels["intent"].present, others | bought)
    assert {item for item, _ in people} == set(live.ledger.view().ids.tolist())


def test_an_older_ledger_that_does_not_say_how_sure_the_model_was_has_no_held_out_items(live, monkeypatch):
    decisions = live.ledger.__class__.decisions

    def older(self, kind):
        found = decisions(self, kind)
        return [one.model_copy(update={"sure": None}) for one in found] if kind is AuditPredictions else found

    monkeypatch.setattr(live.ledger.__class__, "decisions", older)
    found, model = predict_project(live.folder)
    assert not model.about.held_out
    assert all("no held-out items" in str(about) for about in found.accepted())


def test_it_may_run_while_the_project_is_open_elsewhere(live):
    with pytest.raises(Exception, match="another process"):
        AnnotationSession.open(live.folder)
    assert len(predict_project(live.folder)[0]) == len(live.corpus)
