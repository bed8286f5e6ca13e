"""Label Studio: tasks with their annotations, as in its JSON export and import.

```
[
{"data": {"id": "u1", "text": "wake me at seven"}, "annotations": [{"result": [{"from_name": "intent", …}]}]}
]
```
Items that were skipped or not annotated have no labels. If the annotations of an item disagree, ``several`` says which
one counts. A labelling configuration of the same name that ends in ``.xml`` is read and written with the tasks; without
one, tasks are inferred from their results:

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
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder, without_labels
from bursar.corpus.corpus import Corpus, Names, Schema
from bursar.corpus.formats.characters import AnnotationOptions, words_of
from bursar.corpus.formats.format import FORMATS, Format, numbered_id, numbered_lines, only_file, parse_names, replacing
from bursar.corpus.formats.json_files import Record, first_object, json_array, write_json_array
from bursar.corpus.formats.label_studio_results import Design, Result, answered, control_of, labels_of, results_of
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.errors import DataError, LabelError, SchemaError
from bursar.tasks import KINDS, Task, make_task

MARK = "bursar"
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
WIDEST = float(2**53)  # range of a number without a stated range
OPENS_NAME_OF_DATA = "$"  # a value that begins with it is looked up among a task's data
OPTIONS = {"Choices": "Choice", "Labels": "Label", "Number": "", "Rating": ""}  # the tag of an option of a control
# The kind of a control, or of a result of this type, that our attribute does not describe.
PLAIN: list[Record] = [{"kind": "classification"}, {"kind": "tagging", "every_word": False}]
USUAL_KINDS = {"Choices": "classification", "Labels": "tagging", "Number": "regression", "Rating": "regression"}
Tasks = list[tuple[int, Record]]  # each with the line it begins on


def sniff(path: Path) -> bool:
    """An array whose first object has Label Studio's data."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return len(files) == 1 and isinstance(first_object(files[0]).get("data"), dict)


def read(
    path: Path,
    schema: Schema = None,
    config: str | None = None,
    text: str | None = None,
    several: str = "refuse",
    cut: str = "refuse",
    skip: Names = (),
) -> Corpus:
    """Read an export, or a folder with one; the other options are explained in ``AnnotationOptions``.

    ``config`` is the file of the labelling configuration and ``text`` the name of the text in the data.
    """
    options = AnnotationOptions(several, cut, frozenset(parse_names(skip)))
    file = only_file(path, ".json")
    builder = CorpusBuilder(schema)
    tasks = [*json_array(file)]
    if not tasks:
        raise DataError("there is no item in it", path=file)
    design = _design(builder, file, tasks, config, options.skip)
    design = replace(design, text=text or design.text)
    for number, (line, task) in enumerate(tasks, start=1):
        builder.at(file, line)
        _read_task(builder, design, task, numbered_id("task", number), options)
    return builder.build()


# -- tasks ----------------------------------------------------------------------------------------------------------
def _design(builder: CorpusBuilder, path: Path, tasks: Tasks, config: str | None, skip: Collection[str]) -> Design:
    """The design from the configuration or inferred from the results; the schema takes precedence."""
    beside = Path(config) if config is not None else path.with_suffix(".xml")
    if config is not None or beside.is_file():
        design = _read_config(builder, beside)
        kept = {name: task for name, task in design.schema.items() if name not in skip}
        for asked in kept.values():
            builder.declare(asked)
        design = replace(design, schema=kept, ends={n: e for n, e in design.ends.items() if n in kept})
    else:
        ends = _guess(builder, path, tasks, skip)
        texts = [key for key, value in _data(tasks[0][1]).items() if isinstance(value, str) and key != "id"]
        design = Design({}, ends, text="text" if "text" in texts or not texts else texts[0])
    stated = {name: task for name in builder.tasks if (task := builder.task(name)) and name not in skip}
    own = {name: name for name, task in stated.items() if control_of(task).arrows}
    return replace(design, schema=stated, ends=own | dict(design.ends))


def _read_config(builder: CorpusBuilder, path: Path) -> Design:
    lines = [line for _, line in numbered_lines(path)]
    builder.at(path, 1)
    try:
        with builder.locating():
            return read_config(xml.fromstring("\n".join(lines)))
    except xml.ParseError as wrong:
        builder.at(path, wrong.position[0])
        raise builder.error(f"not a labelling configuration: {wrong}") from None


