"""The optimiser, its learning rates, and averaged weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bursar.learners.settings import Schedule
from bursar.learners.sharing import SharedModel


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
    """The factor of the learning rate at each step: a linear rise to 1, then a linear decay to 0.

    >>> factor = rate_factor(10, 0.2)
    >>> [round(factor(step), 3) for step in (0, 1, 2, 6, 10)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    warm = max(1, int(warmup * steps))

    def factor(step: int) -> float:
        left = max(0.0, (steps - step) / max(1, steps - warm)) if decay else 1.0
        return min((step + 1) / warm, left)

    return factor


def _rate(name: str, schedule: Schedule, depth: int) -> float:
    """The learning rate of a parameter, by its name and the encoder's depth."""
    if name.startswith(("heads.", "gates.")):
        return schedule.head_learning_rate
    layer = re.search(r"layers\.(\d+)\.", name)
    below = depth - 1 - int(layer.group(1)) if layer is not None and name.startswith("encoder.") else 0
    return schedule.learning_rate * schedule.layer_decay**below


class WeightAverage:
    """The running mean of the weights after each step, from step ``first`` on.

    With few items the weights jump from step to step; their mean does not, and choosing it takes no development items
    (Izmailov et al. 2018).

    >>> weight = nn.Parameter(torch.tensor([0.0]))
    >>> average = WeightAverage([weight], first=1)
    >>> for step, value in enumerate([9.0, 1.0, 2.0]):
    ...     _ = weight.data.fill_(value)
    ...     average.add(step)
    >>> average.apply(); weight.item()
    1.5
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
        """Set the parameters to their mean."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.weights, strict=True):
                parameter.copy_(mean)
