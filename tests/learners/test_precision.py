"""Products in two bytes: faster, and nothing else changes that anybody relies on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.errors import ConfigError, LearnerError
from bursar.learners import settings
from bursar.learners.encoders.huggingface import BLOCK
from bursar.learners.neural import NeuralLearner
from bursar.simulation import assistant_corpus
from tests.learners.trainings import restored

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(300, seed=5).with_tasks(["intent", "slots"])


def learner_of(corpus, folder, **more):
    return NeuralLearner(corpus.schema, encoder=str(folder), steps=20, **({"precision": "bfloat16"} | more))


@pytest.fixture(scope="module")
def trained(corpus, folder):
    learner = learner_of(corpus, folder)
    learner.fit(corpus.take(np.arange(60)), seed=3)
    return learner


@pytest.mark.parametrize("sharing", ["shared", "gated"])
def test_weights_stay_in_float32_and_products_are_not(corpus, folder, sharing):
    learner = learner_of(corpus, folder, sharing=sharing)
    learner.fit(corpus.take(np.arange(20)), seed=3)
    seen = set()
    hooks = [
        layer.outer_dropout.register_forward_pre_hook(lambda _, given: seen.add(given[0].dtype))
        for layer in learner.models[0].encoder.layers
    ]
    exact = learner_of(corpus, folder, sharing=sharing, precision="float32")
    exact.fit(corpus.take(np.arange(20)), seed=3)
    learner.predict_proba(corpus.take(np.arange(3)))
    for hook in hooks:
        hook.remove()
    assert {p.dtype for p in learner.models[0].parameters()} == {torch.float32}
    assert seen == {torch.float32}  # residuals
    items = corpus.take(np.arange(200, 260)).unlabelled()
    mine, theirs = learner.predict_proba(items)["slots"].values, exact.predict_proba(items)["slots"].values
    assert not np.array_equal(mine, theirs)
    assert np.abs(mine - theirs).mean() < 0.02


def test_what_a_model_says_of_an_item_depends_on_nothing_but_the_item(corpus, trained):
    items = corpus.take(np.arange(100, 300)).unlabelled()
    together = trained.predict_proba(items)
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 17, 100):
        some = rng.choice(len(items), size, replace=False)
        for task, found in trained.predict_proba(items.take(some)).items():
            assert np.array_equal(found.values, together[task].take(some).values), size


def test_products_have_few_shapes_because_each_needs_a_kernel_of_its_own(corpus, trained):
    rows = set()
    layers = trained.models[0].encoder.layers
    hooks = [
        layer.outer_dropout.register_forward_pre_hook(lambda _, given: rows.add(len(given[0]))) for layer in layers
    ]
    for size in (1, 2, 7, 40):
        trained.predict_proba(corpus.take(np.arange(100, 100 + size)).unlabelled())
    for hook in hooks:
        hook.remove()
    assert len(rows) > 1
    assert not [count for count in rows if count % BLOCK]


def test_the_same_seed_gives_the_same_bits(corpus, folder, trained):
    again = learner_of(corpus, folder)
    again.fit(corpus.take(np.arange(60)[::-1]), seed=3)
    items = corpus.take(np.arange(100, 200)).unlabelled()
    for task, found in again.predict_proba(items).items():
        assert np.array_equal(found.values, trained.predict_proba(items)[task].values)


def test_a_model_of_one_precision_is_not_taken_for_one_of_another(corpus, folder, trained, tmp_path):
    trained.save(tmp_path)
    with pytest.raises(LearnerError, match="other tasks or settings"):
        learner_of(corpus, folder, precision="float32").restore(tmp_path)
    assert restored(trained, tmp_path).settings.precision == "bfloat16"


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True}, "bfloat16"),
        ({"avx2": True}, "float32"),
        ({}, "float32"),
    ],
)
def test_auto_follows_the_processor(monkeypatch, corpus, folder, capabilities, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert learner_of(corpus, folder, precision="auto").settings.precision == chosen


def test_an_old_torch_that_cannot_tell_computes_in_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert settings.chosen_precision("auto") == "float32"


def test_an_unknown_precision_is_refused(corpus, folder):
    with pytest.raises(ConfigError, match=r"learner\.precision = 'float16'"):
        learner_of(corpus, folder, precision="float16")
