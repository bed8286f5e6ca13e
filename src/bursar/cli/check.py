"""``bursar check``: verify a project or a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from bursar.cli.options import JsonOption
from bursar.cli.output import print_json, print_table


def check(
    project: Annotated[Path, Argument(help="Folder of a project or a run.")],
    accept_loss: Annotated[
        bool, Option("--accept-loss", help="Continue with a ledger that has lost entries. The ledger records this.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify the settings, data, ledger entries, costs, models and other files of a project.

    Exits with 0 if all is well, and with 2 after listing the problems.
    """
    from bursar.annotation.verify import accept_losses, verify_project

    accepted = accept_losses(project) if accept_loss else []
    found = verify_project(project)
    problems = [f"{finding.what}: {problem}" for finding in found for problem in finding.problems]
    if as_json:
        about = {"project": str(project), "sound": not problems, "accepted": accepted}
        print_json(about | {"checks": [asdict(finding) for finding in found]})
    else:
        for line in accepted:
            typer.echo(line)
        rows = [(finding.what, finding.found, "problems" if finding.problems else "ok") for finding in found]
        print_table(str(project), ("checked", "found", "result"), rows, numbers=False)
        for problem in problems:
            typer.echo(f"bursar: {problem}", err=True)
    if problems:
        raise typer.Exit(2)
