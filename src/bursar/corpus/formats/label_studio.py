"""Label Studio: tasks with their annotations, as in its JSON export and import.

```
[
{"data": {"id": "u1", "text": "wake me at seven"}, "annotations": [{"result": [{"from_name": "intent", …}]}]}
]
```
A labelling configuration of the same name that ends in ``.xml`` is read and written with the tasks; without one, tasks
are inferred from their results. Items that were skipped or not annotated have no labels. If the annotations of an item
disagree, ``several`` says which one counts.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus
from bursar.corpus.formats.characters import AnnotationOptions, words_of
from bursar.corpus.formats.format import FORMATS, Format, numbered_id, numbered_lines, only_file, parse_names, replacing
from bursar.corpus.formats.json_files import first_object, json_array, write_json_array
from bursar.corpus.formats.label_studio_config import USUAL_KINDS, WIDEST, config_of, read_config
from bursar.corpus.formats.label_studio_results import (
    Design,
    Result,
    answered,
    control_of,
    design_of,
    labels_of,
    results_of,
)
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.errors import DataError, LabelError, SchemaError

Tasks = list[tuple[int, dict[str, Any]]]  # each with the line it begins on


def sniff(path: Path) -> bool:
    """An array whose first object has Label Studio's data."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return len(files) == 1 and isinstance(first_object(files[0]).get("data"), dict)


def read(
    path: Path,
    schema: Mapping[str, Any] | None = None,
    config: str | None = None,
    text: str | None = None,
    several: str = "refuse",
    cut: str = "refuse",
    skip: str | Iterable[str] = (),
) -> Corpus:
    """Read an export, or a folder with one.

    ``config`` is the file of the labelling configuration and ``text`` the name of the text in the data. The other
    options are explained in ``AnnotationOptions``.
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
                    _announce(builder, str(control), kind)
    return ends


def _announce(builder: CorpusBuilder, control: str, type: Any) -> None:
    if control in builder:
        return
    kind = USUAL_KINDS.get(str(type).capitalize())
    if kind is None or type != str(type).lower():
        message = f"control {control!r} gives results of type {type!r}, which are no labels of a known kind"
        raise builder.error(message, fix=f"skip = {control}")
    wide = {"low": -WIDEST, "high": WIDEST} if kind == "regression" else {}
    builder.add_task(control, {"kind": kind} | wide)


# -- one task -------------------------------------------------------------------------------------------------------
def _data(task: dict[str, Any]) -> dict[str, Any]:
    data = task.get("data")
    return data if isinstance(data, dict) else {}


def _read_task(
    builder: CorpusBuilder, design: Design, task: dict[str, Any], unnamed: str, options: AnnotationOptions
) -> None:
    data = _data(task)
    id = next((str(v) for v in (data.get("id"), task.get("id")) if type(v) in (str, int) and v != ""), unnamed)
    text = data.get(design.text)
    if not isinstance(text, str):
        known = ", ".join(key for key, value in data.items() if isinstance(value, str)) or "none"
        raise builder.error(f"its data has no text called {design.text!r}", item=id, fix=f"text = one of: {known}")
    about = builder.strings(id, pair=data.get(design.pair), group=data.get("group"), split=data.get("split"))
    with builder.locating(id):
        words_at = words_of(data, text)
    said: list[dict[str, Any]] = []
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


def _tasks(builder: CorpusBuilder, design: Design, data: dict[str, Any], results: list[Result], id: str) -> list[str]:
    """The tasks of an annotation: those listed in its data, or those it has results for."""
    named = data.get("tasks")
    if named is None:
        spoken = answered(design, results)
        return [name for name in design.schema if name in spoken]
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise builder.error(f"tasks must be a list of their names, not {named!r}", item=id)
    return [name for name in design.schema if name in named]


def _annotations(builder: CorpusBuilder, task: dict[str, Any], id: str | None) -> list[list[Result]]:
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
def write(corpus: Corpus, path: Path, lose: str | Collection[str] = ()) -> None:
    """Write a folder with tasks.json and tasks.xml, or a .json file with its configuration next to it."""
    checks = WriteChecks(corpus, "label-studio", lose)
    checks.refuse("images")
    file_path = path if path.suffix == ".json" else path / "tasks.json"
    try:
        design = design_of(corpus.schema)
        if not all(_fits(design, corpus, at) for at in range(len(corpus))):
            design = design_of(corpus.schema, own_ends=True)
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


def _task(checks: WriteChecks, design: Design, corpus: Corpus, at: int) -> dict[str, Any]:
    item = corpus[at]
    text, words_at = item.text or "", item.spans
    pair = {} if corpus.pairs is None else {"pair": item.pair or ""}
    data: dict[str, Any] = {"id": item.id, "text": text} | pair | stated(item)
    if not item.labels:
        return {"data": data}
    results = results_of(design, item.labels, text, words_at)
    if answered(design, results) != set(item.labels):
        data["tasks"] = [*item.labels]
    with suppress(LabelError):  # would the labels read back as the same?
        if labels_of(design, results, item.labels, text, words_at) == item.labels:
            return {"data": data, "annotations": [{"result": results}]}
    raise checks.error("has no way to write these labels", item)


FORMATS.add("label-studio", Format("label-studio", "Label Studio's tasks and annotations", sniff, read, write))
