"""Simulate campaigns on a labelled corpus: every strategy with every seed.

A campaign is a cell: a unit of work that another process can run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bursar.annotation.active_learner import plan_loop, prices_table, typical_price
from bursar.annotation.projects import UNIT
from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import check_served, fallback_notice
from bursar.campaign.config import CampaignConfig, parse_config
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.participants import GoldAnnotator, Observer
from bursar.campaign.splits import fully_labelled, load_parts
from bursar.comparison.simulation import Cell, Round, Simulation
from bursar.compute import (
    THIS_PROCESS,
    Engine,
    Processes,
    ProgressCallback,
    ResultStore,
    Unit,
    UnitObserver,
    cores,
    run_units,
)
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners import Learner, make_learner
from bursar.learners.chosen import ChosenLearner, choose_learner
from bursar.random_streams import rng
from bursar.selection import Strategy
from bursar.selection.strategy import Choose, name_of_strategy

VERSION = 1  # of what a cell computes: stored results of another version are not used
POOL, DEV, TEST = "train", "dev", "test"
SPLITS = (POOL, DEV, TEST)
MOST_ITEMS = 300  # the default budget, unless half of the pool is less
BATCHES = 10  # the points of a curve, unless the batches are given
LEAST_BATCH = 5  # items


@dataclass
class Material:
    """What all cells of a simulation share, and what settings cannot hold: the corpus, the model, own strategies."""

    corpus: Corpus
    learner: Any
    strategies: tuple[str | Strategy | Choose, ...]
    _made: dict[str, Learner] = field(default_factory=dict)

    @property
    def chosen(self) -> ChosenLearner:
        return choose_learner(self.learner, self.corpus.schema, self.corpus.images is not None)

    def made(self, config: CampaignConfig) -> Learner | None:
        """The learner for the cells of one process, which remembers vectors; ``None``: a campaign makes its own."""
        if config.strategy.make().alone:
            return None
        key = json.dumps(config.learner.decisive, sort_keys=True)
        if key not in self._made:
            options = config.learner.options
            found = self.chosen.make(self.corpus.schema) or make_learner(
                config.learner.name, self.corpus.schema, options
            )
            if hasattr(found, "expect"):
                found.expect(self.corpus)
            self._made = {key: found}
        return self._made[key]


_LOADED: dict[str, Material] = {}  # of this process, by name: of one simulation


@dataclass(frozen=True)
class Parcel:
    """Material on its way to a process: packed, or only named if it stays here."""

    name: str
    packed: bytes | None = None

    @classmethod
    def of(cls, material: Material, elsewhere: bool) -> Parcel:
        """Pack the material if it goes elsewhere; what ``__main__`` defines is packed as a whole."""
        name = f"{id(material):x}"
        _LOADED.clear()
        _LOADED[name] = material
        if not elsewhere:
            return cls(name)
        import cloudpickle

        try:
            packed = cloudpickle.dumps((material.corpus, material.learner, material.strategies))
        except Exception as wrong:  # pickling may raise anything
            raise ConfigError(
                f"the learner or a strategy cannot be sent to another process: {wrong}", fix="use workers=1"
            ) from wrong
        return cls(hashlib.blake2b(packed, digest_size=12).hexdigest(), packed)

    def open(self) -> Material:
        """The material, unpacked once in a process."""
        if self.name not in _LOADED:
            import cloudpickle

            assert self.packed is not None
            corpus, learner, strategies = cloudpickle.loads(self.packed)
            for strategy in strategies:
                name_of_strategy(strategy)  # registers those of one's own
            _LOADED.clear()
            _LOADED[self.name] = Material(corpus, learner, strategies)
        return _LOADED[self.name]


def forget() -> None:
    """Forget the material of this process."""
    _LOADED.clear()


# -- splits ------------------------------------------------------------------------------------------------------------
def split(corpus: Corpus, test: float, seed: int) -> Corpus:
    """The corpus in pool, dev and test: its own test split, or a random part of the labelled items drawn by seed.

    ``test`` is their share, or their number if it is 1 or more. Items without a label for every task are left out.
    """
    whole = fully_labelled(corpus, np.arange(len(corpus)))
    corpus = corpus.take(whole)
    names = np.array([corpus.splits[code] for code in corpus.split_codes], dtype=object)
    parts = np.where(np.isin(names, [DEV, TEST]), names, POOL)
    if not (parts == TEST).any():
        pool = np.flatnonzero(parts == POOL)
        count = round(test * len(pool)) if test < 1 else int(test)
        parts[rng(seed, "simulated test items").permutation(corpus.by_id(pool))[:count]] = TEST
    counts = {name: int((parts == name).sum()) for name in SPLITS}
    if counts[POOL] < 4 or not counts[TEST]:
        raise ConfigError(
            f"{len(whole):,} of the items are labelled for all tasks: {counts[POOL]} to choose from and {counts[TEST]} "
            "to test on are too few for a simulation",
            fix="give more labelled items, fewer tasks=[…], or another test=",
        )
    codes = np.array([SPLITS.index(name) for name in parts.tolist()], dtype=np.int16)
    return replace(corpus, splits=SPLITS, split_codes=codes)


# -- work --------------------------------------------------------------------------------------------------------------
def run_cell(unit: Unit, report: ProgressCallback, *, place: Path | None) -> dict[str, Any]:
    """Run one campaign, or continue it, and return its curve. ``place`` is where unfinished campaigns are kept."""
    material = unit["material"].open()
    config = parse_config(dict(unit["campaign"]), "simulate")
    corpus = split(material.corpus, unit["test"], config.seed)
    parts = load_parts(config, corpus)
    with _folder(unit, place) as folder:
        campaign = Campaign(
            config, folder, parts=parts, watcher=_Reporter(report), learner=material.made(config), trust=True
        )
        with closing(campaign):
            campaign.run(GoldAnnotator(corpus))
            return _curve(campaign)


@contextmanager
def _folder(unit: Unit, place: Path | None) -> Iterator[Path]:
    """A folder for one campaign, removed when it is finished; with a place, an unfinished one is found again."""
    if place is None:
        with tempfile.TemporaryDirectory(prefix="bursar-") as name:
            yield Path(name)
        return
    about = {key: value for key, value in unit.items() if key != "material"}
    folder = place / hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    grave = folder.with_name(f".{folder.name}.removed")  # in one step: half a folder would look like a lost ledger
    shutil.rmtree(grave, ignore_errors=True)
    folder.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)


@dataclass
class _Reporter(Observer):
    """Passes on how far a campaign is."""

    report: ProgressCallback
    last: tuple[int, str] = (-1, "")

    def stage(self, round: int, what: str, done: float) -> None:
        if (round, what) != self.last:
            self.last = (round, what)
            self.report([round, what])


def _curve(campaign: Campaign) -> dict[str, Any]:
    """By round: the money spent, the items labelled, and the main score of each task."""
    schema, unit = campaign.corpus.schema, float(campaign.terms.costs.unit)
    rounds = [
        {
            "round": record.round,
            "spent": round(record.spent * unit, 6),
            "items": record.items,
            "scores": {name: record.test[name][task.metric] for name, task in schema.items()},
        }
        for record in campaign.ledger.decisions(RoundRecord)
    ]
    return {"rounds": rounds, "ended": campaign.state.ended}


def source_of(given: Any) -> str | None:
    """A digest of the code of a function or of a strategy's, so that results of an older one are not used."""
    function = given.choose or given.value if isinstance(given, Strategy) else given
    if not callable(function) or isinstance(function, type):
        return None
    code = getattr(function, "__code__", None)
    try:
        text = inspect.getsource(function)
    except Exception:  # the file may be gone, or hold other text by now
        text = "" if code is None else f"{code.co_code.hex()} {code.co_consts!r}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest() if text else None


