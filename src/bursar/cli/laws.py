"""``bursar laws``: fit, show and apply scaling laws of multi-task learning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli import laws_together
from bursar.cli.options import JsonOption, check_output_file
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.laws import Law, Observations

app = typer.Typer(
    help="Scaling laws of multi-task learning: fit one to a table of trained models, show it, predict with it.",
    no_args_is_help=True,
)

SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the split, the folds and the search.")]
ArchitectureOption = Annotated[
    str | None,
    typer.Option("--architecture", metavar="NAME", help="Use only the rows of this architecture. Default: all."),
]
TableArgument = Annotated[list[Path], typer.Argument(help="Tables of trained models: Parquet files.", metavar="TABLE")]
LawArgument = Annotated[
    str | None,
    typer.Argument(help="File of a law, or the name of a packaged one, such as balanced.", metavar="[LAW]"),
]

# Options of bursar laws predict, by variable.
OPTION_OF = {"n": "--tokens", "n_other": "--other-tokens", "tasks": "--tasks", "ami": "--ami", "alpha": "--alpha"}


@app.command()
def fit(
    tables: TableArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="LAW.json", help="File to write the law to.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Symbolic regression: operon, or gplearn as in paper 2, which is much slower.",
        ),
    ] = "operon",
    variables: Annotated[
        str, typer.Option("--variables", metavar="NAMES", help="Variables of the formula.")
    ] = "n,tasks,ami",
    architecture: ArchitectureOption = None,
    single: Annotated[bool, typer.Option("--single", help="Use only single-task models, for a law of n.")] = False,
    by_seed: Annotated[
        bool,
        typer.Option("--by-seed", help="Fit to each model instead of the mean over seeds; useful with few settings."),
    ] = False,
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=1, metavar="N", help="Number of restarts of the search.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a formula for the score to a table of trained models.

    [bold]bursar laws fit balanced.parquet --out law.json[/bold]
    [bold]bursar laws fit balanced.parquet --variables n[/bold]
    [bold]bursar laws fit balanced.parquet --single --variables n --by-seed --out single.json[/bold]

    At least a tenth of the settings is held out to measure the error and the interval.
    """
    from dataclasses import replace

    from bursar.cli.laws_show import print_front, print_law
    from bursar.laws import FitSettings, fit_law
    from bursar.laws.regression import EFFORTS, ENGINES

    if out is not None:
        check_output_file("--out", out, ".json")
    if engine not in ENGINES:
        raise ConfigError(f"--engine {engine}: unknown engine", fix=f"use {' or '.join(ENGINES)}")
    effort = EFFORTS[engine] if restarts is None else replace(EFFORTS[engine], restarts=restarts)
    rows = _read(tables, architecture)
    rows = rows.of_single_tasks() if single else rows
    law = fit_law(
        rows.averaged(by_seed=by_seed),
        [name.strip() for name in variables.split(",") if name.strip()],
        FitSettings(engine, effort, seed),
        about=_provenance(tables, rows),
    )
    if out is not None:
        law.save(out)
    if as_json:
        typer.echo(json.dumps({"file": str(out) if out else None, **law.describe()}, ensure_ascii=False))
        return
    print_law(law)
    print_front(law)
    typer.echo(f"Law: {out}" if out else "The law was not saved; pass --out LAW.json to save it.")


