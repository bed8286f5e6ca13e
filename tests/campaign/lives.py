"""Small live campaigns: the built-in corpus, people who know the gold labels, training in this process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bursar.annotation.round_worker import next_round
from bursar.annotation.session import AnnotationSession
from bursar.campaign import GoldAnnotator, Run, splits
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.splits import load_parts
from bursar.ledger import Answer
from bursar.simulation import assistant_corpus

remembered = cache(assistant_corpus)


@pytest.fixture(autouse=True)
def one_corpus(monkeypatch):
    """The built-in corpus is made once, however often a run is opened."""
    monkeypatch.setattr(splits, "assistant_corpus", remembered)


def live_config(**changes):
    table = {
        "name": "small live",
        "tasks": ["intent", "slots"],
        "corpus": {"items": 200, "dev": None, "test": None},
        "costs": {"pricing": "predicted"},
        "budget": {"seed_items": 12, "per_round": 120, "rounds": 2},
        "strategy": {"name": "MT-AVG"},
        "learner": {"name": "word-counts"},
    }
    for section, values in changes.items():
        table[section] = {**table[section], **values} if isinstance(table.get(section), dict) else values
    return parse_config(table)


def start(folder: Path, **changes) -> AnnotationSession:
    """A project in a folder, open."""
    folder.mkdir(parents=True, exist_ok=True)
    config = live_config(**changes)
    Run(folder, config, load_parts(config)).pin()
    return AnnotationSession.open(folder)


def gold_answer(live: AnnotationSession, want, annotator="ann", **more) -> Answer:
    return Answer(want.id, GoldAnnotator(live.corpus).annotate(want.id, want.tasks), annotator, **more)


def answer_all(live: AnnotationSession, annotator="ann", leave=0, **more) -> None:
    """Answer what is open, but for the last few."""
    wanted = live.wanted()
    for want in wanted[: len(wanted) - leave]:
        live.recorder.record(gold_answer(live, want, annotator, **more))


def train(live: AnnotationSession, tell=lambda event: None) -> str:
    """The next round, in this process, which knows the tests' own learner."""
    outcome = next_round(live.folder, tell)
    live.refresh()
    return outcome


def selected(live: AnnotationSession, round: int) -> list[str]:
    return [item.id for item in live.ledger.decision(RoundSelection, round).items]
