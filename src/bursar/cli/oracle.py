"""``bursar oracle``: compare the strategies of a finished run with the best labelling order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.options import JsonOption, RunOption, check_output_file, check_run_option
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig, Run
    from bursar.cli.show import SearchPace
    from bursar.compute import Engine
    from bursar.oracle import SearchPlan, SearchState


CampaignArgument = Annotated[
    Path, typer.Argument(help="TOML file of a campaign, or the folder of its run.", metavar="CAMPAIGN.toml|RUN")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="HTML file to write. Default: the report of the run.")]
StepsOption = Annotated[int | None, typer.Option("--steps", min=0, metavar="N", help="Annealing steps. Default: 5000.")]
GreedyStepsOption = Annotated[
    int | None,
    typer.Option("--greedy-steps", min=0, metavar="N", help="Greedy steps at the end. Default: a fifth of --steps."),
]
CoolingOption = Annotated[
    float | None,
    typer.Option(
        "--cooling",
        metavar="γ",
        help="Cooling per step. Default: 50000 / steps for the probe, 2500 / steps for networks (as in paper 4), so"
        " that every search ends at the same temperature.",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the search and of trainings. Default: the campaign's.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="Model that scores sets of items: probe, or a small network trained on every set (aoe, cnn or lstm for"
        " classification, tagger for tagging). Default: the campaign's setting, or probe.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where to train networks: here, processes, processes:4, ray or ray://host:port. Default: the campaign's"
        " setting, or processes. The probe always runs here: its steps are too short to distribute.",
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
    """Search for the best labelling order of a finished run, and compare its strategies with it.

    [bold]bursar run spring.toml[/bold]
    [bold]bursar oracle spring.toml --steps 5000[/bold]
    [bold]bursar oracle spring.toml --judge aoe --steps 500 --engine processes:4[/bold]

    The report then says, for example: "MT-AVG reached 34 % of the way
    from random to the best order found".

    All labels must be known, as in a run of bursar run.

    You can interrupt it at any time: the same command resumes, with any engine.

    A campaign with an \\[oracle] section runs this search at its end.
    """
    from bursar.oracle.run_comparison import ANSWER_FILE, OracleRequest, ask_oracle
    from bursar.report import write_report

    run, config, finish_by = _open(campaign, folder)
    judge, where = _judge_and_engine(config, judge, engine)
    if judge == "probe" and engine not in (None, "here") and not as_json:
        typer.echo("The probe runs in this process: its steps are too short to distribute.", err=True)
    plan = _plan(config, judge, _Schedule(steps, greedy_steps, cooling))
    if out is not None:
        check_output_file("--out", out)
    with SearchDisplay(quiet=as_json) as display:
        request = OracleRequest(plan, seed, judge, where)
        answer = ask_oracle(run, request, finish_by=finish_by, progress=display.reading, callback=display.update)
        page = write_report(run, out)
    if as_json:
        typer.echo(json.dumps({"file": str(run.folder / ANSWER_FILE), "page": str(page), **answer}, ensure_ascii=False))
        return
    _print(answer)
    if display.state is not None and display.state.dropped:
        typer.echo(f"{_dropped(display.state)}\n", err=True)
    typer.echo(f"Report: {page}")


def _open(campaign: Path, folder: Path | None) -> tuple[Run, CampaignConfig, str | None]:
    """Open the run; also give the campaign as it was given and the command that finishes the run, if known."""
    from bursar.campaign import Run, load_config
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.runs import differences

    if campaign.is_dir():
        check_run_option(folder, campaign)
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
            f"{place} is not the run of {campaign}: {', '.join(changed) or 'a default has changed'}",
            fix=f"pass the folder of its run with --run, or use this run: bursar oracle {place}",
        )
    if asked.arms != run.arms:
        raise ConfigError(
            f"{place} has the strategies {', '.join(run.arms)}, but {campaign} has {', '.join(asked.arms)}",
            fix=f"run them with: {command}, or use the run as it is: bursar oracle {place}",
        )
    return run, config, command


def _check_place(place: Path, command: str | None) -> None:
    """Refuse a folder that does not hold a simulated run."""
    from bursar.campaign.config import CONFIG_FILE

    if (place / CONFIG_FILE).exists():
        return
    if (place / "ledger.sqlite").exists():
        raise ConfigError(
            f"{place} was annotated by people: items that were not bought have no labels",
            fix="use a run of bursar run, where all labels are known",
        )
    raise ConfigError(
        f"{place} is not the folder of a run", fix=f"start one with: {command or 'bursar run CAMPAIGN.toml'}"
    )


def _judge_and_engine(config: CampaignConfig, judge: str | None, engine: str | None) -> tuple[str, Engine]:
    """Take the judge and the engine from the options, or else from the campaign."""
    from bursar.compute import make_engine
    from bursar.oracle.adviser import OracleSection, oracle_settings
    from bursar.oracle.judge_registry import known_judge

    given = oracle_settings(config) or OracleSection()
    name, where = given.judge if judge is None else judge, given.engine if engine is None else engine
    return known_judge(name), make_engine(where)


@dataclass(frozen=True)
class _Schedule:
    """Options of the search; None stands for the campaign's setting or the default."""

    steps: int | None
    greedy_steps: int | None
    cooling: float | None


