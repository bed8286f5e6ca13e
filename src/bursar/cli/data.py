"""``bursar data``: look into data sets and convert them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.errors import ConfigError, DataError

if TYPE_CHECKING:
    from bursar.corpus import Corpus

app = typer.Typer(help="Look into data sets and convert them.", no_args_is_help=True)

BUILTIN = "builtin"


def _formats() -> list[str]:
    from bursar.corpus import FORMATS

    return FORMATS.names()


PathArgument = Annotated[str, typer.Argument(help="A file or folder, or 'builtin' for the built-in corpus.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", "-f", help="The format; guessed if not given.", autocompletion=_formats)
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="An option of the format's reader, such as layer=PATH.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")]


@app.command("list")
def list_data(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to look; $BURSAR_DATA or this folder if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the data sets in a folder, and the formats that can be read."""
    from bursar.corpus import FORMATS, guess_format

    place = folder or Path(os.environ.get("BURSAR_DATA", "."))
    if not place.is_dir():
        raise DataError("there is no such folder", path=place)
    found = [{"name": BUILTIN, "format": BUILTIN}]
    for path in sorted(p for p in place.iterdir() if not p.name.startswith(".")):
        try:
            found.append({"name": str(path), "format": guess_format(path).name})
        except DataError:
            continue
    formats = {name: FORMATS[name].summary for name in FORMATS}
    if as_json:
        typer.echo(json.dumps({"data": found, "formats": formats}))
        return
    from bursar.cli.show import print_table

    sets = [[d["name"], d["format"]] for d in found]
    print_table(f"Data sets in {place}", ["data set", "format"], sets, numbers=False)
    print_table("Formats", ["format", "what it is"], [*map(list, formats.items())], numbers=False)


@app.command()
def stats(path: PathArgument, format: FormatOption = None, set: SetOption = None, as_json: JsonOption = False) -> None:
    """Count items per split, tasks and labels."""
    corpus = _read(path, format, set)
    found = corpus_stats(corpus)
    if as_json:
        typer.echo(json.dumps({"path": path} | found, ensure_ascii=False))
        return
    from bursar.cli.show import print_table

    splits = list(found["items"])
    rows = [["items", *(f"{found['items'][s]:,}" for s in splits)]]
    if any(found["groups"].values()):
        rows.append(["documents", *(f"{found['groups'][s]:,}" for s in splits)])
    rows.append(["words", *(f"{found['words'][s]:,}" for s in splits)])
    rows += [
        [f"labelled for {name}", *(f"{task['annotated'][s]:,}" for s in splits)]
        for name, task in found["tasks"].items()
    ]
    print_table(path, ["", *splits], rows)
    for name, task in found["tasks"].items():
        counts = list(task["labels"].items())
        shown = [[label, f"{count:,}"] for label, count in counts[:15]]
        if len(counts) > 15:
            shown.append([f"… {len(counts) - 15} more", f"{sum(c for _, c in counts[15:]):,}"])
        shown = shown or [[key, f"{value:.4g}"] for key, value in task.get("values", {}).items()]
        print_table(f"{name} ({task['kind']})", ["label", task["counted"] + "s"], shown)


@app.command()
def convert(
    source: PathArgument,
    target: Annotated[Path, typer.Argument(help="The file or folder to write.")],
    to: Annotated[str, typer.Option("--to", "-t", help="The format to write.", autocompletion=_formats)] = "jsonl",
    format: FormatOption = None,
    set: SetOption = None,
    write: Annotated[
        list[str] | None, typer.Option("--write", help="An option of the writer, such as scheme=BIOES.")
    ] = None,
    tasks: Annotated[str | None, typer.Option("--tasks", help="Only these tasks, such as intent,slots.")] = None,
    rename: Annotated[list[str] | None, typer.Option("--rename", help="A task's other name: slots=entities.")] = None,
) -> None:
    """Read a data set in one format and write it in another."""
    from bursar.corpus import FORMATS

    writer = FORMATS[to]
    corpus = _read(source, format, set)
    if tasks:
        corpus = corpus.with_tasks(tasks.split(","))
    corpus = corpus.with_renamed_tasks(_options(rename))
    _call(writer.write, corpus, target, options=_options(write), what=f"the {to} writer")
    typer.echo(f"{len(corpus):,} items written to {target}")


def corpus_stats(corpus: Corpus) -> dict[str, Any]:
    """Items, documents and words per split; per task its kind, who is labelled and how often each label occurs."""
    import numpy as np

    splits = corpus.splits
    codes = corpus.split_codes
    words = np.bincount(codes, weights=corpus.reading, minlength=len(splits)).astype(int).tolist()
    groups = dict.fromkeys(splits, 0)
    if corpus.groups is not None:
        named = corpus.groups.tolist()
        for code, split in enumerate(splits):
            groups[split] = len({named[at] for at in np.flatnonzero(codes == code)} - {""})
    tasks = {}
    for name, task in corpus.schema.items():
        labels = corpus.labels[name]
        present = np.bincount(codes[labels.present], minlength=len(splits)).tolist()
        found: dict[str, Any] = {
            "kind": task.kind,
            "counted": "label" if task.counted == "item" else task.counted,
            "annotated": dict(zip(splits, present, strict=True)),
            "labels": {},
        }
        values = labels.rows.values
        if task.labels:
            counts = np.bincount(values[:, -1].astype(np.int64), minlength=len(task.labels))
            order = np.argsort(-counts, kind="stable")
            found["labels"] = {task.labels[i]: int(counts[i]) for i in order}
        elif len(values):
            found["values"] = {"lowest": values.min(), "mean": values.mean(), "highest": values.max()}
        tasks[name] = found
    return {
        "items": corpus.split_counts(),
        "groups": groups,
        "words": dict(zip(splits, words, strict=True)),
        "total": len(corpus),
        "tasks": tasks,
    }


def _read(path: str, format: str | None, options: list[str] | None) -> Corpus:
    from bursar.corpus import read

    if path == BUILTIN:
        from bursar.simulation import assistant_corpus

        chosen = _integers(_options(options))
        return assistant_corpus(chosen.get("items", 20_000), chosen.get("seed", 0))
    corpus: Corpus = _call(read, path, format, options=_options(options), what="the reader")
    return corpus


def _call(function: Any, *arguments: Any, options: Mapping[str, Any], what: str) -> Any:
    """Call with options that a person typed; one that does not exist is their mistake, not ours."""
    try:
        return function(*arguments, **options)
    except TypeError as wrong:
        if options and "keyword argument" in str(wrong):
            raise ConfigError(f"{what} does not take {', '.join(options)}: {wrong}") from None
        raise


def _options(given: list[str] | None) -> dict[str, Any]:
    """``key=value`` as an option; a value with commas is a list."""
    options: dict[str, Any] = {}
    for entry in given or ():
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise ConfigError(f"{entry!r} is not an option", fix="write it as key=value")
        options[key] = value.split(",") if "," in value else value
    return options


def _integers(options: Mapping[str, Any]) -> dict[str, int]:
    for key, value in options.items():
        if key not in ("items", "seed") or not str(value).isdigit():
            raise ConfigError(f"the built-in corpus does not take {key}={value}", fix="items=20000 or seed=0")
    return {key: int(value) for key, value in options.items()}
