"""Run units of work on cores and machines; finished units are never run again."""

from bursar.compute.engine import HERE, Engine, Here, ProgressCallback, Unit, Work
from bursar.compute.engines import make_engine
from bursar.compute.processes import Processes, cores
from bursar.compute.progress import Progress, UnitObserver, duration
from bursar.compute.store import ArrayStore, Store, address
from bursar.compute.units import run_all, run_units, split_evenly
from bursar.errors import ComputeError

__all__ = [
    "HERE",
    "ArrayStore",
    "ComputeError",
    "Engine",
    "Here",
    "Processes",
    "Progress",
    "ProgressCallback",
    "Store",
    "Unit",
    "UnitObserver",
    "Work",
    "address",
    "cores",
    "duration",
    "make_engine",
    "run_all",
    "run_units",
    "split_evenly",
]
