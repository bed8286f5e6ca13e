"""``bursar people``: accounts of a project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from bursar.cli.options import JsonOption, ProjectArgument, one_of
from bursar.cli.output import print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.web.accounts import Accounts

app = typer.Typer(help="Manage the accounts of a project.", no_args_is_help=True)

PASSWORD = "BURSAR_PASSWORD"
NameArgument = Annotated[str, Argument(help="Name of the account.")]


@app.command("list")
def list_people(project: ProjectArgument, as_json: JsonOption = False) -> None:
    """List the accounts."""
    with _accounts(project) as accounts:
        found = accounts.people()
    if as_json:
        print_json([{"name": person.name, "role": person.role} for person in found])
    elif not found:
        typer.echo(f"{project} has no accounts. Only this machine can open it.")
    else:
        print_table(str(project), ["name", "role"], [[person.name, person.role] for person in found], numbers=False)


@app.command()
def add(
    project: ProjectArgument,
    name: NameArgument,
    role: Annotated[str, Option("--role", help="lead or annotator. The first account must be a lead.")] = "",
) -> None:
    """Add an account. Prompts for the password, or reads it from $BURSAR_PASSWORD or standard input."""
    from bursar.web.accounts import ROLES

    with _accounts(project) as accounts:
        chosen = one_of("--role", role or ("annotator" if accounts.exist() else "lead"), ROLES)
        accounts.add(name, "lead" if chosen == "lead" else "annotator", _password(name))
    typer.echo(f"Added {name} to {project} as {chosen}.")


@app.command()
def password(project: ProjectArgument, name: NameArgument) -> None:
    """Change a password. This signs the person out everywhere."""
    from bursar.web.accounts import folded

    with _accounts(project) as accounts:
        if folded(name) not in {folded(person.name) for person in accounts.people()}:  # before prompting
            raise ConfigError(f"no account is named {name!r}", fix="list the accounts with: bursar people list PROJECT")
        accounts.set_password(name, _password(name))
    typer.echo(f"Changed the password of {name}.")


@app.command()
def remove(project: ProjectArgument, name: NameArgument) -> None:
    """Remove an account. Its annotations are kept."""
    with _accounts(project) as accounts:
        accounts.remove(name)
    typer.echo(f"Removed the account of {name}.")


@contextmanager
def _accounts(project: Path) -> Iterator[Accounts]:
    """Open the accounts of a project, whether or not it is being served."""
    from bursar.web.accounts import Accounts
    from bursar.web.app_state import check_project
    from bursar.web.database import DATABASE_FILE, WebDatabase

    check_project(project)
    with closing(WebDatabase.open(project / DATABASE_FILE)) as database:
        yield Accounts(database)


def _password(name: str) -> str:
    """Read the password from the environment, a prompt or standard input. Never from the command line."""
    given = os.environ.get(PASSWORD)
    if given is not None:
        return given
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")
