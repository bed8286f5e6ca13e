"""A learner from a Python function that returns probabilities, or an object with ``fit`` and ``predict_proba``."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError
from bursar.learners.features import TaskwiseLearner, restoring, variance_of
from bursar.learners.learner import FitOptions, FitReport, Progress, must_be_trained, no_progress
from bursar.ragged import FloatArray
from bursar.tasks import AnyBeliefs, Beliefs, Estimates, Regression, Task

KEPT = 3  # models in memory: a round's, its predecessor's and the shadow's
ROOM = 1e-3  # by which probabilities may miss a sum of 1

# Texts and labels to train on, and texts to label.
Answering = Callable[[list[str], list[Any], list[str]], Any]


class Training:
    """What a function is trained with for one task, and its answers so far."""

    def __init__(self, task: Task, model: Any, texts: Sequence[str], labels: Sequence[Any]) -> None:
        self.task, self.model, self.texts, self.labels = task, model, list(texts), list(labels)
        self._fitted: Any = None
        self.known: dict[str, FloatArray] = {}  # text to probabilities, or to a number

    def answers(self, texts: Sequence[str], ahead: Iterable[str]) -> FloatArray:
        """The answers for texts, (texts, labels) or (texts, 1); the model is asked once for all that is not known."""
        missing = dict.fromkeys(text for text in texts if text not in self.known)
        if missing:
            asked = list(missing | dict.fromkeys(text for text in ahead if text not in self.known))
            self.known |= dict(zip(asked, self._ask(asked), strict=True))
        width = 1 if isinstance(self.task, Regression) else len(self.task.labels)
        return np.array([self.known[text] for text in texts], dtype=float).reshape(len(texts), width)

    def beliefs(self, texts: Sequence[str], ahead: Iterable[str]) -> AnyBeliefs:
        task, answers = self.task, self.answers(texts, ahead).astype(np.float32)
        if not isinstance(task, Regression):
            return Beliefs.of(answers, np.ones(len(answers), dtype=np.int64))
        errors = np.array(self.labels, dtype=float) - np.mean(self.labels)  # no better is known of its errors
        variances: NDArray[np.float32] = np.full((1, len(answers)), variance_of(errors, task), dtype=np.float32)
        return Estimates(answers[:, 0][None], variances, task.low, task.high)

    def _ask(self, texts: list[str]) -> FloatArray:
        if not hasattr(self.model, "fit"):
            return checked(self.task, self.model(self.texts, self.labels, texts), len(texts))
        if self._fitted is None:
            fresh = copy.deepcopy(self.model)
            self._fitted = fresh.fit(self.texts, self.labels) or fresh
        if isinstance(self.task, Regression):
            return checked(self.task, self._fitted.predict(texts), len(texts))
        found = self._fitted.predict_proba(texts)
        if hasattr(self._fitted, "classes_") and not isinstance(found, list):
            classes = [str(label) for label in self._fitted.classes_]
            found = [dict(zip(classes, row, strict=True)) for row in np.asarray(found).tolist()]
        return checked(self.task, found, len(texts))


def checked(task: Task, answers: Any, texts: int) -> FloatArray:
    """The answers of a function as an array: (texts, labels) in the order of the task's labels, or (texts, 1)."""
    labels = () if isinstance(task, Regression) else task.labels
    place = {label: at for at, label in enumerate(labels)}
    answers = list(answers) if isinstance(answers, list | tuple) else answers
    if isinstance(answers, list) and answers and isinstance(answers[0], Mapping):
        table = np.zeros((len(answers), len(labels)))
        for row, answer in zip(table, answers, strict=True):
            for label, share in answer.items():
                if label not in place:
                    raise LearnerError(f"the model answers task {task.name!r} with the unknown label {label!r}")
                row[place[label]] = share
        answers = table
    try:
        found = np.asarray(answers, dtype=float)
    except (TypeError, ValueError):
        raise _wrong(task, texts, f"{type(answers).__name__} of other things than numbers") from None
    found = found.reshape(-1, 1) if not labels and found.ndim == 1 else found
    if found.shape != (texts, len(labels) or 1):
        raise _wrong(task, texts, f"an array of shape {found.shape}")
    if not np.isfinite(found).all():
        raise _wrong(task, texts, "numbers that are not finite")
    if labels and ((found < 0).any() or (np.abs(found.sum(axis=1) - 1) > ROOM).any()):
        raise _wrong(task, texts, "rows that are negative or do not sum to 1")
    return found / found.sum(axis=1, keepdims=True) if labels else found


def _wrong(task: Task, texts: int, what: str) -> LearnerError:
    if isinstance(task, Regression):
        return LearnerError(f"the model answers task {task.name!r} with {what}", fix=f"return {texts} numbers")
    return LearnerError(
        f"the model answers task {task.name!r} with {what}",
        fix=f"return an array of shape ({texts}, {len(task.labels)}) whose rows sum to 1, with labels in the order "
        f"{', '.join(task.labels[:8])}{', …' if len(task.labels) > 8 else ''}; or a dict of probabilities by label "
        "for each text",
    )


