"""Items of the report: the text with predicted spans marked, and the prediction for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bursar.campaign.decisions import ConfidenceExample
from bursar.corpus import Corpus
from bursar.tasks import Tagging, Task

MOST_CHARACTERS = 420  # of a text that are shown
MOST_CHIPS = 12

Offsets = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class TextPiece:
    """A part of a text: plain, marked as a span, or a word with its tag."""

    text: str
    span: str = ""
    tag: str = ""


@dataclass(frozen=True)
class TaskPrediction:
    """The prediction for one task, and its confidence."""

    task: str
    kind: str
    colour: int  # of the task, from 1
    confidence: float
    chips: tuple[str, ...]
    more: int  # chips left out
    marked: int | None  # number of labels marked in the text; ``None`` if they are chips


@dataclass(frozen=True)
class ShownItem:
    """An item of the report."""

    id: str
    pieces: tuple[TextPiece, ...]
    pair: str | None
    left_out: int  # characters
    marks: int  # the colour of the task whose spans are marked
    predictions: tuple[TaskPrediction, ...]


def shown_item(example: ConfidenceExample, corpus: Corpus) -> ShownItem:
    """An example item of a round with its text."""
    at = int(corpus.positions([example.id])[0])
    item = corpus[at]
    offsets = [(a, b) for a, b in corpus.texts.spans[at].tolist()] if corpus.texts is not None else []
    marked = _marked(corpus.schema)
    text = item.text or ""
    end = len(text)
    if end > MOST_CHARACTERS:  # after the last whole word
        end = max((last for _, last in offsets if last <= MOST_CHARACTERS), default=MOST_CHARACTERS)
    marked_task = corpus.schema[marked] if marked is not None else None
    pieces = _pieces(text[:end], offsets, marked_task, example.guess.get(marked or "")) if text else []
    predictions, colours = [], {name: k % 5 + 1 for k, name in enumerate(corpus.schema)}
    for name, task in corpus.schema.items():
        guess, in_text = example.guess[name], name == marked and bool(text)
        chips = [] if in_text else task.show(guess, item.words)
        shown, more = tuple(chips[:MOST_CHIPS]), max(0, len(chips) - MOST_CHIPS)
        confidence = min(1.0, max(0.0, float(example.confidence[name])))
        labels = len(guess) if in_text else None
        predictions.append(TaskPrediction(name, task.kind, colours[name], confidence, shown, more, labels))
    colour = colours[marked] if marked is not None else 1
    pair = item.pair if item.pair is None or len(item.pair) <= MOST_CHARACTERS else item.pair[:MOST_CHARACTERS] + "…"
    return ShownItem(item.id, tuple(pieces), pair, len(text) - end, colour, tuple(predictions))


def _marked(schema: Mapping[str, Task]) -> str | None:
    """The task whose labels are marked in the text: the first with spans, else one that tags every word."""
    taggings = sorted((t for t in schema.values() if isinstance(t, Tagging)), key=lambda task: task.every_word)
    return taggings[0].name if taggings else None


def _pieces(text: str, offsets: Offsets, task: Task | None, value: Any) -> list[TextPiece]:
    """Split a text at its marked spans. Of two overlapping spans, the first is marked."""
    if task is None or not value:
        return [TextPiece(text)]
    pieces, at = [], 0
    every_word = isinstance(task, Tagging) and task.every_word
    for first, last, label in sorted(task.marks(value).spans, key=lambda span: span[:2]):
        if last > len(offsets):
            break
        start, end = offsets[first][0], offsets[last - 1][1]
        if start < at:
            continue
        if end > len(text):
            break
        if start > at:
            pieces.append(TextPiece(text[at:start]))
        pieces.append(TextPiece(text[start:end], tag=label) if every_word else TextPiece(text[start:end], span=label))
        at = end
    if at < len(text):
        pieces.append(TextPiece(text[at:]))
    return pieces
