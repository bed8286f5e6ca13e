"""Compute the current labels from a ledger's entries, and a corpus with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from bursar.corpus import Corpus, Labels
from bursar.ledger.records import ADJUDICATION, ANSWER, CORRECTION, OVERLAP
from bursar.ragged import Ragged, offsets_of


def current_labels(entries: Iterable[tuple[str, str, str | None, str]]) -> dict[tuple[str, str], str]:
    """The current label of each item and task, given all (item, task, label, role) in order of recording.

    It is the newest adjudication or correction, if there is one, else the newest answer. Overlap answers never count.
    Retracting a label (``None``) retracts all before it, so that the next answer counts.
    """
    held: dict[tuple[str, str], str] = {}
    settled = set()
    for item, task, label, role in entries:
        place = item, task
        if role == OVERLAP or (role == ANSWER and place in settled):
            continue
        settled.discard(place)
        held.pop(place, None)
        if label is not None:
            held[place] = label
            if role in (ADJUDICATION, CORRECTION):
                settled.add(place)
    return held


def corpus_with_labels(corpus: Corpus, held: Mapping[tuple[str, str], str]) -> Corpus:
    """The items that have any of these labels (JSON, by item and task), with these labels only."""
    chosen = corpus.take(np.unique(corpus.positions(dict.fromkeys(item for item, _ in held))))
    return chosen.with_labels({name: _column(chosen, name, held) for name in chosen.schema})


def _column(items: Corpus, name: str, held: Mapping[tuple[str, str], str]) -> Labels:
    task = items.schema[name]
    vocabulary = task.closed_vocabularies()
    texts = [held.get((id, name)) for id in items.ids.tolist()]
    sized = zip(texts, items.words.tolist(), strict=True)
    rows = [[] if text is None else task.rows(json.loads(text), words, vocabulary) for text, words in sized]
    flat = np.array([row for item in rows for row in item], dtype=task.dtype).reshape(-1, task.width)
    present = np.array([text is not None for text in texts], dtype=bool)
    return Labels(present, Ragged(flat, offsets_of([len(item) for item in rows])))
