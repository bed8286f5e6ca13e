"""``bursar label-studio``: let people annotate a campaign at Label Studio."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.runs import JsonOption, RunOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.annotation.session import AnnotationSession
    from bursar.web.labelstudio.client import Studio
    from bursar.web.labelstudio.sync import Pulled, Pushed, Sync

app = typer.Typer(help="Let people annotate a campaign at Label Studio.", no_args_is_help=True)

TOKEN, URL = "BURSAR_LABEL_STUDIO_TOKEN", "BURSAR_LABEL_STUDIO_URL"
RunArgument = Annotated[
    Path,
    typer.Argument(help="The folder of a run, or a campaign's TOML file.", metavar="RUN|CAMPAIGN.toml"),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", envvar=URL, help="Label Studio's address; that of the last push if not given."),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar=TOKEN,
        help="Yours there, of either kind; better in the environment, where others cannot see it.",
    ),
]
QUIET = 5.0  # seconds between two plain lines


@app.command()
def push(
    run: RunArgument,
    url: UrlOption = None,
    token: TokenOption = None,
    folder: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send what the open round asks for to Label Studio, with what the model suggests.

    [bold]export BURSAR_LABEL_STUDIO_TOKEN=…[/bold]
    [bold]bursar label-studio push spring.toml --url http://localhost:8080[/bold]
    [bold]bursar label-studio pull spring.toml --watch[/bold]

    The first push makes a project there with a labelling configuration for all tasks. If a round is complete, the next
    one is trained and chosen first. Nothing is sent twice: what is there already stays as it is.

    Items that measure the model are sent without suggestions, so that it is not judged by its own words.
    """
    with _open(run, folder, url, token) as (sync, studio), _Display(quiet=as_json) as display:
        if sync.session.ready():
            sync.session.next_round(display.progress)
        pushed = sync.push(display.progress)
    _say_pushed(sync.session, studio, pushed, as_json)


