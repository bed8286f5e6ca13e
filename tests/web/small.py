"""A small project: forty short texts, classification and spans, and a learner that trains in a moment."""

from __future__ import annotations

import json
from pathlib import Path

HOSTILE = "<script>hacked=1</script><img src=x onerror=hacked=1> & 😀 \u202e\u0000".replace("\u0000", "")
INTENTS = ("alarm", "music")
SLOTS = ("time", "artist")


def text_of(number: int) -> str:
    if number == 0:
        return HOSTILE
    return f"wake me at {number} please" if number % 2 else f"play song {number} by queen"


def labels_of(number: int) -> dict:
    """What is right about an item: odd ones are alarms with a time, even ones music with an artist."""
    if number == 0:
        return {"intent": "music", "slots": []}
    if number % 2:
        return {"intent": "alarm", "slots": [[3, 4, "time"]]}
    return {"intent": "music", "slots": [[4, 5, "artist"]]}


def number_of(item: str) -> int:
    return int(item.removeprefix("u"))


def right(item: str) -> dict:
    """What is right about an item, by its id."""
    return labels_of(number_of(item))


def write_corpus(path: Path, items: int = 40) -> Path:
    tasks = {
        "intent": {"kind": "classification", "labels": list(INTENTS)},
        "slots": {"kind": "tagging", "labels": list(SLOTS)},
    }
    lines = [{"bursar": 1, "tasks": tasks}]
    lines += [{"id": f"u{number}", "split": "train", "text": text_of(number)} for number in range(items)]
    lines += [
        {"id": f"d{number}", "split": "dev", "text": text_of(number), "labels": labels_of(number)}
        for number in range(1, 7)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def make_project(folder: Path, items: int = 40, **changes) -> Path:
    """A project in a folder, before its first answer."""
    from bursar.campaign.config import parse_config
    from bursar.campaign.runs import Run

    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "name": "Small project",
        "corpus": {"source": str(write_corpus(folder / "corpus.jsonl", items)), "test": None},
        "costs": {"pricing": "predicted", "currency": "€", "unit": 0.01, "reading": {"per_word": 0.01}},
        "budget": {"seed_items": 8, "per_round": 0.8, "rounds": 2},
        "strategy": {"name": "MT-AVG"},
        "learner": {"name": "scikit", "estimator": "naive-bayes"},
        "audit": {"share": 0.0, "shadow": False},
    }
    table["costs"] |= {"intent": {"per_item": 0.03}, "slots": {"per_span": 0.01}}
    for section, values in changes.items():
        table[section] = {**table[section], **values} if isinstance(table.get(section), dict) else values
    Run(folder, parse_config(table)).pin()
    return folder
