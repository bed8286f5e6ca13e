"""``bursar demo``, ``bursar run`` and ``bursar report``: run campaigns and report their results."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import JsonOption, RunOption, ScoringEngineOption, TrustOption, grouped
from bursar.cli.output import print_json
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign.results import RunResult


@dataclass(frozen=True)
class RunSettings:
    """Where and how to run a campaign."""

    folder: RunOption = None
    fresh: bool = Option(False, "--fresh", help="Delete the run and start again.")
    seed: int | None = Option(None, min=0, help="Random seed. Default: the campaign's.")
    workers: int | None = Option(None, min=1, help="Strategies to run in parallel. Default: one per core.")
    as_json: JsonOption = False


@grouped
def demo(settings: RunSettings) -> None:
    """Run a small campaign on the built-in corpus: two tasks, compared with random labelling.

    You can interrupt it at any time: the same command resumes.
    """
    from bursar.campaign.demo import demo_config

    _run(demo_config(), settings)


@grouped
def run(
    campaign: Annotated[Path, Argument(help="TOML file of the campaign.")],
    settings: RunSettings,
    engine: ScoringEngineOption = "here",
    trust: TrustOption = False,
) -> None:
    """Run a campaign with simulated annotators (gold labels), or resume it.

    You can interrupt it at any time: the same command resumes.

    To score a large pool in parallel, pass --engine processes or
    --engine ray://head:10001. Strategies to compare then run one after
    the other. You can resume with another engine; nothing is scored twice.
    """
    if engine != "here" and (settings.workers or 1) > 1:
        raise ConfigError(
            f"--engine {engine} runs one strategy at a time, so --workers {settings.workers} has no effect",
            fix="remove --workers or --engine",
        )
    _run(bursar.load_config(campaign), settings, engine, trust)


def report(
    folder: Annotated[Path, Argument(help="Folder of a run.")],
    out: Annotated[Path | None, Option("--out", help="HTML file to write. Default: report.html in the folder.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print all results as JSON; write no report.")] = False,
) -> None:
    """Write the HTML report of a run, finished or not."""
    found = bursar.Run.open(folder)
    if as_json:
        print_json(found.result().to_json())
    else:
        typer.echo(f"Report: {bursar.write_report(found, out)}")


def _run(config: bursar.CampaignConfig, settings: RunSettings, engine: str = "here", trust: bool = False) -> None:
    """Run or resume a campaign, with progress, and write its report."""
    from bursar.campaign.checks import fallback_notice
    from bursar.cli.show import RunDisplay
    from bursar.compute import cores, make_engine

    where, workers = make_engine(engine), settings.workers or cores()
    if settings.seed is not None:
        config = config.model_copy(update={"seed": settings.seed})
    folder = settings.folder or Path("runs") / config.name
    if settings.fresh:
        _clear(folder, config)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, not the folder of a run", fix="choose another --run folder")
    current = bursar.Run(folder, config, trust=trust)
    if notice := fallback_notice(config):
        typer.echo(notice, err=True)
    with where:
        if settings.as_json:
            result = bursar.run_campaign(current, workers=workers, engine=where)
            bursar.write_report(current)
            print_json(result.to_json())
            return
        tasks = current.parts.corpus.schema
        with RunDisplay(current.arms, config.budget.rounds, tasks, config.costs.model(tasks.values())) as display:
            search = display.search
            result = bursar.run_campaign(
                current, display.watcher, workers, engine=where, progress=search.reading, callback=search.update
            )
            display.update("writing the report", 1.0)
            page = bursar.write_report(current)
    _print_result(result, page)


def _clear(folder: Path, config: bursar.CampaignConfig) -> None:
    """Delete the folder of a run; refuse any other folder."""
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.lock import Lock

    if config.ledger is not None:
        raise ConfigError("--fresh cannot delete a ledger on a server", fix="name another schema in ledger.url")
    if not folder.exists():
        return
    if not folder.is_dir() or not (
        (folder / CONFIG_FILE).exists() or all(p.suffix == ".lock" for p in folder.iterdir())
    ):
        raise ConfigError(
            f"{folder} is not the folder of a run, so it is not deleted", fix="choose another --run folder"
        )
    lock = Lock(folder / "run.lock", patience=0.5)
    # Rename first: a half-deleted run must not be resumed.
    removed = folder.with_name(f".{folder.name}.removed-{os.getpid()}")
    folder.rename(removed)
    lock.release()
    shutil.rmtree(removed)


def _print_result(result: RunResult, page: Path) -> None:
    from bursar.report.oracle import oracle_words
    from bursar.report.saved import TITLE, saved_tile

    typer.echo("")
    width = max(10, *(len(arm) for arm in result.arms))
    for arm, found in result.comparison.items():
        typer.echo(f"{arm:<{width}} mean score over tasks and budget: {100 * found.mean:.1f}")
    shown = saved_tile(result)
    if shown is not None:
        typer.echo(f"{TITLE}: {shown[0][0].lower()}{shown[0][1:]} ({shown[1]}).")
    if result.oracle and "refused" in result.oracle:
        typer.echo(f"No search for the best order: {result.oracle['refused']}")
    elif result.oracle:
        typer.echo(oracle_words(result.oracle)[0])
    typer.echo(f"Report: {page}")
