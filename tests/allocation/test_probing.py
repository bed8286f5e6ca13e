"""Probes that are told what other probes believe."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.allocation.informativeness import Probing, carried, make_informer
from bursar.corpus import CorpusBuilder
from bursar.errors import AllocationError, ConfigError
from bursar.learners import make_learner
from bursar.learners.frozen import FrozenEncoder
from bursar.simulation import assistant_corpus
from tests.allocation.related import ranked, related

RELATED = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def encoder():
    return FrozenEncoder(layers=2)


@pytest.mark.parametrize("task", ["intent", "slots"])
def test_tasks_are_ranked_by_how_related_they_are(encoder, task):
    made = related(task, RELATED, items=120 if task == "slots" else 200)
    learner = make_learner("probe", made.corpus.schema, {"encoder": encoder})
    found = Probing(repetitions=4).measure(learner, made.corpus)
    assert ranked(found, made) >= 0.8
    assert found.value[5, 0] > 0.1 > found.value[1, 0]  # the same labels under other names, and labels by lot


@pytest.mark.soak
@pytest.mark.parametrize("task", ["intent", "slots"])
def test_tasks_are_ranked_by_how_related_they_are_with_its_usual_settings(task):
    ranks = []
    for seed in (31, 32, 33):
        made = related(task, RELATED, seed=seed)
        found = make_informer("probe").measure(make_learner("probe", made.corpus.schema), made.corpus, seed=seed)
        ranks.append(ranked(found, made))
    assert np.mean(ranks) >= 0.8


def test_tasks_over_words_over_items_and_of_numbers_inform_each_other(encoder):
    items = assistant_corpus(60, seed=3).with_tasks(["slots", "intent", "urgency"])
    learner = make_learner("probe", items.schema, {"encoder": encoder})
    found = Probing(repetitions=2).measure(learner, items)
    assert np.isfinite(found.value).all()
    assert len(set(found.value[~np.eye(3, dtype=bool)])) == 6


def test_images_are_probed_by_their_pixels():
    rng = np.random.default_rng(0)
    labels = {"kind": "classification", "labels": ["a", "b"]}
    builder = CorpusBuilder({"bright": labels, "again": labels, "lot": labels})
    for number in range(60):
        bright = rng.random() < 0.5
        image = (rng.integers(0, 220, (8, 8)) + 35 * bright).astype(np.uint8)
        said = {"bright": "ab"[bright], "again": "ba"[bright], "lot": "ab"[int(rng.random() < 0.5)]}
        builder.add(f"i{number:02}", image=image, labels=said)
    images = builder.build()
    found = Probing(repetitions=6).measure(make_learner("image-cnn", images.schema), images)
    at = {task: found.value[found.tasks.index(task), found.tasks.index("bright")] for task in ("again", "lot")}
    assert at["again"] > at["lot"]


def test_a_task_that_no_probe_can_learn_is_refused_with_another_way():
    items = assistant_corpus(40, seed=3)
    with pytest.raises(AllocationError, match=r"'relations' \(relations\).*'lookahead' or 'alignment'"):
        make_informer("probe").measure(make_learner("aoe", items.schema), items)


def test_a_weight_of_nothing_is_refused():
    for weight in (0, -1, float("inf")):
        with pytest.raises(ConfigError, match="weight"):
            make_informer("probe", weight=weight)


def test_what_is_said_of_words_is_carried_to_their_item_and_back():
    words, items = np.array([0, 2, 2, 5]), np.array([0, 1, 2, 3])
    said = np.arange(10.0).reshape(5, 2)
    of_items = carried(said, words, items)
    np.testing.assert_array_equal(of_items, [said[:2].mean(axis=0), [0, 0], said[2:].mean(axis=0)])
    np.testing.assert_array_equal(carried(of_items, items, words), of_items[[0, 0, 2, 2, 2]])
    assert carried(said, words, words) is said
