"""``bursar people``: who may sign in to a project's page."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.serve import ProjectArgument
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.web.accounts import Accounts

app = typer.Typer(help="Who may sign in to a project's page.", no_args_is_help=True)

PASSWORD = "BURSAR_PASSWORD"
NameArgument = Annotated[str, typer.Argument(help="The person's name.")]


@app.command("list")
def list_people(
    project: ProjectArgument, as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False
) -> None:
    """List everybody with an account."""
    with _accounts(project) as accounts:
        found = accounts.people()
    if as_json:
        typer.echo(json.dumps([{"name": person.name, "role": person.role} for person in found], ensure_ascii=False))
    elif not found:
        typer.echo(f"{project} has no accounts: it is for whoever sits at this machine.")
    else:
        from bursar.cli.show import print_table

        print_table(str(project), ["name", "role"], [[person.name, person.role] for person in found], numbers=False)


@app.command()
def add(
    project: ProjectArgument,
    name: NameArgument,
    role: Annotated[str, typer.Option("--role", help="lead or annotator; the first account has to be a lead.")] = "",
) -> None:
    """Make an account. The password is asked for, or read from standard input or $BURSAR_PASSWORD."""
    from bursar.web.accounts import ROLES

    with _accounts(project) as accounts:
        chosen = role or ("annotator" if accounts.exist() else "lead")
        if chosen not in ROLES:
            raise ConfigError(f"--role {role}: there is no such role", fix=f"use {' or '.join(ROLES)}")
        accounts.add(name, "lead" if chosen == "lead" else "annotator", _password(name))
    typer.echo(f"{name} can sign in to {project} as {chosen}.")


@app.command()
def password(project: ProjectArgument, name: NameArgument) -> None:
    """Give somebody another password; their sessions end."""
    with _accounts(project) as accounts:
        _known(accounts, name)
        accounts.set_password(name, _password(name))
    typer.echo(f"{name} has a new password.")


@app.command()
def remove(project: ProjectArgument, name: NameArgument) -> None:
    """Take an account away. What the person annotated stays."""
    with _accounts(project) as accounts:
        accounts.remove(name)
    typer.echo(f"{name} has no account any more.")


@contextmanager
def _accounts(project: Path) -> Iterator[Accounts]:
    """The accounts of a project, whether or not it is being served."""
    from bursar.web.accounts import Accounts
    from bursar.web.app_state import check_project
    from bursar.web.database import DATABASE_FILE, WebDatabase

    check_project(project)
    database = WebDatabase.open(project / DATABASE_FILE)
    try:
        yield Accounts(database)
    finally:
        database.close()


def _known(accounts: Accounts, name: str) -> None:
    """Refuse an unknown name before a password is asked for."""
    from bursar.web.accounts import folded

    if folded(name) not in {folded(person.name) for person in accounts.people()}:
        raise ConfigError(f"there is no account {name!r}", fix="list all accounts with: bursar people list")


def _password(name: str) -> str:
    """From the environment, from a person, or the first line of standard input. Never from the command line."""
    given = os.environ.get(PASSWORD)
    if given is not None:
        return given
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")
