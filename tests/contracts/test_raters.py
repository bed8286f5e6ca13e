"""What every rater must do: those in the registry, and one that somebody wrote in ten lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bursar.allocation.estimates import ReductionRate
from bursar.allocation.informativeness import seed_items
from bursar.allocation.rates import DEFAULTS, RATERS, Rater, RatingSettings, make_rater, only
from bursar.errors import AllocationError, ConfigError
from bursar.learners import make_learner
from bursar.learners.frozen import FrozenEncoder
from bursar.simulation import assistant_corpus
from tests.allocation.laws import law_of

TASKS = ["intent", "slots", "urgency"]
TRAINING = ("pseudo-labels", "ledger")
SETTINGS = {
    "pseudo-labels": [{"points": 3, "repetitions": 2}, {"points": 3, "repetitions": 1, "start": "nothing"}],
    "ledger": [{"points": 3, "repetitions": 2}],
    "law": [{"law": law_of("0.4 + 0.08 * log(n)", n=(10, 1000))}],
    "given": [{"betas": {"intent": 0.5, "slots": (0.6, 0.5, 0.8), "urgency": 1}}],
}


@dataclass(frozen=True)
class Halving(Rater):
    """Every block is worth half of that before."""

    name: ClassVar[str] = "halving"

    def measure(self, learner, annotated, how=DEFAULTS):
        tasks = annotated.schema if learner is None else learner.tasks
        items = seed_items(tasks, annotated)
        how.progress("measuring", 1.0)
        return {
            name: ReductionRate(0.5, 0.4, 0.6, how.block or int(items.labels[name].present.sum())) for name in tasks
        }


EVERY = [(name, settings) for name in RATERS for settings in SETTINGS.get(name, [{}])]


@pytest.fixture(params=[*EVERY, ("halving", {})], ids=str)
def rater(request):
    name, settings = request.param
    return Halving() if name == "halving" else make_rater(name, **settings)


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(160, seed=3).with_tasks(TASKS)


@pytest.fixture(scope="module")
def items(corpus):
    return corpus.take(np.arange(40))


@pytest.fixture(scope="module")
def pool(corpus):
    return corpus.take(np.arange(100)).unlabelled()  # the seed items among them


@pytest.fixture(scope="module")
def encoder():
    return FrozenEncoder(layers=0)


@pytest.fixture
def learner(items, encoder):
    return make_learner("probe", items.schema, {"encoder": encoder})


def without(items, task, there):
    return items.with_labels({n: only(c, there) if n == task else c for n, c in items.labels.items()})


def test_it_has_a_rate_for_every_task_and_says_where_from(rater, learner, items, pool):
    found = rater.measure(learner, items, RatingSettings(pool=pool))
    assert list(found) == TASKS
    assert {rate.source for rate in found.values()} == {rater.name if rater.name in RATERS else "given"}


def test_a_block_is_as_many_labels_as_a_task_has_unless_it_is_said(rater, learner, items, pool):
    fewer = without(items, "slots", np.arange(40) < 25)
    assert [rate.block for rate in rater.measure(learner, fewer, RatingSettings(pool=pool)).values()] == [40, 25, 40]
    assert {rate.block for rate in rater.measure(learner, items, RatingSettings(pool=pool, block=7)).values()} == {7}


def test_the_same_set_and_seed_give_the_same_rates_in_any_order(rater, learner, items, pool):
    first = rater.measure(learner, items, RatingSettings(pool=pool, seed=2))
    order = np.random.default_rng(0)
    shuffled = items.take(order.permutation(len(items))), pool.take(order.permutation(len(pool)))
    assert rater.measure(learner, shuffled[0], RatingSettings(pool=shuffled[1], seed=2)) == first


def test_progress_is_told_and_ends_at_1(rater, learner, items, pool):
    told = []
    rater.measure(learner, items, RatingSettings(pool=pool, progress=lambda what, done: told.append(done)))
    assert told[-1] == 1.0
    assert told == sorted(told)


def test_a_task_without_seed_labels_is_refused_by_name(rater, learner, items, pool):
    with pytest.raises(AllocationError, match="'slots' has no seed labels"):
        rater.measure(learner, without(items, "slots", np.zeros(40, dtype=bool)), RatingSettings(pool=pool))


def test_settings_that_do_not_exist_are_refused(rater):
    if rater.name in RATERS:
        with pytest.raises(ConfigError, match=f"rater '{rater.name}'.*'colour'"):
            make_rater(rater.name, colour="red")


@pytest.mark.parametrize("name", TRAINING)
def test_those_that_train_refuse_what_they_cannot_train_on(name, learner, items, pool):
    rater = make_rater(name)
    with pytest.raises(AllocationError, match="needs a learner"):
        rater.measure(None, items, RatingSettings(pool=pool))
    with pytest.raises(AllocationError, match="'slots' has 3 seed labels: too few to hold any out"):
        rater.measure(learner, without(items, "slots", np.arange(40) < 3), RatingSettings(pool=pool))
    for wrong in ({"repetitions": 0}, {"points": 2}, {"student": "nobody"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            make_rater(name, **wrong)


@pytest.mark.parametrize("name", TRAINING)
def test_labels_that_say_nothing_give_a_wide_interval(name, learner, items, pool):
    """Everybody has one label of an intent drawn by lot: no curve rises for a reason."""
    rng, column = np.random.default_rng(1), items.labels["intent"]
    lot = rng.permutation(len(items))
    drawn = items.with_labels({**items.labels, "intent": type(column)(column.present, column.rows.take(lot))})
    rate = make_rater(name, points=3, repetitions=2).measure(learner, drawn, RatingSettings(pool=pool))["intent"]
    assert rate.high - rate.low > 0.5
