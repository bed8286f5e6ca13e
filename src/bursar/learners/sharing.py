"""What tasks share: no layers (single), all of the encoder (shared), or its lower layers and a gate (gated).

Tasks that build on each other's spans (relations on entities) form a *group* and always share an encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor, nn

from bursar.errors import ConfigError, LearnerError
from bursar.learners.encoders.encoder import Encoder
from bursar.learners.settings import NeuralSettings
from bursar.tasks import Tagging, Task
from bursar.tasks.heads import Encoded, Head
from bursar.tasks.task import groups_of

M = TypeVar("M", bound=nn.Module)


def make_models(encoder: Encoder, tasks: Mapping[str, Task], settings: NeuralSettings) -> list[SharedModel]:
    """Untrained models on copies of the encoder: one for all tasks, or one for each group."""
    if settings.sharing == "gated":
        return [GatedModel(encoder.twin(), tasks, settings)]
    return [
        SharedModel(encoder.twin(), {name: tasks[name] for name in tasks if name in group}, settings)
        for group in tasks_of_models(tasks, settings.sharing)
    ]


def tasks_of_models(tasks: Mapping[str, Task], sharing: str) -> list[list[str]]:
    """The tasks of each model: all of them, or one group per model."""
    return groups_of(tasks) if sharing == "single" else [list(tasks)]


def head_styles(tasks: Mapping[str, Task], named: Mapping[str, str], tag_head: str) -> dict[str, str]:
    """The style of each head: as named, or ``tag_head`` for tagging tasks that no relations build on."""
    linked = {task.partner(tasks) for task in tasks.values()}
    usual = {name: tag_head for name, task in tasks.items() if isinstance(task, Tagging) and name not in linked}
    return usual | dict(named)


class ByTask(nn.Module, Generic[M]):
    """Modules by task name. Any name will do; torch's own dictionary refuses ``half`` and ``a.b``."""

    def __init__(self, parts: Mapping[str, M]) -> None:
        super().__init__()
        self.places = {name: place for place, name in enumerate(parts)}
        self.parts = nn.ModuleList(parts.values())

    def __getitem__(self, task: str) -> M:
        return cast(M, self.parts[self.places[task]])

    def __len__(self) -> int:
        return len(self.parts)


class SharedModel(nn.Module):
    """An encoder and the heads on it: of one task (ST), or of all tasks (SMT)."""

    def __init__(self, encoder: Encoder, tasks: Mapping[str, Task], settings: NeuralSettings) -> None:
        super().__init__()
        self.encoder, self.frozen = encoder, settings.frozen_layers
        self.tasks = dict(tasks)
        self.partners = {name: task.partner(tasks) for name, task in tasks.items()}
        styles = head_styles(tasks, settings.heads, settings.tag_head)
        for name in filter(None, self.partners.values()):
            if styles.setdefault(name, "spans") != "spans":
                raise ConfigError(
                    f"learner.heads gives task {name!r} the style {styles[name]!r}, but relations build on its spans",
                    fix='leave it out, or use "spans"',
                )
        for name, task in tasks.items():
            if not encoder.reads_words and task.of_words:
                raise LearnerError(
                    f"task {name!r} is {task.kind}, which needs words, but this encoder reads none",
                    fix="use classification or regression",
                )
        dropout = settings.dropout
        heads = {name: task.head(encoder.width, styles.get(name), dropout) for name, task in tasks.items()}
        self.heads: ByTask[Head] = ByTask(heads)

    def head(self, task: str) -> Head:
        return self.heads[task]

    def learned(self) -> dict[str, Tensor]:
        """The state without the frozen parameters."""
        frozen = {name for name, parameter in self.named_parameters() if not parameter.requires_grad}
        return {name: value.contiguous() for name, value in self.state_dict().items() if name not in frozen}

    def encode(
        self, hidden: Tensor, batch: Any, tasks: Sequence[str], begun: Tensor | None = None
    ) -> dict[str, Encoded]:
        """From the output of the frozen layers, the vectors that each task's head reads."""
        top = self.encoder.run(hidden, batch, range(self.frozen, self.encoder.depth), begun)
        return dict.fromkeys(tasks, self.encoder.pool(top, batch))


class GatedModel(SharedModel):
    """Shared lower layers; of the upper ones a common copy and one for each group of tasks (CMT).

    A task reads a⊙common + (1 − a)⊙own with a = σ(W[common; own] + b): paper 1, section 5.3. Gates work on word-pieces;
    without padding there is nothing to mask (errata 14).
    """

    def __init__(self, encoder: Encoder, tasks: Mapping[str, Task], settings: NeuralSettings) -> None:
        super().__init__(encoder, tasks, settings)
        if not encoder.depth:
            raise ConfigError(
                'learner.sharing = "gated": this encoder has no layers to copy', fix='use "shared" or "single"'
            )
        copied = settings.gated_layers or max(1, encoder.depth // 3)  # 6 layers: 4 shared, 2 copied; 12: 8 and 4
        self.bottom = encoder.depth - copied
        groups = groups_of(tasks)
        if len(groups) < 2:
            raise ConfigError(
                f'learner.sharing = "gated" with {", ".join(tasks)}: there is nothing to gate',
                fix='name two or more tasks (entities and their relations count as one), or use "shared"',
            )
        if self.bottom < 0:
            raise ConfigError(f"learner.gated_layers = {copied}", fix=f"this encoder has {encoder.depth} layers")
        if not self.frozen <= self.bottom:
            raise ConfigError(
                f"learner.frozen_layers = {self.frozen}",
                fix=f"the gated model shares {self.bottom} layers: freeze no more",
            )
        self.leaders = {name: group[0] for group in groups for name in group}
        self.own = ByTask({group[0]: encoder.copy_layers(self.bottom) for group in groups})
        gates = {group[0]: nn.Linear(2 * encoder.width, encoder.width) for group in groups}
        for gate in gates.values():
            nn.init.zeros_(gate.weight)  # start half open: the copies are equal at first, and so is their mixture
            nn.init.zeros_(gate.bias)
        self.gates = ByTask(gates)

    def encode(
        self, hidden: Tensor, batch: Any, tasks: Sequence[str], begun: Tensor | None = None
    ) -> dict[str, Encoded]:
        encoder, lower = self.encoder, range(self.frozen, self.bottom)
        shared = encoder.run(hidden, batch, lower, begun if lower else None)
        common = encoder.run(shared, batch, range(self.bottom, encoder.depth))
        found: dict[str, Encoded] = {}
        for leader in dict.fromkeys(self.leaders[task] for task in tasks):
            own = encoder.run(shared, batch, self.own[leader])
            open_ = torch.sigmoid(self.gates[leader](torch.cat([common, own], dim=1)))
            found[leader] = encoder.pool(torch.lerp(own, common, open_), batch)
        return {task: found[self.leaders[task]] for task in tasks}
