"""The optimiser and the training loop: early stopping, best model kept, resumable. Batches depend on the seed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bursar.corpus.formats.format import replacing_bytes
from bursar.errors import CheckpointError, LearnerError
from bursar.learners.examples import TaskLosses
from bursar.learners.learner import FitReport, Progress
from bursar.learners.settings import Schedule, TrainingPlan
from bursar.learners.sharing import SharedModel
from bursar.learners.steps import PolicySteps, joint_steps
from bursar.ragged import IntArray

SAFE_TORCH = (2, 6)  # first version in which ``weights_only`` is safe (CVE-2025-32434)


# -- checkpoints -------------------------------------------------------------------------------------------------------
class Checkpoint:
    """A file that a training saves its state to at most every ``seconds``.

    ``about`` identifies the training. A damaged file, or one of another training, is refused.
    """

    def __init__(self, file: Path, about: str, seconds: float) -> None:
        self.file, self.about, self.seconds = file, about, seconds
        self._begun = self._last = time.monotonic()

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self.seconds

    def is_worth_it(self) -> bool:
        """Whether the training took long enough for its result to be saved too."""
        return time.monotonic() - self._begun >= self.seconds

    def save(self, state: dict[str, Any]) -> None:
        """Write the state, whole or not at all: a crash leaves the one before."""
        with replacing_bytes(self.file) as file:
            torch.save(state | {"about": self.about}, file)
        self._last = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """The saved state; ``None`` if there is no file."""
        if not self.file.exists():
            return None
        if tuple(map(int, torch.__version__.split(".")[:2])) < SAFE_TORCH:
            why = f"not read: torch {torch.__version__} may run code from such a file"
            raise self._refused(why, "install torch 2.6 or newer, or delete the file to train from the start")
        try:
            saved: dict[str, Any] = torch.load(self.file, weights_only=True)
            about = saved.pop("about")
        except Exception as wrong:  # a damaged file can raise anything
            reason = str(wrong).splitlines()[0] if str(wrong) else type(wrong).__name__
            raise self._refused(f"damaged: {reason}") from None
        if about != self.about:
            raise self._refused("of another training: other items, tasks, settings or seed")
        return saved

    def _refused(self, why: str, fix: str = "delete it to train from the start") -> CheckpointError:
        return CheckpointError(f"the checkpoint {self.file} is {why}", fix=fix)

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)


def trained_weights(module: nn.Module) -> dict[str, Tensor]:
    """Copies of the parameters that are trained."""
    return {name: value.detach().clone() for name, value in module.named_parameters() if value.requires_grad}


# -- the optimiser -----------------------------------------------------------------------------------------------------
def make_optimizer(
    model: SharedModel, schedule: Schedule, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with warm-up and decay. Heads and gates start untrained and have a higher rate than the encoder."""
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(_rate(name, schedule, model.encoder.depth), []).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "lr": rate} for rate, parameters in groups.items()],
        weight_decay=schedule.weight_decay,
        fused=True,
    )
    factor = rate_factor(steps, schedule.warmup, decay=schedule.decay)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def rate_factor(steps: int, warmup: float, *, decay: bool = True) -> Callable[[int], float]:
    """The factor of the learning rate at each step: a linear rise to 1, then a linear decay to 0."""
    warm = max(1, int(warmup * steps))

    def factor(step: int) -> float:
        left = max(0.0, (steps - step) / max(1, steps - warm)) if decay else 1.0
        return min((step + 1) / warm, left)

    return factor


def _rate(name: str, schedule: Schedule, depth: int) -> float:
    if name.startswith(("heads.", "gates.")):
        return schedule.head_learning_rate
    layer = re.search(r"layers\.(\d+)\.", name)
    below = depth - 1 - int(layer.group(1)) if layer is not None and name.startswith("encoder.") else 0
    return schedule.learning_rate * schedule.layer_decay**below


