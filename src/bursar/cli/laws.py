"""``bursar laws``: learn a formula of what more labels, tasks and relatedness buy, look at it, and ask it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli import laws_together
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.laws import Law, Observations

app = typer.Typer(
    help="Formulas of what multi-task learning buys: learn one from a table of trained models, show it, ask it.",
    no_args_is_help=True,
)

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of the split, the folds and the search.")]
ArchitectureOption = Annotated[
    str | None, typer.Option("--architecture", metavar="NAME", help="Only the rows of this one; all if not given.")
]
TableArgument = Annotated[list[Path], typer.Argument(help="Tables of trained models: Parquet files.", metavar="TABLE…")]
LawArgument = Annotated[
    str | None,
    typer.Argument(help="The file of a law, or the name of a packaged one, such as balanced.", metavar="[LAW]"),
]

# A law's variables as options of bursar laws predict.
OPTION_OF = {"n": "--tokens", "n_other": "--other-tokens", "tasks": "--tasks", "ami": "--ami", "alpha": "--alpha"}


@app.command()
def fit(
    tables: TableArgument,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="LAW.json", help="Where to write the law.")] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="NAME", help="operon, or gplearn as in the paper, which takes far longer."),
    ] = "operon",
    variables: Annotated[
        str, typer.Option("--variables", metavar="NAMES", help="What the score is a formula of.")
    ] = "n,tasks,ami",
    architecture: ArchitectureOption = None,
    single: Annotated[bool, typer.Option("--single", help="Only models of one task; a law of n.")] = False,
    by_seed: Annotated[
        bool, typer.Option("--by-seed", help="Every model a row of its own, not the mean over seeds: for few settings.")
    ] = False,
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=1, metavar="N", help="How often the search begins anew.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Look for a formula of the score in a table of trained models.

    [bold]bursar laws fit balanced.parquet --out law.json[/bold]
    [bold]bursar laws fit balanced.parquet --variables n[/bold]
    [bold]bursar laws fit balanced.parquet --single --variables n --by-seed --out single.json[/bold]

    A tenth of the settings or more is held out; the error and the interval are of those.
    """
    from dataclasses import replace

    from bursar.cli.laws_show import print_front, print_law
    from bursar.laws import fit_law
    from bursar.laws.regression import EFFORTS, ENGINES

    if out is not None:
        _check_place(out)
    if engine not in ENGINES:
        raise ConfigError(f"--engine {engine}", fix=f"use {' or '.join(ENGINES)}")
    effort = EFFORTS[engine] if restarts is None else replace(EFFORTS[engine], restarts=restarts)
    rows = _read(tables, architecture)
    rows = rows.of_single_tasks() if single else rows
    law = fit_law(
        rows.averaged(by_seed=by_seed),
        [name.strip() for name in variables.split(",") if name.strip()],
        engine=engine,
        effort=effort,
        seed=seed,
        about=_provenance(tables, rows),
    )
    if out is not None:
        law.save(out)
    if as_json:
        typer.echo(json.dumps({"file": str(out) if out else None, **law.describe()}, ensure_ascii=False))
        return
    print_law(law)
    print_front(law)
    typer.echo(f"Law: {out}" if out else "It was not kept: --out LAW.json writes it.")


@app.command()
def show(
    law: LawArgument = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="OUT.html", help="Write it as a page, with its residuals.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a law: its formula, where it holds, how wrong it was, how fast it grows.

    [bold]bursar laws show[/bold]
    [bold]bursar laws show law.json --page law.html[/bold]
    """
    from bursar.cli.laws_show import print_law

    _, found = _law(law)
    if page is not None:
        from bursar.report.law import write_law_page

        if page.is_dir():
            raise ConfigError(f"--page {page} is a folder", fix="name a file in it")
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
        float | None, typer.Option("--tokens", min=0, help="Labelled tokens of the task that counts.")
    ] = None,
    tasks: Annotated[float | None, typer.Option("--tasks", min=1, help="Tasks, that one counted.")] = None,
    ami: Annotated[
        float | None, typer.Option("--ami", min=0, max=1, help="How related they are: adjusted mutual information.")
    ] = None,
    other_tokens: Annotated[
        float | None, typer.Option("--other-tokens", min=0, help="Labelled tokens of each other task.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", min=0, max=1, help="How much of the labels other tasks keep.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a law for the score of a setting, with an interval.

    [bold]bursar laws predict --tokens 5000 --tasks 3 --ami 0.4[/bold]
    [bold]bursar laws predict law.json --tokens 5000 --tasks 3 --ami 0.4[/bold]

    Without a law it is a packaged one: unbalanced with --other-tokens, single with --tasks 1, else balanced.
    """
    usual = "unbalanced" if other_tokens is not None else "single" if tasks == 1 else "balanced"
    name, found = _law(law, usual)
    given = {"n": tokens, "n_other": other_tokens, "tasks": tasks, "ami": ami, "alpha": alpha}
    missing = [OPTION_OF[name] for name in found.variables if given.get(name) is None]
    if missing:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", fix=f"add {missing[0]} and a number")
    answer = found.predict(**{name: value for name, value in given.items() if value is not None})
    for warning in answer.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if as_json:
        told = {"value": answer.value, "low": answer.low, "high": answer.high, "level": answer.level}
        typer.echo(json.dumps(told | {"warnings": list(answer.warnings)}, ensure_ascii=False))
        return
    typer.echo(
        f"{answer.value:.3f} ({answer.low:.3f} to {answer.high:.3f} in {100 * answer.level:.0f} % of such cases)"
    )


@app.command("list")
def list_forms(
    table: Annotated[
        Path | None, typer.Argument(help="A table to refit them to; without one they are only listed.", metavar="TABLE")
    ] = None,
    architecture: ArchitectureOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """List the packaged laws and the formulas of paper 2.

    With a table, refit the paper's formulas and say how wrong they are on held-out rows:

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
        told = {c.name: {"text": c.formula.text} | {key: getattr(c, key) for key in numbers} for c in found}
        typer.echo(json.dumps(told))
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
    columns = ["name", "squared error", "monotone model", "mean alone", "settings", "refitted"]
    print_table("Formulas of paper 2, refitted", columns, lines, numbers=False)
    typer.echo(
        "squared error: the mean on held-out folds, ± its standard error. monotone model: of one that is free to"
    )
    typer.echo("bend and only has to rise, on the same folds and variables: what a better formula could still win.")


# -- reading ----------------------------------------------------------------------------------------------------------
def _read(files: list[Path], architecture: str | None) -> Observations:
    from bursar.laws import Observations

    first, *others = [Observations.read(file) for file in files]
    rows = first.merged(*others)
    return rows if architecture is None else rows.of_architecture(architecture)


def _law(given: str | None, usual: str = "balanced") -> tuple[str, Law]:
    """A law by its file, or by the name of a packaged one; and what to call it."""
    from bursar.laws import Law

    if given is None:
        return f"the packaged law {usual!r}", Law.packaged(usual)
    named = Path(given).suffix == "" and "/" not in given and not Path(given).exists()
    if not named:
        return given, Law.load(given)
    return f"the packaged law {given!r}", Law.packaged(given)


def _check_place(out: Path) -> None:
    if out.suffix != ".json":
        raise ConfigError(f"--out {out}", fix="let the law's file end in .json")
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder", fix="name a file in it")


def _provenance(files: list[Path], rows: Observations) -> dict[str, Any]:
    """Where a law came from, as its file keeps it."""
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


laws_together.register(app)
