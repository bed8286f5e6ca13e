"""The training loop: batches in an order that depends on the seed alone, early stopping, the best model kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.curriculum import Policy
from bursar.errors import LearnerError
from bursar.learners.learner import FitReport, Progress
from bursar.ragged import BoolArray, IntArray, Ragged, offsets_of
from bursar.tasks import Task

if TYPE_CHECKING:
    from bursar.learners.transformer import Settings


@dataclass(frozen=True, eq=False)
class Examples:
    """The training targets of annotated items, per task: the label code of every unit, and who has a label at all."""

    present: Mapping[str, BoolArray]
    units: Mapping[str, IntArray]  # of every item, labelled or not: so many rows of logits it has
    targets: Mapping[str, Ragged]  # of labelled items; the others have none

    @classmethod
    def of(cls, items: Corpus, tasks: Mapping[str, Task]) -> Examples:
        """Encode once what every epoch needs."""
        present, units, targets = {}, {}, {}
        for name, task in tasks.items():
            labels = items.labels[name]
            known = np.flatnonzero(labels.present)
            codes = task.targets(labels.rows.take(known), items.words[known])
            present[name] = labels.present
            units[name] = task.units(items.words)
            targets[name] = Ragged(codes, offsets_of(np.where(labels.present, units[name], 0)))
        return cls(present, units, targets)

    def __len__(self) -> int:
        return len(next(iter(self.present.values())))


def train(
    model: nn.Module,
    logits: Callable[[IntArray, Sequence[str]], dict[str, Tensor]],
    examples: Examples,
    *,
    lengths: IntArray,
    tasks: Mapping[str, Task],
    settings: Settings,
    seed: int,
    score: Callable[[], tuple[float, float]] | None,
    policy: Policy | None,
    progress: Progress,
) -> FitReport:
    """Train until the epochs or the patience end, then go back to the best state seen.

    ``score`` gives the geometric and the arithmetic mean of the tasks' scores: the second decides while a task that
    still scores nothing holds the first at 0.
    """
    rng = np.random.default_rng(seed)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer, schedule = _optimizer(model, settings, steps=settings.epochs * -(-len(examples) // settings.batch_size))
    best_score, best_state, stale = (-1.0, -1.0), None, 0
    history: list[dict[str, float]] = []
    step = 0
    for epoch in range(1, settings.epochs + 1):
        model.train()
        total = 0.0
        for items in batches(lengths, settings.batch_size, rng):
            chosen = _tasks_of_step(tasks, examples, items, policy, step, rng)
            if not chosen:
                continue
            loss = _loss(logits(items, chosen), examples, items, tasks, settings.smoothing)
            if not torch.isfinite(loss):
                raise LearnerError(f"the loss is not a number at step {step}", fix="lower learner.learning_rate")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(trained, settings.clip)
            optimizer.step()
            schedule.step()
            if policy is not None:
                policy.observe(chosen[0], loss.item(), None, step)
            total += loss.item()
            step += 1
        history.append({"epoch": epoch, "loss": total})
        progress("training", epoch / settings.epochs)
        if score is None or (epoch % settings.evaluate_every and epoch < settings.epochs):
            continue
        now = score()
        history[-1]["score"] = now[0]
        if now > best_score:
            best_score, stale = now, 0
            best_state = {k: v.clone() for k, v in model.named_parameters() if v.requires_grad}
        else:
            stale += 1
            if stale >= settings.patience:
                break
    if best_state is not None:
        model.load_state_dict(best_state, strict=False)
    model.eval()
    progress("training", 1.0)
    return FitReport(len(examples), step, best_score[0] if score is not None else None, tuple(history))


def batches(lengths: IntArray, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Shuffled batches of items of like length: shuffle, sort within stretches of eight batches, shuffle batches."""
    order = rng.permutation(len(lengths))
    stretch = size * 8
    for at in range(0, len(order), stretch):
        part = order[at : at + stretch]
        order[at : at + stretch] = part[np.argsort(lengths[part], kind="stable")]
    cuts = [order[at : at + size] for at in range(0, len(order), size)]
    return (cuts[i] for i in rng.permutation(len(cuts)))


def _tasks_of_step(
    tasks: Mapping[str, Task],
    examples: Examples,
    items: IntArray,
    policy: Policy | None,
    step: int,
    rng: np.random.Generator,
) -> list[str]:
    """Every task that the batch has labels for, or the one that the policy draws among them."""
    there = [name for name in tasks if examples.present[name][items].any()]
    if policy is None or not there:
        return there
    return [there[int(rng.choice(len(there), p=policy.probabilities(there, step)))]]


def _loss(
    logits: Mapping[str, Tensor], examples: Examples, items: IntArray, tasks: Mapping[str, Task], smoothing: float
) -> Tensor:
    """The sum over tasks of the mean loss over the units that have a label."""
    losses = []
    for name, scores in logits.items():
        present = examples.present[name][items]
        targets = torch.from_numpy(examples.targets[name].take(items).values)
        if not present.all():
            scores = scores[torch.from_numpy(np.repeat(present, examples.units[name][items]))]
        losses.append(tasks[name].loss(scores, targets, smoothing))
    return torch.stack(losses).sum()


def _optimizer(
    model: nn.Module, settings: Settings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW, faster for the heads than for the encoder, with warm-up and linear decay."""
    encoder = [p for n, p in model.named_parameters() if p.requires_grad and not n.startswith("heads.")]
    heads = [p for n, p in model.named_parameters() if p.requires_grad and n.startswith("heads.")]
    groups = [{"params": encoder, "lr": settings.learning_rate}, {"params": heads, "lr": settings.head_learning_rate}]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], weight_decay=settings.weight_decay, fused=True
    )
    warm = max(1, int(settings.warmup * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    return optimizer, schedule
