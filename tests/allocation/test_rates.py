"""Curves, and the rates that they and laws tell of."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.allocation.estimates import LEVEL, fit_rate, returns, tells_nothing
from bursar.allocation.rates import (
    LabelCurve,
    LabelGrowth,
    LearningCurve,
    PseudoLabels,
    RatingSettings,
    geometric_sizes,
    guessed,
    make_rater,
    only,
    scored,
)
from bursar.errors import AllocationError, BursarError, ConfigError, DataError
from bursar.learners import make_learner
from bursar.learners.frozen import FrozenEncoder
from bursar.simulation import assistant_corpus
from tests.allocation.laws import law_of
from tests.same import differences

TASKS = ["intent", "slots", "urgency"]


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(160, seed=3).with_tasks(TASKS)


@pytest.fixture(scope="module")
def items(corpus):
    return corpus.take(np.arange(60))


@pytest.fixture(scope="module")
def encoder():
    return FrozenEncoder(layers=0)


@pytest.fixture
def learner(corpus, encoder):
    return make_learner("probe", corpus.schema, {"encoder": encoder})


class Scripted:
    """A learner that scores what the numbers of labels that it is given say."""

    def __init__(self, tasks, score):
        self.tasks, self.score, self.given = dict(tasks), score, []

    def fit(self, annotated, *, seed=0, progress=None):
        self.given.append({name: int(annotated.labels[name].present.sum()) for name in self.tasks})

    def evaluate(self, items):
        return {name: {task.metric: self.score(name, self.given[-1][name])} for name, task in self.tasks.items()}


# -- curves ---
def test_a_rate_is_that_of_the_shape_whatever_the_level_and_scale():
    sizes = np.array([0, 50, 100, 200, 400])
    shape = 1 - 0.4 ** (sizes / 100)
    for low, rise in ((0.0, 1.0), (0.5, 0.1), (0.8, 0.002)):
        curve = LearningCurve(sizes, np.array([low + rise * shape, low - 0.1 + rise * shape]))
        assert curve.error is None
        assert curve.rate(100, "test").beta == pytest.approx(0.4, abs=1e-3)


def test_the_error_of_a_curve_is_that_of_its_means():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, (500, 4, 5))
    levels = rng.normal(0, 0.3, (500, 4, 1))
    found = np.mean([LearningCurve(np.arange(5), one).error for one in noise + levels])
    assert found == pytest.approx(0.02 / np.sqrt(4), rel=0.03)


def test_noise_makes_the_interval_wider_and_flat_or_falling_curves_tell_nothing():
    sizes, rng = np.array([0, 50, 100, 200, 400]), np.random.default_rng(2)
    shape = 0.5 + 0.3 * (1 - 0.4 ** (sizes / 100))
    widths = []
    for spread in (0.002, 0.02):
        rate = LearningCurve(sizes, shape + rng.normal(0, spread, (4, 5))).rate(100, "test")
        widths.append(rate.high - rate.low)
    assert widths[0] < widths[1]
    for slope in (0, -0.0005):
        assert tells_nothing(LearningCurve(sizes, 0.6 + slope * sizes + rng.normal(0, 0.01, (3, 5))).rate(100, "test"))
    assert tells_nothing(LearningCurve(sizes, np.full((3, 5), 0.7)).rate(100, "test"))
    assert tells_nothing(LearningCurve(sizes[:2], np.array([[0.1, 0.9]])).rate(100, "test"))


@pytest.mark.parametrize(
    ("repetitions", "sizes"),
    [(2, [60, 120, 240]), (3, [60, 120, 240]), (2, [0, 35, 70, 140, 280, 560]), (5, [0, 35, 70, 140, 280, 560])],
)
def test_intervals_of_few_repetitions_hold_the_rate_as_often_as_they_say(repetitions, sizes):
    """Taking the error of two repetitions for known, three sizes' intervals held it in seven of ten cases, not nine."""
    at, held = np.array(sizes), []
    rng = np.random.default_rng([repetitions, len(at)])
    for beta in np.repeat([0.3, 0.6, 0.9], 70):
        shape = returns(at - at[0], beta, 100)
        noise = rng.normal(0, 0.02, (repetitions, len(at))) + rng.normal(0, 0.1, (repetitions, 1))
        found = LearningCurve(at, 0.5 + 0.3 * shape / shape[-1] + noise).rate(100, "test")
        held.append(found.low <= beta <= found.high)
    doubt = np.sqrt(LEVEL * (1 - LEVEL) / len(held))
    assert LEVEL - 3 * doubt < np.mean(held) < LEVEL + 0.9 * (1 - LEVEL)  # rather more often than less


def test_sizes_double_up_to_the_most():
    assert geometric_sizes(560, 5).tolist() == [35, 70, 140, 280, 560]
    assert geometric_sizes(5, 5, least=2).tolist() == [2, 5]
    assert geometric_sizes(100, 5, 4 ** (1 / 4)).tolist() == [25, 35, 50, 70, 100]


