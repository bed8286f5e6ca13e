"""GLUE: one folder per task with train.tsv, dev.tsv and test.tsv, or a folder of such folders.

A task is named after its folder, and items after the task, so that all of GLUE is one corpus in which every item has a
label for its own task only. The header names the columns; CoLA, which has none, is recognised by its four columns.
Quotation marks are not special. A file without a label column gives items without labels, as the test files of GLUE do.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bursar.corpus.corpus import Corpus, Item, Names, Schema, concatenate
from bursar.corpus.formats.format import FORMATS, FileReader, Format, head_of, numbered_id, replacing, split_of
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import DataError, SchemaError
from bursar.tasks import Classification, Regression, Task

# Names of columns: the text and its pair, and the label. No task of GLUE matches two of them.
TEXTS = (
    ("sentence1", "sentence2"),
    ("#1 String", "#2 String"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("sentence", None),
)
LABELS = ("label", "gold_label", "Quality", "is_duplicate", "score")
SCORE, LOW, HIGH = "score", 0.0, 5.0  # STS-B
# Other files of these folders (dev_ids.tsv, test-labeled.tsv, …) are not what GLUE publishes as its splits.
FILES = ("train", "dev", "dev_matched", "dev_mismatched", "test", "test_matched", "test_mismatched")


@dataclass(frozen=True)
class TextColumns:
    """The positions of the text, its pair and the label in a row."""

    width: int
    text: int
    pair: int | None
    label: int | None
    is_score: bool = False
    has_header: bool = True


COLA = TextColumns(width=4, text=3, pair=None, label=1, has_header=False)


def columns_of(first: str) -> TextColumns | None:
    """The columns by a file's first line; ``None`` if it is not GLUE's."""
    cells = first.split("\t")
    place: dict[str | None, int] = {name: at for at, name in reversed([*enumerate(cells)])}
    for text, pair in TEXTS:
        if text in place and (pair is None or pair in place):
            label = next((name for name in LABELS if name in place), None)
            return TextColumns(len(cells), place[text], place.get(pair), place.get(label), is_score=label == SCORE)
    return COLA if len(cells) == 4 and cells[1] in ("0", "1") and cells[2] in ("", "*") else None


def sniff(path: Path) -> bool:
    """A file with GLUE's columns, a folder with such files, or a folder of such folders."""
    return any(columns_of(line) for file in _task_files(path)[:1] for line in head_of(file, 1))


def _files(folder: Path) -> list[Path]:
    return [file for name in FILES if (file := folder / f"{name}.tsv").is_file()]


def _task_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return [path] if _files(path) else [f for f in sorted(path.iterdir()) if f.is_dir() and _files(f)]


def _task_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".tsv" else []
    return [file for folder in _task_folders(path) for file in _files(folder)]


def read(path: Path, schema: Schema = None) -> Corpus:
    """Read a folder of tasks, the folder of one task, or one file, whose task is named after its folder."""
    if not path.is_dir():
        return _read_task(path.absolute().parent.name or "glue", [path], schema)
    folders = _task_folders(path)
    if not folders:
        raise DataError("the folder holds no train.tsv, dev.tsv or test.tsv, nor folders that do", path=path)
    named = {folder.absolute().name: folder for folder in folders}
    stated = schema or {}
    if unknown := stated.keys() - named.keys():
        raise SchemaError(f"there is no folder for task {min(unknown)!r} in {path}")
    own = {name: {name: stated[name]} if name in stated else None for name in named}
    return concatenate([_read_task(name, _files(folder), own[name]) for name, folder in named.items()])


def _read_task(name: str, files: Iterable[Path], schema: Schema) -> Corpus:
    reader = FileReader(schema)
    for reader.file in files:
        before = len(reader)
        _read_file(reader, name)
        if len(reader) == before:
            raise DataError("there is no item in it", path=reader.file)
    return reader.build()