def _plan(config: CampaignConfig, judge: str, options: _Schedule) -> SearchPlan:
    """Take the schedule from the options, or else from the campaign; new steps or judges have their own cooling."""
    from bursar.oracle.adviser import oracle_settings
    from bursar.oracle.comparison import plan_of

    given = oracle_settings(config)
    steps, greedy_steps, cooling = options.steps, options.greedy_steps, options.cooling
    if given is not None:
        greedy_steps = given.greedy_steps if greedy_steps is None and steps is None else greedy_steps
        cooling = given.cooling if cooling is None and steps is None and judge == given.judge else cooling
        steps = given.steps if steps is None else steps
    try:
        return plan_of(steps, greedy_steps, cooling, judge)
    except ConfigError as wrong:
        raise ConfigError(f"--{wrong.message.replace('_', '-')}", fix=wrong.fix) from None


def _dropped(state: SearchState) -> str:
    """Describe the proposals that were dropped early; how many depends on the machine's speed."""
    return (
        f"Of {state.step:,} proposals, {state.accepted:,} were accepted and {state.dropped:,} were dropped before all "
        f"their sets were judged, which saved {state.spared:,} evaluations."
    )


def _print(answer: dict[str, Any]) -> None:
    from bursar.cli.show import print_table
    from bursar.report.oracle import oracle_cautions, oracle_note, oracle_table, oracle_words, search_words

    table = oracle_table(answer)
    print_table("Labelling orders, by mean score over the batches", table.columns, table.rows)
    made = [oracle_note(answer), search_words(answer), *oracle_cautions(answer)]
    for words in (" ".join(oracle_words(answer)), " ".join(made)):
        typer.echo(f"{words}\n")


class SearchDisplay:
    """A progress bar with the best score so far; keeps the last state of the search."""

    def __init__(self, quiet: bool) -> None:
        from bursar.cli.progress import ProgressBar

        self.bar = ProgressBar(quiet=quiet)
        self.pace: SearchPace | None = None
        self.state: SearchState | None = None

    def __enter__(self) -> SearchDisplay:
        self.bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.__exit__(*error)

    def reading(self, what: str, done: float) -> None:
        """Show that the judge encodes the items."""
        self.bar.update(f"{what} the items", done)

    def update(self, state: SearchState, plan: SearchPlan) -> None:
        """Show the progress of the search."""
        from bursar.cli.show import SearchPace

        self.pace, self.state = self.pace or SearchPace(state.step), state
        done, words = self.pace.describe(state, plan)
        self.bar.update("annealing" if state.step < plan.steps else "greedy steps", done, words)
