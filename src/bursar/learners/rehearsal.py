"""A training that can be paused, evaluated and rewound, for look-ahead estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.learners.steps import joint_steps
from bursar.learners.training import Training
from bursar.ragged import IntArray, Ragged

ITEMS_AT_ONCE = 256  # in evaluation
TEMPERATURE_STEPS = 16  # of the golden-section search


class Snapshot(NamedTuple):
    """A snapshot of a training: all that further steps depend on."""

    parameters: list[Tensor]
    memories: list[dict[str, Tensor]]  # the optimiser's state of each parameter
    random: Tensor


class Rehearsal:
    """A model in training on some items, with trial steps that can be undone.

    Its own steps are those of a fit of the same learner without a policy. Items are given by position.
    """

    def __init__(
        self,
        items: Corpus,
        training: Training,
        trained: IntArray,
        predict: Callable[[IntArray, str], Ragged],
        random: Tensor,
    ) -> None:
        """``trained`` are the positions of the training's items, ``random`` is torch's random state at its start."""
        self.items, self.model, self.losses = items, training.model, training.losses
        self.shared: list[nn.Parameter] = [p for p in self.model.encoder.parameters() if p.requires_grad]
        if not self.shared:
            raise LearnerError(
                "every layer that tasks could share is frozen", fix="lower learner.frozen_layers: leave some to train"
            )
        self._predict, self._random, self._training = predict, random, training
        self._ahead = self._batches(trained)

    @property
    def planned(self) -> int:
        return self._training.epochs * self._training.steps_per_epoch

    # -- training --------------------------------------------------------------------------------------------------
    def advance(self, steps: int) -> None:
        with self._learning():
            for _ in range(steps):
                self._training.joint_step(*next(self._ahead))

    def step(self, parts: Sequence[tuple[IntArray, str]]) -> None:
        """One step on the sum of the losses of (items, task) parts; the learning rate does not change.

        Each part's gradient is clipped separately, so that no part reduces the effect of another.
        """
        training = self._training
        training.optimizer.zero_grad(set_to_none=True)
        with self._learning():
            for items, task in parts:
                [loss] = self.losses.losses(items, [task])
                training.check(task, loss.item())
                grads = torch.autograd.grad(loss, training.trained, allow_unused=True)
                norm = torch.linalg.vector_norm(torch.stack([s.norm() for s in grads if s is not None]))
                factor = (training.schedule.clip / (norm + 1e-6)).clamp(max=1.0)
                for parameter, grad in zip(training.trained, grads, strict=True):
                    if grad is not None:
                        scaled = grad * factor
                        parameter.grad = scaled if parameter.grad is None else parameter.grad.add_(scaled)
            training.optimizer.step()

    def snapshot(self) -> Snapshot:
        kept = self._training.optimizer.state
        return Snapshot(
            [parameter.detach().clone() for parameter in self._training.trained],
            [{name: value.clone() for name, value in kept.get(p, {}).items()} for p in self._training.trained],
            self._random.clone(),
        )

    def rewind(self, snapshot: Snapshot) -> None:
        """Return to a snapshot. The sequence of batches that ``advance`` takes is not rewound."""
        kept = self._training.optimizer.state
        with torch.no_grad():
            for parameter, value, memory in zip(
                self._training.trained, snapshot.parameters, snapshot.memories, strict=True
            ):
                parameter.copy_(value)
                if memory:
                    for name, remembered in memory.items():
                        kept[parameter][name].copy_(remembered)
                else:  # no step had been taken
                    kept.pop(parameter, None)
        self._random = snapshot.random.clone()

    @contextmanager
    def _learning(self) -> Iterator[None]:
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            yield
            self._random = torch.get_rng_state()

    def _batches(self, trained: IntArray) -> Iterator[tuple[IntArray, list[str]]]:
        """The joint steps of a fit, epoch after epoch."""
        training, present = self._training, {n: there[trained] for n, there in self._training.present.items()}
        for epoch in count(1):
            size, seed = training.schedule.batch_size, training.plan.seed
            for batch, tasks in joint_steps(present, training.lengths, size, seed, epoch):
                if tasks:
                    yield trained[batch], tasks

    # -- evaluation ------------------------------------------------------------------------------------------------
    def loss(self, items: IntArray, task: str) -> float:
        """The loss of a task on items with its label, at the temperature that minimises it.

        The fitted temperature keeps a general change of confidence from counting as a better or worse model.
        """
        return self.losses.temperature(_parts(items), task, TEMPERATURE_STEPS)[1]

    def score(self, items: IntArray, task: str) -> float:
        """The task's main score on items with its label."""
        kind, labels = self.model.tasks[task], self.items.labels[task].rows
        tally = kind.tally(labels.take(items), self._predict(items, task))
        return float(kind.score(tally.sum(axis=0)))

    def gradient(self, items: IntArray, task: str) -> Tensor:
        """The gradient of a task's loss on items with its label, by all parameters that tasks share."""
        self.model.eval()
        total = torch.zeros(sum(parameter.numel() for parameter in self.shared))
        for part in _parts(items):
            [loss] = self.losses.losses(part, [task])
            grads = torch.autograd.grad(loss, self.shared, materialize_grads=True)
            total += torch.cat([grad.flatten() for grad in grads]) * (len(part) / len(items))
        return total


def _parts(items: IntArray) -> list[IntArray]:
    return [items[at : at + ITEMS_AT_ONCE] for at in range(0, len(items), ITEMS_AT_ONCE)]