def _guess(builder: CorpusBuilder, path: Path, tasks: Tasks, skip: Collection[str]) -> dict[str, str]:
    """Add a task for every control with results; return the controls between which relations are drawn."""
    ends: dict[str, str] = {}
    for line, task in tasks:
        builder.at(path, line)
        regions: dict[Any, Any] = {}
        for annotation in _annotations(builder, task, None):
            for result in annotation:
                kind, control = result.get("type"), result.get("from_name")
                if kind == "relation" and not ends and "relation" not in skip:
                    ends["relations"] = str(regions.get(str(result.get("from_id")), "relations"))
                    builder.add_task("relations", {"kind": "relations"})
                elif kind != "relation" and control not in skip:
                    regions[str(result.get("id"))] = control
                    if str(control) not in builder:
                        builder.add_task(str(control), _task_of_results(builder, str(control), kind))
    return ends


def _task_of_results(builder: CorpusBuilder, control: str, type: Any) -> Record:
    kind = USUAL_KINDS.get(str(type).capitalize())
    if kind is None or type != str(type).lower():
        message = f"control {control!r} gives results of type {type!r}, which are no labels of a known kind"
        raise builder.error(message, fix=f"skip = {control}")
    return {"kind": kind} | ({"low": -WIDEST, "high": WIDEST} if kind == "regression" else {})


# -- one task -------------------------------------------------------------------------------------------------------
def _data(task: Record) -> Record:
    data = task.get("data")
    return data if isinstance(data, dict) else {}


def _read_task(builder: CorpusBuilder, design: Design, task: Record, unnamed: str, options: AnnotationOptions) -> None:
    data = _data(task)
    id = next((str(v) for v in (data.get("id"), task.get("id")) if type(v) in (str, int) and v != ""), unnamed)
    text = data.get(design.text)
    if not isinstance(text, str):
        known = ", ".join(key for key, value in data.items() if isinstance(value, str)) or "none"
        raise builder.error(f"its data has no text called {design.text!r}", item=id, fix=f"text = one of: {known}")
    about = builder.strings(id, pair=data.get(design.pair), group=data.get("group"), split=data.get("split"))
    with builder.locating(id):
        words_at = words_of(data, text)
    said: list[Record] = []
    for results in _annotations(builder, task, id):
        for result in results:  # none is dropped silently
            relation = result.get("type") == "relation"
            control = "relation" if relation else str(result.get("from_name"))
            if control not in options.skip and not (design.arrows if relation else control in design.schema):
                raise builder.error(f"the control {control!r} belongs to no task", item=id, fix=f"skip = {control}")
        tasks = _tasks(builder, design, data, results, id)
        with builder.locating(id):
            said.append(labels_of(design, results, tasks, text, words_at, options.cut))
    with builder.locating(id):
        labels = options.pick(said, "annotations") if said else {}
    builder.add(id, text=text, words=words_at, labels=labels, **about)


def _tasks(builder: CorpusBuilder, design: Design, data: Record, results: list[Result], id: str) -> list[str]:
    """The tasks of an annotation: those listed in its data, or those it has results for."""
    named = data.get("tasks")
    if named is None:
        spoken = answered(design, results)
        return [name for name in design.schema if name in spoken]
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise builder.error(f"tasks must be a list of their names, not {named!r}", item=id)
    return [name for name in design.schema if name in named]


