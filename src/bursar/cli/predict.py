"""``bursar predict`` and ``bursar export-model``: the labels of every item of a project, and its newest model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from bursar.cli.data import all_formats, say_left_out
from bursar.cli.options import JsonOption, ProjectArgument, TrustOption, check_output_file, grouped
from bursar.cli.output import ProgressBar, print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.annotation.labelled import NewestModel
    from bursar.predictions import Predictions


@dataclass(frozen=True)
class PredictSettings:
    """What is written, and where."""

    out: Path | None = Option(
        None,
        "--out",
        "-o",
        metavar="FILE",
        help="File to write: .xlsx, .csv, .tsv, .parquet, .json or .jsonl. Without it, only the summary is shown.",
    )
    format: str | None = Option(
        None,
        "--format",
        "-f",
        metavar="NAME",
        help="Write the labels in one of the formats of 'bursar data list', such as conll or doccano, not as a table.",
        autocompletion=all_formats,
    )
    tasks: str | None = Option(None, metavar="TASK,TASK", help="Only these tasks. Default: all.")
    threshold: list[str] | None = Option(
        None,
        metavar="TASK=NUMBER",
        help="Leave out the model's labels of a task below this confidence, 0 to 1, such as intent=0.92; a number "
        "alone is for all tasks. Repeatable.",
    )
    lose: str | None = Option(
        None, metavar="WHAT", help="What the format may drop: ids, groups, spacing, words. Separate by commas."
    )
    trust: TrustOption = False
    as_json: JsonOption = False


@grouped
def predict(project: ProjectArgument, settings: PredictSettings) -> None:
    """Write every item of a project with its labels, how sure the model is, and who gave each label.

    Labels of people come first, then those that came with the data; the newest
    model gives the rest. The share of errors among its labels is estimated on
    items that it was not trained on.
    """
    from bursar.annotation.labelled import predict_project
    from bursar.predictions.predictions import check_target

    if settings.out is not None:
        check_output_file("--out", settings.out)
        check_target(settings.out, settings.format)
    elif settings.format is not None:
        raise ConfigError(f"--format {settings.format} writes a file", fix="name it: --out FILE")
    given = parse_thresholds(settings.threshold)
    with ProgressBar(quiet=settings.as_json, patience=2.0) as bar:
        found, model = predict_project(project, given, trust=settings.trust, progress=bar.update)
        if settings.tasks:
            found = found.with_tasks([name.strip() for name in settings.tasks.split(",")])
        thresholds = found.thresholds(given)
        if settings.out is not None:
            bar.update("writing", 0.0)
            options = {"lose": settings.lose} if settings.lose else {}
            found.write(settings.out, settings.format, thresholds, **options)
    if settings.as_json:
        print_json(
            {
                "out": None if settings.out is None else str(settings.out),
                "items": len(found),
                "by": found.counts(),
                "model": {"round": model.round, "items": model.about.items, "labels": dict(model.about.labels)},
                "accepted": {about.task: about.to_json() for about in found.accepted(thresholds)},
                "thresholds": {name: [step.to_json() for step in found.ladder(name)] for name in found.tasks},
            }
        )
    else:
        _print(found, model, thresholds, settings.out, settings.format)


def parse_thresholds(given: Iterable[str] | None) -> float | dict[str, float]:
    """Parse thresholds: ``TASK=NUMBER``, or one number for all tasks."""
    found: dict[str, float] = {}
    entries = list(given or ())
    for entry in entries:
        task, equals, number = entry.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1 or (equals and not task) or (not equals and len(entries) > 1):
            fix = "use TASK=NUMBER with a number from 0 to 1, such as intent=0.92, or one number for all tasks"
            raise ConfigError(f"--threshold {entry} is not a threshold", fix=fix)
        if not equals:
            return value
        found[task] = value
    return found


def _print(
    found: Predictions, model: NewestModel, thresholds: dict[str, float], out: Path | None, format: str | None
) -> None:
    from bursar.predictions.predictions import IN_ONE_CELL

    typer.echo(f"Labels by {model}, where people gave none:")
    for about in found.accepted(thresholds):
        typer.echo(f"  {about}")
    typer.echo("")
    steps = [(name, step) for name in found.tasks for step in found.ladder(name) if step.above]
    if rows := [(name, f"{s.threshold:g}", f"{100 * s.share:.0f} %", s.error_words) for name, s in steps]:
        columns = ("task", "threshold", "items", "95 % interval")
        print_table("The model's labels at or above a threshold", columns, rows, numbers=False)
    if any(task.kind not in IN_ONE_CELL for task in found.corpus.schema.values()):
        typer.echo("A label with parts, such as spans, is wrong if any part of it is.")
    if out is not None:
        typer.echo(f"Wrote {len(found):,} items to {out}")
        if format is not None:
            say_left_out(found.corpus, format)


def export_model(
    project: ProjectArgument,
    folder: Annotated[Path, typer.Argument(help="Folder to write; it must be new or empty.")],
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a project's newest model to a folder, with a model card.

    Load it with bursar.load_model(FOLDER). The encoder of a transformer is in
    Hugging Face's layout: transformers.AutoModel.from_pretrained(FOLDER).
    """
    from bursar.annotation.labelled import export_project_model

    with ProgressBar(quiet=as_json, patience=2.0) as bar:
        written = export_project_model(project, folder, trust=trust, progress=bar.update)
    if as_json:
        print_json({"folder": str(folder), "files": written})
    else:
        typer.echo(f"Wrote the model to {folder}: {', '.join(written)}")
