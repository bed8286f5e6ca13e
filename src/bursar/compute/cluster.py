"""Units of work on the machines of a Ray cluster.

A unit takes one CPU of any node, and one thread. Bursar, the work's module and the files that it reads must be there on
every node, under the same names. Finished results come back here, so a store is only needed here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from bursar.compute.engine import Crew, Ended, Unit, Work, attempt, pack
from bursar.compute.processes import thread_settings
from bursar.errors import ConfigError

SPARE = 2  # units that wait at the cluster's door, so that no CPU waits for this process
PATIENCE = 120.0  # seconds in which to connect: a busy head may be slow to serve a client
LOOK_AROUND = 5.0  # seconds after which nodes that came and went are counted again


class Cluster:
    """A Ray cluster: the one at an address, or of ``RAY_ADDRESS``, or that runs on this machine, or a new one here.

    Whoever started Ray in this process ends it: an engine that finds it started leaves it so. ``RAY_AUTH_MODE`` and
    ``RAY_AUTH_TOKEN`` have to be those of the cluster.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        for module in ("ray", "grpc") if (address or "").startswith("ray://") else ("ray",):
            if importlib.util.find_spec(module) is None:
                raise ConfigError(
                    f"the engine 'ray' needs {module}, which is not installed", fix="pip install 'bursar[cluster]'"
                )
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} workers cannot work", fix="ask for at least one")
        self.address = address
        self.at_most = workers
        self._kept = False
        self._mine = False
        self._mailbox: Any = None

    @property
    def workers(self) -> int:
        """As many as the cluster has CPUs now, if no smaller number was asked for."""
        self._connect()
        return min(_cpus(), self.at_most or _cpus())

    def __enter__(self) -> Cluster:
        self._connect()
        self._kept = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._kept = False
        self._leave()

    @contextmanager
    def crew(self, told: Callable[[int, Any], None]) -> Iterator[Crew]:
        """The cluster's CPUs; what still runs at the end is cancelled."""
        import ray

        self._connect()
        self._mailbox = self._mailbox or _mailbox()
        crew = _Crew(ray, told, self.at_most, self._mailbox)
        try:
            yield crew
        finally:
            crew.stop()
            if not self._kept:
                self._leave()

    def _connect(self) -> None:
        import ray

        if ray.is_initialized():
            return
        where = self.address or os.environ.get("RAY_ADDRESS") or "this machine"
        fix = "start one with: ray start --head; RAY_AUTH_MODE and RAY_AUTH_TOKEN must be the same here"
        _knock(where, fix)
        for name in ("RAY_USAGE_STATS_ENABLED", "RAY_worker_niceness"):  # a cluster started here reports to nobody,
            os.environ.setdefault(name, "0")  # and its workers stand back no more than other processes
        until = time.monotonic() + PATIENCE
        while True:
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
                break
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as wrong:
                ray.shutdown()  # of what may have come half-way
                if time.monotonic() > until or not _may_pass(wrong):
                    what = f"no Ray cluster can be reached at {where}: {_first_line(wrong)}"
                    raise ConfigError(what, fix=fix) from wrong
                time.sleep(1.0)
        self._mine = True

    def _leave(self) -> None:
        import ray

        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None:
            with contextlib.suppress(Exception):
                ray.kill(mailbox)
        if self._mine:
            self._mine = False
            ray.shutdown()


