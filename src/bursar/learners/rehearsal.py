"""A training that can be stopped anywhere, tried out, and put back: what look-aheads are made with.

>>> import numpy as np
>>> from bursar.learners.neural import NeuralLearner
>>> from bursar.simulation import assistant_corpus
>>> items, others = assistant_corpus(60, seed=1).with_tasks(["intent", "slots"]), np.arange(40, 60)
>>> learner = NeuralLearner(items.schema, encoder="aoe")
>>> rehearsal = learner.rehearse(items, trained=np.arange(40), known=np.arange(60))
>>> rehearsal.advance(20)
>>> place, before = rehearsal.place(), rehearsal.loss(others, "intent")
>>> rehearsal.step([(others, "intent")])  # as if those had been labelled for training, too
>>> after = rehearsal.loss(others, "intent")
>>> rehearsal.back(place)
>>> rehearsal.loss(others, "intent") == before > after
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.learners.calibration import fit_temperature, scaled_loss
from bursar.learners.examples import Objective
from bursar.learners.sharing import SharedModel
from bursar.learners.steps import joint_steps
from bursar.learners.training import Schedule, Training
from bursar.ragged import IntArray, Ragged

ITEMS_AT_ONCE = 256  # that are looked at and not trained on
HALVINGS = 16  # or nearly: of the interval that a temperature is looked for in


class Place(NamedTuple):
    """Where a training is: all that further steps depend on."""

    parameters: list[Tensor]
    memories: list[dict[str, Tensor]]  # what the optimiser keeps of each of them
    random: Tensor


class Rehearsal:
    """A model in training on some items, and what can be tried with it.

    Its own steps are those of a fit of the same learner, without a policy. Items are named by their positions.
    """

    def __init__(
        self,
        items: Corpus,
        model: SharedModel,
        objective: Objective,
        guess: Callable[[IntArray, str], Ragged],
        *,
        lengths: IntArray,
        trained: IntArray,
        schedule: Schedule,
        seed: int,
        random: Tensor,
    ) -> None:
        self.items, self.model, self.objective = items, model, objective
        self.shared: list[nn.Parameter] = [p for p in model.encoder.parameters() if p.requires_grad]
        if not self.shared:
            raise LearnerError(
                "every layer that tasks could share is frozen", fix="lower learner.frozen_layers: leave some to train"
            )
        self._guess, self._random = guess, random
        self._training = Training(model, objective, lengths[trained], schedule, seed, policy=None, checkpoint=None)
        self._ahead = self._batches(lengths[trained], trained, schedule.batch_size, seed)

    @property
    def planned(self) -> int:
        """How many steps a fit would have."""
        return self._training.epochs * self._training.steps_an_epoch

    # -- training --------------------------------------------------------------------------------------------------
    def advance(self, steps: int) -> None:
        """Train on, as a fit would."""
        with self._learning():
            for _ in range(steps):
                self._training.joint_step(*next(self._ahead))

    def step(self, parts: Sequence[tuple[IntArray, str]]) -> None:
        """A step on the losses of some items for a task each, added up; the learning rate stays as it is.

        The gradient of each part is clipped by itself, so that no part takes from what another does.
        """
        training = self._training
        training.optimizer.zero_grad(set_to_none=True)
        with self._learning():
            for items, task in parts:
                [loss] = self.objective.losses(items, [task])
                training.check(task, loss.item())
                slopes = torch.autograd.grad(loss, training.trained, allow_unused=True)
                norm = torch.linalg.vector_norm(torch.stack([s.norm() for s in slopes if s is not None]))
                factor = (training.schedule.clip / (norm + 1e-6)).clamp(max=1.0)
                for parameter, slope in zip(training.trained, slopes, strict=True):
                    if slope is not None:
                        scaled = slope * factor
                        parameter.grad = scaled if parameter.grad is None else parameter.grad.add_(scaled)
            training.optimizer.step()

    def place(self) -> Place:
        """Where the training is now, for ``back``."""
        kept = self._training.optimizer.state
        return Place(
            [parameter.detach().clone() for parameter in self._training.trained],
            [{name: value.clone() for name, value in kept.get(p, {}).items()} for p in self._training.trained],
            self._random.clone(),
        )

    def back(self, place: Place) -> None:
        """Go back to where the training was; the batches that ``advance`` takes next stay the next ones."""
        kept = self._training.optimizer.state
        with torch.no_grad():
            for parameter, value, memory in zip(self._training.trained, place.parameters, place.memories, strict=True):
                parameter.copy_(value)
                if memory:
                    for name, remembered in memory.items():
                        kept[parameter][name].copy_(remembered)
                else:  # it had never been trained
                    kept.pop(parameter, None)
        self._random = place.random.clone()

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Train with random numbers of its own, which nobody else draws from."""
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            yield
            self._random = torch.get_rng_state()

    def _batches(
        self, lengths: IntArray, trained: IntArray, size: int, seed: int
    ) -> Iterator[tuple[IntArray, list[str]]]:
        """The steps of a fit, epoch after epoch."""
        present = {task: there[trained] for task, there in self.objective.examples.present.items()}
        for epoch in count(1):
            for batch, tasks in joint_steps(present, lengths, size, seed, epoch):
                if tasks:
                    yield trained[batch], tasks

    # -- looking ---------------------------------------------------------------------------------------------------
    def loss(self, items: IntArray, task: str) -> float:
        """The loss of a task on items that are labelled for it, at the temperature that suits them best.

        So a model is not found better because it became less sure of all that it says, or worse because it became
        surer.
        """
        head, outputs = self.model.head(task), list[tuple[Any, Ragged]]()
        self.model.eval()
        with torch.inference_mode():
            for part in _parts(items):
                encoded = self.objective.encode(part, [task])[task]
                output = head(encoded, self.objective.examples.spans_of(task, part))
                outputs.append((output, self.objective.examples.targets[task].take(part)))
            at = partial(scaled_loss, head, outputs)
            return at(fit_temperature(at, HALVINGS))

    def score(self, items: IntArray, task: str) -> float:
        """The task's main score on items that are labelled for it."""
        kind, labels = self.model.tasks[task], self.items.labels[task].rows
        tally = kind.tally(labels.take(items), self._guess(items, task))
        return float(kind.score(tally.sum(axis=0)))

    def gradient(self, items: IntArray, task: str) -> Tensor:
        """The slope of a task's loss on items that are labelled for it, by all parameters that tasks share."""
        self.model.eval()
        total = torch.zeros(sum(parameter.numel() for parameter in self.shared))
        for part in _parts(items):
            [loss] = self.objective.losses(part, [task])
            slopes = torch.autograd.grad(loss, self.shared, materialize_grads=True)
            total += torch.cat([slope.flatten() for slope in slopes]) * (len(part) / len(items))
        return total


def _parts(items: IntArray) -> list[IntArray]:
    return [items[at : at + ITEMS_AT_ONCE] for at in range(0, len(items), ITEMS_AT_ONCE)]
