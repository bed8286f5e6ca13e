"""``python -m experiments``: run studies and benchmarks from the repository, and report their results."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bursar.cli import run_app
from bursar.cli.options import JsonOption
from bursar.cli.output import print_table
from bursar.compute import Engine, make_engine
from bursar.errors import BursarError, ConfigError
from experiments import laws_files
from experiments.bench import GROUPS, cases_of
from experiments.display import UnitsDisplay
from experiments.progress import UnitProgress
from experiments.studies.arms import Place
from experiments.studies.catalogue import known_studies, missing_data
from experiments.studies.page import Coverage, write_study_report
from experiments.studies.study import Results, Study, file_of, run_study

RESULTS = Path("experiments") / "results"
RUNS = Path("runs") / "studies"
SMALL = "small"

app = typer.Typer(
    name="experiments",
    help="Run and resume studies and benchmarks of Bursar, and report their results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(laws_files.app, name="laws")

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of the datasets. Default: $BURSAR_DATA or ../shared/data.")
]
ScaleOption = Annotated[
    str | None,
    typer.Option("--scale", help="small, or paper for the published size. Default: small."),
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="Where to run: here, processes, processes:4, ray or ray://host:port.")
]
SeedsOption = Annotated[str | None, typer.Option("--seeds", help="Run only these seeds, such as 0,1. Default: all.")]
RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", help="Folder for finished units, shared by all studies. Default: runs/studies."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Results file to write. Default: experiments/results/NAME.json.",
    ),
]


@app.command("list")
def list_studies(
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the studies, their results, and whether their datasets are available."""
    folder, studies = _data(data), known_studies()
    found: list[dict[str, Any]] = []
    for study in (studies[name] for name in studies):
        missing = missing_data(study, folder)
        found.append(
            {
                "name": study.name,
                "title": study.title,
                "source": study.source,
                "scales": list(study.scales),
                "data": {name: name not in missing for name in study.reads},
                "results": [there for scale in study.scales if (there := _there(study, scale))],
            }
        )
    if as_json:
        typer.echo(json.dumps({"studies": found}, ensure_ascii=False))
        return

    rows = [
        (
            study["name"],
            f"{study['title']} ({study['source']})",
            "\n".join(map(_in_a_line, study["results"])) or "none",
            ", ".join(name if here else f"{name} (not found)" for name, here in study["data"].items()) or "none",
        )
        for study in found
    ]
    print_table("Studies", ["name", "description", "results", "data"], rows, numbers=False)


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    results: Annotated[
        Path | None, typer.Option("--results", help="Results file to read. Default: experiments/results/NAME.json.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write. Default: report.html in runs/studies/NAME."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON; write no report.")] = False,
) -> None:
    """Write the HTML report of a study, finished or not."""
    study = known_studies()[name]
    files = [_results_file(study, scale) for scale in study.scales]
    path = results or next((file for file in files if file.exists()), files[0])
    if results is None and not path.exists():
        raise ConfigError(f"{path}: no results yet", fix=f"run the study first: python -m experiments run {name}")
    found = Results.read(path)
    if found.study != name:
        raise ConfigError(
            f"{path} has the results of study {found.study}", fix=f"use: python -m experiments report {found.study}"
        )
    if as_json:
        typer.echo(json.dumps(_summary(found, study), ensure_ascii=False))
        return

    typer.echo(f"Report: {write_study_report(found, out or _page(RUNS / name, found.scale))}")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="Name of the study.")],
    scale: ScaleOption = None,
    engine: EngineOption = "processes",
    seeds: SeedsOption = None,
    data: DataOption = None,
    runs: RunsOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study, or resume it. You can interrupt it at any time."""
    study = known_studies()[name]
    scale = scale or study.scales[0]
    _check_scale(study, scale)
    order = Order(
        study, scale, _seeds(study, scale, seeds), _data(data), runs or RUNS, out or _results_file(study, scale)
    )
    _check_data(study, order.data, order.out)
    with make_engine(engine) as where:
        found = _run(order, where, quiet=as_json)
    if not found.runs:
        raise ConfigError(f"study {name} has no units at scale {scale}", fix="choose another --scale")
    page = write_study_report(found, _page(order.runs / name, scale))
    if as_json:
        files = {"results": str(order.out), "page": str(page)}
        typer.echo(json.dumps(_summary(found, study) | files, ensure_ascii=False))
    else:
        _conclude(study, found, order.out, page)


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help=f"Group of benchmarks: {', '.join(GROUPS)}. Default: all.")] = None,
    case: Annotated[str | None, typer.Option("--case", help="Run only this case.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per case.")] = False,
) -> None:
    """Compare Bursar with a peer or a plain implementation, in one process. A ratio above 1 means Bursar is better."""
    for group in GROUPS if name is None else [name]:
        for found in cases_of(group, case):
            result = found.run()
            label = f"{group}/{found.name}"
            if as_json:
                typer.echo(json.dumps({"case": label} | result))
            elif "skipped" in result:
                typer.echo(f"{label:<40} skipped: {result['skipped']}")
            else:
                ours, theirs, unit = result["ours"], result["theirs"], result["unit"]
                typer.echo(f"{label:<40} ours {ours:.4g}  theirs {theirs:.4g} {unit}  ratio {result['ratio']:.2f}")


@dataclass(frozen=True)
class Order:
    """Which part of a study to run, on which data, and where to write the results."""

    study: Study
    scale: str
    seeds: Sequence[int] | None
    data: Path
    runs: Path
    out: Path


def _run(order: Order, engine: Engine, *, quiet: bool) -> Results:
    """Run a study, with progress unless ``quiet``."""
    study, scale = order.study, order.scale
    shown: AbstractContextManager[UnitProgress] = UnitsDisplay(
        f"{study.name}, {scale} scale", study.grid(scale), engine.workers
    )
    try:
        with nullcontext(UnitProgress(engine.workers)) if quiet else shown as watcher:
            return run_study(
                study,
                scale=scale,
                place=Place(order.runs.resolve(), order.data.resolve()),
                out=order.out,
                command=f"python -m experiments run {study.name} --scale {scale}",
                engine=engine,
                watcher=watcher,
                seeds=order.seeds,
            )
    except KeyboardInterrupt:
        typer.echo(f"{watcher.done:,} of {watcher.total:,} units are finished and saved.", err=True)
        raise


def _conclude(study: Study, found: Results, out: Path, page: Path) -> None:
    """Print the answers of a study in a few lines."""
    findings = found.findings()
    typer.echo("")
    typer.echo(findings.headline)
    if not found.complete:
        typer.echo(f"Not finished: {Coverage.of(found, study).words}.")
    typer.echo("")
    if findings.answers:
        rows = [(f"{answer.question} {answer.asks}", answer.verdict, answer.why) for answer in findings.answers]
        print_table("Answers", ["question", "answer", "why"], rows, numbers=False)
    typer.echo(f"Results: {out}")
    typer.echo(f"Report: {page}")


# -- input -----------------------------------------------------------------------------------------------------------
def _data(folder: Path | None) -> Path:
    return folder or Path(os.environ.get("BURSAR_DATA", "../shared/data"))


def _results_file(study: Study, scale: str) -> Path:
    return file_of(study.name, scale, RESULTS)


def _page(runs: Path, scale: str) -> Path:
    return runs / ("report.html" if scale == SMALL else f"report-{scale}.html")


def _check_scale(study: Study, scale: str) -> None:
    if scale not in study.scales:
        raise ConfigError(f"study {study.name} has no scale {scale!r}", fix=f"use {' or '.join(study.scales)}")


def _seeds(study: Study, scale: str, text: str | None) -> list[int] | None:
    """Parse seeds such as 0,1; each must be one of the study's."""
    if text is None:
        return None
    known = sorted({unit["seed"] for unit in study.grid(scale) if "seed" in unit})
    asked = [part.strip() for part in text.split(",")]
    wrong = [part for part in asked if part not in map(str, known)]
    if wrong:
        raise ConfigError(
            f"study {study.name} has no seed {wrong[0]!r} at scale {scale}",
            fix=f"choose from {', '.join(map(str, known))}" if known else "remove --seeds",
        )
    return [int(part) for part in asked]


