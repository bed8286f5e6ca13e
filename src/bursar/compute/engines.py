"""Engines by name."""

from __future__ import annotations

from bursar.compute.engine import THIS_PROCESS, Engine
from bursar.compute.processes import Processes
from bursar.errors import ConfigError

KNOWN = "here, processes, processes:4, ray, ray://host:port, ray:host:port"


def make_engine(text: str, workers: int | None = None) -> Engine:
    """Make an engine: ``here``, ``processes``, ``processes:4``, ``ray``, ``ray://host:port``, ``ray:host:port``.

    ``workers`` is the number of units that run at a time, if the name does not give it.

    >>> make_engine("processes:4").workers
    4
    >>> make_engine("threads")
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no engine 'threads'. Fix: choose one of: here, processes, processes:4, ray, ...
    """
    name, _, rest = text.partition(":")
    if text == "here" and workers in (None, 1):
        return THIS_PROCESS
    if text == "here":
        raise ConfigError(f"'here' runs one unit at a time, not {workers}", fix=f"choose processes:{workers}")
    if name == "processes" and (not rest or rest.isdigit()):
        if rest and workers not in (None, int(rest)):
            raise ConfigError(f"{text!r} means {rest} workers, but {workers} are given", fix="give one number")
        return Processes(int(rest) if rest else workers)
    if name == "ray":
        from bursar.compute.cluster import Cluster

        return Cluster(text if rest.startswith("//") else rest or None, workers)
    raise ConfigError(f"there is no engine {text!r}", fix=f"choose one of: {KNOWN}")
