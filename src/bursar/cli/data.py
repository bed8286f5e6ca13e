"""``bursar data``: inspect and convert datasets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import JsonOption
from bursar.cli.output import print_json, print_table
from bursar.errors import ConfigError, DataError

app = typer.Typer(help="Inspect and convert datasets.", no_args_is_help=True)

BUILTIN = "builtin"


def all_formats() -> list[str]:
    """The names of all formats, for completion."""
    from bursar.corpus import FORMATS

    return FORMATS.names()


PathArgument = Annotated[str, Argument(help="A file, a folder, or 'builtin' for the built-in corpus.")]
FormatOption = Annotated[
    str | None,
    Option(
        "--format", "-f", metavar="NAME", help="Format of the dataset. Default: detected.", autocompletion=all_formats
    ),
]
SetOption = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="Option of the reader, such as layer=PATH. Repeatable.")
]


@app.command("list")
def list_data(
    folder: Annotated[Path | None, Argument(help="Folder to search. Default: $BURSAR_DATA, or this folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the datasets in a folder and the known formats."""
    from bursar.corpus import FORMATS, guess_format

    place = folder or Path(os.environ.get("BURSAR_DATA", "."))
    if not place.is_dir():
        raise DataError("not a folder", path=place)
    found = [{"name": BUILTIN, "format": BUILTIN}]
    for path in sorted(p for p in place.iterdir() if not p.name.startswith(".")):
        try:
            found.append({"name": str(path), "format": guess_format(path).name})
        except DataError:
            continue
    formats = {name: FORMATS[name].summary for name in FORMATS}
    if as_json:
        print_json({"data": found, "formats": formats})
        return
    sets = [[d["name"], d["format"]] for d in found]
    print_table(f"Datasets in {place}", ["dataset", "format"], sets, numbers=False)
    print_table("Formats", ["format", "description"], list(formats.items()), numbers=False)


@app.command()
def stats(path: PathArgument, format: FormatOption = None, set: SetOption = None, as_json: JsonOption = False) -> None:
    """Count the items, words and labels of a dataset."""
    corpus = read_data(path, format, set)
    found = corpus_stats(corpus)
    if as_json:
        print_json({"path": path} | found)
        return
    counts = {"items": found["items"], "documents": found["groups"], "words": found["words"]}
    if not any(found["groups"].values()):
        del counts["documents"]
    counts |= {f"labelled for {name}": task["annotated"] for name, task in found["tasks"].items()}
    rows = [[name, *(f"{count:,}" for count in by_split.values())] for name, by_split in counts.items()]
    print_table(path, ["", *found["items"]], rows)
    for name, task in found["tasks"].items():
        labels = list(task["labels"].items())
        shown = [[label, f"{count:,}"] for label, count in labels[:15]]
        if len(labels) > 15:
            shown.append([f"… {len(labels) - 15} more", f"{sum(count for _, count in labels[15:]):,}"])
        shown = shown or [[key, f"{value:.4g}"] for key, value in task.get("values", {}).items()]
        print_table(f"{name} ({task['kind']})", ["label", task["counted"] + "s"], shown)


@app.command()
def convert(
    source: PathArgument,
    target: Annotated[Path, Argument(help="File or folder to write.")],
    to: Annotated[str, Option("--to", "-t", help="Format to write.", autocompletion=all_formats)] = "jsonl",
    format: FormatOption = None,
    set: SetOption = None,
    write: Annotated[
        list[str] | None, Option("--write", help="Option of the writer, such as scheme=BIOES. Repeatable.")
    ] = None,
    tasks: Annotated[str | None, Option("--tasks", help="Only these tasks, such as intent,slots.")] = None,
    rename: Annotated[
        list[str] | None, Option("--rename", help="Rename a task, such as slots=entities. Repeatable.")
    ] = None,
) -> None:
    """Convert a dataset from one format to another."""
    from bursar.corpus import FORMATS

    writer = FORMATS[to]
    corpus = read_data(source, format, set)
    if tasks:
        corpus = corpus.with_tasks(tasks.split(","))
    corpus = corpus.with_renamed_tasks(_options(rename))
    _call(writer.write, corpus, target, options=_options(write), what=f"the {to} writer")
    typer.echo(f"Wrote {len(corpus):,} items to {target}")
    say_left_out(corpus, to)


