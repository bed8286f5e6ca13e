"""Any estimator of scikit-learn as a learner: on words, on the vectors of a frozen encoder, or on pixels.

>>> from sklearn.ensemble import ExtraTreesClassifier
>>> from bursar.simulation import assistant_corpus
>>> corpus = assistant_corpus(60, seed=1).with_tasks(["intent"])
>>> learner = ScikitLearner(corpus.schema, estimator=ExtraTreesClassifier(10))
>>> learner.fit(corpus).items
60
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError, UntrustedError
from bursar.learners.encoders import BUNDLED
from bursar.learners.estimator_files import load_estimators, save_estimators
from bursar.learners.features import FeatureLearner, Model, classes_of, pixels, variance_of
from bursar.learners.frozen import FrozenEncoder, frozen
from bursar.learners.learner import Progress
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import Regression, Tagging, Task

FEATURES = ("words", "encoder")
MOST_SIGNS = 50_000  # of all that tells tags, the most frequent: an estimator may keep a weight for each and every tag
FOLDS = 5

# An estimator by the name of the task's kind, and whether the features are dense; None where there is none.
ESTIMATORS: Registry[Callable[[str, bool], Any]] = Registry("estimator", "bursar.estimators")


def _logistic(kind: str, dense: bool) -> Any:
    return Ridge() if kind == Regression.kind else LogisticRegression(C=1.0 if dense else 10.0, max_iter=1000)


def _naive_bayes(kind: str, dense: bool) -> Any:
    if kind == Regression.kind:
        return None
    return GaussianNB() if dense else MultinomialNB(alpha=0.1)


def _random_forest(kind: str, dense: bool) -> Any:
    return RandomForestRegressor(100) if kind == Regression.kind else RandomForestClassifier(100)


ESTIMATORS.add("logistic", _logistic)
ESTIMATORS.add("naive-bayes", _naive_bayes)
ESTIMATORS.add("random-forest", _random_forest)


# -- what is learned for one task ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Choice:
    """A fitted classifier, its probabilities spread to labels it never saw: together 1 in n + 1."""

    estimator: Any  # None where only one label was seen, which most estimators refuse to be fitted on
    seen: IntArray  # the codes of the labels that were seen
    labels: int
    units: int  # how many it was fitted on

    def learned(self) -> dict[str, Any]:
        """What was learned beside the estimator, for JSON."""
        return {"seen": self.seen.tolist(), "units": self.units}

    def predict_proba(self, rows: Any) -> tuple[NDArray[Any], ...]:
        found = np.zeros((rows.shape[0], self.labels))
        if len(found):
            found[:, self.seen] = 1.0 if self.estimator is None else self.estimator.predict_proba(rows)
        unseen = np.setdiff1d(np.arange(self.labels), self.seen)
        if len(unseen):
            found *= self.units / (self.units + 1)
            found[:, unseen] = 1 / (self.units + 1) / len(unseen)
        return (found,)


@dataclass(frozen=True)
class Number:
    """A fitted regressor; the variance is that of its errors on items it was not fitted on, the same for all."""

    estimator: Any
    variance: float

    def learned(self) -> dict[str, Any]:
        """What was learned beside the estimator, for JSON."""
        return {"variance": self.variance}

    def predict_proba(self, rows: Any) -> tuple[NDArray[Any], ...]:
        means = np.asarray(self.estimator.predict(rows)).reshape(-1) if rows.shape[0] else np.zeros(0)
        return means, np.full(len(means), self.variance)


# -- features ------------------------------------------------------------------------------------------------------
def terms(words: list[str]) -> list[str]:
    """The words of an item and its pairs of neighbours.

    >>> terms(["wake", "me", "up"])
    ['wake', 'me', 'up', 'wake me', 'me up']
    """
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def documents(items: Corpus) -> list[list[str]]:
    """The words of every item in small letters; those of a pair's second text are marked."""
    texts, pairs = _words(items), [[] for _ in range(len(items))] if items.pairs is None else items.pairs.all_words()
    return [
        [word.lower() for word in text] + [f"|{word.lower()}" for word in pair]
        for text, pair in zip(texts, pairs, strict=True)
    ]


