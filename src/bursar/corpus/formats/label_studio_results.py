"""Convert labels to the results of a Label Studio annotation, and back.

Every task has a control of its own name, as its kind says (``Task.control``): Choices for a class, Labels for spans,
Number for a number. A relation is an arrow between two regions. A dependency tree is a region on every word, with the
label of the word's arc, and an arrow to its head. Label Studio counts characters as Python does; versions that counted
as browsers do are recognised by the quoted text of a region.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bursar.corpus.formats.characters import ToWords, WordSpans, from_utf16, in_characters, in_words
from bursar.errors import LabelError, SchemaError
from bursar.tasks import Task
from bursar.tasks.marks import Arrow, Control, Marks
from bursar.tasks.schemes import Span

Result = dict[str, Any]


def control_of(task: Task) -> Control:
    """The control that asks for a task's labels."""
    if task.control is None:
        raise SchemaError(f"task {task.name!r}: Label Studio has no control for {task.kind}")
    return task.control


@dataclass(frozen=True)
class Design:
    """How a schema maps to Label Studio: the names of the texts, and the regions that relations link."""

    schema: Mapping[str, Task]
    ends: Mapping[str, str] = field(default_factory=dict)  # relations task to its control: its own or a tagging task's
    text: str = "text"  # the name of the text in a task's data
    pair: str = "pair"

    @classmethod
    def of(cls, schema: Mapping[str, Task], own_ends: bool = False) -> Design:
        """A design for any schema. Relations link the regions of the task for their entities, if there is one."""
        ends: dict[str, str] = {}
        spans = {name: task for name, task in schema.items() if task.may_be_empty}
        for name, task in schema.items():
            if control_of(task).arrows:
                partner = None
                with suppress(SchemaError):
                    partner = task.partner(spans)
                ends[name] = name if own_ends or not partner or partner in ends.values() else partner
        return cls(schema, ends)

    @property
    def arrows(self) -> dict[str, str]:
        """The task of an arrow between two regions, by their control."""
        own = {name: name for name, task in self.schema.items() if control_of(task).arrows == ""}
        return own | {control: name for name, control in self.ends.items()}

    @property
    def object(self) -> str:
        """The name of the object tag, different from all task names."""
        name = self.text
        while name in self.schema:
            name += "_"
        return name


# -- labels to results ----------------------------------------------------------------------------------------------
def results_of(design: Design, labels: Mapping[str, Any], text: str, words_at: WordSpans) -> list[Result]:
    """Convert labels to results; ``LabelError`` for a relation whose ends are not entities."""
    results: list[Result] = []
    arrows: list[Result] = []
    regions: dict[str, dict[Span, str]] = {}  # by control: span to region id
    for name in sorted(labels, key=lambda name: name in design.ends):  # regions first, then the arrows between them
        task, marks = design.schema[name], design.schema[name].marks(labels[name])
        control, type = design.ends.get(name, name), control_of(task).results[0]
        known = regions.setdefault(control, {})
        if marks.values:
            value = list(marks.values) if control_of(task).labels else marks.values[0]
            results.append(_result(design, name, name, type, {type: value}))
        ids = []
        for at, span in enumerate(marks.spans):
            if name in design.ends and span in known:
                ids.append(known[span])
                continue
            if control != name:
                raise LabelError(f"task {name!r}: {list(span)} is none of {control!r}")
            ids.append(f"{name}-{at}")
            known.setdefault(span, ids[-1])
            start, end = in_characters(words_at, span[0], span[1])
            region = {"start": start, "end": end, "text": text[start:end], "labels": [span[2]]}
            results.append(_result(design, ids[-1], name, "labels", region))
        for source, target, label in marks.arrows:
            arrow = {"type": "relation", "from_id": ids[source], "to_id": ids[target], "direction": "right"}
            arrows.append(arrow if label is None else arrow | {"labels": [label]})
    return results + arrows


def _result(design: Design, id: str, control: str, type: str, value: dict[str, Any]) -> Result:
    return {"id": id, "from_name": control, "to_name": design.object, "type": type, "value": value}