class WeightAverage:
    """The running mean of the weights after each step, from step ``first`` on.

    With few items the weights jump from step to step; their mean does not, and choosing it takes no development items
    (Izmailov et al. 2018).
    """

    def __init__(self, parameters: Sequence[nn.Parameter], first: int) -> None:
        self.parameters, self.first = list(parameters), first
        self.weights: list[Tensor] = []

    def add(self, step: int) -> None:
        """Add the weights as they are after this step, counted from 0."""
        if step < self.first:
            return
        now = [p.detach() for p in self.parameters]
        if not self.weights:
            self.weights = [p.clone() for p in now]
        else:
            torch._foreach_lerp_(self.weights, now, 1 / (step - self.first + 1))

    def apply(self) -> None:
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.weights, strict=True):
                parameter.copy_(mean)


# Geometric and arithmetic mean of the tasks' scores. The second decides while a task scores 0 and so the first is 0.
DevScore = Callable[[], tuple[float, float]]


@dataclass(eq=False)
class _State:
    """The progress of a training, apart from model, optimiser, random state and policy."""

    epoch: int = 1
    batch: int = 0  # finished batches of this epoch
    step: int = 0
    total: float = 0.0  # sum of this epoch's losses
    stale: int = 0  # evaluations since the best one
    best_score: tuple[float, float] = (-1.0, -1.0)
    history: list[dict[str, float]] = field(default_factory=list)


