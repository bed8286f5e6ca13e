"""Single, shared and gated: what tasks have in common, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError, SchemaError
from bursar.learners.neural import NeuralLearner
from bursar.learners.sharing import head_styles
from bursar.simulation import assistant_corpus
from bursar.tasks import Classification, Relations, Tagging

pytestmark = pytest.mark.usefixtures("one_thread")
TASKS = ["intent", "slots", "dependencies", "urgency"]


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(600, seed=5).with_tasks(TASKS)


def made(tasks, folder, **more):
    return NeuralLearner(tasks, encoder=str(folder), epochs=2, evaluate_every=1, **more)


def some(corpus, split, count):
    return corpus.split(split).take(np.arange(count))


@pytest.mark.parametrize("sharing", ["single", "shared", "gated"])
def test_any_number_of_tasks_of_any_kind_train_together(sharing, folder, corpus):
    learner = made(corpus.schema, folder, sharing=sharing)
    report = learner.fit(some(corpus, "train", 60), dev=some(corpus, "dev", 20))
    assert len(learner.models) == (4 if sharing == "single" else 1)
    assert report.items == 60
    scores = learner.evaluate(some(corpus, "test", 30))
    assert list(scores) == TASKS
    beliefs = learner.predict_proba(some(corpus, "test", 30), passes=3)
    assert all(found.passes == 3 for found in beliefs.values())


def test_a_gate_mixes_the_common_and_the_own_copy_as_the_paper_says(folder, corpus):
    two = corpus.with_tasks(["intent", "slots"])
    learner = made(two.schema, folder, sharing="gated")
    learner.fit(some(two, "train", 40))
    model = learner.models[0].eval()
    encoder = model.encoder
    assert (model.bottom, len(model.own)) == (1, 2)  # two layers: one shared, one copied for each task and in common
    readings = learner.cache.read(some(two, "test", 5))
    with torch.no_grad():
        batch = encoder.batch(readings)
        shared = encoder.run(encoder.embed(batch), batch, range(1))
        common = encoder.run(shared, batch, range(1, 2))
        for task in two.schema:
            own = encoder.run(shared, batch, model.own[task])
            gate = torch.sigmoid(model.gates[task](torch.cat([common, own], dim=1)))
            expected = encoder.pool(gate * common + (1 - gate) * own, batch)
            found = model.encode(encoder.embed(batch), batch, [task])[task]
            torch.testing.assert_close(found.items, expected.items)
            torch.testing.assert_close(found.words, expected.words)
            assert not torch.allclose(own, common)


def test_at_first_a_gated_model_encodes_like_the_shared_one(folder, corpus):
    two = corpus.with_tasks(["intent", "slots"])
    gated, shared = (made(two.schema, folder, sharing=s).make_models()[0].eval() for s in ("gated", "shared"))
    learner = made(two.schema, folder)
    batch = shared.encoder.batch(learner.cache.read(some(two, "test", 4)))
    with torch.no_grad():
        mine = gated.encode(gated.encoder.embed(batch), batch, ["intent"])["intent"]
        plain = shared.encode(shared.encoder.embed(batch), batch, ["intent"])["intent"]
    torch.testing.assert_close(mine.words, plain.words)


def test_a_single_model_of_a_task_is_the_same_whatever_the_other_tasks_are(folder, corpus):
    alone = made(corpus.with_tasks(["slots"]).schema, folder, sharing="single")
    among = made(corpus.with_tasks(["slots", "intent"]).schema, folder, sharing="single")
    train, test = some(corpus, "train", 40), some(corpus, "test", 10)
    alone.fit(train.with_tasks(["slots"]))
    among.fit(train.with_tasks(["slots", "intent"]))
    np.testing.assert_array_equal(alone.predict_proba(test)["slots"].values, among.predict_proba(test)["slots"].values)


def test_frozen_parameters_are_shared_by_all_models_and_have_no_optimiser_state(folder, corpus):
    learner = made(corpus.schema, folder, sharing="single", frozen_layers=1)
    learner.fit(some(corpus, "train", 20))
    tables = {model.encoder.word_embedding.weight.data_ptr() for model in learner.models}
    assert tables == {learner.encoder.word_embedding.weight.data_ptr()}
    for model in learner.models:
        frozen = [p for p in model.parameters() if not p.requires_grad]
        assert frozen
        assert all(p.grad is None for p in frozen)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sharing": "both"}, "sharing = 'both'"),
        ({"sharing": "gated", "frozen_layers": 2}, "freeze no more"),
        ({"sharing": "gated", "gated_layers": 0}, "gated_layers"),
        ({"heads": {"slots": "tree"}}, "no tagging head of style 'tree'"),
        ({"heads": {"spots": "crf"}}, "heads names 'spots'"),
        ({"tag_head": "tree"}, "tag_head = 'tree'"),
        ({"temperature": 3}, "temperature"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_trained(options, said, folder, corpus):
    with pytest.raises((ConfigError, SchemaError), match=said):
        made(corpus.schema, folder, **options)


def test_one_setting_gives_every_tagging_task_its_head_but_those_named(folder, corpus):
    corpus = corpus.with_tasks(["intent", "slots"])
    by_name, by_kind, other = (
        made(corpus.schema, folder, **options)
        for options in (
            {"heads": {"slots": "crf"}},
            {"tag_head": "crf"},
            {"tag_head": "crf", "heads": {"slots": "lstm"}},
        )
    )
    for learner in (by_name, by_kind, other):
        learner.fit(some(corpus, "train", 20), seed=2)
    test = some(corpus, "test", 10)
    for name, beliefs in by_name.predict_proba(test).items():
        np.testing.assert_array_equal(beliefs.values, by_kind.predict_proba(test)[name].values)
    assert type(other.models[0].head("slots")) is not type(by_kind.models[0].head("slots"))


def test_gating_one_task_is_refused(folder, corpus):
    with pytest.raises(ConfigError, match="nothing to gate"):
        made(corpus.with_tasks(["slots"]).schema, folder, sharing="gated")


# -- entities with relations -------------------------------------------------------------------------------------------
def linked():
    """Sentences in which a person works at a place."""
    types = ["person", "place"]
    builder = CorpusBuilder(
        {
            "entities": {"kind": "tagging", "labels": types},
            "links": {"kind": "relations", "labels": ["at"], "entity_types": types},
            "long": {"kind": "classification", "labels": ["no", "yes"]},
        }
    )
    people, places = ["ann", "bob", "cy", "dee"], ["rome", "oslo", "lima"]
    for n in range(48):
        who, where = people[n % 4], places[n % 3]
        long = n % 2
        text = f"{who} works in {where}" + (" on most days" if long else "")
        person, place = [0, 1, "person"], [3, 4, "place"]
        labels = {"entities": [person, place], "links": [[person, place, "at"]], "long": "yes" if long else "no"}
        builder.add(f"u{n}", text=text, labels=labels)
    return builder.build()


@pytest.mark.parametrize("sharing", ["single", "shared", "gated"])
def test_entities_and_their_relations_are_learned_together(sharing, folder):
    corpus = linked()
    learner = NeuralLearner(
        corpus.schema, encoder=str(folder), epochs=25, sharing=sharing, learning_rate=3e-3, head_learning_rate=1e-2
    )
    assert isinstance(learner.tasks["links"], Relations)
    learner.fit(corpus)
    scores = learner.evaluate(corpus)
    assert scores["entities"]["f1"] > 0.9
    assert scores["links"]["f1"] > 0.8
    if sharing == "single":
        assert [list(model.tasks) for model in learner.models] == [["entities", "links"], ["long"]]


def test_thinned_passes_ask_about_the_pairs_that_the_model_itself_keeps(folder):
    corpus = linked()
    learner = NeuralLearner(corpus.schema, encoder=str(folder), epochs=8, learning_rate=3e-3)
    learner.fit(corpus)
    plain, thinned = learner.predict_proba(corpus)["links"], learner.predict_proba(corpus, passes=4, seed=1)["links"]
    np.testing.assert_array_equal(plain.subjects, thinned.subjects)
    assert thinned.passes == 4


def test_relations_without_their_entities_are_refused_by_name(folder):
    corpus = linked().with_tasks(["links", "long"])
    with pytest.raises(SchemaError, match=r"'links': relations need a task for the entities"):
        made(corpus.schema, folder)


def test_relations_may_be_labelled_where_entities_are_not(folder):
    corpus = linked()
    bare = corpus.labels["entities"].take(np.arange(len(corpus)))
    present = np.arange(len(corpus)) % 2 == 0
    rows = corpus.labels["entities"].rows
    kept = type(rows)(
        rows.values[np.repeat(present, rows.lengths)], np.cumsum([0, *np.where(present, rows.lengths, 0)])
    )
    half = corpus.with_labels({**corpus.labels, "entities": type(bare)(present, kept)})
    learner = made(corpus.schema, folder)
    learner.fit(half)
    assert isinstance(learner.tasks["entities"], Tagging)
    assert set(learner.evaluate(corpus)) == set(corpus.schema)


@pytest.mark.parametrize("name", ["half", "type", "to.be", "a b", "forward"])
def test_a_task_may_have_any_name(name, folder, corpus):
    renamed = corpus.with_tasks(["intent", "slots"]).with_renamed_tasks({"intent": name})
    learner = made(renamed.schema, folder, sharing="gated")
    learner.fit(some(renamed, "train", 20))
    assert name in learner.evaluate(some(renamed, "test", 5))


def test_an_encoder_without_layers_cannot_be_gated(corpus):
    with pytest.raises(ConfigError, match="no layers to copy"):
        NeuralLearner(corpus.schema, encoder="aoe", sharing="gated")


def test_a_head_for_entities_that_relations_cannot_build_on_is_refused(folder):
    with pytest.raises(ConfigError, match="relations build on its spans"):
        made(linked().schema, folder, heads={"entities": "crf"})


def test_entities_that_relations_build_on_keep_their_spans_whatever_the_head_of_other_tags(folder):
    made(linked().schema, folder, tag_head="crf").fit(linked())


def test_the_style_of_a_head_is_the_named_one_or_that_of_tags():
    tasks = {task.name: task for task in (Classification("intent", ("a", "b")), Tagging("slots", ("city",)))}
    assert head_styles(tasks, {}, "crf") == {"slots": "crf"}
    assert head_styles(tasks, {"slots": "lstm"}, "crf") == {"slots": "lstm"}
