"""How seed items are taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.allocation.informativeness import dealt, seed_items, taken_apart
from bursar.allocation.rates import only
from bursar.errors import AllocationError
from bursar.simulation import assistant_corpus

TASKS = ["intent", "slots", "urgency"]
SHARES = (0.4, 0.3, 0.3)


@pytest.fixture(scope="module")
def items():
    return assistant_corpus(120, seed=2).with_tasks(TASKS)


@given(st.integers(0, 60), st.lists(st.floats(0.05, 1), min_size=1, max_size=4), st.integers(0, 40))
def test_any_stretch_is_shared_out_to_within_one_item_a_part(items, weights, begin):
    shares = np.array(weights) / sum(weights)
    stretch = dealt(begin + items, shares)[begin:]
    counts = np.bincount(stretch, minlength=len(shares))
    assert np.abs(counts - shares * items).max() < 2 + 1e-9


def test_every_item_is_in_one_part(items):
    parts = taken_apart(items, SHARES, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(items)))
    assert [len(part) for part in parts] == [48, 36, 36]


def test_each_part_has_its_share_of_every_task_whoever_is_labelled_for_what(items):
    rng = np.random.default_rng(1)
    present = {name: rng.random(len(items)) < share for name, share in zip(TASKS, (0.9, 0.5, 0.2), strict=True)}
    some = seed_items(items.schema, items.with_labels({n: only(items.labels[n], present[n]) for n in TASKS}))
    for seed in range(5):
        parts = taken_apart(some, SHARES, np.random.default_rng(seed))
        for name in TASKS:
            there = some.labels[name].present
            for part, share in zip(parts, SHARES, strict=True):
                assert abs(there[part].sum() - share * there.sum()) <= 4  # one for each combination of tasks


def test_the_sizes_of_parts_are_the_same_for_every_seed(items):
    some = items.with_labels({**items.labels, "slots": only(items.labels["slots"], np.arange(len(items)) % 3 == 0)})
    sizes = {
        tuple(int(some.labels["slots"].present[part].sum()) for part in taken_apart(some, SHARES, rng))
        for rng in map(np.random.default_rng, range(8))
    }
    assert len(sizes) == 1


def test_only_items_with_a_label_are_seed_items_and_in_the_order_of_ids(items):
    there = np.arange(len(items)) % 2 == 0
    some = items.with_labels({name: only(items.labels[name], there) for name in TASKS})
    found = seed_items(items.schema, some.take(np.random.default_rng(0).permutation(len(items))))
    assert found.ids.tolist() == [id for at, id in enumerate(sorted(items.ids.tolist())) if at % 2 == 0]


def test_the_number_of_labels_that_is_asked_for_is_enough(items):
    for shares in (SHARES, (0.7, 0.3), (0.9, 0.05, 0.05)):
        few = items.with_labels({**items.labels, "slots": only(items.labels["slots"], np.arange(120) < 1)})
        with pytest.raises(AllocationError, match="'slots' has 1 seed labels") as refused:
            taken_apart(few, shares, np.random.default_rng(0))
        enough = int(refused.value.fix.removeprefix("label at least ").split()[0])
        some = items.with_labels({**items.labels, "slots": only(items.labels["slots"], np.arange(120) < enough)})
        for seed in range(5):
            taken_apart(some, shares, np.random.default_rng(seed))
