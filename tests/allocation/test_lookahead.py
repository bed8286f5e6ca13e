"""Look-aheads: that they rank tasks by how related they are, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.allocation.informativeness import Parts, make_informer
from bursar.allocation.lookahead import LookAhead
from bursar.corpus import CorpusBuilder
from bursar.errors import AllocationError, ConfigError, LearnerError
from bursar.learners import make_learner
from bursar.simulation import assistant_corpus
from tests.allocation.related import ranked, ranked_pairs, related

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**more):
    return LookAhead(**({"repetitions": 2, "moments": 2, "steps": 2, "batch": 4} | more))


@pytest.fixture(scope="module")
def items():
    return assistant_corpus(60, seed=3).with_tasks(["intent", "slots"])


def test_a_task_that_says_the_same_is_worth_more_than_one_that_says_nothing():
    made = related("slots", (0.0, 1.0), items=100)
    learner = make_learner("cnn", made.corpus.schema, {"epochs": 40})
    found = LookAhead(repetitions=3, moments=2).measure(learner, made.corpus)
    nothing, same = found.value[1:, 0]
    assert same > 0.3 > nothing
    assert ranked(found, made) == pytest.approx(1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tasks_are_ranked_by_how_related_they_are(seed):
    """At the settings of the test above, which were there before; no seed was left out."""
    made = related("slots", (0.0, 0.25, 0.5, 0.75, 1.0), items=100, seed=seed)
    learner = make_learner("aoe", made.corpus.schema, {"epochs": 40})
    found = LookAhead(repetitions=3, moments=2).measure(learner, made.corpus, seed=seed)
    assert ranked(found, made) >= 0.8
    assert ranked_pairs(found, made) >= 0.8


@pytest.mark.soak
@pytest.mark.parametrize(("network", "task", "seeds"), [("aoe", "intent", range(10)), ("bilstm", "slots", (31, 32))])
def test_tasks_are_ranked_by_how_related_they_are_with_its_usual_settings(network, task, seeds):
    ranks = []
    for seed in seeds:
        made = related(task, (0.0, 0.25, 0.5, 0.75, 1.0), seed=seed)
        learner = make_learner(network, made.corpus.schema)
        ranks.append(ranked(make_informer("lookahead").measure(learner, made.corpus, seed=seed), made))
    assert np.mean(ranks) >= 0.8


def test_the_training_goes_on_as_if_nothing_had_been_tried(items):
    parts = Parts(np.arange(24), np.arange(24, 42), np.arange(42, 60))
    places = []
    for looks in (True, False):
        learner = make_learner("aoe", items.schema, {"epochs": 3})
        rehearsal = learner.rehearse(items, trained=parts.trained, known=np.arange(42))
        rehearsal.advance(2)
        if looks:
            quick().gains_at(rehearsal, ["intent", "slots"], parts, np.random.default_rng(0))
        rehearsal.advance(2)
        places.append(rehearsal.snapshot())
    assert all(a.equal(b) for a, b in zip(places[0].parameters, places[1].parameters, strict=True))
    assert places[0].random.equal(places[1].random)


def test_a_gain_is_how_much_less_loss_a_step_with_fresh_labels_leaves(items):
    alone = items.with_tasks(["intent"])
    parts = Parts(np.arange(24), np.arange(24, 42), np.arange(42, 60))
    learner = make_learner("aoe", alone.schema, {"epochs": 3})
    rehearsal = learner.rehearse(alone, trained=parts.trained, known=np.arange(42))
    rehearsal.advance(2)
    look = quick(steps=1, batch=18)
    [[gain]] = look.gains_at(rehearsal, ["intent"], parts, np.random.default_rng(0))
    place = rehearsal.snapshot()
    order = np.random.default_rng(0)
    trained, fresh = order.permutation(parts.trained)[:18], order.permutation(parts.fresh)
    left = []
    for more in ([], [(fresh, "intent")]):
        rehearsal.rewind(place)
        rehearsal.step([(trained, "intent"), *more])
        left.append(rehearsal.loss(parts.held, "intent"))
    assert gain == pytest.approx(left[0] - left[1])


def test_gains_may_be_those_of_the_score(items):
    learner = make_learner("aoe", items.schema, {"epochs": 3})
    found = quick(gain="score", steps=6).measure(learner, items)
    assert found.about["gain"] == "score"
    held = 18  # items; gains are means over two moments of shares of them
    assert found.about["own_gains"]["intent"] * held * 4 == pytest.approx(
        round(found.about["own_gains"]["intent"] * held * 4)
    )


def test_every_kind_of_task_can_be_looked_ahead_from():
    items = assistant_corpus(40, seed=3)
    learner = make_learner("aoe", items.schema, {"epochs": 2})
    found = quick(moments=1).measure(learner, items)
    assert found.tasks == tuple(items.schema)
    assert np.isfinite(found.value).all()


def test_images_can_be_looked_ahead_from():
    rng = np.random.default_rng(0)
    tasks = {name: {"kind": "classification", "labels": ["a", "b"]} for name in ("bright", "odd")}
    builder = CorpusBuilder(tasks)
    for number in range(30):
        image = rng.integers(0, 100, (16, 16), dtype=np.uint8) + np.uint8(100 * (number % 2))
        builder.add(f"i{number:02}", image=image, labels={"bright": "ab"[number % 2], "odd": "ab"[number % 3 % 2]})
    images = builder.build()
    found = quick().measure(make_learner("image-cnn", images.schema, {"epochs": 3}), images)
    assert np.isfinite(found.value).all()


def test_a_learner_without_training_steps_is_refused_with_another_way(items):
    for learner in ("probe", "scikit"):
        for informer in ("lookahead", "alignment"):
            with pytest.raises(AllocationError, match=f"{learner}' has no training steps.*informer 'probe'"):
                make_informer(informer).measure(make_learner(learner, items.schema), items)


def test_tasks_that_share_nothing_are_refused(items):
    with pytest.raises(LearnerError, match="share no layers"):
        quick().measure(make_learner("aoe", items.schema, {"sharing": "single"}), items)


@pytest.mark.parametrize(
    "wrong", [{"moments": 0}, {"steps": 1.5}, {"batch": True}, {"gain": "luck"}, {"until": 0}, {"until": 1.1}]
)
def test_settings_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ConfigError, match=f"'lookahead': {next(iter(wrong))}"):
        make_informer("lookahead", **wrong)
