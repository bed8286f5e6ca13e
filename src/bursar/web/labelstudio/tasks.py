"""Items as Label Studio's tasks, and its annotations as what somebody said of an item. No server is needed here."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.corpus.formats.characters import Places
from bursar.corpus.formats.label_studio_config import config_of
from bursar.corpus.formats.label_studio_results import Design, Result, design_of, labels_of, results_of
from bursar.errors import DataError, LabelError
from bursar.web.images import png

MODEL = "bursar"  # the version that suggestions are shown under: a project shows those of one
IMAGE = "image"

Suggestions = Mapping[str, Mapping[str, Any]]  # by task: a label, and how sure the model is of it


@dataclass(frozen=True)
class Said:
    """What one annotation says of one item."""

    annotation: int
    item: str
    round: int
    person: int  # a user's number at Label Studio
    labels: Mapping[str, Any] = field(default_factory=dict)
    skipped: bool = False
    problem: str | None = None  # why it cannot be used
    seconds: float | None = None  # that it took in all: Label Studio does not know what for
    created: str = ""
    updated: str = ""


# -- there ------------------------------------------------------------------------------------------------------------
def design_for(corpus: Corpus) -> Design:
    """How a corpus's tasks are asked about."""
    design = design_of(corpus.schema)
    return design if corpus.images is None else Design(design.schema, design.ends, text=IMAGE)


def config_for(corpus: Corpus) -> str:
    """The labelling configuration of a corpus's project."""
    return config_of(design_for(corpus), pair=corpus.pairs is not None, image=corpus.images is not None, asked=True)


def task_of(corpus: Corpus, want: ItemRequest, suggestions: Suggestions | None = None) -> dict[str, Any]:
    """What an item is asked about, as a task to import, with what a model suggests.

    >>> from bursar.corpus import CorpusBuilder
    >>> builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["alarm", "music"]}})
    >>> builder.add("u1", text="wake me")
    >>> task_of(builder.build(), ItemRequest("u1", ("intent",), "seed", {}))
    {'data': {'id': 'u1', 'round': 0, 'tasks': ['intent'], 'text': 'wake me'}}
    """
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
    """What the model would answer, and how sure it is on average."""
    design = design_for(corpus)
    drawn_on = [design.ends[task] for task in want.tasks if task in design.ends]
    shown = [task for task in design.schema if task in {*want.tasks, *drawn_on} and task in suggestions]
    labels = {task: suggestions[task]["label"] for task in shown}
    text, places = corpus[at].text or "", _places(corpus, at)
    try:
        results = results_of(design, labels, text, places)
    except LabelError:  # relations between what the model does not take for entities: those are not drawn
        results = results_of(design, {t: label for t, label in labels.items() if t not in design.ends}, text, places)
    sure = [float(suggestions[task]["confidence"]) for task in want.tasks if task in suggestions]
    return {"model_version": MODEL, "score": sum(sure) / len(sure) if sure else 0.0, "result": results}


def _places(corpus: Corpus, at: int) -> Places:
    places: Places = corpus.texts.spans[at].tolist() if corpus.texts is not None else []
    return places


def key_of(task: Mapping[str, Any]) -> tuple[int, str] | None:
    """The round and item that a task is about; nothing where it is not one of ours."""
    match task.get("data"):
        case {"id": str(id), "round": int(round), "tasks": list()}:
            return round, id
    return None


# -- and back ---------------------------------------------------------------------------------------------------------
def annotations_in(corpus: Corpus, task: Mapping[str, Any]) -> list[Said]:
    """What the annotations of a task say, the oldest first; nothing where the task is not one of ours."""
    key = key_of(task)
    annotations = [a for a in task.get("annotations") or () if isinstance(a, Mapping)]
    if key is None:
        return []
    found = [_said(corpus, task["data"], key, annotation) for annotation in annotations]
    return sorted(found, key=lambda said: (said.created, said.annotation))


def _said(corpus: Corpus, data: Mapping[str, Any], key: tuple[int, str], annotation: Mapping[str, Any]) -> Said:
    round, item = key
    person, seconds = annotation.get("completed_by"), annotation.get("lead_time")
    about: dict[str, Any] = {
        "annotation": int(annotation["id"]),
        "item": item,
        "round": round,
        "person": int(person["id"] if isinstance(person, Mapping) else person or 0),
        "seconds": float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < float("inf") else None,
        "created": str(annotation.get("created_at") or ""),
        "updated": str(annotation.get("updated_at") or ""),
    }
    if annotation.get("was_cancelled"):
        return Said(**about, skipped=True)
    try:
        return Said(**about, labels=_labels(corpus, data, item, annotation.get("result") or []))
    except LabelError as error:
        return Said(**about, problem=error.message)


def _labels(corpus: Corpus, data: Mapping[str, Any], item: str, results: list[Result]) -> dict[str, Any]:
    """The labels of the tasks that were asked for; spans that end inside a word are widened to whole words."""
    try:
        at = int(corpus.positions([item])[0])
    except DataError:
        raise LabelError("there is no such item in this corpus") from None
    text = corpus[at].text or ""
    if corpus.texts is not None and data.get("text") != text:
        raise LabelError("its text at Label Studio is another one than here")
    design = design_for(corpus)
    if strangers := [task for task in data["tasks"] if task not in design.schema]:
        raise LabelError(f"there is no task {strangers[0]!r}")
    labels = labels_of(design, results, data["tasks"], text, _places(corpus, at), cut="widen")
    for task, label in labels.items():
        try:
            design.schema[task].encode(label, int(corpus.words[at]))
        except LabelError as error:
            raise LabelError(f"task {task!r}: {error.message}", fix=error.fix) from None
    return labels
