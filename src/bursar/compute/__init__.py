"""Units of work, spread over cores and machines; finished ones are never run again."""

from bursar.compute.engine import HERE, Engine, Here, ProgressCallback, Unit, Work
from bursar.compute.engines import make_engine
from bursar.compute.processes import Processes, cores
from bursar.compute.progress import Progress, Watcher, duration
from bursar.compute.store import ArrayStore, Store, address
from bursar.compute.units import in_shards, run_all, run_units
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
    "Watcher",
    "Work",
    "address",
    "cores",
    "duration",
    "in_shards",
    "make_engine",
    "run_all",
    "run_units",
]
