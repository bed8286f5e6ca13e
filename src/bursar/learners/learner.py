"""The interface of learners, and the registry of learners by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.corpus.builder import recode
from bursar.curriculum import Policy
from bursar.errors import ConfigError, LearnerError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.registry import Registry, suggestion
from bursar.tasks import AnyBeliefs, Task
from bursar.uncertainty import MEASURES, confidences

if TYPE_CHECKING:
    from bursar.learners.rehearsal import Rehearsal

Progress = Callable[[str, float], None]  # what is being done, and the share that is finished, 0 to 1
Options = Mapping[str, Any]  # of a learner, as in the table [learner] of a campaign file
ITEMS_PER_CHUNK = 4096  # scored at a time
Scores = dict[str, dict[str, float]]  # task to score name to score
# What some strategies need of a learner beside probabilities, as messages name it.
PASSES = "dropout passes"
VECTORS = "vectors of items"


def no_progress(what: str, done: float) -> None:
    """Report nothing."""


def part_of(progress: Progress, part: int, parts: int, about: str = "") -> Progress:
    """The callback for the progress of one part of the work."""
    return lambda what, done: progress(what + about, (part + done) / parts)


@dataclass(frozen=True)
class FitReport:
    """The result of a training."""

    items: int
    steps: int
    best_score: float | None  # geometric mean of the tasks' scores on development items
    history: tuple[Mapping[str, float], ...] = field(default=())

    @classmethod
    def together(cls, reports: Sequence[FitReport], tasks: Sequence[int]) -> FitReport:
        """One report for several models with these numbers of tasks; the score is the geometric mean over tasks."""
        if len(reports) == 1:
            return reports[0]
        scores = [report.best_score for report in reports]
        best = None
        if all(score is not None for score in scores):
            best = float(np.prod([(s or 0.0) ** n for s, n in zip(scores, tasks, strict=True)]) ** (1 / sum(tasks)))
        history = tuple({**entry, "model": at} for at, report in enumerate(reports) for entry in report.history)
        return cls(reports[0].items, sum(report.steps for report in reports), best, history)


@dataclass(frozen=True)
class FitOptions:
    """What a training depends on beside the learner and the annotated items; see ``Learner.fit``."""

    dev: Corpus | None
    seed: int
    policy: Policy | None
    checkpoint: Path | None
    log: Path | None
    progress: Progress


class Embeddings(NamedTuple):
    """Vectors of items and, for some learners, of their words."""

    items: NDArray[np.float32]  # (items, width)
    words: NDArray[np.float32] | None  # (words of all items, width), item after item
    lasting: bool = True  # training does not change them


class Learner(ABC):
    """A model that is fitted on a partly labelled corpus and predicts probabilities for other items.

    The same *set* of annotated items, development items and seed give the same predictions, in whatever order the items
    are.

    >>> from bursar.simulation import assistant_corpus
    >>> corpus = assistant_corpus(80, seed=1).with_tasks(["intent"])
    >>> learner = make_learner("scikit", corpus.schema)
    >>> isinstance(learner, Learner), learner.fit(corpus.take(np.arange(60))).items
    (True, 60)
    >>> learner.confidence(corpus.take(np.arange(60, 80))).shape  # (items, tasks)
    (20, 1)
    """

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = dict(tasks)

    @classmethod
    def gives(cls, options: Options) -> frozenset[str]:
        """What it offers beside probabilities with these options: ``PASSES``, ``VECTORS``.

        A strategy that needs more is refused before any label is bought. Learners with dropout override this.
        """
        return frozenset({VECTORS} if cls.vectors is not Learner.vectors else ())

    def fit(
        self,
        annotated: Corpus,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        policy: Policy | None = None,
        checkpoint: Path | None = None,
        log: Path | None = None,
        progress: Progress = no_progress,
    ) -> FitReport:
        """Train from scratch on these items; ``dev`` decides when to stop.

        A ``policy`` decides which task each step trains, and ``log`` is the file for the log of its steps.

        A long training saves its state to the file ``checkpoint`` at intervals. Called again with the same arguments,
        it resumes from there and ends in the same bits. The file is removed at the end.
        """
        self.check_policy(policy, log is not None)
        dev = dev if dev is not None and len(dev) else None
        for name in self.tasks:
            if not _is_labelled(annotated, name):
                raise LearnerError(
                    f"no item is labelled for task {name!r} yet",
                    fix="buy at least one label for every task before training on it",
                )
            if dev is not None and not _is_labelled(dev, name):
                raise LearnerError(f"no development item is labelled for task {name!r}")
        # A model depends on the set of items and the seed, not on the order of the items (errata 25).
        annotated = in_codes_of(self.tasks, annotated)
        annotated = annotated.take(np.argsort(annotated.id_ranks))
        self.check(annotated)
        dev = None if dev is None else in_codes_of(self.tasks, dev)
        return self.train(annotated, FitOptions(dev, seed, policy, checkpoint, log, progress))

    def train(self, annotated: Corpus, options: FitOptions) -> FitReport:
        """Train on items that ``fit`` has checked and sorted by id. Override this, or ``fit`` itself."""
        raise NotImplementedError

    @property
    def adapts(self) -> bool:
        """Whether ``adapt`` does anything."""
        return False

    def adapt(  # noqa: B027 most learners do not use unlabelled items
        self, items: Corpus, *, seed: int = 0, file: Path | None = None, progress: Progress = no_progress
    ) -> None:
        """Learn from unlabelled items before the first training, if the settings say so; ``fit`` starts from there.

        The result is saved to the file, and loaded from it if it was learned from the same items. An interrupted call
        resumes from a checkpoint beside it and ends in the same bits.
        """

    @abstractmethod
    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        """Per task, the probabilities of every unit of every item, in the order of the items.

        One pass is the model itself. More passes are that many dropout samples of it, the same for the same seed.
        Learners without dropout refuse them.
        """

    def check(self, items: Corpus) -> None:  # noqa: B027 most learners accept all labels
        """Refuse labels that this learner cannot be trained on, by item and task."""

    def check_policy(self, policy: Policy | None, logged: bool = False) -> None:
        """Refuse a policy, or a log, that ``fit`` cannot use, before any label is bought.

        Learners without training steps refuse every policy; others override this.
        """
        if policy is not None or logged:
            what = f"the policy {policy.name!r} could choose tasks for" if policy is not None else "could be logged"
            name = getattr(self, "name", type(self).__name__)
            raise ConfigError(
                f"the learner {name!r} has no training steps that {what}",
                fix="use a learner that trains step by step, such as transformer, or name no policy",
            )

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """Vectors of items under the trained model, similar items close together: (items, width). Optional."""
        raise LearnerError(
            f"{type(self).__name__} has no vectors of items",
            fix="use a strategy that needs confidence only, or a learner with an encoder",
        )

    def embeddings(self, items: Corpus, *, progress: Progress = no_progress) -> Embeddings:
        """Vectors of items and their words before training, similar ones close together.

        Learners with a pretrained encoder have vectors of words too, which training does not change. Others return the
        vectors of items under the trained model.
        """
        return Embeddings(self.vectors(items, progress=progress), None, lasting=False)

    @property
    def pretrained(self) -> bool:
        """Whether ``embeddings`` is available before any training."""
        return False

    def rehearse(self, items: Corpus, *, trained: IntArray, known: IntArray, seed: int = 0) -> Rehearsal:
        """A training on the items at positions ``trained`` that can be paused, evaluated and rewound.

        ``known`` are all items whose words the model may learn. The learner itself does not change. Learners without
        training steps refuse.
        """
        raise LearnerError(
            f"the learner {getattr(self, 'name', type(self).__name__)!r} has no training steps to look ahead from",
            fix="use a learner that trains step by step, such as transformer, bilstm or image-cnn",
        )

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Save the trained models to a folder, which is created if necessary."""

    @abstractmethod
    def restore(self, folder: Path) -> None:
        """Load the models that a learner of the same tasks and options saved.

        The folder may come from anyone, so loading it must not run code. A learner whose files could do so also takes
        ``trust: bool = False``, and refuses them with ``UntrustedError`` unless it is true.
        """

    # -- derived from probabilities --------------------------------------------------------------------------------
    def predict(self, items: Corpus) -> dict[str, Ragged]:
        """The predicted label rows."""
        return {name: self.tasks[name].decode(beliefs) for name, beliefs in self.predict_proba(items).items()}

    def confidence(
        self, items: Corpus, measure: str = "entropy", *, seed: int = 0, progress: Progress = no_progress
    ) -> FloatArray:
        """The confidence in every item and task, (items, tasks), computed in chunks that fit into memory."""
        how = MEASURES[measure]
        found = np.zeros((len(items), len(self.tasks)))
        for part, beliefs in self.predict_in_chunks(items, passes=how.passes, seed=seed, progress=progress):
            found[part] = confidences(self.tasks, beliefs, how)
        return found

    def predict_in_chunks(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> Iterator[tuple[IntArray, dict[str, AnyBeliefs]]]:
        """Probabilities of a few thousand items at a time, with their positions: memory does not grow with the pool."""
        for at in range(0, len(items), ITEMS_PER_CHUNK):
            part = np.arange(at, min(at + ITEMS_PER_CHUNK, len(items)))

            def report(what: str, done: float, part: IntArray = part) -> None:
                progress(what, (part[0] + done * len(part)) / len(items))

            yield part, self.predict_proba(items.take(part).unlabelled(), passes=passes, seed=seed, progress=report)

    def evaluate(self, items: Corpus) -> Scores:
        """All scores of every task on the items with its labels; tasks without any are left out."""
        items = in_codes_of(self.tasks, items)
        return evaluate(self.tasks, items, self.predict(items))


def in_codes_of(tasks: Mapping[str, Task], items: Corpus) -> Corpus:
    """The items with label codes of these tasks, which may list the same labels in another order.

    A label that a task does not have is an error, with the first item that has it.
    """
    labels = {}
    for name, task in tasks.items():
        theirs = items.schema.get(name)
        if theirs is None or theirs == task:
            continue
        if theirs.kind != task.kind:
            raise LearnerError(f"task {name!r} is {theirs.kind} in the corpus and {task.kind} in the learner")
        old, labels[name] = items.labels[name].rows, recode(items.labels[name], theirs, task)
        for vocabulary, columns in task.code_columns.items():
            for column in columns:
                unknown = np.flatnonzero(labels[name].rows.values[:, column] < 0)
                if len(unknown):
                    label = getattr(theirs, vocabulary)[old.values[unknown[0], column]]
                    raise LearnerError(
                        f"item {items.ids[int(old.owners[unknown[0]])]!r}: "
                        f"the learner of task {name!r} does not know the label {label!r}",
                        fix="list all labels in the schema before training",
                    )
    if not labels:
        return items
    schema = {name: tasks[name] if name in labels else task for name, task in items.schema.items()}
    return replace(items, schema=schema, labels={**items.labels, **labels})


def _is_labelled(items: Corpus, task: str) -> bool:
    return task in items.schema and bool(items.labels[task].present.any())


def check_number(name: str, value: object, low: float, high: float, *, whole: bool = False) -> None:
    """Refuse a learner's option that is not a number from ``low`` to ``high``."""
    kind = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "whole number" if whole else "number"
        raise ConfigError(f"learner.{name} = {value!r}", fix=f"use a {what} from {low} to {high:,}")


def must_be_trained(models: Sized) -> None:
    """Refuse to predict or save without trained models."""
    if not models:
        raise LearnerError("this learner is not trained yet", fix="call fit first")


def evaluate(tasks: Mapping[str, Task], items: Corpus, predicted: Mapping[str, Ragged]) -> Scores:
    """The scores of predicted labels on the items that have labels."""
    scores: Scores = {}
    for name, rows in predicted.items():
        if name not in items.schema:
            continue
        known = np.flatnonzero(items.labels[name].present)
        if len(known):
            gold = items.labels[name].rows.take(known)
            scores[name] = tasks[name].evaluate(gold, rows.take(known), items.words[known])
    return scores


def geometric_mean(scores: Mapping[str, float]) -> float:
    """The geometric mean of scores, by which training stops early: no task can be neglected for another."""
    values = np.maximum(list(scores.values()), 0.0)
    return float(np.prod(values) ** (1 / len(values))) if len(values) else 0.0


def main_scores(tasks: Mapping[str, Task], dev: Corpus, predicted: Mapping[str, Ragged]) -> tuple[float, float]:
    """The geometric and the arithmetic mean of the tasks' main scores on development items."""
    scores = evaluate(tasks, dev, predicted)
    main = {name: scores[name][task.metric] for name, task in tasks.items()}
    return geometric_mean(main), sum(main.values()) / len(main)


def restore(learner: Learner, place: Path, trust: bool) -> None:
    """Restore a learner from its files; those whose files cannot hold code need not accept ``trust``."""
    trusted: dict[str, Any] = {"trust": True} if trust and "trust" in signature(learner.restore).parameters else {}
    learner.restore(place, **trusted)


LEARNERS: Registry[Callable[..., Learner]] = Registry("learner", "bursar.learners")


def make_learner(name: str, tasks: Mapping[str, Task], options: Options | None = None) -> Learner:
    """Create a learner by name; unknown options are errors.

    >>> from bursar.tasks import Classification
    >>> intent = Classification("intent", ("alarm", "music"))
    >>> make_learner("scikit", {"intent": intent}, {"estimator": "naive-bayes"}).name
    'scikit'
    """
    try:
        return LEARNERS[name](tasks, **dict(options or {}))
    except TypeError as wrong:
        known = _option_names(LEARNERS[name])
        for option in options or {}:
            if option not in known and f"unexpected keyword argument {option!r}" in str(wrong):
                fix = f"{suggestion(option, known)}Known: {', '.join(known)}"
                raise ConfigError(f"learner.{option} is not a setting of {name!r}", fix=fix) from None
        raise ConfigError(f"learner {name!r}: {wrong}") from None


def _option_names(make: Callable[..., Learner]) -> list[str]:
    """The options of a learner, without its tasks."""
    if isinstance(make, LazyLearner):
        make = EntryPoint("", make.place, "").load()
    return [name for name, one in list(signature(make).parameters.items())[1:] if one.kind is not one.VAR_KEYWORD]


def gives(name: str, options: Options | None = None) -> frozenset[str] | None:
    """What a learner offers beside probabilities, without creating it; ``None`` if it does not say."""
    offers = getattr(LEARNERS[name], "gives", None)
    return None if offers is None else offers(dict(options or {}))


@dataclass(frozen=True)
class LazyLearner:
    """A learner that is imported when it is created; what it gives is known before."""

    place: str  # module:class
    given: Callable[[Options], frozenset[str]]
    defaults: Options = field(default_factory=dict)

    def __call__(self, tasks: Mapping[str, Task], **options: Any) -> Learner:
        make: Callable[..., Learner] = EntryPoint("", self.place, "").load()
        return make(tasks, **{**self.defaults, **options})

    def gives(self, options: Options) -> frozenset[str]:
        return self.given({**self.defaults, **options})