class _Crew:
    def __init__(self, ray: Any, told: Callable[[int, Any], None], at_most: int | None, mailbox: Any) -> None:
        self.ray = ray
        self.told = told
        self.at_most = at_most
        self.mailbox = mailbox
        self.name = uuid4().hex  # the mailbox may hold words of units that were cancelled
        self.running: dict[Any, int] = {}
        self.counted = -LOOK_AROUND
        self.limit = 0
        self.words: Any = None
        self.packed: tuple[Work, Any] | None = None  # the work of the last unit, where every node can get it
        # Whether a unit is tried again is decided by whoever asked for it, who counts, and not by Ray.
        self.work = ray.remote(_work).options(num_cpus=1, max_retries=0)

    def has_room(self) -> bool:
        now = time.monotonic()
        if now - self.counted >= LOOK_AROUND:
            self.counted = now
            self.limit = self.at_most or _cpus() + SPARE
        return len(self.running) < self.limit

    def submit(self, number: int, work: Work, unit: Unit) -> None:
        dumps = self.ray.cloudpickle.dumps
        if self.packed is None or self.packed[0] is not work:
            self.packed = work, self.ray.put(pack(work, dumps))
        self.running[self.work.remote(self.packed[1], pack(unit, dumps), (self.name, number), self.mailbox)] = number

    def next(self) -> Ended:
        while True:
            ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=0.5)
            if ready:
                return self._ended(ready[0], self.running.pop(ready[0]))
            self._pass_on(patience=0)

    def _ended(self, unit: Any, number: int) -> Ended:
        exceptions = self.ray.exceptions
        try:
            how, what, seconds, talked = self.ray.get(unit)
        except exceptions.RayTaskError as wrong:
            return Ended(number, "failed", wrong)
        except exceptions.RayError as wrong:
            return Ended(number, "lost", f"{type(wrong).__name__}: {_first_line(wrong)}")
        if talked:  # its last words are in the mailbox: once for those on their way, once for the rest
            self._pass_on(patience=10)
            self._pass_on(patience=10)
        return Ended(number, how, what, seconds)

    def _pass_on(self, patience: float) -> None:
        """Hand on what is in the mailbox. Words may be lost with it; results are not."""
        self.words = self.words or self.mailbox.take.remote()
        try:
            words = self.ray.get(self.words, timeout=patience)
        except self.ray.exceptions.GetTimeoutError:
            return
        except self.ray.exceptions.RayError:
            words = []
        self.words = None
        for (crew, number), what in words:
            if crew == self.name:
                self.told(number, what)

    def stop(self) -> None:
        for unit in reversed(self.running):  # those that wait first, or they would begin where others are stopped
            with contextlib.suppress(Exception):
                self.ray.cancel(unit, force=True)


class _Mailbox:
    """Where units leave their words until they are taken."""

    def __init__(self) -> None:
        self.words: list[tuple[tuple[str, int], Any]] = []

    def put(self, sender: tuple[str, int], what: Any) -> None:
        self.words.append((sender, what))

    def take(self) -> list[tuple[tuple[str, int], Any]]:
        words, self.words = self.words, []
        return words


def _knock(where: str, fix: str) -> None:
    """Whether anybody is there at all, if it is a host and a port; Ray itself would wait for minutes."""
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as wrong:
        raise ConfigError(f"no Ray cluster can be reached at {where}: {wrong}", fix=fix) from None


def _may_pass(wrong: Exception) -> bool:
    """Whether a cluster that is busy, or just coming up, may say this."""
    slow = ("client server failed", "Initialization failure from server")  # what a client hears of a head that is slow
    return isinstance(wrong, ConnectionError | TimeoutError) or any(words in str(wrong) for words in slow)


def _mailbox() -> Any:
    """A mailbox where this process is, so that it is as safe as it: a node elsewhere may go at any time."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    near = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=near).remote()


def _work(work: bytes, unit: bytes, sender: tuple[str, int], mailbox: Any) -> tuple[str, Any, float, bool]:
    """What a worker does on its node: its unit, with one thread; and whether it left any words."""
    import ray

    os.environ.update(thread_settings(1))
    last: list[Any] = []

    def tell(what: Any) -> None:
        last[:] = [mailbox.put.remote(sender, what)]

    how, what, seconds = attempt(lambda: (pickle.loads(work), pickle.loads(unit)), tell)
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(last, timeout=10)  # words arrive in order, so all have when the last has
    return how, what, seconds, bool(last)


def _cpus() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _first_line(wrong: BaseException) -> str:
    return str(wrong).strip().partition("\n")[0]
