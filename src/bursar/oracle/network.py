"""A judge that trains small networks as in paper 4, those of many sets in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners import lockstep
from bursar.learners.features import classes_of
from bursar.learners.lockstep import CodedTexts, FitJob, LockstepTraining, Network, Settings, Trained
from bursar.learners.lockstep.network import Score
from bursar.learners.lockstep.texts import word_vectors
from bursar.oracle.judge import ARCHITECTURES, Judge, LocalStream, SetsByKey
from bursar.oracle.probe import score_of
from bursar.oracle.problem import PARTS, LabellingProblem
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Classification, Tagging, Task

LARGEST = 32  # most items in a training batch; the paper uses the size of a labelling batch, 20 or 25


@dataclass(frozen=True)
class NetworkOptions:
    """How the networks of a judge are trained."""

    size: int = 64  # of word vectors
    dropout: float = 0.5  # before the output layer: BALD needs it, so all have it (errata 27)
    settings: Settings | None = None


@dataclass(frozen=True)
class _Task:
    """The network of one task, over the items of all parts."""

    network: Network
    targets: Mapping[str, IntArray]  # codes of the units of each part
    units: Mapping[str, IntArray]  # number of units of each item, by part


class NetworkJudge(Judge):
    """One small network per task, trained on the warm start and a set; the items set aside stop it early."""

    def __init__(
        self, problem: LabellingProblem, architecture: str, *, seed: int = 0, options: NetworkOptions | None = None
    ) -> None:
        options = options or NetworkOptions()
        self.problem, self.seed, self.pool = problem, seed, len(problem.pool)
        self.settings = replace(options.settings or Settings(), batch=min(problem.size, LARGEST))
        ends = np.cumsum([*problem.counts.values()])
        self.rows = {part: np.arange(end - problem.counts[part], end) for part, end in zip(PARTS, ends, strict=True)}
        make = _maker(problem, architecture, options)
        self.tasks = {name: self._task(task, name, make) for name, task in problem.corpus.schema.items()}
        self.lanes = self.settings.lanes or max(made.network.lanes for made in self.tasks.values())
        self.at_once = 2 * self.lanes

    def _task(self, task: Task, name: str, make: Callable[[Task, IntArray], Network]) -> _Task:
        parts = self.problem.parts
        targets = {part: task.targets(parts[part].labels[name].rows, parts[part].words) for part in PARTS}
        units = {part: task.units(parts[part].words) for part in PARTS}
        codes = np.concatenate([targets[part] for part in PARTS])
        if isinstance(task, Tagging):
            codes = _padded(codes, np.concatenate([units[part] for part in PARTS]), -1)
        return _Task(make(task, codes), targets, units)

    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        found = np.zeros((len(self.tasks), len(parts), len(sets)))
        for number, name in enumerate(self.tasks):
            for at, model in enumerate(self.trained(name, sets)):
                for row, part in enumerate(parts):
                    found[number, row, at] = self.score(name, model, part)
        return np.asarray(found.mean(axis=0))

    def stream(self) -> LocalStream:
        return NetworkStream(self)

    def job(self, items: IntArray) -> FitJob:
        return FitJob(np.concatenate([self.rows["warm"], self.rows["pool"][items]]), self.seed)

    def score(self, name: str, model: Trained, part: str) -> float:
        made = self.tasks[name]
        guesses = self.logits(name, model, part).argmax(axis=-1)
        return score_of(made.targets[part], guesses, classes_of(self.problem.corpus.schema[name]), self.problem.metric)

    def training(self, name: str) -> LockstepTraining:
        network = self.tasks[name].network
        return LockstepTraining(network, self.settings, select=self.rows["aside"], score=self._measure(network))

    def trained(self, name: str, sets: Sequence[IntArray]) -> list[Trained]:
        network, jobs = self.tasks[name].network, [self.job(items) for items in sets]
        return lockstep.train(network, jobs, self.settings, select=self.rows["aside"], score=self._measure(network))

    def logits(self, name: str, model: Trained, part: str, kept: Tensor | None = None) -> NDArray[Any]:
        """A model's logits for all units of a part, (units, labels), with the features ``kept`` by dropout."""
        made = self.tasks[name]
        found: NDArray[Any] = lockstep.logits(made.network, model, self.rows[part], kept).numpy()
        if made.network.targets.ndim == 1:
            return found
        inside = np.arange(found.shape[1]) < made.units[part][:, None]  # texts are padded to the longest
        return np.asarray(found[inside])

    def _measure(self, network: Network) -> Score:
        return (lockstep.accuracy if self.problem.metric == "accuracy" else lockstep.weighted_f1)(network)


