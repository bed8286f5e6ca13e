"""Curves of scores against money, and the settings as they are typed: small cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign.checks import check_served
from bursar.campaign.config import _apply, parse_config
from bursar.campaign.curves import area, rising, saved_at_equal_money, seeds_of
from bursar.campaign.savings import TEST, Points, predict_proba
from bursar.campaign.stopping import rise
from bursar.errors import ConfigError


def test_the_area_is_the_mean_of_the_curve_or_its_last_score_over_no_money() -> None:
    assert area([0, 2, 4], [0.0, 0.5, 0.5], 0, 4) == 0.375
    assert area([0, 2, 4], [0.0, 0.5, 0.5], 4, 4) == 0.5


def test_what_is_saved_is_read_off_at_the_lower_final_score() -> None:
    found = saved_at_equal_money(([100, 200, 300], [0.5, 0.7, 0.8]), ([100, 200, 400], [0.5, 0.6, 0.8]))
    assert found is not None
    assert found.saved == pytest.approx(1 / 3)
    lost = saved_at_equal_money(([1, 2], [0.5, 0.6]), ([1, 2], [0.5, 0.7]))
    assert lost is not None
    assert lost.saved == pytest.approx(-1 / 3)


def test_rising_scores_are_the_nearest_that_never_fall() -> None:
    assert rising(np.array([0.5, 0.9, 0.5, 0.8])).tolist() == [0.5, 0.7, 0.7, 0.8]


def test_seeds_are_ranges_and_lists() -> None:
    assert seeds_of("0-4") == [0, 1, 2, 3, 4]
    assert seeds_of("3,7-8") == [3, 7, 8]


def test_random_s_error_over_the_strategy_s_is_found_where_both_are_powers() -> None:
    rows = [(m, m / 10, 1.0, 8 * m**-0.5, TEST, 9999) for m in (1000, 2000, 4000)]
    rows += [(m, m / 10, 0.0, 10 * m**-0.5, TEST, 9999) for m in (1000, 2000, 3000)]
    assert np.exp(predict_proba(Points.of(rows), 4000).mean[1]) == pytest.approx(1.25, abs=0.005)


def test_the_rise_is_a_logarithm_or_an_inverse_power() -> None:
    assert rise(np.e, np.array([0.0, 1.0])).round(4).tolist() == [1.0, 0.6321]


def test_a_setting_is_a_value_of_toml_or_a_text() -> None:
    table = {"learner": {"steps": 100}}
    for change in ("learner.steps=300", "strategy.name=MT-AVG", 'compare=["RANDOM"]'):
        _apply(change, table)
    assert table == {"learner": {"steps": 300}, "strategy": {"name": "MT-AVG"}, "compare": ["RANDOM"]}


def test_an_invalid_value_and_an_unknown_key_are_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match=r"budget\.per_round = -5: .* Fix: for instance budget\.per_round = 500"):
        parse_config({"budget": {"per_round": -5}})
    with pytest.raises(ConfigError, match=r"budget\.per_rond is no key\. Fix: did you mean 'per_round'\? Use ahead, "):
        parse_config({"budget": {"per_rond": 5}})


def test_a_strategy_that_needs_what_the_learner_lacks_is_refused_with_learners_that_have_it() -> None:
    check_served(parse_config({"strategy": {"name": "BALD"}, "learner": {"name": "bilstm", "dropout": 0.5}}))
    with pytest.raises(ConfigError, match="use a learner that does: transformer, bilstm, cnn, aoe, image-cnn or probe"):
        check_served(parse_config({"compare": ["K-CENTER"], "learner": {"name": "scikit"}}))
