"""The settings of neural learners: how long and how fast to train, and what to train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from bursar.curriculum import Policy
from bursar.errors import ConfigError
from bursar.learners.encoders import BUNDLED
from bursar.learners.learner import check_number
from bursar.registry import suggestion
from bursar.tasks import Tagging

EPOCHS, LEAST_STEPS = 12, 250  # defaults if neither epochs nor steps are set
EVALUATIONS = 8  # about this many in a training whose length is given in steps
SHARING = ("shared", "single", "gated")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
NATIVE = ("avx512_bf16", "amx_bf16")  # instruction sets; without one of them bfloat16 is slower than float32


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train. Defaults were chosen on development data."""

    epochs: int | None = None  # 12 if neither epochs nor steps are set; more if that is below ``least_steps``
    steps: int | None = None  # train for about this many steps instead, whatever the number of items
    least_steps: int | None = None  # minimum number of updates: 250, or none if epochs are set
    batch_size: int = 16  # items
    learning_rate: float = 3e-4  # of the encoder
    head_learning_rate: float = 3e-3  # of the heads
    weight_decay: float = 0.01  # of AdamW
    warmup: float = 0.1  # share of the steps during which the learning rate rises
    decay: bool = True  # whether it then falls linearly to 0
    clip: float = 1.0  # largest norm of a gradient
    layer_decay: float = 1.0  # learning rate of a layer divided by that of the layer above it
    average: float = 0.0  # average the weights over this last share of the steps; no better than the decay
    patience: int = 6  # evaluations without improvement before training stops
    evaluate_every: int = 2  # epochs; an eighth of them if steps are set
    checkpoint_seconds: float = 30.0  # time between checkpoints: the work that a crash can lose

    def __post_init__(self) -> None:
        check_numbers(self, (1, 100_000), "epochs", "batch_size", "patience", "evaluate_every")
        check_numbers(self, (0, 1), "learning_rate", "head_learning_rate", "weight_decay", "warmup")
        check_numbers(self, (0, 1), "layer_decay", "average")
        check_numbers(self, (0, 1e9), "clip", "checkpoint_seconds")
        check_numbers(self, (1, 10_000_000), "steps")
        check_numbers(self, (0, 10_000_000), "least_steps")

    def steps_per_epoch(self, items: int, *, by_policy: bool) -> int:
        """The number of steps in an epoch: enough to see every item once.

        Under a policy, tasks go through their items at different speeds. If the number of steps is set, an epoch is
        then an eighth of it.
        """
        if by_policy and self.steps is not None:
            return -(-self.steps // EVALUATIONS)
        return -(-items // self.batch_size)

    def in_epochs(self, steps_per_epoch: int) -> tuple[int, int]:
        """The number of epochs, and the number of epochs between evaluations.

        Few labels need as many updates as many labels do (Zhang et al. 2021), hence the minimum.
        """
        epochs = self.epochs or EPOCHS
        floor = self.least_steps if self.least_steps is not None else 0 if self.epochs else LEAST_STEPS
        wanted = self.steps or floor
        if self.steps is None and epochs * steps_per_epoch >= wanted:
            return epochs, self.evaluate_every
        epochs = -(-wanted // steps_per_epoch)
        return epochs, max(1, -(-epochs // EVALUATIONS))


@dataclass(frozen=True)
class NeuralSettings(Schedule):
    """All options of a neural learner."""

    encoder: str = BUNDLED  # or a folder in Hugging Face's layout, a name on the hub, or word vectors
    sharing: str = "shared"  # or "single" (one model per task), or "gated"
    gated_layers: int | None = None  # number of top layers copied for each task; a third of them by default
    layers: int | None = None  # use only this many of the lowest layers: middle layers often suit words best
    frozen_layers: int = 0  # number of lowest layers that are not trained
    heads: Mapping[str, str] = field(default_factory=dict)  # head style by task, such as slots = "crf"
    tag_head: str = "crf"  # head style of the tagging tasks that ``heads`` does not name
    pretraining_steps: int = 0  # masked-word steps on the unlabelled items given to ``adapt``
    pretraining_rate: float = 3e-4  # learning rate of those steps
    dropout: float = 0.1  # in the heads
    smoothing: float = 0.0  # label smoothing; 0.1 in paper 1, section 7.3
    temperature: bool = False  # fit a temperature for each task on the development items
    precision: str = "auto"  # of the encoder's matrix products: float32, bfloat16, or the faster one on this processor

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, (0, 1000), "frozen_layers")
        check_numbers(self, (0, 0.99), "dropout")
        check_numbers(self, (0, 10_000_000), "pretraining_steps")
        check_numbers(self, (0, 1), "smoothing", "pretraining_rate")
        if self.sharing not in SHARING:
            raise ConfigError(f"learner.sharing = {self.sharing!r}", fix=f"use {', '.join(SHARING)}")
        check_numbers(self, (1, 1000), "layers", "gated_layers")
        for name in ("temperature", "decay"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"learner.{name} = {getattr(self, name)!r}", fix="use true or false")
        if not isinstance(self.heads, Mapping) or not all(isinstance(style, str) for style in self.heads.values()):
            raise ConfigError(f"learner.heads = {self.heads!r}", fix='name tasks and styles: { slots = "crf" }')
        if self.tag_head not in Tagging.styles:
            raise ConfigError(f"learner.tag_head = {self.tag_head!r}", fix=f"use {', '.join(Tagging.styles)}")
        if not isinstance(self.encoder, str):
            raise ConfigError(f"learner.encoder = {self.encoder!r}", fix="name an encoder or its folder")
        # Results depend on the precision, so saved models and checkpoints record the one in use, not "auto".
        object.__setattr__(self, "precision", chosen_precision(self.precision))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> NeuralSettings:
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                fix = f"{suggestion(name, known)}Known: {', '.join(known)}"
                raise ConfigError(f"learner.{name} is not a setting", fix=fix)
        return cls(**options)


@dataclass(frozen=True)
class TrainingPlan:
    """What the course of a training depends on, beside the model and its items."""

    schedule: Schedule
    seed: int = 0
    policy: Policy | None = None  # decides which task each step trains; without one, all tasks in the batch


def check_numbers(settings: Any, limits: tuple[float, float], *names: str) -> None:
    """Refuse settings of the wrong type or outside these limits; those declared with ``None`` may be ``None``."""
    types = {f.name: str(f.type) for f in fields(settings)}
    for name in names:
        value = getattr(settings, name)
        if value is not None or not types[name].endswith("None"):
            check_number(name, value, *limits, whole=types[name].startswith("int"))


def chosen_precision(name: str) -> str:
    """Resolve the setting: ``auto`` is the fastest precision on this processor."""
    if name == "auto":
        return "bfloat16" if multiplies_bfloat16() else "float32"
    if name not in PRECISIONS:
        raise ConfigError(f"learner.precision = {name!r}", fix=f"use {', '.join(['auto', *PRECISIONS])}")
    return name


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16."""
    capabilities = getattr(torch.cpu, "get_capabilities", None)  # missing in the oldest supported torch
    found = capabilities() if capabilities is not None else {}
    return any(found.get(name, False) for name in NATIVE)