# -- growing labels ---
def test_only_the_growing_task_grows(items):
    tasks = {name: items.schema[name] for name in ("intent", "slots")}
    student = Scripted(tasks, lambda name, labels: labels / 100)
    there = {"intent": np.arange(60) < 20, "slots": np.arange(60) < 30}
    order = {"intent": np.arange(20, 60), "slots": np.arange(59, 29, -1)}
    sizes = {"intent": np.array([0, 10, 40]), "slots": np.array([5, 30])}
    nothing = np.zeros(60, dtype=bool)
    growth = LabelGrowth(items, there, {"intent": there["intent"], "slots": nothing}, order, sizes)
    found = scored(student, growth, items, 0, lambda what, done: None)
    assert student.given == [
        {"intent": 20, "slots": 30},
        {"intent": 30, "slots": 30},
        {"intent": 60, "slots": 30},
        {"intent": 20, "slots": 5},
        {"intent": 20, "slots": 30},
    ]
    assert found["intent"].tolist() == [0.2, 0.3, 0.6]
    assert found["slots"].tolist() == [0.05, 0.3]


def test_labels_that_are_taken_away_leave_no_rows(items):
    some = only(items.labels["slots"], np.arange(60) % 2 == 0)
    assert some.present.tolist() == [at % 2 == 0 for at in range(60)]
    assert (some.rows.lengths[1::2] == 0).all()
    assert some.rows[2].tolist() == items.labels["slots"].rows[2].tolist()


def test_tasks_of_a_probe_grow_side_by_side_and_score_as_if_alone(items, learner):
    trained, held = items.take(np.arange(40)), items.take(np.arange(40, 60))
    growth = LabelCurve(points=3).growth(learner, trained, None, 0)
    together = scored(learner, growth, held, 0, lambda what, done: None)
    for name in TASKS:
        for at in range(3):
            learner.fit(growth.labels({name: at}))
            assert learner.evaluate(held)[name][learner.tasks[name].metric] == together[name][at]


# -- labels that there are ---
def test_the_label_curve_is_stretched_to_where_labels_are_still_to_be_bought(items):
    """Scores that follow a power law of the labels: the rate is that from all labels to four times as many."""
    tasks = {"intent": items.schema["intent"]}
    learner = Scripted(tasks, lambda name, labels: 0.9 - 0.8 * labels**-0.4)
    found = LabelCurve(repetitions=2).measure(learner, items, RatingSettings())["intent"]
    sizes = np.array([60, 85, 120, 170, 240])
    ahead = fit_rate(sizes, 0.9 - 0.8 * sizes**-0.4, block=60)
    assert found.block == 60
    assert found.beta == pytest.approx(ahead.beta, abs=0.02)
    assert 0.3 < found.beta < 0.7


def test_curves_have_real_sizes_and_scores(items, learner):
    curves = LabelCurve(repetitions=2).curves(learner, items, RatingSettings())
    assert list(curves) == TASKS
    for curve in curves.values():
        assert curve.sizes.tolist() == [10, 14, 21, 29, 42]
        assert curve.scores.shape == (2, 5)
    assert curves["intent"].mean[-1] > curves["intent"].mean[0]


# -- guesses ---
def test_guesses_are_what_the_learner_predicts_and_nothing_is_known_of_gold(items, learner):
    learner.fit(items.take(np.arange(30)))
    rest = items.take(np.arange(30, 60))
    found = guessed(learner, rest)
    assert found.labels["intent"].present.all()
    assert found.labels["slots"].rows.equals(learner.predict(rest)["slots"])
    assert differences(guessed(learner, rest.unlabelled()), found) == []


def test_guesses_are_added_to_the_seed_or_to_nothing(corpus, items, learner):
    pool = corpus.take(np.arange(60, 160)).unlabelled()
    trained = items.take(np.arange(20))
    for start, sizes in (("seed", [0, 20, 40, 80]), ("nothing", [20, 40, 80])):
        growth = PseudoLabels(points=3, start=start).growth(learner, trained, pool, 0)
        assert growth.sizes["intent"].tolist() == sizes
        least = growth.labels({"intent": 0})
        assert int(least.labels["intent"].present.sum()) == 20
        assert int(least.labels["slots"].present.sum()) == 20
        own = set(trained.ids.tolist()) & {id for at, id in enumerate(least.ids) if least.labels["intent"].present[at]}
        assert len(own) == (20 if start == "seed" else 0)


def test_no_seed_item_is_guessed_not_even_a_held_out_one(corpus, items, learner):
    seen = []

    class Watched(PseudoLabels):
        def growth(self, learner, trained, pool, seed):
            seen.append(set(pool.ids.tolist()))
            return super().growth(learner, trained, pool, seed)

    Watched(points=3, repetitions=1).measure(learner, items, RatingSettings(pool=corpus))
    assert seen == [set(corpus.ids.tolist()) - set(items.ids.tolist())]


