"""Predictions: the label of every item for every task, how sure it is, and who gave it; as a table too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import FORMATS, Corpus, Labels, write
from bursar.corpus.formats.table_files import WRITERS, suffix_of, write_table
from bursar.corpus.formats.write_checks import UnknownTaskError, suggest_task_names
from bursar.errors import ConfigError
from bursar.learners import Learner
from bursar.learners.learner import Progress, in_codes_of, no_progress
from bursar.predictions.acceptance import Acceptance, HeldOut, Thresholds, ladder, thresholds_by_task
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.uncertainty import confidence_of

UNLABELLED, BELOW, MODEL, GIVEN = "", "below threshold", "model", "given"
FIRST = (UNLABELLED, BELOW, MODEL, GIVEN)  # the makers of labels that are not people
DIGITS = 4  # of how sure a model is, in a table
IN_ONE_CELL = ("classification", "regression")  # kinds whose JSON is one value
FLAT = (".csv", ".tsv", ".xlsx", ".xlsm")  # tables whose cells are read by people


@dataclass(frozen=True, eq=False)
class Prediction:
    """One item with its labels as JSON, and by task how sure the model was and who gave the label."""

    id: str
    text: str | None
    labels: dict[str, Any]
    sure: dict[str, float | None]
    by: dict[str, str]
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Labels of every item: those of people and those that came with the data, and a model's for the rest.

    How sure the model is goes from 0 (chance) to 1 (certain); it is NaN where the model gave no label. ``by`` are codes
    into ``makers``: "model", "given", "person NAME", or "below threshold" where ``above`` left a label out.

    >>> from bursar.learners import make_learner
    >>> from bursar.simulation import assistant_corpus
    >>> corpus = assistant_corpus(300, seed=1).with_tasks(["intent"])
    >>> learner = make_learner("scikit", corpus.schema)
    >>> learner.fit(corpus.take(np.arange(200))).items
    200
    >>> found = Predictions.of(learner, corpus.take(np.arange(200, 300)).unlabelled())
    >>> found[0].labels.keys(), found[0].by, len(found.to_frame())
    (dict_keys(['intent']), {'intent': 'model'}, 100)
    """

    corpus: Corpus  # the items with these labels
    sure: Mapping[str, FloatArray]  # by task: (items,)
    by: Mapping[str, IntArray]  # by task: (items,)
    makers: tuple[str, ...] = FIRST
    held_out: Mapping[str, HeldOut] = field(default_factory=dict)  # by task, if there are such items

    @classmethod
    def of(
        cls,
        learner: Learner,
        items: Corpus,
        *,
        people: Mapping[tuple[str, str], str] | None = None,
        held_out: Mapping[str, HeldOut] | None = None,
        progress: Progress = no_progress,
    ) -> Predictions:
        """Label every item with a learner. Labels that the items have are kept.

        ``people`` says who gave them, by item id and task; others came with the data. ``held_out`` is what the expected
        share of errors is measured on. Items are predicted in chunks: memory grows with the labels only.
        """
        items = _with_tasks_of(learner, items)
        known = {name: column.present for name, column in items.labels.items()}
        missing = np.flatnonzero(~np.all(list(known.values()), axis=0)) if known else np.arange(len(items))
        rows, sure = _predicted(learner, items.take(missing), progress)
        makers, by = _makers(items, people or {})
        labels, confidence = {}, {}
        for name, present in known.items():
            labels[name] = _filled(items.labels[name], missing, rows[name])
            confidence[name] = np.full(len(items), np.nan)
            confidence[name][missing] = np.where(present[missing], np.nan, sure[name])
        return cls(items.with_labels(labels), confidence, by, makers, dict(held_out or {}))

    def __len__(self) -> int:
        return len(self.corpus)

    def __getitem__(self, at: int) -> Prediction:
        item = self.corpus[at]
        sure = {name: None if np.isnan(values[at]) else float(values[at]) for name, values in self.sure.items()}
        by = {name: self.makers[codes[at]] for name, codes in self.by.items()}
        return Prediction(item.id, item.text, item.labels, sure, by, item.metadata)

    def __iter__(self) -> Iterator[Prediction]:
        return (self[at] for at in range(len(self)))

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return list(self.corpus.schema)

    def counts(self) -> dict[str, dict[str, int]]:
        """How many labels each maker gave, by task."""
        found = {}
        for name, codes in self.by.items():
            counts = np.bincount(codes, minlength=len(self.makers)).tolist()
            found[name] = {maker: count for maker, count in zip(self.makers, counts, strict=True) if count}
        return found

    def with_tasks(self, names: Sequence[str]) -> Predictions:
        """The same items with these tasks only."""
        chosen = list(dict.fromkeys(names))
        columns = {"sure": self.sure, "by": self.by, "held_out": self.held_out}
        kept: Any = {what: {name: own[name] for name in chosen if name in own} for what, own in columns.items()}
        return replace(self, corpus=self.corpus.with_tasks(chosen), **kept)

    # -- thresholds ----------------------------------------------------------------------------------------------------
    def thresholds(self, given: float | Thresholds | None) -> dict[str, float]:
        """A threshold for every task, from one for all or from some by task; 0 for the others."""
        return thresholds_by_task(self.tasks, given)

    def above(self, thresholds: float | Thresholds) -> Predictions:
        """The same without the model's labels that are below their task's threshold."""
        labels, by = {}, dict(self.by)
        for name, threshold in self.thresholds(thresholds).items():
            weak = self.sure[name] < threshold  # NaN is never below
            labels[name] = self.corpus.labels[name].take_or_none(np.where(weak, -1, np.arange(len(self))))
            by[name] = np.where(weak, FIRST.index(BELOW), self.by[name])
        return replace(self, corpus=self.corpus.with_labels(labels), by=by)

    def accepted(self, thresholds: float | Thresholds | None = None) -> list[Acceptance]:
        """By task, the labels above the threshold and the share of errors to expect among them."""
        wanted = self.thresholds(thresholds)
        return [Acceptance.of(name, wanted[name], self._own(name), self.held_out.get(name)) for name in self.tasks]

    def ladder(self, task: str) -> list[Acceptance]:
        """The same for one task at several thresholds."""
        return ladder(task, self._own(task), self.held_out.get(task))

    def _own(self, task: str) -> FloatArray:
        """How sure the model is of its labels, without those of others."""
        own: FloatArray = self.sure[task][~np.isnan(self.sure[task])]
        return own

    # -- tables and files ----------------------------------------------------------------------------------------------
    def to_frame(self) -> Any:
        """A pandas DataFrame: the columns of the source, then ``TASK``, ``TASK sure`` and ``TASK by`` for each task.

        Labels with parts are readable in ``TASK``, and JSON values in ``TASK json``.
        """
        import pandas as pd

        return pd.DataFrame(table_of(self))

    def to_corpus(self) -> Corpus:
        """The items with these labels, as a corpus."""
        return self.corpus

    def write(
        self, path: str | Path, format: str | None = None, threshold: float | Thresholds | None = None, **options: Any
    ) -> None:
        """Write a table (.csv, .tsv, .xlsx, .parquet, .json, .jsonl), or a corpus in one of the formats by name.

        Labels of the model below the ``threshold`` are left out; ``options`` are those of the format's writer.
        """
        found, path = self if threshold is None else self.above(threshold), Path(path)
        check_target(path, format)
        if format is not None:
            write_corpus(found.corpus, path, FORMATS[format].name, options)
        else:
            kind = suffix_of(path)
            write_table(table_of(found, json_values=kind not in FLAT), path, kind)


