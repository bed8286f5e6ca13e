"""Commands that are no longer here: each says where to find what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from bursar.errors import ConfigError

MOVED = {"study": "run NAME", "bench": "bench"}  # commands to those of the experiments
Arguments = Annotated[list[str] | None, typer.Argument(hidden=True)]
ANY = {"ignore_unknown_options": True, "allow_extra_args": True}


def register(app: typer.Typer) -> None:
    """Add the commands to the command line, hidden."""
    for name in MOVED:
        app.command(name, hidden=True, context_settings=ANY)(_refusal(name))


def _refusal(name: str) -> Callable[..., None]:
    def refuse(arguments: Arguments = None) -> None:
        raise ConfigError(
            f"bursar {name} moved out of the package, to the repository's experiments",
            fix=f"in a checkout of the repository: python -m experiments {MOVED[name]}",
        )

    return refuse
