"""Training in lockstep: every lane takes a step of its own model at the same time.

When a model stops, its lane goes to the next job, or is closed if there is none, so no lane waits for the slowest. A
model depends on its job alone, to the last bit: see ``sums``. Torch uses one thread, so that results do not depend on
the number of cores; use several processes for several cores.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from bursar.errors import ConfigError, LearnerError
from bursar.learners.lockstep.lanes import Lanes
from bursar.learners.lockstep.network import LaneBatch, Network, Score, Walk
from bursar.learners.lockstep.sums import rounded
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.random_streams import rng


@dataclass(frozen=True)
class Settings:
    """How models are trained; the defaults are paper 4's."""

    batch: int = 20
    epochs: int = 100  # at most
    patience: int = 20  # epochs without improvement on the model-selection items
    rate: float = 1e-3
    lanes: int | None = None  # models trained at the same time, which does not affect results; by default the network's

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "patience", "lanes"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="use 1 or more")
        if not self.rate > 0:
            raise ConfigError(f"rate = {self.rate}", fix="use a number above 0, such as 0.001")


@dataclass(frozen=True)
class FitJob:
    """One model to train: the items of the network's table, and the seed."""

    rows: IntArray  # (items,): item numbers
    seed: int = 0
    name: str = ""  # shown in errors

    def __str__(self) -> str:
        return self.name or f"a model of {len(self.rows)} items with seed {self.seed}"


@dataclass(frozen=True)
class Trained:
    """A model from its best epoch, or from the last one without model-selection items."""

    job: FitJob
    parameters: dict[str, Tensor]  # of a table, such as word vectors, only the trained rows
    touched: IntArray  # the trained rows of the table
    epochs: int  # number of epochs run
    best_epoch: int  # counted from 1; 0 for a job without items, which is not trained
    score: float  # on the model-selection items after that epoch; nan without them
    history: FloatArray = field(repr=False)  # (epochs,): the score after each; empty without such items


