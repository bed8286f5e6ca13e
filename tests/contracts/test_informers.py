"""What every informer must do: those in the registry, and one that somebody wrote in ten lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bursar.allocation.informativeness import HELD_OUT, INFORMERS, Informer, make_informer
from bursar.allocation.rates import only
from bursar.errors import AllocationError, ConfigError
from bursar.learners import make_learner
from bursar.learners.frozen import FrozenEncoder
from bursar.simulation import assistant_corpus

pytestmark = pytest.mark.usefixtures("one_thread")
TASKS = ["intent", "slots", "urgency"]
QUICK = {"lookahead": {"moments": 2, "steps": 2, "batch": 4}, "alignment": {"moments": 2}}


@dataclass(frozen=True)
class Lengths(Informer):
    """As if the words of fresh items were what counts."""

    name: ClassVar[str] = "lengths"

    def gains(self, learner, items, parts, seed, progress):
        words = [items.words[parts.fresh[items.labels[t].present[parts.fresh]]].sum() for t in learner.tasks]
        progress("measuring", 1.0)
        return np.outer(words, np.ones(len(words))) + np.random.default_rng(seed).random((len(words),) * 2)


@pytest.fixture(params=[*INFORMERS, "lengths"])
def informer(request):
    if request.param == "lengths":
        return Lengths(repetitions=2)
    return make_informer(request.param, repetitions=2, **QUICK.get(request.param, {}))


@pytest.fixture(scope="module")
def items():
    return assistant_corpus(70, seed=3).with_tasks(TASKS).take(np.arange(50))


@pytest.fixture(scope="module")
def encoder():
    return FrozenEncoder(layers=1)


@pytest.fixture
def learner(informer, items, encoder):
    if informer.name == "probe":
        return make_learner("probe", items.schema, {"encoder": encoder})
    return make_learner("aoe", items.schema, {"epochs": 2})


def without(items, task, there):
    return items.with_labels({n: only(c, there) if n == task else c for n, c in items.labels.items()})


def test_it_says_what_each_task_is_worth_to_each(informer, learner, items):
    found = informer.measure(learner, items)
    assert found.tasks == tuple(TASKS)
    assert found.value.shape == found.error.shape == (3, 3)
    assert (found.value.diagonal() == 1).all()
    assert (found.error.diagonal() == 0).all()
    assert (found.error[~np.eye(3, dtype=bool)] > 0).all()


def test_it_says_how_it_was_measured(informer, learner, items):
    about = json.loads(json.dumps(informer.measure(learner, items, seed=4).about))
    assert (about["informer"], about["seed"], about["held_out"], about["items"]) == (informer.name, 4, HELD_OUT, 50)
    assert list(about["own_gains"]) == list(about["own_errors"]) == TASKS


def test_the_same_set_and_seed_give_the_same_numbers_in_any_order(informer, learner, items):
    first = informer.measure(learner, items, seed=2)
    again = informer.measure(learner, items.take(np.random.default_rng(0).permutation(len(items))), seed=2)
    np.testing.assert_array_equal(first.value, again.value)
    np.testing.assert_array_equal(first.error, again.error)
    assert not np.array_equal(informer.measure(learner, items, seed=3).value, first.value)


def test_items_may_miss_labels_for_some_tasks(informer, learner, items):
    some = without(without(items, "slots", np.arange(50) % 3 > 0), "urgency", np.arange(50) % 2 > 0)
    assert np.isfinite(informer.measure(learner, some).value).all()


def test_items_without_any_label_change_nothing(informer, learner, items):
    nobody = np.arange(50) >= 10
    some = items
    for task in TASKS:
        some = without(some, task, nobody)
    found = informer.measure(learner, some)
    np.testing.assert_array_equal(found.value, informer.measure(learner, items.take(np.arange(10, 50))).value)


def test_what_the_learner_knows_stays(informer, learner, items):
    if informer.name == "lengths":
        pytest.skip("it never looks at the learner")
    learner.fit(items)
    before = learner.predict_proba(items)["intent"].values
    informer.measure(learner, items)
    np.testing.assert_array_equal(learner.predict_proba(items)["intent"].values, before)


def test_progress_is_told_and_ends_at_1(informer, learner, items):
    told = []
    informer.measure(learner, items, progress=lambda what, done: told.append(done))
    assert told[-1] == 1.0
    assert told == sorted(told)
    assert len(told) > 2


def test_a_task_without_seed_labels_is_refused_by_name(informer, learner, items):
    with pytest.raises(AllocationError, match="'slots' has no seed labels"):
        informer.measure(learner, without(items, "slots", np.zeros(50, dtype=bool)))
    with pytest.raises(AllocationError, match="'urgency' has no seed labels"):
        informer.measure(learner, items.with_tasks(["intent", "slots"]))


def test_too_few_labels_to_hold_any_out_are_refused_with_how_many_it_takes(informer, learner, items):
    with pytest.raises(AllocationError, match=r"'slots' has 4 seed labels: too few.*at least 13"):
        informer.measure(learner, without(items, "slots", np.arange(50) < 4))
    enough = without(items, "slots", np.arange(50) < 10)
    assert np.isfinite(informer.measure(learner, enough).value).all()


def test_settings_that_cannot_be_are_refused(informer):
    with pytest.raises(ConfigError, match="repetitions = 1"):
        type(informer)(repetitions=1)
    if informer.name in INFORMERS:
        with pytest.raises(ConfigError, match=f"informer '{informer.name}'.*'colour'"):
            make_informer(informer.name, colour="red")
