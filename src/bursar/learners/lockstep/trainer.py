"""Training in lockstep: every lane takes a step of its own model at the same time.

A model that stops hands its lane to the next job, and lanes that find none are closed, so nobody waits for the slowest.
What becomes of a model depends on its job alone, to the last bit: see ``sums`` for how. Work is done on one thread of
torch, where results do not depend on the number of cores; many cores are used by many processes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from bursar.errors import ConfigError, LearnerError
from bursar.learners.lockstep.jobs import Job, Settings, Trained, walk
from bursar.learners.lockstep.lanes import Lanes
from bursar.learners.lockstep.network import Batch, Network, Parameters
from bursar.learners.lockstep.scores import Score
from bursar.ragged import BoolArray, IntArray

CHUNK = 512  # items that a model is asked about at a time


@dataclass
class _Run:
    """A model in work."""

    number: int  # of the job
    job: Job
    rows: IntArray  # (steps, batch), those of this epoch
    real: BoolArray  # (steps, batch)
    epoch: int = 1
    at: int = 0  # step in this epoch
    step: int = 0  # in all
    best: float = -np.inf
    best_epoch: int = 0
    history: list[float] = field(default_factory=list)


def train(
    network: Network,
    jobs: Sequence[Job],
    settings: Settings | None = None,
    *,
    select: IntArray | None = None,
    score: Score | None = None,
) -> list[Trained]:
    """A model for every job, each as it was after the first epoch that scored best on the ``select`` items.

    Without ``select`` and ``score`` nothing is stopped early: all epochs are run, and a model is as the last left it.
    """
    settings = settings or Settings()
    network.check(settings.batch)
    if (select is None) != (score is None):
        raise ConfigError("items to choose the best epoch on need a score, and a score needs items", fix="give both")
    judge = None if select is None or score is None else _Judge(network, np.asarray(select, dtype=np.int64), score)
    with one_thread(), torch.no_grad():
        return _Training(network, jobs, settings, judge).run()


@dataclass(frozen=True)
class _Judge:
    """Scores models on the items that are there to choose the best epoch on."""

    network: Network
    select: IntArray
    score: Score

    def scores(self, parameters: Parameters, places: IntArray) -> list[float]:
        """A number a lane."""
        rows = np.tile(_filled(self.select, self.network.step), (len(places), 1))
        logits = self.network.logits(parameters, rows, places)[:, : len(self.select)]
        found: list[float] = self.score(logits, self.select).tolist()
        return found

    def of(self, model: Trained) -> float:
        """Of one model."""
        return float(self.score(logits(self.network, model, self.select).unsqueeze(0), self.select)[0])


class _Training:
    def __init__(self, network: Network, jobs: Sequence[Job], settings: Settings, judge: _Judge | None) -> None:
        self.network, self.jobs, self.settings, self.judge = network, jobs, settings, judge
        self.done: dict[int, Trained] = {}
        self.begun = {seed: network.begin(seed) for seed in {job.seed for job in jobs}}
        self.touched = [network.touched(job.rows) for job in jobs]
        self.runs: list[_Run] = []  # by lane

    def run(self) -> list[Trained]:
        if not self.jobs:
            return []
        sizes = [len(job.rows) for job in self.jobs]
        largest_first = np.argsort(sizes, kind="stable")[::-1].tolist()
        self.waiting = deque(number for number in largest_first if sizes[number])
        for number in range(len(self.jobs)):
            if not sizes[number]:
                self.done[number] = self._as_begun(number)
        lanes = min(self.settings.lanes, len(self.waiting))
        self.lanes = Lanes(self.network, lanes, self.begun[self.jobs[0].seed], max(map(len, self.touched)))
        self.runs = [self._next(lane) for lane in range(lanes)]
        self.lanes.use(len(self.runs))
        while self.runs:
            self._step()
        return [self.done[number] for number in range(len(self.jobs))]

    def _next(self, lane: int) -> _Run:
        """The next job, in a lane."""
        number = self.waiting.popleft()
        job = self.jobs[number]
        self.lanes.fill(lane, self.begun[job.seed], self.touched[number])
        return _Run(number, job, *walk(job, self.settings, 1, self.network.step))

    def _step(self) -> None:
        """One step of every model, and what follows for those at the end of an epoch."""
        runs = self.runs
        batch = Batch(
            np.stack([run.rows[run.at] for run in runs]),
            np.stack([run.real[run.at] for run in runs]),
            self.lanes.places[: len(runs)],
            [(run.job.seed, run.step) for run in runs],
        )
        losses, gradients = self.network.gradients(self.lanes.parameters, batch)
        self._check("loss", range(len(runs)), losses.tolist())
        self.lanes.step(gradients, self.settings.rate)
        ended = []
        for lane, run in enumerate(runs):
            run.at, run.step = run.at + 1, run.step + 1
            if run.at >= len(run.rows):
                ended.append(lane)
        if ended:
            self._judge(ended)

    def _check(self, what: str, lanes: Sequence[int], found: Sequence[float]) -> None:
        for lane, value in zip(lanes, found, strict=True):
            if not math.isfinite(value):
                run = self.runs[lane]
                raise LearnerError(
                    f"{run.job}: the {what} is {value} in epoch {run.epoch}", fix="lower the rate, or look at its items"
                )

    def _judge(self, ended: Sequence[int]) -> None:
        """Score models at the end of an epoch, keep the best values, and go on to the next epoch or the next job."""
        if self.judge is not None:
            found = self.judge.scores(*self.lanes.some(ended))
            self._check("score", ended, found)
            for lane, reached in zip(ended, found, strict=True):
                run = self.runs[lane]
                run.history.append(reached)
                if reached > run.best:
                    run.best, run.best_epoch = reached, run.epoch
                    self.lanes.keep(lane)
        free = []
        for lane in ended:
            run = self.runs[lane]
            last = run.epoch >= self.settings.epochs
            if last and self.judge is None:
                run.best, run.best_epoch = np.nan, run.epoch
                self.lanes.keep(lane)
            if last or (self.judge is not None and run.epoch - run.best_epoch >= self.settings.patience):
                self._finish(lane)
                free.append(lane)
            else:
                run.epoch, run.at = run.epoch + 1, 0
                run.rows, run.real = walk(run.job, self.settings, run.epoch, self.network.step)
        if free:
            self._refill(free)

    def _finish(self, lane: int) -> None:
        run = self.runs[lane]
        self.done[run.number] = Trained(
            run.job,
            self.lanes.best(lane),
            self.touched[run.number],
            run.epoch,
            run.best_epoch,
            run.best,
            np.array(run.history),
        )

    def _as_begun(self, number: int) -> Trained:
        """A model that has nothing to learn from."""
        job = self.jobs[number]
        parameters = dict(self.begun[job.seed])
        if self.network.table:
            parameters[self.network.table] = parameters[self.network.table][:0]
        untrained = Trained(job, parameters, self.touched[number], 0, 0, np.nan, np.zeros(0))
        return untrained if self.judge is None else replace(untrained, score=self.judge.of(untrained))

    def _refill(self, free: Sequence[int]) -> None:
        """New jobs for free lanes; lanes that find none are closed, with the last ones moved into their places."""
        for lane in reversed(free):
            if self.waiting:
                self.runs[lane] = self._next(lane)
                continue
            last = len(self.runs) - 1
            if lane != last:
                self.lanes.move(last, lane)
                self.runs[lane] = self.runs[last]
            self.runs.pop()
        self.lanes.use(len(self.runs))


def whole(network: Network, model: Trained) -> dict[str, Tensor]:
    """All parameters of a model; what it did not train is as it began."""
    found = network.begin(model.job.seed)
    for name, value in model.parameters.items():
        if name == network.table:
            found[name][torch.from_numpy(model.touched)] = value
        else:
            found[name] = value
    return found


def logits(network: Network, model: Trained, rows: IntArray, *, passes: int = 0, seed: int = 0) -> Tensor:
    """A model's scores of labels for some items: (items, labels) or (items, words, labels).

    With ``passes``, as many with dropout, (passes, …): in a pass the same features are dropped for all items.
    """
    parameters = {name: value.unsqueeze(0) for name, value in whole(network, model).items()}
    table = parameters.get(network.table or "")
    places = np.arange(0 if table is None else table.shape[1])[None]
    masks: list[Tensor | None] = [network.kept_in_pass(seed, number) for number in range(passes)] or [None]
    with one_thread(), torch.no_grad():
        chunks = []
        for some in np.split(np.asarray(rows, dtype=np.int64), range(CHUNK, len(rows), CHUNK)):
            asked = _filled(some, network.step)[None]
            said = [network.logits(parameters, asked, places, mask) for mask in masks]
            chunks.append(torch.cat(said)[:, : len(some)])
    if chunks[0].ndim == 4:  # chunks of texts end at their longest
        longest = max(part.shape[2] for part in chunks)
        chunks = [torch.nn.functional.pad(part, (0, 0, 0, longest - part.shape[2])) for part in chunks]
    found = torch.cat(chunks, dim=1)
    return found if passes else found[0]


def _filled(rows: IntArray, multiple: int) -> IntArray:
    """Items, the first of them again until there are as many as a network wants."""
    return np.append(rows, np.repeat(rows[:1], -len(rows) % multiple))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread for a while."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
