"""The contract of learners, and the registry that finds them by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.curriculum import Policy
from bursar.errors import ConfigError, LearnerError
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.registry import Registry
from bursar.tasks import AnyBeliefs, Task
from bursar.uncertainty import MEASURES, confidences

if TYPE_CHECKING:
    from bursar.learners.rehearsal import Rehearsal

Progress = Callable[[str, float], None]  # what is going on, and how far it is, 0 to 1
ITEMS_A_PART = 4096  # scored at a time
Scores = dict[str, dict[str, float]]  # task to score name to score
# What some strategies need of a learner beside beliefs, as a message names it.
PASSES = "dropout passes"
VECTORS = "vectors of items"


def no_progress(what: str, done: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class FitReport:
    """How a training went."""

    items: int
    steps: int
    best_score: float | None  # geometric mean of the tasks' scores on development items
    history: tuple[Mapping[str, float], ...] = field(default=())

    @classmethod
    def together(cls, reports: Sequence[FitReport], tasks: Sequence[int]) -> FitReport:
        """The report of several models, of so many tasks each, as one; the score is the geometric mean over tasks."""
        if len(reports) == 1:
            return reports[0]
        scores = [report.best_score for report in reports]
        best = None
        if all(score is not None for score in scores):
            best = float(np.prod([(s or 0.0) ** n for s, n in zip(scores, tasks, strict=True)]) ** (1 / sum(tasks)))
        history = tuple({**entry, "model": at} for at, report in enumerate(reports) for entry in report.history)
        return cls(reports[0].items, sum(report.steps for report in reports), best, history)


class Embeddings(NamedTuple):
    """Vectors of items, and of their words where there are any."""

    items: NDArray[np.float32]  # (items, width)
    words: NDArray[np.float32] | None  # (words of all items, width), item after item
    lasting: bool = True  # no training changes them


class Learner(ABC):
    """Fits on a corpus that may lack labels for some items and tasks, and says what it believes of others.

    The same annotated *set*, development items and seed give the same beliefs, in whatever order the items come.
    """

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = dict(tasks)

    @classmethod
    def gives(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """What it gives beside beliefs when it is made with these options: ``PASSES``, ``VECTORS``.

        A strategy that needs more is refused before anything is bought. A learner with dropout has its own ``gives``.
        """
        return frozenset({VECTORS} if cls.vectors is not Learner.vectors else ())

    @abstractmethod
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
        """Forget what was learned and learn from these items; ``dev`` decides when to stop.

        A ``policy`` decides which task each step trains, and ``log`` is the file that all its steps are written to.

        A long training writes its state to the file ``checkpoint`` now and then and goes on from there when it is
        called again with the same arguments; the result is the same to the bit. The file is removed at the end.
        """

    @property
    def adapts(self) -> bool:
        """Whether ``adapt`` does anything."""
        return False

    def adapt(  # noqa: B027 most learners learn nothing from unlabelled items
        self, items: Corpus, *, seed: int = 0, file: Path | None = None, progress: Progress = no_progress
    ) -> None:
        """Read unlabelled items before the first training, where the settings ask for it; ``fit`` begins from there.

        What was learned is kept in the file, and taken from it if it was learned from the same items. An interrupted
        call goes on from a checkpoint beside it, to the same bits.
        """

    @abstractmethod
    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        """Per task, what is believed of every unit of every item, in the order of the items.

        One pass is the model itself; more are that many thinned versions of it (dropout), the same for the same seed.
        A learner that has no thinned versions refuses.
        """

    def check(self, items: Corpus) -> None:  # noqa: B027 most learners can be trained on anything
        """Refuse labels that this learner could not be trained on, by item and task; there may be none such."""

    def check_policy(self, policy: Policy | None, logged: bool = False) -> None:
        """Refuse a policy, or a log of the steps, that ``fit`` could do nothing with; before anything is spent.

        A learner that trains step by step and asks a policy has its own: others refuse every one.
        """
        if policy is not None or logged:
            what = f"the policy {policy.name!r} could choose tasks for" if policy is not None else "could be logged"
            name = getattr(self, "name", type(self).__name__)
            raise ConfigError(
                f"the learner {name!r} has no training steps that {what}",
                fix="use a learner that trains step by step, such as transformer, or name no policy",
            )

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """Where the model puts items, like ones close to each other: (items, width). Not every learner can say."""
        raise LearnerError(
            f"{type(self).__name__} has no vectors of items",
            fix="use a strategy that looks at confidence alone, or a learner with an encoder",
        )

    def embeddings(self, items: Corpus, *, progress: Progress = no_progress) -> Embeddings:
        """Where items and their words lie before any training, like ones close to each other.

        A learner whose encoder was pretrained has vectors of words as well, which no training changes. For others
        it is where the trained model puts items.
        """
        return Embeddings(self.vectors(items, progress=progress), None, lasting=False)

    @property
    def pretrained(self) -> bool:
        """Whether ``embeddings`` can be asked for before any training."""
        return False

    def rehearse(self, items: Corpus, *, trained: IntArray, known: IntArray, seed: int = 0) -> Rehearsal:
        """A training on the items at positions ``trained`` that can be stopped, tried out and put back.

        ``known`` are all items whose words a model may learn. What was learned before stays. Learners that do not train
        step by step refuse.
        """
        raise LearnerError(
            f"the learner {getattr(self, 'name', type(self).__name__)!r} has no training steps to look ahead from",
            fix="use a learner that trains step by step, such as transformer, bilstm or image-cnn",
        )

    @abstractmethod
    def save(self, folder: Path) -> None:
        """All that ``restore`` needs, in a folder that is made if need be."""

    @abstractmethod
    def restore(self, folder: Path) -> None:
        """Believe again what was believed when this was saved, by a learner of the same tasks and options.

        The folder may come from anybody, so loading it must run no code of its own. A learner whose files could do so
        takes ``trust: bool = False`` as well, and refuses them with ``UntrustedError`` unless it is true.
        """

    # -- what follows from beliefs -----------------------------------------------------------------------------------
    def predict(self, items: Corpus) -> dict[str, Ragged]:
        """The label rows that the beliefs speak for."""
        return {name: self.tasks[name].decode(beliefs) for name, beliefs in self.predict_proba(items).items()}

    def confidence(
        self, items: Corpus, measure: str = "entropy", *, seed: int = 0, progress: Progress = no_progress
    ) -> FloatArray:
        """How sure the learner is of every item, a column a task.

        Items are taken a part at a time, so a million of them need no more memory than their confidences.
        """
        how = MEASURES[measure]
        found = np.zeros((len(items), len(self.tasks)))
        for part, beliefs in self.believe_in_parts(items, passes=how.passes, seed=seed, progress=progress):
            found[part] = confidences(self.tasks, beliefs, how)
        return found

    def believe_in_parts(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> Iterator[tuple[IntArray, dict[str, AnyBeliefs]]]:
        """What is believed of some thousand items at a time, and which they are: memory does not grow with the pool."""
        for at in range(0, len(items), ITEMS_A_PART):
            part = np.arange(at, min(at + ITEMS_A_PART, len(items)))

            def told(what: str, done: float, part: IntArray = part) -> None:
                progress(what, (part[0] + done * len(part)) / len(items))

            yield part, self.predict_proba(items.take(part).unlabelled(), passes=passes, seed=seed, progress=told)

    def evaluate(self, items: Corpus) -> Scores:
        """Every score of every task on the items that have its labels; a task without any is left out."""
        items = in_codes_of(self.tasks, items)
        return evaluate(self.tasks, items, self.predict(items))


def in_codes_of(tasks: Mapping[str, Task], items: Corpus) -> Corpus:
    """The items with their labels in the codes of these tasks, which may list the same names in another order.

    A label that a task does not have is an error that names it and the first item with it.
    """
    labels = {}
    for name, task in tasks.items():
        theirs = items.schema.get(name)
        if theirs is None or theirs == task:
            continue
        if theirs.kind != task.kind:
            raise LearnerError(f"task {name!r} is {theirs.kind} in the corpus and {task.kind} in the learner")
        column = items.labels[name]
        rows = column.rows.values.copy()
        for field_, columns in task.code_columns.items():
            known = {label: code for code, label in enumerate(getattr(task, field_))}
            codes = np.array([known.get(label, -1) for label in getattr(theirs, field_)], dtype=rows.dtype)
            for place in columns:
                old = rows[:, place]
                rows[:, place] = codes[old]
                unknown = np.flatnonzero(rows[:, place] < 0)
                if len(unknown):
                    label = getattr(theirs, field_)[column.rows.values[unknown[0], place]]
                    raise LearnerError(
                        f"item {items.ids[int(column.rows.owners[unknown[0]])]!r}: "
                        f"the learner of task {name!r} does not know the label {label!r}",
                        fix="list all labels in the schema before training",
                    )
        labels[name] = Labels(column.present, Ragged(rows, column.rows.offsets))
    if not labels:
        return items
    schema = {name: tasks[name] if name in labels else task for name, task in items.schema.items()}
    return replace(items, schema=schema, labels={**items.labels, **labels})


def evaluate(tasks: Mapping[str, Task], items: Corpus, guesses: Mapping[str, Ragged]) -> Scores:
    """The scores of guesses on the items that have labels."""
    scores: Scores = {}
    for name, guess in guesses.items():
        if name not in items.schema:
            continue
        known = np.flatnonzero(items.labels[name].present)
        if len(known):
            gold = items.labels[name].rows.take(known)
            scores[name] = tasks[name].evaluate(gold, guess.take(known), items.words[known])
    return scores


def geometric_mean(scores: Mapping[str, float]) -> float:
    """One number for all tasks that no task can be sacrificed for: what early stopping looks at.

    >>> round(geometric_mean({"intent": 0.9, "slots": 0.4}), 6)
    0.6
    """
    values = np.maximum(list(scores.values()), 0.0)
    return float(np.prod(values) ** (1 / len(values))) if len(values) else 0.0


def main_scores(tasks: Mapping[str, Task], dev: Corpus, guesses: Mapping[str, Ragged]) -> tuple[float, float]:
    """The geometric and the arithmetic mean of the tasks' main scores on development items."""
    scores = evaluate(tasks, dev, guesses)
    main = {name: scores[name][task.metric] for name, task in tasks.items()}
    return geometric_mean(main), sum(main.values()) / len(main)


