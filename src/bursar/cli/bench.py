"""``bursar bench``: side-by-side measurements."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(bench)


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmarks; all of them if not given.")] = None,
    case: Annotated[str | None, typer.Option("--case", help="One case of them.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line a case.")] = False,
) -> None:
    """Measure Bursar against a peer or the plain way, in one process. A ratio above 1 means ours is better."""
    from bursar.bench import BENCHES, cases_of

    for group in [name] if name is not None else BENCHES.names():
        for found in cases_of(group, case):
            result = found.run()
            if as_json:
                typer.echo(json.dumps({"case": f"{group}/{found.name}"} | result))
            elif "skipped" in result:
                typer.echo(f"{group}/{found.name:<28} skipped: {result['skipped']}")
            else:
                ours, theirs, unit = result["ours"], result["theirs"], result["unit"]
                typer.echo(
                    f"{group}/{found.name:<28} ours {ours:.4g}  theirs {theirs:.4g} {unit}  ratio {result['ratio']:.2f}"
                )
