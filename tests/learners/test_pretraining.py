"""Further pretraining: an encoder that has read the pool, kept on disk and resumed to the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.campaign.config import parse_config
from bursar.campaign.models import PRETRAINED, Models
from bursar.errors import CheckpointError, ConfigError, LearnerError
from bursar.learners import make_learner, pretraining
from bursar.learners.pretraining import MaskedPieceHead, Pretraining, PretrainingPlan, pretrain
from bursar.simulation import assistant_corpus
from tests.learners.trainings import Crash, crash_after, made

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS = 6


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(200, seed=5).with_tasks(["intent", "slots"])


@pytest.fixture(scope="module")
def pool(corpus):
    return corpus.take(np.arange(90)).unlabelled()


@pytest.fixture(scope="module")
def train(corpus):
    return corpus.take(np.arange(30))


@pytest.fixture(scope="module")
def test(corpus):
    return corpus.take(np.arange(100, 140)).unlabelled()


def reader(corpus, folder, **more):
    return made(corpus, folder, **({"pretraining_steps": STEPS, "epochs": 2} | more))


def weights(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


class Watch:
    """Counts the steps of pretraining, and crashes after some."""

    def __init__(self, crash=None):
        self.steps, self.crash = 0, crash

    def __call__(self, what, done):
        self.steps += what == "pretraining"
        if self.steps == self.crash:
            raise Crash


def same(beliefs, others):
    return all(np.array_equal(found.values, others[name].values) for name, found in beliefs.items())


# -- what is learned ---------------------------------------------------------------------------------------------------
def test_masked_words_are_guessed_better_and_better(corpus, folder, pool, monkeypatch):
    losses = []
    loss = MaskedPieceHead.loss
    monkeypatch.setattr(MaskedPieceHead, "loss", lambda *given: losses.append(loss(*given)) or losses[-1])
    monkeypatch.setattr(pretraining, "HEAD_RATE", 3e-2)  # the tiny encoder knows nothing to begin with
    reader(corpus, folder, pretraining_steps=60, pretraining_rate=1e-2).adapt(pool)
    first, last = (np.mean([x.item() for x in part]) for part in (losses[:5], losses[-5:]))
    assert last < 0.9 * first


def test_marks_are_never_masked_and_about_three_tenths_of_the_others_are(corpus, folder, pool, monkeypatch):
    learner, seen = reader(corpus, folder), []
    loss = MaskedPieceHead.loss
    monkeypatch.setattr(MaskedPieceHead, "loss", lambda self, v, ids: seen.append(ids) or loss(self, v, ids))
    learner.adapt(pool)
    chosen, pieces = torch.cat(seen), learner.encoder.pieces
    assert not torch.isin(chosen, torch.tensor([pieces.start, pieces.end])).any()
    read = learner.cache.read(pool)
    total = sum(len(reading.ids) - 2 for reading in read) * STEPS / 3  # three steps an epoch
    assert 0.25 < len(chosen) / total < 0.35


def test_training_begins_from_what_the_encoder_became(corpus, folder, pool, train):
    plain, read = (reader(corpus, folder, learning_rate=0.0, weight_decay=0.0) for _ in range(2))
    read.adapt(pool)
    for learner in (plain, read):
        learner.fit(train, seed=1)
    assert torch.equal(weights(plain.models[0].encoder), weights(plain.encoder))
    moved = weights(read.models[0].encoder) - weights(plain.encoder)
    assert moved.abs().max() > 1e-4
    assert torch.equal(weights(read.encoder), weights(plain.encoder))  # the encoder itself stays as it came


@pytest.mark.parametrize("sharing", ["single", "gated"])
def test_every_model_begins_from_it(sharing, corpus, folder, pool, train):
    learner = reader(corpus, folder, sharing=sharing, learning_rate=0.0, weight_decay=0.0)
    learner.adapt(pool)
    learner.fit(train, seed=1)
    for model in learner.models:
        assert torch.equal(weights(model.encoder), weights(learner.start_encoder))
        for copies in model.own.parts if sharing == "gated" else ():
            assert torch.equal(weights(copies), weights(learner.start_encoder.layers[model.bottom :]))


def test_frozen_layers_stay_as_they_are(corpus, folder, pool):
    learner = reader(corpus, folder, frozen_layers=1)
    learner.adapt(pool)
    before, after = learner.encoder, learner.start_encoder
    assert torch.equal(weights(after.layers[0]), weights(before.layers[0]))
    assert not torch.equal(weights(after.layers[1]), weights(before.layers[1]))


def test_where_items_lie_before_training_does_not_change(corpus, folder, pool, test):
    learner = reader(corpus, folder)
    before = learner.embeddings(test)
    learner.adapt(pool)
    np.testing.assert_array_equal(before.items, learner.embeddings(test).items)


# -- the same to the bit -----------------------------------------------------------------------------------------------
def test_it_depends_on_the_items_and_the_seed_not_on_their_order(corpus, folder, pool):
    found = []
    for items, seed in ((pool, 3), (pool.take(np.arange(len(pool))[::-1]), 3), (pool, 4)):
        learner = reader(corpus, folder)
        learner.adapt(items, seed=seed)
        found.append(weights(learner.start_encoder))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize("crashes", [[1], [4], [2, 3]])
def test_an_interrupted_pretraining_ends_in_the_same_bits(crashes, corpus, folder, pool, tmp_path):
    whole, resumed = (reader(corpus, folder) for _ in range(2))
    whole.adapt(pool, seed=2)
    for calls in crashes:
        with pytest.raises(Crash):
            reader(corpus, folder).adapt(pool, seed=2, file=tmp_path / "read", progress=Watch(calls))
    watch = Watch()
    resumed.adapt(pool, seed=2, file=tmp_path / "read", progress=watch)
    assert watch.steps < STEPS
    assert torch.equal(weights(whole.start_encoder), weights(resumed.start_encoder))
    assert [path.name for path in tmp_path.iterdir()] == ["read"]


def test_random_numbers_of_others_are_left_alone(corpus, folder, pool):
    learner = reader(corpus, folder)
    before = torch.get_rng_state()
    learner.adapt(pool)
    assert torch.equal(before, torch.get_rng_state())


# -- kept on disk ------------------------------------------------------------------------------------------------------
def test_what_was_read_is_not_read_again(corpus, folder, pool, tmp_path):
    first, second, watch = reader(corpus, folder), reader(corpus, folder), Watch()
    first.adapt(pool, seed=2, file=tmp_path / "read")
    first.adapt(pool, seed=2, progress=watch)
    second.adapt(pool, seed=2, file=tmp_path / "read", progress=watch)
    assert watch.steps == 0
    assert torch.equal(weights(first.start_encoder), weights(second.start_encoder))


@pytest.mark.parametrize("other", ["items", "seed", "steps", "damaged"])
def test_a_file_of_anything_else_is_not_used(other, corpus, folder, pool, tmp_path):
    file = tmp_path / "read"
    reader(corpus, folder).adapt(pool, seed=2, file=file)
    if other == "damaged":
        file.write_bytes(file.read_bytes()[:500])
    learner, watch = reader(corpus, folder, pretraining_steps=STEPS + (other == "steps")), Watch()
    learner.adapt(
        pool.take(np.arange(60)) if other == "items" else pool, seed=2 + (other == "seed"), file=file, progress=watch
    )
    assert watch.steps == learner.settings.pretraining_steps


def test_a_saved_model_needs_no_pool(corpus, folder, pool, train, test, tmp_path):
    learner, other = reader(corpus, folder), reader(corpus, folder)
    learner.adapt(pool)
    learner.fit(train, seed=1)
    learner.save(tmp_path / "model")
    other.restore(tmp_path / "model")
    assert same(learner.predict_proba(test), other.predict_proba(test))


def test_a_checkpoint_of_another_start_is_refused(corpus, folder, pool, train, tmp_path):
    plain, read = reader(corpus, folder), reader(corpus, folder)
    read.adapt(pool)
    with pytest.raises(Crash):
        plain.fit(train, checkpoint=tmp_path / "checkpoint", progress=crash_after(2))
    with pytest.raises(CheckpointError, match="of another training"):
        read.fit(train, checkpoint=tmp_path / "checkpoint")


# -- in a campaign -----------------------------------------------------------------------------------------------------
def test_a_campaign_reads_its_pool_once_and_only_if_asked(corpus, folder, pool, train, tmp_path):
    def fit(items, steps):
        options = {"encoder": str(folder), "epochs": 1, "pretraining_steps": steps}
        models = Models(tmp_path, parse_config({"learner": options}), corpus.schema, pool=lambda: pool)
        watch = Watch()
        return models.fitted(items, None, watch)[0], watch.steps

    assert fit(train, 0)[1] == 0
    assert not (tmp_path / PRETRAINED).exists()
    first, steps = fit(train, STEPS)
    assert steps == STEPS
    second, steps = fit(train.take(np.arange(20)), STEPS)
    assert steps == 0
    assert torch.equal(weights(first.start_encoder), weights(second.start_encoder))


# -- what cannot be ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["bilstm", "cnn", "aoe"])
def test_encoders_without_a_mask_are_refused(name, corpus):
    with pytest.raises(LearnerError, match="no mask token"):
        make_learner(name, corpus.schema, {"pretraining_steps": 5})


@pytest.mark.parametrize("wrong", [{"pretraining_steps": -1}, {"pretraining_steps": 1.5}, {"pretraining_rate": 2}])
def test_wrong_settings_are_named(corpus, folder, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        made(corpus, folder, **wrong)


def test_a_loss_that_is_no_number_is_an_error(corpus, folder, pool, monkeypatch):
    monkeypatch.setattr(MaskedPieceHead, "loss", lambda self, vectors, ids: vectors.sum() * float("nan"))
    with pytest.raises(LearnerError, match=r"step 0.*pretraining_rate"):
        reader(corpus, folder).adapt(pool)


def test_items_without_words_and_pools_of_none_do_no_harm(corpus, folder, pool):
    learner = reader(corpus, folder)
    learner.adapt(pool.take(np.zeros(0, dtype=np.int64)))
    assert learner.start_encoder is learner.encoder
    empty = [reading._replace(ids=reading.ids[[0, -1]], windows=(2,)) for reading in learner.cache.read(pool)[:5]]
    empty = [reading._replace(types=reading.types[:2], words=reading.words[:0]) for reading in empty]
    before = weights(learner.encoder)
    plan = PretrainingPlan(steps=3, rate=1e-3)
    found = pretrain(learner.encoder, empty, plan, None, Watch())
    assert torch.equal(before, weights(found))
    assert Pretraining(learner.encoder.twin(), empty, plan).step == 0