@app.command()
def pull(
    run: RunArgument,
    url: UrlOption = None,
    token: TokenOption = None,
    folder: RunOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on: pull again and again, and push every next round, to the end.")
    ] = False,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two pulls with --watch.")] = 10.0,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="With --watch: an address of this machine, such as http://127.0.0.1:8123/, at which Label Studio "
            "tells of every annotation, so that it is pulled at once.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take in what people have annotated at Label Studio since the last time.

    The first answer of an item is bought; somebody else's is recorded beside it. A changed annotation is a correction,
    a skipped item is asked of nobody again, and what is deleted there stays here. Pulling twice changes nothing.

    What cannot be used (an item without a choice, say) is named on standard error and waits until it is mended there.

    Stop it whenever you like: the same command goes on where it was.
    """
    from bursar.web.labelstudio.sync import Pulled, watch_project

    if webhook is not None and not watch:
        raise ConfigError("--webhook is for pulls that go on", fix="add --watch")
    with _open(run, folder, url, token) as (sync, studio), _Display(quiet=as_json) as display:
        if not watch:
            _say_pulled(sync.session, sync.pull(display.progress), as_json)
            return

        def told(event: Pulled | Pushed) -> None:
            if isinstance(event, Pulled):
                _say_pulled(sync.session, event, as_json)
            else:
                _say_pushed(sync.session, studio, event, as_json)

        with _wait_for_webhook(sync, studio, webhook, every) as pause:
            why = watch_project(sync, pause=pause, report=told, progress=display.progress)
    typer.echo(json.dumps({"ended": why}) if as_json else f"The campaign has ended: {why}.")


@contextmanager
def _wait_for_webhook(sync: Sync, studio: Studio, url: str | None, every: float) -> Iterator[Callable[[], object]]:
    """What to do between two pulls: wait for so long, or until Label Studio rings."""
    if url is None:
        yield lambda: time.sleep(every)
        return
    from bursar.web.labelstudio.webhook import WebhookListener

    with WebhookListener(url) as webhook:
        studio.register_webhook(sync.project(), webhook.url)
        yield lambda: webhook.wait(every)


@contextmanager
def _open(run: Path, folder: Path | None, url: str | None, token: str | None) -> Iterator[tuple[Sync, Studio]]:
    """The campaign and the server. The server is asked first, so that a wrong token makes no run."""
    from bursar.annotation.session import AnnotationSession
    from bursar.web.labelstudio.client import Studio
    from bursar.web.labelstudio.sync import Sync, SyncState

    place = _place(run, folder)
    known = SyncState.load(place)
    address = url or (known.url if known is not None else None)
    if address is None:
        raise ConfigError("where is Label Studio?", fix=f"give its address with --url, or in ${URL}")
    if token is None:
        raise ConfigError("there is no token for Label Studio", fix=f"set ${TOKEN}: copy it from your account there")
    studio = Studio(address, token)
    studio.whoami()
    _start(run, place)
    session = AnnotationSession.open(place)
    try:
        yield Sync(session, studio), studio
    finally:
        session.close()


def _place(run: Path, folder: Path | None) -> Path:
    from bursar.campaign import load_config

    if run.is_dir() or not run.suffix:
        if folder is not None:
            raise ConfigError(f"--run {folder}: {run} is a run's folder already", fix="give one of the two")
        return run
    return folder or Path("runs") / load_config(run).name


def _start(run: Path, place: Path) -> None:
    """Where a campaign's file is given, see that the folder is its run's, and start the run if there is none."""
    from bursar.campaign import Run, load_config

    if run == place:
        return
    config = load_config(run)
    if config.costs.pricing != "predicted":
        raise ConfigError(
            f"{run} is a simulation: its prices are read off gold labels (costs.pricing = 'gold')",
            fix='use costs.pricing = "predicted" for a campaign that people annotate',
        )
    current = Run(place, config)
    with current.locked():
        current.pin()


# -- what is said ------------------------------------------------------------------------------------------------------
def _say_pushed(session: AnnotationSession, studio: Studio, pushed: Pushed, as_json: bool) -> None:
    state, page = session.state(), studio.page_of(pushed.project)
    if as_json:
        typer.echo(json.dumps(_state(session) | asdict(pushed) | {"page": page}, ensure_ascii=False))
    elif state.phase == "ended":
        typer.echo(f"The campaign has ended: {state.why}.")
    else:
        suggested = f", {pushed.suggested:,} of them with suggestions" if pushed.suggested else ""
        there = f"; {pushed.there:,} were there" if pushed.there else ""
        typer.echo(f"Round {state.round}: {_items(pushed.new)} sent{suggested}{there}. {page}")


def _say_pulled(session: AnnotationSession, pulled: Pulled, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_state(session) | asdict(pulled), ensure_ascii=False))
        return
    for problem in pulled.problems:
        typer.echo(f"not taken: {problem}", err=True)
    done = [
        (pulled.answered, f"answered for {session.costs.show(pulled.cost)}" if pulled.cost else "answered"),
        (pulled.beside, "answered by somebody else too"),
        (pulled.corrected, "corrected"),
        (pulled.skipped, "skipped"),
        (pulled.deleted, "deleted there, and kept here"),
    ]
    words = ", ".join(f"{len(items):,} {what}" for items, what in done if items) or "nothing new"
    state = session.state()
    typer.echo(
        f"Round {state.round}: {words}. {_items(state.open)} open, {state.answered:,} of {state.asked:,} answered."
    )
    if session.ready():
        typer.echo("The round is complete: push to train and send the next one.")


def _state(session: AnnotationSession) -> dict[str, Any]:
    state = session.state()
    return {"round": state.round, "phase": state.phase, "open": state.open, "ready": session.ready()}


def _items(count: int) -> str:
    return f"{count:,} item{'' if count == 1 else 's'}"


class _Display:
    """A bar while a round is trained or sent; plain lines where there is no terminal."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self.console = Console(file=sys.stderr, quiet=quiet)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=40))
        self.bars = Progress(*columns, console=self.console, transient=True)
        self.bar = self.bars.add_task("asking Label Studio", total=1.0)
        self.last, self.last_line = "", 0.0

    def __enter__(self) -> _Display:
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def progress(self, what: str, done: float) -> None:
        """What is going on, and how far it is."""
        self.bars.update(self.bar, description=what, completed=done)
        now = time.monotonic()
        if not self.console.is_terminal and (what != self.last or now - self.last_line > QUIET):
            self.last, self.last_line = what, now
            self.console.print(f"{time.strftime('%H:%M:%S')} {what}: {100 * done:.0f} %", markup=False, highlight=False)
