"""Jobs: models to train, the settings, and the trained models."""

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
    """How models are trained; the defaults are paper 4's."""

    batch: int = 20
    epochs: int = 100  # at most
    patience: int = 20  # epochs without improvement on the model-selection items
    rate: float = 1e-3
    lanes: int | None = None  # models trained at the same time, which does not affect results; by default the network's
    shuffle: bool = True  # a new order every epoch; otherwise the order of the job

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

    With ``shuffle`` the order depends on the seed, the epoch and the set of items, not on how a job lists them.

    >>> rows, real = walk(FitJob(np.array([5, 9, 7])), Settings(batch=2, shuffle=False), 1)
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