def word_signs(words: list[str]) -> list[list[str]]:
    """What tells the tag of each word: itself, its beginning and end, its shape, and its neighbours.

    >>> word_signs(["at", "7.30"])[1]
    ['w=7.30', 's=0.00', 'b2=7.', 'b3=7.3', 'e2=30', 'e3=.30', '-2=', '-1=at', '+1=', '+2=']
    """
    small = ["", "", *(word.lower() for word in words), "", ""]
    found = []
    for at, word in enumerate(words):
        here = small[at + 2]
        ends = [f"b2={here[:2]}", f"b3={here[:3]}", f"e2={here[-2:]}", f"e3={here[-3:]}"]
        around = [f"{step:+}={small[at + 2 + step]}" for step in (-2, -1, 1, 2)]
        found.append([f"w={here}", f"s={_shape(word)}", *ends, *around])
    return found


def all_signs(items: Corpus) -> list[list[str]]:
    """The signs of every word of every item."""
    return [signs for words in _words(items) for signs in word_signs(words)]


def _shape(word: str) -> str:
    """Letters as x or X, digits as 0, other marks as they are; not more than two of a sort in a row."""
    shape = ""
    for mark in word:
        kind = "0" if mark.isdigit() else mark if not mark.isalpha() else "X" if mark.isupper() else "x"
        if not shape.endswith(kind * 2):
            shape += kind
    return shape


def _words(items: Corpus) -> list[list[str]]:
    assert items.texts is not None
    return items.texts.all_words()


# -- the learner ---------------------------------------------------------------------------------------------------
class ScikitLearner(FeatureLearner):
    """An estimator of scikit-learn a task: classifiers with ``predict_proba``, regressors with ``predict``.

    ``estimator`` is an instance, cloned for each task, or a name: logistic, naive-bayes, random-forest. ``features``
    are "words" (TF-IDF of words and word pairs; for tagging the word, its shape and its neighbours) or "encoder" (the
    vectors of a frozen encoder). Images are their pixels.
    """

    name = "scikit"

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        estimator: Any = "logistic",
        features: str = "words",
        encoder: str | FrozenEncoder = BUNDLED,
    ) -> None:
        super().__init__(tasks)
        if features not in FEATURES:
            raise ConfigError(f"learner.features = {features!r}", fix=f"use {' or '.join(map(repr, FEATURES))}")
        is_estimator = all(hasattr(estimator, name) for name in ("fit", "predict", "get_params"))
        if not isinstance(estimator, str) and (isinstance(estimator, type) or not is_estimator):
            raise ConfigError(
                f"learner.estimator = {estimator!r}",
                fix=f"use one of {', '.join(map(repr, ESTIMATORS))}, or from Python an instance of an estimator",
            )
        self._make = ESTIMATORS[estimator] if isinstance(estimator, str) else lambda kind, dense: estimator
        self.refuse_unless({name: _can_train(self._make(task.kind, True), task) for name, task in tasks.items()})
        self._described = estimator if isinstance(estimator, str) else type(estimator).__qualname__
        self.features = features
        self.encoder = frozen(encoder) if features == "encoder" else None
        self._tables: dict[str, Any] = {}  # for items and for words, what their features are

    def settle(self, annotated: Corpus) -> None:
        self._tables = {}
        if annotated.texts is None or self.features == "encoder":
            return
        # A training set without a single word still has a vocabulary.
        if any(isinstance(task, Tagging) for task in self.tasks.values()):
            self._tables["words"] = _new_table("words").fit(all_signs(annotated) or [[""]])
        if not all(isinstance(task, Tagging) for task in self.tasks.values()):
            found = documents(annotated)
            self._tables["items"] = _new_table("items").fit(found if any(found) else [[""]])

    def rows(self, task: Task, items: Corpus, progress: Progress) -> Any:
        tags = isinstance(task, Tagging)
        if items.images is not None:
            if tags:
                raise LearnerError(f"task {task.name!r} tags words, and images have none")
            return pixels(items)
        if self.encoder is not None:
            return self.encoder.word_vectors(items, progress) if tags else self.encoder.item_vectors(items, progress)
        if not self._tables:
            raise LearnerError("this learner was trained on images, and the corpus has texts")
        table, units = self._tables["words" if tags else "items"], all_signs(items) if tags else documents(items)
        return table.transform(units) if units else csr_matrix((0, len(table.vocabulary_)))

    def model(self, task: Task, rows: Any, targets: NDArray[Any], seed: int) -> Model:
        estimator = clone(self._make(task.kind, not issparse(rows)))
        seed %= 2**32  # more than that numpy's old generator cannot take
        seeds = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
        estimator.set_params(**dict.fromkeys(seeds, seed))
        try:
            if isinstance(task, Regression):
                variance = variance_of(_errors(estimator, rows, targets, seed), task)
                return Number(estimator.fit(rows, targets), variance)
            seen = np.unique(targets)
            fitted = estimator.fit(rows, targets) if len(seen) > 1 else None
        except (TypeError, ValueError) as wrong:
            raise LearnerError(
                f"task {task.name!r}: {type(estimator).__name__} cannot be fitted: {wrong}",
                fix="use another estimator, other features, or label more items",
            ) from None
        return Choice(fitted, seen, classes_of(task), len(targets))

    # -- keeping ---------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        """The fitted estimators in a file of skops; as JSON the vocabularies, the tasks and the options."""
        self._must_have_learned()
        folder.mkdir(parents=True, exist_ok=True)
        models: dict[str, Any] = dict(self._models)
        save_estimators(folder, {name: model.estimator for name, model in models.items()})
        learned = {
            "tables": {name: _written(table) for name, table in self._tables.items()},
            "models": {name: model.learned() for name, model in models.items()},
        }
        (folder / "learned.json").write_text(json.dumps(learned))
        (folder / "learner.json").write_text(json.dumps(self._about(), indent=1))

    def restore(self, folder: Path, *, trust: bool = False) -> None:
        """Believe again what was saved. A file that could run code is refused, unless you ``trust`` it."""
        try:
            if json.loads((folder / "learner.json").read_text()) != self._about():
                raise LearnerError("it is a learner of other tasks or options")
            estimators = load_estimators(folder, trust)
            learned = json.loads((folder / "learned.json").read_text())
            tables = {name: _table(name, learned["tables"][name]) for name in learned["tables"]}
            if {*estimators} != {*learned["models"]} or {*estimators} != {*self.tasks}:
                raise LearnerError("its estimators are for other tasks")
            models = {
                name: self._restored(task, estimators[name], learned["models"][name], dense=not tables)
                for name, task in self.tasks.items()
            }
        except UntrustedError:
            raise
        except Exception as wrong:  # whatever a damaged file may raise
            raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None
        self._tables, self._models = tables, models

    def _restored(self, task: Task, estimator: Any, learned: Mapping[str, Any], dense: bool) -> Model:
        known = type(self._make(task.kind, dense))
        if type(estimator) is not known and (estimator is not None or isinstance(task, Regression)):
            raise LearnerError(f"task {task.name!r} has a {type(estimator).__name__}, and not a {known.__name__}")
        if isinstance(task, Regression):
            return Number(estimator, float(learned["variance"]))
        seen = np.array(learned["seen"], dtype=np.int64)
        if not len(seen) or not ((seen >= 0) & (seen < classes_of(task))).all():
            raise LearnerError(f"task {task.name!r} was trained on labels that the task does not have")
        return Choice(estimator, seen, classes_of(task), int(learned["units"]))

    def _about(self) -> dict[str, object]:
        encoder = None if self.encoder is None else [self.encoder.name, self.encoder.layers]
        options = {"estimator": self._described, "features": self.features, "encoder": encoder}
        return {"learner": self.name, "options": options, "tasks": self._described_tasks()}


