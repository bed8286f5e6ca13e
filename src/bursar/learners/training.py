"""The training loop: batches that depend on the seed alone, early stopping, the best model kept, resumable."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bursar.curriculum import Policy
from bursar.errors import CheckpointError, ConfigError, LearnerError
from bursar.learners.examples import Objective
from bursar.learners.learner import FitReport, Progress
from bursar.learners.steps import Steered, joint_steps
from bursar.ragged import IntArray

EPOCHS, LEAST_STEPS = 12, 250  # where the settings name neither epochs nor steps
READS_NO_CODE = (2, 6)  # the first torch whose ``weights_only`` holds what it says (CVE-2025-32434)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train. Defaults were chosen on development data."""

    epochs: int | None = None  # 12 if neither epochs nor steps are given, and more up to a floor on updates
    steps: int | None = None  # about this many steps, however many items there are, instead of epochs
    least_steps: int | None = None  # the floor: 250, or none where epochs are given
    batch_size: int = 16
    learning_rate: float = 3e-4
    head_learning_rate: float = 3e-3
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps during which the learning rate grows
    decay: bool = True  # and shrinks to nothing afterwards
    clip: float = 1.0
    layer_decay: float = 1.0  # a layer's learning rate over that of the layer above it
    average: float = 0.0  # share of the steps, the last ones, whose weights are averaged: no better than the decay
    patience: int = 6  # evaluations without a better score before training stops
    evaluate_every: int = 2  # epochs; an eighth of them where steps are given
    checkpoint_seconds: float = 30.0  # how much work a crash may cost, where a checkpoint is asked for

    def __post_init__(self) -> None:
        check_numbers(
            self,
            {
                "batch_size": (1, 100_000),
                "learning_rate": (0, 1),
                "head_learning_rate": (0, 1),
                "weight_decay": (0, 1),
                "warmup": (0, 1),
                "clip": (0, 1e9),
                "layer_decay": (0, 1),
                "average": (0, 1),
                "patience": (1, 100_000),
                "evaluate_every": (1, 100_000),
                "checkpoint_seconds": (0, 1e9),
            },
        )
        optional = {"epochs": (1, 100_000), "steps": (1, 10_000_000), "least_steps": (0, 10_000_000)}
        check_numbers(self, {name: ends for name, ends in optional.items() if getattr(self, name) is not None})

    def epoch_of(self, items: int, *, steered: bool) -> int:
        """How many steps an epoch has: as many as see every item once.

        Steps that a policy leads go through each task at its own pace, so where their number is given, an epoch is
        just an eighth of it.

        >>> Schedule(steps=1000).epoch_of(90_000, steered=True), Schedule(steps=1000).epoch_of(90_000, steered=False)
        (125, 5625)
        """
        if steered and self.steps is not None:
            return -(-self.steps // 8)
        return -(-items // self.batch_size)

    def in_epochs(self, steps_an_epoch: int) -> tuple[int, int]:
        """How many epochs to train, and after how many of them each to evaluate.

        Few labels need as many updates as many labels do (Zhang et al. 2021), so there is a floor on them.

        >>> Schedule(steps=100).in_epochs(7), Schedule(steps=100).in_epochs(50), Schedule(epochs=30).in_epochs(3)
        ((15, 2), (2, 1), (30, 2))
        >>> Schedule().in_epochs(4), Schedule().in_epochs(50), Schedule(epochs=30, least_steps=300).in_epochs(3)
        ((63, 8), (12, 2), (100, 13))
        """
        epochs = self.epochs or EPOCHS
        floor = self.least_steps if self.least_steps is not None else 0 if self.epochs else LEAST_STEPS
        wanted = self.steps or floor
        if self.steps is None and epochs * steps_an_epoch >= wanted:
            return epochs, self.evaluate_every
        epochs = -(-wanted // steps_an_epoch)
        return epochs, max(1, -(-epochs // 8))


def check_numbers(settings: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Numbers of the right sort in their ranges, or an error that names the setting."""
    whole = {f.name for f in fields(settings) if str(f.type).startswith("int")}
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        kind = int if name in whole else int | float
        if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
            what = "whole number" if name in whole else "number"
            raise ConfigError(f"learner.{name} = {value!r}", fix=f"use a {what} from {low} to {high:,}")


@dataclass(eq=False)
class _State:
    """Where a training is, apart from the model, the optimiser, the random numbers of dropout and the policy."""

    epoch: int = 1
    batch: int = 0  # batches of this epoch that are done
    step: int = 0
    total: float = 0.0  # this epoch's loss so far
    stale: int = 0
    best_score: tuple[float, float] = (-1.0, -1.0)
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    model: nn.Module,
    objective: Objective,
    *,
    lengths: IntArray,
    schedule: Schedule,
    seed: int,
    score: Callable[[], tuple[float, float]] | None,
    policy: Policy | None,
    checkpoint: Checkpoint | None,
    log: Path | None,
    progress: Progress,
) -> FitReport:
    """Train until the epochs or the patience end, then go back to the best state seen.

    Without a policy a step trains every task that its batch has labels for; with one, the task that the policy draws,
    on a batch of that task's items, and ``log`` is where all such steps are written to. ``score`` gives the geometric
    and the arithmetic mean of the tasks' scores: the second decides while a task that still scores nothing holds the
    first at 0.
    """
    training = Training(model, objective, lengths, schedule, seed, policy, checkpoint)
    report = training.resumed() or training.run(score, progress)
    model.eval()
    progress("training", 1.0)
    if log is not None and training.steered is not None:
        training.steered.log().write(log)
    return report


class Training:
    """A training on its way: the model and all that changes with it."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        lengths: IntArray,
        schedule: Schedule,
        seed: int,
        policy: Policy | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.model, self.objective, self.schedule, self.checkpoint = model, objective, schedule, checkpoint
        self.lengths, self.seed, self.present = lengths, seed, objective.examples.present
        self.steps_an_epoch = schedule.epoch_of(len(lengths), steered=policy is not None)
        self.epochs, self.evaluate_every = schedule.in_epochs(self.steps_an_epoch)
        steps = self.epochs * self.steps_an_epoch
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer, self.rates = _optimizer(model, schedule, steps=steps)
        self.now, self.best = _State(), dict[str, Tensor]()
        self.average = (
            Average(self.trained, first=steps - round(schedule.average * steps)) if schedule.average else None
        )
        self.steered: Steered | None = None
        if policy is not None:
            size = schedule.batch_size
            self.steered = Steered(policy, self.present, lengths, size=size, seed=seed, steps=steps)

    # -- from epoch to epoch -------------------------------------------------------------------------------------------
    def run(self, score: Callable[[], tuple[float, float]] | None, progress: Progress) -> FitReport:
        """To the end, from wherever it is."""
        now = self.now
        while now.epoch <= self.epochs:
            self._epoch(progress)
            now.history.append({"epoch": now.epoch, "step": now.step, "loss": now.total})
            if score is not None and (now.epoch % self.evaluate_every == 0 or now.epoch == self.epochs):
                reached = score()
                now.history[-1] |= {"score": reached[0], "mean": reached[1]}
                if reached > now.best_score:
                    now.best_score, now.stale, self.best = reached, 0, _trained_state(self.model)
                else:
                    now.stale += 1
            now.epoch, now.batch, now.total = now.epoch + 1, 0, 0.0
            if now.stale >= self.schedule.patience:
                break
            self._keep()
        self._finish(score)
        best_score = now.best_score[0] if score is not None else None
        report = FitReport(len(self.lengths), now.step, best_score, tuple(now.history))
        if self.checkpoint is not None and self.checkpoint.is_worth_it():
            kept = {"report": asdict(report), "steps": self._steps_so_far(), "model": _trained_state(self.model)}
            self.checkpoint.save(kept)
        return report

    def _finish(self, score: Callable[[], tuple[float, float]] | None) -> None:
        """Put the model's best weights in place: the average, unless an evaluation on the way was better."""
        now = self.now
        if self.average is not None and self.average.weights:
            self.average.put()
            reached = score() if score is not None else None
            if reached is None or reached >= now.best_score:
                now.best_score = reached or now.best_score
                return
        if self.best:
            self.model.load_state_dict(self.best, strict=False)

    def _epoch(self, progress: Progress) -> None:
        now, size = self.now, self.schedule.batch_size
        self.model.train()
        joint = [] if self.steered else list(joint_steps(self.present, self.lengths, size, self.seed, now.epoch))
        while now.batch < self.steps_an_epoch:
            if self.steered is not None:
                self._steered_step(self.steered)
            elif joint[now.batch][1]:
                self.joint_step(*joint[now.batch])
            now.batch += 1
            progress("training", min((now.epoch - 1 + now.batch / self.steps_an_epoch) / self.epochs, 0.999))
            self._keep()

    # -- a step --------------------------------------------------------------------------------------------------------
    def joint_step(self, batch: IntArray, tasks: list[str]) -> None:
        """Train all tasks that the batch has labels for."""
        parts = self.objective.losses(batch, tasks)
        loss = torch.stack(parts).sum()
        if not torch.isfinite(loss):
            for task, part in zip(tasks, parts, strict=True):
                self.check(task, part.item())
            self.check(" and ".join(tasks), loss.item())
        self._learn(loss)
        self.now.step += 1

    def _steered_step(self, steered: Steered) -> None:
        """Train the task that the policy draws, and tell the policy what came of it."""
        batch, task = steered.next()
        random = torch.get_rng_state() if steered.needs_after else None
        loss, before = self.objective.loss_and_surprise(batch, task)
        self.check(task, loss.item())
        self.check(task, before)
        self._learn(loss)
        after = None
        if random is not None:
            with torch.random.fork_rng(devices=[]):  # the dropout of before the step; nothing else hears of it
                torch.set_rng_state(random)
                after = self.objective.surprise(batch, task)
            self.check(task, after)
        steered.observe(max(before, 0.0), None if after is None else max(after, 0.0))  # rounding may fall below 0
        self.now.step += 1

    def check(self, task: str, loss: float) -> None:
        """Refuse to go on from a loss that is not a number; what is on disk of the training stays as it was."""
        if not np.isfinite(loss):
            step = self.now.step
            raise LearnerError(f"step {step}: the loss of task {task!r} is {loss}", fix="lower learner.learning_rate")

    def _learn(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained, self.schedule.clip)
        self.optimizer.step()
        self.rates.step()
        self.now.total += loss.item()
        if self.average is not None:
            self.average.add(self.now.step)

    # -- kept and taken up again ---------------------------------------------------------------------------------------
    def _keep(self) -> None:
        if self.checkpoint is not None and self.checkpoint.is_due():
            self.checkpoint.save(
                {
                    "state": asdict(self.now),
                    "steps": self._steps_so_far(),
                    "best": self.best or None,
                    "model": _trained_state(self.model),
                    "optimizer": self.optimizer.state_dict(),
                    "rates": self.rates.state_dict(),
                    "random": torch.get_rng_state(),
                    "average": self.average.weights if self.average is not None else None,
                }
            )

    def _steps_so_far(self) -> dict[str, Any] | None:
        return self.steered.state() if self.steered is not None else None

    def resumed(self) -> FitReport | None:
        """Go to where the checkpoint is, if there is one; the report of a training that was finished there."""
        saved = self.checkpoint.load() if self.checkpoint is not None else None
        if saved is None:
            return None
        if self.steered is not None:
            self.steered.replay(saved["steps"])
        self.model.load_state_dict(saved["model"], strict=False)
        if "report" in saved:  # only what came after it was not finished
            return FitReport(**saved["report"])
        known = {f.name for f in fields(_State)}
        self.now = _State(**{name: value for name, value in saved["state"].items() if name in known})
        self.best = saved["best"] or {}
        self.optimizer.load_state_dict(saved["optimizer"])
        self.rates.load_state_dict(saved["rates"])
        torch.set_rng_state(saved["random"])
        if self.average is not None:
            self.average.weights = saved["average"]
        return None


class Average:
    """The mean of the weights after each step from a first one on.

    A model that is trained on few items jumps from step to step; the mean of its last weights does not (Izmailov et al.
    2018), and needs no development items to be chosen by.

    >>> weight = nn.Parameter(torch.tensor([0.0]))
    >>> average = Average([weight], first=1)
    >>> for step, value in enumerate([9.0, 1.0, 2.0]):
    ...     _ = weight.data.fill_(value)
    ...     average.add(step)
    >>> average.put(); weight.item()
    1.5
    """

    def __init__(self, parameters: Sequence[nn.Parameter], first: int) -> None:
        self.parameters, self.first = list(parameters), first
        self.weights: list[Tensor] = []

    def add(self, step: int) -> None:
        """Take in the weights as they are after this step, counted from 0."""
        if step < self.first:
            return
        now = [p.detach() for p in self.parameters]
        if not self.weights:
            self.weights = [p.clone() for p in now]
        else:
            torch._foreach_lerp_(self.weights, now, 1 / (step - self.first + 1))

    def put(self) -> None:
        """Give the parameters their mean."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.weights, strict=True):
                parameter.copy_(mean)


def _trained_state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}


def _optimizer(
    model: nn.Module, schedule: Schedule, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW, faster for what starts from nothing (heads and gates) than for the encoder, with warm-up and decay."""
    groups: dict[float, list[nn.Parameter]] = {}
    depth = getattr(getattr(model, "encoder", None), "depth", 0)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(_rate(name, schedule, depth), []).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "lr": rate} for rate, parameters in groups.items()],
        weight_decay=schedule.weight_decay,
        fused=True,
    )
    factor = falling(steps, schedule.warmup, decay=schedule.decay)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def falling(steps: int, warmup: float, *, decay: bool = True) -> Callable[[int], float]:
    """A step to the share of the learning rate it has: all of it after a share of the steps, and falling from there.

    >>> share = falling(10, 0.2)
    >>> [round(share(step), 3) for step in (0, 1, 2, 6, 10)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    warm = max(1, int(warmup * steps))

    def factor(step: int) -> float:
        left = max(0.0, (steps - step) / max(1, steps - warm)) if decay else 1.0
        return min((step + 1) / warm, left)

    return factor


def _rate(name: str, schedule: Schedule, depth: int) -> float:
    """The learning rate of a parameter by its name: lower layers of an encoder of this depth may be slower."""
    if name.startswith(("heads.", "gates.")):
        return schedule.head_learning_rate
    layer = re.search(r"layers\.(\d+)\.", name)
    below = depth - 1 - int(layer.group(1)) if layer is not None and name.startswith("encoder.") else 0
    return schedule.learning_rate * schedule.layer_decay**below


class Checkpoint:
    """A file that a training writes its state to every so many seconds, and is taken up from.

    ``about`` says which training it is: a file of another one is refused, and so is a damaged one.
    """

    def __init__(self, file: Path, about: str, seconds: float) -> None:
        self.file, self.about, self.seconds = file, about, seconds
        self._begun = self._last = time.monotonic()

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self.seconds

    def is_worth_it(self) -> bool:
        """Whether the training took so long that its result should not be lost either."""
        return time.monotonic() - self._begun >= self.seconds

    def save(self, state: dict[str, Any]) -> None:
        """Whole or not at all: written beside the old one, then put in its place."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_name(self.file.name + ".new")
        with open(beside, "wb") as file:
            torch.save(state | {"about": self.about}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.file)
        self._last = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """What was saved, or nothing if nothing was."""
        if not self.file.exists():
            return None
        if tuple(map(int, torch.__version__.split(".")[:2])) < READS_NO_CODE:
            raise CheckpointError(
                f"the checkpoint {self.file} is not read: torch {torch.__version__} may run code from such a file",
                fix="install torch 2.6 or newer, or delete the file to train from the start",
            )
        try:
            saved: dict[str, Any] = torch.load(self.file, weights_only=True)
            about = saved.pop("about")
        except Exception as wrong:  # whatever a damaged file may raise
            reason = str(wrong).splitlines()[0] if str(wrong) else type(wrong).__name__
            raise CheckpointError(
                f"the checkpoint {self.file} is damaged: {reason}", fix="delete it to train from the start"
            ) from None
        if about != self.about:
            raise CheckpointError(
                f"the checkpoint {self.file} is of another training: other items, tasks, settings or seed",
                fix="delete it to train from the start",
            )
        return saved

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)
