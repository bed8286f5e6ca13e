"""The training loop: batches that depend on the seed alone, early stopping, the best model kept, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from bursar.curriculum import Policy
from bursar.errors import CheckpointError, ConfigError, LearnerError
from bursar.learners.learner import FitReport, Progress
from bursar.ragged import BoolArray, IntArray


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train. Defaults were chosen on development data."""

    epochs: int = 30
    steps: int | None = None  # about so many steps, however many items there are, instead of epochs
    batch_size: int = 16
    learning_rate: float = 3e-4
    head_learning_rate: float = 3e-3
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps during which the learning rate grows
    decay: bool = True  # and shrinks to nothing afterwards
    clip: float = 1.0
    patience: int = 6  # evaluations without a better score before training stops
    evaluate_every: int = 2  # epochs; an eighth of them where steps are given
    checkpoint_seconds: float = 30.0  # how much work a crash may cost, where a checkpoint is asked for

    def __post_init__(self) -> None:
        check_numbers(
            self,
            {
                "epochs": (1, 100_000),
                "batch_size": (1, 100_000),
                "learning_rate": (0, 1),
                "head_learning_rate": (0, 1),
                "weight_decay": (0, 1),
                "warmup": (0, 1),
                "clip": (0, 1e9),
                "patience": (1, 100_000),
                "evaluate_every": (1, 100_000),
                "checkpoint_seconds": (0, 1e9),
            },
        )
        if self.steps is not None:
            check_numbers(self, {"steps": (1, 10_000_000)})

    def in_epochs(self, steps_an_epoch: int) -> tuple[int, int]:
        """How many epochs to train, and after how many of them each to evaluate.

        >>> Schedule(steps=100).in_epochs(7), Schedule(steps=100).in_epochs(50), Schedule().in_epochs(50)
        ((15, 2), (2, 1), (30, 2))
        """
        if self.steps is None:
            return self.epochs, self.evaluate_every
        epochs = -(-self.steps // steps_an_epoch)
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
    """Where a training is, apart from the model, the optimiser and the random numbers of dropout."""

    epoch: int = 1
    batch: int = 0  # batches of this epoch that are done
    step: int = 0
    total: float = 0.0  # this epoch's loss so far
    stale: int = 0
    best_score: tuple[float, float] = (-1.0, -1.0)
    history: list[dict[str, float]] = field(default_factory=list)
    observed: list[tuple[str, float]] = field(default_factory=list)  # for the policy: task and loss of every step


def train(
    model: nn.Module,
    losses: Callable[[IntArray, Sequence[str]], list[Tensor]],
    present: Mapping[str, BoolArray],
    *,
    lengths: IntArray,
    schedule: Schedule,
    seed: int,
    score: Callable[[], tuple[float, float]] | None,
    policy: Policy | None,
    checkpoint: Checkpoint | None,
    progress: Progress,
) -> FitReport:
    """Train until the epochs or the patience end, then go back to the best state seen.

    ``losses`` gives the mean loss of each task that it is asked for over the items that have its label, ``present``
    who has one. Without a policy a step trains every task that its batch has labels for; with one, the task that the
    policy draws, on a batch of that task's items. ``score`` gives the geometric and the arithmetic mean of the tasks'
    scores: the second decides while a task that still scores nothing holds the first at 0.
    """
    items = len(lengths)
    steps_an_epoch = -(-items // schedule.batch_size)
    trained = [p for p in model.parameters() if p.requires_grad]
    epochs, evaluate_every = schedule.in_epochs(steps_an_epoch)
    optimizer, rates = _optimizer(model, schedule, steps=epochs * steps_an_epoch)
    now, best = _State(), None
    if checkpoint is not None and (saved := checkpoint.load()) is not None:
        if policy is not None:
            for step, (task, before) in enumerate(saved["observed"]):
                policy.observe(task, before, None, step)
        if "report" in saved:  # it was finished, only what came after it was not
            model.load_state_dict(saved["model"], strict=False)
            model.eval()
            return FitReport(**saved["report"])
        now, best = _State(**saved["state"]), saved["best"]
        model.load_state_dict(saved["model"], strict=False)
        optimizer.load_state_dict(saved["optimizer"])
        rates.load_state_dict(saved["rates"])
        torch.set_rng_state(saved["random"])

    def keep() -> None:
        if checkpoint is not None and checkpoint.is_due():
            checkpoint.save(
                {
                    "state": asdict(now),
                    "observed": now.observed,
                    "best": best,
                    "model": _trained_state(model),
                    "optimizer": optimizer.state_dict(),
                    "rates": rates.state_dict(),
                    "random": torch.get_rng_state(),
                }
            )

    while now.epoch <= epochs:
        model.train()
        for batch, chosen in _steps(present, lengths, schedule.batch_size, seed, policy, now):
            if chosen:
                loss = torch.stack(losses(batch, chosen)).sum()
                if not torch.isfinite(loss):
                    raise LearnerError(
                        f"the loss is not a number at step {now.step}", fix="lower learner.learning_rate"
                    )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(trained, schedule.clip)
                optimizer.step()
                rates.step()
                now.total += loss.item()
                if policy is not None:
                    policy.observe(chosen[0], loss.item(), None, now.step)
                    now.observed.append((chosen[0], loss.item()))
                now.step += 1
            now.batch += 1
            progress("training", min((now.epoch - 1 + now.batch / steps_an_epoch) / epochs, 0.999))
            keep()
        now.history.append({"epoch": now.epoch, "loss": now.total})
        if score is not None and (now.epoch % evaluate_every == 0 or now.epoch == epochs):
            reached = score()
            now.history[-1]["score"] = reached[0]
            if reached > now.best_score:
                now.best_score, now.stale, best = reached, 0, _trained_state(model)
            else:
                now.stale += 1
        now.epoch, now.batch, now.total = now.epoch + 1, 0, 0.0
        if now.stale >= schedule.patience:
            break
        keep()
    if best is not None:
        model.load_state_dict(best, strict=False)
    model.eval()
    progress("training", 1.0)
    best_score = now.best_score[0] if score is not None else None
    report = FitReport(items, now.step, best_score, tuple(now.history))
    if checkpoint is not None and checkpoint.is_worth_it():
        checkpoint.save({"report": asdict(report), "observed": now.observed, "model": _trained_state(model)})
    return report


def _steps(
    present: Mapping[str, BoolArray],
    lengths: IntArray,
    size: int,
    seed: int,
    policy: Policy | None,
    now: _State,
) -> Iterator[tuple[IntArray, list[str]]]:
    """The batches of this epoch that are still to be done, each with the tasks to train on it.

    Every batch is drawn from the seed and its place alone, so a training that was stopped can be taken up anywhere.
    """
    if policy is None:
        cuts = batches(lengths, size, np.random.default_rng([seed, now.epoch]))
        for batch in cuts[now.batch :]:
            yield batch, [name for name, there in present.items() if there[batch].any()]
        return
    tasks = [name for name, there in present.items() if there.any()]
    members = {name: np.flatnonzero(present[name]) for name in tasks}
    done = dict.fromkeys(tasks, 0)  # steps that each task has had
    for task, _ in now.observed:
        done[task] += 1
    for _ in range(now.batch, -(-len(lengths) // size)):
        chances = policy.probabilities(tasks, now.step)
        task = tasks[int(np.random.default_rng([seed, now.step, 1]).choice(len(tasks), p=chances))]
        cycle, at = divmod(done[task], -(-len(members[task]) // size))
        rng = np.random.default_rng([seed, crc32(task.encode()), cycle, 2])
        done[task] += 1
        yield members[task][batches(lengths[members[task]], size, rng)[at]], [task]


def batches(lengths: IntArray, size: int, rng: np.random.Generator) -> list[IntArray]:
    """Shuffled batches of items of like length: shuffle, sort within stretches of eight batches, shuffle batches."""
    order = rng.permutation(len(lengths))
    stretch = size * 8
    for at in range(0, len(order), stretch):
        part = order[at : at + stretch]
        order[at : at + stretch] = part[np.argsort(lengths[part], kind="stable")]
    cuts = [order[at : at + size] for at in range(0, len(order), size)]
    return [cuts[i] for i in rng.permutation(len(cuts))]


def _trained_state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}


def _optimizer(
    model: nn.Module, schedule: Schedule, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW, faster for what starts from nothing (heads and gates) than for the encoder, with warm-up and decay."""
    groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[name.startswith(("heads.", "gates."))].append(parameter)
    rates = {False: schedule.learning_rate, True: schedule.head_learning_rate}
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "lr": rates[new]} for new, parameters in groups.items() if parameters],
        weight_decay=schedule.weight_decay,
        fused=True,
    )
    warm = max(1, int(schedule.warmup * steps))

    def factor(step: int) -> float:
        falling = max(0.0, (steps - step) / max(1, steps - warm)) if schedule.decay else 1.0
        return min((step + 1) / warm, falling)

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


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