# -- all campaigns ---------------------------------------------------------------------------------------------------
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
    costs = {"unit": UNIT, "currency": currency} | prices_table(pool, prices) if prices else {}
    table = _campaign(pool, costs, budget, batch_size, seed_items) | {"learner": chosen.settings}
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
        _unit(config, digest, test, {"strategy": sources[name], "learner": function})
        for (name, _), config in configs.items()
    ]
    results = _run(material, units, workers, None if folder is None else Path(folder), progress)
    cells = [
        Cell(name, seed, tuple(Round(**part) for part in result["rounds"]))
        for (name, seed), result in zip(configs, results, strict=True)
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


def _unit(config: CampaignConfig, corpus: str, test: float, own: dict[str, Any]) -> dict[str, Any]:
    """A cell as plain values, which its result is filed under."""
    table = config.model_dump(mode="json", exclude_unset=True)
    return {"version": VERSION, "corpus": corpus, "test": test, "campaign": table, "own": own}


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


def _campaign(
    corpus: Corpus, costs: dict[str, Any], budget: float | None, batch_size: int | None, seed_items: int | None
) -> dict[str, Any]:
    """What all campaigns have in common: the splits, the prices and the budget."""
    price = typical_price(corpus, costs) if costs else None
    pool = len(corpus.in_split(POOL))
    if budget is None:
        items = max(2, min(MOST_ITEMS, pool // 2))
        budget = items if price is None else round(items * price, 2)
    if batch_size is None:
        batch_size = max(LEAST_BATCH, round(budget / (price or 1.0) / BATCHES))
    return {
        "corpus": {"source": "simulation", "dev": DEV, "test": TEST},
        "costs": costs,
        "budget": plan_loop(budget, price, pool, batch_size=batch_size, seed_items=seed_items).budget,
        "audit": {"share": 0.0, "shadow": False},
    }


# -- running -----------------------------------------------------------------------------------------------------------
def _run(
    material: Material, units: list[dict[str, Any]], workers: int | None, folder: Path | None, progress: bool | None
) -> list[Any]:
    """Run all campaigns, those that are not stored, and return their curves in order."""
    if workers is not None and workers < 1:
        raise ConfigError(f"workers = {workers}", fix="use at least one")
    count = min(workers or cores(), len(units))
    engine: Engine = THIS_PROCESS if count == 1 else Processes(count, own_main=False)
    parcel = Parcel.of(material, elsewhere=count > 1)
    store = None if folder is None else ResultStore(folder / "results")
    work = partial(run_cell, place=None if folder is None else folder / "unfinished")
    try:
        with _bar(len(units), progress) as watcher:
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
