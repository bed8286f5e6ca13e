"""``bursar demo``, ``bursar run``, ``bursar report``: campaigns and what came of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.serve import ScoringEngineOption, TrustOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig
    from bursar.compute import Engine

RunOption = Annotated[Path | None, typer.Option("--run", help="Folder of the run; runs/NAME if not given.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Throw away what is in the folder and start anew.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object at the end, for machines; no progress.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Strategies at a time; as many as there are cores if not given.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Another seed than the campaign's.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(demo)
    app.command()(run)
    app.command()(report)


def demo(
    folder: RunOption = None,
    fresh: FreshOption = False,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Spend a label budget on two tasks of the built-in corpus, beside random labelling, and show what it bought.

    Stop it whenever you like: the same command goes on where it was.
    """
    from bursar.campaign.demo import demo_config

    _run(demo_config(), folder, fresh, seed, workers, as_json)


def run(
    campaign: Annotated[Path, typer.Argument(help="The campaign's TOML file.")],
    folder: RunOption = None,
    fresh: FreshOption = False,
    seed: SeedOption = None,
    workers: WorkersOption = None,
    engine: ScoringEngineOption = "here",
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign against gold labels, or go on with one that was stopped.

    Several workers score a large pool: --engine processes, --engine ray://head:10001.
    Strategies that are compared then run one after the other. A run that was stopped
    goes on with any engine; what is scored already is not scored again.
    """
    from bursar.campaign import load_config
    from bursar.compute import make_engine

    config, where = load_config(campaign), make_engine(engine)
    if engine != "here" and (workers or 1) > 1:
        raise ConfigError(
            f"--engine {engine} scores the pool of one strategy at a time, not of {workers}",
            fix="leave --workers out, or --engine",
        )
    with where:
        _run(config, folder, fresh, seed, workers, as_json, trust, where)


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON; write no page.")] = False,
) -> None:
    """Write the page of a run, finished or not."""
    from bursar.campaign import Run
    from bursar.report import write_report

    found = Run.open(folder)
    if as_json:
        typer.echo(json.dumps(found.result(), ensure_ascii=False))
    else:
        typer.echo(f"Report: {write_report(found, out)}")


def _run(
    config: CampaignConfig,
    folder: Path | None,
    fresh: bool,
    seed: int | None,
    workers: int | None,
    as_json: bool,
    trust: bool = False,
    engine: Engine | None = None,
) -> None:
    from bursar.campaign import Run, run_campaign
    from bursar.campaign.checks import fallback_notice
    from bursar.cli.show import RunDisplay
    from bursar.compute import HERE, cores
    from bursar.report import write_report

    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    place = folder or Path("runs") / config.name
    if fresh and config.ledger is not None:
        raise ConfigError("--fresh throws away no ledger that a server keeps", fix="name another schema in ledger.url")
    if fresh:
        _clear(place)
    if place.exists() and not place.is_dir():
        raise ConfigError(f"{place} is a file, not a run's folder", fix="choose another --run folder")
    current = Run(place, config, trust=trust)
    workers, engine = workers or cores(), engine or HERE
    if notice := fallback_notice(config):
        typer.echo(notice, err=True)
    if as_json:
        result = run_campaign(current, workers=workers, engine=engine)
        write_report(current)
        typer.echo(json.dumps(result, ensure_ascii=False))
        return
    tasks = current.parts.corpus.schema
    costs = config.costs.model(tasks.values())
    with RunDisplay(current.arms, config.budget.rounds, tasks, costs) as display:
        result = run_campaign(
            current, display.watcher, workers, engine=engine, progress=display.reading, told=display.searching
        )
        display.progress.update(display.bar, completed=1.0, description="writing the report", left="")
        page = write_report(current)
    _conclude(result, page)


def _clear(place: Path) -> None:
    """Remove a run's folder, and nothing that is not one."""
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.lock import Lock

    if not place.exists():
        return
    if not place.is_dir() or not ((place / CONFIG_FILE).exists() or all(p.suffix == ".lock" for p in place.iterdir())):
        raise ConfigError(f"{place} is not a run's folder; it is left alone", fix="choose another --run folder")
    lock = Lock(place / "run.lock", patience=0.5)
    # Out of the way in one step: a run that is half removed must not be gone on with.
    grave = place.with_name(f".{place.name}.removed-{os.getpid()}")
    place.rename(grave)
    lock.release()
    shutil.rmtree(grave)


def _conclude(result: dict[str, Any], page: Path) -> None:
    """What it came to, in a few lines."""
    from bursar.report.saved import TITLE, saved_tile

    typer.echo("")
    width = max(10, *(len(arm) for arm in result["arms"]))
    for arm, found in result["comparison"].items():
        typer.echo(f"{arm:<{width}} mean score along the way, over tasks and money: {100 * found['mean']:.1f}")
    shown = saved_tile(result)
    if shown is not None:
        typer.echo(f"{TITLE}: {shown[0][0].lower()}{shown[0][1:]} ({shown[1]}).")
    _say_oracle(result["oracle"])
    typer.echo(f"Report: {page}")


def _say_oracle(answer: dict[str, Any] | None) -> None:
    """How far it came towards the best order, where somebody looked for one."""
    from bursar.report.oracle import oracle_words

    if answer and "refused" in answer:
        typer.echo(f"The best order was not looked for: {answer['refused']}")
    elif answer:
        typer.echo(oracle_words(answer)[0])