def _annotations(builder: CorpusBuilder, task: Record, id: str | None) -> list[list[Result]]:
    """The results of every annotation that was not cancelled."""
    annotations = task.get("annotations") or task.get("completions") or []
    if not isinstance(annotations, list) or not all(isinstance(annotation, dict) for annotation in annotations):
        raise builder.error("annotations must be a list of objects", item=id)
    found = []
    for annotation in annotations:
        results = annotation.get("result", [])
        if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
            raise builder.error("the result of an annotation must be a list of objects", item=id)
        if not annotation.get("was_cancelled") and not annotation.get("skipped"):
            found.append(results)
    return found


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with tasks.json and tasks.xml, or a .json file with its configuration next to it."""
    checks = WriteChecks(corpus, "label-studio", lose)
    checks.refuse("images")
    file_path = path if path.suffix == ".json" else path / "tasks.json"
    try:
        design = Design.of(corpus.schema)
        if not all(_fits(design, corpus, at) for at in range(len(corpus))):
            design = Design.of(corpus.schema, own_ends=True)
        config = config_of(design, pair=corpus.pairs is not None)
    except SchemaError as wrong:
        raise checks.error(f"cannot hold this: {wrong.message}", fix=wrong.fix) from None
    with ExitStack() as stack:
        file = stack.enter_context(replacing(file_path))
        tasks = stack.enter_context(replacing(file_path.with_suffix(".xml")))
        tasks.write(config + "\n")
        write_json_array(file, (_task(checks, design, corpus, at) for at in range(len(corpus))))


def _fits(design: Design, corpus: Corpus, at: int) -> bool:
    """Whether the relations of an item are between its annotated entities."""
    if not any(name in corpus.labels and corpus.labels[name].present[at] for name in design.ends):
        return True
    item = corpus[at]
    with suppress(LabelError):
        results_of(design, item.labels, item.text or "", item.spans)
        return all(design.ends[name] in item.labels for name in design.ends if name in item.labels)
    return False


def _task(checks: WriteChecks, design: Design, corpus: Corpus, at: int) -> Record:
    item = corpus[at]
    text, words_at = item.text or "", item.spans
    pair = {} if corpus.pairs is None else {"pair": item.pair or ""}
    data: Record = {"id": item.id, "text": text} | pair | stated(item)
    if not item.labels:
        return {"data": data}
    results = results_of(design, item.labels, text, words_at)
    if answered(design, results) != set(item.labels):
        data["tasks"] = [*item.labels]
    with suppress(LabelError):  # would the labels read back as the same?
        if labels_of(design, results, item.labels, text, words_at) == item.labels:
            return {"data": data, "annotations": [{"result": results}]}
    raise checks.error("has no way to write these labels", item)


# -- writing a configuration ------------------------------------------------------------------------------------------
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
    if design.arrows:
        tag = xml.SubElement(view, "Relations")
        for label in dict.fromkeys(label for name in design.ends for label in design.schema[name].labels):
            xml.SubElement(tag, "Relation", value=label)
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


def _beyond_tags(design: Design) -> dict[str, str]:
    """What the tags cannot express, as an attribute."""
    beyond: Record = {}
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


# -- reading a configuration ------------------------------------------------------------------------------------------
def read_config(view: xml.Element) -> Design:
    """The tasks of a configuration, ours or another; ``SchemaError`` if it is invalid."""
    beyond = _read_mark(view.get(MARK))
    texts = [str(tag.get("value", "")).removeprefix("$") for tag in view.iter("Text")]
    schema: dict[str, Task] = {}
    ends: dict[str, str] = {}
    relations = [label for tag in view.iter("Relations") for label in _labels(tag, "Relation")]
    controls = {str(tag.get("name")): tag for tag in view.iter() if tag.tag in OPTIONS}
    for name, tag in controls.items():
        schema[name] = _task_of_control(name, tag, beyond.get(name, {}), relations)
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


def _task_of_control(name: str, tag: xml.Element, about: Mapping[str, Any], relations: list[str]) -> Task:
    labels = _labels(tag, OPTIONS[tag.tag])
    kind = about.get("kind")
    control = KINDS[kind].control if isinstance(kind, str) and kind in KINDS else None
    if control is not None and USUAL_KINDS[control.tag] == USUAL_KINDS[tag.tag]:
        named = {control.labels: labels, control.arrows: relations}
        return make_task(name, _plain(about) | {field: names for field, names in named.items() if field})
    usual: Record = {"kind": USUAL_KINDS[tag.tag]}
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


def _read_mark(mark: str | None) -> dict[str, Record]:
    try:
        beyond = json.loads(mark or "{}")
    except (ValueError, RecursionError):
        beyond = None
    if not isinstance(beyond, dict) or not all(isinstance(about, dict) for about in beyond.values()):
        raise SchemaError(f"the attribute {MARK} of the configuration is not as it was written")
    return beyond


def _plain(about: Mapping[str, Any]) -> Record:
    return {key: value for key, value in about.items() if key != "ends"}


FORMATS.add("label-studio", Format("label-studio", "Label Studio's tasks and annotations", sniff, read, write))
