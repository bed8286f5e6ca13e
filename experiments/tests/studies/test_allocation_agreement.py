"""How alike two measurements of informativeness are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from bursar.allocation import Informativeness
from bursar.errors import AllocationError
from experiments.studies.allocation_models import agreement

ABC = ("a", "b", "c")
OFF = ~np.eye(3, dtype=bool)


def measured(value, tasks=ABC):
    value = np.array(value, dtype=float)
    np.fill_diagonal(value, 1.0)
    return Informativeness(tasks, value, np.zeros_like(value))


@given(arrays(float, (3, 3), elements=st.floats(-1, 1)), arrays(float, (3, 3), elements=st.floats(-1, 1)))
def test_agreement_is_spearmans_correlation_of_pairs_of_different_tasks(first, second):
    found = agreement(measured(first), measured(second))
    if len(set(first[OFF])) > 1 and len(set(second[OFF])) > 1:
        assert found == pytest.approx(spearmanr(first[OFF], second[OFF])[0])
    else:
        assert found == 0


def test_the_order_of_tasks_does_not_change_agreement():
    rng = np.random.default_rng(1)
    first, second, order = measured(rng.random((3, 3))), measured(rng.random((3, 3))), [2, 0, 1]
    turned = measured(second.value[np.ix_(order, order)], tuple(ABC[at] for at in order))
    assert agreement(first, turned) == agreement(first, second) == agreement(turned, first)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(AllocationError, match="cannot be compared"):
        agreement(measured(np.zeros((3, 3))), measured(np.zeros((2, 2)), ("a", "b")))
    with pytest.raises(AllocationError, match="cannot inform another"):
        agreement(measured([[1]], ("a",)), measured([[1]], ("a",)))
