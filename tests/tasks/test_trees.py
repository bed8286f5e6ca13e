"""Dependency trees: the best of all trees, and gold ones that come back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.corpus import read
from bursar.ragged import Ragged, offsets_of
from bursar.tasks import Beliefs, Parsing
from bursar.tasks.parsing import _are_trees, _word_in_a_loop, best_tree


def every_tree(words: int, single_root: bool):
    """All heads of so many words that reach the root, by trying all."""
    for heads in product(range(words + 1), repeat=words):
        itself = any(head == word for word, head in enumerate(heads, start=1))
        if not itself and not _word_in_a_loop(list(heads)) and (not single_root or heads.count(0) == 1):
            yield heads


def product_of(probabilities: np.ndarray, heads: tuple[int, ...]) -> float:
    """The log of the product of the arcs' probabilities; choice j of word i is head j, or j + 1 from i on."""
    choices = [head - (head > word) for word, head in enumerate(heads, start=1)]
    return float(np.log(probabilities[np.arange(len(heads)), choices]).sum())


@pytest.mark.parametrize("single_root", [True, False])
@settings(deadline=None, max_examples=60)
@given(words=st.integers(1, 5), seed=st.integers(0, 2**32 - 1), peaked=st.booleans())
def test_the_best_tree_is_the_best_of_all_trees(single_root, words, seed, peaked):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(words, 0.2 if peaked else 1.0), words).clip(1e-12)
    found = tuple(best_tree(probabilities, single_root).tolist())
    best = max(product_of(probabilities, heads) for heads in every_tree(words, single_root))
    assert found in set(every_tree(words, single_root))
    assert product_of(probabilities, found) == pytest.approx(best)


@pytest.mark.parametrize("single_root", [True, False])
@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_trees_are_told_from_loops_for_all_items_at_once(single_root, data):
    lengths = data.draw(st.lists(st.integers(0, 6), max_size=6))
    items = [data.draw(st.lists(st.integers(0, n), min_size=n, max_size=n)) for n in lengths]
    heads = np.array([head for item in items for head in item], dtype=np.int64)
    expected = [_word_in_a_loop(item) == 0 and (not single_root or item.count(0) <= 1) for item in items]
    assert _are_trees(heads, offsets_of(lengths), single_root).tolist() == expected


def sure_of(task: Parsing, gold: Ragged) -> Beliefs:
    """Beliefs that are sure of these trees."""
    words = gold.lengths
    position = np.arange(len(gold.values)) - np.repeat(gold.offsets[:-1], words) + 1
    heads, labels = gold.values.T
    choices = offsets_of(np.repeat(words, words))
    values = np.zeros((1, choices[-1]), dtype=np.float32)
    chosen = choices[:-1] + heads - (heads > position)
    values[0, chosen] = 1
    of_choices = np.zeros(choices[-1], dtype=np.int32)
    of_choices[chosen] = labels
    return Beliefs(values, choices, gold.offsets, labels=of_choices)


def test_every_gold_tree_of_the_treebank_comes_back_exactly(data_folder):
    corpus = read(data_folder("ud_ewt")).with_tasks(["dependencies"])
    task, gold = corpus.schema["dependencies"], corpus.labels["dependencies"].rows
    assert task.decode(sure_of(task, gold)).equals(gold)


def test_a_loop_of_two_sure_words_is_broken_where_it_costs_least():
    task = Parsing("tree", ("a", "b"))
    # Both words want each other; the second would rather be the root than the first.
    values = np.array([[0.01, 0.99, 0.3, 0.7]], dtype=np.float32)
    labels = np.array([0, 1, 0, 1], dtype=np.int32)
    beliefs = Beliefs(values, np.array([0, 2, 4]), np.array([0, 2]), labels=labels)
    assert task.decode(beliefs).values.tolist() == [[2, 1], [0, 0]]


def test_several_passes_are_averaged_before_a_tree_is_drawn():
    task = Parsing("tree", ("a",))
    values = np.array([[0.9, 0.1, 0.2, 0.8], [0.1, 0.9, 0.7, 0.3], [0.9, 0.1, 0.2, 0.8]], dtype=np.float32)
    beliefs = Beliefs(values, np.array([0, 2, 4]), np.array([0, 2]), labels=np.zeros(4, dtype=np.int32))
    assert task.decode(beliefs).values[:, 0].tolist() == [0, 1]


def test_smoothing_never_asks_a_word_to_head_itself():
    import torch

    from bursar.tasks.heads import Encoded

    torch.manual_seed(0)
    task = Parsing("tree", ("a", "b"))
    head = task.head(8)
    counts = np.array([3, 1])
    output = head(Encoded(torch.randn(2, 8), torch.randn(4, 8), counts))
    targets = Ragged.of([[(0, 0), (1, 1), (1, 0)], [(0, 1)]], 2, np.int64)
    loss = head.loss(output, targets, smoothing=0.3)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in head.parameters())