class FunctionLearner(TaskwiseLearner):
    """A function, or an object with ``fit(texts, labels)`` and ``predict_proba(texts)``, as a learner.

    It is called once for each training and task, with all texts of the corpus. What is saved are the texts and labels
    that it was trained on; a restored model is trained again when it is asked something new.
    """

    name = "function"

    def __init__(self, tasks: Mapping[str, Task], *, function: Any = None) -> None:
        super().__init__(tasks)
        by_task = function if isinstance(function, Mapping) else dict.fromkeys(tasks, function)
        for name in tasks:
            model = by_task.get(name)
            if not (callable(model) or hasattr(model, "predict_proba") or hasattr(model, "predict")):
                raise ConfigError(
                    f"learner.function: there is no model for task {name!r}",
                    fix="a Python function cannot be read from a file: give it again in Python, as learner=",
                )
        able = {name: task.kind in ("classification", "regression") for name, task in tasks.items()}
        self.refuse_unless(able, because=": it has one answer for each text")
        self.functions = {name: by_task[name] for name in tasks}
        self._ahead: list[str] = []
        self._trained: dict[str, Training] = {}
        self._memory: dict[str, dict[str, Training]] = {}  # by what they were trained on

    def expect(self, items: Corpus) -> None:
        """Say which items will be asked about, so that the function is called once for all of them."""
        self._ahead = texts_of(items)

    def train(self, annotated: Corpus, options: FitOptions) -> FitReport:
        data = {}
        texts = texts_of(annotated)
        for name in self.tasks:
            known = np.flatnonzero(annotated.labels[name].present).tolist()
            data[name] = {
                "texts": [texts[at] for at in known],
                "labels": [self.tasks[name].value(annotated.labels[name].rows[at]) for at in known],
            }
        self._set(data)
        return self.report(len(annotated), len(self.tasks), options)

    def _set(self, data: Mapping[str, Mapping[str, list[Any]]]) -> None:
        key = hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=12).hexdigest()
        if key not in self._memory:
            made = {name: Training(self.tasks[name], self.functions[name], **data[name]) for name in self.tasks}
            self._memory[key] = made
            for old in list(self._memory)[:-KEPT]:
                del self._memory[old]
        self._trained = self._memory[key]

    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        must_be_trained(self._trained)
        self.refuse_passes(passes)
        texts = texts_of(items)
        found = {name: training.beliefs(texts, self._ahead) for name, training in self._trained.items()}
        progress("scoring", 1.0)
        return found

    def save(self, folder: Path) -> None:
        must_be_trained(self._trained)
        folder.mkdir(parents=True, exist_ok=True)
        data = {name: {"texts": part.texts, "labels": part.labels} for name, part in self._trained.items()}
        (folder / "training.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")

    def restore(self, folder: Path) -> None:
        with restoring(folder):
            data = json.loads((folder / "training.json").read_text(encoding="utf-8"))
            if {*data} != {*self.tasks}:
                raise LearnerError("it is of other tasks")
            self._set(data)


def texts_of(items: Corpus) -> list[str]:
    """The text of every item; the second text of a pair is on a line of its own."""
    if items.texts is None:
        raise LearnerError("this model reads texts, and the corpus has none", fix="use a learner of images")
    texts: list[str] = items.texts.strings.tolist()
    if items.pairs is None:
        return texts
    return [f"{text}\n{pair}" if pair else text for text, pair in zip(texts, items.pairs.strings.tolist(), strict=True)]


class Named:
    """A model of one's own under a name that changes when it does."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.bursar_name = model, name


def from_function(function: Any, name: str | None = None) -> dict[str, Any]:
    """A model of your own as ``learner=``: a function of training texts, their labels and texts to label.

    It returns probabilities: an array (texts, labels) in the order of the task's labels, or a dict by label for each
    text; for regression, numbers. Or an object with ``fit(texts, labels)`` and ``predict_proba(texts)``. For several
    tasks, give one for all, or a dict by task. ``name`` makes it durable: give another whenever the model changes.

    >>> import bursar
    >>> def shares(train_texts, train_labels, texts):
    ...     found = {label: train_labels.count(label) / len(train_labels) for label in train_labels}
    ...     return [found] * len(texts)
    >>> corpus = bursar.assistant_corpus(60, seed=1).with_tasks(["intent"])
    >>> learner = bursar.ActiveLearner(corpus.unlabelled(), budget=10, strategy="random", learner=from_function(shares))
    >>> len(learner.ask())
    3
    """
    return {"name": FunctionLearner.name, "function": function if name is None else Named(function, name)}
