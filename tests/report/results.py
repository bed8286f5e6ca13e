"""Small results and corpora such as a run gives, made by hand: no model is trained for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bursar.campaign.config import parse_config
from bursar.campaign.results import SCHEMA_VERSION, RunResult
from bursar.corpus import Corpus, CorpusBuilder

TEXTS = ("wake me at seven", "play some jazz in Paris", "call Anna now")

# A schema entry and a label of every kind; each text above has at least three words.
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "intent": ({"kind": "classification", "labels": ["alarm", "music"]}, "music"),
    "slots": ({"kind": "tagging", "labels": ["time", "genre"]}, [[1, 3, "genre"]]),
    "tree": ({"kind": "parsing", "labels": ["root", "obj"]}, [[0, "root"], [1, "obj"], [2, "obj"]]),
    "links": (
        {"kind": "relations", "labels": ["used-for"], "entity_types": ["method", "task"]},
        [[[0, 1, "method"], [2, 3, "task"], "used-for"]],
    ),
    "urgency": ({"kind": "regression"}, 0.25),
}
METRICS = {"intent": "accuracy", "slots": "f1", "tree": "las", "links": "f1", "urgency": "pearson"}
PAIR = ("intent", "slots")


def make_corpus(tasks: Sequence[str] = PAIR, texts: Sequence[str | None] = TEXTS) -> Corpus:
    """Items u1, u2, … with these texts, or with images where a text is ``None``."""
    builder = CorpusBuilder({name: KINDS[name][0] for name in tasks})
    for number, text in enumerate(texts, start=1):
        image = np.zeros((2, 2), np.uint8) if text is None else None
        builder.add(f"u{number}", text=text, image=image)
    return builder.build()


def make_result(
    arms: Mapping[str, Sequence[float]] | None = None,
    *,
    tasks: Sequence[str] = PAIR,
    money: Sequence[int] = (100, 200, 300, 400),
    items: Sequence[str] = ("u1", "u2", "u3"),
    test: bool = True,
    audit: int = 0,
    savings: Mapping[str, Any] | None = None,
    ended: str | None = "all rounds are done",
    confidence: bool = True,
    reliability: Mapping[str, Any] | None = None,
    guesses: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    edit: Callable[[dict[str, Any]], None] = lambda found: None,
) -> RunResult:
    """A result whose tasks all have the same given scores, a round each, and that spends ``money`` in all by then.

    Every item costs 10: 4 for reading and 6 shared by the tasks. ``audit`` is how many items each slice holds;
    ``reliability`` is what the strategy's last round carries under that name; ``edit`` changes the JSON.
    """
    arms = {"MT-AVG": (0.4, 0.6, 0.7, 0.8)} if arms is None else arms
    strategy, *others = arms
    settings = parse_config(
        {
            "name": "pilot",
            "strategy": {"name": strategy},
            "compare": others,
            "budget": {"seed_items": 10, "per_round": 100.0, "rounds": len(money) - 1},
            "audit": {"share": 0.2 if audit else 0.0},
            **(config or {}),
        }
    )
    guesses = guesses or {name: KINDS[name][1] for name in tasks}
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": settings.name,
        "config": settings.model_dump(mode="json"),
        "versions": {"bursar": "0.1.0", "python": "3.11.7"},
        "strategy": strategy,
        "tasks": {name: {"kind": KINDS[name][0]["kind"], "metric": METRICS[name], "labels": 2} for name in tasks},
        "corpus": {"source": "builtin", "pool": 500, "dev": 20, "test": 80 if test else 0},
        "arms": {
            arm: _arm(scores, tasks, money, test, audit if arm == strategy else 0, ended)
            | {
                "savings": {"known": True} | dict(savings) if savings is not None and arm == strategy else None,
                "strategies": [arm],
                "confidence": _confidence(len(scores), tasks, items, guesses)
                if confidence and arm == strategy and arm != "RANDOM"
                else [],
            }
            for arm, scores in arms.items()
        },
        "comparison": _areas(arms, tasks) if test and all(len(scores) > 1 for scores in arms.values()) else {},
    }
    if reliability is not None:
        found["arms"][strategy]["rounds"][-1]["reliability"] = dict(reliability)
    edit(found)
    return RunResult.from_json(json.dumps(found))


def make_items(count: int, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """So many selected items."""
    return [{"id": f"i{k}", "tasks": list(tasks), "purpose": "strategy", "estimate": {}} for k in range(count)]


def make_reliability(*bins: tuple[int, float, float], calibration: float | None = None) -> dict[str, Any]:
    """The reliability of a task from the count, mean confidence and mean accuracy of each bin; the edges are even.

    The calibration error is that of the bins unless it is given; the overconfidence error that of items like their bin.
    """
    counts, said, right = (list(column) for column in zip(*bins, strict=True))
    items = sum(counts)
    filled = [(n, c, a) for n, c, a in bins if n]
    error = sum(n * abs(c - a) for n, c, a in filled) / items if items else 0.0
    over = sum(n * c * max(c - a, 0) for n, c, a in filled) / items if items else 0.0
    return {
        "edges": [k / len(bins) for k in range(len(bins) + 1)],
        "counts": counts,
        "confidence": [c if n else None for n, c in zip(counts, said, strict=True)],
        "accuracy": [a if n else None for n, a in zip(counts, right, strict=True)],
        "overconfidence": over,
        "calibration": error if calibration is None else calibration,
    }


def _arm(
    scores: Sequence[float], tasks: Sequence[str], money: Sequence[int], test: bool, audit: int, ended: str | None
) -> dict[str, Any]:
    rounds, spending, selections, slices = [], [], [], []
    for number, score in enumerate(scores):
        spent = money[number]
        paid = spent - (money[number - 1] if number else 0)
        rounds.append(
            {
                "round": number,
                "spent": spent,
                "items": spent // 10,
                "labels": dict.fromkeys(tasks, spent // 10),
                "test": {name: {METRICS[name]: score} for name in tasks} if test else {},
                "dev": score,
            }
        )
        bought = {"audit": 10 * audit, "strategy": paid - 10 * audit} if number else {"seed": paid}
        for purpose, amount in bought.items():
            if amount:
                spending += _lines(number, purpose, amount // 10, tasks)
        selections.append({"round": number, "budget": paid, "items": make_items(paid // 10, tasks)})
        if number and audit:
            interval = {"score": scores[number - 1], "low": scores[number - 1] - 0.1, "high": scores[number - 1] + 0.1}
            before = money[number - 1]
            slices.append(
                {"round": number - 1, "spent": before, "items": audit, "scores": dict.fromkeys(tasks, interval)}
            )
    return {
        "rounds": rounds,
        "spending": spending,
        "spent": money[len(scores) - 1] if scores else 0,
        "selections": selections,
        "audit": slices,
        "ended": ended,
    }


LINE = ("round", "purpose", "what", "estimate", "actual", "items", "answers")  # of spending


def _lines(round: int, purpose: str, items: int, tasks: Sequence[str]) -> list[dict[str, Any]]:
    own = 6 * items // len(tasks)
    amounts = {"reading": 10 * items - own * len(tasks)} | dict.fromkeys(tasks, own)
    return [
        dict(zip(LINE, (round, purpose, what, amount, amount, items, items), strict=True))
        for what, amount in amounts.items()
    ]


def _confidence(
    rounds: int, tasks: Sequence[str], items: Sequence[str], guesses: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """All rounds but the last choose something, each a little surer than the one before."""
    found = []
    for number in range(max(0, rounds - 1)):
        examples = [
            {"id": id, "guess": dict(guesses), "confidence": dict.fromkeys(tasks, round(0.1 + 0.1 * number, 4))}
            for id in items
        ]
        pool, chosen = [0] * 20, [0] * 20
        pool[4 + number], pool[10], chosen[4 + number] = 30, 10, 6
        found.append(
            {
                "round": number,
                "bins": 20,
                "pool": dict.fromkeys(tasks, pool),
                "chosen": dict.fromkeys(tasks, chosen),
                "mean": dict.fromkeys(tasks, 0.3),
                "least": examples,
                "most": examples[::-1],
            }
        )
    return found


def _areas(arms: Mapping[str, Sequence[float]], tasks: Sequence[str]) -> dict[str, Any]:
    """The mean score along each curve, for rounds that cost the same."""
    means = {arm: float(np.mean([(a + b) / 2 for a, b in pairwise(s)])) for arm, s in arms.items()}
    return {arm: {"area": dict.fromkeys(tasks, mean), "mean": mean} for arm, mean in means.items()}
