"""``bursar study``: run published experiments, go on with them, and look at what came of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from bursar.errors import BursarError, ConfigError

if TYPE_CHECKING:
    from bursar.compute import Engine
    from bursar.studies.study import Results, Study

RESULTS = Path("studies")
RUNS = Path("runs") / "studies"
SMALL = "small"


class StudyGroup(TyperGroup):
    """Every study is a command. Which there are is found out when somebody asks for one."""

    def list_commands(self, ctx: Any) -> list[str]:
        from bursar.studies.catalogue import known_studies

        return [*super().list_commands(ctx), *known_studies()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name.startswith("-"):
            return own
        from bursar.studies.catalogue import known_studies

        studies = known_studies()
        if ctx.resilient_parsing and cmd_name not in studies:
            return None
        return _command(studies[cmd_name])


app = typer.Typer(
    cls=StudyGroup,
    help="Run published experiments, go on with them, and look at what came of them.",
    no_args_is_help=True,
    subcommand_metavar="list | report NAME | NAME [OPTIONS]",
)

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of the data sets; $BURSAR_DATA or ../shared/data if not given.")
]
ScaleOption = Annotated[str, typer.Option("--scale", help="How large: small, or paper as it was published.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="Where it runs: here, processes, processes:4, ray, ray://host:port.")
]
SeedsOption = Annotated[str | None, typer.Option("--seeds", help="Only these, such as 0,1; all if not given.")]
RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", help="Folder of what is finished, shared by all studies; runs/studies if not given."),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="File of results; studies/NAME.json, or studies/NAME-SCALE.json at another scale."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object at the end, for machines; no progress.")]


@app.command("list")
def list_studies(
    data: DataOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """List the studies, which results there are, and whether their data sets are found."""
    from bursar.studies.catalogue import known_studies, missing_data

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
    from bursar.cli.show import print_table

    rows = [
        (
            study["name"],
            f"{study['title']} ({study['source']})",
            "\n".join(map(_in_a_line, study["results"])) or "none",
            ", ".join(name if here else f"{name} (not found)" for name, here in study["data"].items()) or "none",
        )
        for study in found
    ]
    print_table("Studies", ["name", "what it is", "results", "data"], rows, numbers=False)


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="The study.")],
    results: Annotated[
        Path | None, typer.Option("--results", help="File of results; studies/NAME.json if not given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write the page; into runs/studies/NAME if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON; write no page.")] = False,
) -> None:
    """Write the page of a study, finished or not."""
    from bursar.studies.catalogue import known_studies
    from bursar.studies.study import Results

    study = known_studies()[name]
    files = [_results_file(study, scale) for scale in study.scales]
    path = results or next((file for file in files if file.exists()), files[0])
    if results is None and not path.exists():
        raise ConfigError(f"{path}: there are no results yet", fix=f"run the study first: bursar study {name}")
    found = Results.read(path)
    if found.study != name:
        raise ConfigError(f"{path} holds results of study {found.study}", fix=f"bursar study report {found.study}")
    if as_json:
        typer.echo(json.dumps(_summary(found, study), ensure_ascii=False))
        return
    from bursar.report.study import write_study_report

    typer.echo(f"Page: {write_study_report(found, out or _page(RUNS / name, found.scale))}")


def _command(study: Study) -> Any:
    """The command that runs a study."""

    def run(
        scale: ScaleOption = study.scales[0],
        engine: EngineOption = "processes",
        seeds: SeedsOption = None,
        data: DataOption = None,
        runs: RunsOption = None,
        out: OutOption = None,
        as_json: JsonOption = False,
    ) -> None:
        _run(study, scale, engine, seeds, _data(data), runs or RUNS, out, as_json)

    one = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    about = "Stop it whenever you like: the same command goes on where it was."
    one.command(study.name, help=f"{study.title} ({study.source}).\n\n{about}")(run)
    return typer.main.get_command(one)


def _run(
    study: Study,
    scale: str,
    engine: str,
    seeds: str | None,
    data: Path,
    runs: Path,
    out: Path | None,
    as_json: bool,
) -> None:
    from bursar.compute import make_engine
    from bursar.report.study import write_study_report

    _check_scale(study, scale)
    chosen = _seeds(study, scale, seeds)
    out = out or _results_file(study, scale)
    _check_data(study, data, out)
    with make_engine(engine) as where:
        found = _watched(study, scale, chosen, data, runs, out, where, as_json)
    if not found.runs:
        raise ConfigError(f"study {study.name} has nothing to run at scale {scale}", fix="choose another --scale")
    page = write_study_report(found, _page(runs / study.name, scale))
    if as_json:
        typer.echo(json.dumps(_summary(found, study) | {"results": str(out), "page": str(page)}, ensure_ascii=False))
    else:
        _conclude(study, found, out, page)


def _watched(
    study: Study,
    scale: str,
    seeds: Sequence[int] | None,
    data: Path,
    runs: Path,
    out: Path,
    engine: Engine,
    quiet: bool,
) -> Results:
    """Run a study before somebody's eyes, or quietly."""
    from bursar.cli.watch import UnitsDisplay
    from bursar.compute import Progress
    from bursar.studies.arms import Place
    from bursar.studies.study import run_study

    title, place = f"{study.name}, {scale} scale", Place(runs.resolve(), data.resolve())
    shown: AbstractContextManager[Progress] = UnitsDisplay(title, study.grid(scale), engine.workers)
    try:
        with nullcontext(Progress(engine.workers)) if quiet else shown as watcher:
            return run_study(
                study,
                scale=scale,
                place=place,
                out=out,
                command=f"bursar study {study.name} --scale {scale}",
                engine=engine,
                watcher=watcher,
                seeds=seeds,
            )
    except KeyboardInterrupt:
        typer.echo(f"{watcher.done:,} of {watcher.total:,} units are finished and kept.", err=True)
        raise


