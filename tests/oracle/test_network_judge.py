"""Judges that train networks: the set decides, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.learners import lockstep
from bursar.learners.lockstep import Settings
from bursar.learners.lockstep.texts import word_vectors
from bursar.oracle import LabellingProblem, SearchPlan, search
from bursar.oracle.judge import JUDGES, make_judge
from bursar.oracle.network import NetworkJudge, NetworkOptions
from bursar.simulation import assistant_corpus
from tests.oracle import small

SIZES = {"pool": 40, "warm": 12, "aside": 16, "validation": 40, "test": 40}
FEW = Settings(epochs=6, patience=3, lanes=3)
SMALL = NetworkOptions(16, settings=FEW)
TEXTS = [("aoe", "intent"), ("cnn", "intent"), ("lstm", "intent"), ("tagger", "slots")]


def problem_of(task, seed=0):
    corpus = assistant_corpus(170, seed=5).with_tasks([task])
    return LabellingProblem.draw(corpus, SIZES, shape=(3, 4), metric="weighted_f1", seed=seed)


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    builder = CorpusBuilder({"label": {"kind": "classification", "labels": ["left", "right"]}})
    for number in range(150):
        image = rng.integers(0, 60, (28, 28)).astype(np.uint8)
        side = number % 2
        image[8:20, 14 * side : 14 * side + 14] += 150
        builder.add(f"i{number:03}", image=image, labels={"label": ["left", "right"][side]})
    return LabellingProblem.draw(builder.build(), SIZES, shape=(3, 4), metric="accuracy", seed=0)


@pytest.fixture(scope="module", params=[*TEXTS, ("cnn", "label")], ids=lambda case: f"{case[0]}-{case[1]}")
def judge(request, pictures):
    architecture, task = request.param
    problem = pictures if task == "label" else problem_of(task)
    return NetworkJudge(problem, architecture, options=SMALL)


def counted_trainings(monkeypatch):
    """The number of models of each training from now on."""
    trained, real = [], lockstep.train
    monkeypatch.setattr(
        lockstep, "train", lambda net, jobs, *a, **k: trained.append(len(jobs)) or real(net, jobs, *a, **k)
    )
    return trained


def some_sets(count=6, seed=0):
    rng = np.random.default_rng(seed)
    return [np.sort(rng.permutation(40)[: 4 * (1 + at % 3)]) for at in range(count)]


def test_what_it_says_of_a_set_does_not_depend_on_the_company(judge):
    sets = some_sets()
    together = judge.scores(sets)
    assert np.array_equal(together[::-1], judge.scores(sets[::-1]))
    assert judge.scores(sets[3:4])[0] == together[3]
    assert judge.scores([]).shape == (0,)


def test_it_learns_what_can_be_seen(pictures):
    judge = NetworkJudge(pictures, "cnn", options=NetworkOptions(settings=Settings(epochs=40, patience=20)))
    assert judge.scores([np.arange(20)], "test")[0] > 0.9


def test_a_search_is_the_same_however_many_lanes_there_are_and_however_far_it_looks_ahead():
    problem = problem_of("intent")
    found = [
        search(
            NetworkJudge(problem, "aoe", options=replace(SMALL, settings=replace(FEW, lanes=lanes))),
            (3, 4),
            SearchPlan(15, 5, cooling=20.0, ahead=ahead),
            seed=1,
        ).as_json()
        for lanes, ahead in ((1, 1), (4, 64))
    ]
    assert found[0] == found[1]


def test_where_items_stand_in_the_corpus_changes_nothing():
    """Trainings walk through sets by splits and ids (errata 25)."""
    problem = small.texts()
    shuffled = problem.corpus.take(np.random.default_rng(0).permutation(len(problem.corpus)))
    other = LabellingProblem.draw(shuffled, small.SIZES, shape=(3, 5), metric="accuracy", seed=0)
    ids = [[some.corpus.ids[at] for at in some.pool.tolist()] for some in (problem, other)]
    assert ids[0] == ids[1]
    sets = [np.arange(0, 30, 3), np.arange(20)]
    scores = [NetworkJudge(some, "aoe", options=NetworkOptions(8)).scores(sets) for some in (problem, other)]
    assert np.array_equal(*scores)


def test_seeds_are_those_of_trainings():
    problem, items = problem_of("intent"), np.arange(8)
    judges = [NetworkJudge(problem, "aoe", seed=seed, options=SMALL) for seed in (0, 0, 1)]
    found = [judge.logits("intent", judge.trained("intent", [items])[0], "pool") for judge in judges]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_words_begin_where_the_encoder_has_them():
    vectors = word_vectors(["seven", "eight", "jazz", "blues", "alarm"], 4)
    assert vectors.shape == (6, 4)
    assert (vectors[0] == 0).all()
    assert np.square(vectors[1:]).mean() == pytest.approx(1)
    one, other = np.linalg.norm(vectors[1] - vectors[2]), np.linalg.norm(vectors[1] - vectors[3])
    assert one < other


def test_a_model_is_trained_once_for_all_parts(monkeypatch):
    judge = NetworkJudge(problem_of("intent"), "aoe", options=SMALL)
    trained = counted_trainings(monkeypatch)
    judge.scores_on(some_sets(3), ["validation", "test"])
    assert trained == [3]


def test_an_item_without_words_is_named():
    corpus = assistant_corpus(170, seed=5).with_tasks(["intent"])
    empty = CorpusBuilder({"intent": corpus.schema["intent"]})
    for at in range(len(corpus)):
        text = "" if at % 20 == 0 else corpus[at].text
        empty.add(f"i{at:03}", text=text, labels=corpus[at].labels)
    problem = LabellingProblem.draw(empty.build(), SIZES, shape=(3, 4), metric="accuracy", seed=0)
    with pytest.raises(ConfigError, match="has no words"):
        NetworkJudge(problem, "aoe")


def test_a_network_that_does_not_fit_the_task_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"no network 'lstm' for task 'slots'.*tagger"):
        NetworkJudge(problem_of("slots"), "lstm")
    with pytest.raises(ConfigError, match="there is no judge 'oracle'"):
        make_judge("oracle", problem_of("intent"))
    assert "probe" in JUDGES
