"""Commands that have moved. Each says where it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from bursar.errors import ConfigError

MOVED = {"study": "run NAME", "bench": "bench"}  # to the commands of python -m experiments
Arguments = Annotated[list[str] | None, typer.Argument(hidden=True)]
ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


def register(app: typer.Typer) -> None:
    """Add the moved commands to the command line, hidden."""
    for name in MOVED:
        app.command(name, hidden=True, context_settings=ANY)(_refusal(name))


def _refusal(name: str) -> Callable[..., None]:
    def refuse(arguments: Arguments = None) -> None:
        raise ConfigError(
            f"bursar {name} is no longer part of the package",
            fix=f"in a checkout of the repository, run: python -m experiments {MOVED[name]}",
        )

    return refuse
