"""``bursar demo``, ``bursar run`` and ``bursar report``: run campaigns and report their results."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.options import JsonOption, RunOption, ScoringEngineOption, TrustOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig
    from bursar.campaign.results import RunResult
    from bursar.compute import Engine

FreshOption = Annotated[bool, typer.Option("--fresh", help="Delete the run and start again.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Strategies to run in parallel. Default: one per core.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Random seed. Default: the campaign's.")]


def demo(
    folder: RunOption = None,
    fresh: FreshOption = False,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a small campaign on the built-in corpus: two tasks, compared with random labelling.

    You can interrupt it at any time: the same command resumes.
    """
    from bursar.campaign.demo import demo_config

    _run(demo_config(), _RunSettings(folder, fresh, seed, workers, as_json))


def run(
    campaign: Annotated[Path, typer.Argument(help="TOML file of the campaign.")],
    folder: RunOption = None,
    fresh: FreshOption = False,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    engine: ScoringEngineOption = "here",
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign with simulated annotators (gold labels), or resume it.

    You can interrupt it at any time: the same command resumes.

    To score a large pool in parallel, pass --engine processes or
    --engine ray://head:10001. Strategies to compare then run one after
    the other. You can resume with another engine; nothing is scored twice.
    """
    from bursar.campaign import load_config
    from bursar.compute import make_engine

    config, where = load_config(campaign), make_engine(engine)
    if engine != "here" and (workers or 1) > 1:
        raise ConfigError(
            f"--engine {engine} runs one strategy at a time, so --workers {workers} has no effect",
            fix="remove --workers or --engine",
        )
    with where:
        _run(config, _RunSettings(folder, fresh, seed, workers, as_json, trust), where)


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="HTML file to write. Default: report.html in the folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all results as JSON; write no report.")] = False,
) -> None:
    """Write the HTML report of a run, finished or not."""
    from bursar.campaign import Run
    from bursar.report import write_report

    found = Run.open(folder)
    if as_json:
        typer.echo(json.dumps(found.result().to_json(), ensure_ascii=False))
    else:
        typer.echo(f"Report: {write_report(found, out)}")


@dataclass(frozen=True)
class _RunSettings:
    """Where and how to run a campaign; None stands for the default."""

    folder: Path | None
    fresh: bool
    seed: int | None
    workers: int | None
    as_json: bool
    trust: bool = False


def _run(config: CampaignConfig, settings: _RunSettings, engine: Engine | None = None) -> None:
    """Run or resume a campaign, with progress, and write its report."""
    from bursar.campaign import Run, run_campaign
    from bursar.campaign.checks import fallback_notice
    from bursar.cli.show import RunDisplay
    from bursar.compute import THIS_PROCESS, cores
    from bursar.report import write_report

    if settings.seed is not None:
        config = config.model_copy(update={"seed": settings.seed})
    place = settings.folder or Path("runs") / config.name
    if settings.fresh and config.ledger is not None:
        raise ConfigError("--fresh cannot delete a ledger on a server", fix="name another schema in ledger.url")
    if settings.fresh:
        _clear(place)
    if place.exists() and not place.is_dir():
        raise ConfigError(f"{place} is a file, not the folder of a run", fix="choose another --run folder")
    current = Run(place, config, trust=settings.trust)
    workers, engine = settings.workers or cores(), engine or THIS_PROCESS
    if notice := fallback_notice(config):
        typer.echo(notice, err=True)
    if settings.as_json:
        result = run_campaign(current, workers=workers, engine=engine)
        write_report(current)
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        return
    tasks = current.parts.corpus.schema
    costs = config.costs.model(tasks.values())
    with RunDisplay(current.arms, config.budget.rounds, tasks, costs) as display:
        result = run_campaign(
            current, display.watcher, workers, engine=engine, progress=display.reading, callback=display.searching
        )
        display.progress.update(display.bar, completed=1.0, description="writing the report", left="")
        page = write_report(current)
    _print_result(result, page)


def _clear(place: Path) -> None:
    """Delete the folder of a run; refuse any other folder."""
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.lock import Lock

    if not place.exists():
        return
    if not place.is_dir() or not ((place / CONFIG_FILE).exists() or all(p.suffix == ".lock" for p in place.iterdir())):
        raise ConfigError(
            f"{place} is not the folder of a run, so it is not deleted", fix="choose another --run folder"
        )
    lock = Lock(place / "run.lock", patience=0.5)
    # Rename first: a half-deleted run must not be resumed.
    removed = place.with_name(f".{place.name}.removed-{os.getpid()}")
    place.rename(removed)
    lock.release()
    shutil.rmtree(removed)


def _print_result(result: RunResult, page: Path) -> None:
    """Print the result of a run in a few lines."""
    from bursar.report.saved import TITLE, saved_tile

    typer.echo("")
    width = max(10, *(len(arm) for arm in result.arms))
    for arm, found in result.comparison.items():
        typer.echo(f"{arm:<{width}} mean score over tasks and budget: {100 * found.mean:.1f}")
    shown = saved_tile(result)
    if shown is not None:
        typer.echo(f"{TITLE}: {shown[0][0].lower()}{shown[0][1:]} ({shown[1]}).")
    _print_oracle(result.oracle)
    typer.echo(f"Report: {page}")


def _print_oracle(answer: dict[str, Any] | None) -> None:
    """Print how close the strategies came to the best order, if it was searched for."""
    from bursar.report.oracle import oracle_words

    if answer and "refused" in answer:
        typer.echo(f"No search for the best order: {answer['refused']}")
    elif answer:
        typer.echo(oracle_words(answer)[0])
