"""Exported models: what is loaded predicts the same to the bit, without the project and without running code."""

from __future__ import annotations

import json
import shutil

import joblib
import numpy as np
import pandas as pd
import pytest
import torch

import bursar
from bursar.errors import ConfigError, LearnerError, UntrustedError
from bursar.learners import make_learner
from bursar.predictions import ModelDescription, Predictions, export_model, held_out, load_model
from bursar.predictions.saved import DESCRIPTION, OWN
from bursar.simulation import assistant_corpus
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {"epochs": 2, "learning_rate": 1e-2}
TRANSFORMERS = {
    "shared": {},
    "fewer layers": {"layers": 1},
    "frozen": {"frozen_layers": 1},
    "single": {"sharing": "single"},
    "gated": {"sharing": "gated"},
    "temperature": {"temperature": True},
}
OTHERS = {"scikit": {}, "probe": {}, "cnn": {"epochs": 2}}


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(150, seed=3)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def fitted(corpus, name, options):
    learner = make_learner(name, corpus.schema, options)
    learner.fit(corpus.take(np.arange(80)), dev=corpus.take(np.arange(80, 110)))
    return learner


def same(ours: Predictions, theirs: Predictions) -> bool:
    return all(
        ours.corpus.labels[name].rows.equals(theirs.corpus.labels[name].rows)
        and np.array_equal(ours.sure[name], theirs.sure[name])
        for name in ours.tasks
    )


@pytest.mark.parametrize("variant", TRANSFORMERS)
def test_an_exported_transformer_predicts_the_same_without_the_encoder_it_came_from(corpus, encoder, tmp_path, variant):
    source = shutil.copytree(encoder, tmp_path / "source")
    learner = fitted(corpus, "transformer", QUICK | TRANSFORMERS[variant] | {"encoder": str(source)})
    rest = corpus.take(np.arange(110, 150)).unlabelled()
    expected = Predictions.of(learner, rest)
    files = export_model(learner, tmp_path / "model", ModelDescription("Trial", "transformer"))
    assert {"README.md", "bursar.json", "heads.safetensors"} <= set(files)
    shutil.rmtree(source)
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    assert str(tmp_path) not in (moved / DESCRIPTION).read_text()
    assert same(expected, load_model(moved).predict(rest))


@pytest.mark.parametrize("name", OTHERS)
def test_other_learners_are_exported_as_they_save_themselves(corpus, encoder, tmp_path, name):
    options = OTHERS[name] | ({"encoder": str(encoder)} if name == "probe" else {})
    some = corpus.with_tasks(["intent", "slots", "urgency"])
    learner = fitted(some, name, options)
    rest = some.take(np.arange(110, 150)).unlabelled()
    export_model(learner, tmp_path / "model", ModelDescription("Trial", name, options))
    assert same(Predictions.of(learner, rest), load_model(tmp_path / "model").predict(rest))


@pytest.mark.parametrize("layers", [None, 1])
def test_transformers_loads_the_encoder_with_the_weights_that_were_trained(corpus, encoder, tmp_path, layers):
    from transformers import AutoModel, AutoTokenizer

    options = QUICK | {"encoder": str(encoder), "precision": "float32", "layers": layers}
    learner = fitted(corpus, "transformer", options)
    export_model(learner, tmp_path / "model", ModelDescription("Trial", "transformer"))
    model = AutoModel.from_pretrained(tmp_path / "model").eval()
    ids = AutoTokenizer.from_pretrained(tmp_path / "model")("wake me at seven", return_tensors="pt")
    ours = learner.models[0].encoder.eval()
    builder = bursar.CorpusBuilder()
    builder.add("a", text="wake me at seven")
    batch = ours.batch(ours.read(builder.build()))
    assert batch.ids.tolist() == ids["input_ids"][0].tolist()
    with torch.no_grad():
        expected = ours.run(ours.embed(batch), batch, range(ours.depth))
        found = model(**ids).last_hidden_state[0]
    assert torch.allclose(found, expected, atol=1e-5)
    untrained = AutoModel.from_pretrained(encoder).eval()
    assert not torch.allclose(untrained(**ids).last_hidden_state[0], expected, atol=1e-3)


