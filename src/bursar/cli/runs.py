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
from bursar.cli.options import EngineOption, JsonOption, PluginOption, RunOption, TrustOption, grouped, load_plugins
from bursar.cli.output import print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign.results import RunResult
    from bursar.compute import Engine

CONFIG_FILE = "campaign.json"  # in the folder of a run
SEED = "seed-{}"  # the folder of a seed


@dataclass(frozen=True)
class RunSettings:
    """Where and how to run a campaign."""

    folder: RunOption = None
    fresh: bool = Option(False, "--fresh", help="Delete the run and start again.")
    seed: int | None = Option(None, metavar="N", min=0, help="Random seed. Default: the campaign's.")
    seeds: str | None = Option(
        None, metavar="A-B", help="Run several seeds, such as 0-4, into FOLDER/seed-N, with one report of all."
    )
    workers: int | None = Option(None, metavar="N", min=1, help="Strategies to run in parallel. Default: one per core.")
    as_json: JsonOption = False


@grouped
def demo(settings: RunSettings) -> None:
    """Run a small campaign on the built-in corpus: two tasks, compared with random labelling.

    You can interrupt it at any time: the same command resumes.
    """
    _run(demo_config(), settings)


def demo_config() -> bursar.CampaignConfig:
    """The demo's campaign: two tasks of the built-in corpus share one budget, beside random labelling."""
    from bursar.campaign.config import parse_config

    return parse_config(
        {
            "name": "demo",
            "tasks": ["intent", "slots"],
            "compare": ["RANDOM"],
            "corpus": {"items": 8000, "pool_items": 2000, "dev": None, "test_items": 600},
            "budget": {"seed_items": 50, "per_round": 500, "rounds": 4},
            "audit": {"shadow": False},  # random labelling itself says what was saved
        },
        "demo",
    )


@grouped
def run(
    campaign: Annotated[Path, Argument(help="TOML file of the campaign.")],
    settings: RunSettings,
    plugin: PluginOption = None,
    set: Annotated[
        list[str] | None,
        Option(
            "--set", metavar="KEY=VALUE", help="Change a setting of the file, such as learner.steps=300. Repeatable."
        ),
    ] = None,
    engine: EngineOption = "here",
    trust: TrustOption = False,
) -> None:
    """Run a campaign with simulated annotators (gold labels), or resume it.

    You can interrupt it at any time: the same command resumes.

    To score a large pool in parallel, pass --engine processes or
    --engine ray://head:10001. Strategies to compare then run one after
    the other. You can resume with another engine; nothing is scored twice.
    """
    if engine != "here" and (settings.workers or 1) > 1:
        message = f"--engine {engine} runs one strategy at a time, so --workers {settings.workers} has no effect"
        raise ConfigError(message, fix="remove --workers or --engine")
    load_plugins(plugin)
    _run(bursar.load_config(campaign, set or ()), settings, engine, trust)


def report(
    folder: Annotated[Path, Argument(help="Folder of a run.")],
    out: Annotated[Path | None, Option("--out", help="HTML file to write. Default: report.html in the folder.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print all results as JSON; write no report.")] = False,
    plugin: PluginOption = None,
) -> None:
    """Write the HTML report of a run, finished or not."""
    load_plugins(plugin)
    found = bursar.Run.open(folder)
    if as_json:
        print_json(found.result().to_json())
    else:
        typer.echo(f"Report: {bursar.write_report(found, out)}")


def _run(config: bursar.CampaignConfig, settings: RunSettings, engine: str = "here", trust: bool = False) -> None:
    """Run or resume a campaign, or one per seed, with progress, and write its report."""
    from bursar.campaign.checks import fallback_notice
    from bursar.compute import make_engine

    if settings.seeds is not None:
        _run_seeds(config, settings, engine, trust)
        return
    if settings.seed is not None:
        config = config.model_copy(update={"seed": settings.seed})
    folder = settings.folder or Path("runs") / config.name
    if (folder / SEED.format(config.seed)).is_dir() and not (folder / CONFIG_FILE).exists():
        raise ConfigError(f"{folder} holds runs of several seeds", fix="pass --seeds, or choose another --run folder")
    if notice := fallback_notice(config):
        typer.echo(notice, err=True)
    with make_engine(engine) as where:
        result, page = _run_one(folder, config, settings, where, trust)
    if settings.as_json:
        print_json(result.to_json())
    else:
        _print_result(result, page)


