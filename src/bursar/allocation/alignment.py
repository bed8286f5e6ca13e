"""Informativeness by gradients: whether a step for one task is a step for the other. No look-ahead is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from bursar.allocation.informativeness import Parts
from bursar.allocation.lookahead import StepInformer, labelled
from bursar.learners.rehearsal import Rehearsal
from bursar.ragged import FloatArray


@dataclass(frozen=True)
class Alignment(StepInformer):
    """The cosine of a task's gradient on held-out items with that of another's fresh labels, relative to its own.

    Only shared parameters count, so the effect of labels on the task's own head is left out.
    """

    name: ClassVar[str] = "alignment"

    def gains_at(
        self, rehearsal: Rehearsal, tasks: list[str], parts: Parts, generator: np.random.Generator
    ) -> FloatArray:
        given, wanted = (
            torch.stack([rehearsal.gradient(labelled(rehearsal, part, task), task) for task in tasks])
            for part in (parts.fresh, parts.held)
        )
        cosines: FloatArray = (
            torch.nn.functional.cosine_similarity(given[:, None], wanted[None], dim=2).double().numpy()
        )
        return cosines