def _conclude(study: Study, found: Results, out: Path, page: Path) -> None:
    """What it answers, in a few lines."""
    from bursar.cli.show import print_table
    from bursar.report.study import Coverage

    findings = found.findings()
    typer.echo("")
    typer.echo(findings.headline)
    if not found.complete:
        typer.echo(f"Not finished: {Coverage.of(found, study).words}.")
    typer.echo("")
    if findings.answers:
        rows = [(f"{answer.question} {answer.asks}", answer.verdict, answer.why) for answer in findings.answers]
        print_table("What it answers", ["question", "here", "why"], rows, numbers=False)
    typer.echo(f"Results: {out}")
    typer.echo(f"Page: {page}")


# -- what is asked for ------------------------------------------------------------------------------------------------
def _data(folder: Path | None) -> Path:
    return folder or Path(os.environ.get("BURSAR_DATA", "../shared/data"))


def _results_file(study: Study, scale: str) -> Path:
    from bursar.studies.study import file_of

    return file_of(study.name, scale, RESULTS)


def _page(runs: Path, scale: str) -> Path:
    return runs / ("report.html" if scale == SMALL else f"report-{scale}.html")


def _check_scale(study: Study, scale: str) -> None:
    if scale not in study.scales:
        raise ConfigError(f"study {study.name} has no scale {scale!r}", fix=f"use {' or '.join(study.scales)}")


def _seeds(study: Study, scale: str, text: str | None) -> list[int] | None:
    """The seeds of a text such as 0,1; each has to be one of the study's."""
    if text is None:
        return None
    known = sorted({unit["seed"] for unit in study.grid(scale) if "seed" in unit})
    asked = [part.strip() for part in text.split(",")]
    wrong = [part for part in asked if part not in map(str, known)]
    if wrong:
        raise ConfigError(
            f"study {study.name} has no seed {wrong[0]!r} at scale {scale}",
            fix=f"choose from {', '.join(map(str, known))}" if known else "leave --seeds out",
        )
    return [int(part) for part in asked]


def _check_data(study: Study, data: Path, out: Path) -> None:
    """What is missing is said before anything starts, unless there is nothing left to run."""
    from bursar.report.study import Coverage
    from bursar.studies.catalogue import missing_data
    from bursar.studies.study import Results

    missing = missing_data(study, data)
    if missing and not (out.exists() and Coverage.of(Results.read(out), study).complete):
        raise ConfigError(
            f"study {study.name} reads {', '.join(missing)}, not found in {data}",
            fix="say where the data sets are: --data FOLDER, or BURSAR_DATA",
        )


# -- what there is ----------------------------------------------------------------------------------------------------
def _there(study: Study, scale: str) -> dict[str, Any] | None:
    """What is known of the results at a scale, if there are any."""
    from bursar.report.study import Coverage
    from bursar.studies.study import Results

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
        return f"{there['scale']}: {there['file']} cannot be read as results"
    units = there["units"]
    seeds = f", seeds {', '.join(map(str, there['seeds']))}" if there["seeds"] else ""
    return f"{there['scale']}: {units['finished']:,} of {units['all']:,} units{seeds}"


def _summary(found: Results, study: Study) -> dict[str, Any]:
    """All that a machine wants to know of results, but not the runs themselves."""
    from bursar.report.study import Coverage

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
