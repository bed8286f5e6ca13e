"""``bursar oracle``: compare the strategies of a finished run with the best labelling order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import JsonOption, RunOption, check_output_file, check_run_option, grouped
from bursar.cli.output import ProgressBar, print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.oracle.run_comparison import OracleRequest


@dataclass(frozen=True)
class SearchSettings:
    """How to search. None stands for the campaign's setting, or else for the default."""

    steps: int | None = Option(None, min=0, metavar="N", help="Annealing steps. Default: 5000.")
    greedy_steps: int | None = Option(
        None, min=0, metavar="N", help="Greedy steps at the end. Default: a fifth of --steps."
    )
    cooling: float | None = Option(
        None,
        metavar="γ",
        help="Cooling per step. Default: 50000 / steps for the probe, 2500 / steps for networks (as in paper 4), so"
        " that every search ends at the same temperature.",
    )
    seed: int | None = Option(None, min=0, help="Seed of the search and of trainings. Default: the campaign's.")
    judge: str | None = Option(
        None,
        help="Model that scores sets of items: probe, or a small network trained on every set (aoe, cnn or lstm for"
        " classification, tagger for tagging). Default: the campaign's setting, or probe.",
    )
    engine: str | None = Option(
        None,
        help="Where to train networks: here, processes, processes:4, ray or ray://host:port. Default: the campaign's"
        " setting, or processes. The probe always runs here: its steps are too short to distribute.",
    )

    def request(self, config: bursar.CampaignConfig) -> OracleRequest:
        """The search to run. Another number of steps or another judge has its own cooling."""
        from bursar.compute import make_engine
        from bursar.oracle.adviser import OracleSection, oracle_settings
        from bursar.oracle.comparison import plan_of
        from bursar.oracle.judge import known_judge
        from bursar.oracle.run_comparison import OracleRequest

        given = oracle_settings(config) or OracleSection()
        judge = known_judge(given.judge if self.judge is None else self.judge)
        engine = make_engine(given.engine if self.engine is None else self.engine)
        steps, greedy_steps, cooling = self.steps, self.greedy_steps, self.cooling
        if steps is None:
            steps = given.steps
            greedy_steps = given.greedy_steps if greedy_steps is None else greedy_steps
            cooling = given.cooling if cooling is None and judge == given.judge else cooling
        try:
            plan = plan_of(steps, greedy_steps, cooling, judge)
        except ConfigError as wrong:
            raise ConfigError(f"--{wrong.message.replace('_', '-')}", fix=wrong.fix) from None
        return OracleRequest(plan, self.seed, judge, engine)


@grouped
def oracle(
    campaign: Annotated[
        Path, Argument(help="TOML file of a campaign, or the folder of its run.", metavar="CAMPAIGN.toml|RUN")
    ],
    *,
    folder: RunOption = None,
    out: Annotated[Path | None, Option("--out", help="HTML file to write. Default: the report of the run.")] = None,
    search: SearchSettings,
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
    from bursar.cli.show import SearchDisplay
    from bursar.oracle.run_comparison import ANSWER_FILE, ask_oracle

    run, config, finish_by = _open(campaign, folder)
    request = search.request(config)
    if request.judge == "probe" and search.engine not in (None, "here") and not as_json:
        typer.echo("The probe runs in this process: its steps are too short to distribute.", err=True)
    if out is not None:
        check_output_file("--out", out)
    with ProgressBar(quiet=as_json) as bar:
        display = SearchDisplay(bar.update)
        answer = ask_oracle(run, request, finish_by=finish_by, progress=display.reading, callback=display.update)
        page = bursar.write_report(run, out)
    if as_json:
        print_json({"file": str(run.folder / ANSWER_FILE), "page": str(page), **answer})
        return
    _print(answer)
    if (last := display.state) is not None and last.dropped:  # how many depends on the machine's speed
        typer.echo(
            f"Of {last.step:,} proposals, {last.accepted:,} were accepted and {last.dropped:,} were dropped before all "
            f"their sets were judged, which saved {last.spared:,} evaluations.\n",
            err=True,
        )
    typer.echo(f"Report: {page}")


def _open(campaign: Path, folder: Path | None) -> tuple[bursar.Run, bursar.CampaignConfig, str | None]:
    """Open the run; also give the campaign as it was given and the command that finishes the run, if known."""
    from bursar.campaign.runs import differences

    if campaign.is_dir():
        check_run_option(folder, campaign)
        _check_run(campaign, "bursar run CAMPAIGN.toml")
        run = bursar.Run.open(campaign)
        return run, run.config, None
    config = bursar.load_config(campaign)
    place = folder or Path("runs") / config.name
    command = f"bursar run {campaign}" + (f" --run {folder}" if folder else "")
    _check_run(place, command)
    run = bursar.Run.open(place)
    asked = bursar.Run(place, config, run.parts)
    if config.digest != run.config.digest:
        changed = differences(run.config.model_dump(mode="json"), config.model_dump(mode="json"))
        message = f"{place} is not the run of {campaign}: {', '.join(changed) or 'a default has changed'}"
        raise ConfigError(message, fix=f"pass the folder of its run with --run, or use this run: bursar oracle {place}")
    if asked.arms != run.arms:
        message = f"{place} has the strategies {', '.join(run.arms)}, but {campaign} has {', '.join(asked.arms)}"
        raise ConfigError(message, fix=f"run them with: {command}, or use the run as it is: bursar oracle {place}")
    return run, config, command


def _check_run(place: Path, command: str) -> None:
    """Refuse a folder that does not hold a simulated run."""
    from bursar.campaign.config import CONFIG_FILE

    if (place / CONFIG_FILE).exists():
        return
    if (place / "ledger.sqlite").exists():
        fix = "use a run of bursar run, where all labels are known"
        raise ConfigError(f"{place} was annotated by people: items that were not bought have no labels", fix=fix)
    raise ConfigError(f"{place} is not the folder of a run", fix=f"start one with: {command}")


def _print(answer: dict[str, Any]) -> None:
    from bursar.report.oracle import oracle_cautions, oracle_note, oracle_table, oracle_words, search_words

    table = oracle_table(answer)
    print_table("Labelling orders, by mean score over the batches", table.columns, table.rows)
    made = [oracle_note(answer), search_words(answer), *oracle_cautions(answer)]
    for words in (" ".join(oracle_words(answer)), " ".join(made)):
        typer.echo(f"{words}\n")