class Training:
    """One training of a model, and all state that changes with it.

    Without a policy a step trains every task that its batch has labels for. With one, it trains the task that the
    policy draws, on a batch of that task's items. ``lengths`` are the sizes of the items to train on.
    """

    def __init__(
        self, losses: TaskLosses, lengths: IntArray, plan: TrainingPlan, checkpoint: Checkpoint | None = None
    ) -> None:
        schedule = plan.schedule
        self.model, self.losses, self.plan, self.checkpoint = losses.model, losses, plan, checkpoint
        self.schedule, self.lengths, self.present = schedule, lengths, losses.present
        self.steps_per_epoch = schedule.steps_per_epoch(len(lengths), by_policy=plan.policy is not None)
        self.epochs, self.evaluate_every = schedule.in_epochs(self.steps_per_epoch)
        steps = self.epochs * self.steps_per_epoch
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer, self.rates = make_optimizer(self.model, schedule, steps=steps)
        self.now, self.best = _State(), dict[str, Tensor]()
        self.average: WeightAverage | None = None
        if schedule.average:
            self.average = WeightAverage(self.trained, first=steps - round(schedule.average * steps))
        self.policy_steps: PolicySteps | None = None
        if plan.policy is not None:
            self.policy_steps = PolicySteps(plan.policy, self.present, lengths, plan, steps)

    def run(self, score: DevScore | None, progress: Progress) -> FitReport:
        """Train to the end, or from the checkpoint on; leave the model in its best state."""
        report = self._resume() or self._train(score, progress)
        self.model.eval()
        progress("training", 1.0)
        return report

    def write_log(self, file: Path) -> None:
        if self.policy_steps is not None:
            self.policy_steps.log().write(file)

    # -- epochs --------------------------------------------------------------------------------------------------------
    def _train(self, score: DevScore | None, progress: Progress) -> FitReport:
        now = self.now
        while now.epoch <= self.epochs:
            self._epoch(progress)
            now.history.append({"epoch": now.epoch, "step": now.step, "loss": now.total})
            if score is not None and (now.epoch % self.evaluate_every == 0 or now.epoch == self.epochs):
                self._evaluate(score)
            now.epoch, now.batch, now.total = now.epoch + 1, 0, 0.0
            if now.stale >= self.schedule.patience:
                break
            self._save_if_due()
        self._restore_best(score)
        best_score = now.best_score[0] if score is not None else None
        report = FitReport(len(self.lengths), now.step, best_score, tuple(now.history))
        if self.checkpoint is not None and self.checkpoint.is_worth_it():
            kept = {"report": asdict(report), "steps": self._policy_state(), "model": trained_weights(self.model)}
            self.checkpoint.save(kept)
        return report

    def _evaluate(self, score: DevScore) -> None:
        now, reached = self.now, score()
        now.history[-1] |= {"score": reached[0], "mean": reached[1]}
        if reached > now.best_score:
            now.best_score, now.stale, self.best = reached, 0, trained_weights(self.model)
        else:
            now.stale += 1

    def _restore_best(self, score: DevScore | None) -> None:
        """Give the model its best weights: the average, unless an earlier evaluation was better."""
        now = self.now
        if self.average is not None and self.average.weights:
            self.average.apply()
            reached = score() if score is not None else None
            if reached is None or reached >= now.best_score:
                now.best_score = reached or now.best_score
                return
        if self.best:
            self.model.load_state_dict(self.best, strict=False)

    def _epoch(self, progress: Progress) -> None:
        now, size = self.now, self.schedule.batch_size
        self.model.train()
        joint = []
        if self.policy_steps is None:
            joint = list(joint_steps(self.present, self.lengths, size, self.plan.seed, now.epoch))
        while now.batch < self.steps_per_epoch:
            if self.policy_steps is not None:
                self._policy_step(self.policy_steps)
            elif joint[now.batch][1]:
                self.joint_step(*joint[now.batch])
            now.batch += 1
            progress("training", min((now.epoch - 1 + now.batch / self.steps_per_epoch) / self.epochs, 0.999))
            self._save_if_due()

    # -- steps ---------------------------------------------------------------------------------------------------------
    def joint_step(self, batch: IntArray, tasks: list[str]) -> None:
        """Train all tasks that the batch has labels for."""
        parts = self.losses.losses(batch, tasks)
        loss = torch.stack(parts).sum()
        if not torch.isfinite(loss):
            for task, part in zip(tasks, parts, strict=True):
                self.check(task, part.item())
            self.check(" and ".join(tasks), loss.item())
        self._update(loss)
        self.now.step += 1

    def _policy_step(self, steps: PolicySteps) -> None:
        """Train the task that the policy draws, and report the losses to the policy."""
        batch, task = steps.next()
        random = torch.get_rng_state() if steps.needs_after else None
        loss, before = self.losses.loss_and_nll(batch, task)
        self.check(task, loss.item())
        self.check(task, before)
        self._update(loss)
        after = None
        if random is not None:
            with torch.random.fork_rng(devices=[]):  # the same dropout as before the step
                torch.set_rng_state(random)
                after = self.losses.nll(batch, task)
            self.check(task, after)
        steps.observe(max(before, 0.0), None if after is None else max(after, 0.0))  # rounding can give less than 0
        self.now.step += 1

    def check(self, task: str, loss: float) -> None:
        """Stop at a loss that is not finite; the last checkpoint stays on disk."""
        if not np.isfinite(loss):
            step = self.now.step
            raise LearnerError(f"step {step}: the loss of task {task!r} is {loss}", fix="lower learner.learning_rate")

    def _update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained, self.schedule.clip)
        self.optimizer.step()
        self.rates.step()
        self.now.total += loss.item()
        if self.average is not None:
            self.average.add(self.now.step)

    # -- checkpoints ---------------------------------------------------------------------------------------------------
    def _save_if_due(self) -> None:
        if self.checkpoint is not None and self.checkpoint.is_due():
            self.checkpoint.save(
                {
                    "state": asdict(self.now),
                    "steps": self._policy_state(),
                    "best": self.best or None,
                    "model": trained_weights(self.model),
                    "optimizer": self.optimizer.state_dict(),
                    "rates": self.rates.state_dict(),
                    "random": torch.get_rng_state(),
                    "average": self.average.weights if self.average is not None else None,
                }
            )

    def _policy_state(self) -> dict[str, Any] | None:
        return self.policy_steps.state() if self.policy_steps is not None else None

    def _resume(self) -> FitReport | None:
        """Load the checkpoint, if there is one; the report if the training was already finished."""
        saved = self.checkpoint.load() if self.checkpoint is not None else None
        if saved is None:
            return None
        if self.policy_steps is not None:
            self.policy_steps.replay(saved["steps"])
        self.model.load_state_dict(saved["model"], strict=False)
        if "report" in saved:
            return FitReport(**saved["report"])
        self.now = _State(**saved["state"])
        self.best = saved["best"] or {}
        self.optimizer.load_state_dict(saved["optimizer"])
        self.rates.load_state_dict(saved["rates"])
        torch.set_rng_state(saved["random"])
        if self.average is not None:
            self.average.weights = saved["average"]
        return None
