"""Convert labels to the results of a Label Studio annotation, and back.

Every task has a control of its own name: Choices for a class, Labels for spans, Number for a number. A relation is an
arrow between two regions. A dependency tree is a region on every word, with the label of the word's arc, and an arrow
to its head. Label Studio counts characters as Python does; versions that counted as browsers do are recognised by the
quoted text of a region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bursar.corpus.formats.characters import WordSpans, from_utf16, in_characters, in_words
from bursar.errors import LabelError, SchemaError
from bursar.tasks import Tagging, Task
from bursar.tasks.schemes import Span

Result = dict[str, Any]
TYPES = {
    "classification": ("choices",),
    "tagging": ("labels",),
    "regression": ("number", "rating"),
    "parsing": ("labels",),
    "relations": ("labels",),
}


@dataclass(frozen=True)
class Design:
    """How a schema maps to Label Studio: the names of the texts, and the regions that relations link."""

    schema: Mapping[str, Task]
    ends: Mapping[str, str] = field(default_factory=dict)  # relations task to its control: its own or a tagging task's
    text: str = "text"  # the name of the text in a task's data
    pair: str = "pair"

    @property
    def arrows(self) -> dict[str, str]:
        """The task of an arrow between two regions, by their control."""
        trees = {name: name for name, task in self.schema.items() if task.kind == "parsing"}
        return trees | {control: name for name, control in self.ends.items()}

    @property
    def object(self) -> str:
        """The name of the object tag, different from all task names."""
        name = self.text
        while name in self.schema:
            name += "_"
        return name


def design_of(schema: Mapping[str, Task], own_ends: bool = False) -> Design:
    """A design for any schema. Relations link the regions of the task for their entities, if there is one.

    >>> from bursar.tasks import Relations, Tagging
    >>> schema = {"who": Tagging("who", ("PER",)), "knows": Relations("knows", ("is",), entity_types=("PER",))}
    >>> design_of(schema).ends, design_of(schema, own_ends=True).ends
    ({'knows': 'who'}, {'knows': 'knows'})
    """
    ends: dict[str, str] = {}
    spans = {name: task for name, task in schema.items() if not _per_word(task)}
    for name, task in schema.items():
        if task.kind not in TYPES:
            raise SchemaError(f"task {name!r}: Label Studio has no control for {task.kind}")
        if task.kind == "relations":
            try:
                partner = task.partner(spans) or name
            except SchemaError:
                partner = name
            ends[name] = name if own_ends or partner in ends.values() else partner
    return Design(schema, ends)


def _per_word(task: Task) -> bool:
    return isinstance(task, Tagging) and task.every_word


# -- labels to results ----------------------------------------------------------------------------------------------
def results_of(design: Design, labels: Mapping[str, Any], text: str, words_at: WordSpans) -> list[Result]:
    """Convert labels to results; ``LabelError`` for a relation whose ends are not entities.

    >>> from bursar.tasks import Tagging
    >>> design = design_of({"slots": Tagging("slots", ("time",))})
    >>> results_of(design, {"slots": [[1, 2, "time"]]}, "at seven", [(0, 2), (3, 8)])[0]["value"]
    {'start': 3, 'end': 8, 'text': 'seven', 'labels': ['time']}
    """
    results: list[Result] = []
    named: dict[str, dict[Span, str]] = {}  # by control: span to region id
    for name, label in labels.items():
        task = design.schema[name]
        match task.kind:
            case "classification":
                results.append(_result(design, name, name, "choices", {"choices": [label]}))
            case "regression":
                results.append(_result(design, name, name, "number", {"number": label}))
            case "tagging" | "parsing":
                for at, (start, end, kind) in enumerate(_spans(task, label)):
                    id = f"{name}-{at}"
                    named.setdefault(name, {}).setdefault((start, end, kind), id)
                    results.append(_region(design, name, id, text, words_at, (start, end, kind)))
    for name, label in labels.items():
        if design.schema[name].kind == "parsing":
            results += [_arrow(f"{name}-{at}", f"{name}-{head - 1}") for at, (head, _) in enumerate(label) if head]
        elif design.schema[name].kind == "relations":
            control = design.ends[name]
            known = named.setdefault(control, {})
            for *ends, kind in label:
                new = [(start, end, type) for start, end, type in ends if (start, end, type) not in known]
                if new and control != name:
                    raise LabelError(f"task {name!r}: {list(new[0])} is none of {control!r}")
                for span in dict.fromkeys(new):
                    known[span] = f"{control}-{len(known)}"
                    results.append(_region(design, control, known[span], text, words_at, span))
                first, second = (known[start, end, type] for start, end, type in ends)
                results.append(_arrow(first, second, kind))
    return results


def _spans(task: Task, label: Any) -> list[Span]:
    """The regions of a label: its spans, or one per word."""
    if task.kind == "parsing":
        return [(at, at + 1, kind) for at, (_, kind) in enumerate(label)]
    if _per_word(task):
        return [(at, at + 1, kind) for at, kind in enumerate(label)]
    return [(start, end, kind) for start, end, kind in label]


def _result(design: Design, id: str, control: str, type: str, value: dict[str, Any]) -> Result:
    return {"id": id, "from_name": control, "to_name": design.object, "type": type, "value": value}


def _region(design: Design, control: str, id: str, text: str, words_at: WordSpans, span: Span) -> Result:
    start, end = in_characters(words_at, span[0], span[1])
    value = {"start": start, "end": end, "text": text[start:end], "labels": [span[2]]}
    return _result(design, id, control, "labels", value)


def _arrow(source: str, target: str, label: str | None = None) -> Result:
    labelled = {} if label is None else {"labels": [label]}
    return {"type": "relation", "from_id": source, "to_id": target, "direction": "right"} | labelled


# -- results to labels ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Marks:
    """The results of one annotation: values and regions by control, arrows in their order."""

    values: dict[str, list[Result]]
    regions: dict[str, list[tuple[str, Span]]]  # by control: id and span in words, one for each label
    arrows: list[Result]

    def ends(self, arrow: Result, controls: Collection[str]) -> tuple[str, str, str]:
        """The control that an arrow belongs to, and the ids of its ends."""
        ids = [arrow.get("from_id"), arrow.get("to_id")]
        direction = arrow.get("direction", "right")
        if direction not in ("right", "left"):
            raise LabelError(f"the arrow from {ids[0]!r} to {ids[1]!r} points in direction {direction!r}")
        common = [c for c in controls if all(any(id == known for known, _ in self.regions.get(c, ())) for id in ids)]
        if len(common) != 1:
            raise LabelError(
                f"the arrow from {ids[0]!r} to {ids[1]!r} does not link two regions of one task that has relations"
            )
        source, target = ids if direction == "right" else ids[::-1]
        return common[0], str(source), str(target)

    def span(self, control: str, id: str) -> Span:
        found = [span for known, span in self.regions[control] if known == id]
        if len(found) > 1:
            raise LabelError(f"the region {id!r} of {control!r} has several labels, and a relation needs one")
        return found[0]


def labels_of(
    design: Design, results: Iterable[Result], tasks: Iterable[str], text: str, words_at: WordSpans, cut: str = "refuse"
) -> dict[str, Any]:
    """Convert results to labels for some tasks; ``LabelError`` if one is missing or invalid.

    Results of controls that belong to no task are ignored.

    >>> from bursar.tasks import Classification
    >>> design = design_of({"intent": Classification("intent", ("alarm", "music"))})
    >>> said = results_of(design, {"intent": "music"}, "play jazz", [(0, 4), (5, 9)])
    >>> labels_of(design, said, ["intent"], "play jazz", [(0, 4), (5, 9)])
    {'intent': 'music'}
    """
    marks = _marks(design, results, text, words_at, cut)
    arrows = _arrows(design, marks)
    labels: dict[str, Any] = {}
    for name in tasks:
        task = design.schema[name]
        try:
            match task.kind:
                case "classification":
                    labels[name] = _single(marks, name, "choices")
                case "regression":
                    labels[name] = _single(marks, name, "number", "rating")
                case "relations":
                    labels[name] = _relations(marks, design.ends[name], arrows.get(name, []))
                case "parsing":
                    labels[name] = _tree(marks, name, arrows.get(name, []), len(words_at))
                case _ if _per_word(task):
                    labels[name] = [kind for _, kind in _every_word(marks, name, len(words_at))]
                case _:
                    labels[name] = [[*span] for _, span in marks.regions.get(name, ())]
        except LabelError as wrong:
            raise LabelError(f"task {name!r}: {wrong.message}", fix=wrong.fix) from None
    return labels


def answered(design: Design, results: Sequence[Result]) -> set[str]:
    """The tasks an annotation answers: no spans or relations is an answer, no choice is not."""
    spoken = {result.get("from_name") for result in results}
    return {
        name
        for name, task in design.schema.items()
        if name in spoken or task.kind == "relations" or (task.kind == "tagging" and not _per_word(task))
    }


def _marks(design: Design, results: Iterable[Result], text: str, words_at: WordSpans, cut: str) -> _Marks:
    marks = _Marks({}, {}, [])
    kinds = {name: TYPES[task.kind] for name, task in design.schema.items()}
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("type"), str):
            raise LabelError("a result must be an object with a type")
        control, type, value = result.get("from_name"), result["type"], result.get("value")
        if type == "relation":
            marks.arrows.append(result)
        elif isinstance(control, str) and control in kinds:
            if type not in kinds[control]:
                raise LabelError(f"task {control!r} is answered by {' or '.join(kinds[control])}, not by {type!r}")
            if not isinstance(value, dict):
                raise LabelError(f"task {control!r}: a result of type {type!r} has no value")
            if type != "labels" and "start" in value:
                raise LabelError(f"task {control!r} is about the whole item, and is answered for a span")
            if type == "labels":
                marks.regions.setdefault(control, []).extend(_regions(control, result, value, text, words_at, cut))
            else:
                marks.values.setdefault(control, []).append(result)
    return marks


def _regions(
    control: str, result: Result, value: dict[str, Any], text: str, words_at: WordSpans, cut: str
) -> list[tuple[str, Span]]:
    kinds, start, end = value.get("labels"), value.get("start"), value.get("end")
    if not isinstance(kinds, list) or not kinds:
        raise LabelError(f"task {control!r}: a region has no label")
    if type(start) is int and type(end) is int and isinstance(value.get("text"), str) and 0 <= start <= end:
        start, end = from_utf16(text, start, end, value["text"])
    try:
        first, last = in_words(text, words_at, start, end, cut)
    except LabelError as wrong:
        raise LabelError(f"task {control!r}: {wrong.message}", fix=wrong.fix) from None
    return [(str(result.get("id")), (first, last, kind)) for kind in kinds]


def _arrows(design: Design, marks: _Marks) -> dict[str, list[tuple[str, str, Result]]]:
    """The arrows of each task: source, target, result."""
    owners = design.arrows
    found: dict[str, list[tuple[str, str, Result]]] = {}
    for arrow in marks.arrows if owners else ():
        control, source, target = marks.ends(arrow, owners)
        found.setdefault(owners[control], []).append((source, target, arrow))
    return found


def _single(marks: _Marks, name: str, *keys: str) -> Any:
    """The value of a task with one value per item."""
    values = [
        result["value"].get(key) for result in marks.values.get(name, ()) for key in keys if result["type"] == key
    ]
    values = [one for value in values for one in (value if isinstance(value, list) else [value])]
    if len(values) != 1:
        what = "it has no answer" if not values else f"it has {len(values)} answers, and an item has one"
        raise LabelError(what)
    return values[0]


def _relations(marks: _Marks, control: str, arrows: Iterable[tuple[str, str, Result]]) -> list[Any]:
    found = []
    for source, target, arrow in arrows:
        kinds = arrow.get("labels")
        if not isinstance(kinds, list) or not kinds:
            raise LabelError(f"the arrow from {source!r} to {target!r} has no label")
        ends = [[*marks.span(control, source)], [*marks.span(control, target)]]
        found += [[*ends, kind] for kind in kinds]
    return found


def _every_word(marks: _Marks, name: str, words: int) -> list[tuple[str, Any]]:
    """The region of every word: its id and label."""
    at: dict[int, tuple[str, Any]] = {}
    for id, (start, end, kind) in marks.regions.get(name, ()):
        if end - start != 1 or start in at:
            raise LabelError(f"every word needs one label of its own; word {start + 1} has two, or shares one")
        at[start] = id, kind
    for word in range(words):
        if word not in at:
            raise LabelError(f"word {word + 1} of {words} has no label")
    return [at[word] for word in range(words)]


def _tree(marks: _Marks, name: str, arrows: Iterable[tuple[str, str, Result]], words: int) -> list[Any]:
    regions = _every_word(marks, name, words)
    place = {id: at for at, (id, _) in enumerate(regions, start=1)}
    if len(place) < words:
        raise LabelError("two regions have one id")
    heads: dict[str, int] = {}
    for source, target, _ in arrows:
        if source in heads:
            raise LabelError(f"word {place[source]} has two heads")
        heads[source] = place[target]
    return [[heads.get(id, 0), kind] for id, kind in regions]
