"""A live campaign from round to round: what is trained, what comes next, and what its folder keeps."""

from __future__ import annotations

import pytest

from bursar.annotation.session import AnnotationSession
from bursar.annotation.suggestions import left_for
from bursar.campaign import Run
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundRecord
from bursar.errors import ConfigError, LedgerError
from bursar.ledger import Annotation, Ledger
from tests.campaign.lives import answer_all, gold_answer, live_config, one_corpus, selected, start, train  # noqa: F401
from tests.tiny import WordCounts


# -- rounds ---
def test_suggestions_are_there_before_their_items_and_never_for_what_measures_the_model(tmp_path, monkeypatch):
    live = start(tmp_path / "project", audit={"share": 0.3}, budget={"dev_items": 4})
    assert sorted(want.purpose for want in live.wanted()) == ["dev"] * 4 + ["seed"] * 12
    answer_all(live)
    decide, there = Ledger.decide, []

    def spy(self, *decisions):
        if any(decision.kind == "selection" for decision in decisions):
            there.append((live.folder / "suggestions" / "round-01.json").exists())
        return decide(self, *decisions)

    monkeypatch.setattr(Ledger, "decide", spy)
    train(live)
    assert there == [True]
    for want in live.wanted():
        suggested = live.suggestions(want.id)
        assert set(left_for(live.folder / "suggestions", 1).items.get(want.id, {})) == (
            {"intent", "slots"} if want.purpose == "strategy" else set()
        )
        for task, found in suggested.items():
            live.ledger.check([Annotation(want.id, task, found["label"])])
            assert 0 <= found["confidence"] <= 1
    assert {want.purpose for want in live.wanted()} == {"strategy", "audit"}
    live.close()


def test_development_items_are_annotated_first_and_never_trained_on(tmp_path, monkeypatch):
    live = start(tmp_path / "project", budget={"dev_items": 4})
    aside = {want.id for want in live.wanted() if want.purpose == "dev"}
    fit, seen = WordCounts.fit, []

    def spy(self, annotated, *, dev=None, **more):
        seen.append((set(annotated.ids.tolist()), set(dev.ids.tolist())))
        return fit(self, annotated, dev=dev, **more)

    monkeypatch.setattr(WordCounts, "fit", spy)
    for _ in range(2):
        answer_all(live)
        train(live)
    assert seen
    assert all(dev == aside and not aside & trained for trained, dev in seen)
    assert live.ledger.decision(RoundRecord, 0).dev is not None
    live.close()


def test_a_round_that_is_not_complete_is_not_trained_for(live):
    answer_all(live, leave=1)
    assert not live.ready()
    with pytest.raises(ConfigError, match="still has 1 open items"):
        train(live)


def test_with_ahead_the_next_round_comes_before_the_last_answers_and_leaves_them_open(tmp_path):
    live = start(tmp_path / "project", budget={"ahead": 0.25, "total": 400})
    answer_all(live, leave=4)
    assert not live.ready()
    answer_all(live, leave=3)
    late = live.wanted()
    assert live.ready()
    assert train(live) == "opened"
    assert live.wanted()[:3] == late
    assert not {want.id for want in late} & set(selected(live, 1))
    assert set(live.suggestions(late[0].id)) == {"intent", "slots"}
    committed = live.ledger.spent() + sum(sum(want.estimate.values()) for want in live.wanted())
    assert committed <= 400
    answer_all(live)
    assert len(live.ledger.view()) == 12 + len(selected(live, 1))
    live.close()


def test_with_ahead_the_end_is_decided_when_all_is_answered(tmp_path):
    live = start(tmp_path / "project", budget={"ahead": 0.5, "rounds": 0})
    answer_all(live, leave=1)
    assert live.ready()
    assert train(live) == "waiting"
    assert not live.ready()
    assert live.state().phase == "annotating"
    answer_all(live)
    assert live.ready()
    assert train(live) == "ended"
    assert live.state().phase == "ended"
    assert not live.ready()
    live.close()