def _check_data(study: Study, data: Path, out: Path) -> None:
    """Refuse to start if datasets are missing, unless there is nothing left to run."""
    missing = missing_data(study, data)
    if missing and not (out.exists() and Coverage.of(Results.read(out), study).complete):
        raise ConfigError(
            f"study {study.name} needs {', '.join(missing)}, not found in {data}",
            fix="pass --data FOLDER or set BURSAR_DATA",
        )


# -- output ----------------------------------------------------------------------------------------------------------
def _there(study: Study, scale: str) -> dict[str, Any] | None:
    """Describe the results at a scale, if there are any."""
    path = _results_file(study, scale)
    if not path.exists():
        return None
    try:
        coverage = Coverage.of(Results.read(path), study)
    except BursarError as wrong:
        return {"scale": scale, "file": str(path), "wrong": str(wrong)}
    return {
        "scale": scale,
        "file": str(path),
        "units": {"finished": coverage.finished, "all": coverage.total},
        "seeds": list(coverage.seeds),
        "whole_seeds": list(coverage.whole),
    }


def _in_a_line(there: dict[str, Any]) -> str:
    if "wrong" in there:
        return f"{there['scale']}: {there['file']} is not a valid results file"
    units = there["units"]
    seeds = f", seeds {', '.join(map(str, there['seeds']))}" if there["seeds"] else ""
    return f"{there['scale']}: {units['finished']:,} of {units['all']:,} units{seeds}"


def _summary(found: Results, study: Study) -> dict[str, Any]:
    """Describe results as JSON, without the single runs."""
    coverage = Coverage.of(found, study)
    return {
        "study": found.study,
        "scale": found.scale,
        "command": found.command,
        "versions": dict(found.versions),
        "units": {"finished": coverage.finished, "all": coverage.total},
        "seeds": list(coverage.seeds),
        "whole_seeds": list(coverage.whole),
        "seconds": round(coverage.seconds, 1),
        "findings": found.findings().as_json() if found.runs else None,
    }


if __name__ == "__main__":
    run_app(app)
