"""``bursar laws``: learn a formula of what more labels, tasks and relatedness buy, look at it, and ask it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
LawArgument = Annotated[Path, typer.Argument(help="The file of a law.", metavar="LAW.json")]

# A law's variables as options of bursar laws predict.
OPTION_OF = {"n": "--tokens", "n_other": "--other-tokens", "tasks": "--tasks", "ami": "--ami", "alpha": "--alpha"}
IN_WORDS = {
    "n": "labelled tokens of the real task",
    "n_other": "labelled tokens of each other task",
    "tasks": "tasks, the real one counted",
    "ami": "how related they are (adjusted mutual information)",
    "alpha": "how much of the real labels is kept",
}


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
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=1, metavar="N", help="How often the search begins anew.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Look for a formula of the score in a table of trained models.

    [bold]bursar laws fit balanced.parquet --out law.json[/bold]
    [bold]bursar laws fit balanced.parquet --variables n[/bold]

    A tenth of the settings or more is held out; the error and the interval are of those.
    """
    from dataclasses import replace

    from bursar.laws import fit_law
    from bursar.laws.regression import EFFORTS, ENGINES

    if out is not None:
        _check_place(out)
    if engine not in ENGINES:
        raise ConfigError(f"--engine {engine}", fix=f"use {' or '.join(ENGINES)}")
    effort = EFFORTS[engine] if restarts is None else replace(EFFORTS[engine], restarts=restarts)
    rows = _read(tables, architecture)
    law = fit_law(
        rows.averaged(),
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
    _print(law)
    _print_front(law)
    typer.echo(f"Law: {out}" if out else "It was not kept: --out LAW.json writes it.")


@app.command()
def show(law: LawArgument, as_json: JsonOption = False) -> None:
    """Show a law: its formula, where it holds, how wrong it was, how fast it grows.

    [bold]bursar laws show law.json[/bold]
    """
    from bursar.laws import Law

    found = Law.load(law)
    if as_json:
        typer.echo(json.dumps(found.describe(), ensure_ascii=False))
    else:
        _print(found)


@app.command()
def predict(
    law: LawArgument,
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

    [bold]bursar laws predict law.json --tokens 5000 --tasks 3 --ami 0.4[/bold]
    """
    from bursar.laws import Law

    found = Law.load(law)
    given = {"n": tokens, "n_other": other_tokens, "tasks": tasks, "ami": ami, "alpha": alpha}
    missing = [OPTION_OF[name] for name in found.variables if given.get(name) is None]
    if missing:
        raise ConfigError(f"{law} needs {' and '.join(missing)}", fix=f"add {missing[0]} and a number")
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
    """List the formulas of paper 2; with a table, refit their constants and say how wrong they are on held-out rows.

    [bold]bursar laws list balanced.parquet[/bold]
    """
    from bursar.cli.show import print_table
    from bursar.laws import PAPER_FORMS, compare_forms

    if table is None:
        told = {
            name: {"printed": known.printed, "variables": list(known.variables)} for name, known in PAPER_FORMS.items()
        }
        if as_json:
            typer.echo(json.dumps(told))
            return
        lines = [[name, known.printed, ", ".join(known.variables)] for name, known in PAPER_FORMS.items()]
        print_table("Formulas of paper 2, of a scaled score", ["name", "formula", "variables"], lines, numbers=False)
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


# -- showing ----------------------------------------------------------------------------------------------------------
def _print(law: Law) -> None:
    from bursar.cli.show import print_table

    typer.echo(f"score = {law.formula.text}\n")
    rows = [
        [
            name,
            f"{_plain(law.ranges[name].low)} to {_plain(law.ranges[name].high)}",
            f"{rate.growth} {'near 0' if rate.near_zero else 'far out'}" if rate.growth else "not known",
            _number(rate.middle),
            _number(rate.top),
            f"{rate.power.value:.2f} ({rate.power.low:.2f} to {rate.power.high:.2f})" if rate.power else "–",
        ]
        for name, rate in law.rates.items()
    ]
    columns = ["variable", "holds for", "grows like", "exponent", "at the top", "power law"]
    print_table("Variables", columns, rows, numbers=False)
    for name in law.variables:
        typer.echo(f"{name}: {IN_WORDS.get(name, 'a variable of the table')}.")
    typer.echo("exponent: by what power the score grows in the middle of the range, and at its top. power law: the")
    typer.echo("exponent of a plain power law fitted to the same rows, and its 95 % interval.\n")
    _print_error(law)
    for warning in law.warnings:
        typer.echo(f"Warning: {warning}", err=True)


def _print_error(law: Law) -> None:
    rows, level = law.held_out, 100 * law.level
    half = rows.half_width(law.level)
    typer.echo(
        f"On {len(rows.score)} settings that it did not see it was off by {rows.mean_absolute:.4f} on average "
        f"(mean squared error {rows.mse:.2e})"
        + (
            f"; {level:.0f} % lie within ± {half:.3f}."
            if half is not None
            else f"; too few to say where {level:.0f} % lie."
        )
    )
    said = [
        f"{words} {law.baselines[name]:.2e}"
        for name, words in (("constant", "the mean alone has"), ("monotone", "a monotone model"))
        if math.isfinite(law.baselines.get(name, math.nan))
    ]
    noise = law.baselines.get("noise", math.nan)
    if said:
        typer.echo(
            f"There {', '.join(said)}" + (f"; the noise of few seeds alone is {noise:.2e}" if noise > 0 else "") + "."
        )
    about = law.about
    scaling = law.scaling.get("score", 1.0)
    typer.echo(
        f"{_found_by(law)} in {about.get('rows', '?')} settings, seed {about.get('seed', '?')}"
        + (f"; the search saw scores times {scaling:g}, the formula is of the score itself" if scaling != 1 else "")
        + ".\n"
    )


def _print_front(law: Law) -> None:
    from bursar.cli.show import print_table

    rows = [
        [str(entry["size"]), _scientific(entry["error"]), _scientific(entry["doubt"]), entry["origin"], entry["text"]]
        for entry in law.front
    ]
    columns = ["length", "squared error", "±", "found by", "formula"]
    print_table("What there was to choose from, on folds of the rows it saw", columns, rows, numbers=False)


def _found_by(law: Law) -> str:
    from bursar.laws import PAPER_FORMS

    known = PAPER_FORMS.get(law.origin)
    return f"Found by {law.origin}" if known is None else f"The form of paper 2's equation {known.equation}, refitted"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _scientific(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.2e}"
