"""Estimators of scikit-learn as learners: any of them, labels they never saw, numbers, images, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError, LearnerError, UntrustedError
from bursar.learners import make_learner
from bursar.learners.frozen import FrozenEncoder
from bursar.learners.scikit import (
    ESTIMATORS,
    FittedClassifier,
    ScikitLearner,
    documents,
    takes_texts,
    terms,
    word_features,
)
from bursar.simulation import assistant_corpus
from bursar.tasks import make_task
from tests.learners.test_probe import images

pytestmark = pytest.mark.usefixtures("one_thread")

TASKS = ["intent", "slots"]


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(400, seed=3).with_tasks(TASKS)


@pytest.fixture(scope="module")
def bundled():
    return FrozenEncoder()


def few(corpus, split="train", items=60):
    return corpus.split(split).take(np.arange(items))


def better_than_one_guess(learner, items):
    """More intents right than the most frequent one could get."""
    codes = items.labels["intent"].rows.values[:, 0]
    return learner.evaluate(items)["intent"]["accuracy"] > np.bincount(codes).max() / len(codes)


def sentences(labels, schema=None):
    builder = CorpusBuilder({"intent": schema or {"kind": "classification", "labels": ["a", "b", "c", "d"]}})
    for number, label in enumerate(labels):
        builder.add(f"u{number:03}", text=f"word{label} number {number}", labels={"intent": label})
    return builder.build()


# -- any estimator -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("features", ["words", "encoder"])
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_every_named_estimator_learns_from_words_and_from_vectors(estimator, features, corpus, bundled):
    learner = ScikitLearner(corpus.schema, estimator=estimator, features=features, encoder=bundled)
    report = learner.fit(few(corpus, items=150), dev=few(corpus, "dev", items=20))
    assert better_than_one_guess(learner, few(corpus, "test", items=24))
    assert learner.evaluate(few(corpus, "test", items=24))["slots"]["f1"] > 0.1
    assert report.items == 150
    assert report.best_score > 0


def test_any_instance_with_probabilities_is_a_learner_and_stays_as_it_was(corpus):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    estimator = make_pipeline(MaxAbsScaler(), KNeighborsClassifier(3))
    learner = ScikitLearner(corpus.schema, estimator=estimator)
    learner.fit(few(corpus, items=150))
    assert better_than_one_guess(learner, few(corpus, "test", items=24))
    assert not hasattr(estimator, "classes_")


def test_the_seed_reaches_every_random_state(corpus):
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    learner = ScikitLearner(
        corpus.schema, estimator=make_pipeline(MaxAbsScaler(), ExtraTreesClassifier(5, random_state=None))
    )
    test, found = few(corpus, "test", items=24), []
    for seed in (1, 1, 2, 2**40 + 1):
        learner.fit(few(corpus), seed=seed)
        found.append(learner.predict_proba(test)["intent"].values)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    np.testing.assert_array_equal(found[0], found[3])  # 2**32 is the same as 0 to scikit-learn


def test_labels_never_seen_share_one_part_in_n_plus_1():
    corpus = sentences("aabbccab")
    learner = ScikitLearner(corpus.schema)
    learner.fit(corpus)
    predicted = learner.predict_proba(corpus)["intent"].dense()[0]
    np.testing.assert_allclose(predicted[:, 3], 1 / 9, rtol=1e-5)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-5)


def test_a_single_label_is_believed_everywhere():
    corpus = sentences("bbb")
    learner = ScikitLearner(corpus.schema)
    learner.fit(corpus)
    predicted = learner.predict_proba(corpus)["intent"].dense()[0]
    np.testing.assert_allclose(predicted, [[1 / 12, 3 / 4, 1 / 12, 1 / 12]] * 3, rtol=1e-5)


def test_probabilities_stand_under_their_own_labels():
    class Fixed:
        def predict_proba(self, rows):
            return np.array([[0.2, 0.8]] * rows.shape[0])

    predicted = FittedClassifier(Fixed(), np.array([1, 3]), labels=4, units=9).predict_proba(np.zeros((2, 1)))[0]
    np.testing.assert_allclose(predicted, [[0.05, 0.18, 0.05, 0.72]] * 2)


# -- numbers and images --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", ["logistic", "random-forest"])
def test_the_variance_of_numbers_is_that_of_errors_on_other_items(estimator):
    builder = CorpusBuilder({"score": {"kind": "regression", "low": -20, "high": 20}})
    rng = np.random.default_rng(0)
    worth = rng.normal(size=12)
    for number, word in enumerate(rng.integers(12, size=1200)):
        score = float(worth[word] + rng.normal(scale=0.5))
        builder.add(f"u{number:04}", text=f"w{word}", labels={"score": score})
    corpus = builder.build()
    learner = ScikitLearner(corpus.schema, estimator=estimator)
    learner.fit(corpus.take(np.arange(600)))
    rest = corpus.take(np.arange(600, 1200))
    predicted = learner.predict_proba(rest)["score"]
    error = predicted.means[0] - rest.labels["score"].rows.values[:, 0]
    # Both are means of 600 squares of normal numbers: each is within 6 % (a standard deviation) of the truth.
    assert predicted.variances.mean() == pytest.approx((error**2).mean(), rel=0.25)
    assert np.mean(np.abs(error) < 1.96 * np.sqrt(predicted.variances[0])) == pytest.approx(0.95, abs=0.03)


def test_a_single_number_is_as_uncertain_as_any_number_of_the_range():
    corpus = sentences([0.5], schema={"kind": "regression", "low": 0, "high": 6})
    learner = ScikitLearner(corpus.schema)
    learner.fit(corpus)
    assert learner.predict_proba(corpus)["intent"].variances.tolist() == [[3.0]]  # 6² / 12


@pytest.mark.parametrize("colours", [False, True])
def test_images_are_learned_from_their_pixels(colours):
    corpus = images(60, colours)
    learner = ScikitLearner(corpus.schema)
    learner.fit(corpus.take(np.arange(40)))
    scores = learner.evaluate(corpus.take(np.arange(40, 60)))
    assert scores["side"]["accuracy"] == 1.0
    assert scores["light"]["pearson"] > 0.9


# -- features ------------------------------------------------------------------------------------------------------
def test_the_second_text_of_a_pair_is_told_from_the_first():
    builder = CorpusBuilder({"same": {"kind": "classification", "labels": ["yes"]}})
    builder.add("p", text="Play it", pair="Stop it", labels={"same": "yes"})
    assert documents(builder.build()) == [["play", "it", "|stop", "|it"]]


def test_a_word_is_known_by_its_ends_its_shape_and_its_neighbours():
    signs = word_features("from New York to McDonald's".split())[2]
    assert signs == "w=york s=Xxx b2=yo b3=yor e2=rk e3=ork -2=from -1=new +1=to +2=mcdonald's".split()
    assert word_features(["McDonald's"])[0][1] == "s=XxXxx'x"


def test_training_items_without_a_word_are_no_error():
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number, label in enumerate("ab"):
        builder.add(f"u{number}", text=" ", labels={"intent": label})
    corpus = builder.build()
    learner = ScikitLearner(corpus.schema)
    learner.fit(corpus)
    np.testing.assert_allclose(learner.predict_proba(corpus)["intent"].values, 0.5, atol=1e-6)


def test_no_items_and_items_without_words_have_no_beliefs_about_words(corpus):
    learner = ScikitLearner(corpus.schema)
    learner.fit(few(corpus))
    nothing = learner.predict_proba(corpus.take(np.zeros(0, dtype=np.int64)))
    assert [len(beliefs) for beliefs in nothing.values()] == [0, 0]
    builder = CorpusBuilder(corpus.schema)
    builder.add("empty", text=" ")
    blank = learner.predict_proba(builder.build())
    assert [beliefs.units.tolist() for beliefs in blank.values()] == [[1], [0]]


# -- what is refused -----------------------------------------------------------------------------------------------
def test_estimators_are_refused_for_tasks_that_they_cannot_train(corpus):
    from sklearn.linear_model import Lasso, RidgeClassifier

    number = make_task("urgency", {"kind": "regression"})
    with pytest.raises(LearnerError, match=r"'urgency' \(regression\).*tasks = \['intent', 'slots'\]"):
        ScikitLearner({**corpus.schema, "urgency": number}, estimator="naive-bayes")
    with pytest.raises(LearnerError, match=r"'intent'.*tasks = \['urgency'\]"):
        ScikitLearner({**corpus.schema, "urgency": number}, estimator=Lasso())
    with pytest.raises(LearnerError, match="RidgeClassifier has no predict_proba"):
        ScikitLearner(corpus.schema, estimator=RidgeClassifier())


def test_trees_are_refused():
    with pytest.raises(LearnerError, match=r"'tree' \(parsing\)"):
        ScikitLearner({"tree": make_task("tree", {"kind": "parsing", "labels": ["nsubj"]})})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", "oracle"),
        ("estimator", 3),
        ("estimator", FittedClassifier),
        ("features", "letters"),
        ("epochs", 3),
    ],
)
def test_wrong_options_are_refused_by_name(name, value, corpus):
    with pytest.raises(ConfigError, match=f"{name}|there is no estimator"):
        make_learner("scikit", corpus.schema, {name: value})


def test_an_estimator_that_cannot_take_the_features_says_why(corpus):
    from sklearn.naive_bayes import GaussianNB

    with pytest.raises(LearnerError, match=r"task 'intent': GaussianNB cannot be fitted: .*[Ss]parse"):
        ScikitLearner(corpus.schema, estimator=GaussianNB()).fit(few(corpus))


def test_more_than_one_pass_and_beliefs_before_fitting_are_refused(corpus, tmp_path):
    learner = ScikitLearner(corpus.schema)
    with pytest.raises(LearnerError, match="call fit first"):
        learner.predict_proba(few(corpus))
    with pytest.raises(LearnerError, match="call fit first"):
        learner.save(tmp_path)
    learner.fit(few(corpus))
    with pytest.raises(LearnerError, match="passes=1"):
        learner.predict_proba(few(corpus), passes=2)


@pytest.mark.parametrize("harm", ["gone", "cut", "other options", "no json"])
def test_a_damaged_folder_is_refused(harm, corpus, tmp_path):
    learner = ScikitLearner(corpus.schema)
    learner.fit(few(corpus))
    learner.save(tmp_path)
    saved, about = tmp_path / "estimators.skops", tmp_path / "learner.json"
    match harm:
        case "gone":
            saved.unlink()
        case "cut":
            saved.write_bytes(saved.read_bytes()[:1000])
        case "other options":
            learner = ScikitLearner(corpus.schema, estimator="naive-bayes")
        case "no json":
            about.write_text("{")
    with pytest.raises(LearnerError, match="holds no learner that can be loaded"):
        learner.restore(tmp_path)


# -- keeping -------------------------------------------------------------------------------------------------------
class Own(LogisticRegression):
    """An estimator of somebody's own."""


