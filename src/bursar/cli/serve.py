"""``bursar serve``: open a project to people, in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load saved models that could run code, such as an estimator of your own. Only if you know who made them.",
    ),
]
ScoringEngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where pools of more than some thousand items are scored: here, processes (one a core), processes:4, ray "
        "(RAY_ADDRESS or this machine), ray://host:port. The result is the same everywhere.",
    ),
]
ProjectArgument = Annotated[Path, typer.Argument(help="The project's folder, such as runs/demo.")]


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(serve)


def serve(
    project: ProjectArgument,
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="8000, or the next free one, if not given.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Who can come: 127.0.0.1 this machine alone, 0.0.0.0 everybody.")
    ] = "127.0.0.1",
    public: Annotated[
        str | None,
        typer.Option("--public", help="The address that people type, where a proxy stands before the server."),
    ] = None,
    per_address: Annotated[
        int,
        typer.Option(
            "--connections-per-address",
            min=1,
            help="Connections that one address may hold. A browser takes up to six: more where many people share one.",
        ),
    ] = 500,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Write a line for every request to standard error.")] = False,
    trust: TrustOption = False,
    engine: ScoringEngineOption = "here",
) -> None:
    """Annotate, watch and decide in a browser. Ctrl-C ends it; nothing that was acknowledged is ever lost.

    A project without accounts is yours alone, at this machine. To let others in, add accounts first:

        bursar people add PROJECT NAME --role lead
    """
    from bursar.web.server import serve as serve_project

    def opened(address: str) -> None:
        typer.echo(f"{project} is open at {address}")
        typer.echo("Ctrl-C ends it.", err=True)
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
    typer.echo("Closed.", err=True)