def _run_seeds(config: bursar.CampaignConfig, settings: RunSettings, engine: str, trust: bool) -> None:
    """Run one campaign per seed, each in a folder of its own, and write one report of all."""
    from bursar.campaign.checks import fallback_notice
    from bursar.campaign.curves import seeds_of
    from bursar.compute import make_engine
    from bursar.report.across_seeds import difference_table, render_seeds, seeds_table
    from bursar.report.page import REPORT_FILE, write_page

    if settings.seed is not None:
        raise ConfigError("--seed and --seeds exclude each other", fix="remove one of them")
    if config.ledger is not None:
        raise ConfigError("--seeds needs a ledger per seed, and ledger.url names one", fix="remove [ledger]")
    folder, seeds, results = settings.folder or Path("runs") / config.name, seeds_of(str(settings.seeds)), []
    if (folder / CONFIG_FILE).exists():
        raise ConfigError(f"{folder} is the folder of a single run", fix="choose another --run folder")
    if notice := fallback_notice(config):
        typer.echo(notice, err=True)
    with make_engine(engine) as where:
        for seed in seeds:
            if not settings.as_json:
                typer.echo(f"Seed {seed}", err=True)
            seeded = config.model_copy(update={"seed": seed})
            results.append(_run_one(folder / SEED.format(seed), seeded, settings, where, trust)[0])
    page = write_page(render_seeds(results), folder / REPORT_FILE)
    if settings.as_json:
        print_json({"seeds": seeds, "results": [result.to_json() for result in results], "report": str(page)})
        return
    for title, table in (("Over all seeds", seeds_table(results)), ("Paired by seed", difference_table(results))):
        if table.rows:
            print_table(title, table.columns, table.rows)
    typer.echo(f"Report: {page}")


def _run_one(
    folder: Path, config: bursar.CampaignConfig, settings: RunSettings, where: Engine, trust: bool
) -> tuple[RunResult, Path]:
    """Run or resume one campaign in a folder and write its report."""
    from bursar.cli.show import RunDisplay
    from bursar.compute import cores

    workers = settings.workers or cores()
    if settings.fresh:
        _clear(folder, config)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, not the folder of a run", fix="choose another --run folder")
    current = bursar.Run(folder, config, trust=trust)
    if settings.as_json:
        return bursar.run_campaign(current, workers=workers, engine=where), bursar.write_report(current)
    tasks = current.parts.corpus.schema
    with RunDisplay(current.arms, config.budget.rounds, tasks, config.costs.model(tasks.values())) as display:
        search = display.search
        result = bursar.run_campaign(
            current, display.watcher, workers, engine=where, progress=search.reading, callback=search.update
        )
        display.update("writing the report", 1.0)
        return result, bursar.write_report(current)


def _clear(folder: Path, config: bursar.CampaignConfig) -> None:
    """Delete the folder of a run; refuse any other folder."""
    from bursar.campaign.folder import Lock

    if config.ledger is not None:
        raise ConfigError("--fresh cannot delete a ledger on a server", fix="name another schema in ledger.url")
    if not folder.exists():
        return
    if not folder.is_dir() or not (
        (folder / CONFIG_FILE).exists() or all(p.suffix == ".lock" for p in folder.iterdir())
    ):
        fix = "choose another --run folder"
        raise ConfigError(f"{folder} is not the folder of a run, so it is not deleted", fix=fix)
    lock = Lock(folder / "run.lock", patience=0.5)
    # Rename first: a half-deleted run must not be resumed.
    removed = folder.with_name(f".{folder.name}.removed-{os.getpid()}")
    folder.rename(removed)
    lock.release()
    shutil.rmtree(removed)


def _print_result(result: RunResult, page: Path) -> None:
    from bursar.report.oracle import oracle_words
    from bursar.report.summary import TITLE, saved_tile

    typer.echo("")
    width = max(10, *(len(arm) for arm in result.arms))
    for arm, found in result.comparison.items():
        typer.echo(f"{arm:<{width}} mean score over tasks and budget: {100 * found.mean:.1f}")
    if (shown := saved_tile(result)) is not None:
        typer.echo(f"{TITLE}: {shown[0][0].lower()}{shown[0][1:]} ({shown[1]}).")
    if result.oracle and "refused" in result.oracle:
        typer.echo(f"No search for the best order: {result.oracle['refused']}")
    elif result.oracle:
        typer.echo(oracle_words(result.oracle)[0])
    typer.echo(f"Report: {page}")
