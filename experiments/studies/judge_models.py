"""Judges whose models also predict the pool, for strategies that choose items by the predictions of a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from bursar.learners.features import one_thread
from bursar.learners.lockstep import Network, Trained
from bursar.learners.probe import fitted_factor
from bursar.oracle.judge import PROBE, Judge, key_of, known_judge
from bursar.oracle.network import NetworkJudge, NetworkOptions
from bursar.oracle.probe import ProbeJudge, RidgeTask
from bursar.oracle.problem import LabellingProblem
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.tasks import Beliefs

KEPT = 256  # sets whose models are kept for later requests


class ModelJudge(Judge):
    """A judge that predicts the pool with the model of a set."""

    @abstractmethod
    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> Mapping[str, Beliefs]:
        """The probabilities of every item of the pool, by task; several passes show the model's uncertainty."""

    def prepare(self, sets: Sequence[IntArray]) -> None:
        """Announce sets that will be requested next, so that their models are trained together."""


def model_judge(name: str, problem: LabellingProblem, *, seed: int = 0) -> ModelJudge:
    """Make a judge that predicts, by the name of a judge of ``bursar oracle``."""
    return ProbeModels.of(problem) if name == PROBE else NetworkModels(problem, known_judge(name), seed=seed)


class ProbeModels(ProbeJudge, ModelJudge):
    """The probe. Several passes are draws from the Bayesian posterior of the coefficients."""

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> dict[str, Beliefs]:
        with one_thread():
            return {name: _ridge_beliefs(task, items, passes, seed) for name, task in self.tasks.items()}


def _ridge_beliefs(task: RidgeTask, items: IntArray, passes: int, seed: int) -> Beliefs:
    """A softmax of the scores, with the temperature that fits the items set aside best."""
    found = task.coefficients(items)
    rows, codes = task.held["aside"]
    scores = rows @ found
    factor, _ = fitted_factor(scores, codes)
    drawn = found[None]
    if passes > 1:
        noise = float(np.square(scores - np.eye(task.labels)[codes]).mean())
        root = np.linalg.cholesky(task.equations(items)[0])
        normal = rng(seed, "probe passes").standard_normal((passes, *found.shape))
        drawn = found + np.sqrt(noise) * np.linalg.solve(root.T, normal)
    return Beliefs.of(softmax(factor * (task.pool @ drawn), axis=-1), np.diff(task.offsets))


class NetworkModels(NetworkJudge, ModelJudge):
    """A network. Several passes are dropout passes, each of which drops the same features of all items."""

    def __init__(
        self, problem: LabellingProblem, architecture: str, *, seed: int = 0, options: NetworkOptions | None = None
    ) -> None:
        super().__init__(problem, architecture, seed=seed, options=options)
        self.kept: dict[tuple[str, bytes], Trained] = {}  # by task and set, the oldest first

    def predict_proba(self, items: IntArray, passes: int = 1, seed: int = 0) -> dict[str, Beliefs]:
        found = {}
        for name, task in self.tasks.items():
            (model,) = self.trained(name, [items])
            masks = [None] if passes == 1 else [mask_of_pass(task.network, seed, at) for at in range(passes)]
            logits = np.stack([self.logits(name, model, "pool", mask) for mask in masks])
            shares = torch.softmax(torch.from_numpy(logits), dim=-1).numpy()
            found[name] = Beliefs.of(shares[0] if passes == 1 else shares, task.units["pool"])
        return found

    def prepare(self, sets: Sequence[IntArray]) -> None:
        for name in self.tasks:
            for items, model in zip(sets, self.trained(name, sets), strict=True):
                self.kept[name, key_of(items)] = model
        while len(self.kept) > KEPT * len(self.tasks):
            del self.kept[next(iter(self.kept))]

    def trained(self, name: str, sets: Sequence[IntArray]) -> list[Trained]:
        """The models of a task; those that are kept are not trained again."""
        keys = [key_of(items) for items in sets]
        new = {key: items for key, items in zip(keys, sets, strict=True) if (name, key) not in self.kept}
        found = dict(zip(new, super().trained(name, [*new.values()]), strict=True))
        return [found[key] if key in found else self.kept[name, key] for key in keys]


def mask_of_pass(network: Network, seed: int, number: int) -> Tensor:
    """Dropout factors of one pass over any number of items: (width,)."""
    drawn = rng(seed, "lockstep dropout passes", 1 + number).random(network.width)
    kept = ((drawn >= network.dropout) / (1 - network.dropout)).astype(np.float32)
    return torch.from_numpy(kept).to(network.dtype)
