"""``bursar serve``: annotate a project in the browser."""

from __future__ import annotations

import shlex
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from bursar.cli.options import ScoringEngineOption, TrustOption, grouped
from bursar.errors import ConfigError


@dataclass(frozen=True)
class ServeSettings:
    """Where the server listens, and what it allows."""

    port: int | None = Option(
        None, "--port", "-p", metavar="N", min=0, max=65535, help="Port. Default: 8000, or the next free one."
    )
    host: str = Option(
        "127.0.0.1",
        metavar="IP",
        help="Address to listen on: 127.0.0.1 for this machine only, 0.0.0.0 for all networks.",
    )
    public: str | None = Option(None, metavar="URL", help="Public address of the server, if it is behind a proxy.")
    per_address: int = Option(
        500,
        "--connections-per-address",
        metavar="N",
        min=1,
        help="Open connections allowed per client address. A browser uses up to six.",
    )
    open_page: bool = Option(False, "--open", help="Open the page in your browser.")
    log: bool = Option(False, "--log", help="Log every request to standard error.")
    trust: TrustOption = False
    engine: ScoringEngineOption = "here"


@grouped
def serve(
    settings: ServeSettings,
    project: Annotated[Path | None, Argument(help="Folder of the project. Default: a page that creates one.")] = None,
) -> None:
    """Open a project in the browser: annotate, follow progress, review, change settings.

    Without a project, a page opens on which you choose a file (.csv, .xlsx, .txt, …), name the tasks and the budget,
    and create one in this folder.

    Stop with Ctrl-C. Saved answers are never lost.

    A project without accounts is open to this machine only.
    To let others in, add accounts first:

    [bold]bursar people add PROJECT NAME --role lead[/bold]
    """
    if project is None:
        _start(settings)
    else:
        serve_project(project, settings)


def _start(settings: ServeSettings) -> None:
    """Serve the start page, then the project that is created there."""
    from bursar.web.server import serve_start

    if settings.public is not None:
        raise ConfigError("--public needs a project", fix="create one first: bursar new PROJECT --from DATA")

    def opened(address: str) -> None:
        typer.echo(f"Create a project at {address}")
        typer.echo("Press Ctrl-C to stop.", err=True)
        if settings.open_page:
            webbrowser.open(address)

    def created(project: Path) -> None:
        typer.echo(f"Created {project}. Next time: bursar serve {shlex.quote(str(project))}")

    serve_start(
        Path.cwd(),
        host=settings.host,
        port=settings.port,
        on_start=opened,
        on_created=created,
        per_address=settings.per_address,
        log=settings.log,
        trust=settings.trust,
        engine=settings.engine,
    )
    typer.echo("Stopped.", err=True)


def serve_locally(project: Path) -> None:
    """Serve a project to this machine, and open it in the browser."""
    settings = ServeSettings(
        port=None, host="127.0.0.1", public=None, per_address=500, open_page=True, log=False, trust=False, engine="here"
    )
    serve_project(project, settings)


def serve_project(project: Path, settings: ServeSettings) -> None:
    """Serve a project until Ctrl-C."""
    from bursar.web.server import serve as serve_folder

    def opened(address: str) -> None:
        typer.echo(f"Serving {project} at {address}")
        typer.echo("Press Ctrl-C to stop.", err=True)
        if settings.open_page:
            webbrowser.open(address)

    serve_folder(
        project,
        host=settings.host,
        port=settings.port,
        public=settings.public,
        per_address=settings.per_address,
        log=settings.log,
        trust=settings.trust,
        engine=settings.engine,
        on_start=opened,
    )
    typer.echo("Stopped.", err=True)
