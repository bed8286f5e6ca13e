"""Units of work in processes and on a cluster, against fewer of them and against the plain pool; a pool in shards."""

from __future__ import annotations

import atexit
import importlib.util
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign.models import SavedModel, files_of
from bursar.campaign.pool_scoring import PoolScoring, answer
from bursar.compute import THIS_PROCESS, Engine, ProgressCallback, Unit, cores, make_engine, run_units
from bursar.corpus import Corpus
from bursar.learners import Learner, make_learner
from bursar.selection import make_strategy
from bursar.simulation import assistant_corpus
from experiments.bench.harness import CannotMeasureError, Case, Measured, Sides, bench_case, seconds

CASES: list[Case] = []

PRODUCTS = 220  # of matrices of 512 by 512: about two seconds of one core
SHORT = 4  # units of that
LONG = 5  # times as much work for units on a cluster
TINY = 400  # units that do nothing
POOL = 8192  # sentences that are scored at a time: eight shards
TIMES = 4  # that a pool is scored by each side, never the same sentences: what was read once is remembered


def multiply(unit: Unit, tell: ProgressCallback) -> float:
    """A unit that keeps one core busy."""
    import torch

    torch.set_num_threads(1)
    one = torch.rand(512, 512, generator=torch.Generator().manual_seed(unit["number"]))
    product = one
    for _ in range(unit["products"]):
        product = one @ product
        product = product / product.norm()
    return float(product.sum())


def nothing(unit: Unit, tell: ProgressCallback) -> int:
    """A unit that only has to be sent there and back."""
    return int(unit["number"])


def units_an_hour(side: Callable[[], Any]) -> float:
    """How many of the units of two seconds an hour holds."""
    return SHORT * 3600 / seconds(side)


def milliseconds_a_unit(side: Callable[[], Any]) -> float:
    """How long it takes to send a unit there and back."""
    return seconds(side) * 1000 / TINY


def seconds_a_unit(side: Callable[[], Any]) -> Measured:
    """How long one of four long units takes, two at a time."""
    found = seconds(side)
    return Measured(found, {"seconds_a_unit": found / 2})


_open = ExitStack()
atexit.register(_open.close)


def _ready(name: str) -> Engine:
    """An engine of two workers that have loaded all they need, and stay until the measurements end."""
    if cores() < 2:
        raise CannotMeasureError("there is only one core")
    engine = _open.enter_context(make_engine(name, 2))
    run_units(multiply, _units(8, 20), engine=engine)
    return engine


def _units(count: int, products: int) -> list[Unit]:
    return [{"number": number, "products": products} for number in range(count)]


@bench_case(
    CASES,
    "two-processes-vs-one",
    f"{SHORT} units of about two seconds of one core, by two processes against one of one thread",
    3,
    unit="units/h",
    measure=units_an_hour,
    more_is_better=True,
)
def two_processes() -> Sides:
    """The one process is one of the two: it gets a unit when the one before is back."""
    engine, units = _ready("processes"), _units(SHORT, PRODUCTS)

    def theirs() -> Any:
        return [run_units(multiply, [unit], engine=engine) for unit in units]

    return lambda: run_units(multiply, units, engine=engine), theirs


@bench_case(
    CASES,
    "ray-vs-processes",
    "4 units of about ten seconds of one core, two at a time: a Ray of this machine (ours) against processes",
    1,
    measure=seconds_a_unit,
)
def ray_overhead() -> Sides:
    """Both are up, and have loaded torch, before the clock runs."""
    if importlib.util.find_spec("ray") is None:
        raise CannotMeasureError("ray is not installed: pip install 'bursar[cluster]'")
    cluster, processes, units = _ready("ray:local"), _ready("processes"), _units(4, PRODUCTS * LONG)
    return lambda: run_units(multiply, units, engine=cluster), lambda: run_units(multiply, units, engine=processes)


@bench_case(
    CASES,
    "tiny-units-vs-pool",
    f"{TINY} units that do nothing, by two processes, against concurrent.futures' pool of two",
    5,
    unit="ms/unit",
    measure=milliseconds_a_unit,
)
def tiny_units() -> Sides:
    """What a unit costs beyond its work; a pool keeps no results, counts nothing and loses all with one process."""
    engine, units = _ready("processes"), _units(TINY, 0)
    pool = _open.enter_context(ProcessPoolExecutor(2, multiprocessing.get_context("spawn")))

    def theirs() -> Any:
        return [done.result() for done in [pool.submit(nothing, unit, print) for unit in units]]

    return lambda: run_units(nothing, units, engine=engine), theirs


# -- a pool in shards --------------------------------------------------------------------------------------------------
@dataclass
class Scoring:
    """Scores one pool after the other, as a campaign does, shards kept on disk and all."""

    learner: Learner
    saved: SavedModel
    pools: list[Corpus]
    engine: Engine
    about: dict[str, Any]
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="bursar-bench-")))

    def __call__(self) -> None:
        scoring = PoolScoring(lambda: self.saved, self.folder, self.engine)
        scoring.scores(self.learner, make_strategy("MT-AVG"), self.pools.pop(), seed=0)
        scoring.forget()


def items_a_second(side: Callable[[], Any]) -> Measured:
    """How fast a pool is scored, how much of the processor that took, and how busy the machine was altogether.

    Where others use the machine too, processor seconds tell more than the clock: two workers that need as many of them
    as one are twice as fast on two free cores.
    """
    assert isinstance(side, Scoring)
    before = processor_seconds()
    taken = seconds(side)
    about = {"processor_seconds": processor_seconds() - before, "seconds": taken, "load": os.getloadavg()[0]}
    return Measured(POOL / taken, {**side.about, **about})


def processor_seconds() -> float:
    """What this process and its workers have used so far."""
    stats = [Path(f"/proc/{child.pid}/stat") for child in multiprocessing.active_children()]
    fields = [stat.read_text().rpartition(")")[2].split() for stat in stats if stat.exists()]
    ticks = sum(int(user) + int(system) for user, system in (some[11:13] for some in fields))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@bench_case(
    CASES,
    "score-two-workers-vs-one",
    f"scoring {POOL:,} short sentences (two tasks, six layers) by two processes, against this one with one thread",
    TIMES - 1,
    unit="items/s",
    measure=items_a_second,
    more_is_better=True,
)
def score_two_workers() -> Sides:
    """The workers are up and have loaded the model before the clock runs; how long that took stands beside the rate."""
    import torch

    if cores() < 2:
        raise CannotMeasureError("there is only one core")
    torch.set_num_threads(1)
    corpus = assistant_corpus(TIMES * POOL + 64).with_tasks(["intent", "slots"])
    options = {"steps": 2}
    learner = make_learner("transformer", corpus.schema, options)
    learner.fit(corpus.take(np.arange(64)))
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder))
        saved = SavedModel("transformer", options, corpus.schema, files_of(Path(folder)))
    pools = [corpus.take(np.arange(64 + at * POOL, 64 + (at + 1) * POOL)) for at in range(TIMES)]
    start = time.perf_counter()
    engine = _open.enter_context(make_engine("processes", 2))
    few = {"corpus": corpus.take(np.arange(64)).unlabelled(), "question": {"ask": "scores"}}
    run_units(partial(answer, load=saved.load), [{"n": 0}, {"n": 1}], engine=engine, fill=lambda unit: {**unit, **few})
    about = {"start_seconds": time.perf_counter() - start}
    return Scoring(learner, saved, list(pools), engine, about), Scoring(learner, saved, list(pools), THIS_PROCESS, {})
