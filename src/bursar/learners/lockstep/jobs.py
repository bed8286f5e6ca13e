"""What is to be trained, how, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from torch import Tensor

from bursar.errors import ConfigError
from bursar.learners.lockstep.sums import rounded
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.random_streams import rng


@dataclass(frozen=True)
class Settings:
    """How every model is trained; the defaults are those of paper 4."""

    batch: int = 20
    epochs: int = 100  # at most
    patience: int = 20  # epochs without a better score on the model-selection items
    rate: float = 1e-3
    lanes: int | None = None  # models that are trained at the same time, which changes nothing else; the network's
    shuffle: bool = True  # a new order every epoch; otherwise the rows of a job as they are

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "patience", "lanes"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}", fix="use 1 or more")
        if not self.rate > 0:
            raise ConfigError(f"rate = {self.rate}", fix="use a number above 0, such as 0.001")


@dataclass(frozen=True)
class Job:
    """One model to train: on which items of the network's table, and from which seed."""

    rows: IntArray  # (items,): numbers of items
    seed: int = 0
    name: str = ""  # what errors call it

    def __str__(self) -> str:
        return self.name or f"a model of {len(self.rows)} items with seed {self.seed}"


@dataclass(frozen=True)
class Trained:
    """A model as it was at its best epoch; at its last, if there was nothing to choose by."""

    job: Job
    parameters: dict[str, Tensor]  # of a table, such as word vectors, only the rows that were trained
    touched: IntArray  # which rows of the table those are
    epochs: int  # that were run
    best_epoch: int  # counted from 1; 0: a job without items, which stays as it began
    score: float  # on the model-selection items, after that epoch; nan if there are none
    history: FloatArray = field(repr=False)  # (epochs,): the score after each; empty if there are none


def walk(job: Job, settings: Settings, epoch: int, multiple: int = 1) -> tuple[IntArray, BoolArray]:
    """The items of every step of an epoch, and which of them are more than padding: (steps, batch or a little more).

    With ``shuffle`` the order follows from the seed, the epoch and the ranks of the items' numbers in the set, so it
    depends on the set of items alone and not on how a job lists them.

    >>> rows, real = walk(Job(np.array([5, 9, 7])), Settings(batch=2, shuffle=False), 1)
    >>> rows.tolist(), real.tolist()
    ([[5, 9], [7, 5]], [[True, True], [True, False]])
    """
    items = len(job.rows)
    steps = -(-items // settings.batch)
    order = np.sort(job.rows)[_permutation(job.seed, epoch, items)] if settings.shuffle else job.rows
    walked = np.full(steps * settings.batch, order[0] if items else 0)
    walked[:items] = order
    more = rounded(settings.batch, multiple) - settings.batch
    rows = walked.reshape(steps, settings.batch)
    real = np.arange(rows.size).reshape(rows.shape) < items
    if not more:
        return rows, real
    return np.pad(rows, ((0, 0), (0, more)), mode="edge"), np.pad(real, ((0, 0), (0, more)))


@lru_cache(maxsize=8192)
def _permutation(seed: int, epoch: int, items: int) -> IntArray:
    return rng(seed, "lockstep batches", epoch).permutation(items)