class NetworkStream(LocalStream):
    """Trains the models of requested sets in lockstep, one per task."""

    def __init__(self, judge: NetworkJudge) -> None:
        self.judge, self.room = judge, judge.lanes
        self.trainings = {name: judge.training(name) for name in judge.tasks}
        self.numbers: dict[bytes, dict[str, int]] = {}  # the jobs of each set, by task
        self.scores: dict[bytes, dict[str, float]] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def request(self, sets: SetsByKey) -> None:
        for key in [key for key in self.numbers if key not in sets]:
            for name, number in self.numbers.pop(key).items():
                self.trainings[name].drop(number)
            del self.scores[key]
        for key, items in sets.items():
            if key not in self.numbers:
                job = self.judge.job(items)
                self.numbers[key] = {name: training.add(job) for name, training in self.trainings.items()}
                self.scores[key] = {}

    def step(self) -> dict[bytes, float]:
        for name, training in self.trainings.items():
            done = training.step()
            for key in [key for key, numbers in self.numbers.items() if numbers[name] in done] if done else []:
                self.scores[key][name] = self.judge.score(name, done[self.numbers[key][name]], "validation")
        found = {}
        for key in [key for key, scores in self.scores.items() if len(scores) == len(self.trainings)]:
            del self.numbers[key]
            scores = self.scores.pop(key)
            found[key] = float(np.mean([scores[name] for name in self.trainings]))
        return found


# -- inputs of networks ------------------------------------------------------------------------------------------------
def _maker(
    problem: LabellingProblem, architecture: str, options: NetworkOptions
) -> Callable[[Task, IntArray], Network]:
    """A function that makes the network of a task from its targets; all tasks read the same items."""
    items = problem.corpus.take(np.concatenate([getattr(problem, part) for part in PARTS]))
    images = items.images is not None
    inputs = _images(items) if images else _texts(items)
    vectors = None if images else word_vectors(_vocabulary(items), options.size)

    def make(task: Task, targets: IntArray) -> Network:
        kind = "images" if images and isinstance(task, Classification) else task.kind
        if (architecture, kind) not in ARCHITECTURES:
            known = [name for name, of in ARCHITECTURES if of == kind]
            raise ConfigError(
                f"no network {architecture!r} for task {task.name!r} ({kind})",
                fix=f"use {', '.join([*known, 'probe'])}",
            )
        network = getattr(lockstep, ARCHITECTURES[architecture, kind])
        more: dict[str, Any] = {} if images else {"vectors": vectors}
        made: Network = network(inputs, targets, classes_of(task), dropout=options.dropout, **more)
        return made

    return make


def _vocabulary(items: Corpus) -> list[str]:
    assert items.texts is not None
    return sorted({word.lower() for words in items.texts.all_words() for word in words})


def _texts(items: Corpus) -> CodedTexts:
    assert items.texts is not None
    words = items.texts.all_words()
    empty = [at for at, some in enumerate(words) if not some]
    if empty:
        raise ConfigError(f"item {items.ids[empty[0]]!r} has no words", fix="remove it")
    codes = {word: code for code, word in enumerate(_vocabulary(items), start=1)}
    flat = np.array([codes[word.lower()] for some in words for word in some], dtype=np.int64)
    return CodedTexts(_padded(flat, items.words, 0), items.words, len(codes) + 1)


def _padded(values: IntArray, lengths: IntArray, fill: int) -> IntArray:
    """Pad rows of different lengths to a rectangle."""
    inside = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
    found: IntArray = np.full(inside.shape, fill, dtype=np.int64)
    found[inside] = values
    return found


def _images(items: Corpus) -> NDArray[np.float32]:
    assert items.images is not None
    brightest = np.iinfo(items.images.dtype).max if items.images.dtype.kind in "iu" else 1
    return items.images.astype(np.float32) / np.float32(brightest)
