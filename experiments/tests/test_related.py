"""Synthetic tasks: how related they come out, that the measure is scikit-learn's, and that they are a corpus."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score

from bursar.corpus import CorpusBuilder, read, write
from bursar.errors import ConfigError, SchemaError
from bursar.simulation import assistant_corpus
from experiments.related import (
    adjusted_mutual_information,
    alpha_for,
    draw_labels,
    expected_ami,
    label_matrix,
    related_corpus,
    unit_codes,
)
from tests.same import differences

CONLL = np.array([0.83, 0.05, 0.05, 0.04, 0.03])  # shares like those of the IO labels of news text


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(600)


# -- labels ---
@given(st.floats(0, 1), st.integers(1, 7), st.integers(0, 4))
def test_every_row_of_the_label_matrix_is_a_distribution_with_alpha_on_the_diagonal(alpha, real, more):
    matrix = label_matrix(alpha, real, real + more)
    assert matrix.shape == (real, real + more)
    assert matrix.sum(axis=1) == pytest.approx(1)
    if real + more > 1:
        assert np.diag(matrix) == pytest.approx(alpha)


def test_fewer_synthetic_labels_than_real_ones_are_refused(corpus):
    with pytest.raises(ConfigError, match="2 synthetic labels for 3 real ones"):
        label_matrix(0.9, 3, 2)
    with pytest.raises(ConfigError, match="use at least"):
        related_corpus(corpus, "intent", tasks=2, alpha=0.9, labels=2)


def test_labels_are_drawn_by_the_row_of_the_real_one():
    codes = np.repeat(np.arange(3), 40_000)
    matrix = np.array([[0.7, 0.1, 0.2, 0.0], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    drawn = draw_labels(codes, matrix, np.random.default_rng(0))
    found = np.array([np.bincount(drawn[codes == row], minlength=4) for row in range(3)]) / 40_000
    assert found == pytest.approx(matrix, abs=0.012)  # five standard errors of a share of 40,000
    assert found[matrix == 0].max() == 0


def test_a_hundred_thousand_labels_and_their_information_are_ten_times_as_fast_as_one_by_one():
    rng = np.random.default_rng(0)
    codes, matrix = rng.choice(5, 100_000, p=CONLL), label_matrix(0.9, 5, 5)

    def seconds(function, times):
        start = time.perf_counter()
        for _ in range(times):
            function()
        return (time.perf_counter() - start) / times

    whole = seconds(lambda: adjusted_mutual_information(codes, draw_labels(codes, matrix, rng)), 3)
    plain = seconds(lambda: [rng.choice(5, p=matrix[code]) for code in codes[:2000]], 1) * 50
    assert plain > 10 * whole


# -- how related ---
@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=60))
def test_the_adjusted_mutual_information_is_that_of_scikit_learn(pairs):
    real, synthetic = np.array(pairs).T
    theirs = adjusted_mutual_info_score(real, synthetic, average_method="max")
    assert adjusted_mutual_information(real, synthetic) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9, 0.99])
def test_so_it_is_on_many_units(alpha):
    rng = np.random.default_rng(1)
    codes = rng.choice(5, 30_000, p=CONLL)
    drawn = draw_labels(codes, label_matrix(alpha, 5, 5), rng)
    theirs = adjusted_mutual_info_score(codes, drawn, average_method="max")
    assert adjusted_mutual_information(codes, drawn) == pytest.approx(theirs, abs=1e-9)


def test_alpha_1_is_the_same_task_and_alpha_1_over_c_an_unrelated_one():
    codes = np.random.default_rng(0).choice(5, 20_000, p=CONLL)
    same = draw_labels(codes, label_matrix(1.0, 5, 5), np.random.default_rng(1))
    assert adjusted_mutual_information(codes, same) == pytest.approx(1)
    apart = draw_labels(codes, label_matrix(0.2, 5, 5), np.random.default_rng(1))
    assert adjusted_mutual_information(codes, apart) == pytest.approx(0, abs=0.002)


@given(st.floats(0.001, 0.999), st.lists(st.floats(0.02, 1), min_size=2, max_size=8), st.integers(0, 3))
def test_alpha_for_an_ami_has_that_ami(ami, weights, more):
    shares = np.array(weights) / sum(weights)
    alpha = alpha_for(ami, shares, len(shares) + more)
    assert expected_ami(alpha, shares, len(shares) + more) == pytest.approx(ami, abs=1e-6)


def test_the_expected_ami_grows_with_alpha():
    found = [expected_ami(alpha, CONLL, 5) for alpha in np.linspace(0.2, 1, 50)]
    assert np.all(np.diff(found) > 0)
    assert (found[0], found[-1]) == pytest.approx((0, 1), abs=1e-9)


# -- the corpus ---
def test_synthetic_tasks_come_out_as_related_as_wanted(corpus):
    found = related_corpus(corpus, "slots", tasks=4, ami=[0.2, 0.5, 0.8], seed=3)
    assert found.ami == pytest.approx((1, 0.2, 0.5, 0.8), abs=0.05)  # 3,000 words and 30 labels leave some noise
    assert found.alpha[0] == 1
    assert found.mean_ami == pytest.approx(0.5, abs=0.05)


def test_the_ami_is_of_the_labels_in_the_corpus(corpus):
    found = related_corpus(corpus, "slots", tasks=2, alpha=0.8, samples=[300, 800])
    train = found.corpus.split("train")
    labelled = train.take(np.flatnonzero(train.labels["related-1"].present))
    known = corpus.take(corpus.positions(labelled.ids.tolist()))
    real, synthetic = unit_codes(known, corpus.schema["slots"]), labelled.labels["related-1"].rows.values[:, 2]
    assert found.units == (300, 800) == (300, len(real))
    theirs = adjusted_mutual_info_score(real, synthetic, average_method="max")
    assert found.ami[1] == pytest.approx(theirs, abs=1e-9)


def test_balanced_tasks_are_labelled_on_the_same_items_and_all_else_stays(corpus):
    found = related_corpus(corpus, "slots", tasks=3, alpha=0.9, samples=700)
    columns = found.corpus.labels
    assert all(column.present.all() for column in columns.values())
    assert found.corpus.split("train").words.sum() == 700
    for split in ("dev", "test"):
        here = found.corpus.split(split)
        assert not differences(here.with_tasks(["slots"]), corpus.split(split).with_tasks(["slots"]))


def test_unbalanced_tasks_share_the_items_of_the_smaller_one(corpus):
    found = related_corpus(corpus, "intent", tasks=3, alpha=0.9, samples=[50, 200, 120])
    train = found.corpus.split("train")
    few, many, some = (train.labels[name].present for name in found.tasks)
    assert (few.sum(), many.sum(), some.sum()) == found.units == (50, 200, 120)
    assert many[some].all()
    assert some[few].all()
    assert len(train) == 200
    assert train.labels["intent"].rows.lengths[~few].sum() == 0


def test_a_classification_task_gets_classes_and_items_are_counted(corpus):
    found = related_corpus(corpus, "intent", tasks=2, alpha=1.0, samples=100)
    real, copy = (found.corpus.labels[name].rows.values[:, 0] for name in found.tasks)
    assert found.corpus.schema["related-1"].kind == "classification"
    assert np.array_equal(real, copy)
    assert found.ami[1] == pytest.approx(1)


def test_the_seed_decides_and_more_tasks_change_nothing_of_the_others(corpus):
    small, again, large, other = (
        related_corpus(corpus, "slots", tasks=tasks, alpha=0.7, samples=500, seed=seed)
        for tasks, seed in ((2, 5), (2, 5), (4, 5), (2, 6))
    )
    assert small.corpus.digest() == again.corpus.digest() != other.corpus.digest()
    assert large.ami[:2] == small.ami
    assert large.corpus.with_tasks(list(small.tasks)).digest() == small.corpus.digest()


def test_the_order_of_the_items_does_not_matter_to_which_are_taken(corpus):
    turned = corpus.take(np.arange(len(corpus))[::-1])
    found = [related_corpus(c, "slots", tasks=1, samples=300, seed=1).corpus for c in (corpus, turned)]
    assert sorted(found[0].ids) == sorted(found[1].ids)


def test_a_related_corpus_is_written_and_read_as_any_other(corpus, tmp_path):
    found = related_corpus(corpus, "slots", tasks=3, alpha=0.8, samples=[200, 400, 400]).corpus
    write(found, tmp_path / "related.jsonl", "jsonl")
    assert not differences(read(tmp_path / "related.jsonl"), found)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": "mood"}, "there is no task 'mood'"),
        ({"tasks": 0}, "count the real task as well"),
        ({"alpha": 1.2}, "alpha = 1.2"),
        ({"ami": 0.5}, "give alpha or ami"),
        ({"alpha": None}, "give alpha or ami"),
        ({"alpha": None, "ami": -0.1}, "ami = -0.1"),
        ({"alpha": [0.9]}, "1 values of alpha for 2 synthetic tasks"),
        ({"samples": [10, 20]}, "2 samples for 3 tasks"),
        ({"samples": 10**7}, "words that are labelled for 'slots'"),
        ({"split": "spring"}, "there is no split 'spring'"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_fix(corpus, wrong, said):
    settings = {"task": "slots", "tasks": 3, "alpha": 0.9, "samples": 100} | wrong
    with pytest.raises(Exception, match=said):
        related_corpus(corpus, settings.pop("task"), **settings)


def test_a_task_without_a_label_a_unit_is_refused():
    builder = CorpusBuilder({"score": {"kind": "regression", "low": 0, "high": 5}})
    builder.add("a", text="one two", labels={"score": 3})
    with pytest.raises(SchemaError, match="one of tagging or classification"):
        related_corpus(builder.build(), "score", tasks=2, alpha=0.9)
