"""Stores a model's suggestions for the items of a round, and its scores of the pool.

Both files are written to the run's folder before the round is opened. Items that evaluate the model get no suggestions:
people lean towards suggestions, so the evaluation would be biased. For the same reason, suggestions close to chance are
not shown; see ``how_sure``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.campaign import Campaign
from bursar.campaign.pool_scoring import Scored
from bursar.campaign.round_planner import Offer, ScoredItems
from bursar.corpus import Corpus
from bursar.corpus.formats.format import replacing, replacing_bytes
from bursar.learners import Learner
from bursar.ragged import IntArray, Ragged
from bursar.uncertainty import confidence_of

MEASURING = ("audit", "dev")  # purposes of items that evaluate the model
WORDS = ((0.8, "very likely"), (0.5, "likely"), (0.25, "possible"))  # by minimum distance from chance

Suggestions = Mapping[str, Mapping[str, Mapping[str, Any]]]  # item to task to its label and confidence


@dataclass(frozen=True)
class Left:
    """The stored output of a model for a round."""

    round: int
    model: str | None = None  # name under which it is saved
    measure: str | None = None  # of the pool's confidences; None where there are none
    items: Suggestions = field(default_factory=dict)


def leave(folder: Path, campaign: Campaign, offer: Offer, learner: Learner) -> None:
    """Store the model's suggestions for the new and the open items of a round, and its scores of the pool."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, model = campaign.corpus, str(campaign.models.newest)
    chosen = offer.items[offer.chosen.items]
    still = corpus.positions([want.id for want in campaign.state.open() if want.purpose not in MEASURING])
    if offer.measure is not None:
        _write_pool(folder / _pool(offer.round), offer.items, offer.scored)
    items = suggestions_for(learner, corpus.take(np.unique(np.concatenate([chosen, still]))))
    about = {"round": offer.round, "model": model, "measure": offer.measure, "items": items}
    with replacing(folder / f"round-{offer.round:02}.json") as file:
        file.write(json.dumps(about, ensure_ascii=False))
    for old in folder.glob("pool-*.npz"):  # keep those of the previous round, which is still open
        if old.name not in (_pool(offer.round), _pool(offer.round - 1)):
            old.unlink()


def left_for(folder: Path, round: int) -> Left:
    """The stored output for a round; empty if there was no model before it."""
    with suppress(OSError, ValueError, TypeError):
        return Left(**json.loads((folder / f"round-{round:02}.json").read_text(encoding="utf-8")))
    return Left(round)


def how_sure(confidence: float) -> str | None:
    """The confidence in words; ``None`` if the suggestion is too close to chance to be shown.

    Confidence ranges from chance, 0, to certainty, 1: see ``above_chance``. The minimum is a quarter: a probability of
    0.63 for two labels, of 0.33 for ten, of 0.25 for hundreds.
    """
    return next((word for least, word in WORDS if confidence >= least), None)


def offered(said: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The suggestions to show for one item, by task, with their confidence in words."""
    words = {task: how_sure(about["confidence"]) for task, about in said.items()}
    return {task: {**about, "sure": words[task]} for task, about in said.items() if words[task] is not None}


def suggestions_for(learner: Learner, items: Corpus) -> dict[str, dict[str, dict[str, Any]]]:
    """The model's label for every item and task, with its confidence from chance (0) to certainty (1)."""
    if not len(items):
        return {}
    beliefs = learner.predict_proba(items.unlabelled())
    found: dict[str, dict[str, dict[str, Any]]] = {item: {} for item in items.ids.tolist()}
    for name, task in learner.tasks.items():
        sure = confidence_of(learner.tasks, beliefs, name).tolist()
        for at, rows in enumerate(task.decode(beliefs[name])):
            found[items.ids[at]][name] = {"label": task.value(rows), "confidence": round(sure[at], 4)}
    return found


def pool_left_for(folder: Path, round: int, corpus: Corpus) -> ScoredItems | None:
    """The candidates of a round and their scores; ``None`` if they are not stored."""
    try:
        with np.load(folder / _pool(round), allow_pickle=False) as file:
            rows = [Ragged(file[f"values {at}"], file[f"offsets {at}"]) for at in range(len(corpus.schema))]
            scored = Scored(file["confidence"], dict(zip(corpus.schema, rows, strict=True)))
            return ScoredItems(file["items"], scored)
    except (OSError, ValueError, KeyError):
        return None


def _write_pool(path: Path, items: IntArray, scored: Scored) -> None:
    arrays: dict[str, Any] = {"items": items, "confidence": scored.confidence}
    for number, rows in enumerate(scored.guesses.values()):
        arrays |= {f"values {number}": rows.values, f"offsets {number}": rows.offsets}
    with replacing_bytes(path) as file:
        np.savez(file, **arrays)


def _pool(round: int) -> str:
    return f"pool-{round:02}.npz"
