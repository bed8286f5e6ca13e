"""Works that the tests run, and a study in a process of its own that can be killed.

Each leaves a file for every time that it ran: run.X.PID for the unit X.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from bursar.errors import ConfigError


def ran(folder, unit):
    (Path(folder) / f"run.{unit['x']}.{os.getpid()}.{time.time_ns()}").touch()


def runs(folder):
    """How often each unit was begun."""
    found = {}
    for path in Path(folder).glob("run.*"):
        x = int(path.name.split(".")[1])
        found[x] = found.get(x, 0) + 1
    return found


def square(folder, unit, tell):
    ran(folder, unit)
    tell(("squaring", unit["x"]))
    return {"square": unit["x"] ** 2, "third": unit["x"] / 3}


def gated_square(folder, unit, tell):
    """The first four at once; the others stay in their middle until there is a file that lets them go on."""
    result = square(folder, unit, tell)
    while unit["x"] >= 4 and not (Path(folder) / "go").exists():
        time.sleep(0.02)
    return result


def where(folder, unit, tell):
    time.sleep(unit.get("seconds", 0.02))
    return os.getpid()


class Unpacked:
    """Something that a work needs; it leaves a file for every time that it is unpacked."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return unpacked, (self.folder,)


def unpacked(folder):
    (Path(folder) / f"unpacked.{os.getpid()}.{time.time_ns()}").touch()
    return Unpacked(folder)


def with_large(large, unit, tell):
    return unit["x"] ** 2


def total(unit, tell):
    """The sum of an array that the unit was filled with."""
    return {"sum": unit["array"].sum(keepdims=True), "array": unit["array"]}


def node(folder, unit, tell):
    """The square, and which node of a cluster it comes from."""
    import ray

    ran(folder, unit)
    tell(["node", unit["x"]])
    time.sleep(unit["seconds"])
    return {"square": unit["x"] ** 2, "node": ray.util.get_node_ip_address()}


def settings(unit, tell):
    """The threads that the environment allows, and that torch takes where it is asked."""
    found = [int(os.environ[f"{name}_NUM_THREADS"]) for name in ("OMP", "MKL", "OPENBLAS")]
    if unit["torch"]:
        import torch

        found.append(torch.get_num_threads())
    return found


def troubled(folder, unit, tell):
    """A unit that meets its trouble the first ``times`` that it runs."""
    ran(folder, unit)
    if runs(folder)[unit["x"]] <= unit.get("times", 0):
        match unit["trouble"]:
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(7)
            case "disk":
                raise OSError("the disk is away")
            case "memory":
                raise MemoryError("no more")
            case "wrong":
                raise ConfigError(f"unit {unit['x']} is wrong", fix="correct it")
            case "odd":
                raise OddError(folder, unit)
    return unit["x"] ** 2


class OddError(Exception):
    """One that cannot be pickled and made again."""

    def __init__(self, one, two):
        super().__init__("odd")


def unsendable(unit, tell):
    return lambda: None


def study(folder, engine):
    """A study of eight units whose results are kept; its answer is a file."""
    from bursar.compute import ResultStore, make_engine, run_units

    folder = Path(folder)
    units = [{"x": x} for x in range(8)]
    work = partial(gated_square, folder)
    results = run_units(work, units, engine=make_engine(engine), store=ResultStore(folder / "store"))
    (folder / "answer").write_text(repr(results))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run behind a shell, it is ignored
    study(*sys.argv[1:])
