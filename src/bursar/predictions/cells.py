"""Labels as columns of a table: what it had before, then what was predicted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bursar.corpus import Corpus

if TYPE_CHECKING:
    from bursar.predictions.predictions import Predictions

DIGITS = 4  # of how sure a model is
IN_ONE_CELL = ("classification", "regression")  # kinds whose JSON is one value


def table_of(predictions: Predictions, json_values: bool = True) -> dict[str, list[Any]]:
    """The columns of the table that the items came from, in its order, then ``TASK``, ``TASK sure`` and ``TASK by``.

    With ``json_values``, labels with parts (spans, trees, relations) also have a column ``TASK json``.
    """
    columns = source_columns(predictions.corpus)
    for name, task in predictions.corpus.schema.items():
        own = {"": readable_cells(predictions.corpus, name)}
        own[" sure"] = [None if sure != sure else round(sure, DIGITS) for sure in predictions.sure[name].tolist()]
        own[" by"] = [predictions.makers[code] for code in predictions.by[name].tolist()]
        if json_values and task.kind not in IN_ONE_CELL:
            own[" json"] = json_cells(predictions.corpus, name)
        start = free_name(name, own, columns)
        columns |= {start + ending: cells for ending, cells in own.items()}
    return columns


def free_name(task: str, endings: dict[str, list[Any]], taken: dict[str, list[Any]]) -> str:
    """What a task's columns start with: its name, unless the table has such columns already."""
    names = [task, f"{task} label", *(f"{task} label {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if not any(name + ending in taken for ending in endings))


def source_columns(corpus: Corpus) -> dict[str, list[Any]]:
    """The columns of the table that the items came from; without one, ids, splits if there are several, and texts."""
    table, texts = corpus.metadata, None if corpus.texts is None else corpus.texts.strings.tolist()
    if table is not None and table.text is not None:
        cells = {name: table.column(name) for name in table.order if name in table.cells}
        return {name: cells.get(name, texts or []) for name in table.order}
    columns: dict[str, list[Any]] = {"id": corpus.ids.tolist()}
    splits = [corpus.splits[code] for code in corpus.split_codes.tolist()]
    if len(set(splits)) > 1:
        columns["split"] = splits
    if texts is not None:
        columns["text"] = texts
    if corpus.pairs is not None:
        columns["pair"] = [pair or None for pair in corpus.pairs.strings.tolist()]
    if corpus.groups is not None:
        columns["group"] = [group or None for group in corpus.groups.tolist()]
    if table is not None:
        columns |= {name: table.column(name) for name in table.cells if name not in columns}
    return columns


def json_cells(corpus: Corpus, name: str) -> list[Any]:
    """The labels of a task as JSON values; ``None`` for items without one."""
    task, labels = corpus.schema[name], corpus.labels[name]
    rows = zip(labels.present.tolist(), labels.rows, strict=True)
    return [task.value(row) if present else None for present, row in rows]


def readable_cells(corpus: Corpus, name: str) -> list[Any]:
    """The labels of a task, each readable in one cell."""
    task, values = corpus.schema[name], json_cells(corpus, name)
    if task.kind == "classification":
        return values
    found = []
    for value, (text, spans) in zip(values, _read(corpus), strict=True):

        def between(start: int, end: int, text: str = text, spans: list[list[int]] = spans) -> str:
            return text[spans[start][0] : spans[end - 1][1]]

        words = [text[a:b] for a, b in spans] if value is not None and task.of_words else []
        found.append(None if value is None else task.cell(value, words, between))
    return found


def _read(corpus: Corpus) -> Iterator[tuple[str, list[list[int]]]]:
    """The text of every item, and the positions of its words."""
    if corpus.texts is None:
        yield from [("", [])] * len(corpus)
        return
    spans = corpus.texts.spans
    for text, (start, end) in zip(corpus.texts.strings.tolist(), pairwise(spans.offsets.tolist()), strict=True):
        yield text, spans.values[start:end].tolist()