def _read_file(reader: FileReader, name: str) -> None:
    split = split_of(reader.file.name) or "train"
    columns: TextColumns | None = None
    for line in reader.lines():
        if columns is None:
            columns = columns_of(line)
            if columns is None:
                raise reader.error("these are not the columns of a GLUE task", fix=f"a header with {TEXTS[0]}")
            if columns.label is not None:
                reader.declare(_task(name, columns.is_score))
            if columns.has_header:
                continue
        if not line and columns.width > 1:
            continue
        cells = line.split("\t")
        if len(cells) != columns.width:
            raise reader.error(f"expected {columns.width} cells between tabs, not {len(cells)}")
        labels = {} if columns.label is None else {name: _label(reader, cells[columns.label], columns.is_score)}
        pair = None if columns.pair is None else cells[columns.pair]
        id = reader.next_id(f"{name}-{split}")
        reader.add(id, split=split, text=cells[columns.text], pair=pair, labels=labels)


def _task(name: str, is_score: bool) -> Task:
    return Regression(name, low=LOW, high=HIGH) if is_score else Classification(name)


def _label(reader: FileReader, cell: str, is_score: bool) -> str | float:
    if not is_score:
        return cell
    try:
        return float(cell)
    except ValueError:
        raise reader.error(f"the score {cell!r} is not a number") from None


def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write one folder per task in ``path``, each with one file per split; files always have a header."""
    checks = WriteChecks(corpus, "glue", lose)
    checks.refuse("images", "groups", "words")
    checks.tasks([_task(name, task.kind == "regression") for name, task in corpus.schema.items()])
    checks.known_splits(checks.splits())
    contents: dict[Path, list[Item]] = {}
    for item in checks.items():
        contents.setdefault(path / _task_of(checks, item) / f"{item.split}.tsv", []).append(item)
    others = set(_task_files(path)) - set(contents)
    if others:
        raise DataError("a file of another corpus is in this folder", path=min(others), fix="use an empty folder")
    paired = {file.parent for file, items in contents.items() if any(item.pair is not None for item in items)}
    with ExitStack() as stack:
        for file, items in contents.items():
            out = stack.enter_context(replacing(file))
            for row in _rows(checks, items, file.parent.name, file.parent in paired):
                out.write("\t".join(row) + "\n")


def _task_of(checks: WriteChecks, item: Item) -> str:
    """The task of an item: the one it is labelled for, or else the one that its id begins with."""
    schema = checks.corpus.schema
    tasks = [*item.labels] or [name for name in schema if item.id.startswith(f"{name}-")] or [*schema]
    if len(tasks) != 1:
        raise checks.error(f"has one task per item, and this one has {', '.join(tasks) or 'none'}", item)
    if Path(tasks[0]).name != tasks[0] or tasks[0].startswith("."):
        raise checks.error(f"names folders after tasks, and {tasks[0]!r} is no name for a folder", item)
    return tasks[0]


def _rows(checks: WriteChecks, items: list[Item], task: str, paired: bool) -> Iterable[list[str]]:
    split, labelled = items[0].split, task in items[0].labels
    is_score = checks.corpus.schema[task].kind == "regression"
    texts = ["sentence1", "sentence2"] if paired else ["sentence"]
    yield ["index", *texts, *[SCORE if is_score else LABELS[0]] * labelled]
    for number, item in enumerate(items, start=1):
        checks.id(item, numbered_id(f"{task}-{split}", number))
        if (task in item.labels) != labelled:
            raise checks.error(f"has labels for all or none of a split, and {split} has some", item)
        cells = [item.text or "", *[item.pair or ""] * paired, *[str(item.labels[task]) for _ in range(labelled)]]
        yield [str(number - 1), *(checks.cell(item, cell, "") if cell else "" for cell in cells)]


FORMATS.add("glue", Format("glue", "GLUE tasks as tsv", sniff, read, write))
