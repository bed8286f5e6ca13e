"""The multi-task learner: one shared encoder, a head a task, trained on whatever labels there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bursar.corpus import Corpus
from bursar.curriculum import Policy
from bursar.errors import ConfigError, LearnerError, SchemaError
from bursar.learners.encoders import BUNDLED, load_encoder
from bursar.learners.encoders.encoder import Batch, Encoder, Pieces, batch_of
from bursar.learners.learner import FitReport, Learner, Progress, evaluate, geometric_mean, no_progress
from bursar.learners.training import Examples, train
from bursar.ragged import IntArray
from bursar.tasks import Beliefs, Task, make_task
from bursar.tasks.heads import Encoded

# Word-pieces and hidden states of frozen layers are kept up to here; what goes beyond is simply computed again.
CACHE_ITEMS = 100_000
CACHE_BYTES = 1_000_000_000


@dataclass(frozen=True)
class Settings:
    """How to train. Defaults were chosen on development data."""

    encoder: str = BUNDLED
    frozen_layers: int = 0  # how many of the encoder's lower layers stay as they are
    epochs: int = 30
    batch_size: int = 16
    learning_rate: float = 3e-4
    head_learning_rate: float = 3e-3
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps during which the learning rate grows
    clip: float = 1.0
    smoothing: float = 0.1  # label smoothing (paper 1, section 7.3)
    patience: int = 6  # evaluations without a better score before training stops
    evaluate_every: int = 2  # epochs

    def __post_init__(self) -> None:
        whole = {f.name for f in fields(self) if f.type == "int"}
        for name, low, high in (
            ("weight_decay", 0, 1),
            ("frozen_layers", 0, 1000),
            ("epochs", 1, 100_000),
            ("batch_size", 1, 100_000),
            ("learning_rate", 0, 1),
            ("head_learning_rate", 0, 1),
            ("smoothing", 0, 1),
            ("warmup", 0, 1),
            ("clip", 0, 1e9),
            ("patience", 1, 100_000),
            ("evaluate_every", 1, 100_000),
        ):
            value = getattr(self, name)
            kind = int if name in whole else int | float
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
                what = "whole number" if name in whole else "number"
                raise ConfigError(f"learner.{name} = {value!r}", fix=f"use a {what} from {low} to {high:,}")


class SharedModel(nn.Module):
    """An encoder and the heads that share it."""

    def __init__(self, encoder: Encoder, tasks: Mapping[str, Task]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict({name: task.head(encoder.width) for name, task in tasks.items()})

    def forward(self, hidden: Tensor, batch: Batch, frozen: int, tasks: Sequence[str]) -> dict[str, Tensor]:
        pieces = self.encoder.upper(hidden, batch, frozen)
        counts = torch.bincount(batch.owners, minlength=batch.items).unsqueeze(1)
        means = pieces.new_zeros(batch.items, pieces.shape[1]).index_add(0, batch.owners, pieces) / counts
        encoded = Encoded(means, pieces.index_select(0, batch.words))
        return {name: self.heads[name](encoded) for name in tasks}


class TransformerLearner(Learner):
    """A shared transformer encoder with a head for each task.

    Options are those of ``Settings``; the encoder is the bundled one, a folder, or a name on the hub.
    """

    def __init__(self, tasks: Mapping[str, Task], **options: object) -> None:
        super().__init__(tasks)
        known = [f.name for f in fields(Settings)]
        for name in options:
            if name not in known:
                raise ConfigError(f"learner.{name} is not a setting", fix=f"known: {', '.join(known)}")
        self.settings = Settings(**options)  # type: ignore[arg-type]
        self.encoder = load_encoder(self.settings.encoder)
        if self.settings.frozen_layers > self.encoder.depth:
            raise ConfigError(
                f"learner.frozen_layers = {self.settings.frozen_layers}",
                fix=f"this encoder has {self.encoder.depth} layers that can be frozen",
            )
        self.encoder.requires_grad_(False)
        for parameter in self.encoder.trainable(self.settings.frozen_layers):
            parameter.requires_grad_(True)
        trained = {name for name, p in self.encoder.named_parameters() if p.requires_grad}
        self._untrained = {k: v.clone() for k, v in self.encoder.state_dict().items() if k in trained}
        self._check_kinds()
        self._pieces: dict[tuple[str, bytes, str], Pieces] = {}
        self._kept: set[int] = set()  # the identities of what ``_pieces`` keeps alive
        self._hidden: dict[int, Tensor] = {}  # by those identities
        self._hidden_bytes = 0
        self.model: SharedModel | None = None

    def _check_kinds(self) -> None:
        """A kind without a head is refused at once, before any label is bought for it."""
        able, unable = [], []
        with torch.device("meta"):
            for task in self.tasks.values():
                try:
                    task.head(1)
                    able.append(task.name)
                except SchemaError:
                    unable.append(f"{task.name!r} ({task.kind})")
        if unable:
            raise LearnerError(
                f"the transformer cannot train {', '.join(unable)} yet",
                fix=f"name the tasks it can train: tasks = {able}",
            )

    # -- training ----------------------------------------------------------------------------------------------------
    def fit(
        self,
        annotated: Corpus,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        policy: Policy | None = None,
        progress: Progress = no_progress,
    ) -> FitReport:
        for name in self.tasks:
            if name not in annotated.schema or not annotated.labels[name].present.any():
                raise LearnerError(
                    f"no item is labelled for task {name!r} yet",
                    fix="buy at least one label for every task before training on it",
                )
        # A model depends on the set of items and the seed, never on the order they came in (errata 25).
        annotated = annotated.take(np.argsort(annotated.id_ranks))
        examples = Examples.of(annotated, self.tasks)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder.load_state_dict(self._untrained, strict=False)
            self.model = SharedModel(self.encoder, self.tasks)
            pieces = self._pieces_of(annotated)

            def logits(items: IntArray, tasks: Sequence[str]) -> dict[str, Tensor]:
                return self._logits([pieces[i] for i in items], tasks)

            return train(
                self.model,
                logits,
                examples,
                lengths=np.array([len(p.ids) for p in pieces]),
                tasks=self.tasks,
                settings=self.settings,
                seed=seed,
                score=self._scorer(dev),
                policy=policy,
                progress=progress,
            )

    def _scorer(self, dev: Corpus | None) -> Callable[[], tuple[float, float]] | None:
        """The geometric and the arithmetic mean of the tasks' main scores on development items."""
        if dev is None or not len(dev):
            return None
        missing = [name for name in self.tasks if not dev.labels[name].present.any()]
        if missing:
            raise LearnerError(f"no development item is labelled for task {missing[0]!r}")

        def score() -> tuple[float, float]:
            scores = evaluate(self.tasks, dev, self.predict(dev))
            main = {name: scores[name][self.tasks[name].metric] for name in self.tasks}
            return geometric_mean(main), sum(main.values()) / len(main)

        return score

    # -- believing -----------------------------------------------------------------------------------------------------
    def believe(self, items: Corpus, progress: Progress = no_progress) -> dict[str, Beliefs]:
        if self.model is None:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        self.model.eval()
        pieces = self._pieces_of(items)
        lengths = np.array([len(p.ids) for p in pieces])
        found: dict[str, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]] = {name: [] for name in self.tasks}
        order: list[int] = []
        with torch.inference_mode():
            for batch in _by_length(lengths, pieces_a_batch=2048):
                order += batch.tolist()
                for name, logits in self._logits([pieces[i] for i in batch], list(self.tasks)).items():
                    found[name].append(torch.softmax(logits, dim=-1).numpy())
                progress("scoring", len(order) / len(pieces))
        back = np.argsort(np.array(order, dtype=np.int64))
        return {
            name: _reordered(parts, self.tasks[name].units(items.words), np.array(order), back)
            for name, parts in found.items()
        }

    # -- word-pieces and frozen layers, each computed once -------------------------------------------------------
    def _pieces_of(self, items: Corpus) -> list[Pieces]:
        keys = _keys(items)
        new = [at for at, key in enumerate(keys) if key not in self._pieces]
        if new:
            made = self.encoder.pieces.make(items.take(np.array(new)))
            fresh = {keys[at]: pieces for at, pieces in zip(new, made, strict=True)}
            if len(self._pieces) + len(fresh) <= CACHE_ITEMS:
                self._pieces |= fresh
                self._kept |= {id(pieces) for pieces in fresh.values()}
            return [self._pieces.get(key) or fresh[key] for key in keys]
        return [self._pieces[key] for key in keys]

    def _logits(self, items: Sequence[Pieces], tasks: Sequence[str]) -> dict[str, Tensor]:
        assert self.model is not None
        batch, frozen = batch_of(items), self.settings.frozen_layers
        hidden = self._frozen(items, batch) if frozen else self.encoder.lower(batch, 0)
        logits: dict[str, Tensor] = self.model(hidden, batch, frozen, tasks)
        return logits

    def _frozen(self, items: Sequence[Pieces], batch: Batch) -> Tensor:
        """What the frozen layers make of the batch: remembered, since it never changes."""
        known = [self._hidden.get(id(item)) for item in items]
        if all(hidden is not None for hidden in known):
            return torch.cat([hidden for hidden in known if hidden is not None])
        training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            hidden = self.encoder.lower(batch, self.settings.frozen_layers)
        self.encoder.train(training)
        for item, part in zip(items, torch.split(hidden, [len(item.ids) for item in items]), strict=True):
            if (
                id(item) in self._kept
                and id(item) not in self._hidden
                and self._hidden_bytes + part.nbytes < CACHE_BYTES
            ):
                self._hidden[id(item)] = part.clone()
                self._hidden_bytes += part.nbytes
        return hidden

    # -- keeping ---------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        """The weights that were trained, the tasks and the settings."""
        from safetensors.torch import save_file

        if self.model is None:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        folder.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in self.model.state_dict().items() if self._is_trained(k)}
        save_file(kept, folder / "weights.safetensors")
        (folder / "learner.json").write_text(json.dumps(self._about(), indent=1))

    def restore(self, folder: Path) -> None:
        from safetensors.torch import load_file

        try:
            about = json.loads((folder / "learner.json").read_text())
            if about != self._about():
                raise LearnerError("it is a learner of other tasks or settings")
            weights = load_file(folder / "weights.safetensors")
            with torch.random.fork_rng(devices=[]):
                model = SharedModel(self.encoder, self.tasks)
            missing, extra = model.load_state_dict(weights, strict=False)
        except Exception as wrong:  # whatever a damaged file may raise
            raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None
        if extra or any(self._is_trained(name) for name in missing):
            raise LearnerError(f"{folder}: some weights are missing or belong to nothing")
        self.model = model.eval()

    @classmethod
    def load(cls, folder: Path) -> TransformerLearner:
        """A saved learner, tasks and settings and all."""
        try:
            about = json.loads((folder / "learner.json").read_text())
            tasks = {name: make_task(name, description) for name, description in about["tasks"].items()}
            learner = cls(tasks, **about["settings"])
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None
        learner.restore(folder)
        return learner

    def _about(self) -> dict[str, object]:
        tasks = {name: task.describe() for name, task in self.tasks.items()}
        return {"learner": "transformer", "settings": asdict(self.settings), "tasks": tasks}

    def _is_trained(self, name: str) -> bool:
        return name.startswith("heads.") or name.removeprefix("encoder.") in self._untrained