# -- results to labels ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Answers:
    """The results of one annotation: values and regions by control, arrows in their order."""

    values: dict[str, list[Any]]
    regions: dict[str, list[tuple[str, Span]]]  # by control: id and span in words, one for each label
    arrows: list[Result]

    def ends(self, arrow: Result, controls: Iterable[str]) -> tuple[str, str, str]:
        """The control that an arrow belongs to, and the ids of its ends."""
        ids = [arrow.get("from_id"), arrow.get("to_id")]
        direction = arrow.get("direction", "right")
        if direction not in ("right", "left"):
            raise LabelError(f"the arrow from {ids[0]!r} to {ids[1]!r} points in direction {direction!r}")
        common = [c for c in controls if all(any(id == known for known, _ in self.regions.get(c, ())) for id in ids)]
        if len(common) != 1:
            what = "does not link two regions of one task that has relations"
            raise LabelError(f"the arrow from {ids[0]!r} to {ids[1]!r} {what}")
        source, target = ids if direction == "right" else ids[::-1]
        return common[0], str(source), str(target)

    def place(self, control: str, id: str) -> int:
        """The position of the only region with an id."""
        found = [at for at, (known, _) in enumerate(self.regions[control]) if known == id]
        if len(found) > 1:
            raise LabelError(f"the region {id!r} of {control!r} has several labels, and a relation needs one")
        return found[0]


def labels_of(
    design: Design, results: Iterable[Result], tasks: Iterable[str], text: str, words_at: WordSpans, cut: str = "refuse"
) -> dict[str, Any]:
    """Convert results to labels for some tasks; ``LabelError`` if one is missing or invalid."""
    answers = _answers(design, results, text, words_at, cut)
    owners = design.arrows
    arrows: dict[str, list[tuple[str, str, Result]]] = {}
    for arrow in answers.arrows if owners else ():
        owner, source, target = answers.ends(arrow, owners)
        arrows.setdefault(owners[owner], []).append((source, target, arrow))
    labels: dict[str, Any] = {}
    for name in tasks:
        task, control = design.schema[name], design.ends.get(name, name)
        try:
            linked = _placed(answers, control, arrows.get(name, ()), labelled=bool(control_of(task).arrows))
            spans = [span for _, span in answers.regions.get(control, ())]
            labels[name] = task.from_marks(Marks(answers.values.get(name, []), spans, linked), len(words_at))
            if control_of(task).arrows == "" and len({id for id, _ in answers.regions.get(control, ())}) < len(spans):
                raise LabelError("two regions have one id")
        except LabelError as wrong:
            raise LabelError(f"task {name!r}: {wrong.message}", fix=wrong.fix) from None
    return labels


def answered(design: Design, results: Sequence[Result]) -> set[str]:
    """The tasks an annotation answers: no spans or relations is an answer, no choice is not."""
    spoken = {result.get("from_name") for result in results}
    return {name for name, task in design.schema.items() if name in spoken or task.may_be_empty}


def _answers(design: Design, results: Iterable[Result], text: str, words_at: WordSpans, cut: str) -> _Answers:
    answers = _Answers({}, {}, [])
    types = {name: control_of(task).results for name, task in design.schema.items()}
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("type"), str):
            raise LabelError("a result must be an object with a type")
        control, type, value = result.get("from_name"), result["type"], result.get("value")
        if type == "relation":
            answers.arrows.append(result)
        elif isinstance(control, str) and control in types:
            if type not in types[control]:
                raise LabelError(f"task {control!r} is answered by {' or '.join(types[control])}, not by {type!r}")
            if not isinstance(value, dict):
                raise LabelError(f"task {control!r}: a result of type {type!r} has no value")
            if type != "labels" and "start" in value:
                raise LabelError(f"task {control!r} is about the whole item, and is answered for a span")
            if type == "labels":
                regions = answers.regions.setdefault(control, [])
                regions += _regions(control, result, text, partial(in_words, text, words_at, cut=cut))
            else:
                found = value.get(type)
                answers.values.setdefault(control, []).extend(found if isinstance(found, list) else [found])
    return answers


def _regions(control: str, result: Result, text: str, to_words: ToWords) -> list[tuple[str, Span]]:
    value = result["value"]
    kinds, start, end = value.get("labels"), value.get("start"), value.get("end")
    if not isinstance(kinds, list) or not kinds:
        raise LabelError(f"task {control!r}: a region has no label")
    if type(start) is int and type(end) is int and isinstance(value.get("text"), str) and 0 <= start <= end:
        start, end = from_utf16(text, start, end, value["text"])
    try:
        first, last = to_words(start, end)
    except LabelError as wrong:
        raise LabelError(f"task {control!r}: {wrong.message}", fix=wrong.fix) from None
    return [(str(result.get("id")), (first, last, kind)) for kind in kinds]


def _placed(answers: _Answers, control: str, arrows: Iterable[tuple[str, str, Result]], labelled: bool) -> list[Arrow]:
    """Arrows between positions of regions, one for each of their labels."""
    found: list[Arrow] = []
    for source, target, arrow in arrows:
        labels = arrow.get("labels") if labelled else [None]
        if not isinstance(labels, list) or not labels:
            raise LabelError(f"the arrow from {source!r} to {target!r} has no label")
        ends = answers.place(control, source), answers.place(control, target)
        found += [(*ends, label) for label in labels]
    return found
