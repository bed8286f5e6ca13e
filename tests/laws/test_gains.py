"""What a law of joint models says beside one of single tasks, and what of that goes into a verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.errors import ConfigError
from bursar.laws import Effort, FitSettings, Observations, fit_law
from bursar.laws.advice import expected_gain, track_record
from tests.laws.planted import card, planted_laws

LAWS = planted_laws()
BALANCED, SINGLE = LAWS.joint["balanced"], LAWS.single


def gain(ami, n=4000.0, tasks=3.0, spread=0.0):
    return expected_gain(BALANCED, SINGLE, (ami, ami - spread, ami + spread), n=n, tasks=tasks)


def test_the_gain_is_the_difference_of_both_laws():
    found = gain(0.64)
    assert found.together == pytest.approx(0.004 * np.sqrt(4000 * 0.64))
    assert found.alone == pytest.approx(0.002 * np.sqrt(4000))
    assert found.value == pytest.approx(found.together - found.alone)


@pytest.mark.parametrize(("ami", "verdict"), [(0.8, "helps"), (0.25, "cannot tell"), (0.05, "harms")])
def test_a_verdict_is_where_the_interval_lies(ami, verdict):
    found = gain(ami)
    assert found.verdict == verdict
    assert found.warnings == ()
    assert found.low < found.value < found.high


def test_the_interval_is_as_wide_as_the_difference_was_wrong_on_held_out_settings():
    rows = BALANCED.held_out
    alone = SINGLE.formula.predict(np.array(rows.variables["n"])[:, None])
    misses = np.sort(np.abs(rows.residuals - np.array(rows.alone) + alone))
    found = gain(0.5)
    assert found.high - found.value == pytest.approx(misses[int(np.ceil(61 * 0.9)) - 1])


def test_doubt_about_the_relatedness_widens_the_interval():
    sure, unsure = gain(0.45), gain(0.45, spread=0.3)
    assert sure.verdict == "helps"
    assert unsure.verdict == "cannot tell"
    assert unsure.value == sure.value
    assert unsure.low < sure.low < sure.high < unsure.high


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"n": 20000.0}, "n = 20000 is outside"), ({"tasks": 30.0}, "tasks = 30 is outside")],
)
def test_outside_the_range_it_cannot_tell_and_says_why(setting, said):
    found = gain(0.9, **setting)
    assert found.verdict == "cannot tell"
    assert found.value > 0
    assert [warning for warning in found.warnings if said in warning]


def test_a_relatedness_below_0_is_read_as_none():
    assert gain(-0.02).value == gain(0.0).value


def test_few_settings_held_out_give_no_verdict():
    X, scores = np.array([[2000.0, 2, 0.5], [3000.0, 4, 1.0]]), np.array([0.1, 0.2])
    few = card("0.004 * sqrt(n * ami)", X, scores, ("n", "tasks", "ami"), alone=(0.09, 0.1))
    found = expected_gain(few, SINGLE, (0.9, 0.9, 0.9), n=2500.0, tasks=3.0)
    assert (found.low, found.high, found.verdict) == (-1, 1, "cannot tell")
    assert "2 held-out settings are too few" in found.warnings[0]


def test_the_record_counts_verdicts_and_how_many_were_right():
    record = track_record(BALANCED, SINGLE)
    assert record.settings == 60
    assert 0.5 * record.settings < record.decided < record.settings
    assert record.right >= 0.95 * record.decided
    wrong = replace(BALANCED, held_out=replace(BALANCED.held_out, alone=(0.9,) * 60))
    assert track_record(wrong, SINGLE).right < record.right


def test_a_law_without_single_tasks_beside_it_is_refused():
    alone = replace(BALANCED, held_out=replace(BALANCED.held_out, alone=()))
    with pytest.raises(ConfigError, match="has no scores of single tasks"):
        expected_gain(alone, SINGLE, (0.5, 0.5, 0.5), n=2000.0, tasks=2.0)
    with pytest.raises(ConfigError, match="the law of single tasks has the variables n, tasks, ami"):
        expected_gain(BALANCED, BALANCED, (0.5, 0.5, 0.5), n=2000.0, tasks=2.0)


def test_a_fitted_law_knows_the_single_tasks_of_its_table():
    rows = []
    for at, n in enumerate(range(1000, 5000, 100)):
        joint = {"n": n, "n_other": n, "tasks": 2 + at % 2, "ami": 0.5 + at / 100, "alpha": 0.9, "score": n / 10000}
        rows.append(joint | {"architecture": "shared", "seed": 0})
        if n < 4000:
            single = {"n": n, "n_other": 0, "tasks": 1, "score": n / 20000}
            rows += [single | {"architecture": "shared", "seed": seed} for seed in (0, 1)]
            rows.append(single | {"architecture": "deep", "seed": 0, "score": 0.9})
    law = fit_law(Observations.of(rows).averaged(), ["n", "ami"], FitSettings(effort=Effort(20, 1)))
    pairs = list(zip(law.held_out.variables["n"], law.held_out.alone, strict=True))
    assert all(np.isnan(alone) if n >= 4000 else alone == pytest.approx(n / 20000) for n, alone in pairs)
    assert {n >= 4000 for n, _ in pairs} == {True, False}