class Odd(LogisticRegression):
    """One that holds what only a pickle can."""

    def fit(self, rows, targets):
        self.kept_ = 1 + 2j
        return super().fit(rows, targets)


def beliefs_of(learner, items):
    return [
        array.tobytes()
        for found in learner.predict_proba(items).values()
        for array in ((found.values,) if hasattr(found, "values") else (found.means, found.variances))
    ]


def saved_and_restored(corpus, tmp_path, trust=False, train=60, **options):
    learner, other = (ScikitLearner(corpus.schema, **options) for _ in range(2))
    learner.fit(few(corpus, items=train), seed=3)
    learner.save(tmp_path)
    other.restore(tmp_path, trust=trust)
    test = corpus.split("test") if "test" in corpus.splits else corpus
    assert beliefs_of(other, test) == beliefs_of(learner, test)


@pytest.mark.parametrize("features", ["words", "encoder"])
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_every_named_estimator_believes_the_same_to_the_bit_when_restored(
    estimator, features, corpus, bundled, tmp_path
):
    saved_and_restored(corpus, tmp_path, estimator=estimator, features=features, encoder=bundled)
    assert (tmp_path / "estimators.skops").exists()


@pytest.mark.parametrize("estimator", ["logistic", "random-forest"])
def test_numbers_are_believed_the_same_when_restored(estimator, tmp_path):
    schema = {"kind": "regression", "low": 0, "high": 9}
    saved_and_restored(sentences([n % 7 for n in range(40)], schema), tmp_path, train=40, estimator=estimator)


