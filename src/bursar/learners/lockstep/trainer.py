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
from bursar.learners.lockstep.network import Batch, Network, Walk
from bursar.learners.lockstep.scores import Score
from bursar.ragged import BoolArray, IntArray

CHUNK = 512  # items that a model is asked about at a time


@dataclass
class _Run:
    """A model in work."""

    number: int  # of the job
    job: Job
    touched: IntArray  # rows of the table
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
    training = Training(network, settings, select=select, score=score)
    training.make_room([job.rows for job in jobs])
    largest_first = np.argsort([len(job.rows) for job in jobs], kind="stable")[::-1].tolist()
    numbers = {training.add(jobs[at]): at for at in largest_first}
    found: dict[int, Trained] = {}
    while training.jobs:
        found |= {numbers[number]: model for number, model in training.step().items()}
    return [found[at] for at in range(len(jobs))]


@dataclass(frozen=True)
class _Judge:
    """Scores models on the items that are there to choose the best epoch on."""

    network: Network
    select: IntArray
    score: Score

    def scores(self, lanes: Lanes, some: Sequence[int]) -> list[float]:
        """A number a lane."""
        if self.network.compiled:
            logits = torch.stack([self.network.answered(lanes.one(lane), self.select) for lane in some])
        else:
            rows = np.tile(_filled(self.select, self.network.step), (len(some), 1))
            parameters, places = lanes.some(some)
            logits = self.network.logits(parameters, rows, places)[:, : len(self.select)]
        found: list[float] = self.score(logits, self.select).tolist()
        return found

    def of(self, model: Trained) -> float:
        """Of one model."""
        return float(self.score(logits(self.network, model, self.select).unsqueeze(0), self.select)[0])


class Training:
    """Models in work. Jobs may be added at any time, and dropped when nobody wants their models any more.

    >>> from bursar.learners.lockstep import AverageNetwork, Texts, accuracy
    >>> texts = Texts(np.array([[1, 2], [2, 3], [3, 0], [1, 0]]), np.array([2, 2, 1, 1]), 4)
    >>> network = AverageNetwork(texts, np.array([0, 1, 1, 0]), 2, size=16)
    >>> training = Training(network, Settings(batch=2), select=np.arange(4), score=accuracy(network))
    >>> first, second = training.add(Job(np.arange(4))), training.add(Job(np.arange(3)))
    >>> training.drop(second)
    >>> while training.jobs:
    ...     for number, model in training.step().items():
    ...         print(number == first, model.score)
    True 1.0
    """

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
        self.most = self.settings.lanes or network.lanes  # models in work at the same time
        if (select is None) != (score is None):
            raise ConfigError(
                "items to choose the best epoch on need a score, and a score needs items", fix="give both"
            )
        chosen = None if select is None else np.asarray(select, dtype=np.int64)
        self.judge = None if chosen is None or score is None else _Judge(network, chosen, score)
        self.jobs: dict[int, Job] = {}  # all that are not finished
        self.runs: list[_Run] = []  # those in work, by lane
        self._waiting: deque[int] = deque()
        self._added = 0
        self._done: dict[int, Trained] = {}
        self._lanes: Lanes | None = None

    def add(self, job: Job) -> int:
        """A job for the next free lane, behind those that wait; the number that its model will come under."""
        number = self._added
        self._added += 1
        self.jobs[number] = job
        self._waiting.append(number)
        return number

    def drop(self, number: int) -> None:
        """Forget a job, wherever it is; nothing if it is finished."""
        if self.jobs.pop(number, None) is None:
            return
        if number in self._waiting:
            self._waiting.remove(number)
            return
        self._refill([next(lane for lane, run in enumerate(self.runs) if run.number == number)])

    def step(self) -> dict[int, Trained]:
        """One step of every model in work; those that are finished by it, by their jobs' numbers.

        Of a network that is compiled, one epoch.
        """
        with one_thread(), torch.no_grad():
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
        """Lanes for these sets of items and no more: less memory than for any that may come."""
        touched = max((len(self.network.touched(rows)) for rows in sets), default=0)
        self._make_lanes(min(self.most, len(sets)), touched)

    def _make_lanes(self, lanes: int, learned: int) -> None:
        self._lanes = Lanes(self.network, lanes, self.network.first(0), learned)

    @property
    def lanes(self) -> Lanes:
        if self._lanes is None:  # nobody has said what will come
            table = self.network.first(0).get(self.network.table or "")
            self._make_lanes(self.most, 0 if table is None else len(table))
        assert self._lanes is not None
        return self._lanes

    def _take_up(self) -> None:
        """Jobs that wait, in lanes that are free."""
        before = len(self.runs)
        while self._waiting and len(self.runs) < self.most:
            if run := self._next(len(self.runs)):
                self.runs.append(run)
        if len(self.runs) > before:
            self.lanes.use(len(self.runs))

    def _next(self, lane: int) -> _Run | None:
        """The next job that has anything to learn from, in a lane; none if nobody waits."""
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

    def _epoch(self) -> None:
        """One epoch of every model, one after the other."""
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
                raise LearnerError(
                    f"{run.job}: the {what} is {value} in epoch {run.epoch}", fix="lower the rate, or look at its items"
                )

    def _judge(self, ended: Sequence[int]) -> None:
        """Score models at the end of an epoch, keep the best values, and go on to the next epoch or the next job."""
        if self.judge is not None:
            found = self.judge.scores(self.lanes, ended)
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
                run.rows, run.real = walk(run.job, self.settings, run.epoch, self._multiple)
        if free:
            self._refill(free)

    def _finish(self, lane: int) -> None:
        run = self.runs[lane]
        self._done[run.number] = Trained(
            run.job,
            self.lanes.best(lane),
            run.touched,
            run.epoch,
            run.best_epoch,
            run.best,
            np.array(run.history),
        )

    def _as_begun(self, job: Job) -> Trained:
        """A model that has nothing to learn from."""
        parameters = dict(self.network.first(job.seed))
        if self.network.table:
            parameters[self.network.table] = parameters[self.network.table][:0]
        untrained = Trained(job, parameters, self.network.touched(job.rows), 0, 0, np.nan, np.zeros(0))
        return untrained if self.judge is None else replace(untrained, score=self.judge.of(untrained))

    def _refill(self, free: Sequence[int]) -> None:
        """New jobs for free lanes; lanes that find none are closed, with the last ones moved into their places."""
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
    """All parameters of a model; what it did not train is as it began."""
    found = {name: value.clone() for name, value in network.first(model.job.seed).items()}
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
            said = network.passes(parameters, asked, places, masks)
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