LEARNERS: Registry[Callable[..., Learner]] = Registry("learner", "bursar.learners")


def make_learner(name: str, tasks: Mapping[str, Task], options: Mapping[str, Any] | None = None) -> Learner:
    """A learner by name, with its options checked."""
    try:
        return LEARNERS[name](tasks, **dict(options or {}))
    except TypeError as wrong:
        raise ConfigError(f"learner {name!r}: {wrong}") from None


def gives(name: str, options: Mapping[str, Any] | None = None) -> frozenset[str] | None:
    """What a learner gives beside beliefs, known without making it; ``None`` if whoever registered it did not say.

    >>> sorted(gives("transformer")), sorted(gives("scikit"))
    (['dropout passes', 'vectors of items'], [])
    >>> sorted(gives("cnn")), sorted(gives("cnn", {"dropout": 0.5}))
    (['vectors of items'], ['dropout passes', 'vectors of items'])
    """
    says = getattr(LEARNERS[name], "gives", None)
    return None if says is None else says(dict(options or {}))


@dataclass(frozen=True)
class _Later:
    """A learner of ours, imported when it is made; what it gives is known before."""

    module: str
    name: str
    says: Callable[[Mapping[str, Any]], frozenset[str]]
    usual: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, tasks: Mapping[str, Task], **options: Any) -> Learner:
        made: Learner = getattr(import_module(f"bursar.learners.{self.module}"), self.name)(
            tasks, **{**self.usual, **options}
        )
        return made

    def gives(self, options: Mapping[str, Any]) -> frozenset[str]:
        return self.says({**self.usual, **options})


