"""Any scikit-learn estimator as a learner: on words, on vectors of a frozen encoder, or on pixels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import skops.io
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import BaseDecisionTree

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError, UntrustedError
from bursar.learners.encoders import BUNDLED
from bursar.learners.features import FeatureLearner, Model, classes_of, pixels, variance_of
from bursar.learners.frozen import FrozenEncoder, frozen
from bursar.learners.function import texts_of
from bursar.learners.learner import Progress
from bursar.ragged import FloatArray, IntArray
from bursar.registry import Registry
from bursar.tasks import Regression, Task

FEATURES = ("words", "encoder", "texts")
MOST_FEATURES = 50_000  # of words, the most frequent: an estimator may have a weight for each of them and every tag
FOLDS = 5
NUMBERS = Regression.kind

# Each makes an estimator for a kind of task and dense or sparse features; None if it has none.
ESTIMATORS: Registry[Callable[[str, bool], Any]] = Registry("estimator", "bursar.estimators")


ESTIMATORS.add(
    "logistic",
    lambda kind, dense: Ridge() if kind == NUMBERS else LogisticRegression(C=1.0 if dense else 10.0, max_iter=1000),
)
ESTIMATORS.add(
    "naive-bayes", lambda kind, dense: None if kind == NUMBERS else GaussianNB() if dense else MultinomialNB(alpha=0.1)
)
ESTIMATORS.add(
    "random-forest", lambda kind, dense: RandomForestRegressor() if kind == NUMBERS else RandomForestClassifier()
)


# -- models of one task --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FittedClassifier:
    """A fitted classifier. Labels that it never saw share a probability of 1 in n + 1."""

    estimator: Any  # None if only one label was seen, which most estimators refuse
    seen: IntArray  # the codes of the labels that were seen
    labels: int
    units: int  # number of units it was fitted on

    def learned(self) -> dict[str, Any]:
        """What was fitted beside the estimator, as JSON."""
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
class FittedRegressor:
    """A fitted regressor. Its variance, the same for all items, is that of cross-validation errors."""

    estimator: Any
    variance: float

    def learned(self) -> dict[str, Any]:
        return {"variance": self.variance}

    def predict_proba(self, rows: Any) -> tuple[NDArray[Any], ...]:
        means = np.asarray(self.estimator.predict(rows)).reshape(-1) if rows.shape[0] else np.zeros(0)
        return means, np.full(len(means), self.variance)


# -- features ------------------------------------------------------------------------------------------------------
def terms(words: list[str]) -> list[str]:
    """The words of an item, and its word pairs."""
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def documents(items: Corpus) -> list[list[str]]:
    """The words of every item in lower case; those of a pair's second text are marked."""
    assert items.texts is not None
    texts = items.texts.all_words()
    pairs = [[] for _ in range(len(items))] if items.pairs is None else items.pairs.all_words()
    return [
        [word.lower() for word in text] + [f"|{word.lower()}" for word in pair]
        for text, pair in zip(texts, pairs, strict=True)
    ]


