"""Print laws: one law, the candidates it was chosen from, and the known laws."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import typer

from bursar.cli.show import print_table

if TYPE_CHECKING:
    from bursar.laws import Law


def list_known(as_json: bool) -> None:
    """List the packaged laws and the formulas of paper 2."""
    from bursar.laws import PAPER_FORMS, Law, packaged_laws

    laws = {name: Law.packaged(name) for name in packaged_laws()}
    if as_json:
        shown = {
            "packaged": {
                name: {"text": law.formula.text, "variables": list(law.variables)} for name, law in laws.items()
            },
            "forms": {
                name: {"printed": known.printed, "variables": list(known.variables)}
                for name, known in PAPER_FORMS.items()
            },
        }
        typer.echo(json.dumps(shown))
        return
    if laws:
        lines = [[name, law.formula.text, _ranges(law)] for name, law in laws.items()]
        print_table("Packaged laws (for the score)", ["name", "formula", "range"], lines, numbers=False)
    else:
        typer.echo("This installation has no packaged laws.\n")
    lines = [[name, known.printed, ", ".join(known.variables)] for name, known in PAPER_FORMS.items()]
    print_table("Formulas of paper 2 (for a scaled score)", ["name", "formula", "variables"], lines, numbers=False)


def _ranges(law: Law) -> str:
    return ", ".join(f"{name} {_plain(r.low)} to {_plain(r.high)}" for name, r in law.ranges.items())


def print_law(law: Law) -> None:
    """Print a law: its formula, variables, error and origin."""
    from bursar.report.law import variables_table

    typer.echo(f"score = {law.formula.text}\n")
    table = variables_table(law)
    print_table("Variables", table.columns, table.rows, numbers=False)
    typer.echo("Exponent: local exponent in the middle of the range, and at its top. Power law: exponent of a plain")
    typer.echo("power law fitted to the same rows, with its 95 % interval.\n")
    _print_error(law)
    for warning in law.warnings:
        typer.echo(f"Warning: {warning}", err=True)


def _print_error(law: Law) -> None:
    rows, level = law.held_out, 100 * law.level
    half = rows.half_width(law.level)
    typer.echo(
        f"Mean absolute error on {len(rows.score)} held-out settings: {rows.mean_absolute:.4f} "
        f"(mean squared error {rows.mse:.2e})"
        + (f"; too few for a {level:.0f} % interval." if half is None else f"; {level:.0f} % are within ± {half:.3f}.")
    )
    said = [
        f"{words} {law.baselines[name]:.2e}"
        for name, words in (("constant", "the mean score"), ("monotone", "a monotone model"))
        if math.isfinite(law.baselines.get(name, math.nan))
    ]
    noise = law.baselines.get("noise", math.nan)
    if said:
        typer.echo(
            f"For comparison: {', '.join(said)}" + (f"; noise from few seeds {noise:.2e}" if noise > 0 else "") + "."
        )
    about = law.about
    scaling = law.scaling.get("score", 1.0)
    typer.echo(
        f"{_found_by(law)} in {about.get('rows', '?')} {'models' if about.get('by_seed') else 'settings'}, "
        f"seed {about.get('seed', '?')}"
        + (f"; the search used scores times {scaling:g}, the formula is rescaled" if scaling != 1 else "")
        + "."
    )
    typer.echo(f"{law.provenance}\n" if law.provenance else "")


def print_front(law: Law) -> None:
    """Print the candidate formulas that the law was chosen from."""
    from bursar.report.law import front_table

    table = front_table(law)
    print_table("Candidate formulas, with cross-validated errors", table.columns, table.rows, numbers=False)


def _found_by(law: Law) -> str:
    from bursar.laws import PAPER_FORMS

    known = PAPER_FORMS.get(law.origin)
    return f"Found by {law.origin}" if known is None else f"The form of paper 2's equation {known.equation}, refitted"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"