def neural_gives(options: Mapping[str, Any]) -> frozenset[str]:
    """Dropout is in a transformer's layers and, where the options say so, in the heads."""
    thins = options.get("dropout") != 0 or str(options.get("encoder", "")).partition(":")[0] not in UNTHINNED
    return frozenset({PASSES, VECTORS} if thins else {VECTORS})


# Paper 4's small networks are trained as its authors do (errata 26): Adam at one rate, plain cross-entropy.
_SMALL = {
    "epochs": 100,
    "patience": 20,
    "evaluate_every": 1,
    "learning_rate": 1e-3,
    "head_learning_rate": 1e-3,
    "weight_decay": 0.0,
    "warmup": 0.0,
    "decay": False,
    "smoothing": 0.0,
    "dropout": 0.0,
    "tag_head": "linear",
}
UNTHINNED = ("bilstm", "cnn", "aoe", "image-cnn")  # encoders without dropout of their own
LEARNERS.add("transformer", _Later("neural", "NeuralLearner", neural_gives))
for _name in UNTHINNED:
    LEARNERS.add(_name, _Later("neural", "NeuralLearner", neural_gives, {**_SMALL, "encoder": _name}))
LEARNERS.add("probe", _Later("probe", "ProbeLearner", lambda options: frozenset({VECTORS})))
LEARNERS.add("scikit", _Later("scikit", "ScikitLearner", lambda options: frozenset()))