@app.command()
def show(
    law: LawArgument = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="OUT.html", help="Also write an HTML page with the residuals.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a law: its formula, range, error and growth.

    [bold]bursar laws show[/bold]
    [bold]bursar laws show law.json --page law.html[/bold]
    """
    from bursar.cli.laws_show import print_law

    _, found = _law(law)
    if page is not None:
        from bursar.report.law import write_law_page

        check_output_file("--page", page)
        write_law_page(found, Path(law or "balanced").stem, page)
    if as_json:
        typer.echo(json.dumps(found.describe() | ({"page": str(page)} if page else {}), ensure_ascii=False))
        return
    print_law(found)
    if page is not None:
        typer.echo(f"Page: {page}")


@app.command()
def predict(
    law: LawArgument = None,
    tokens: Annotated[
        float | None, typer.Option("--tokens", min=0, help="Labelled tokens of the task of interest.")
    ] = None,
    tasks: Annotated[float | None, typer.Option("--tasks", min=1, help="Number of tasks, including that one.")] = None,
    ami: Annotated[
        float | None,
        typer.Option("--ami", min=0, max=1, help="How related the tasks are: adjusted mutual information."),
    ] = None,
    other_tokens: Annotated[
        float | None, typer.Option("--other-tokens", min=0, help="Labelled tokens of each other task.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", min=0, max=1, help="Share of the real labels that simulated tasks keep.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict the score of a setting, with an interval.

    [bold]bursar laws predict --tokens 5000 --tasks 3 --ami 0.4[/bold]
    [bold]bursar laws predict law.json --tokens 5000 --tasks 3 --ami 0.4[/bold]

    Default law: unbalanced with --other-tokens, single with --tasks 1,
    otherwise balanced.
    """
    usual = "unbalanced" if other_tokens is not None else "single" if tasks == 1 else "balanced"
    name, found = _law(law, usual)
    given = {"n": tokens, "n_other": other_tokens, "tasks": tasks, "ami": ami, "alpha": alpha}
    missing = [OPTION_OF[name] for name in found.variables if given.get(name) is None]
    if missing:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", fix=f"pass {missing[0]} NUMBER")
    answer = found.predict(**{name: value for name, value in given.items() if value is not None})
    for warning in answer.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if as_json:
        shown = {"value": answer.value, "low": answer.low, "high": answer.high, "level": answer.level}
        typer.echo(json.dumps(shown | {"warnings": list(answer.warnings)}, ensure_ascii=False))
        return
    typer.echo(f"{answer.value:.3f} ({100 * answer.level:.0f} % interval {answer.low:.3f} to {answer.high:.3f})")


@app.command("list")
def list_forms(
    table: Annotated[
        Path | None, typer.Argument(help="Table of trained models to refit the formulas to.", metavar="TABLE")
    ] = None,
    architecture: ArchitectureOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """List the packaged laws and the formulas of paper 2.

    With a table, refit the formulas of paper 2 and show their error on held-out rows:

    [bold]bursar laws list balanced.parquet[/bold]
    """
    from bursar.cli.laws_show import list_known
    from bursar.cli.show import print_table
    from bursar.laws import compare_forms

    if table is None:
        list_known(as_json)
        return
    found = compare_forms(_read([table], architecture).averaged(), seed=seed)
    if as_json:
        numbers = ("error", "doubt", "monotone", "constant", "rows")
        shown = {c.name: {"text": c.formula.text} | {key: getattr(c, key) for key in numbers} for c in found}
        typer.echo(json.dumps(shown))
        return
    lines = [
        [
            c.name,
            f"{c.error:.2e} ± {c.doubt:.0e}",
            f"{c.monotone:.2e}",
            f"{c.constant:.2e}",
            f"{c.rows:,}",
            c.formula.text,
        ]
        for c in found
    ]
    columns = ["name", "squared error", "monotone model", "constant", "settings", "refitted formula"]
    print_table("Formulas of paper 2, refitted", columns, lines, numbers=False)
    typer.echo(
        "squared error: mean over held-out folds, ± its standard error. monotone model, constant: the error of a"
    )
    typer.echo("free-form increasing function and of the mean score, on the same folds.")


# -- reading ----------------------------------------------------------------------------------------------------------
def _read(files: list[Path], architecture: str | None) -> Observations:
    from bursar.laws import Observations

    first, *others = [Observations.read(file) for file in files]
    rows = first.merged(*others)
    return rows if architecture is None else rows.of_architecture(architecture)


def _law(given: str | None, usual: str = "balanced") -> tuple[str, Law]:
    """Load a law from a file or by the name of a packaged one; also give its name for messages."""
    from bursar.laws import Law

    if given is None:
        return f"the packaged law {usual!r}", Law.packaged(usual)
    named = Path(given).suffix == "" and "/" not in given and not Path(given).exists()
    if not named:
        return given, Law.load(given)
    return f"the packaged law {given!r}", Law.packaged(given)


def _provenance(files: list[Path], rows: Observations) -> dict[str, Any]:
    """Describe what a law was fitted to, for its file."""
    from importlib.metadata import version

    def names(column: str) -> list[str]:
        return sorted(set(rows.column(column)) - {""})

    return {
        "tables": [file.name for file in files],
        "models": len(rows),
        "architectures": names("architecture"),
        "sources": names("source"),
        "settings": names("settings"),
        "version": version("bursar"),
    }


app.command()(laws_together.advise)
app.command()(laws_together.check)
