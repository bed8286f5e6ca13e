"""The probe: closed forms that equal what they stand for, features computed once, numbers, images, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError, LearnerError
from bursar.learners import make_learner
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.encoder import TextEncoder
from bursar.learners.features import Components, variance_of
from bursar.learners.frozen import FrozenEncoder
from bursar.learners.probe import (
    PENALTIES,
    ProbeLearner,
    Ridge,
    best_solution,
    fitted_factor,
    logistic_classifier,
    ridge_classifier,
    ridge_regressor,
)
from bursar.simulation import assistant_corpus
from bursar.tasks import Classification, Regression, make_task
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")

TASKS = ["intent", "slots"]
NUMBER = Regression("urgency", low=-10, high=10)


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(400, seed=3).with_tasks(TASKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def bundled():
    return FrozenEncoder()


@pytest.fixture
def frozen(folder):
    return FrozenEncoder(folder)


def probe(corpus, encoder, **options):
    return ProbeLearner(corpus.schema, encoder=encoder, **options)


def few(corpus, split="train", items=40, start=0):
    return corpus.split(split).take(np.arange(start, start + items))


def problem(seed, units, width, outputs):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(units, width)) + rng.normal(size=width)
    return x, x @ rng.normal(size=(width, outputs)) + rng.normal(size=(units, outputs))


problems = {"seed": st.integers(0, 10**6), "units": st.integers(3, 12), "width": st.integers(1, 12)}


# -- closed forms --------------------------------------------------------------------------------------------------
@settings(max_examples=100, deadline=None)
@given(**problems, penalty=st.floats(0.01, 100))
def test_ridge_is_scikit_learns_ridge(seed, units, width, penalty):
    from sklearn.linear_model import Ridge as Theirs

    x, y = problem(seed, units, width, outputs=3)
    ours, theirs = Ridge(x, y).solve(penalty), Theirs(alpha=penalty, solver="cholesky").fit(x, y)
    np.testing.assert_allclose(ours.weights.T, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.bias, theirs.intercept_, atol=1e-7)


@settings(max_examples=100, deadline=None)
@given(**problems, penalty=st.floats(0.01, 100))
def test_scores_of_units_left_out_are_those_of_a_model_fitted_without_them(seed, units, width, penalty):
    x, y = problem(seed, units, width, outputs=2)
    whole = Ridge(x, y).solve(penalty)
    for at in range(units):
        others = np.arange(units) != at
        without = Ridge(x[others], y[others]).solve(penalty)
        np.testing.assert_allclose(whole.left_out[at], x[at] @ without.weights + without.bias, atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(**problems, penalty=st.floats(0.01, 100))
def test_the_leverage_of_a_unit_tells_its_variance_without_it(seed, units, width, penalty):
    x, y = problem(seed, units, width, outputs=1)
    whole = Ridge(x, y).solve(penalty)
    others = x[1:] - x[1:].mean(axis=0)
    away = x[0] - x[1:].mean(axis=0)
    spread = away @ np.linalg.solve(others.T @ others + penalty * np.eye(width), away)
    assert 1 / (1 - whole.leverage[0]) == pytest.approx(1 + 1 / (units - 1) + spread, rel=1e-6)


def test_only_so_many_units_are_left_out_and_the_model_is_the_same():
    x, y = problem(1, units=50, width=4, outputs=2)
    every, some = Ridge(x, y).solve(2.0), Ridge(x, y, most_left_out=5)
    assert some.judged.tolist() == [0, 12, 24, 36, 49]
    np.testing.assert_allclose(some.solve(2.0).left_out, every.left_out[some.judged])
    np.testing.assert_array_equal(some.solve(2.0).weights, every.weights)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_fitted_temperature_has_the_least_loss(seed):
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=30)
    scores = np.eye(3)[codes] + rng.normal(scale=rng.uniform(0.1, 2), size=(30, 3))
    targets = (np.eye(3)[codes] + 1 / 90) / (1 + 1 / 30)  # one more unit, of any label

    def loss(factor):
        scaled = factor * scores
        return float(-(targets * (scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))).sum(axis=1).mean())

    factor, least = fitted_factor(scores, codes)
    best = minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-9})
    assert factor == pytest.approx(best.x, abs=1e-4)
    assert least == pytest.approx(best.fun, abs=1e-8)


@settings(max_examples=50, deadline=None)
@given(**problems)
def test_the_penalty_that_is_chosen_is_better_than_its_neighbours(seed, units, width):
    x, y = problem(seed, units, width, outputs=1)
    ridge = Ridge(x, y)

    def loss(solution):
        return float(((solution.left_out - y) ** 2).sum())

    solution, penalty = best_solution(ridge, None, loss)
    at = {other: loss(ridge.solve(other * ridge.variance)) for other in PENALTIES}
    assert loss(solution) == at[penalty]
    assert at[penalty] <= min(at[other] for other in PENALTIES[1::2])
    assert at[penalty] <= min(at.get(step * penalty, np.inf) for step in (0.1, 10)) or penalty in PENALTIES[::2]


def test_a_strong_and_useless_feature_does_not_hide_a_weak_and_useful_one():
    rng = np.random.default_rng(8)
    useful, useless = rng.normal(size=40), rng.normal(size=40)
    x = np.stack([100 * useless, useful], axis=1)
    means, _ = ridge_regressor(x, useful, NUMBER, None).predict_proba(x)
    assert np.corrcoef(means, useful)[0, 1] > 0.99


def test_a_penalty_means_the_same_for_features_of_any_size():
    x, y = problem(3, units=40, width=5, outputs=1)
    codes = (y[:, 0] > np.median(y)).astype(np.int64)
    for choice in (ridge_classifier, logistic_classifier):
        for penalty in (None, 3.0):
            small, large = choice(x, codes, 2, penalty), choice(1000 * x + 7, codes, 2, penalty)
            np.testing.assert_allclose(small.predict_proba(x)[0], large.predict_proba(1000 * x + 7)[0], atol=1e-3)


# -- probabilities and numbers -------------------------------------------------------------------------------------
@pytest.mark.parametrize("choice", [ridge_classifier, logistic_classifier])
@pytest.mark.parametrize("seen", [[1], [1, 3], [0, 1, 3]])
def test_labels_never_seen_get_a_low_probability(choice, seen):
    rng = np.random.default_rng(0)
    codes = np.array(seen)[rng.integers(len(seen), size=60)]
    x = np.eye(5)[codes] + rng.normal(scale=0.1, size=(60, 5))
    predicted = choice(x, codes, 5, None).predict_proba(x)[0]
    np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-5)
    assert predicted[:, np.setdiff1d(np.arange(5), seen)].max() < 0.05
    assert (predicted.argmax(axis=1) == codes).all()


def test_probabilities_are_as_high_as_the_probe_is_right():
    rng = np.random.default_rng(1)
    codes = rng.integers(4, size=1500)
    x = np.concatenate([np.eye(4)[codes] + rng.normal(scale=0.5, size=(1500, 4)), rng.normal(size=(1500, 60))], axis=1)
    predicted = ridge_classifier(x[:150], codes[:150], 4, None).predict_proba(x[150:])[0]
    right = (predicted.argmax(axis=1) == codes[150:]).mean()
    assert abs(predicted.max(axis=1).mean() - right) < 0.06


def test_intervals_of_numbers_hold_as_often_as_they_say():
    rng = np.random.default_rng(2)
    held = []
    for _ in range(20):
        x = rng.normal(size=(560, 30))
        y = x @ rng.normal(scale=0.3, size=30) + rng.normal(scale=0.5, size=560)
        means, variances = ridge_regressor(x[:60], y[:60], NUMBER, None).predict_proba(x[60:])
        held.append(np.abs(means - y[60:]) < 1.96 * np.sqrt(variances))
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)


def test_numbers_far_from_what_was_seen_are_less_certain():
    x, y = problem(4, units=30, width=3, outputs=1)
    _, variances = ridge_regressor(x, y[:, 0], NUMBER, None).predict_proba(
        np.stack([x.mean(axis=0), x.mean(axis=0) + 50])
    )
    assert variances[1] > 10 * variances[0]


def test_a_single_number_is_as_uncertain_as_any_number_of_the_range():
    _, variances = ridge_regressor(np.ones((1, 3)), np.array([4.0]), NUMBER, None).predict_proba(np.ones((1, 3)))
    assert 0.5 * 400 / 12 <= variances[0] <= 2 * 400 / 12


# -- the learner ---------------------------------------------------------------------------------------------------
def test_features_are_computed_once(corpus, frozen, monkeypatch):
    seen = []
    read = TextEncoder.read
    monkeypatch.setattr(TextEncoder, "read", lambda self, items: (seen.extend(items.ids), read(self, items))[1])
    train = few(corpus, items=50)
    distinct = len(set(train.texts.strings.tolist()))
    learner = probe(corpus, frozen)
    learner.fit(train.take(np.arange(30)))
    learner.fit(train)
    learner.fit(train.take(np.arange(20, 50)))
    learner.predict_proba(train)
    probe(corpus, frozen).fit(train)  # another learner that was handed the same frozen encoder
    assert len(seen) == len(set(seen)) == distinct


def test_what_does_not_fit_in_memory_is_computed_again_with_the_same_result(corpus, folder):
    train = few(corpus)
    small, large = FrozenEncoder(folder, cache_bytes=2000), FrozenEncoder(folder)
    for _ in range(2):
        np.testing.assert_array_equal(small.word_vectors(train), large.word_vectors(train))
        np.testing.assert_array_equal(small.item_vectors(train), large.item_vectors(train))
    assert small.cached_bytes <= 2000 < large.cached_bytes


def test_vectors_come_in_the_order_of_the_corpus(corpus, frozen, folder):
    train = few(corpus)
    whole = frozen.word_vectors(train), frozen.item_vectors(train)
    ends = np.cumsum(train.words)
    for at in (0, 7, 39):
        alone = train.take(np.array([at]))
        again = FrozenEncoder(folder)
        np.testing.assert_allclose(
            again.word_vectors(alone), whole[0][ends[at] - train.words[at] : ends[at]], atol=1e-5
        )
        np.testing.assert_allclose(again.item_vectors(alone), whole[1][at : at + 1], atol=1e-5)


def test_all_layers_give_what_the_encoder_gives(corpus, folder):
    import torch

    frozen, items = FrozenEncoder(folder, layers=2), few(corpus, items=5)
    encoder = load_encoder(folder).eval()
    with torch.inference_mode():
        batch = encoder.batch(encoder.read(items))
        encoded = encoder.pool(encoder.run(encoder.embed(batch), batch, range(encoder.depth)), batch)
    np.testing.assert_allclose(frozen.item_vectors(items), encoded.items, atol=1e-5)
    np.testing.assert_allclose(frozen.word_vectors(items), encoded.words, atol=1e-5)


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_it_learns(kind, corpus, bundled):
    learner = probe(corpus, bundled, kind=kind)
    report = learner.fit(few(corpus, items=150), dev=few(corpus, "dev", items=20))
    scores = learner.evaluate(few(corpus, "test", items=24))
    assert scores["intent"]["accuracy"] > 0.6
    assert scores["slots"]["f1"] > 0.3
    assert report.items == 150
    assert 0 < report.best_score < 1


def test_a_number_is_learned_from_texts(frozen):
    builder = CorpusBuilder({"urgency": {"kind": "regression", "low": 0, "high": 5}})
    for number in range(60):
        builder.add(f"u{number}", text="now " * (number % 6) + "please wait", labels={"urgency": number % 6 * 0.9})
    corpus = builder.build()
    learner = probe(corpus, frozen)
    learner.fit(corpus)
    predicted = learner.predict_proba(corpus)["urgency"]
    assert (predicted.low, predicted.high) == (0, 5)
    assert (predicted.variances > 0).all()
    assert learner.evaluate(corpus)["urgency"]["pearson"] > 0.99


def images(count, colours=False, labels=("left", "right")):
    builder = CorpusBuilder(
        {"side": {"kind": "classification", "labels": list(labels)}, "light": {"kind": "regression", "high": 255}}
    )
    rng = np.random.default_rng(5)
    for number in range(count):
        image = rng.integers(60, size=(8, 6, 3) if colours else (8, 6), dtype=np.uint8)
        side = number % 2
        image[:, 3 * side : 3 * side + 3] += np.uint8(100 + number % 50)
        builder.add(f"i{number:03}", image=image, labels={"side": labels[side], "light": float(image.mean())})
    return builder.build()


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize("components", [3, 200])
def test_images_are_learned_from_their_principal_components(colours, components, frozen):
    corpus = images(80, colours)
    train, test = corpus.take(np.arange(40)), corpus.take(np.arange(40, 80))
    learner = probe(corpus, frozen, components=components)
    learner.fit(train)
    scores = learner.evaluate(test)
    assert scores["side"]["accuracy"] == 1.0
    assert scores["light"]["pearson"] > 0.9


@pytest.mark.parametrize("count", [10, 100])
def test_principal_components_are_those_of_scikit_learn(count):
    from sklearn.decomposition import PCA

    rows = np.random.default_rng(6).normal(size=(count, 30)).astype(np.float32) * np.arange(1, 31, dtype=np.float32)
    ours = Components.of(rows, 5).project(rows)
    theirs = PCA(5).fit_transform(rows)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-2)
    assert ours.dtype == np.float32


def test_a_probe_of_images_is_restored_with_its_components(frozen, tmp_path):
    corpus = images(30)
    learner, other = probe(corpus, frozen), probe(corpus, frozen)
    learner.fit(corpus)
    learner.save(tmp_path)
    other.restore(tmp_path)
    for name in ("variances", "means"):
        mine, its = (getattr(which.predict_proba(corpus)["light"], name) for which in (learner, other))
        np.testing.assert_array_equal(mine, its)


# -- what is refused -----------------------------------------------------------------------------------------------
def test_more_than_one_pass_is_refused(corpus, frozen):
    learner = probe(corpus, frozen)
    learner.fit(few(corpus))
    with pytest.raises(LearnerError, match=r"no dropout.*passes=1"):
        learner.predict_proba(few(corpus), passes=5)


def test_trees_and_relations_are_refused_with_the_tasks_that_can_be_trained(folder):
    tasks = {
        "intent": Classification("intent", ("a", "b")),
        "tree": make_task("tree", {"kind": "parsing", "labels": ["nsubj"]}),
    }
    with pytest.raises(LearnerError, match=r"'tree' \(parsing\).*tasks = \['intent'\]"):
        ProbeLearner(tasks, encoder=folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "forest"),
        ("penalty", 0),
        ("penalty", "much"),
        ("penalty", True),
        ("components", 0),
        ("components", 2.5),
        ("layers", 3),
        ("layers", -1),
        ("layers", True),
        ("encoder", 7),
        ("encoder", "bilstm"),
        ("epochs", 3),
    ],
)
def test_wrong_options_are_refused_by_name(name, value, corpus, folder):
    with pytest.raises(ConfigError, match=name):
        make_learner("probe", corpus.schema, {"encoder": folder} | {name: value})


def test_a_frozen_encoder_that_is_handed_over_has_its_own_layers(corpus, frozen):
    assert probe(corpus, frozen, layers=frozen.layers).encoder is frozen
    with pytest.raises(ConfigError, match="layers"):
        probe(corpus, frozen, layers=frozen.layers + 1)


def test_a_task_without_a_label_is_refused(corpus, frozen):
    with pytest.raises(LearnerError, match="no item is labelled for task 'intent' yet"):
        probe(corpus, frozen).fit(few(corpus).unlabelled())


def test_development_items_need_labels_of_every_task(corpus, frozen):
    with pytest.raises(LearnerError, match="no development item is labelled for task 'intent'"):
        probe(corpus, frozen).fit(few(corpus), dev=few(corpus, "dev", items=10).unlabelled())


def test_nothing_is_believed_or_saved_before_fitting(corpus, frozen, tmp_path):
    with pytest.raises(LearnerError, match="call fit first"):
        probe(corpus, frozen).predict_proba(few(corpus))
    with pytest.raises(LearnerError, match="call fit first"):
        probe(corpus, frozen).save(tmp_path)


def test_a_probe_of_images_refuses_texts_and_images_of_another_size(corpus, frozen):
    trained = probe(images(10), frozen)
    trained.fit(images(10))
    with pytest.raises(LearnerError, match="has texts"):
        trained.predict_proba(few(corpus))
    with pytest.raises(LearnerError, match="48 pixels"):
        trained.predict_proba(images(10, colours=True))
    learner = probe(corpus, frozen)
    learner.fit(few(corpus))
    with pytest.raises(LearnerError, match="has images"):
        learner.predict_proba(images(10))


@pytest.mark.parametrize("harm", ["gone", "cut", "other weights", "other options", "no json"])
def test_a_damaged_folder_is_refused(harm, corpus, frozen, tmp_path):
    from safetensors.numpy import load_file, save_file

    learner = probe(corpus, frozen)
    learner.fit(few(corpus))
    learner.save(tmp_path)
    before = learner.predict_proba(few(corpus))["intent"].values
    weights, about = tmp_path / "weights.safetensors", tmp_path / "learner.json"
    match harm:
        case "gone":
            weights.unlink()
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-100])
        case "other weights":
            save_file({name: value[:-1] for name, value in load_file(weights).items()}, weights)
        case "other options":
            described = json.loads(about.read_text())
            described["options"]["kind"] = "logistic"
            about.write_text(json.dumps(described))
        case "no json":
            about.write_text("{")
    with pytest.raises(LearnerError, match="holds no learner that can be loaded"):
        learner.restore(tmp_path)
    np.testing.assert_array_equal(learner.predict_proba(few(corpus))["intent"].values, before)


def test_labels_may_be_listed_in_another_order_in_the_corpus_than_in_the_learner(corpus, frozen):
    train, test = corpus.split("train").with_tasks(["intent"]), corpus.split("test").take(np.arange(10))
    task = corpus.schema["intent"]
    turned = Classification("intent", task.labels[::-1])
    first, second = ProbeLearner({"intent": task}, encoder=frozen), ProbeLearner({"intent": turned}, encoder=frozen)
    first.fit(train)
    second.fit(train)
    expected, found = (learner.predict_proba(test)["intent"].dense() for learner in (first, second))
    np.testing.assert_allclose(found[..., ::-1], expected, atol=1e-6)


def test_a_variance_starts_from_that_of_the_range():
    task = Regression("score", low=0, high=6)
    assert variance_of(np.array([]), task) == 3.0
    assert variance_of(np.array([1.0, -1.0]), task) == pytest.approx(1.4)  # (2 + 3 / 2) / (2 + 1 / 2)
