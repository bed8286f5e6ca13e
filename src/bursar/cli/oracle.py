"""``bursar oracle``: how far a finished run's strategies came from random to the best order of labelling."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.runs import JsonOption, RunOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig, Run
    from bursar.compute import Engine
    from bursar.oracle import Plan, State

QUIET = 5.0  # seconds between two plain lines


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(oracle)


CampaignArgument = Annotated[
    Path, typer.Argument(help="The campaign's TOML file, or the folder of its run.", metavar="CAMPAIGN.toml|RUN")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Where to write the page; the run's own if not given.")]
StepsOption = Annotated[
    int | None, typer.Option("--steps", min=0, metavar="N", help="Steps of annealing; 5000 if not given.")
]
GreedyStepsOption = Annotated[
    int | None,
    typer.Option("--greedy-steps", min=0, metavar="N", help="Greedy steps at the end; a fifth of --steps."),
]
CoolingOption = Annotated[
    float | None,
    typer.Option(
        "--cooling",
        metavar="γ",
        help="How fast refusals get stricter, a step; 50000 / steps for the probe and 2500 / steps for networks, as"
        " in the paper: every search ends as cold.",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Of the search and of trainings; the campaign's if not given.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="Whose score is looked at: the probe's, or that of a small network that is trained for every set of"
        " items: aoe, cnn, lstm for classes, tagger for tags. The campaign's, or probe.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where networks are trained: here, processes, processes:4, ray, ray://host:port. The campaign's, or"
        " processes. The probe stays in this process: its steps are too short to be shared out.",
    ),
]


def oracle(
    campaign: CampaignArgument,
    folder: RunOption = None,
    out: OutOption = None,
    steps: StepsOption = None,
    greedy_steps: GreedyStepsOption = None,
    cooling: CoolingOption = None,
    seed: SeedOption = None,
    judge: JudgeOption = None,
    engine: EngineOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for the best order of labelling a finished run's pool, and say how near its strategies came to it.

    [bold]bursar run spring.toml[/bold]
    [bold]bursar oracle spring.toml --steps 5000[/bold]
    [bold]bursar oracle spring.toml --judge aoe --steps 500 --engine processes:4[/bold]

    "MT-AVG reached 34 % of the way from random to the best order found" then stands on its page.

    All labels must be known, as they are in a campaign that bursar run ran. The judge is a probe unless it is said.

    Stop it whenever you like: the same command goes on where it was, on any engine.

    The settings may stand in the campaign, in a section \\[oracle]: its run then ends with the search.
    """
    from bursar.oracle.run_comparison import ANSWER_FILE, ask_oracle
    from bursar.report import write_report

    run, config, finish_by = _open(campaign, folder)
    who, where = _hired(config, judge, engine)
    if who == "probe" and engine not in (None, "here") and not as_json:
        typer.echo("The probe stays in this process: its steps are too short to be shared out.", err=True)
    plan = _plan(config, who, steps, greedy_steps, cooling)
    if out is not None and out.is_dir():
        raise ConfigError(f"--out {out} is a folder", fix="name a file in it")
    with SearchDisplay(quiet=as_json) as display:
        answer = ask_oracle(
            run,
            plan,
            seed,
            judge=who,
            engine=where,
            finish_by=finish_by,
            progress=display.reading,
            told=display.told,
        )
        page = write_report(run, out)
    if as_json:
        typer.echo(json.dumps({"file": str(run.folder / ANSWER_FILE), "page": str(page), **answer}, ensure_ascii=False))
        return
    _print(answer)
    if display.state is not None and display.state.dropped:
        typer.echo(f"{_saved(display.state)}\n", err=True)
    typer.echo(f"Report: {page}")


def _open(campaign: Path, folder: Path | None) -> tuple[Run, CampaignConfig, str | None]:
    """The run, the campaign as it was given, and the command that finishes the run, where that is known."""
    from bursar.campaign import Run, load_config
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.runs import differences

    if campaign.is_dir():
        if folder is not None:
            raise ConfigError(f"--run {folder}: {campaign} is a run's folder already", fix="give one of the two")
        _check_place(campaign, None)
        run = Run.open(campaign)
        return run, run.config, None
    config = load_config(campaign)
    place = folder or Path("runs") / config.name
    command = f"bursar run {campaign}" + (f" --run {folder}" if folder else "")
    if not (place / CONFIG_FILE).exists():
        _check_place(place, command)
    run = Run.open(place)
    asked = Run(place, config, run.parts)
    if config.digest != run.config.digest:
        changed = differences(run.config.model_dump(mode="json"), config.model_dump(mode="json"))
        raise ConfigError(
            f"{place} is not the run of {campaign}: {', '.join(changed) or 'a default is another'}",
            fix=f"name the folder of its run with --run, or ask about this one: bursar oracle {place}",
        )
    if asked.arms != run.arms:
        raise ConfigError(
            f"{place} has the strategies {', '.join(run.arms)}, and {campaign} {', '.join(asked.arms)}",
            fix=f"run them with: {command}, or ask about the run as it is: bursar oracle {place}",
        )
    return run, config, command


