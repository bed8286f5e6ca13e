"""The contract of judges, which score sets of labelled items; a cache of their scores; and judges by name.

A search requests sets, may withdraw them, and gets scores as they are ready. A batch ends with its slowest model, when
most lanes are empty. A stream keeps them full: requests may change with each score, and withdrawn work is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import Classification, Tagging, Task

if TYPE_CHECKING:
    from bursar.oracle.problem import LabellingProblem

CACHED = 300_000  # sets: about 50 MB
PROBE = "probe"
ARCHITECTURES = {  # paper 4's networks, by name and kind of task: the class in learners.lockstep
    ("aoe", "classification"): "AverageNetwork",
    ("cnn", "classification"): "TextConvolution",
    ("lstm", "classification"): "BiLSTM",
    ("cnn", "images"): "ImageConvolution",
    ("tagger", "tagging"): "Tagger",
}
JUDGES = (PROBE, *dict.fromkeys(name for name, _ in ARCHITECTURES))

SetsByKey = Mapping[bytes, IntArray]  # the most urgent first


class ScoreStream(ABC):
    """Scores sets one by one."""

    room: int  # sets that are worked on at the same time
    likely: float = 0.12  # a search requests sets that it needs with at least this probability

    @abstractmethod
    def request(self, sets: SetsByKey) -> None:
        """Replace all earlier requests by these."""

    @abstractmethod
    def results(self) -> dict[bytes, float]:
        """Wait for at least one score. Each is returned once. Empty if nothing is requested."""

    @abstractmethod
    def close(self) -> None:
        """Stop working."""


class LocalStream(ScoreStream):
    """Works in this process, a step at a time."""

    @abstractmethod
    def step(self) -> dict[bytes, float]:
        """Work for a moment; return the scores that are ready, perhaps none."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of sets in work."""

    def results(self) -> dict[bytes, float]:
        while len(self):
            if found := self.step():
                return found
        return {}

    def close(self) -> None:
        self.request({})


class Judge(ABC):
    """Trains a model on the warm start and a set of pool items, and scores it on held-out items.

    The score of a set depends on the set alone, so caching, batching and speculation never change a search.
    """

    pool: int  # number of items to choose from
    highest: float = 1.0  # possible score
    at_once: int = 1  # this many sets take little more time than one; a search looks ahead for as many

    @abstractmethod
    def scores_on(self, sets: Sequence[IntArray], parts: Sequence[str]) -> FloatArray:
        """The score of each set (sorted positions) on several parts, the mean over the tasks: (parts, sets)."""

    def scores(self, sets: Sequence[IntArray], part: str = "validation") -> FloatArray:
        """Score each set on one part: (sets,). A search uses the validation part, reports the test part."""
        found: FloatArray = self.scores_on(sets, [part])[0]
        return found

    def stream(self) -> ScoreStream:
        """A stream that scores sets as they are needed; by default many at a time."""
        return BatchStream(self)


class BatchStream(LocalStream):
    """Scores all sets of a request together."""

    likely = 0.5  # because nothing that is requested can be withdrawn any more

    def __init__(self, judge: Judge) -> None:
        self.judge, self.room = judge, judge.at_once
        self.sets: SetsByKey = {}

    def __len__(self) -> int:
        return len(self.sets)

    def request(self, sets: SetsByKey) -> None:
        self.sets = sets

    def step(self) -> dict[bytes, float]:
        sets, self.sets = self.sets, {}
        return dict(zip(sets, map(float, self.judge.scores([*sets.values()])), strict=True))


class ScoreCache:
    """Caches a judge's scores by set, and forgets those that were not used for longest."""

    def __init__(self, judge: Judge, size: int = CACHED) -> None:
        self.judge, self.size = judge, size
        self.asked = 0  # sets that were requested
        self.trained = 0  # sets that the judge scored
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def scores(self, sets: Sequence[IntArray]) -> FloatArray:
        """The score of each set; unknown ones are scored by the judge together."""
        keys = [key_of(items) for items in sets]
        new = {key: items for key, items in zip(keys, sets, strict=True) if key not in self._known}
        self.asked += len(keys)
        self.trained += len(new)
        if new:
            found = np.asarray(self.judge.scores(list(new.values())), dtype=float)
            self._known.update(zip(new, found.tolist(), strict=True))
        for key in keys:
            self._known.move_to_end(key)
        answer = np.array([self._known[key] for key in keys], dtype=float)
        self._shrink()
        return answer

    def get(self, key: bytes) -> float:
        """The score of a set by its key; nan if it is not known."""
        return self._known.get(key, np.nan)

    def add(self, scores: Mapping[bytes, float]) -> None:
        """Add scores that came from a stream, by key."""
        self.trained += sum(key not in self._known for key in scores)
        self._known.update(scores)
        self._shrink()

    def _shrink(self) -> None:
        while len(self._known) > self.size:
            self._known.popitem(last=False)

    def __contains__(self, items: IntArray) -> bool:
        return key_of(items) in self._known


def key_of(items: IntArray) -> bytes:
    """A digest of a set."""
    return blake2b(np.asarray(items, dtype=np.int32).tobytes(), digest_size=16).digest()


# -- judges by name --------------------------------------------------------------------------------------------------
def make_judge(name: str, problem: LabellingProblem, *, seed: int = 0, progress: Progress = no_progress) -> Judge:
    """Make a judge; the seed is that of its trainings (the probe has none)."""
    if name == PROBE:
        from bursar.oracle.probe import ProbeJudge

        return ProbeJudge.of(problem, progress=progress)
    from bursar.oracle.network import NetworkJudge

    return NetworkJudge(problem, known_judge(name), seed=seed)


def known_judge(name: str) -> str:
    """Return the name if there is such a judge."""
    if name not in JUDGES:
        raise ConfigError(f"there is no judge {name!r}", fix=f"use {', '.join(JUDGES)}")
    return name


def judges_for(corpus: Corpus) -> dict[str, list[str]]:
    """The judges that support each task of a corpus; only classification and tagging have any."""
    return {name: [judge for judge in JUDGES if _fits(judge, task, corpus)] for name, task in corpus.schema.items()}


def check_fit(judge: str, corpus: Corpus) -> None:
    """Refuse a judge that does not support all tasks of a corpus, and name those that do."""
    fitting = judges_for(corpus)
    unfit = [name for name, judges in fitting.items() if judge not in judges]
    if unfit:
        of_all = [name for name in JUDGES if all(name in judges for judges in fitting.values())]
        tasks = ", ".join(f"{name} ({task.kind})" for name, task in corpus.schema.items())
        items = "texts" if corpus.pairs is None else "pairs of texts"
        if corpus.images is not None:
            items = f"images of {' × '.join(map(str, corpus.images.shape[1:]))}"
        raise ConfigError(
            f"the judge {judge!r} cannot judge {', '.join(unfit)}: the tasks are {tasks}, of {items}",
            fix=f"choose a judge that fits all of them: {', '.join(of_all)}" if of_all else "choose other tasks",
        )


def _fits(judge: str, task: Task, corpus: Corpus) -> bool:
    """The probe fits classification and tagging; networks read single texts, or images of one size."""
    if judge == PROBE:
        return isinstance(task, (Classification, Tagging))
    if corpus.pairs is not None:
        return False
    if corpus.images is None:
        return (judge, task.kind) in ARCHITECTURES
    from bursar.learners.lockstep.convolution import SIDE

    sized = corpus.images.shape[1:] == (SIDE, SIDE)
    return sized and isinstance(task, Classification) and (judge, "images") in ARCHITECTURES