def write_corpus(corpus: Corpus, path: Path, format: str, options: Mapping[str, Any]) -> None:
    """Write in a format. One that names its tasks itself gets each where only one of them fits."""
    try:
        write(corpus, path, format, **options)
        return
    except UnknownTaskError as error:
        names = suggest_task_names(corpus.schema, error.places)
    try:
        write(corpus.with_renamed_tasks(names), path, format, **options)
    except UnknownTaskError as error:
        fix = f"choose some of the tasks {', '.join(corpus.schema)}, or another format"
        raise UnknownTaskError(error.message, error.places, fix) from None


def check_target(path: Path, format: str | None) -> None:
    """Refuse a file whose name does not say what kind of table it is, if no format is named."""
    if format is not None:
        FORMATS[format]
    elif suffix_of(path) not in WRITERS:
        fix = f"end it in {', '.join(WRITERS)}, or name a format: {', '.join(FORMATS.names())}"
        raise ConfigError(f"{path.name!r} has no known kind of table", fix=fix)


def _with_tasks_of(learner: Learner, items: Corpus) -> Corpus:
    """The items with the learner's tasks and no others; a task that they lack has no labels."""
    items = in_codes_of(learner.tasks, items)
    labels = {
        name: items.labels[name] if name in items.schema else Labels.none(len(items), task)
        for name, task in learner.tasks.items()
    }
    return replace(items, schema=dict(learner.tasks), labels=labels)


def _predicted(learner: Learner, items: Corpus, progress: Progress) -> tuple[dict[str, Ragged], dict[str, FloatArray]]:
    """The label rows and the confidence of every item, by task."""
    rows = {name: [Labels.none(0, task).rows] for name, task in learner.tasks.items()}
    sure: dict[str, list[FloatArray]] = {name: [np.zeros(0)] for name in learner.tasks}
    for _, beliefs in learner.predict_in_chunks(items, progress=progress):
        for name, task in learner.tasks.items():
            rows[name].append(task.decode(beliefs[name]))
            sure[name].append(confidence_of(learner.tasks, beliefs, name))
    joined = {name: Ragged.concatenate(parts) for name, parts in rows.items()}
    return joined, {name: np.concatenate(parts) for name, parts in sure.items()}


def _filled(labels: Labels, missing: IntArray, predicted: Ragged) -> Labels:
    """Labels with those that are missing taken from predictions for the items at positions ``missing``."""
    source = np.arange(len(labels))
    free = ~labels.present[missing]
    source[missing[free]] = len(labels) + np.flatnonzero(free)
    return Labels(np.ones(len(labels), dtype=bool), Ragged.concatenate([labels.rows, predicted]).take(source))


def _makers(items: Corpus, people: Mapping[tuple[str, str], str]) -> tuple[tuple[str, ...], dict[str, IntArray]]:
    """Who gives the label of every item, by task: codes into the list of makers."""
    makers = (*FIRST, *sorted(set(people.values()) - set(FIRST)))
    code = {maker: at for at, maker in enumerate(makers)}
    by = {name: np.where(column.present, code[GIVEN], code[MODEL]) for name, column in items.labels.items()}
    place = {id: at for at, id in enumerate(items.ids.tolist())} if people else {}
    for (item, task), maker in people.items():
        if item in place and task in by and items.labels[task].present[place[item]]:
            by[task][place[item]] = code[maker]
    return makers, by


# -- as a table --------------------------------------------------------------------------------------------------------
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