def word_features(words: list[str]) -> list[list[str]]:
    """The features of each word: itself, its prefixes and suffixes, its shape, and its neighbours.

    >>> word_features(["at", "7.30"])[1]
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


def all_word_features(items: Corpus) -> list[list[str]]:
    """The features of every word of every item."""
    assert items.texts is not None
    return [features for words in items.texts.all_words() for features in word_features(words)]


def _shape(word: str) -> str:
    """Letters as x or X, digits as 0, other characters unchanged; at most two of a kind in a row."""
    shape = ""
    for mark in word:
        kind = "0" if mark.isdigit() else mark if not mark.isalpha() else "X" if mark.isupper() else "x"
        if not shape.endswith(kind * 2):
            shape += kind
    return shape


# -- the learner ---------------------------------------------------------------------------------------------------
class ScikitLearner(FeatureLearner):
    """One scikit-learn estimator per task: classifiers with ``predict_proba``, regressors with ``predict``.

    ``estimator`` is an instance, cloned for each task, or a name: logistic, naive-bayes, random-forest. ``features``
    are "words" (TF-IDF of words and word pairs; for tagging the word, its shape and its neighbours), "encoder" (the
    vectors of a frozen encoder) or "texts": the texts themselves, for a pipeline that begins with a vectorizer, which
    is their default. Images are read as pixels.
    """

    name = "scikit"

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        estimator: Any = "logistic",
        features: str | None = None,
        encoder: str | FrozenEncoder = BUNDLED,
    ) -> None:
        super().__init__(tasks)
        features = features or ("texts" if takes_texts(estimator) else "words")
        if features not in FEATURES:
            raise ConfigError(f"learner.features = {features!r}", fix=f"use {' or '.join(map(repr, FEATURES))}")
        is_estimator = all(hasattr(estimator, name) for name in ("fit", "predict", "get_params"))
        if not isinstance(estimator, str) and (isinstance(estimator, type) or not is_estimator):
            raise ConfigError(
                f"learner.estimator = {estimator!r}",
                fix=f"use one of {', '.join(map(repr, ESTIMATORS))}, or from Python an instance of an estimator",
            )
        self._make = ESTIMATORS[estimator] if isinstance(estimator, str) else lambda kind, dense: estimator
        able = {name: _can_train(self._make(task.kind, True), task) for name, task in tasks.items()}
        able_to_say = isinstance(estimator, str) or hasattr(estimator, "predict_proba") or any(able.values())
        classes = any(not isinstance(task, Regression) for task in tasks.values())
        if classes and not able_to_say and not is_regressor(estimator):
            kind = type(estimator).__name__
            raise LearnerError(
                f"{kind} has no predict_proba, and without probabilities there is no confidence",
                fix="wrap it: sklearn.calibration.CalibratedClassifierCV(estimator)",
            )
        if features == "texts":  # which have one answer each
            able = {name: can and not tasks[name].of_words for name, can in able.items()}
        self.refuse_unless(able)
        self._described = estimator if isinstance(estimator, str) else type(estimator).__qualname__
        self.features = features
        self.encoder = frozen(encoder) if features == "encoder" else None
        self._vectorizers: dict[str, Any] = {}  # vectorizers, for items and for words

    def settle(self, annotated: Corpus) -> None:
        self._vectorizers = {}
        if annotated.texts is None or self.features != "words":
            return
        # A vectorizer needs at least one feature, even if no item has a word.
        if any(task.of_words for task in self.tasks.values()):
            self._vectorizers["words"] = _new_vectorizer("words").fit(all_word_features(annotated) or [[""]])
        if not all(task.of_words for task in self.tasks.values()):
            found = documents(annotated)
            self._vectorizers["items"] = _new_vectorizer("items").fit(found if any(found) else [[""]])

    def rows(self, task: Task, items: Corpus, progress: Progress) -> Any:
        tags = task.of_words
        if items.images is not None:
            if tags:
                raise LearnerError(f"task {task.name!r} labels words, but images have none")
            return pixels(items)
        if self.encoder is not None:
            return self.encoder.unit_vectors(task, items, progress)
        if self.features == "texts":
            return np.array([*texts_of(items), None], dtype=object)[:-1]  # (items,), even of none
        if not self._vectorizers:
            raise LearnerError("this learner was trained on images, but the corpus has texts")
        vectorizer = self._vectorizers["words" if tags else "items"]
        units = all_word_features(items) if tags else documents(items)
        return vectorizer.transform(units) if units else csr_matrix((0, len(vectorizer.vocabulary_)))

    def model(self, task: Task, rows: Any, targets: NDArray[Any], seed: int) -> Model:
        estimator = clone(self._make(task.kind, not issparse(rows)))
        seed %= 2**32  # the limit of numpy's legacy generator
        seeds = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
        estimator.set_params(**dict.fromkeys(seeds, seed))
        try:
            if isinstance(task, Regression):
                variance = variance_of(_errors(estimator, rows, targets, seed), task)
                return FittedRegressor(estimator.fit(rows, targets), variance)
            seen = np.unique(targets)
            fitted = estimator.fit(rows, targets) if len(seen) > 1 else None
        except (TypeError, ValueError) as wrong:
            raise LearnerError(
                f"task {task.name!r}: {type(estimator).__name__} cannot be fitted: {wrong}",
                fix="use another estimator, other features, or label more items",
            ) from None
        return FittedClassifier(fitted, seen, classes_of(task), len(targets))

    # -- saved models ----------------------------------------------------------------------------------------------
    def options(self) -> dict[str, object]:
        encoder = None if self.encoder is None else [self.encoder.name, self.encoder.layers]
        return {"estimator": self._described, "features": self.features, "encoder": encoder}

    def write(self, folder: Path) -> None:
        models: dict[str, Any] = dict(self.models)
        save_estimators(folder, {name: model.estimator for name, model in models.items()})
        learned = {
            "tables": {name: _written(vectorizer) for name, vectorizer in self._vectorizers.items()},
            "models": {name: model.learned() for name, model in models.items()},
        }
        (folder / "learned.json").write_text(json.dumps(learned))

    def read(self, folder: Path, trust: bool) -> None:
        estimators = load_estimators(folder, trust)
        learned = json.loads((folder / "learned.json").read_text())
        vectorizers = {name: _vectorizer(name, learned["tables"][name]) for name in learned["tables"]}
        if {*estimators} != {*learned["models"]} or {*estimators} != {*self.tasks}:
            raise LearnerError("its estimators are for other tasks")
        models = {
            name: self._restored(task, estimators[name], learned["models"][name], dense=not vectorizers)
            for name, task in self.tasks.items()
        }
        self._vectorizers, self.models = vectorizers, models

    def _restored(self, task: Task, estimator: Any, learned: Mapping[str, Any], dense: bool) -> Model:
        known = type(self._make(task.kind, dense))
        if type(estimator) is not known and (estimator is not None or isinstance(task, Regression)):
            raise LearnerError(f"task {task.name!r} has a {type(estimator).__name__}, not a {known.__name__}")
        if isinstance(task, Regression):
            return FittedRegressor(estimator, float(learned["variance"]))
        seen = np.array(learned["seen"], dtype=np.int64)
        if not len(seen) or not ((seen >= 0) & (seen < classes_of(task))).all():
            raise LearnerError(f"task {task.name!r} was trained on labels that the task does not have")
        return FittedClassifier(estimator, seen, classes_of(task), int(learned["units"]))


def _new_vectorizer(what: str) -> Any:
    if what == "words":
        return CountVectorizer(analyzer=list, binary=True, max_features=MOST_FEATURES, dtype=np.float64)
    return TfidfVectorizer(analyzer=terms)


def _written(vectorizer: Any) -> dict[str, Any]:
    """A fitted vectorizer as JSON: its vocabulary in order, and the weight of each term."""
    weights = {"weights": vectorizer.idf_.tolist()} if isinstance(vectorizer, TfidfVectorizer) else {}
    return {"vocabulary": sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)} | weights


def _vectorizer(what: str, learned: Mapping[str, Any]) -> Any:
    vectorizer = _new_vectorizer(what)
    vectorizer.vocabulary_ = {str(term): place for place, term in enumerate(learned["vocabulary"])}
    vectorizer.fixed_vocabulary_ = False
    if isinstance(vectorizer, TfidfVectorizer):
        vectorizer.idf_ = np.array(learned["weights"], dtype=np.float64)
    return vectorizer


def takes_texts(estimator: Any) -> bool:
    """Whether an estimator reads strings: a pipeline whose first step, or one of it, is a vectorizer of texts."""
    if hasattr(estimator, "build_analyzer"):
        return True
    if parts := getattr(estimator, "steps", None):
        return takes_texts(parts[0][1])
    if union := getattr(estimator, "transformer_list", None):
        return any(takes_texts(part) for _, part in union)
    inner = getattr(estimator, "estimator", None)  # of a search, or a calibration
    return inner is not None and takes_texts(inner)


def _can_train(estimator: Any, task: Task) -> bool:
    if isinstance(task, Regression):
        return estimator is not None and is_regressor(estimator)
    return hasattr(estimator, "predict_proba")


def _errors(estimator: Any, rows: Any, numbers: FloatArray, seed: int) -> FloatArray:
    """Cross-validation errors; none for a single item."""
    if len(numbers) < 2:
        return np.zeros(0)
    folds = KFold(min(FOLDS, len(numbers)), shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(clone(estimator), rows, numbers, cv=folds).reshape(-1) - numbers)


# -- files that cannot run code ------------------------------------------------------------------------------------
# skops writes an estimator as arrays and type names. Only types of scikit-learn, numpy and scipy that skops considers
# safe are loaded. Other types, and pickles, can run code when they are loaded: they are refused unless you trust them.
SAFE, PICKLED = "estimators.skops", "estimators.joblib"
TREE = "sklearn.tree._tree.Tree"  # safe if its nodes point to existing nodes and features
LEAF = -1


def save_estimators(folder: Path, estimators: Mapping[str, Any]) -> None:
    """Write the fitted estimators of tasks; as a pickle only if skops cannot write one of them."""
    for name in (SAFE, PICKLED):
        (folder / name).unlink(missing_ok=True)
    try:
        skops.io.dump(dict(estimators), folder / SAFE)
    except Exception:  # a custom estimator can raise anything
        joblib.dump(dict(estimators), folder / PICKLED)


def load_estimators(folder: Path, trust: bool) -> dict[str, Any]:
    """Load saved estimators. A file that could run code is refused unless it is trusted."""
    file, pickled = folder / SAFE, folder / PICKLED
    if not file.exists() and pickled.exists():
        if not trust:
            raise _untrusted(pickled, ["a pickle"])
        return _checked(joblib.load(pickled))
    unsafe = set(skops.io.get_untrusted_types(file=file))
    if not trust and (others := unsafe - {TREE}):
        raise _untrusted(file, others)
    found = _checked(skops.io.load(file, trusted=sorted(unsafe)))
    if not trust and TREE in unsafe:
        for estimator in found.values():
            if not isinstance(estimator, BaseForest | None):  # trees elsewhere cannot be checked
                raise _untrusted(file, [TREE])
            if estimator is not None:
                check_forest(estimator)
    return found


def check_forest(forest: BaseForest) -> None:
    """Refuse trees that point outside their own arrays or features: scikit-learn would follow the pointers.

    Nodes must come before their children, so that every path ends at a leaf.
    """
    width, trees = forest.n_features_in_, forest.estimators_
    if not isinstance(width, int) or not isinstance(trees, list):
        raise LearnerError("its forest is damaged")
    for member in trees:
        if not isinstance(member, BaseDecisionTree):
            raise LearnerError("its forest contains something other than trees")
        tree = member.tree_
        nodes = np.flatnonzero(tree.children_left != LEAF)
        for child in (tree.children_left[nodes], tree.children_right[nodes]):
            if ((child <= nodes) | (child >= tree.node_count)).any():
                raise LearnerError("a tree of its forest points to a node that does not exist")
        if not ((tree.feature[nodes] >= 0) & (tree.feature[nodes] < width)).all():
            raise LearnerError("a tree of its forest uses features that the model does not have")


def _checked(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise LearnerError("it holds no estimators")
    return found


def _untrusted(file: Path, types: Iterable[str]) -> UntrustedError:
    return UntrustedError(
        f"{file} holds {', '.join(sorted(types))}, which can run code when it is loaded",
        fix=f"delete {file.parent} to train the model again; or, if you trust its author, "
        "load it with --trust (from Python trust=True)",
    )