def test_guessing_needs_a_pool(items, learner):
    for pool in (None, items):  # all of it is labelled already
        with pytest.raises(AllocationError, match=r"no unlabelled items.*'ledger'"):
            make_rater("pseudo-labels").measure(learner, items, RatingSettings(pool=pool))


def test_a_network_may_be_rated_by_a_probe(items, corpus, one_thread):
    learner = make_learner("aoe", items.with_tasks(["intent"]).schema, {"epochs": 2})
    rater = make_rater("pseudo-labels", student="probe", points=3, repetitions=1)
    curve = rater.curves(learner, items, RatingSettings(pool=corpus))["intent"]
    assert curve.scores.shape == (1, 4)
    assert learner.models  # it guessed


# -- laws ---
def test_a_law_is_asked_from_as_many_labels_as_there_are(items):
    law = law_of("1 - 0.9 * n**(-0.5)", n=(10, 2000))
    found = make_rater("law", law=law).measure(None, items, RatingSettings(block=30))
    added = 30 * np.arange(7)
    assert found["intent"].beta == pytest.approx(fit_rate(added, 1 - 0.9 * (60 + added) ** -0.5, block=30).beta)
    words = items.words.mean()
    tokens = 1 - 0.9 * (words * (60 + added)) ** -0.5
    assert found["slots"].beta == pytest.approx(fit_rate(added, tokens, block=30).beta)


def test_a_law_that_was_wrong_by_more_than_it_says_to_come_tells_nothing(items):
    found = make_rater("law", law=law_of("0.7 + 0.00001 * n", miss=0.2, n=(10, 2000))).measure(None, items)
    assert all(map(tells_nothing, found.values()))


def test_other_variables_of_a_law_are_given_or_in_the_middle(items):
    law = law_of("0.1 * tasks * log(n)", n=(10, 2000), tasks=(1, 3))
    usual = make_rater("law", law=law).measure(None, items)
    assert usual == make_rater("law", law=law, values={"tasks": 2}).measure(None, items)


def test_each_task_may_have_a_law_from_a_file(items, tmp_path):
    laws = {name: law_of(f"0.5 + 0.0{at} * log(n)", n=(10, 2000)) for at, name in enumerate(TASKS, start=1)}
    for name, law in laws.items():
        law.save(tmp_path / f"{name}.json")
    files = {name: tmp_path / f"{name}.json" for name in TASKS}
    assert make_rater("law", law=files).measure(None, items) == make_rater("law", law=laws).measure(None, items)


def test_a_law_that_is_not_there_is_refused(items, tmp_path):
    with pytest.raises(DataError, match=r"nothing\.json: there is no such file"):
        make_rater("law", law=tmp_path / "nothing.json").measure(None, items)
    with pytest.raises(ConfigError, match="needs a law"):
        make_rater("law")
    with pytest.raises(AllocationError, match="no law of task 'urgency'"):
        make_rater("law", law={name: law_of("0.1 * log(n)", n=(1, 9)) for name in TASKS[:2]}).measure(None, items)


def test_a_law_without_n_is_refused(items):
    with pytest.raises(AllocationError, match="has no n"):
        make_rater("law", law=law_of("0.5 * ami", ami=(0, 1))).measure(None, items)


# -- given ---
def test_rates_are_as_given_and_none_may_be_missing(items):
    found = make_rater("given", betas={"intent": 1, "slots": 0.5, "urgency": (0.6, 0.5, 0.9)}).measure(None, items)
    assert [(rate.beta, rate.low, rate.high) for rate in found.values()] == [(1, 1, 1), (0.5,) * 3, (0.6, 0.5, 0.9)]
    with pytest.raises(AllocationError, match="no reduction rate is given for task 'slots'"):
        make_rater("given", betas={"intent": 1}).measure(None, items)


@pytest.mark.parametrize(
    "beta", [1.5, 0.0, 1e-7, -0.2, float("nan"), "a", [0.5, 0.4], [0.5, 0.6, 0.7], [0.5, 0.4, None], None]
)
def test_a_given_rate_that_is_none_is_refused_at_once(beta):
    with pytest.raises(ConfigError, match=r"betas.intent = .*give a rate from 1e-06 to 1"):
        make_rater("given", betas={"intent": beta})


def test_given_rates_that_are_no_table_are_refused():
    with pytest.raises(ConfigError, match="betas = 4"):
        make_rater("given", betas=4)


def test_what_a_rater_has_to_know_of_its_tasks_is_asked_for_before_anything_is_measured(tmp_path):
    make_rater("given", betas={"intent": 0.5}).check_tasks(["intent"])
    with pytest.raises(AllocationError, match="no reduction rate is given for task 'slots'"):
        make_rater("given", betas={"intent": 0.5}).check_tasks(["intent", "slots"])
    with pytest.raises(BursarError, match=r"law\.json"):
        make_rater("law", law=tmp_path / "law.json").check_tasks(["intent"])
