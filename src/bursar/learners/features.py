"""Learners that fit one model per task, and those of them that fit it on fixed features.

Encoders come in through ``frozen`` only. Nothing here needs torch, which takes seconds to import.
"""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from threadpoolctl import ThreadpoolController

from bursar.corpus import Corpus
from bursar.errors import LearnerError, UntrustedError
from bursar.learners.learner import FitOptions, FitReport, Learner, Progress, main_scores, must_be_trained, no_progress
from bursar.ragged import FloatArray
from bursar.tasks import AnyBeliefs, Beliefs, Estimates, Regression, Task

Vectors = NDArray[np.float32]


# -- images ------------------------------------------------------------------------------------------------------
def pixels(items: Corpus) -> Vectors:
    """Flattened images: (items, pixels). Whole numbers are divided by the largest of their type."""
    assert items.images is not None
    flat = items.images.reshape(len(items), int(np.prod(items.images.shape[1:])))
    brightest = np.iinfo(flat.dtype).max if flat.dtype.kind in "iu" else 1
    return flat.astype(np.float32) / np.float32(brightest)


class Components(NamedTuple):
    """Principal components of some images."""

    mean: Vectors  # (pixels,)
    axes: Vectors  # (pixels, components)

    @classmethod
    def of(cls, images: Vectors, most: int) -> Components:
        """Components with a variance above rounding error, from the smaller of the two Gram matrices.

        On one thread, because the last bits of a product depend on the number of threads.
        """
        with one_thread():
            mean = images.mean(axis=0)
            centred = images - mean
            few = len(images) < images.shape[1]
            gram = (centred @ centred.T if few else centred.T @ centred).astype(np.float64)
            kept = min(most, len(gram))
            strength, vectors = eigh(gram, subset_by_index=(len(gram) - kept, len(gram) - 1), driver="evr")
            carrying = max(1, int((strength > 1e-6 * strength[-1]).sum()))
            strength, vectors = strength[::-1][:carrying], vectors[:, ::-1][:, :carrying]
            axes = centred.T @ (vectors / np.sqrt(np.maximum(strength, 1e-30))) if few else vectors
        return cls(mean, axes.astype(np.float32))

    def project(self, images: Vectors) -> Vectors:
        with one_thread():
            return np.asarray((images - self.mean) @ self.axes, dtype=np.float32)


# -- learners ------------------------------------------------------------------------------------------------------
class Model(Protocol):
    """The fitted model of one task: a row of features per unit to predictions."""

    def predict_proba(self, rows: Any) -> tuple[NDArray[Any], ...]:
        """Probabilities (units, labels), or for regression the means (items,) and variances (items,)."""
        ...


class TaskwiseLearner(Learner):
    """One model per task, without dropout, policy or early stopping."""

    name: str  # as in the registry

    def refuse_unless(self, able: Mapping[str, bool], because: str = "") -> None:
        """Refuse tasks that cannot be trained, before any label is bought for them."""
        unable = [f"{name!r} ({self.tasks[name].kind})" for name, can in able.items() if not can]
        if unable:
            raise LearnerError(
                f"the learner {self.name!r} cannot train {', '.join(unable)}{because}",
                fix=f"name the tasks it can train: tasks = {[name for name, can in able.items() if can]}",
            )

    def refuse_passes(self, passes: int) -> None:
        if passes != 1:
            raise LearnerError(
                f"the learner {self.name!r} has no dropout, so it cannot make {passes} passes",
                fix="use passes=1, or a confidence measure that needs no passes",
            )

    def report(self, items: int, steps: int, options: FitOptions) -> FitReport:
        """The report of a finished training."""
        score = None if options.dev is None else main_scores(self.tasks, options.dev, self.predict(options.dev))[0]
        options.progress("training", 1.0)
        return FitReport(items, steps, score)


@contextmanager
def restoring(folder: Path) -> Iterator[None]:
    """Name the folder in errors, whatever they are: a damaged file can raise anything."""
    try:
        yield
    except UntrustedError:
        raise
    except Exception as wrong:
        raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None


