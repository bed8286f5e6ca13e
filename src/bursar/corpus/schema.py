"""What to annotate: tasks described in a few words, and a corpus with the tasks that are described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bursar.corpus.builder import recode
from bursar.corpus.corpus import Corpus, Labels
from bursar.errors import SchemaError
from bursar.tasks import Task, make_task


def spans(*labels: str) -> dict[str, Any]:
    """Describe a task that marks spans of words, such as slots or entities.

    >>> spans("product", "date")
    {'kind': 'tagging', 'labels': ['product', 'date']}
    """
    return {"kind": "tagging", "labels": list(labels)}


def describe_task(task: Any) -> dict[str, Any]:
    """The description of a task: a list of names is a list of classes."""
    if isinstance(task, Task):
        return task.describe()
    if isinstance(task, Mapping):
        return dict(task)
    if isinstance(task, list | tuple) and all(isinstance(label, str) for label in task):
        return {"kind": "classification", "labels": list(task)}
    raise SchemaError(f"{task!r} describes no task", fix='give class names, spans("date"), or {"kind": …}')


def with_schema(corpus: Corpus, described: Mapping[str, Any]) -> Corpus:
    """The same items with these tasks besides their own; a label that a description does not list is an error."""
    schema, labels = dict(corpus.schema), dict(corpus.labels)
    for name, description in described.items():
        task, own = make_task(name, describe_task(description)), corpus.schema.get(name)
        schema[name] = task
        labels[name] = Labels.none(len(corpus), task) if own is None else recoded(corpus, own, task)
    return replace(corpus, schema=schema, labels=labels)


def recoded(corpus: Corpus, own: Task, task: Task) -> Labels:
    """The labels of a task in the codes of a task of the same kind, which must list all of them."""
    if own.kind != task.kind:
        raise SchemaError(f"task {own.name!r} is {own.kind} in the data, not {task.kind}")
    for vocabulary in task.vocabularies:
        if unknown := [label for label in getattr(own, vocabulary) if label not in getattr(task, vocabulary)]:
            message = f"task {own.name!r}: the data has the label {unknown[0]!r}, which is not among those given"
            fix = "list all labels, or give only the name of the task to use the labels of the data"
            raise SchemaError(message, fix=fix)
    return recode(corpus.labels[own.name], own, task)
