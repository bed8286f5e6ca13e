"""Checkpoints: files that an interrupted training resumes from."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bursar.errors import CheckpointError

SAFE_TORCH = (2, 6)  # first version in which ``weights_only`` is safe (CVE-2025-32434)


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
        """Write the state to a new file, then replace the old one: a crash leaves one of the two."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_name(self.file.name + ".new")
        with open(beside, "wb") as file:
            torch.save(state | {"about": self.about}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.file)
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
