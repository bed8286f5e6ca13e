"""``bursar serve``: annotate a project in the browser."""

from __future__ import annotations

import shlex
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from bursar.cli.options import EngineOption, TrustOption, grouped
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
    engine: EngineOption = "here"

    def serve(self, project: Path | None) -> None:
        """Serve a project until Ctrl-C; without one, the start page, then the project that is created there."""
        from bursar.web.server import serve, serve_start

        if project is None and self.public is not None:
            raise ConfigError("--public needs a project", fix="create one first: bursar new PROJECT --from DATA")

        def opened(address: str) -> None:
            typer.echo(f"Serving {project} at {address}" if project else f"Create a project at {address}")
            typer.echo("Press Ctrl-C to stop.", err=True)
            if self.open_page:
                webbrowser.open(address)

        def created(place: Path) -> None:
            typer.echo(f"Created {place}. Next time: bursar serve {shlex.quote(str(place))}")

        given = {key: getattr(self, key) for key in ("host", "port", "per_address", "log", "trust", "engine")}
        if project is None:
            serve_start(Path.cwd(), on_start=opened, on_created=created, **given)
        else:
            serve(project, public=self.public, on_start=opened, **given)
        typer.echo("Stopped.", err=True)


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
    settings.serve(project)


def serve_locally(project: Path) -> None:
    """Serve a project to this machine, and open it in the browser."""
    settings = ServeSettings(None, "127.0.0.1", public=None, per_address=500, open_page=True, log=False)
    settings.serve(project)
