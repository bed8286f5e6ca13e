"""Simulate campaigns on a labelled corpus: every strategy with every seed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bursar.annotation.active_learner import plan_loop, prices_table, typical_price
from bursar.annotation.projects import UNIT
from bursar.campaign.checks import check_served, fallback_notice
from bursar.campaign.config import parse_config
from bursar.comparison.cells import DEV, POOL, TEST, Material, Parcel, forget, run_cell, source_of, split, unit_of
from bursar.comparison.simulation import Cell, Round, Simulation
from bursar.compute import THIS_PROCESS, Engine, Processes, ResultStore, Unit, UnitObserver, cores, run_units
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.selection import Strategy
from bursar.selection.strategy import Choose, name_of_strategy

MOST_ITEMS = 300  # the default budget, unless half of the pool is less
BATCHES = 10  # the points of a curve, unless the batches are given
LEAST_BATCH = 5  # items


@dataclass(frozen=True)
class Wishes:
    """What all campaigns of a simulation are asked to spend; ``None`` for a default."""

    budget: float | None
    batch_size: int | None
    seed_items: int | None
    prices: Mapping[str, Any]
    currency: str


@dataclass(frozen=True)
class Running:
    """Where and how campaigns run; ``None`` for a default."""

    workers: int | None
    folder: Path | None
    progress: bool | None


def simulate(
    corpus: Corpus,
    strategies: Sequence[str | Strategy | Choose] = ("auto", "RANDOM"),
    seeds: Iterable[int] = range(5),
    *,
    budget: float | None = None,
    learner: Any = None,
    tasks: Sequence[str] | None = None,
    prices: Mapping[str, Any] | None = None,
    currency: str = "",
    batch_size: int | None = None,
    seed_items: int | None = None,
    test: float = 0.3,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: bool | None = None,
) -> Simulation:
    """Compare strategies on a corpus that has its labels, as if they had to be bought.

    Every strategy spends the same ``budget`` (items, or money if there are ``prices``) with every seed. Without a split
    ``test``, the share ``test`` of the labelled items is drawn by seed to score models on; the rest is chosen from.
    ``strategies``, ``learner`` and ``prices`` are those of ``ActiveLearner``.

    Campaigns run in as many processes as there are cores, or ``workers``. With a ``folder``, finished campaigns are
    kept: the same call goes on where it stopped, and one with more seeds runs only those. ``progress`` shows a bar, by
    default in a terminal or notebook.

    >>> import bursar
    >>> corpus = bursar.assistant_corpus(120, seed=1).with_tasks(["intent"])
    >>> result = simulate(corpus, ["MT-AVG", "RANDOM"], seeds=[0, 1], budget=30, learner="scikit", workers=1)
    >>> result.to_frame().columns.tolist()
    ['strategy', 'seed', 'round', 'task', 'spent', 'items', 'metric', 'score']
    """
    corpus = corpus if tasks is None else corpus.with_tasks(list(tasks))
    if not corpus.schema:
        raise ConfigError("the corpus has no tasks", fix="read it with labels=, or name a corpus that has labels")
    names, seeds = _names(strategies), _seeds(seeds)
    if not 0 < test < 1 and (test < 1 or test != int(test)):
        raise ConfigError(f"test = {test!r}", fix="give a share such as 0.3, or a number of items")
    material = Material(corpus, learner, tuple(strategies))
    chosen = material.chosen
    pool = split(corpus, test, seeds[0])
    table = _campaign(pool, Wishes(budget, batch_size, seed_items, prices or {}, currency))
    table["learner"] = chosen.settings
    configs = {
        (name, seed): parse_config(table | {"seed": seed, "strategy": {"name": name}}, "simulate")
        for name in names
        for seed in seeds
    }
    for name in names:
        check_served(configs[name, seeds[0]])
    if folder is not None and chosen.unnamed is not None:
        raise ConfigError(
            f"learner: the {chosen.unnamed} is an object that cannot be described in {folder}",
            fix="leave folder out; or give it a name, as in bursar.from_function(f, name='my model 1')",
        )
    digest = corpus.digest()
    sources = {name: source_of(given) for name, given in zip(names, strategies, strict=True)}
    function = source_of(learner.get("function") if isinstance(learner, Mapping) else learner)
    units = [
        unit_of(config, digest, test, {"strategy": sources[name], "learner": function})
        for (name, _), config in configs.items()
    ]
    running = Running(workers, None if folder is None else Path(folder), progress)
    cells = [
        Cell(name, seed, tuple(Round(**part) for part in result["rounds"]))
        for (name, seed), result in zip(configs, _run(material, units, running), strict=True)
    ]
    total, counts = table["budget"]["total"], table["budget"]["counts"]
    about = {
        "learner": chosen.settings["name"],
        "budget": f"{total:g} {'items' if counts == 'items' else currency or 'of money'}",
        "seed items": str(table["budget"]["seed_items"]),
        "items": ", ".join(f"{count:,} {part}" for part, count in pool.split_counts().items() if count),
        "seeds": ", ".join(map(str, seeds)),
    }
    notices = tuple(notice for name in names if (notice := fallback_notice(configs[name, seeds[0]])))
    metrics = {name: task.metric for name, task in corpus.schema.items()}
    return Simulation(tuple(cells), metrics, str(counts), currency, notices, about)


def _names(strategies: Sequence[str | Strategy | Choose]) -> list[str]:
    if isinstance(strategies, str) or not len(strategies):
        raise ConfigError(f"strategies = {strategies!r}", fix='give a list, such as ["auto", "RANDOM"]')
    names = [name_of_strategy(strategy) for strategy in strategies]
    if len(set(names)) < len(names):
        raise ConfigError(f"strategies: {', '.join(names)} names one twice", fix="name each once")
    return names


def _seeds(seeds: Iterable[int]) -> list[int]:
    found = list(seeds)
    if not found or len(set(found)) < len(found) or any(not isinstance(seed, int) or seed < 0 for seed in found):
        raise ConfigError(f"seeds = {found!r:.100}", fix="give different whole numbers from 0, such as range(5)")
    return found


def _campaign(corpus: Corpus, wishes: Wishes) -> dict[str, Any]:
    """What all campaigns have in common: the splits, the prices and the budget."""
    costs: dict[str, Any] = {}
    price = None
    if wishes.prices:
        costs = {"unit": UNIT, "currency": wishes.currency} | prices_table(corpus, wishes.prices)
        price = typical_price(corpus, costs)
    pool, budget, batch_size = len(corpus.in_split(POOL)), wishes.budget, wishes.batch_size
    if budget is None:
        items = max(2, min(MOST_ITEMS, pool // 2))
        budget = items if price is None else round(items * price, 2)
    if batch_size is None:
        batch_size = max(LEAST_BATCH, round(budget / (price or 1.0) / BATCHES))
    return {
        "corpus": {"source": "simulation", "dev": DEV, "test": TEST},
        "costs": costs,
        "budget": plan_loop(budget, price, pool, batch_size=batch_size, seed_items=wishes.seed_items).budget,
        "audit": {"share": 0.0, "shadow": False},
    }


# -- running -----------------------------------------------------------------------------------------------------------
def _run(material: Material, units: list[dict[str, Any]], how: Running) -> list[Any]:
    """Run all campaigns, those that are not stored, and return their curves in order."""
    if how.workers is not None and how.workers < 1:
        raise ConfigError(f"workers = {how.workers}", fix="use at least one")
    count = min(how.workers or cores(), len(units))
    engine: Engine = THIS_PROCESS if count == 1 else Processes(count, own_main=False)
    parcel = Parcel.of(material, elsewhere=count > 1)
    store = None if how.folder is None else ResultStore(how.folder / "results")
    work = partial(run_cell, place=None if how.folder is None else how.folder / "unfinished")
    try:
        with _bar(len(units), how.progress) as watcher:
            return run_units(
                work, units, engine=engine, store=store, watcher=watcher, fill=lambda unit: {**unit, "material": parcel}
            )
    finally:
        forget()


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[UnitObserver]:
    """A progress bar in a terminal or notebook; nothing elsewhere."""
    from rich.console import Console

    console = Console(file=sys.stderr)
    if wanted is False or (wanted is None and not (console.is_terminal or console.is_jupyter)):
        yield UnitObserver()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        yield _BarObserver(partial(bar.update, bar.add_task("starting", total=total)))


class _BarObserver(UnitObserver):
    """Moves a progress bar."""

    def __init__(self, update: Callable[..., None]) -> None:
        self.update, self.done = update, 0

    def begun(self, total: int, stored: int) -> None:
        self.done = stored
        self.update(total=total, completed=stored)

    def reported(self, unit: Unit, what: Any) -> None:
        campaign = unit["campaign"]
        round, stage = what
        self.update(description=f"{campaign['strategy']['name']}, seed {campaign['seed']}, round {round}: {stage}")

    def finished(self, unit: Unit, result: Any, seconds: float) -> None:
        self.done += 1
        self.update(completed=self.done)
