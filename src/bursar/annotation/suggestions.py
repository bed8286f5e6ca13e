"""What a round's model leaves for people: suggestions for the items they are asked about, and what it says of the pool.

Both are files in the run's folder that are whole before the round is open. Items that measure the model get no
suggestions: whoever sees the model's answer leans towards it, and the model would be judged by its own words. For the
same reason a suggestion that is hardly better than a guess is not offered: ``how_sure`` is the rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.pool_scoring import Scored
from bursar.campaign.round_plan import Offer
from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.corpus.formats.format import replacing, replacing_bytes
from bursar.learners import Learner
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import AnyBeliefs, Task
from bursar.uncertainty import above_chance

MEASURING = ("audit", "dev")  # what is asked about to judge the model by
WORDS = ((0.8, "very likely"), (0.5, "likely"), (0.25, "possible"))  # from so far above chance on

Suggestions = Mapping[str, Mapping[str, Mapping[str, Any]]]  # item to task to its label and confidence


@dataclass(frozen=True)
class Left:
    """What a model left for a round."""

    round: int
    model: str | None = None  # by which it is found again
    measure: str | None = None  # of the pool's confidences; None where there are none
    items: Suggestions = field(default_factory=dict)


def leave(
    folder: Path, corpus: Corpus, offer: Offer, asked: tuple[ItemRequest, ...], learner: Learner, model: str
) -> None:
    """Write down what a model says of the items that a round will ask for, of those still open, and of the pool."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = offer.items[offer.chosen.items]
    still = corpus.positions([want.id for want in asked if want.purpose not in MEASURING])
    if offer.measure is not None:
        _write_pool(folder / _pool(offer.round), offer.items, offer.scored)
    items = suggestions_for(learner, corpus.take(np.unique(np.concatenate([chosen, still]))))
    about = {"round": offer.round, "model": model, "measure": offer.measure, "items": items}
    with replacing(folder / f"round-{offer.round:02}.json") as file:
        file.write(json.dumps(about, ensure_ascii=False))
    for old in folder.glob("pool-*.npz"):  # the round before is open until this one is
        if old.name not in (_pool(offer.round), _pool(offer.round - 1)):
            old.unlink()


def left_for(folder: Path, round: int) -> Left:
    """What was left for a round; nothing where no model came before it."""
    with suppress(OSError, ValueError, TypeError):
        return Left(**json.loads((folder / f"round-{round:02}.json").read_text(encoding="utf-8")))
    return Left(round)


def how_sure(confidence: float) -> str | None:
    """How sure the model is, in words; ``None`` where its suggestion is too close to a guess to be offered.

    Confidence counts from a guess among the task's labels, 0, to certainty, 1: see ``above_chance``. A quarter of that
    way is the least: a probability of 0.63 for one of two labels, of 0.33 for one of ten, of 0.25 for one of hundreds.

    >>> [how_sure(confidence) for confidence in (0.1, 0.3, 0.6, 0.9)]
    [None, 'possible', 'likely', 'very likely']
    """
    return next((word for least, word in WORDS if confidence >= least), None)


def offered(said: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The suggestions for one item, by task, that are worth offering, each with how sure the model is in words."""
    words = {task: how_sure(about["confidence"]) for task, about in said.items()}
    return {task: {**about, "sure": words[task]} for task, about in said.items() if words[task] is not None}


def suggestions_for(learner: Learner, items: Corpus) -> dict[str, dict[str, dict[str, Any]]]:
    """Of every item and task the label that the model would give, and how far that is above chance, from 0 to 1."""
    if not len(items):
        return {}
    beliefs = learner.predict_proba(items.unlabelled())
    found: dict[str, dict[str, dict[str, Any]]] = {item: {} for item in items.ids.tolist()}
    for name, task in learner.tasks.items():
        sure = confidence_of(learner.tasks, beliefs, name).tolist()
        for at, rows in enumerate(task.decode(beliefs[name])):
            found[items.ids[at]][name] = {"label": task.value(rows), "confidence": round(sure[at], 4)}
    return found


def confidence_of(tasks: Mapping[str, Task], beliefs: Mapping[str, AnyBeliefs], name: str) -> FloatArray:
    """How far above chance a model's answers to one task are: (items,), from 0, a guess, to 1, certainty.

    That there are no relations where fewer than two spans were found to link is as sure as the spans are.
    """
    task, partner = tasks[name], tasks[name].partner(tasks)
    own = above_chance(beliefs[name], task.may_be_empty)
    if partner is None:
        return own
    return np.where(beliefs[name].units > 0, own, confidence_of(tasks, beliefs, partner))


# -- the pool ----------------------------------------------------------------------------------------------------------
def pool_left_for(folder: Path, round: int, corpus: Corpus) -> tuple[IntArray, Scored] | None:
    """The items that a round was chosen from, and what its model said of them; ``None`` if that is not there."""
    try:
        with np.load(folder / _pool(round), allow_pickle=False) as file:
            guesses = {
                name: Ragged(file[f"values {number}"], file[f"offsets {number}"])
                for number, name in enumerate(corpus.schema)
            }
            return file["items"], Scored(file["confidence"], guesses)
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
