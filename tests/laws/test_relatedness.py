"""How related tasks are: by scikit-learn's count where units are alike, by shuffled items where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.laws.relatedness import relatedness

KINDS = {
    "class": {"kind": "classification", "labels": ["a", "b", "c"]},
    "other": {"kind": "classification", "labels": ["x", "y", "z"]},
    "spans": {"kind": "tagging", "labels": ["p", "q"]},
    "tags": {"kind": "tagging", "labels": ["p", "q", "r"], "every_word": True},
    "tree": {"kind": "parsing", "labels": ["root", "obj", "mod"]},
    "score": {"kind": "regression"},
    "links": {"kind": "relations", "labels": ["in"], "entity_types": ["p"]},
}
WORDS = 6


def corpus_of(columns, order=None):
    """Items of six words with these labels by task; ``None`` is no label."""
    builder = CorpusBuilder({name: KINDS[name] for name in columns})
    items = len(next(iter(columns.values())))
    for at in range(items) if order is None else order:
        labels = {name: values[at] for name, values in columns.items() if values[at] is not None}
        builder.add(f"u{at:04}", text=" ".join("abcdef"), labels=labels)
    return builder.build()


def tagged(codes):
    """(items, words) to a label for every word."""
    return [["pqr"[code] for code in row] for row in codes.tolist()]


def spans(codes):
    """(items, words), 0 for none, to spans of one word each."""
    return [[[at, at + 1, "pq"[code - 1]] for at, code in enumerate(row) if code] for row in codes.tolist()]


def classes(codes, names="abc"):
    return [names[code] for code in codes.tolist()]


# -- against another count ---
def test_words_are_compared_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    first = rng.integers(3, size=(40, WORDS))
    second = np.where(rng.random(first.shape) < 0.7, np.minimum(first, 2), rng.integers(3, size=first.shape))
    pair = relatedness(corpus_of({"tags": tagged(first), "spans": spans(second)}), draws=20).pair("tags", "spans")
    expected = adjusted_mutual_info_score(first.ravel(), second.ravel(), average_method="max")
    assert pair.ami == pytest.approx(expected, abs=1e-9)
    assert (pair.of, pair.items) == ("words", 40)


def test_items_are_compared_as_scikit_learn_does():
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=80)
    second = np.where(rng.random(80) < 0.6, first, rng.integers(3, size=80))
    found = relatedness(corpus_of({"class": classes(first), "other": classes(second, "xyz")}), draws=20)
    expected = adjusted_mutual_info_score(first, second, average_method="max")
    assert found.pair("other", "class").ami == pytest.approx(expected, abs=1e-9)
    assert found.pair("class", "other").of == "items"


def test_a_tree_is_read_as_its_words_labels():
    rng = np.random.default_rng(2)
    codes = rng.integers(2, size=(30, WORDS)) + 1
    codes[:, 0] = 0
    trees = [[[at, ("root", "obj", "mod")[code]] for at, code in enumerate(row)] for row in codes.tolist()]
    found = relatedness(corpus_of({"tree": trees, "tags": tagged(codes)}), draws=20)
    assert found.pair("tree", "tags").ami == pytest.approx(1)


def test_a_score_is_read_as_the_fifth_that_it_lies_in():
    values = np.linspace(0, 1, 50)
    found = relatedness(corpus_of({"score": values.tolist(), "class": classes((values > 0.6).astype(int))}), draws=20)
    fifth = np.arange(50) // 10
    expected = adjusted_mutual_info_score(fifth, values > 0.6, average_method="max")
    assert found.pair("score", "class").ami == pytest.approx(expected, abs=0.02)


def test_of_spans_within_spans_the_shortest_counts():
    nested = [[[0, 6, "p"], [2, 4, "q"]]] * 25
    flat = [["p", "p", "q", "q", "p", "p"]] * 25
    assert relatedness(corpus_of({"spans": nested, "tags": flat}), draws=5).pair("spans", "tags").ami == pytest.approx(
        1
    )


# -- words against items ---
def test_a_class_drawn_at_random_is_unrelated_to_tags_though_the_words_of_an_item_are_alike():
    found, by_words, held = [], [], 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        topic, drawn = rng.integers(3, size=60), rng.integers(3, size=60)
        tags = np.where(rng.random((60, WORDS)) < 0.8, topic[:, None], rng.integers(3, size=(60, WORDS)))
        pair = relatedness(corpus_of({"class": classes(drawn), "tags": tagged(tags)}), draws=60, seed=seed).pairs[0]
        found.append(pair.ami)
        held += pair.low <= 0 <= pair.high
        by_words.append(adjusted_mutual_info_score(np.repeat(drawn, WORDS), tags.ravel(), average_method="max"))
    assert abs(np.mean(found)) < 0.4 * np.mean(by_words)  # as if words were drawn one by one, it looks related
    assert held >= 8  # of 12 at 90 %: fewer would have a chance of one in two hundred


def test_a_class_that_its_tags_tell_is_related_in_whichever_order_the_tasks_stand():
    topic = np.arange(60) % 3
    tags = tagged(np.repeat(topic[:, None], WORDS, axis=1))
    for columns in ({"class": classes(topic), "tags": tags}, {"tags": tags, "class": classes(topic)}):
        pair = relatedness(corpus_of(columns), draws=30).pairs[0]
        assert (pair.ami, pair.of) == (pytest.approx(1), "words")


# -- intervals and means ---
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    chances = np.array([[0.24, 0.05, 0.04], [0.05, 0.24, 0.04], [0.05, 0.05, 0.24]])
    rows, columns = chances.sum(axis=1), chances.sum(axis=0)
    mutual = (chances * np.log(chances / np.outer(rows, columns))).sum()
    truth = mutual / max(-(rows * np.log(rows)).sum(), -(columns * np.log(columns)).sum())
    held = 0
    for seed in range(30):
        drawn = np.random.default_rng([seed, 6]).choice(9, size=150, p=chances.ravel())
        columns_of = {"class": classes(drawn // 3), "other": classes(drawn % 3, "xyz")}
        pair = relatedness(corpus_of(columns_of), draws=60, seed=seed).pairs[0]
        held += pair.low <= truth <= pair.high
    assert held >= 21  # of 30 at 90 %: fewer would have a chance of one in a thousand


def test_the_order_of_items_does_not_matter():
    rng = np.random.default_rng(7)
    columns = {"class": classes(rng.integers(3, size=40)), "tags": tagged(rng.integers(3, size=(40, WORDS)))}
    plain, shuffled = (
        relatedness(corpus_of(columns, order), draws=20) for order in (None, rng.permutation(40).tolist())
    )
    assert plain == shuffled


def test_a_task_is_as_related_as_the_mean_of_its_pairs():
    rng = np.random.default_rng(8)
    same, other = rng.integers(3, size=60), rng.integers(3, size=60)
    columns = {"class": classes(same), "other": classes(same, "xyz"), "score": ((other + rng.random(60)) / 3).tolist()}
    found = relatedness(corpus_of(columns), draws=20)
    assert found.of("class")[0] == pytest.approx((1 + found.pair("class", "score").ami) / 2)
    value, low, high = found.of("score")
    assert low <= value <= high


# -- what cannot be compared ---
def test_relations_are_left_out_with_a_reason():
    links = [[[[0, 1, "p"], [2, 3, "p"], "in"]]] * 30
    codes = np.arange(30) % 3
    found = relatedness(corpus_of({"links": links, "class": classes(codes), "other": classes(codes, "xyz")}), draws=5)
    assert found.tasks == ["class", "other"]
    assert "no single label code per unit" in found.left_out["links"]


def test_only_items_with_both_labels_count_and_few_of_them_are_refused():
    codes = np.arange(60) % 3
    some = [label if at < 25 else None for at, label in enumerate(classes(codes, "xyz"))]
    assert relatedness(corpus_of({"class": classes(codes), "other": some}), draws=5).pairs[0].items == 25
    few = [label if at < 19 else None for at, label in enumerate(classes(codes, "xyz"))]
    with pytest.raises(ConfigError, match=r"19 items are labelled for both 'class' and 'other'.*at least 20 items"):
        relatedness(corpus_of({"class": classes(codes), "other": few}))


@pytest.mark.parametrize("columns", [{"class": ["a"] * 30}, {"class": ["a"] * 30, "links": [[]] * 30}])
def test_fewer_than_two_tasks_are_refused(columns):
    with pytest.raises(ConfigError, match="no two tasks to compare"):
        relatedness(corpus_of(columns))


def test_a_task_with_one_label_says_nothing_of_another():
    found = relatedness(corpus_of({"class": ["a"] * 30, "other": classes(np.arange(30) % 3, "xyz")}), draws=5)
    assert found.pairs[0].ami == 0
