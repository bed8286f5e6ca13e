"""``bursar label-studio``: annotate a campaign in Label Studio."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import JsonOption, RunOption, check_run_option, grouped
from bursar.cli.output import ProgressBar, print_json
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.annotation.session import AnnotationSession
    from bursar.web.labelstudio.client import Studio
    from bursar.web.labelstudio.sync import Pulled, Pushed, Sync

app = typer.Typer(help="Annotate a campaign in Label Studio.", no_args_is_help=True)

FIRST = "connecting to Label Studio"
TOKEN, URL = "BURSAR_LABEL_STUDIO_TOKEN", "BURSAR_LABEL_STUDIO_URL"


@dataclass(frozen=True)
class Connection:
    """A campaign and the Label Studio server to annotate it with."""

    run: Path = Argument(help="Folder of a run, or the TOML file of a campaign.", metavar="RUN|CAMPAIGN.toml")
    url: str | None = Option(None, envvar=URL, help="Address of Label Studio. Default: that of the last push.")
    token: str | None = Option(
        None,
        envvar=TOKEN,
        help="Your Label Studio access token, personal or legacy. Prefer the environment variable: other users can see "
        "command lines.",
    )
    folder: RunOption = None

    @contextmanager
    def open(self) -> Iterator[tuple[Sync, Studio]]:
        """Open the campaign and the server. The server comes first, so that a wrong token creates no run."""
        from bursar.annotation.session import AnnotationSession
        from bursar.web.labelstudio.client import Studio
        from bursar.web.labelstudio.sync import Sync, SyncState

        place = self.place()
        known = SyncState.load(place)
        address = self.url or (known.url if known is not None else None)
        if address is None:
            raise ConfigError("the address of Label Studio is not known", fix=f"pass --url or set ${URL}")
        if self.token is None:
            fix = f"copy it from your Label Studio account into ${TOKEN}"
            raise ConfigError("no Label Studio token given", fix=fix)
        studio = Studio(address, self.token)
        studio.whoami()
        self.start(place)
        with closing(AnnotationSession.open(place)) as session:
            yield Sync(session, studio), studio

    def place(self) -> Path:
        if self.run.is_dir() or not self.run.suffix:
            check_run_option(self.folder, self.run)
            return self.run
        return self.folder or Path("runs") / bursar.load_config(self.run).name

    def start(self, place: Path) -> None:
        """For a campaign file: check that the folder holds its run, or start the run."""
        if self.run == place:
            return
        config = bursar.load_config(self.run)
        if config.costs.pricing != "predicted":
            message = f"{self.run} is a simulation: it computes prices from gold labels (costs.pricing = 'gold')"
            raise ConfigError(message, fix='set costs.pricing = "predicted" for a campaign that people annotate')
        current = bursar.Run(place, config)
        with current.locked():
            current.pin()


@app.command()
@grouped
def push(connection: Connection, as_json: JsonOption = False) -> None:
    """Send the items of the open round to Label Studio, with the model's suggestions.

    [bold]export BURSAR_LABEL_STUDIO_TOKEN=…[/bold]
    [bold]bursar label-studio push spring.toml --url http://localhost:8080[/bold]
    [bold]bursar label-studio pull spring.toml --watch[/bold]

    The first push creates a project with a labelling configuration for all tasks.
    If the round is complete, the next one is trained and selected first.
    Items are sent once; items already in Label Studio are left unchanged.

    Audit and dev items get no suggestions, so that suggestions cannot bias scores.
    """
    with connection.open() as (sync, studio), ProgressBar(quiet=as_json, first=FIRST) as bar:
        if sync.session.ready():
            sync.session.next_round(bar.update)
        pushed = sync.push(bar.update)
    _print_pushed(sync.session, studio, pushed, as_json)


@app.command()
@grouped
def pull(
    connection: Connection,
    watch: Annotated[
        bool, Option("--watch", "-w", help="Keep pulling, and push each next round, until the campaign ends.")
    ] = False,
    every: Annotated[float, Option("--every", min=0.1, help="Seconds between pulls with --watch.")] = 10.0,
    webhook: Annotated[
        str | None,
        Option(
            "--webhook",
            metavar="URL",
            help="With --watch: an address of this machine, such as http://127.0.0.1:8123/, that Label Studio calls "
            "for every annotation, so that it is pulled at once.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import new annotations from Label Studio.

    The first answer to an item is paid for; answers of others are kept as second opinions.
    A changed annotation is recorded as a correction. A skipped item is not asked again.
    Annotations deleted in Label Studio are kept. Pulling twice changes nothing.

    Annotations that cannot be used (say, without a choice) are listed on standard error
    and imported once they are fixed in Label Studio.

    You can interrupt it at any time: the same command resumes.
    """
    from bursar.web.labelstudio.sync import Pulled, WebhookListener, watch_project

    if webhook is not None and not watch:
        raise ConfigError("--webhook needs --watch", fix="add --watch")
    with connection.open() as (sync, studio), ProgressBar(quiet=as_json, first=FIRST) as bar:
        if not watch:
            _print_pulled(sync.session, sync.pull(bar.update), as_json)
            return

        def report(event: Pulled | Pushed) -> None:
            if isinstance(event, Pulled):
                _print_pulled(sync.session, event, as_json)
            else:
                _print_pushed(sync.session, studio, event, as_json)

        with nullcontext() if webhook is None else WebhookListener(webhook) as listener:
            if listener is not None:
                studio.register_webhook(sync.project(), listener.url)
            wait = time.sleep if listener is None else listener.wait  # for the next pull, or until a call
            why = watch_project(sync, pause=lambda: wait(every), report=report, progress=bar.update)
    if as_json:
        print_json({"ended": why})
    else:
        typer.echo(f"The campaign has ended: {why}.")


def _print_pushed(session: AnnotationSession, studio: Studio, pushed: Pushed, as_json: bool) -> None:
    from bursar.report.wording import counted

    state, page = session.state(), studio.page_of(pushed.project)
    if as_json:
        print_json(_state(session) | asdict(pushed) | {"page": page})
    elif state.phase == "ended":
        typer.echo(f"The campaign has ended: {state.why}.")
    else:
        suggested = f", {pushed.suggested:,} of them with suggestions" if pushed.suggested else ""
        there = f"; {pushed.there:,} already there" if pushed.there else ""
        typer.echo(f"Round {state.round}: {counted(pushed.new, 'item')} sent{suggested}{there}. {page}")


def _print_pulled(session: AnnotationSession, pulled: Pulled, as_json: bool) -> None:
    from bursar.report.wording import counted

    if as_json:
        print_json(_state(session) | asdict(pulled))
        return
    for problem in pulled.problems:
        typer.echo(f"not imported: {problem}", err=True)
    done = [
        (pulled.answered, f"answered for {session.settings.costs.show(pulled.cost)}" if pulled.cost else "answered"),
        (pulled.beside, "with a second opinion"),
        (pulled.corrected, "corrected"),
        (pulled.skipped, "skipped"),
        (pulled.deleted, "deleted in Label Studio but kept"),
    ]
    words = ", ".join(f"{len(items):,} {what}" for items, what in done if items) or "nothing new"
    state = session.state()
    left = f"{counted(state.open, 'item')} open, {state.answered:,} of {state.asked:,} answered"
    typer.echo(f"Round {state.round}: {words}. {left}.")
    if session.ready():
        typer.echo("The round is complete. Push to train and send the next one.")


def _state(session: AnnotationSession) -> dict[str, Any]:
    state = session.state()
    return {"round": state.round, "phase": state.phase, "open": state.open, "ready": session.ready()}