def _new_table(what: str) -> Any:
    """What counts the signs of words, or weighs the terms of items."""
    if what == "words":
        return CountVectorizer(analyzer=list, binary=True, max_features=MOST_SIGNS, dtype=np.float64)
    return TfidfVectorizer(analyzer=terms)


def _written(table: Any) -> dict[str, Any]:
    """All that a fitted table has learned, for JSON: its vocabulary in order, and what each term weighs."""
    weights = {"weights": table.idf_.tolist()} if isinstance(table, TfidfVectorizer) else {}
    return {"vocabulary": sorted(table.vocabulary_, key=table.vocabulary_.__getitem__)} | weights


def _table(what: str, learned: Mapping[str, Any]) -> Any:
    """A table that has learned this before."""
    table = _new_table(what)
    table.vocabulary_ = {str(term): place for place, term in enumerate(learned["vocabulary"])}
    table.fixed_vocabulary_ = False
    if isinstance(table, TfidfVectorizer):
        table.idf_ = np.array(learned["weights"], dtype=np.float64)
    return table


def _can_train(estimator: Any, task: Task) -> bool:
    if isinstance(task, Regression):
        return estimator is not None and is_regressor(estimator)
    return hasattr(estimator, "predict_proba")


def _errors(estimator: Any, rows: Any, numbers: FloatArray, seed: int) -> FloatArray:
    """The errors on items in folds that the estimator was not fitted on; none of a single item."""
    if len(numbers) < 2:
        return np.zeros(0)
    folds = KFold(min(FOLDS, len(numbers)), shuffle=True, random_state=seed)
    errors: FloatArray = cross_val_predict(clone(estimator), rows, numbers, cv=folds).reshape(-1) - numbers
    return errors
