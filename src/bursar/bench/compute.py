"""Units of work in processes and on a cluster, against fewer of them and against the plain pool."""

from __future__ import annotations

import atexit
import importlib.util
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import Any

from bursar.bench.harness import CannotMeasureError, Case, Measured, Sides, bench_case, seconds
from bursar.compute import Engine, Tell, Unit, cores, make_engine, run_units

CASES: list[Case] = []

PRODUCTS = 220  # of matrices of 512 by 512: about two seconds of one core
SHORT = 4  # units of that
LONG = 5  # times as much work for units on a cluster
TINY = 400  # units that do nothing


def multiply(unit: Unit, tell: Tell) -> float:
    """A unit that keeps one core busy."""
    import torch

    torch.set_num_threads(1)
    one = torch.rand(512, 512, generator=torch.Generator().manual_seed(unit["number"]))
    product = one
    for _ in range(unit["products"]):
        product = one @ product
        product = product / product.norm()
    return float(product.sum())


def nothing(unit: Unit, tell: Tell) -> int:
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