def _check_place(place: Path, command: str | None) -> None:
    """Refuse a folder that is no simulated run, and say why."""
    from bursar.campaign.config import CONFIG_FILE

    if (place / CONFIG_FILE).exists():
        return
    if (place / "ledger.sqlite").exists():
        raise ConfigError(
            f"{place} is a campaign that was annotated live: what it did not buy has no label",
            fix="the best order can only be looked for where all labels are known: in a run of bursar run",
        )
    raise ConfigError(f"{place} holds no run", fix=f"start one with: {command or 'bursar run CAMPAIGN.toml'}")


def _hired(config: CampaignConfig, judge: str | None, engine: str | None) -> tuple[str, Engine]:
    """The judge and where it works: what was asked for here, and else in the campaign."""
    from bursar.compute import make_engine
    from bursar.oracle.judge_registry import known_searcher
    from bursar.oracle.settings import OracleSection, oracle_settings

    given = oracle_settings(config) or OracleSection()
    name, where = given.judge if judge is None else judge, given.engine if engine is None else engine
    return known_searcher(name), make_engine(where)


def _plan(
    config: CampaignConfig, judge: str, steps: int | None, greedy_steps: int | None, cooling: float | None
) -> Plan:
    """What was asked for here, and else in the campaign; other steps or another judge bring their own cooling."""
    from bursar.oracle.comparison import plan_of
    from bursar.oracle.settings import oracle_settings

    given = oracle_settings(config)
    if given is not None:
        greedy_steps = given.greedy_steps if greedy_steps is None and steps is None else greedy_steps
        cooling = given.cooling if cooling is None and steps is None and judge == given.judge else cooling
        steps = given.steps if steps is None else steps
    try:
        return plan_of(steps, greedy_steps, cooling, judge)
    except ConfigError as wrong:
        raise ConfigError(f"--{wrong.message.replace('_', '-')}", fix=wrong.fix) from None


def _saved(state: State) -> str:
    """What became of proposals that could not be accepted any more; how many sets that spared hangs on the machine."""
    return (
        f"Of {state.step:,} proposals {state.accepted:,} were accepted and {state.dropped:,} were dropped before all "
        f"of their sets were judged: {state.spared:,} sets that nobody waited for."
    )


def _print(answer: dict[str, Any]) -> None:
    from bursar.cli.show import print_table
    from bursar.report.oracle import oracle_cautions, oracle_note, oracle_table, oracle_words, search_words

    table = oracle_table(answer)
    print_table("Orders, by their mean score over the batches", table.columns, table.rows)
    made = [oracle_note(answer), search_words(answer), *oracle_cautions(answer)]
    for words in (" ".join(oracle_words(answer)), " ".join(made)):
        typer.echo(f"{words}\n")


class SearchDisplay:
    """A bar with the best quality so far and the time left; plain lines where there is no terminal."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self.console = Console(file=sys.stderr, quiet=quiet)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None))
        self.progress = Progress(*columns, TextColumn("{task.fields[words]}"), console=self.console, transient=True)
        self.bar = self.progress.add_task("starting", total=1.0, words="")
        self.pace: Any = None
        self.state: State | None = None  # where the search is
        self.last_line = 0.0

    def __enter__(self) -> SearchDisplay:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def reading(self, what: str, done: float) -> None:
        """The judge reads the items."""
        self._show(f"{what} the items", done, "")

    def told(self, state: State, plan: Plan) -> None:
        """The search is so far."""
        from bursar.cli.show import SearchPace

        self.pace, self.state = self.pace or SearchPace(state.step), state
        done, words = self.pace.told(state, plan)
        self._show("annealing" if state.step < plan.steps else "greedy steps", done, words)

    def _show(self, what: str, done: float, words: str) -> None:
        self.progress.update(self.bar, completed=done, description=what, words=words)
        if not self.console.is_terminal and words and time.monotonic() - self.last_line >= QUIET:
            self.last_line = time.monotonic()
            self.console.print(f"{what}: {words}", soft_wrap=True, markup=False, highlight=False)