def test_any_encoder_of_transformers_is_exported(corpus, encoder, tmp_path):
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    config = DistilBertConfig(vocab_size=30522, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    torch.manual_seed(1)
    DistilBertModel(config).save_pretrained(tmp_path / "distil")
    AutoTokenizer.from_pretrained(encoder).save_pretrained(tmp_path / "distil")
    learner = fitted(corpus, "transformer", QUICK | {"encoder": str(tmp_path / "distil")})
    rest = corpus.take(np.arange(110, 150)).unlabelled()
    expected = Predictions.of(learner, rest)
    export_model(learner, tmp_path / "model", ModelDescription("Trial", "transformer"))
    shutil.rmtree(tmp_path / "distil")
    assert same(expected, load_model(tmp_path / "model").predict(rest))


# -- using one ---------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def intents(corpus):
    return corpus.with_tasks(["intent"])


@pytest.fixture
def exported(intents, tmp_path):
    learner = fitted(intents, "scikit", {})
    test = intents.take(np.arange(110, 150))
    about = ModelDescription(
        name="Trial",
        learner="scikit",
        items=80,
        labels={"intent": 80},
        scores=learner.evaluate(test),
        held_out=held_out(learner, test),
    )
    export_model(learner, tmp_path / "model", about)
    return tmp_path / "model"


def test_texts_frames_and_corpora_are_labelled_by_the_model_alone(exported, intents):
    model = bursar.load_model(exported)
    texts = intents.texts.strings.tolist()[:20]
    of_texts = model.predict(texts)
    of_frame = model.predict(pd.DataFrame({"Ticket": range(20), "Body": texts}))
    of_corpus = model.predict(intents.take(np.arange(20)))
    assert of_texts.to_frame()["intent"].tolist() == of_frame.to_frame()["intent"].tolist()
    assert of_texts.to_frame()["intent"].tolist() == of_corpus.to_frame()["intent"].tolist()
    assert set(of_corpus.to_frame()["intent by"]) == {"model"}
    assert [*of_frame.to_frame().columns] == ["Ticket", "Body", "intent", "intent sure", "intent by"]
    assert [*of_texts.to_frame().columns] == ["id", "text", "intent", "intent sure", "intent by"]
    assert len(model.predict([])) == 0
    with pytest.raises(ConfigError, match="not a list of texts"):
        model.predict("one text")
    with pytest.raises(ConfigError, match="text 2 is 7"):
        model.predict(["a", 7])


def test_it_says_how_many_errors_to_expect_as_the_project_did(exported, intents):
    (about,) = bursar.load_model(exported).predict(["play some jazz"]).accepted(0.5)
    assert about.held_out == 40
    assert about.source == "test items"


def test_the_card_says_what_it_does_how_well_and_how_to_load_it(exported, intents):
    card = (exported / "README.md").read_text()
    accuracy = json.loads((exported / DESCRIPTION).read_text())["about"]["scores"]["intent"]["accuracy"]
    assert f"| intent | accuracy | {accuracy:.3f} |" in card
    assert "| intent | classification | " in card
    assert "80 labels" in card
    assert "of 40 test items" in card
    assert 'bursar.load_model("FOLDER")' in card


def test_a_folder_that_is_taken_is_left_alone(exported, intents):
    before = (exported / "README.md").read_bytes()
    with pytest.raises(ConfigError, match="already exists"):
        export_model(fitted(intents, "scikit", {}), exported, ModelDescription("Other", "scikit"))
    assert (exported / "README.md").read_bytes() == before


# -- from anybody ------------------------------------------------------------------------------------------------------
class Evil:
    """A pickle of it would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('it ran')",))


def test_no_code_of_a_folder_is_run_unless_it_is_trusted(exported):
    own = exported / OWN
    for file in own.glob("estimators.*"):
        file.unlink()
    joblib.dump({"intent": Evil()}, own / "estimators.joblib")
    with pytest.raises(UntrustedError, match="can run code"):
        load_model(exported)
    with pytest.raises(SystemExit, match="it ran"):
        load_model(exported, trust=True)


@pytest.mark.parametrize("damage", ["none", "text", "version", "learner", "tasks", "weights"])
def test_a_folder_that_holds_no_model_is_refused(exported, damage):
    file = exported / DESCRIPTION
    found = json.loads(file.read_text())
    if damage == "none":
        file.unlink()
    elif damage == "text":
        file.write_text("{")
    elif damage == "weights":
        shutil.rmtree(exported / OWN)
    else:
        found |= {"version": {"bursar_model": 99}, "tasks": {"tasks": {"intent": {"kind": "x"}}}}.get(damage, {})
        if damage == "learner":
            found["about"]["learner"] = "os.system"
        file.write_text(json.dumps(found))
    with pytest.raises(LearnerError, match=str(exported)):
        load_model(exported)
