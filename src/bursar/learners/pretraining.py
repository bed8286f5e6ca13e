"""Further pretraining: an encoder reads unlabelled items before it is trained on labelled ones.

Some of the word-pieces are masked, and the encoder learns to tell them from their context (Devlin et al. 2019). A few
hundred steps on the pool of a campaign teach it the words and the phrases of that pool (Gururangan et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from bursar.errors import CheckpointError, LearnerError
from bursar.learners.encoders.encoder import Encoder, Pieces, TextEncoder
from bursar.learners.learner import Progress
from bursar.learners.steps import batches
from bursar.learners.training import Checkpoint, falling
from bursar.ragged import IntArray

ITEMS_A_STEP = 32
MASKED = 0.3  # of the pieces are to be guessed
SHOWN = 0.2  # of those stay visible, for in training nothing is masked
HEAD_RATE = 2e-3  # of the layer that guesses, which starts from nothing
WARMUP = 0.1
CLIP = 1.0


def pretrained(
    encoder: Encoder,
    readings: Sequence[Pieces],
    *,
    steps: int,
    rate: float,
    seed: int,
    checkpoint: Checkpoint | None,
    progress: Progress,
) -> Encoder:
    """A copy of the encoder that has read these items; what is frozen of it stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        work = Pretraining(can_pretrain(encoder).twin(), readings, steps, rate, seed)
        work.run(checkpoint, progress)
    work.encoder.eval()
    return work.encoder


def can_pretrain(encoder: Encoder) -> TextEncoder:
    """The encoder, if it has a mask to learn with; others are refused."""
    if not isinstance(encoder, TextEncoder) or not encoder.pretrained or encoder.pieces.mask is None:
        raise LearnerError(
            "this encoder has no mask token to be pretrained with",
            fix="use one that was pretrained with masks, such as 'minilm', or learner.pretraining_steps = 0",
        )
    return encoder


class Guesser(nn.Module):
    """Vectors of pieces to scores of the pieces they may be: those that occur, compared by the encoder's embeddings."""

    def __init__(self, encoder: TextEncoder, readings: Sequence[Pieces]) -> None:
        super().__init__()
        table = encoder.piece_embeddings()
        self.known = np.unique(np.concatenate([reading.ids for reading in readings]))
        self.table = table.detach()[torch.from_numpy(self.known)]
        self.layer = nn.Linear(encoder.width, table.shape[1])
        self.norm = nn.LayerNorm(table.shape[1])
        self.bias = nn.Parameter(torch.zeros(len(self.known)))

    def loss(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """How unlikely the right pieces are."""
        scores = self.norm(gelu(self.layer(vectors))) @ self.table.T + self.bias
        return cross_entropy(scores, torch.from_numpy(np.searchsorted(self.known, ids.numpy())))


class Pretraining:
    """A pretraining on its way: the encoder and all that changes with it."""

    def __init__(self, encoder: TextEncoder, readings: Sequence[Pieces], steps: int, rate: float, seed: int) -> None:
        self.encoder, self.readings, self.steps, self.seed = encoder.train(), readings, steps, seed
        self.lengths = np.array([reading.size for reading in readings])
        self.guesser = Guesser(encoder, readings)
        self.trained = [p for p in encoder.parameters() if p.requires_grad]
        parts = [self.trained, list(self.guesser.parameters())]
        self.optimizer = torch.optim.AdamW([{"params": part} for part in parts], weight_decay=0.01, fused=True)
        self.rates, self.share = (rate, HEAD_RATE), falling(steps, WARMUP)
        self.step = 0

    def run(self, checkpoint: Checkpoint | None, progress: Progress) -> None:
        """To the end, from wherever the checkpoint is."""
        if checkpoint is not None:
            self._resume(checkpoint)
        an_epoch = -(-len(self.readings) // ITEMS_A_STEP)
        cuts: list[IntArray] = []
        for step in range(self.step, self.steps):
            epoch, at = divmod(step, an_epoch)
            if not cuts or not at:
                cuts = batches(self.lengths, ITEMS_A_STEP, np.random.default_rng([self.seed, epoch, 3]))
            self._learn([self.readings[i] for i in cuts[at]], np.random.default_rng([self.seed, step, 4]))
            self.step = step + 1
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.save(self._state())
            progress("pretraining", self.step / self.steps)

    def _learn(self, readings: Sequence[Pieces], rng: np.random.Generator) -> None:
        """One step on some items."""
        encoder, mask = self.encoder, self.encoder.pieces.mask
        assert mask is not None
        batch = encoder.batch(readings)
        draws = torch.from_numpy(rng.random((2, len(batch.ids))))
        own = (batch.places > 0) & (batch.ids != encoder.pieces.end)  # not the marks at both ends
        chosen = own & (draws[0] < MASKED)
        if not chosen.any():
            return
        shown = torch.where(chosen & (draws[1] >= SHOWN), mask, batch.ids)
        vectors = encoder.run(encoder.embed(batch._replace(ids=shown)), batch, 0, encoder.depth)
        loss = self.guesser.loss(vectors[chosen], batch.ids[chosen])
        if not torch.isfinite(loss):
            raise LearnerError(
                f"pretraining step {self.step}: the loss is {loss.item()}", fix="lower learner.pretraining_rate"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.trained, CLIP)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.share(self.step)
        self.optimizer.step()

    # -- kept and taken up again ---------------------------------------------------------------------------------------
    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "encoder": [p.detach() for p in self.trained],
            "guesser": self.guesser.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Go to where the checkpoint is; one that is damaged or of another pretraining is worth nothing."""
        try:
            saved = checkpoint.load()
        except CheckpointError:
            saved = None
        if saved is None:
            return
        with torch.no_grad():
            for parameter, value in zip(self.trained, saved["encoder"], strict=True):
                parameter.copy_(value)
        self.guesser.load_state_dict(saved["guesser"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        self.step = saved["step"]


# -- on disk -----------------------------------------------------------------------------------------------------------
def write_pretrained(encoder: Encoder, file: Path, about: str) -> None:
    """The weights that pretraining changed; whole or not at all."""
    from safetensors.torch import save_file

    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(file.name + ".new")
    save_file(_trained(encoder), beside, metadata={"about": about})
    beside.replace(file)


def read_pretrained(encoder: Encoder, file: Path, about: str) -> Encoder | None:
    """A copy of the encoder with the weights of a file; ``None`` if it is not there, damaged or of another pool."""
    from safetensors import SafetensorError, safe_open

    found = encoder.twin()
    try:
        with safe_open(file, "pt") as weights:
            if (weights.metadata() or {}).get("about") != about:
                return None
            kept = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118 it is no dictionary
        if kept.keys() != _trained(found).keys():
            return None
        found.load_state_dict(kept, strict=False)
    except (OSError, SafetensorError, RuntimeError):
        return None
    return found.eval()


def _trained(encoder: Encoder) -> dict[str, Tensor]:
    return {name: value.detach().contiguous() for name, value in encoder.named_parameters() if value.requires_grad}
