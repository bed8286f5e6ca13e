"""The command line. Exit codes: 0 success, 1 internal error or interrupted, 2 invalid input."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer import Option

from bursar.cli import (
    allocate,
    check,
    compare,
    data,
    label_studio,
    laws,
    new,
    oracle,
    people,
    policy,
    predict,
    runs,
    select,
    serve,
)
from bursar.errors import BursarError, ConfigError

HELP_OPTIONS = ["-h", "--help"]
MOVED = {"study": "run NAME", "bench": "bench"}  # to the commands of python -m experiments
ANY = {"ignore_unknown_options": True, "allow_extra_args": True}
app = typer.Typer(
    name="bursar",
    help="Multi-task active learning under a label budget: choose which items to label for which tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": HELP_OPTIONS},
)
for group in (data, policy, laws, people, label_studio):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2].replace("_", "-"))
for command in (runs.demo, runs.run, runs.report, predict.predict, predict.export_model, compare.compare, new.new):
    app.command()(command)
for command in (serve.serve, check.check, oracle.oracle, select.select, allocate.allocate):
    app.command()(command)


def _refuse_moved(context: typer.Context) -> None:
    fix = f"in a checkout of the repository, run: python -m experiments {MOVED[str(context.info_name)]}"
    raise ConfigError(f"bursar {context.info_name} is no longer part of the package", fix=fix)


for moved in MOVED:
    app.command(moved, hidden=True, context_settings=ANY)(_refuse_moved)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bursar {version('bursar')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# What the disk may refuse, and what to do about it.
FREE_SPACE = "free space on the disk, then run the same command again"
OTHER_PLACE = "choose another folder, or change its permissions"
ON_DISK = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), FREE_SPACE)
ON_DISK |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), OTHER_PLACE)


def main() -> None:
    """Run a command of ``bursar``."""
    run_app(app)


def run_app(app: typer.Typer) -> None:
    """Run a command line. Invalid input prints one sentence, without a traceback."""
    command = typer.main.get_command(app)
    _hide_flag_types(command)
    try:
        command()
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
        if isinstance(broken, OSError) and broken.errno in ON_DISK:
            place = f"{broken.filename}: " if broken.filename else ""
            _fail(f"{place}{broken.strerror}. Fix: {ON_DISK[broken.errno]}", 1)
        if os.environ.get("BURSAR_DEBUG"):
            raise
        _fail(f"internal error: {type(broken).__name__}: {broken} (set BURSAR_DEBUG=1 for a traceback)", 1)


def _hide_flag_types(command: Any) -> None:
    """Leave the placeholder <bool> of flags out of the help texts."""
    for param in command.get_params(typer.Context(command, help_option_names=HELP_OPTIONS)):
        if getattr(param, "is_bool_flag", False):
            param.metavar = ""
    for each in getattr(command, "commands", {}).values():
        _hide_flag_types(each)


def _fail(message: str, code: int) -> None:
    typer.echo(f"bursar: {message}", err=True)
    sys.exit(code)
