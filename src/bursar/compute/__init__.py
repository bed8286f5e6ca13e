"""Run units of work on cores and machines; finished units are never run again."""

from bursar.compute.engine import THIS_PROCESS, Engine, ProgressCallback, Unit
from bursar.compute.processes import Processes, cores
from bursar.compute.store import ArrayStore, ResultStore, address
from bursar.compute.units import UnitObserver, duration, make_engine, run_all, run_units, split_evenly
from bursar.errors import ComputeError

__all__ = [
    "THIS_PROCESS",
    "ArrayStore",
    "ComputeError",
    "Engine",
    "Processes",
    "ProgressCallback",
    "ResultStore",
    "Unit",
    "UnitObserver",
    "address",
    "cores",
    "duration",
    "make_engine",
    "run_all",
    "run_units",
    "split_evenly",
]
