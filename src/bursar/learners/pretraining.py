"""Further pretraining: the encoder reads unlabelled items before it is trained on labelled ones.

Some word-pieces are masked, and the encoder learns to predict them from their context (Devlin et al. 2019). A few
hundred steps on a campaign's pool teach it the words and phrases of that pool (Gururangan et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from bursar.corpus.formats.format import replacing_bytes
from bursar.errors import CheckpointError, LearnerError
from bursar.learners.encoders.encoder import Encoder, Pieces, TextEncoder
from bursar.learners.learner import Progress
from bursar.learners.steps import batches
from bursar.learners.training import Checkpoint, rate_factor, trained_weights
from bursar.ragged import IntArray
from bursar.random_streams import rng

ITEMS_PER_STEP = 32
MASKED = 0.3  # share of the pieces to predict
SHOWN = 0.2  # share of those that stay visible, because nothing is masked in training
HEAD_RATE = 2e-3  # learning rate of the prediction layer, which starts untrained
WARMUP = 0.1
CLIP = 1.0


@dataclass(frozen=True)
class PretrainingPlan:
    """How long, how fast and from which seed."""

    steps: int
    rate: float
    seed: int = 0


@dataclass(frozen=True)
class PretrainedFile:
    """The file of a pretrained encoder's weights, with a checkpoint beside it.

    ``about`` identifies the encoder, the items and the settings.
    """

    path: Path
    about: str
    seconds: float  # between checkpoints

    def write(self, encoder: Encoder) -> None:
        """Write the weights that pretraining changed, whole or not at all."""
        from safetensors.torch import save

        with replacing_bytes(self.path) as file:
            file.write(save(trained_weights(encoder), metadata={"about": self.about}))

    def read(self, encoder: Encoder) -> Encoder | None:
        """A copy of the encoder with the file's weights; ``None`` if it is missing, damaged or about something else."""
        from safetensors import SafetensorError, safe_open

        found = encoder.twin()
        try:
            with safe_open(self.path, "pt") as weights:
                if (weights.metadata() or {}).get("about") != self.about:
                    return None
                kept = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118 it is no dictionary
            if kept.keys() != trained_weights(found).keys():
                return None
            found.load_state_dict(kept, strict=False)
        except (OSError, SafetensorError, RuntimeError):
            return None
        return found.eval()


def pretrain(
    encoder: Encoder, readings: Sequence[Pieces], plan: PretrainingPlan, file: PretrainedFile | None, progress: Progress
) -> Encoder:
    """A copy of the encoder, pretrained on these items and written to the file. Frozen layers do not change."""
    checkpoint = None if file is None else Checkpoint(Path(f"{file.path}.training"), file.about, file.seconds)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        pretraining = Pretraining(check_maskable(encoder).twin(), readings, plan)
        pretraining.run(checkpoint, progress)
    if file is not None and checkpoint is not None:
        file.write(pretraining.encoder)
        checkpoint.clear()
    return pretraining.encoder.eval()


def check_maskable(encoder: Encoder) -> TextEncoder:
    """Refuse encoders without a mask token."""
    if not isinstance(encoder, TextEncoder) or not encoder.pretrained or encoder.pieces.mask is None:
        raise LearnerError(
            "this encoder has no mask token to be pretrained with",
            fix="use one that was pretrained with masks, such as 'minilm', or learner.pretraining_steps = 0",
        )
    return encoder


class MaskedPieceHead(nn.Module):
    """Scores the pieces that occur in the items by their similarity to the encoder's embeddings."""

    def __init__(self, encoder: TextEncoder, readings: Sequence[Pieces]) -> None:
        super().__init__()
        table = encoder.piece_embeddings()
        self.known = np.unique(np.concatenate([reading.ids for reading in readings]))
        self.table = table.detach()[torch.from_numpy(self.known)]
        self.layer = nn.Linear(encoder.width, table.shape[1])
        self.norm = nn.LayerNorm(table.shape[1])
        self.bias = nn.Parameter(torch.zeros(len(self.known)))

    def loss(self, vectors: Tensor, ids: Tensor) -> Tensor:
        scores = self.norm(gelu(self.layer(vectors))) @ self.table.T + self.bias
        return cross_entropy(scores, torch.from_numpy(np.searchsorted(self.known, ids.numpy())))


class Pretraining:
    """One pretraining, and all state that changes with it."""

    def __init__(self, encoder: TextEncoder, readings: Sequence[Pieces], plan: PretrainingPlan) -> None:
        self.encoder, self.readings, self.plan = encoder.train(), readings, plan
        self.lengths = np.array([reading.size for reading in readings])
        self.head = MaskedPieceHead(encoder, readings)
        self.trained = [p for p in encoder.parameters() if p.requires_grad]
        parts = [self.trained, list(self.head.parameters())]
        self.optimizer = torch.optim.AdamW([{"params": part} for part in parts], weight_decay=0.01, fused=True)
        self.rates, self.factor = (plan.rate, HEAD_RATE), rate_factor(plan.steps, WARMUP)
        self.step = 0

    def run(self, checkpoint: Checkpoint | None, progress: Progress) -> None:
        if checkpoint is not None:
            self._resume(checkpoint)
        steps_per_epoch = -(-len(self.readings) // ITEMS_PER_STEP)
        cuts: list[IntArray] = []
        for step in range(self.step, self.plan.steps):
            epoch, at = divmod(step, steps_per_epoch)
            if not cuts or not at:
                cuts = batches(self.lengths, ITEMS_PER_STEP, rng(self.plan.seed, "pretraining batches", epoch))
            self._update([self.readings[i] for i in cuts[at]], rng(self.plan.seed, "pretraining masks", step))
            self.step = step + 1
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.save(self._state())
            progress("pretraining", self.step / self.plan.steps)

    def _update(self, readings: Sequence[Pieces], draws: np.random.Generator) -> None:
        encoder, mask = self.encoder, self.encoder.pieces.mask
        assert mask is not None
        batch = encoder.batch(readings)
        chance = torch.from_numpy(draws.random((2, len(batch.ids))))
        own = (batch.places > 0) & (batch.ids != encoder.pieces.end)  # not the start and end tokens
        chosen = own & (chance[0] < MASKED)
        if not chosen.any():
            return
        shown = torch.where(chosen & (chance[1] >= SHOWN), mask, batch.ids)
        vectors = encoder.run(encoder.embed(batch._replace(ids=shown)), batch, range(encoder.depth))
        loss = self.head.loss(vectors[chosen], batch.ids[chosen])
        if not torch.isfinite(loss):
            wrong = f"pretraining step {self.step}: the loss is {loss.item()}"
            raise LearnerError(wrong, fix="lower learner.pretraining_rate")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained, CLIP)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.factor(self.step)
        self.optimizer.step()

    # -- checkpoints ---------------------------------------------------------------------------------------------------
    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "encoder": [p.detach() for p in self.trained],
            "guesser": self.head.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Load the checkpoint; one that is damaged or of another pretraining is ignored."""
        try:
            saved = checkpoint.load()
        except CheckpointError:
            saved = None
        if saved is None:
            return
        with torch.no_grad():
            for parameter, value in zip(self.trained, saved["encoder"], strict=True):
                parameter.copy_(value)
        self.head.load_state_dict(saved["guesser"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        self.step = saved["step"]