def _keys(items: Corpus) -> list[tuple[str, bytes, str]]:
    """What an item's word-pieces depend on: its text, where its words stand, and its pair."""
    if items.texts is None:
        raise LearnerError("this learner reads texts, and the corpus has images", fix="use an image learner")
    texts, spans = items.texts.strings.tolist(), items.texts.spans
    pairs = items.pairs.strings.tolist() if items.pairs is not None else [""] * len(items)
    return [(text, spans[at].tobytes(), pair) for at, (text, pair) in enumerate(zip(texts, pairs, strict=True))]


def _by_length(lengths: IntArray, pieces_a_batch: int) -> Iterator[IntArray]:
    """Batches of about equally long items, so that attention has little to pad."""
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        size = max(1, pieces_a_batch // int(lengths[order[min(at + 64, len(order) - 1)]]))
        yield order[at : at + size]
        at += size


def _reordered(
    parts: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]], units: IntArray, order: IntArray, back: IntArray
) -> Beliefs:
    """Beliefs of batches as beliefs of the items in their own order."""
    if not parts:
        return Beliefs.of(np.zeros((0, 1)), units)
    whole = Beliefs.of(np.concatenate(parts), units[order])
    starts = whole.offsets[:-1][back]
    rows = np.repeat(starts - (np.cumsum(units) - units), units) + np.arange(int(units.sum()))
    return Beliefs.of(whole.dense()[0][rows], units)
