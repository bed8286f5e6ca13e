"""``bursar serve``: annotate a project in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from bursar.cli.options import ProjectArgument, ScoringEngineOption, TrustOption


def serve(
    project: ProjectArgument,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", metavar="N", min=0, max=65535, help="Port. Default: 8000, or the next free one."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="IP",
            help="Address to listen on: 127.0.0.1 for this machine only, 0.0.0.0 for all networks.",
        ),
    ] = "127.0.0.1",
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="URL", help="Public address of the server, if it is behind a proxy."),
    ] = None,
    per_address: Annotated[
        int,
        typer.Option(
            "--connections-per-address",
            metavar="N",
            min=1,
            help="Open connections allowed per client address. A browser uses up to six.",
        ),
    ] = 500,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Log every request to standard error.")] = False,
    trust: TrustOption = False,
    engine: ScoringEngineOption = "here",
) -> None:
    """Open a project in the browser: annotate, follow progress, review, change settings.

    Stop with Ctrl-C. Saved answers are never lost.

    A project without accounts is open to this machine only.
    To let others in, add accounts first:

    [bold]bursar people add PROJECT NAME --role lead[/bold]
    """
    from bursar.web.server import serve as serve_project

    def opened(address: str) -> None:
        typer.echo(f"Serving {project} at {address}")
        typer.echo("Press Ctrl-C to stop.", err=True)
        if open_page:
            webbrowser.open(address)

    serve_project(
        project,
        host=host,
        port=port,
        public=public,
        per_address=per_address,
        log=log,
        trust=trust,
        engine=engine,
        on_start=opened,
    )
    typer.echo("Stopped.", err=True)
