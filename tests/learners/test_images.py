"""The small network for images: any size and number of channels, no item touches another, several tasks at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.corpus import CorpusBuilder, read
from bursar.errors import LearnerError
from bursar.learners import make_learner
from bursar.learners.encoders import images as encoders
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.images import as_floats
from tests.learners.trainings import restored

pytestmark = pytest.mark.usefixtures("one_thread")

SIDES = ["left", "right"]
TASKS = {"side": {"kind": "classification", "labels": SIDES}, "amount": {"kind": "regression", "low": 0, "high": 1}}


def bars(items, shape=(20, 18), seed=0, dtype=np.uint8):
    """Noise with a bright bar on one side; every fourth item is a test item."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 100, (items, *shape))
    sides = rng.integers(0, 2, items)
    builder = CorpusBuilder(TASKS)
    for at, side in enumerate(sides):
        where = rng.integers(1, shape[1] // 2 - 1) + side * (shape[1] // 2)
        pixels[at, :, where] += 150
        labels = {"side": SIDES[side], "amount": float(side)}
        builder.add(f"i{at}", split="train" if at % 4 else "test", labels=labels)
    return builder.build(images=pixels.astype(dtype))


def learner(corpus, **options):
    return make_learner("image-cnn", corpus.schema, {"epochs": 4} | options)


def test_the_network_is_that_of_the_paper():
    encoder = load_encoder("image-cnn")
    encoder.settle(encoder.read(bars(2, (28, 28))))
    shapes = [tuple(p.shape) for name, p in encoder.named_parameters() if name.endswith("weight")]
    assert shapes == [(32, 1, 5, 5), (64, 32, 5, 5), (128, 1024)]
    assert encoder.width == 128


@pytest.mark.parametrize(
    ("shape", "dtype"), [((20, 18), np.uint8), ((16, 16), np.int64), ((17, 24, 3), np.uint8), ((16, 19, 1), np.float32)]
)
def test_it_learns_from_images_of_any_size_and_sort(shape, dtype):
    corpus = bars(160, shape, dtype=dtype)
    if dtype == np.float32:
        corpus = type(corpus)(**{**vars(corpus), "images": corpus.images / np.float32(255)})
    model = learner(corpus, epochs=5, learning_rate=3e-3)
    model.fit(corpus.split("train"))
    scores = model.evaluate(corpus.split("test"))
    assert scores["side"]["accuracy"] > 0.9


def test_whole_numbers_become_numbers_from_0_to_1():
    assert as_floats(np.array([0, 51, 255], dtype=np.uint8)).tolist() == pytest.approx([0, 0.2, 1])
    assert as_floats(np.array([0, 65535], dtype=np.uint16)).tolist() == [0, 1]
    assert as_floats(np.array([0, 255])).tolist() == [0, 1]
    assert as_floats(np.array([0.0, 0.5])).tolist() == [0, 0.5]
    assert as_floats(np.array([False, True])).tolist() == [0, 1]


def test_beliefs_depend_neither_on_order_nor_on_company(monkeypatch):
    corpus = bars(60)
    model = learner(corpus)
    model.fit(corpus.split("train"))
    test = corpus.split("test")
    whole = model.predict_proba(test)
    order = np.random.default_rng(1).permutation(len(test))
    expected = model.predict_proba(test)["side"].take(order).values
    np.testing.assert_allclose(model.predict_proba(test.take(order))["side"].values, expected, atol=1e-5)
    for at in range(4):
        alone = model.predict_proba(test.take(np.array([at])))
        np.testing.assert_allclose(alone["side"].values, whole["side"].take(np.array([at])).values, atol=1e-5)
    monkeypatch.setattr(encoders, "PIXELS_AT_ONCE", 1000)  # nor on how many are looked at together
    np.testing.assert_allclose(model.predict_proba(test)["side"].values, whole["side"].values, atol=1e-5)


def test_equal_images_have_equal_keys_and_others_do_not():
    encoder, corpus = load_encoder("image-cnn"), bars(10)
    keys = encoder.keys(corpus)
    assert keys == encoder.keys(corpus)
    assert len(set(keys)) == 10
    turned = type(corpus)(**{**vars(corpus), "images": corpus.images.reshape(10, 18, 20)})
    assert not set(keys) & set(encoder.keys(turned))


def test_a_restored_learner_believes_the_same_to_the_bit(tmp_path):
    corpus = bars(40, (18, 20, 3))
    model = learner(corpus)
    model.fit(corpus.split("train"))
    model.save(tmp_path)
    test = corpus.split("test")
    other = learner(corpus)
    other.fit(bars(8, (16, 16)), seed=9)  # of another size, even
    other.restore(tmp_path)
    for again in (restored(model, tmp_path), other):
        found, expected = again.predict_proba(test), model.predict_proba(test)
        assert np.array_equal(found["side"].values, expected["side"].values)
        assert np.array_equal(found["amount"].means, expected["amount"].means)


def test_what_is_learned_depends_on_the_seed_alone():
    corpus = bars(40).with_tasks(["side"])
    first, second = learner(corpus, epochs=2), learner(corpus, epochs=2)
    second.fit(corpus.split("test"))
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    for model in (first, second):
        model.fit(corpus.split("train"), seed=1)
    assert torch.equal(torch.rand(3), expected)
    before = first.predict_proba(corpus)["side"].values
    assert np.array_equal(before, second.predict_proba(corpus)["side"].values)
    first.fit(corpus.split("train"), seed=2)
    assert not np.allclose(before, first.predict_proba(corpus)["side"].values, atol=1e-4)


def test_no_images_at_all_have_no_beliefs():
    corpus = bars(12)
    model = learner(corpus, epochs=1)
    model.fit(corpus)
    assert len(model.predict_proba(corpus.take(np.zeros(0, dtype=np.int64)))["side"]) == 0


# -- what is refused -----------------------------------------------------------------------------------------------
def test_a_corpus_of_texts_is_refused():
    builder = CorpusBuilder(TASKS)
    builder.add("u", text="left", labels={"side": "left", "amount": 0.0})
    with pytest.raises(LearnerError, match="the corpus has texts"):
        learner(builder.build()).fit(builder.build())


def test_tasks_on_words_are_refused_by_name():
    builder = CorpusBuilder({"slots": {"kind": "tagging", "labels": ["x"]}})
    builder.add("u", labels={"slots": []})
    corpus = builder.build(images=np.zeros((1, 28, 28), dtype=np.uint8))
    with pytest.raises(LearnerError, match="task 'slots' is tagging, which needs words"):
        learner(corpus).fit(corpus)


def test_images_that_are_too_small_are_refused():
    corpus = bars(8, (15, 40))
    with pytest.raises(LearnerError, match=r"15 × 40 .* at least 16 × 16"):
        learner(corpus).fit(corpus)


def test_images_of_another_size_than_those_learned_from_are_refused():
    corpus = bars(8)
    model = learner(corpus, epochs=1)
    model.fit(corpus)
    with pytest.raises(LearnerError, match="images of 28 × 28, but the model was trained on 20 × 18"):
        model.predict_proba(bars(8, (28, 28)))


# -- real images ---------------------------------------------------------------------------------------------------
def test_it_learns_fashion(data_folder):
    corpus = read(data_folder("fashion_mnist") / "t10k-images-idx3-ubyte.gz")  # the smaller file is enough
    train, test = corpus.take(np.arange(500)), corpus.take(np.arange(500, 1000))
    model = learner(corpus, epochs=4)
    model.fit(train)
    assert model.evaluate(test)["label"]["accuracy"] > 0.55  # a tenth by chance


def test_tasks_share_the_features_of_faces(data_folder):
    corpus = read(data_folder("cmu_faces"), images="img32x30").with_tasks(["person", "pose"])
    model = learner(corpus, epochs=1)
    report = model.fit(corpus.take(np.arange(0, len(corpus), 4)))
    beliefs = model.predict_proba(corpus.take(np.arange(1, len(corpus), 8)))
    assert report.steps == 10  # of 16 images, for both tasks
    assert len(model.models) == 1
    assert [found.values.size // 78 for found in beliefs.values()] == [20, 4]
