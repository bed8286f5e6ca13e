"""The contract of networks whose models are trained in lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from bursar.errors import ConfigError
from bursar.learners.lockstep.sums import product
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.random_streams import rng

COLUMNS = 16  # of scores: a multiple of so many
DECAYS = 0.9, 0.999  # of Adam
EPSILON = 1e-8

Parameters = Mapping[str, Tensor]  # each with the lanes in front


@dataclass(frozen=True)
class Batch:
    """The items that every lane is trained on in one step."""

    rows: IntArray  # (lanes, batch): numbers of items
    real: BoolArray  # (lanes, batch): those that are more than padding
    places: IntArray  # (lanes, rows of the table): where each is among the rows of all lanes
    draws: Sequence[tuple[int, int]]  # (lanes,): the seed and the step of each lane, which dropout follows from


@dataclass(frozen=True)
class Walk:
    """The batches of one model in one epoch."""

    rows: IntArray  # (steps, batch): numbers of items
    real: BoolArray  # (steps, batch): those that are more than padding, which comes last
    draws: Sequence[tuple[int, int]]  # (steps,): the seed and the step, which dropout follows from


class Lane(NamedTuple):
    """The numbers of one model in work, to be changed in place."""

    values: NDArray[Any]  # (numbers,): all parameters but the table's
    slopes: NDArray[Any]  # as many zeros
    fast: NDArray[Any]  # Adam's moments
    slow: NDArray[Any]
    starts: IntArray  # where each parameter begins among them
    table: NDArray[Any]  # (rows, width), those that this model may change first
    learned: int  # how many these are
    table_fast: NDArray[Any]  # (learned × width,)
    table_slow: NDArray[Any]
    places: IntArray  # where each row of the network's table is in this one


class Network(ABC):
    """One shape of model over one table of items. Parameters of many models have the lanes in front.

    What a method says of a lane must not depend on the other lanes, to the last bit: ``sums`` has the means. A network
    says what it makes of items (``features``), and an output layer turns that into scores of labels (logits). One that
    works otherwise has ``loss`` and ``logits`` of its own.

    A network may have one table, such as word vectors, of which a model only changes the rows that its items touch. A
    lane then keeps those rows first, and ``places`` say where each row is: ``flat(table)[places[lane, row]]``.
    """

    table: str | None = None  # the name of that parameter
    width: int  # of features
    step: int = 4  # items come in multiples of so many, see ``quantum``
    lanes: int = 16  # models that are best trained at the same time
    compiled: bool = False  # whether models are trained one after the other, an ``epoch`` at a time

    def __init__(self, targets: IntArray, labels: int, *, dropout: float = 0.0, dtype: torch.dtype) -> None:
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout = {dropout}", fix="use a share from 0 up to, but not including, 1")
        if not dtype.is_floating_point:
            raise ConfigError(f"dtype = {dtype}", fix="use torch.float32 or torch.float64")
        self.targets = np.asarray(targets, dtype=np.int64)  # (items,) or (items, words), -1 where there is none
        self.labels, self.dropout, self.dtype = labels, dropout, dtype
        self._first: dict[int, dict[str, Tensor]] = {}

    def check(self, batch: int) -> None:  # noqa: B027
        """Raise an error if batches of this size cannot be had."""

    @abstractmethod
    def begin(self, seed: int) -> dict[str, Tensor]:
        """The parameters of one model before training: the same for all sets of items."""

    def first(self, seed: int) -> Mapping[str, Tensor]:
        """The same, drawn once a seed: not to be changed."""
        if seed not in self._first:
            self._first[seed] = self.begin(seed)
        return self._first[seed]

    def touched(self, rows: IntArray) -> IntArray:
        """The rows of the table that a model trained on these items may change, sorted."""
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        """What every lane makes of its own items, rows (lanes, items): (lanes, items, width)."""

    def loss(self, parameters: Parameters, batch: Batch) -> Tensor:
        """The mean cross-entropy of the units of every lane's batch, (lanes,)."""
        features = self.features(parameters, batch.rows, batch.places)
        scores = self.answers(parameters, features, self.kept(batch), (0, features.shape[1]))
        return cross_entropy(scores, self.targets[batch.rows], batch.real)

    def gradients(self, parameters: Parameters, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses and the slope of each lane's loss by its own parameters, by automatic differentiation."""
        leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        with torch.enable_grad():
            losses = self.loss(leaves, batch)
            found = torch.autograd.grad(losses.sum(), list(leaves.values()))
        return losses.detach(), dict(zip(leaves, found, strict=True))

    def epoch(self, lane: Lane, walk: Walk, rate: float) -> FloatArray:
        """The steps of one epoch of one model, with Adam; the loss of each. Only of a network that is compiled."""
        raise NotImplementedError

    def answered(self, lane: Lane, rows: IntArray) -> Tensor:
        """One model's scores of labels for some items. Only of a network that is compiled."""
        raise NotImplementedError

    def logits(self, parameters: Parameters, rows: IntArray, places: IntArray, kept: Tensor | None = None) -> Tensor:
        """Scores of labels, (lanes, items, labels) or (lanes, items, words, labels); rows (lanes, items).

        Without dropout, or with that of ``kept`` (width,): one draw for all items.
        """
        return self.passes(parameters, rows, places, [kept])[0]

    def passes(
        self, parameters: Parameters, rows: IntArray, places: IntArray, masks: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """The same scores with each of several draws of dropout; what comes before it is computed once."""
        features = self.features(parameters, rows, places)
        cuts = 0, features.shape[1]
        return [self.answers(parameters, features, kept, cuts)[..., : self.labels] for kept in masks]

    def answers(self, parameters: Parameters, features: Tensor, kept: Tensor | None, cuts: Sequence[int]) -> Tensor:
        """The output layer, after dropout; its columns are filled up to a multiple of 16 with scores of −∞."""
        features = features if kept is None else features * kept
        return product(features, *self.output(parameters), cuts)

    def output(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        """Weights and bias of the output layer, filled up."""
        more = 0, -self.labels % COLUMNS
        return pad(parameters["output.weight"], more), pad(parameters["output.bias"], more, value=-torch.inf)

    def kept(self, batch: Batch) -> Tensor | None:
        """Dropout's factors for a training step, (lanes, batch, width): they follow from seed and step alone."""
        if not self.dropout:
            return None
        drawn = np.stack([self.kept_in_step(seed, step, batch.rows.shape[1]) for seed, step in batch.draws])
        return torch.from_numpy(drawn).to(self.dtype)

    def kept_in_step(self, seed: int, step: int, items: int) -> NDArray[np.float32]:
        """Dropout's factors for one model's step, (items, width)."""
        return _kept("lockstep dropout", seed, step, (items, self.width), self.dropout)

    def kept_in_pass(self, seed: int, number: int) -> Tensor:
        """Dropout's factors for one pass over any number of items, (width,)."""
        return torch.from_numpy(_kept("lockstep dropout passes", seed, 1 + number, (self.width,), self.dropout)).to(
            self.dtype
        )


@lru_cache(maxsize=4096)
def _kept(stream: str, seed: int, step: int, shape: tuple[int, ...], dropout: float) -> NDArray[np.float32]:
    """Factors of 0 for what is dropped, and of 1 / (1 − dropout) for the rest."""
    drawn = rng(seed, stream, step).random(shape)
    return ((drawn >= dropout) / (1 - dropout)).astype(np.float32)


class Draws:
    """Random first values from a seed: the same in single and in double precision.

    >>> Draws(0, torch.float64).normal(2).tolist() == Draws(0, torch.float64).normal(2).tolist()
    True
    """

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.random, self.dtype = rng(seed, "lockstep weights"), dtype

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return self._made(self.random.standard_normal(shape))

    def uniform(self, width: int, *shape: int) -> Tensor:
        """Between ± 1/√width: as torch begins the layers that read so many numbers."""
        return self._made(self.random.uniform(-1, 1, shape) / np.sqrt(width))

    def layer(self, name: str, width: int, outputs: int) -> dict[str, Tensor]:
        """The weights and the bias of a fully connected layer."""
        return {
            f"{name}.weight": self.uniform(width, width, outputs),
            f"{name}.bias": self.uniform(width, outputs),
        }

    def _made(self, values: FloatArray) -> Tensor:
        return torch.from_numpy(values).to(self.dtype)


def cross_entropy(scores: Tensor, targets: IntArray, real: BoolArray) -> Tensor:
    """The mean −log p of the targets of every lane's real items, (lanes,); targets of −1 do not count.

    >>> cross_entropy(torch.zeros(1, 2, 4), np.array([[3, 1]]), np.array([[True, False]])).exp().tolist()
    [4.0]
    """
    lanes = len(scores)
    counted = (targets >= 0) & real.reshape(*real.shape, *[1] * (targets.ndim - 2))
    share = counted / np.maximum(counted.reshape(lanes, -1).sum(axis=1), 1).reshape(-1, *[1] * (targets.ndim - 1))
    logs = torch.log_softmax(scores, dim=-1)
    chosen = logs.gather(-1, torch.from_numpy(np.maximum(targets, 0)).unsqueeze(-1)).squeeze(-1)
    weighted = chosen * torch.from_numpy(share).to(scores.dtype)
    return -weighted.reshape(lanes, -1).sum(dim=1)
