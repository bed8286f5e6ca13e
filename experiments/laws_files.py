"""Laws and tables of models from the results of the study of laws."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bursar.cli.options import JsonOption
from bursar.errors import ConfigError
from bursar.laws import Effort, FitSettings, Law, Observations, append, fit_law
from experiments.studies.catalogue import known_studies
from experiments.studies.laws_models import USUAL, models_of, observed
from experiments.studies.study import Results

app = typer.Typer(help="Write laws, or a table of models, from the results of the study of laws.", no_args_is_help=True)

FIX = "run the rest of it: python -m experiments run laws"


@app.command()
def package(
    results: Annotated[Path, typer.Argument(help="Results of the study of laws.", metavar="RESULTS.json")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the laws, one file each.")],
    as_json: JsonOption = False,
) -> None:
    """Write the laws that the study of laws found, and one for single tasks.

    [bold]python -m experiments laws package experiments/results/laws.json --out src/bursar/laws/packaged[/bold]

    These are the laws that come with the package. A folder of your own can be named to bursar laws advise.
    """
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file", fix="name a folder")
    found = _study_results(results)
    tables, fits = _study_tables(found, results)
    if not found.complete:
        raise ConfigError(
            f"{results}: {found.total - len(found.runs)} of {found.total} units are open, and laws of some models are "
            "not those of all",
            fix=FIX,
        )
    about = {
        "study": f"{found.study}, scale {found.scale}",
        "command": found.command,
        "kinds": ["tagging"],
        "architectures": [USUAL],
        "sources": _sources(found.study),
        "version": found.versions.get("bursar", ""),
    }
    laws = packed(fits, tables, about)
    out.mkdir(parents=True, exist_ok=True)
    for name, law in laws.items():
        law.save(out / f"{name}.json")
    if as_json:
        typer.echo(json.dumps({str(out / f"{name}.json"): law.formula.text for name, law in laws.items()}))
        return
    for name, law in laws.items():
        typer.echo(f"{out / f'{name}.json'}: score = {law.formula.text}")


@app.command()
def table(
    results: Annotated[Path, typer.Argument(help="Results of the study of laws.", metavar="RESULTS.json")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="TABLE.parquet", help="Table to write, or to add to.")],
) -> None:
    """Write all models of the study of laws to a table, to fit your own laws or to add models.

    [bold]python -m experiments laws table experiments/results/laws.json --out laws.parquet[/bold]
    [bold]bursar laws fit laws.parquet --architecture shared[/bold]
    """
    found = _study_results(results)
    where = {
        "source": " ".join(_sources(found.study)),
        "settings": f"{found.study}, scale {found.scale}",
        "version": found.versions.get("bursar", ""),
    }
    rows = [row | where for row in observed(models_of(found.runs))]
    if not rows:
        raise ConfigError(f"{results}: the study has trained no model yet", fix=FIX)
    whole = append(out, Observations.of(rows))
    typer.echo(f"{out}: {len(whole):,} models")


def packed(
    fits: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, Observations],
    about: Mapping[str, Any],
    *,
    effort: Effort | None = None,
) -> dict[str, Law]:
    """Make the laws of a package: for each table the law of the most variables, and a law of single tasks.

    ``fits`` holds laws as JSON by the name of their table; ``tables`` the models by the same names, and those of one
    task as ``single``. Each law gets the scores of single tasks with as many labels as its held-out settings, and its
    provenance. There are few settings of single tasks, so each seed is a row there.
    """
    alone = tables["single"].averaged()
    by_n = dict(zip(alone.variables["n"].tolist(), alone.score.tolist(), strict=True))
    found = {}
    for name, descriptions in fits.items():
        law = Law.from_json(max(descriptions.values(), key=lambda told: len(told["variables"])))
        beside = tuple(by_n.get(n, float("nan")) for n in law.held_out.variables["n"])
        found[name] = replace(
            law,
            held_out=replace(law.held_out, alone=beside),
            about=dict(law.about) | dict(about) | {"table": name, "models": len(tables[name])},
        )
    rows = tables["single"].averaged(by_seed=True)
    more = {"table": "single", "models": len(tables["single"]), "by_seed": True}
    found["single"] = fit_law(rows, ["n"], FitSettings(effort=effort), about=dict(about) | more)
    return found


def _study_results(file: Path) -> Results:
    found = Results.read(file)
    if found.study != "laws":
        raise ConfigError(f"{file} holds results of study {found.study}", fix="name those of the study of laws")
    return found


def _study_tables(results: Results, file: Path) -> tuple[dict[str, Observations], dict[str, Any]]:
    """The tables of the study of laws, by their names, and the laws that it found in them."""
    units = [run for run in results.runs if run["unit"]["kind"] == "fit"]
    fits = {run["unit"]["table"]: run["result"]["laws"] for run in units}
    models = [model for model in models_of(results.runs) if model.architecture == USUAL]
    rows = {kind: observed(m for m in models if m.kind == kind) for kind in ("single", *fits)}
    empty = [kind for kind, some in rows.items() if not some]
    if not fits or empty:
        what = "has fitted no law" if not fits else f"has no {empty[0]} models"
        raise ConfigError(f"{file}: the study {what} yet", fix=FIX)
    return {kind: Observations.of(some) for kind, some in rows.items()}, fits


def _sources(study: str) -> list[str]:
    return list(known_studies()[study].reads)
