"""Run units of work on a Ray cluster.

A unit uses one CPU of any node, with one thread. Bursar, the module of the work and the files that it reads must be on
every node under the same names. Results are returned to this process, so a store is only needed here.
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
from typing import Any, Self
from uuid import uuid4

from bursar.compute.engine import Ended, KeepsWorkers, Unit, Work, WorkerPool, attempt, pack
from bursar.compute.processes import thread_settings
from bursar.errors import ConfigError

SPARE = 2  # units queued at the cluster, so that no CPU waits for this process
CONNECT_TIMEOUT = 120.0  # seconds; a busy head node may be slow to serve a client
RECOUNT_INTERVAL = 5.0  # seconds between counts of the cluster's CPUs, as nodes may come and go


class Cluster(KeepsWorkers):
    """A Ray cluster: at an address, else at ``RAY_ADDRESS``, else the one on this machine, else a new one here.

    One that this process started before is not shut down. ``RAY_AUTH_MODE`` and ``RAY_AUTH_TOKEN`` must be its own.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        for module in ("ray", "grpc") if (address or "").startswith("ray://") else ("ray",):
            if importlib.util.find_spec(module) is None:
                fix = "pip install 'bursar[cluster]'"
                raise ConfigError(f"the engine 'ray' needs {module}, which is not installed", fix=fix)
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} workers are too few", fix="use at least one")
        self.address, self.at_most = address, workers
        self._mine = False
        self._mailbox: Any = None

    @property
    def workers(self) -> int:
        """The CPUs of the cluster now, or the configured number if that is smaller."""
        self._connect()
        return min(_cpus(), self.at_most or _cpus())

    def __enter__(self) -> Self:
        self._connect()
        return super().__enter__()

    @contextmanager
    def worker_pool(self, on_report: Callable[[int, Any], None]) -> Iterator[WorkerPool]:
        """Use the cluster's CPUs; units still running at the end are cancelled."""
        import ray

        self._connect()
        self._mailbox = self._mailbox or _mailbox()
        pool = _Pool(ray, on_report, self.at_most, self._mailbox)
        try:
            yield pool
        finally:
            pool.stop()
            if not self.kept:
                self.dismiss()

    def _connect(self) -> None:
        import ray

        if ray.is_initialized():
            return
        where = self.address or os.environ.get("RAY_ADDRESS") or "this machine"
        fix = "start one with: ray start --head; RAY_AUTH_MODE and RAY_AUTH_TOKEN must be the same here"
        _check_reachable(where, fix)
        for name in ("RAY_USAGE_STATS_ENABLED", "RAY_worker_niceness"):  # for a cluster started here: no usage
            os.environ.setdefault(name, "0")  # reports, and workers of normal priority
        until = time.monotonic() + CONNECT_TIMEOUT
        while not ray.is_initialized():
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as wrong:
                ray.shutdown()  # clean up a partial start
                if time.monotonic() > until or not _is_transient(wrong):
                    what = f"no Ray cluster can be reached at {where}: {_first_line(wrong)}"
                    raise ConfigError(what, fix=fix) from wrong
                time.sleep(1.0)
        self._mine = True

    def dismiss(self) -> None:
        import ray

        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None:
            with contextlib.suppress(Exception):
                ray.kill(mailbox)
        if self._mine:
            self._mine = False
            ray.shutdown()


class _Pool:
    def __init__(self, ray: Any, on_report: Callable[[int, Any], None], at_most: int | None, mailbox: Any) -> None:
        self.ray = ray
        self.on_report = on_report
        self.at_most = at_most
        self.mailbox = mailbox
        self.name = uuid4().hex  # the mailbox may hold reports of cancelled units
        self.running: dict[Any, int] = {}
        self.counted = -RECOUNT_INTERVAL
        self.limit = 0
        self.reports: Any = None
        self.packed: tuple[Work, Any] | None = None  # the work of the last unit, in Ray's object store
        # No retries by Ray: ``run_units`` counts and decides them.
        self.work = ray.remote(_work).options(num_cpus=1, max_retries=0)

    def can_submit(self) -> bool:
        now = time.monotonic()
        if now - self.counted >= RECOUNT_INTERVAL:
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
                break
            self._forward_reports(timeout=0)
        number, exceptions = self.running.pop(ready[0]), self.ray.exceptions
        try:
            how, what, seconds, reported = self.ray.get(ready[0])
        except exceptions.RayTaskError as wrong:
            return Ended(number, "failed", wrong)
        except exceptions.RayError as wrong:
            return Ended(number, "lost", f"{type(wrong).__name__}: {_first_line(wrong)}")
        if reported:  # its last reports are in the mailbox: one request may be on its way, the next gets the rest
            self._forward_reports(timeout=10)
            self._forward_reports(timeout=10)
        return Ended(number, how, what, seconds)

    def _forward_reports(self, timeout: float) -> None:
        """Forward the reports in the mailbox. Reports are lost if it dies; results are not."""
        self.reports = self.reports or self.mailbox.take.remote()
        try:
            reports = self.ray.get(self.reports, timeout=timeout)
        except self.ray.exceptions.GetTimeoutError:
            return
        except self.ray.exceptions.RayError:
            reports = []
        self.reports = None
        for (pool, number), what in reports:
            if pool == self.name:
                self.on_report(number, what)

    def stop(self) -> None:
        for unit in reversed(self.running):  # waiting units first, or they would start as others are cancelled
            with contextlib.suppress(Exception):
                self.ray.cancel(unit, force=True)


class _Mailbox:
    def __init__(self) -> None:
        self.reports: list[tuple[tuple[str, int], Any]] = []

    def put(self, sender: tuple[str, int], what: Any) -> None:
        self.reports.append((sender, what))

    def take(self) -> list[tuple[tuple[str, int], Any]]:
        reports, self.reports = self.reports, []
        return reports


def _check_reachable(where: str, fix: str) -> None:
    """Check that a host and port accept connections; Ray itself would wait for minutes."""
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as wrong:
        raise ConfigError(f"no Ray cluster can be reached at {where}: {wrong}", fix=fix) from None


def _is_transient(wrong: Exception) -> bool:
    """Whether the error may come from a cluster that is busy or starting."""
    slow = ("client server failed", "Initialization failure from server")  # errors of a slow head node
    return isinstance(wrong, ConnectionError | TimeoutError) or any(words in str(wrong) for words in slow)


def _mailbox() -> Any:
    """A mailbox on the node of this process, since another node may leave at any time."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    near = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=near).remote()


def _work(work: bytes, unit: bytes, sender: tuple[str, int], mailbox: Any) -> tuple[str, Any, float, bool]:
    """Run a unit on its node with one thread; also return whether it sent reports."""
    import ray

    os.environ.update(thread_settings(1))
    last: list[Any] = []

    def report(what: Any) -> None:
        last[:] = [mailbox.put.remote(sender, what)]

    how, what, seconds = attempt(lambda: (pickle.loads(work), pickle.loads(unit)), report)
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(last, timeout=10)  # reports arrive in order, so the last one implies all
    return how, what, seconds, bool(last)


def _cpus() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _first_line(wrong: BaseException) -> str:
    return str(wrong).strip().partition("\n")[0]