def walk(job: FitJob, settings: Settings, epoch: int, multiple: int = 1) -> tuple[IntArray, BoolArray]:
    """The items of every step of an epoch, and which of them are not padding: (steps, batch rounded up).

    The order depends on the seed, the epoch and the set of items, not on how a job lists them.
    """
    items = len(job.rows)
    steps = -(-items // settings.batch)
    order = np.sort(job.rows)[_permutation(job.seed, epoch, items)]
    walked = np.full(steps * settings.batch, order[0] if items else 0)
    walked[:items] = order
    more = rounded(settings.batch, multiple) - settings.batch
    rows = walked.reshape(steps, settings.batch)
    real = np.arange(rows.size).reshape(rows.shape) < items
    return np.pad(rows, ((0, 0), (0, more)), mode="edge"), np.pad(real, ((0, 0), (0, more)))


@lru_cache(maxsize=8192)
def _permutation(seed: int, epoch: int, items: int) -> IntArray:
    return rng(seed, "lockstep batches", epoch).permutation(items)


CHUNK = 512  # items per prediction


@dataclass
class _Run:
    """A model in training."""

    number: int  # of the job
    job: FitJob
    touched: IntArray  # trained rows of the table
    rows: IntArray  # (steps, batch) of this epoch
    real: BoolArray  # (steps, batch)
    epoch: int = 1
    at: int = 0  # step in this epoch
    step: int = 0  # over all epochs
    best: float = -np.inf
    best_epoch: int = 0
    history: list[float] = field(default_factory=list)


def train(
    network: Network,
    jobs: Sequence[FitJob],
    settings: Settings | None = None,
    *,
    select: IntArray | None = None,
    score: Score | None = None,
) -> list[Trained]:
    """Train a model for every job, and return each from its best epoch on the ``select`` items, the first of equals.

    Without ``select`` and ``score`` all epochs are run, and models are from the last one.
    """
    training = LockstepTraining(network, settings, select=select, score=score)
    training.make_room([job.rows for job in jobs])
    largest_first = np.argsort([len(job.rows) for job in jobs], kind="stable")[::-1].tolist()
    numbers = {training.add(jobs[at]): at for at in largest_first}
    found: dict[int, Trained] = {}
    while training.jobs:
        found |= {numbers[number]: model for number, model in training.step().items()}
    return [found[at] for at in range(len(jobs))]


class LockstepTraining:
    """Models in training. Jobs can be added, and dropped, at any time."""

    def __init__(
        self,
        network: Network,
        settings: Settings | None = None,
        *,
        select: IntArray | None = None,
        score: Score | None = None,
    ) -> None:
        self.network, self.settings = network, settings or Settings()
        network.check(self.settings.batch)
        self._multiple = 1 if network.compiled else network.step
        self.most = self.settings.lanes or network.lanes  # models trained at the same time
        if (select is None) != (score is None):
            raise ConfigError("model selection needs both select and score", fix="give both or neither")
        self.select, self.score = np.asarray([] if select is None else select, dtype=np.int64), score
        self.jobs: dict[int, FitJob] = {}  # all unfinished jobs
        self.runs: list[_Run] = []  # those in training, by lane
        self._waiting: deque[int] = deque()
        self._added = 0
        self._done: dict[int, Trained] = {}
        self._lanes: Lanes | None = None

    def add(self, job: FitJob) -> int:
        """Queue a job; returns the number that its model will be returned under."""
        number = self._added
        self._added += 1
        self.jobs[number] = job
        self._waiting.append(number)
        return number

    def drop(self, number: int) -> None:
        """Drop a job, queued or in training. Finished jobs are not affected."""
        if self.jobs.pop(number, None) is None:
            return
        if number in self._waiting:
            self._waiting.remove(number)
            return
        self._refill([next(lane for lane, run in enumerate(self.runs) if run.number == number)])

    def step(self) -> dict[int, Trained]:
        """Train every model for one step (compiled networks: one epoch); returns finished models by job number."""
        with one_torch_thread(), torch.no_grad():
            self._take_up()
            if self.runs and self.network.compiled:
                self._epoch()
            elif self.runs:
                self._step()
        done, self._done = self._done, {}
        for number in done:
            del self.jobs[number]
        return done

    # -- lanes -------------------------------------------------------------------------------------------------------
    def make_room(self, sets: Sequence[IntArray]) -> None:
        """Allocate lanes for these sets of items only, to save memory."""
        touched = max((len(self.network.touched(rows)) for rows in sets), default=0)
        self._lanes = Lanes(self.network, min(self.most, len(sets)), touched)

    @property
    def lanes(self) -> Lanes:
        if self._lanes is None:  # the jobs to come are not known
            self._lanes = Lanes(self.network, self.most)
        return self._lanes

    def _take_up(self) -> None:
        before = len(self.runs)
        while self._waiting and len(self.runs) < self.most:
            if run := self._next(len(self.runs)):
                self.runs.append(run)
        if len(self.runs) > before:
            self.lanes.use(len(self.runs))

    def _next(self, lane: int) -> _Run | None:
        """Start the next queued job that has items in a lane; ``None`` if there is none."""
        while self._waiting:
            number = self._waiting.popleft()
            job = self.jobs[number]
            if len(job.rows):
                touched = self.network.touched(job.rows)
                self.lanes.fill(lane, self.network.first(job.seed), touched)
                return _Run(number, job, touched, *walk(job, self.settings, 1, self._multiple))
            self._done[number] = self._as_begun(job)
        return None

    # -- training ----------------------------------------------------------------------------------------------------
    def _step(self) -> None:
        """One step of every model; models at the end of an epoch are scored."""
        runs = self.runs
        batch = LaneBatch(
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

    def _epoch(self) -> None:
        for lane, run in enumerate(self.runs):
            steps = len(run.rows)
            draws = [(run.job.seed, run.step + at) for at in range(steps)]
            losses = self.network.epoch(self.lanes.one(lane), Walk(run.rows, run.real, draws), self.settings.rate)
            self._check("loss", [lane], [float(losses.sum())])
            run.at, run.step = steps, run.step + steps
        self._judge(range(len(self.runs)))

    def _check(self, what: str, lanes: Sequence[int], found: Sequence[float]) -> None:
        for lane, value in zip(lanes, found, strict=True):
            if not math.isfinite(value):
                run = self.runs[lane]
                wrong = f"{run.job}: the {what} is {value} in epoch {run.epoch}"
                raise LearnerError(wrong, fix="lower the rate, or check its items")

    def _judge(self, ended: Sequence[int]) -> None:
        """Score models at the end of an epoch, keep the best, and start the next epoch or job."""
        if self.score is not None:
            scores = [float(reached) for reached in self.score(self._predicted(ended), self.select)]
            self._check("score", ended, scores)
            for lane, reached in zip(ended, scores, strict=True):
                run = self.runs[lane]
                run.history.append(reached)
                if reached > run.best:
                    run.best, run.best_epoch = reached, run.epoch
                    self.lanes.keep(lane)
        free = []
        for lane in ended:
            run = self.runs[lane]
            last = run.epoch >= self.settings.epochs
            if last and self.score is None:
                run.best, run.best_epoch = np.nan, run.epoch
                self.lanes.keep(lane)
            if last or (self.score is not None and run.epoch - run.best_epoch >= self.settings.patience):
                parameters, history = self.lanes.best(lane), np.array(run.history)
                found = Trained(run.job, parameters, run.touched, run.epoch, run.best_epoch, run.best, history)
                self._done[run.number] = found
                free.append(lane)
            else:
                run.epoch, run.at = run.epoch + 1, 0
                run.rows, run.real = walk(run.job, self.settings, run.epoch, self._multiple)
        if free:
            self._refill(free)

    def _predicted(self, some: Sequence[int]) -> Tensor:
        """The logits of some lanes for the model-selection items."""
        if self.network.compiled:
            return torch.stack([self.network.compiled_logits(self.lanes.one(lane), self.select) for lane in some])
        rows = np.tile(_filled(self.select, self.network.step), (len(some), 1))
        parameters, places = self.lanes.some(some)
        return self.network.logits(parameters, rows, places)[:, : len(self.select)]

    def _as_begun(self, job: FitJob) -> Trained:
        parameters = dict(self.network.first(job.seed))
        if self.network.table:
            parameters[self.network.table] = parameters[self.network.table][:0]
        untrained = Trained(job, parameters, self.network.touched(job.rows), 0, 0, np.nan, np.zeros(0))
        if self.score is None:
            return untrained
        predicted = logits(self.network, untrained, self.select).unsqueeze(0)
        return replace(untrained, score=float(self.score(predicted, self.select)[0]))

    def _refill(self, free: Sequence[int]) -> None:
        """Start new jobs in free lanes. Lanes without a job are closed, and the last lanes move into their places."""
        for lane in reversed(free):
            if (run := self._next(lane)) is not None:
                self.runs[lane] = run
                continue
            last = len(self.runs) - 1
            if lane != last:
                self.lanes.move(last, lane)
                self.runs[lane] = self.runs[last]
            self.runs.pop()
        self.lanes.use(len(self.runs))


def whole(network: Network, model: Trained) -> dict[str, Tensor]:
    """All parameters of a model, including those that were not trained."""
    found = {name: value.clone() for name, value in network.first(model.job.seed).items()}
    for name, value in model.parameters.items():
        if name == network.table:
            found[name][torch.from_numpy(model.touched)] = value
        else:
            found[name] = value
    return found


def logits(network: Network, model: Trained, rows: IntArray, kept: Tensor | None = None) -> Tensor:
    """A model's logits for some items: (items, labels) or (items, words, labels); ``kept`` as in ``Network.logits``."""
    parameters = {name: value.unsqueeze(0) for name, value in whole(network, model).items()}
    table = parameters.get(network.table or "")
    places = np.arange(0 if table is None else table.shape[1])[None]
    with one_torch_thread(), torch.no_grad():
        chunks = []
        for some in np.split(np.asarray(rows, dtype=np.int64), range(CHUNK, len(rows), CHUNK)):
            padded = _filled(some, network.step)[None]
            chunks.append(network.logits(parameters, padded, places, kept)[0, : len(some)])
    if chunks[0].ndim == 3:  # chunks are as long as their longest text
        longest = max(part.shape[1] for part in chunks)
        chunks = [torch.nn.functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part in chunks]
    return torch.cat(chunks)


def _filled(rows: IntArray, multiple: int) -> IntArray:
    """Items, padded with the first one to a multiple."""
    return np.append(rows, np.repeat(rows[:1], -len(rows) % multiple))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
