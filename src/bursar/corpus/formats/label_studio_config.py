"""Label Studio's labelling configuration for the tasks of a schema, and the tasks of a configuration.

```
<View>
  <Labels name="slots" toName="text"><Label value="time"/></Labels>
  <Text name="text" value="$text" granularity="word"/>
  <Choices name="intent" toName="text" choice="single"><Choice value="alarm"/></Choices>
</View>
```
What tags cannot express (that a task labels every word, is a dependency tree, or has relations) is in an attribute
``bursar`` of the outermost tag, which Label Studio keeps and ignores. Configurations by others are read too.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml
from collections.abc import Mapping
from typing import Any

from bursar.corpus.builder import without_labels
from bursar.corpus.formats.label_studio_results import Design, control_of
from bursar.errors import SchemaError
from bursar.tasks import KINDS, Task, make_task

MARK = "bursar"
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
WIDEST = float(2**53)  # range of a number without a stated range
OPENS_NAME_OF_DATA = "$"  # a value that begins with it is looked up among a task's data
OPTIONS = {"Choices": "Choice", "Labels": "Label", "Number": "", "Rating": ""}  # the tag of an option of a control
# The kind of a control, or of a result of this type, that our attribute does not describe.
PLAIN: list[dict[str, Any]] = [{"kind": "classification"}, {"kind": "tagging", "every_word": False}]
USUAL_KINDS = {"Choices": "classification", "Labels": "tagging", "Number": "regression", "Rating": "regression"}


# -- writing --------------------------------------------------------------------------------------------------------
def config_of(design: Design, *, pair: bool = False, image: bool = False, asked: bool = False) -> str:
    """The configuration; ``asked`` is for items to be annotated: it shows the tasks to label and needs all labels."""
    of_words = [name for name, task in design.schema.items() if control_of(task).tag == "Labels"]
    if image and of_words:
        raise SchemaError(f"task {of_words[0]!r} is about words, and images have none")
    view = xml.Element("View", _beyond_tags(design))
    if asked:
        xml.SubElement(view, "Header", value="Please label: $tasks", size="4")
    for name in of_words:
        if design.ends.get(name, name) == name:
            _control(view, design, design.schema[name], asked)
    _relations(view, design)
    if image:
        xml.SubElement(view, "Image", name=design.object, value=f"${design.text}", maxWidth="500px")
    else:
        xml.SubElement(view, "Text", name=design.object, value=f"${design.text}", granularity="word")
    if pair:
        xml.SubElement(view, "Text", name=f"{design.object}-pair", value=f"${design.pair}")
    for name, task in design.schema.items():
        if name not in of_words:
            _control(view, design, task, asked)
    _check(view)
    xml.indent(view)
    return xml.tostring(view, encoding="unicode")


def _control(view: xml.Element, design: Design, task: Task, asked: bool) -> None:
    control = control_of(task)
    labels = getattr(task, control.labels) if control.labels else ()
    if asked and control.labels and not labels:
        message = f"task {task.name!r} states no labels, and Label Studio has to show them"
        raise SchemaError(message, fix="list them in the schema")
    xml.SubElement(view, "Header", value=task.name, size="5")
    attributes = {"name": task.name, "toName": design.object} | dict(control.attributes(task))
    tag = xml.SubElement(view, control.tag, attributes)
    for label in labels:
        xml.SubElement(tag, OPTIONS[control.tag], value=label)


def _relations(view: xml.Element, design: Design) -> None:
    if design.arrows:
        tag = xml.SubElement(view, "Relations")
        for label in dict.fromkeys(label for name in design.ends for label in design.schema[name].labels):
            xml.SubElement(tag, "Relation", value=label)


def _beyond_tags(design: Design) -> dict[str, str]:
    """What the tags cannot express, as an attribute."""
    beyond: dict[str, Any] = {}
    for name, task in design.schema.items():
        about = without_labels(task)
        if name in design.ends:
            about["ends"] = design.ends[name]
        if about not in PLAIN:
            beyond[name] = about
    return {MARK: json.dumps(beyond, ensure_ascii=False)} if beyond else {}


def _check(view: xml.Element) -> None:
    """Reject what XML or Label Studio would change."""
    for element in view.iter():
        for key, value in element.attrib.items():
            if NOT_IN_XML.search(value):
                raise SchemaError(f"XML cannot hold {value!r}", fix="rename the task or label")
            ours = element.tag in ("Text", "Image") and key == "value"
            if key in ("name", "value") and value.startswith(OPENS_NAME_OF_DATA) and not ours:
                raise SchemaError(f"Label Studio takes {value!r} for a name of data", fix="rename the task or label")


# -- reading --------------------------------------------------------------------------------------------------------
def read_config(view: xml.Element) -> Design:
    """The tasks of a configuration, ours or another; ``SchemaError`` if it is invalid."""
    beyond = _read_mark(view.get(MARK))
    texts = [str(tag.get("value", "")).removeprefix("$") for tag in view.iter("Text")]
    schema: dict[str, Task] = {}
    ends: dict[str, str] = {}
    relations = [label for tag in view.iter("Relations") for label in _labels(tag, "Relation")]
    controls = {str(tag.get("name")): tag for tag in view.iter() if tag.tag in OPTIONS}
    for name, tag in controls.items():
        schema[name] = _task(name, tag, beyond.get(name, {}), relations)
        if control_of(schema[name]).arrows:
            ends[name] = name
    for name, about in beyond.items():
        if name not in controls:  # relations that are drawn between the regions of another task
            spans = schema.get(str(about.get("ends")))
            types = spans.labels if spans is not None else ()
            schema[name] = make_task(name, _plain(about) | {"labels": relations, "entity_types": types})
            ends[name] = str(about.get("ends"))
    spans_of = [name for name, task in schema.items() if task.kind == USUAL_KINDS["Labels"]]
    if relations and MARK not in view.attrib and spans_of:
        types = schema[spans_of[0]].labels
        schema["relations"] = make_task("relations", {"kind": "relations", "labels": relations, "entity_types": types})
        ends["relations"] = spans_of[0]
    texts += ["text", "pair"][len(texts) :]
    return Design(schema, ends, text=texts[0], pair=texts[1])


def _task(name: str, tag: xml.Element, about: Mapping[str, Any], relations: list[str]) -> Task:
    labels = _labels(tag, OPTIONS[tag.tag])
    kind = about.get("kind")
    control = KINDS[kind].control if isinstance(kind, str) and kind in KINDS else None
    if control is not None and USUAL_KINDS[control.tag] == USUAL_KINDS[tag.tag]:
        named = {control.labels: labels, control.arrows: relations}
        return make_task(name, _plain(about) | {field: names for field, names in named.items() if field})
    usual: dict[str, Any] = {"kind": USUAL_KINDS[tag.tag]}
    match tag.tag:
        case "Choices" | "Labels":
            return make_task(name, usual | {"labels": labels})
        case "Rating":
            return make_task(name, usual | {"low": 0, "high": _number(tag, "maxRating", 5)})
    return make_task(name, usual | {"low": _number(tag, "min", -WIDEST), "high": _number(tag, "max", WIDEST)})


def _labels(tag: xml.Element, option: str) -> list[str]:
    """The labels of a control: results contain an option's alias if it has one, else its value."""
    found = [str(inner.get("alias") or inner.get("value") or "") for inner in tag.iter(option)] if option else []
    return list(dict.fromkeys(label for label in found if label))


def _number(tag: xml.Element, key: str, default: float) -> float:
    try:
        return float(tag.get(key, default))
    except ValueError:
        raise SchemaError(f"{tag.tag} {tag.get('name')!r}: {key} is no number") from None


def _read_mark(mark: str | None) -> dict[str, dict[str, Any]]:
    try:
        beyond = json.loads(mark or "{}")
    except (ValueError, RecursionError):
        beyond = None
    if not isinstance(beyond, dict) or not all(isinstance(about, dict) for about in beyond.values()):
        raise SchemaError(f"the attribute {MARK} of the configuration is not as it was written")
    return beyond


def _plain(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in about.items() if key != "ends"}