class FeatureLearner(TaskwiseLearner):
    """One model per task on fixed features; for tagging, a word's tag is predicted from its features alone."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        super().__init__(tasks)
        self.refuse_unless({name: can_train(task) for name, task in tasks.items()})
        self.models: dict[str, Model] = {}

    # -- to implement ----------------------------------------------------------------------------------------------
    @abstractmethod
    def settle(self, annotated: Corpus) -> None:
        """Prepare the features, from all training items."""

    @abstractmethod
    def rows(self, task: Task, items: Corpus, progress: Progress) -> Any:
        """The features of every unit of every item: a row each."""

    @abstractmethod
    def model(self, task: Task, rows: Any, targets: NDArray[Any], seed: int) -> Model:
        """Fit a model to rows and their targets: label codes, or numbers."""

    @abstractmethod
    def options(self) -> dict[str, object]:
        """The options that models depend on, as JSON: saved models are loaded by a learner with the same options."""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the models to a folder."""

    @abstractmethod
    def read(self, folder: Path, trust: bool) -> None:
        """Read the models of a folder, or raise anything and change nothing. Run no code from it without ``trust``."""

    # -- shared ----------------------------------------------------------------------------------------------------
    def train(self, annotated: Corpus, options: FitOptions) -> FitReport:
        self.models = {}
        models: dict[str, Model] = {}
        with one_thread(), warnings.catch_warnings():
            # A dozen items with as many labels are common here.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            self.settle(annotated)
            for done, (name, task) in enumerate(self.tasks.items()):
                options.progress("training", done / len(self.tasks))
                present = annotated.labels[name].present
                items = annotated if present.all() else annotated.take(np.flatnonzero(present))
                labels = items.labels[name].rows
                rows = self.rows(task, items, options.progress)
                if not rows.shape[0]:
                    raise LearnerError(f"no word is labelled for task {name!r} yet", fix="label an item that has words")
                models[name] = self.model(task, rows, task.targets(labels, items.words), options.seed)
        self.models = models
        return self.report(len(annotated), len(self.tasks), options)

    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        must_be_trained(self.models)
        self.refuse_passes(passes)
        found: dict[str, AnyBeliefs] = {}
        for name, task in self.tasks.items():
            rows = self.rows(task, items, progress)
            with one_thread():
                predicted = self.models[name].predict_proba(rows)
            if isinstance(task, Regression):
                means, variances = (np.asarray(part, dtype=np.float32)[None] for part in predicted)
                found[name] = Estimates(means, variances, task.low, task.high)
            else:
                found[name] = Beliefs.of(predicted[0], task.units(items.words))
        progress("scoring", 1.0)
        return found

    # -- saved models ----------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        must_be_trained(self.models)
        folder.mkdir(parents=True, exist_ok=True)
        self.write(folder)
        (folder / "learner.json").write_text(json.dumps(self._about(), indent=1))

    def restore(self, folder: Path, *, trust: bool = False) -> None:
        """See ``Learner``. A file that could run code is refused, unless you ``trust`` it."""
        with restoring(folder):
            if json.loads((folder / "learner.json").read_text()) != self._about():
                raise LearnerError("it is a learner of other tasks or options")
            self.read(folder, trust)

    def _about(self) -> dict[str, object]:
        tasks = {name: task.describe() for name, task in self.tasks.items()}
        return {"learner": self.name, "options": self.options(), "tasks": tasks}


@cache
def _blas() -> Any:
    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which numpy and scipy use one thread, which is faster on problems this small."""
    return _blas().limit(limits=1, user_api="blas")


def can_train(task: Task) -> bool:
    """Whether a model of features fits the task: every unit has a class, or every item a number."""
    return task.classes is not None or isinstance(task, Regression)


def classes_of(task: Task) -> int:
    """The number of classes of a unit."""
    assert task.classes is not None
    return task.classes


def variance_of(errors: FloatArray, task: Regression) -> float:
    """The mean square of n errors and, with weight 1/n, the variance of a uniform number in the task's range."""
    usual, weight = (task.high - task.low) ** 2 / 12, 1 / max(len(errors), 1)
    return float((errors**2).sum() + weight * usual) / (len(errors) + weight)
