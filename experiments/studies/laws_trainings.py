"""Models to learn laws from: a real tagging task trained together with synthetic ones, many settings in lockstep.

As in paper 2, section 4: a window of three words as static vectors, labels in IO for training, and the F1 of whole
entities by CoNLL's count on a part that is held out. No early stopping is named there, so none is done: a model is as
its last epoch left it. The vectors are those of the bundled encoder in 100 directions (errata 20).

>>> from bursar.simulation import assistant_corpus
>>> material = Material.of(assistant_corpus(300), "slots", held_out="dev", size=8)
>>> settings = [Setting(400), Setting(400, tasks=2, alpha=0.9)]
>>> single, joint = trained(material, settings, epochs=2)
>>> single["n"], joint["n_other"], 0.3 < joint["ami"] < 0.9
(400, 400, True)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError, SchemaError
from bursar.learners import lockstep
from bursar.learners.lockstep import FitJob, Trained
from bursar.learners.lockstep.texts import word_vectors
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Tagging
from bursar.tasks.schemes import spans_of_codes
from experiments.related import Related, related_corpus, unit_codes
from experiments.studies.laws_network import MultitaskTagger

SIZE = 100  # of word vectors
BATCH = 100  # paper 2, section 4
EPOCHS = 100
LANES = 8  # with more the numbers of a step no longer lie near the processor


@dataclass(frozen=True)
class Setting:
    """What one model is trained on. The seed is that of its sentences, of synthetic labels, and of the training."""

    n: int  # labelled tokens of the real task
    tasks: int = 1  # all together
    alpha: float | None = None  # how related synthetic tasks are; None for a single task
    n_other: int | None = None  # labelled tokens of each synthetic task; as many as of the real one, if not given
    architecture: str = "shared"
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.tasks == 1) != (self.alpha is None):
            raise ConfigError(f"alpha = {self.alpha} with {self.tasks} tasks", fix="give alpha for two tasks or more")
        if self.tasks == 1 and self.n_other is not None:
            raise ConfigError(f"n_other = {self.n_other} with a single task", fix="leave it out")

    @property
    def samples(self) -> list[int]:
        """Labelled tokens of every task, the real one first."""
        return [self.n, *[self.n if self.n_other is None else self.n_other] * (self.tasks - 1)]


@dataclass(frozen=True, eq=False)
class Material:
    """A corpus as models read it."""

    train: Corpus  # with the real task alone
    held_out: Corpus
    task: Tagging
    codes: Mapping[str, int]  # of words in lower case
    vectors: FloatArray  # (codes, size), the first for what is beyond a sentence
    name: str  # what a table says of where its rows came from

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        task: str,
        *,
        split: str = "train",
        held_out: str = "test",
        size: int = SIZE,
        most: int | None = None,
        name: str = "",
    ) -> Material:
        """Of two splits of a corpus; of what is held out, items up to so many tokens."""
        real = corpus.schema.get(task)
        if not isinstance(real, Tagging) or real.every_word:
            raise SchemaError(f"{task!r} is no task of spans", fix="name one, such as entities")
        known = corpus.with_tasks([task]).take(np.flatnonzero(corpus.labels[task].present))
        parts = [known.take(known.in_split(part)) for part in (split, held_out)]
        if not all(map(len, parts)):
            raise ConfigError(f"there are no items in {split!r} or {held_out!r}", fix=f"use {', '.join(corpus.splits)}")
        if most is not None:
            parts[1] = parts[1].take(np.flatnonzero(np.cumsum(parts[1].words) <= most))
        words = sorted({word for part in parts for word in _words(part)})
        codes = {word: code for code, word in enumerate(words, start=1)}
        return cls(parts[0], parts[1], real, codes, word_vectors(words, size), name)

    def windows(self, items: Corpus) -> IntArray:
        """Every word of some items between its neighbours, (words, 3)."""
        return windows_of(np.array([self.codes[word] for word in _words(items)], dtype=np.int64), items.words)

    def f1(self, guesses: IntArray) -> float:
        """Of the entities that IO codes of the held-out words stand for."""
        guessed = spans_of_codes(2 * guesses, self.held_out.words)
        counts = self.task.tally(self.held_out.labels[self.task.name].rows, guessed)
        return float(self.task.score(counts.sum(axis=0)))


def trained(
    material: Material, settings: Sequence[Setting], *, epochs: int = EPOCHS, lanes: int = LANES
) -> list[dict[str, Any]]:
    """A row of observations for each setting, see ``Observations``. Those of one shape are trained in lockstep."""
    found: list[dict[str, Any]] = [{}] * len(settings)
    for shape in dict.fromkeys((setting.tasks, setting.architecture) for setting in settings):
        mine = [place for place, s in enumerate(settings) if (s.tasks, s.architecture) == shape]
        rows = _of_one_shape(material, [settings[place] for place in mine], epochs, lanes)
        for place, row in zip(mine, rows, strict=True):
            found[place] = row
    return found


def _of_one_shape(material: Material, settings: Sequence[Setting], epochs: int, lanes: int) -> list[dict[str, Any]]:
    drawn = [drawn_tasks(material, setting) for setting in settings]
    network, jobs = network_of(material, settings, drawn)
    models = lockstep.train(network, jobs, lockstep.Settings(batch=BATCH, epochs=epochs, lanes=lanes))
    told = {"source": material.name, "settings": digest_of(material, epochs), "version": version("bursar")}
    return [
        row_of(setting, related, held_out_f1(material, network, model)) | told
        for setting, related, model in zip(settings, drawn, models, strict=True)
    ]


# -- from a setting to a network and back ------------------------------------------------------------------------------
def drawn_tasks(material: Material, setting: Setting) -> Related:
    """The sentences of a setting with the labels of all its tasks."""
    return related_corpus(
        material.train,
        material.task.name,
        tasks=setting.tasks,
        alpha=setting.alpha,
        samples=setting.samples,
        split=material.train.splits[material.train.split_codes[0]],
        seed=setting.seed,
    )


def network_of(
    material: Material, settings: Sequence[Setting], drawn: Sequence[Related]
) -> tuple[MultitaskTagger, list[FitJob]]:
    """One network over the words of all settings, one behind the other, and the held-out ones last; a job a setting."""
    labels = len(material.task.labels) + 1
    beyond = np.full((int(material.held_out.words.sum()), settings[0].tasks), -1)
    windows = [*(material.windows(some.corpus) for some in drawn), material.windows(material.held_out)]
    targets = [*(targets_of(some) for some in drawn), beyond]
    ends = np.cumsum([len(some) for some in targets])
    jobs = [
        FitJob(np.arange(end - len(some), end), setting.seed, name=str(setting))
        for setting, some, end in zip(settings, targets[:-1], ends[:-1].tolist(), strict=True)
    ]
    architecture = settings[0].architecture
    whole = np.concatenate(windows), material.vectors, np.concatenate(targets)
    return MultitaskTagger(*whole, labels, architecture), jobs


def targets_of(related: Related) -> IntArray:
    """The label codes of all words for all tasks, (words, tasks); −1 where a task is not labelled."""
    items = related.corpus
    found: IntArray = np.full((int(items.words.sum()), len(related.tasks)), -1, dtype=np.int64)
    for place, name in enumerate(related.tasks):
        present = items.labels[name].present
        labelled = items if present.all() else items.take(np.flatnonzero(present))
        found[np.repeat(present, items.words), place] = unit_codes(labelled, items.schema[name])
    return found


def held_out_f1(material: Material, network: MultitaskTagger, model: Trained) -> float:
    """How well a model does the real task on what is held out."""
    words = int(material.held_out.words.sum())
    scores = lockstep.logits(network, model, np.arange(len(network.targets) - words, len(network.targets)))
    return material.f1(scores[:, 0].argmax(dim=1).numpy())


def row_of(setting: Setting, related: Related, score: float) -> dict[str, Any]:
    """What a table of observations says of a model."""
    single = setting.tasks == 1
    return {
        "n": related.units[0],
        "n_other": 0 if single else related.units[1],
        "tasks": setting.tasks,
        "ami": None if single else related.mean_ami,
        "alpha": setting.alpha,
        "architecture": setting.architecture,
        "seed": setting.seed,
        "score": score,
    }


def digest_of(material: Material, epochs: int) -> str:
    """A short name for what else a model depends on."""
    sizes = material.vectors.shape[1], len(material.held_out), BATCH, epochs
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()[:12]


# -- words -------------------------------------------------------------------------------------------------------------
def _words(items: Corpus) -> list[str]:
    """All words in lower case: the bundled encoder knows no other."""
    assert items.texts is not None
    return [word.lower() for words in items.texts.all_words() for word in words]


def windows_of(codes: IntArray, lengths: IntArray) -> IntArray:
    """Every word between its neighbours, 0 beyond a sentence: (words, 3).

    >>> windows_of(np.array([4, 5, 6]), np.array([2, 1])).tolist()
    [[0, 4, 5], [4, 5, 0], [0, 6, 0]]
    """
    ends = np.cumsum(lengths)
    found: IntArray = np.zeros((len(codes), 3), dtype=np.int64)
    found[:, 1] = codes
    found[1:, 0], found[:-1, 2] = codes[:-1], codes[1:]
    found[(ends - lengths)[lengths > 0], 0] = 0
    found[(ends - 1)[lengths > 0], 2] = 0
    return found
