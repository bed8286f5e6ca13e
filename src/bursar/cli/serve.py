"""``bursar serve``: annotate a project in the browser."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import typer
from typer import Option

from bursar.cli.options import ProjectArgument, ScoringEngineOption, TrustOption, grouped


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
def serve(project: ProjectArgument, settings: ServeSettings) -> None:
    """Open a project in the browser: annotate, follow progress, review, change settings.

    Stop with Ctrl-C. Saved answers are never lost.

    A project without accounts is open to this machine only.
    To let others in, add accounts first:

    [bold]bursar people add PROJECT NAME --role lead[/bold]
    """
    serve_project(project, settings)


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
