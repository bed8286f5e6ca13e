"""Predictions: the label of every item for every task, how sure it is, and who gave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import FORMATS, Corpus, Labels, write
from bursar.corpus.formats.table_files import WRITERS, suffix_of, write_table
from bursar.corpus.formats.write_checks import UnknownTaskError, suggest_task_names
from bursar.errors import ConfigError, DataError
from bursar.learners import Learner
from bursar.learners.learner import Progress, in_codes_of, no_progress
from bursar.predictions.acceptance import Acceptance, HeldOut, Thresholds, ladder, thresholds_by_task
from bursar.predictions.cells import table_of
from bursar.ragged import BoolArray, FloatArray, IntArray, Ragged
from bursar.uncertainty import confidence_of

UNLABELLED, BELOW, MODEL, GIVEN = "", "below threshold", "model", "given"
FIRST = (UNLABELLED, BELOW, MODEL, GIVEN)  # the makers of labels that are not people
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
        sure = {name: float(values[at]) for name, values in self.sure.items()}
        return Prediction(
            item.id,
            item.text,
            item.labels,
            {name: None if value != value else value for name, value in sure.items()},
            {name: self.makers[codes[at]] for name, codes in self.by.items()},
            item.metadata,
        )

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
        corpus = self.corpus.with_tasks(chosen)
        sure = {name: self.sure[name] for name in chosen}
        by = {name: self.by[name] for name in chosen}
        held_out = {name: about for name, about in self.held_out.items() if name in chosen}
        return replace(self, corpus=corpus, sure=sure, by=by, held_out=held_out)

    # -- thresholds ----------------------------------------------------------------------------------------------------
    def thresholds(self, given: float | Thresholds | None) -> dict[str, float]:
        """A threshold for every task, from one for all or from some by task; 0 for the others."""
        return thresholds_by_task(self.tasks, given)

    def above(self, thresholds: float | Thresholds) -> Predictions:
        """The same without the model's labels that are below their task's threshold."""
        labels, by = {}, dict(self.by)
        for name, threshold in self.thresholds(thresholds).items():
            weak = self.sure[name] < threshold  # NaN is never below
            labels[name] = _without(self.corpus.labels[name], weak)
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
        sure = self.sure[task]
        own: FloatArray = sure[~np.isnan(sure)]
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
            _write_corpus(found.corpus, path, FORMATS[format].name, options)
        else:
            kind = suffix_of(path)
            write_table(table_of(found, json_values=kind not in FLAT), path, kind)


def _write_corpus(corpus: Corpus, path: Path, format: str, options: Mapping[str, Any]) -> None:
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
        raise DataError(error.message, fix=fix) from None


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
    rows: dict[str, list[Ragged]] = {name: [] for name in learner.tasks}
    sure: dict[str, list[FloatArray]] = {name: [np.zeros(0)] for name in learner.tasks}
    for _, beliefs in learner.predict_in_chunks(items, progress=progress):
        for name, task in learner.tasks.items():
            rows[name].append(task.decode(beliefs[name]))
            sure[name].append(confidence_of(learner.tasks, beliefs, name))
    empty = {name: Labels.none(0, task).rows for name, task in learner.tasks.items()}
    found = {name: Ragged.concatenate(parts) if parts else empty[name] for name, parts in rows.items()}
    return found, {name: np.concatenate(parts) for name, parts in sure.items()}


def _filled(labels: Labels, missing: IntArray, predicted: Ragged) -> Labels:
    """Labels with those that are missing taken from predictions for the items at positions ``missing``."""
    source = np.arange(len(labels))
    free = ~labels.present[missing]
    source[missing[free]] = len(labels) + np.flatnonzero(free)
    return Labels(np.ones(len(labels), dtype=bool), Ragged.concatenate([labels.rows, predicted]).take(source))


def _without(labels: Labels, which: BoolArray) -> Labels:
    """The labels without those of some items."""
    empty = Ragged(labels.rows.values[:0], np.zeros(2, dtype=np.int64))
    source = np.where(which, len(labels), np.arange(len(labels)))
    return Labels(labels.present & ~which, Ragged.concatenate([labels.rows, empty]).take(source))


def _makers(items: Corpus, people: Mapping[tuple[str, str], str]) -> tuple[tuple[str, ...], dict[str, IntArray]]:
    """Who gives the label of every item, by task: codes into the list of makers."""
    makers = (*FIRST, *sorted(set(people.values()) - set(FIRST)))
    code = {maker: at for at, maker in enumerate(makers)}
    by = {
        name: np.where(column.present, code[GIVEN], code[MODEL]).astype(np.int64)
        for name, column in items.labels.items()
    }
    if people:
        place = {id: at for at, id in enumerate(items.ids.tolist())}
        for (item, task), maker in people.items():
            at = place.get(item)
            if at is not None and task in by and items.labels[task].present[at]:
                by[task][at] = code[maker]
    return makers, by
