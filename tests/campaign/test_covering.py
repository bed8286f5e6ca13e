"""Campaigns that cover doubt: every kind of task, learners without vectors of words, resumed runs."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign import unit_space
from bursar.campaign.campaign import Campaign
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.unit_space import UnitDoubts, UnitSpace
from bursar.errors import ConfigError
from bursar.learners import make_learner
from bursar.simulation import assistant_corpus

pytestmark = pytest.mark.usefixtures("one_thread")


def config_of(learner, tasks=("intent", "slots"), **more):
    return parse_config(
        {
            "tasks": list(tasks),
            "corpus": {"items": 600, "pool_items": 150, "dev_items": 20, "test_items": 40},
            "budget": {"seed_items": 30, "per_round": 120, "rounds": 2},
            "strategy": {"name": "COVER"},
            "learner": learner,
            "audit": {"share": 0.1, "shadow": False},
            **more,
        }
    )


def bought(config, folder):
    campaign = Campaign(config, folder)
    try:
        campaign.run(GoldAnnotator(campaign.corpus))
        rounds = campaign.ledger.decisions(RoundSelection)
        return [[item.id for item in found.items] for found in rounds], [found.certificate for found in rounds[1:]]
    finally:
        campaign.close()


SMALL = {"name": "transformer", "layers": 1, "steps": 4}


@pytest.mark.parametrize(
    ("learner", "tasks"),
    [
        ({"name": "probe"}, ("intent", "slots")),
        (SMALL, tuple(assistant_corpus(20, seed=0).schema)),
        ({"name": "aoe", "epochs": 2}, ("intent", "slots")),
    ],
    ids=["probe", "every kind of task", "no vectors of words"],
)
def test_a_campaign_covers_doubt_with_a_certificate(learner, tasks, tmp_path):
    rounds, certificates = bought(config_of(learner, tasks), tmp_path)
    assert len(rounds) == 3
    assert len({id for found in rounds for id in found}) == sum(map(len, rounds))
    for certificate in certificates:
        assert 0 < certificate.objective <= certificate.bound <= len(tasks)


def test_a_campaign_label_by_label_buys_every_label_once_and_some_items_in_part(tmp_path):
    costs = {"reading": {"per_word": 0}, "slots": {"per_item": 12}}
    config = config_of({"name": "probe"}, strategy={"name": "COVER-LABELS"}, costs=costs)
    campaign = Campaign(config, tmp_path)
    campaign.run(GoldAnnotator(campaign.corpus))
    chosen = [selection.items for selection in campaign.ledger.decisions(RoundSelection)]
    campaign.close()
    labels = [(entry.id, task) for items in chosen for entry in items for task in entry.tasks]
    assert len(labels) == len(set(labels))
    assert {len(entry.tasks) for items in chosen[1:] for entry in items} == {1, 2}


def test_a_campaign_covers_by_the_scores_of_another_strategy_without_outliers(tmp_path):
    rounds, certificates = bought(config_of({"name": "probe"}, strategy={"name": "MT-AVG+COVER+GUARD"}), tmp_path)
    assert len(rounds) == 3
    assert all(0 < found.objective <= found.bound for found in certificates)


def test_a_campaign_that_was_stopped_covers_the_same(tmp_path):
    config = config_of({"name": "probe"})
    whole, _ = bought(config, tmp_path / "whole")
    campaign = Campaign(config, tmp_path / "stopped")
    annotator = GoldAnnotator(campaign.corpus)
    asked = campaign.ask()
    campaign.tell({want.id: annotator.annotate(want.id, want.tasks) for want in asked.items})
    campaign.ask()
    campaign.close()
    assert bought(config, tmp_path / "stopped")[0] == whole


def test_a_learner_without_vectors_is_refused_before_anything_is_bought():
    from bursar.campaign.checks import check_served

    with pytest.raises(ConfigError, match="strategy COVER needs vectors of items"):
        check_served(config_of({"name": "scikit"}))


def test_doubts_that_add_up_need_no_vectors(tmp_path):
    config = config_of({"name": "scikit"}, strategy={"name": "MT-SUM+BLP_AL"})
    rounds, certificates = bought(config, tmp_path)
    assert len(rounds) == 3
    assert all(found.optimal and found.objective > 0 for found in certificates)


# -- where units lie -------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(120, seed=3).with_tasks(["intent", "slots"])


@pytest.fixture(scope="module")
def learner(corpus):
    learner = make_learner("transformer", corpus.schema, {"layers": 2, "steps": 4})
    learner.fit(corpus.take(np.arange(60)), seed=0)
    return learner


def test_places_of_items_and_words_outlast_a_training(corpus, learner):
    items = corpus.take(np.arange(80, 100)).unlabelled()
    before = learner.embeddings(items)
    assert before.lasting
    assert len(before.words) == items.words.sum()
    learner.fit(corpus.take(np.arange(30)), seed=1)
    after = learner.embeddings(items)
    np.testing.assert_array_equal(before.items, after.items)
    np.testing.assert_array_equal(before.words, after.words)


def test_places_do_not_depend_on_the_company(corpus, learner):
    items = corpus.take(np.arange(80, 100)).unlabelled()
    together, alone = learner.embeddings(items), learner.embeddings(items.take(np.array([7])))
    np.testing.assert_array_equal(alone.items[0], together.items[7])
    start = int(items.words[:7].sum())
    np.testing.assert_array_equal(alone.words, together.words[start : start + int(items.words[7])])


def test_units_of_a_pool_are_the_doubtful_ones_and_those_of_labelled_items_are_all(corpus, learner):
    pool, labelled = corpus.take(np.arange(60, 100)), corpus.take(np.arange(20))
    space = UnitSpace(learner.embeddings, corpus.unlabelled())
    beliefs = learner.predict_proba(pool.unlabelled())
    for name, task in corpus.schema.items():
        doubts = UnitDoubts.of(task, beliefs[name])
        mine, known = space.units(pool, doubts), space.labelled(task, labelled, doubts)
        assert (mine.doubt > 0).all()
        assert len(mine) == len(pool)
        assert len(known.vectors) == (len(labelled) if name == "intent" else labelled.words.sum())
        np.testing.assert_allclose(np.linalg.norm(mine.vectors, axis=1), 1, atol=1e-5)
        parts = [UnitDoubts.of(task, beliefs[name].take(np.arange(at, at + 20))) for at in (0, 20)]
        joined = UnitDoubts.concatenate(parts)
        np.testing.assert_array_equal(joined.doubt, doubts.doubt)
        np.testing.assert_array_equal(joined.offsets, doubts.offsets)


def test_an_item_stands_for_its_words_where_these_have_no_place(corpus):
    learner = make_learner("aoe", corpus.schema, {"epochs": 1})
    learner.fit(corpus.take(np.arange(60)), seed=0)
    pool = corpus.take(np.arange(60, 100))
    doubts = UnitDoubts.of(corpus.schema["slots"], learner.predict_proba(pool.unlabelled())["slots"])
    units = UnitSpace(learner.embeddings, corpus.unlabelled()).units(pool, doubts)
    assert len(units.vectors) == len(pool)
    assert units.doubt.sum() == pytest.approx(doubts.doubt.sum())


def test_a_pool_that_is_read_in_parts_has_about_the_same_vectors(monkeypatch):
    corpus = assistant_corpus(300, seed=2).with_tasks(["intent", "slots"]).unlabelled()
    learner = make_learner("probe", corpus.schema)
    whole = UnitSpace(learner.embeddings, corpus)
    read = []
    monkeypatch.setattr(unit_space, "PART", 100)

    def embed(part):
        read.append(len(part))
        return learner.embeddings(part)

    parts = UnitSpace(embed, corpus)
    assert max(read) == 100
    assert parts._words.shape == whole._words.shape
    near, far = (space._items @ space._items.T for space in (whole, parts))
    assert np.corrcoef(near.ravel(), far.ravel())[0, 1] > 0.9