def test_images_are_believed_the_same_when_restored(tmp_path):
    saved_and_restored(images(30), tmp_path, train=20)


def test_a_task_of_which_one_label_was_seen_is_believed_the_same_when_restored(tmp_path):
    saved_and_restored(sentences(["a"] * 12), tmp_path, train=12)


@pytest.mark.parametrize(
    ("estimator", "file", "what"),
    [(Own(), "estimators.skops", "test_scikit.Own"), (Odd(), "estimators.joblib", "a pickle")],
)
def test_an_estimator_of_ones_own_is_loaded_only_with_trust(estimator, file, what, corpus, tmp_path):
    with pytest.raises(UntrustedError) as refused:
        saved_and_restored(corpus, tmp_path, estimator=estimator)
    assert str(tmp_path / file) in refused.value.message
    assert what in refused.value.message
    saved_and_restored(corpus, tmp_path, trust=True, estimator=estimator)


def broken(tree, **changes):
    """A tree with other nodes."""
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    for field, value in changes.items():
        state["nodes"][field][0] = value
    made = type(tree)(tree.n_features, np.array([tree.n_classes[0]]), 1)
    made.__setstate__(state)
    return made


@pytest.mark.parametrize(
    "changes", [{"left_child": 10**6}, {"right_child": -7}, {"left_child": 0}, {"feature": 10**6}, {"feature": -3}]
)
def test_a_forest_whose_trees_lead_elsewhere_is_refused(changes, corpus, tmp_path):
    learner = ScikitLearner(corpus.schema, estimator="random-forest")
    learner.fit(few(corpus))
    member = learner.models["intent"].estimator.estimators_[5]
    member.tree_ = broken(member.tree_, **changes)
    learner.save(tmp_path)
    with pytest.raises(LearnerError, match="a tree of its forest"):
        learner.restore(tmp_path)


def test_trees_that_are_not_checked_need_trust(corpus, tmp_path):
    from sklearn.ensemble import GradientBoostingClassifier

    with pytest.raises(UntrustedError, match="Tree"):
        saved_and_restored(
            corpus.with_tasks(["intent"]), tmp_path, estimator=GradientBoostingClassifier(n_estimators=2)
        )


def test_another_estimator_than_the_options_say_is_refused(corpus, tmp_path):
    from sklearn.linear_model import SGDClassifier

    learner = ScikitLearner(corpus.schema)
    learner.fit(few(corpus))
    learner.models["intent"] = replace(learner.models["intent"], estimator=SGDClassifier())
    learner.save(tmp_path)
    with pytest.raises(LearnerError, match="task 'intent' has a SGDClassifier, not a LogisticRegression"):
        learner.restore(tmp_path)


def test_texts_are_read_as_words_and_word_pairs_unless_the_estimator_reads_them():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    assert terms(["wake", "me", "up"]) == ["wake", "me", "up", "wake me", "me up"]
    assert takes_texts(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    assert not takes_texts(LogisticRegression())
