"""The interface of networks whose models are trained in lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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

COLUMNS = 16  # scores are padded to a multiple of this
DECAYS = 0.9, 0.999  # of Adam
EPSILON = 1e-8

Parameters = Mapping[str, Tensor]  # each with the lanes in front


@dataclass(frozen=True)
class LaneBatch:
    """The items of every lane in one training step."""

    rows: IntArray  # (lanes, batch): item numbers
    real: BoolArray  # (lanes, batch): not padding
    places: IntArray  # (lanes, rows of the table): position among the rows of all lanes
    draws: Sequence[tuple[int, int]]  # (lanes,): seed and step of each lane, for dropout


@dataclass(frozen=True)
class Walk:
    """The batches of one model in one epoch."""

    rows: IntArray  # (steps, batch): item numbers
    real: BoolArray  # (steps, batch): not padding, which comes last
    draws: Sequence[tuple[int, int]]  # (steps,): seed and step, for dropout


class Moving(NamedTuple):
    """Numbers that Adam trains in place: (numbers,) each."""

    values: NDArray[Any]
    grads: NDArray[Any]  # gradients, zero between steps
    fast: NDArray[Any]  # first moments
    slow: NDArray[Any]  # second moments


class Lane(NamedTuple):
    """One model in training, for compiled code."""

    dense: Moving  # all parameters but the table's
    starts: IntArray  # start of each of those parameters
    sizes: IntArray  # their numbers of elements
    table: NDArray[Any]  # (rows, width); the rows that this model trains come first
    words: Moving  # the trained rows of the table
    places: IntArray  # position of each row of the network's table in this one


class Network(ABC):
    """One model architecture over one set of items. Parameters of many models have lanes as their first dimension.

    The results of a lane must not depend on the other lanes, to the last bit; see ``sums``. A network computes
    ``features`` of items, and an output layer turns them into logits. Networks of another form override ``loss`` and
    ``logits``.

    A network may have one table, such as word vectors, of which a model trains only the rows of its items. A lane keeps
    those rows first, and ``places`` locates each row: ``flat(table)[places[lane, row]]``.
    """

    table: str | None = None  # the name of that parameter
    width: int  # of features
    step: int = 4  # items come in multiples of this, see ``quantum``
    lanes: int = 16  # best number of models to train at the same time
    compiled: bool = False  # whether models are trained one by one, an ``epoch`` at a time

    def __init__(self, targets: IntArray, labels: int, *, dropout: float = 0.0, dtype: torch.dtype) -> None:
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout = {dropout}", fix="use a number from 0 to below 1")
        if not dtype.is_floating_point:
            raise ConfigError(f"dtype = {dtype}", fix="use torch.float32 or torch.float64")
        self.targets = np.asarray(targets, dtype=np.int64)  # (items,) or (items, words); -1 for no target
        self.labels, self.dropout, self.dtype = labels, dropout, dtype
        self._first: dict[int, dict[str, Tensor]] = {}

    def check(self, batch: int) -> None:  # noqa: B027
        """Refuse batch sizes that the network does not support."""

    @abstractmethod
    def begin(self, seed: int) -> dict[str, Tensor]:
        """The initial parameters of one model: the same for all sets of items."""

    def first(self, seed: int) -> Mapping[str, Tensor]:
        """The initial parameters, drawn once per seed. Do not change them."""
        if seed not in self._first:
            self._first[seed] = self.begin(seed)
        return self._first[seed]

    def touched(self, rows: IntArray) -> IntArray:
        """The rows of the table that a model of these items trains, sorted."""
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def features(self, parameters: Parameters, rows: IntArray, places: IntArray) -> Tensor:
        """The features of every lane's items, rows (lanes, items): (lanes, items, width)."""

    def loss(self, parameters: Parameters, batch: LaneBatch) -> Tensor:
        """The mean cross-entropy of the units of every lane's batch, (lanes,)."""
        features = self.features(parameters, batch.rows, batch.places)
        kept = self.kept(batch.draws, batch.rows.shape[1])
        scores = self.output(parameters, features, kept, (0, features.shape[1]))
        return cross_entropy(scores, self.targets[batch.rows], batch.real)

    def gradients(self, parameters: Parameters, batch: LaneBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses, and the gradient of each lane's loss by its own parameters."""
        leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        with torch.enable_grad():
            losses = self.loss(leaves, batch)
            found = torch.autograd.grad(losses.sum(), list(leaves.values()))
        return losses.detach(), dict(zip(leaves, found, strict=True))

    def epoch(self, lane: Lane, walk: Walk, rate: float) -> FloatArray:
        """Train one model for one epoch; the loss of each step. Only compiled networks have this."""
        raise NotImplementedError

    def compiled_logits(self, lane: Lane, rows: IntArray) -> Tensor:
        """One model's logits for some items. Only compiled networks have this."""
        raise NotImplementedError

    def logits(self, parameters: Parameters, rows: IntArray, places: IntArray, kept: Tensor | None = None) -> Tensor:
        """Logits, (lanes, items, labels) or (lanes, items, words, labels); rows (lanes, items).

        Without dropout, or with the mask ``kept`` (width,) for all items.
        """
        features = self.features(parameters, rows, places)
        return self.output(parameters, features, kept, (0, features.shape[1]))[..., : self.labels]

    def output(self, parameters: Parameters, features: Tensor, kept: Tensor | None, cuts: Sequence[int]) -> Tensor:
        """The output layer, after dropout; its columns are padded to a multiple of 16 with −∞."""
        features = features if kept is None else features * kept
        more = 0, -self.labels % COLUMNS
        weight, bias = pad(parameters["output.weight"], more), pad(parameters["output.bias"], more, value=-torch.inf)
        return product(features, weight, bias, cuts)

    def kept(self, draws: Sequence[tuple[int, int]], items: int) -> Tensor | None:
        """Dropout factors of steps, each of a seed and a number: (draws, items, width)."""
        if not self.dropout:
            return None
        drawn = np.stack([_kept(seed, step, (items, self.width), self.dropout) for seed, step in draws])
        return torch.from_numpy(drawn).to(self.dtype)


@lru_cache(maxsize=4096)
def _kept(seed: int, step: int, shape: tuple[int, ...], dropout: float) -> NDArray[np.float32]:
    """Factors of 0 for what is dropped, and of 1 / (1 − dropout) for the rest."""
    drawn = rng(seed, "lockstep dropout", step).random(shape)
    return ((drawn >= dropout) / (1 - dropout)).astype(np.float32)


class Draws:
    """Random initial values from a seed, the same in single and double precision."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.random, self.dtype = rng(seed, "lockstep weights"), dtype

    def normal(self, *shape: int) -> Tensor:
        return self._made(self.random.standard_normal(shape))

    def uniform(self, width: int, *shape: int) -> Tensor:
        """Uniform in ± 1/√width, as torch initialises layers with this many inputs."""
        return self._made(self.random.uniform(-1, 1, shape) / np.sqrt(width))

    def layer(self, name: str, width: int, outputs: int) -> dict[str, Tensor]:
        return {f"{name}.weight": self.uniform(width, width, outputs), f"{name}.bias": self.uniform(width, outputs)}

    def _made(self, values: FloatArray) -> Tensor:
        return torch.from_numpy(values).to(self.dtype)


def cross_entropy(scores: Tensor, targets: IntArray, real: BoolArray) -> Tensor:
    """The mean −log p of the targets of every lane's items, without padding: (lanes,). Targets of −1 do not count."""
    lanes = len(scores)
    counted = (targets >= 0) & real.reshape(*real.shape, *[1] * (targets.ndim - 2))
    share = counted / np.maximum(counted.reshape(lanes, -1).sum(axis=1), 1).reshape(-1, *[1] * (targets.ndim - 1))
    logs = torch.log_softmax(scores, dim=-1)
    chosen = logs.gather(-1, torch.from_numpy(np.maximum(targets, 0)).unsqueeze(-1)).squeeze(-1)
    weighted = chosen * torch.from_numpy(share).to(scores.dtype)
    return -weighted.reshape(lanes, -1).sum(dim=1)


Score = Callable[[Tensor, IntArray], FloatArray]  # logits of every lane, and the items: a number per lane


def accuracy(network: Network) -> Score:
    """The share of correct units."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, predicted = _units(network, logits, rows)
        return np.asarray((predicted == targets).mean(axis=1))

    return score


def weighted_f1(network: Network) -> Score:
    """The F1 of labels weighted by their number of units, as in scikit-learn."""

    def score(logits: Tensor, rows: IntArray) -> FloatArray:
        targets, predicted = _units(network, logits, rows)
        labels, lanes = network.labels, len(predicted)
        shift = np.arange(lanes)[:, None] * labels
        counts = np.bincount((predicted + shift).ravel(), minlength=lanes * labels).reshape(lanes, labels)
        right = np.where(predicted == targets, predicted + shift, lanes * labels)
        hits = np.bincount(right.ravel(), minlength=lanes * labels + 1)[:-1].reshape(lanes, labels)
        truth = np.bincount(targets, minlength=labels)
        f1 = 2 * hits / np.maximum(counts + truth, 1)
        return np.asarray((f1 * truth).sum(axis=1) / truth.sum())

    return score


def _units(network: Network, logits: Tensor, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Targets (units,) and predictions (lanes, units) of the units with a target."""
    targets = network.targets[rows]
    if targets.ndim == 2:  # of words; the logits end at the longest text
        targets = targets[:, : logits.shape[2]]
    counted = targets >= 0
    return targets[counted], logits.argmax(dim=-1).numpy()[:, counted]
