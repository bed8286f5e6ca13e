"""Converts items to Label Studio tasks, and its annotations to labels. Needs no server."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.corpus.formats.characters import WordSpans
from bursar.corpus.formats.label_studio import config_of
from bursar.corpus.formats.label_studio_results import Design, Result, labels_of, results_of
from bursar.errors import DataError, LabelError
from bursar.web.images import png

MODEL = "bursar"  # model version of the suggestions
IMAGE = "image"

Suggestions = Mapping[str, Mapping[str, Any]]  # by task: label and confidence


@dataclass(frozen=True)
class StudioAnnotation:
    """One annotation of one item."""

    id: int
    item: str
    round: int
    person: int  # user id at Label Studio
    labels: Mapping[str, Any] = field(default_factory=dict)
    skipped: bool = False
    problem: str | None = None  # why it cannot be used
    seconds: float | None = None  # in total; not recorded, because the ledger keeps them by task
    created: str = ""
    updated: str = ""


# -- to Label Studio -------------------------------------------------------------------------------------------------
def design_for(corpus: Corpus) -> Design:
    """The labelling design for a corpus's tasks."""
    design = Design.of(corpus.schema)
    return design if corpus.images is None else Design(design.schema, design.ends, text=IMAGE)


def config_for(corpus: Corpus) -> str:
    """The labelling configuration of a corpus's project."""
    return config_of(design_for(corpus), pair=corpus.pairs is not None, image=corpus.images is not None, asked=True)


def task_of(corpus: Corpus, want: ItemRequest, suggestions: Suggestions | None = None) -> dict[str, Any]:
    """A requested item as a task to import, with model suggestions."""
    at = int(corpus.positions([want.id])[0])
    item = corpus[at]
    data: dict[str, Any] = {"id": item.id, "round": want.round, "tasks": [*want.tasks]}
    if item.image is not None:
        data[IMAGE] = "data:image/png;base64," + base64.b64encode(png(item.image)).decode()
    else:
        data["text"] = item.text
    if corpus.pairs is not None:
        data["pair"] = item.pair or ""
    task: dict[str, Any] = {"data": data}
    if suggestions:
        task["predictions"] = [_prediction(corpus, at, want, suggestions)]
    return task


def _prediction(corpus: Corpus, at: int, want: ItemRequest, suggestions: Suggestions) -> dict[str, Any]:
    """The model's labels and its mean confidence."""
    design = design_for(corpus)
    drawn_on = [design.ends[task] for task in want.tasks if task in design.ends]
    shown = [task for task in design.schema if task in {*want.tasks, *drawn_on} and task in suggestions]
    labels = {task: suggestions[task]["label"] for task in shown}
    text, places = corpus[at].text or "", _places(corpus, at)
    try:
        results = results_of(design, labels, text, places)
    except LabelError:  # a relation between spans that the model does not predict cannot be drawn
        spans = {task: label for task, label in labels.items() if task not in design.ends}
        results = results_of(design, spans, text, places)
    sure = [float(suggestions[task]["confidence"]) for task in want.tasks if task in suggestions]
    return {"model_version": MODEL, "score": sum(sure) / len(sure) if sure else 0.0, "result": results}


def _places(corpus: Corpus, at: int) -> WordSpans:
    places: WordSpans = corpus.texts.spans[at].tolist() if corpus.texts is not None else []
    return places


def key_of(task: Mapping[str, Any]) -> tuple[int, str] | None:
    """The round and item of a task; None if Bursar did not create it."""
    match task.get("data"):
        case {"id": str(id), "round": int(round), "tasks": list()}:
            return round, id
    return None


# -- from Label Studio -----------------------------------------------------------------------------------------------
def annotations_in(corpus: Corpus, task: Mapping[str, Any]) -> list[StudioAnnotation]:
    """The annotations of a task, oldest first; empty if Bursar did not create the task."""
    key = key_of(task)
    if key is None:
        return []
    annotations = [entry for entry in task.get("annotations") or () if isinstance(entry, Mapping)]
    found = [_annotation(corpus, task["data"], key, annotation) for annotation in annotations]
    return sorted(found, key=lambda annotation: (annotation.created, annotation.id))


def _annotation(
    corpus: Corpus, data: Mapping[str, Any], key: tuple[int, str], annotation: Mapping[str, Any]
) -> StudioAnnotation:
    round, item = key
    person, seconds = annotation.get("completed_by"), annotation.get("lead_time")
    about: dict[str, Any] = {
        "id": int(annotation["id"]),
        "item": item,
        "round": round,
        "person": int(person["id"] if isinstance(person, Mapping) else person or 0),
        "seconds": float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < float("inf") else None,
        "created": str(annotation.get("created_at") or ""),
        "updated": str(annotation.get("updated_at") or ""),
    }
    if annotation.get("was_cancelled"):
        return StudioAnnotation(**about, skipped=True)
    try:
        return StudioAnnotation(**about, labels=_labels(corpus, data, item, annotation.get("result") or []))
    except LabelError as error:
        return StudioAnnotation(**about, problem=error.message)


def _labels(corpus: Corpus, data: Mapping[str, Any], item: str, results: list[Result]) -> dict[str, Any]:
    """The labels of the requested tasks; spans that end inside a word are widened to whole words."""
    try:
        at = int(corpus.positions([item])[0])
    except DataError:
        raise LabelError("the item is not in this corpus") from None
    text = corpus[at].text or ""
    if corpus.texts is not None and data.get("text") != text:
        raise LabelError("its text at Label Studio differs from the corpus")
    design = design_for(corpus)
    if unknown := [task for task in data["tasks"] if task not in design.schema]:
        raise LabelError(f"unknown task {unknown[0]!r}")
    labels = labels_of(design, results, data["tasks"], text, _places(corpus, at), cut="widen")
    for task, label in labels.items():
        try:
            design.schema[task].encode(label, int(corpus.words[at]))
        except LabelError as error:
            raise LabelError(f"task {task!r}: {error.message}", fix=error.fix) from None
    return labels
