"""What is said of the errors above a threshold is true as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from bursar.errors import ConfigError
from bursar.predictions.acceptance import Acceptance, HeldOut, error_interval, items_needed, thresholds_by_task


def drawn(rng: np.random.Generator, items: int) -> HeldOut:
    """A model that is right as often as its square root of how sure it is."""
    sure = rng.random(items)
    return HeldOut(sure, rng.random(items) < np.sqrt(sure))


@pytest.mark.parametrize("items", [40, 300])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9])
def test_the_interval_holds_the_true_share_of_errors_in_at_least_95_of_100_cases(items, threshold):
    # For u uniform on (t, 1), the mean of 1 - sqrt(u) is 1 - (2 / 3)(1 - t**1.5) / (1 - t).
    truth = 1 - (2 / 3) * (1 - threshold**1.5) / (1 - threshold)
    rng, times = np.random.default_rng(5), 4000
    held = 0
    for _ in range(times):
        found = Acceptance.of("intent", threshold, np.zeros(0), drawn(rng, items))
        low, high = found.interval or (0.0, 1.0)  # nothing is claimed if no item is above it
        held += low <= truth <= high
    assert held / times >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / times)
    assert held < times  # an interval that holds everything would say nothing


def test_the_interval_is_that_of_clopper_and_pearson():
    for wrong, items in [(0, 7), (7, 7), (3, 50), (14, 702)]:
        theirs = binomtest(wrong, items).proportion_ci(0.95, "exact")
        assert error_interval(wrong, items) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_number_of_items_needed_tells_five_percent_from_ten():
    enough = items_needed()
    wrong = int(np.ceil(0.05 * enough))
    assert binom.cdf(wrong, enough, 0.1) <= 0.025  # so many errors would be unlikely if 10 % were wrong
    fewer = enough - 1
    assert binom.cdf(int(np.ceil(0.05 * fewer)), fewer, 0.1) > 0.025


def test_it_says_what_is_accepted_and_what_is_wrong():
    sure = np.concatenate([np.full(71, 0.95), np.full(29, 0.5)])
    known = HeldOut(np.full(702, 0.95), np.arange(702) >= 14)
    found = Acceptance.of("intent", 0.92, sure, known)
    assert str(found) == (
        "intent: accept the model above 0.92: 71 % of items, 2 % (1.1 to 3.3) errors (14 of 702 test items)"
    )
    assert found.to_json()["errors"] == 14 / 702


def test_without_held_out_items_it_says_how_many_are_needed():
    found = Acceptance.of("intent", 0.9, np.ones(3), None)
    assert (found.errors, found.interval) == (None, None)
    assert str(found).endswith("not known: no held-out items (about 154, labelled at random, would be needed)")
    none_above = Acceptance.of("intent", 0.9, np.ones(3), HeldOut(np.full(40, 0.2), np.ones(40, dtype=bool)))
    assert none_above.unknown == "not known: none of the 40 test items is above it"


@pytest.mark.parametrize("given", [{"mood": 0.5}, {"intent": 1.5}, -0.1, {"intent": float("nan")}])
def test_a_threshold_that_makes_no_sense_is_refused(given):
    with pytest.raises(ConfigError, match="threshold"):
        thresholds_by_task(["intent"], given)


def test_tasks_without_a_threshold_accept_everything():
    assert thresholds_by_task(["intent", "slots"], {"slots": 0.9}) == {"intent": 0.0, "slots": 0.9}
    assert thresholds_by_task(["intent", "slots"], 0.5) == {"intent": 0.5, "slots": 0.5}
    assert error_interval(0, 0) == (0.0, 1.0)