def say_left_out(corpus: bursar.Corpus, format: str) -> None:
    """Name the columns of a table that are not in the file that was written."""
    from bursar.corpus import columns_left_out

    if columns := columns_left_out(corpus, format):
        typer.echo(f"Left out, as {format} holds no columns of your own: {', '.join(columns)}", err=True)


def corpus_stats(corpus: bursar.Corpus) -> dict[str, Any]:
    """Count items, documents and words per split, and annotated items and labels per task."""
    import numpy as np

    codes, splits = corpus.split_codes, corpus.splits

    def by_split(rows: Any, weights: Any = None) -> dict[str, int]:
        counts = np.bincount(codes[rows], weights=weights, minlength=len(splits)).astype(int)
        return dict(zip(splits, counts.tolist(), strict=True))

    groups = dict.fromkeys(splits, 0)
    if corpus.groups is not None:
        named = np.array(corpus.groups.tolist(), dtype=object)
        groups = {split: len(set(named[codes == code]) - {""}) for code, split in enumerate(splits)}
    tasks = {}
    for name, task in corpus.schema.items():
        labels = corpus.labels[name]
        found: dict[str, Any] = {
            "kind": task.kind,
            "counted": "label" if task.counted == "item" else task.counted,
            "annotated": by_split(labels.present),
            "labels": {},
        }
        values = labels.rows.values
        if task.labels:
            counts = np.bincount(values[:, -1].astype(np.int64), minlength=len(task.labels))
            found["labels"] = {task.labels[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable")}
        elif len(values):
            found["values"] = {"lowest": values.min(), "mean": values.mean(), "highest": values.max()}
        tasks[name] = found
    return {
        "items": corpus.split_counts(),
        "groups": groups,
        "words": by_split(slice(None), corpus.reading),
        "total": len(corpus),
        "tasks": tasks,
    }


def read_data(
    path: str, format: str | None, options: list[str] | None, columns: Mapping[str, Any] | None = None
) -> bursar.Corpus:
    """Read a dataset named on the command line. ``columns`` are the roles and tasks of a table's columns."""
    given = _options(options)
    if path == BUILTIN:
        if columns:
            raise ConfigError("the built-in corpus has no columns to name", fix="leave the options for columns out")
        for key, value in given.items():
            if key not in ("items", "seed") or not str(value).isdigit():
                raise ConfigError(f"the built-in corpus does not accept {key}={value}", fix="use items=20000 or seed=0")
        numbers = {key: int(value) for key, value in given.items()}
        return bursar.assistant_corpus(numbers.get("items", 20_000), numbers.get("seed", 0))
    given |= columns or {}
    corpus: bursar.Corpus = _call(bursar.read, path, format, options=given, what="the reader")
    return corpus


def _call(function: Any, *arguments: Any, options: Mapping[str, Any], what: str) -> Any:
    """Call with options from the command line; an unknown one is a configuration error."""
    try:
        return function(*arguments, **options)
    except TypeError as wrong:
        if options and "keyword argument" in str(wrong):
            raise ConfigError(f"{what} does not accept {', '.join(options)}: {wrong}") from None
        raise


def _options(given: list[str] | None) -> dict[str, Any]:
    """Parse ``key=value`` options; a value with commas is a list."""
    options: dict[str, Any] = {}
    for entry in given or ():
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise ConfigError(f"{entry!r} is not an option", fix="write key=value")
        options[key] = value.split(",") if "," in value.strip(",") else value
    return options
