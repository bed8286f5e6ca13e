"""The command line. Exit codes: 0 success, 1 internal error or interrupted, 2 invalid input."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from bursar.cli import (
    allocate,
    check,
    data,
    label_studio,
    laws,
    moved,
    new,
    oracle,
    people,
    policy,
    runs,
    select,
    serve,
)
from bursar.errors import BursarError

app = typer.Typer(
    name="bursar",
    help="Multi-task active learning under a label budget: choose which items to label for which tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.add_typer(policy.app, name="policy")
app.add_typer(laws.app, name="laws")
app.add_typer(people.app, name="people")
app.add_typer(label_studio.app, name="label-studio")
runs.register(app)
new.register(app)
serve.register(app)
check.register(app)
oracle.register(app)
select.register(app)
allocate.register(app)
moved.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bursar {version('bursar')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command of ``bursar``."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command line. Invalid input prints one sentence, without a traceback."""
    try:
        app()
    except BursarError as wrong:
        _fail(str(wrong), 2)
    except SystemExit as ended:
        if ended.code != 130:  # click's exit code after Ctrl-C
            raise
        _fail("interrupted; run the same command again to resume", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as broken:
        if os.environ.get("BURSAR_DEBUG"):
            raise
        _fail(f"internal error: {type(broken).__name__}: {broken} (set BURSAR_DEBUG=1 for a traceback)", 1)


def _fail(message: str, code: int) -> None:
    typer.echo(f"bursar: {message}", err=True)
    sys.exit(code)