class Killed(BaseException):
    """Stands for the end of the training process."""


def test_a_training_that_is_killed_at_any_write_and_run_again_comes_to_the_same_ledger(tmp_path, monkeypatch):
    def play(live, patience):
        writes = {"left": 10**9}

        def dying(method):
            def write(self, *arguments):
                writes["left"] -= 1
                if writes["left"] < 0:
                    raise Killed
                return method(self, *arguments)

            return write

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "decide", dying(Ledger.decide))
            while live.state().phase != "ended":
                for want in live.wanted():
                    if want.id.endswith("7"):
                        live.recorder.skip(f"key {want.id}", want.id, "unclear", "eve")
                answer_all(live)
                for attempt in range(10):
                    writes["left"] = patience + attempt
                    try:
                        train(live)
                        break
                    except Killed:
                        live.refresh()
                writes["left"] = 10**9
        found = live.ledger.fingerprint()
        live.close()
        return found

    short = {"audit": {"share": 0.0}, "budget": {"rounds": 1, "per_round": 60}}
    expected = play(start(tmp_path / "whole", **short), 10**6)
    assert [play(start(tmp_path / f"killed {n}", **short), n) for n in range(3)] == [expected] * 3


# -- the folder ---
def test_a_folder_is_open_once(live):
    with pytest.raises(LedgerError, match="another process"):
        AnnotationSession.open(live.folder)


def test_closed_and_opened_again_it_goes_on_where_it_was(tmp_path):
    live = start(tmp_path / "project")
    answer_all(live, leave=5)
    live.recorder.skip("key", live.wanted()[0].id, "unclear", "eve")
    before, wanted = live.state(), live.wanted()
    live.close()
    again = AnnotationSession.open(tmp_path / "project")
    assert again.wanted() == wanted
    assert [getattr(again.state(), name) for name in ("answered", "skipped", "spent", "budget", "open")] == [
        getattr(before, name) for name in ("answered", "skipped", "spent", "budget", "open")
    ]
    again.close()


def test_a_campaign_priced_by_gold_can_be_gone_on_with_by_people(tmp_path):
    live = start(tmp_path / "project", costs={"pricing": "gold"}, budget={"rounds": 1})
    answer_all(live)
    assert train(live) == "opened"
    answer_all(live)
    assert train(live) == "ended"
    assert live.state().why == "all rounds are done"
    live.close()


def test_the_report_of_a_live_campaign_leaves_declined_items_out_of_the_audit(tmp_path):
    live = start(tmp_path / "project", audit={"share": 0.4})
    answer_all(live)
    train(live)
    audit = [want.id for want in live.wanted() if want.purpose == "audit"]
    live.recorder.skip("key", audit[0], "unclear", "eve")
    answer_all(live)
    train(live)
    found = live.run.result().main
    assert [part.items for part in found.audit] == [len(audit) - 1]
    assert found.skips == 1
    live.close()


def test_items_are_shown_as_json_with_their_words(live):
    want = live.wanted()[0]
    item = live.item(want.id)
    words = [item["text"][a:b] for a, b in item["words"]]
    assert item["kind"] == "text"
    assert words == live.corpus[int(live.corpus.positions([want.id])[0])].words


def test_a_run_names_no_split_that_it_does_not_need(tmp_path):
    """A corpus without test items is a corpus without test items, also when the run is opened again."""
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"text": "word{n % 3} x", "labels": {{"a": "l{n % 2}"}}}}\n' for n in range(30)))
    table = live_config().model_dump(mode="json", include={"costs", "budget", "learner"})
    config = parse_config({"corpus": {"source": str(path)}, **table})
    (tmp_path / "run").mkdir()
    Run(tmp_path / "run", config).pin()
    assert len(Run.open(tmp_path / "run").parts.test) == 0
