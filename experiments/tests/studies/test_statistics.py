"""Tests, win percentages, areas and savings say what their definitions say, on data whose truth is known."""

from __future__ import annotations

import json
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import isotonic_regression

from bursar.campaign.curves import area
from experiments.studies.statistics import (
    agreement_with,
    areas,
    compare_all,
    holm,
    paired_test,
    r_squared,
    regret,
    saved,
    saved_interval,
    spread,
    table4,
    wins,
)

SCORES = st.integers(0, 1000).map(lambda value: value / 1000)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=9)


# -- two arms on the same cells ---------------------------------------------------------------------------------------
def test_the_spread_is_that_of_a_sample_and_unknown_for_one_value():
    assert spread([1.0, 2.0, 3.0, 6.0]) == {"mean": 3.0, "spread": pytest.approx((14 / 3) ** 0.5), "seeds": 4}
    assert spread([0.5]) == {"mean": 0.5, "spread": None, "seeds": 1}


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_the_paired_test_is_the_one_of_the_textbook(pairs):
    a, b = np.array(pairs).T
    found = paired_test(a, b)
    if (a - b).std() < 1e-9:
        return
    known = stats.ttest_rel(a, b)
    assert found["t"] == pytest.approx(known.statistic)
    assert found["p"] == pytest.approx(known.pvalue)
    assert (found["low"], found["high"]) == pytest.approx(tuple(known.confidence_interval(0.95)))
    assert found["n"] == found["pairs"] == len(pairs)


@settings(deadline=None, max_examples=60)
@given(PAIRS)
def test_up_to_fourteen_observations_all_signs_are_flipped(pairs):
    gaps = np.array([round(1000 * a) - round(1000 * b) for a, b in pairs])  # whole numbers compare exactly
    flips = [abs(np.dot(signs, gaps)) >= abs(gaps.sum()) for signs in product([1, -1], repeat=len(gaps))]
    assert paired_test(*np.array(pairs).T)["permutation_p"] == pytest.approx(np.mean(flips))


def test_random_flips_of_more_observations_give_the_exact_p_within_their_error():
    gaps = np.random.default_rng(0).normal(0.4, 1, 16)
    signs = 1 - 2 * (np.arange(2**16)[:, None] >> np.arange(16) & 1)
    exact = np.mean(np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-9)
    found = paired_test(gaps, np.zeros(16))["permutation_p"]
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 9999)
    assert found == paired_test(gaps, np.zeros(16))["permutation_p"]


@settings(deadline=None, max_examples=40)
@given(PAIRS)
def test_the_second_is_as_much_worse_as_the_first_is_better(pairs):
    a, b = np.array(pairs).T
    one, other = paired_test(a, b), paired_test(b, a)
    assert one["difference"] == pytest.approx(-other["difference"], abs=1e-12)
    assert (one["p"], one["permutation_p"]) == pytest.approx((other["p"], other["permutation_p"]))


def test_fewer_than_two_observations_decide_nothing():
    assert paired_test([], [])["difference"] is None
    for found in (paired_test([0.8], [0.6]), paired_test([0.8, 0.7], [0.6, 0.5], cluster=["atis", "atis"])):
        assert found["difference"] == pytest.approx(0.2)
        assert found["n"] == 1
        assert found["p"] is found["permutation_p"] is found["low"] is found["t"] is None


def test_no_difference_at_all_has_a_p_of_one():
    found = paired_test([0.1 + 0.2, 0.5, 0.7], [0.3, 0.5, 0.7])  # 0.1 + 0.2 is not quite 0.3
    assert (found["difference"], found["t"], found["p"], found["permutation_p"]) == (0, 0, 1, 1)


def test_the_same_difference_everywhere_is_sure_to_the_t_test_and_not_to_sign_flips():
    found = paired_test([0.3, 0.5, 0.8], [0.2, 0.4, 0.7])
    assert (found["p"], found["t"], found["low"]) == (0, None, found["difference"])
    assert found["permutation_p"] == 2 / 2**3
    json.dumps(found, allow_nan=False)


def test_a_cluster_is_one_observation():
    a, b = [0.8, 0.9, 0.7, 0.6, 0.5], [0.7, 0.7, 0.6, 0.2, 0.5]
    found = paired_test(a, b, cluster=["x", "y", "x", "y", "z"])
    means = paired_test([0.1, 0.3, 0.0], [0.0, 0.0, 0.0])
    assert found["pairs"] == 5
    assert found["p"] == pytest.approx(means["p"])
    assert found["n"] == means["n"] == 3


def test_cells_of_one_seed_are_not_independent_and_clusters_account_for_it():
    rng = np.random.default_rng(0)
    seeds, sets, studies = 4, 6, 500
    label = np.repeat(np.arange(seeds), sets).tolist()
    naive = clustered = 0
    bound = stats.t.ppf(0.975, seeds * sets - 1)
    for _ in range(studies):  # no arm is better, but a seed is lucky on all data sets alike
        gaps = np.repeat(rng.normal(0, 1, seeds), sets) + rng.normal(0, 0.5, seeds * sets)
        naive += abs(gaps.mean() / stats.sem(gaps)) > bound
        clustered += paired_test(gaps, np.zeros(len(gaps)), cluster=label)["p"] < 0.05
    error = np.sqrt(0.05 * 0.95 / studies)
    assert abs(clustered / studies - 0.05) < 4 * error
    assert naive / studies > 0.3


def test_pairs_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="same length"):
        paired_test([1, 2], [1])
    with pytest.raises(ValueError, match="pair 1 "):
        paired_test([1, float("nan")], [1, 2])
    with pytest.raises(ValueError, match="2 pairs, 1 clusters"):
        paired_test([1, 2], [1, 2], cluster=["a"])


# -- many comparisons -------------------------------------------------------------------------------------------------
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=7))
def test_holm_is_the_closed_test_of_all_intersections_by_bonferroni(p_values):
    known = [at for at, p in enumerate(p_values) if p is not None]
    found = holm(p_values)
    for at, p in enumerate(p_values):
        if p is None:
            assert found[at] is None
            continue
        families = [set(s) for size in range(1, len(known) + 1) for s in combinations(known, size) if at in s]
        assert found[at] == pytest.approx(max(min(1, len(s) * min(p_values[i] for i in s)) for s in families))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.randoms())
def test_holm_keeps_the_order_in_which_p_values_come(p_values, random):
    order = list(range(len(p_values)))
    random.shuffle(order)
    assert holm([p_values[at] for at in order]) == [holm(p_values)[at] for at in order]


def test_verdicts_are_by_the_corrected_p_and_the_direction():
    rng = np.random.default_rng(0)
    random = rng.normal(0.7, 0.05, 8)
    scores = {"good": random + 0.1 + rng.normal(0, 0.01, 8), "bad": random - 0.1 + rng.normal(0, 0.01, 8)}
    scores |= {"same": random + rng.normal(0, 0.01, 8), "RANDOM": random}
    found = {row["arm"]: row for row in compare_all(scores, against="RANDOM")}
    assert {arm: row["verdict"] for arm, row in found.items()} == {
        "good": "better",
        "bad": "worse",
        "same": "not decided",
    }
    assert [row["corrected_p"] for row in found.values()] == holm([row["test"]["p"] for row in found.values()])
    assert len(compare_all(scores)) == 6
    with pytest.raises(ValueError, match="no arm 'ST-R'"):
        compare_all(scores, against="ST-R")


def test_a_study_of_equal_arms_finds_any_difference_in_one_of_twenty_at_most():
    rng = np.random.default_rng(1)
    studies = 400
    wrong = 0
    for _ in range(studies):
        scores = {str(arm): rng.normal(size=6).tolist() for arm in range(5)}
        wrong += any(row["verdict"] != "not decided" for row in compare_all(scores, against="0"))
    assert wrong / studies < 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


# -- the paper's tables -----------------------------------------------------------------------------------------------
@given(st.lists(st.tuples(SCORES, SCORES), min_size=1))
def test_what_one_side_does_not_win_the_other_does(pairs):
    assert wins(pairs) + wins([(b, a) for a, b in pairs]) == pytest.approx(1)


def test_without_comparisons_nobody_wins():
    assert wins([]) is None


SINGLE = {task: [f"ST-EC-{task}", f"ST-DA-{task}"] for task in ("DP", "NER")}
OWN = {task: [f"MT-EC-{task}", f"MT-DA-{task}"] for task in ("DP", "NER")}
JOINT = [f"MT-{name}" for name in ("AVG", "AVGDA", "MAX", "MIN", "PAR", "RRF", "IND")]
ARMS = [*SINGLE["DP"], *SINGLE["NER"], *OWN["DP"], *OWN["NER"], *JOINT]
DOMAINS = ["BC", "BN", "MZ", "NW", "TC", "WB"]


def final_scores(rng, seeds):
    return {
        arm: {task: {(d, s): float(rng.normal()) for d in DOMAINS for s in range(seeds)} for task in ("DP", "NER")}
        for arm in ARMS
    }


def test_the_papers_methods_and_domains_make_the_papers_numbers_of_comparisons():
    found = table4(final_scores(np.random.default_rng(0), 1), SINGLE, OWN, JOINT)
    for kind in ("within", "cross"):
        assert [found[kind][task]["comparisons"] for task in ("DP", "NER")] == [108, 108]
    assert found["average"]["comparisons"] == 264


@pytest.mark.parametrize(
    ("printed", "of"), [(47.22, 108), (63.88, 108), (90.74, 108), (89.81, 108), (78.78, 264)], ids=str
)
def test_the_papers_percentages_are_whole_numbers_of_wins_cut_after_two_digits(printed, of):
    assert printed in {10000 * won // of / 100 for won in range(of + 1)}


def test_the_table_follows_its_definition_comparison_by_comparison():
    scores = final_scores(np.random.default_rng(3), 3)
    found = table4(scores, SINGLE, OWN, JOINT)

    def mean(arm, tasks, domain):
        return np.mean([scores[arm][task][domain, seed] for task in tasks for seed in range(3)])

    def percent(rivals, tasks):
        return 100 * np.mean([mean(mt, tasks, d) > mean(one, tasks, d) for one, mt in rivals for d in DOMAINS])

    for task, opposite in (("DP", "NER"), ("NER", "DP")):
        rivals = list(product(SINGLE[task], OWN[task] + JOINT))
        assert found["within"][task]["percent"] == pytest.approx(percent(rivals, [task]))
        assert found["cross"][opposite]["percent"] == pytest.approx(percent(rivals, [opposite]))
    rivals = list(product(SINGLE["DP"] + SINGLE["NER"], OWN["DP"] + OWN["NER"] + JOINT))
    assert found["average"]["percent"] == pytest.approx(percent(rivals, ["DP", "NER"]))


def small_table(multi, single):
    """One single-task arm a task and one joint arm: scores of a domain's seeds, the same on both tasks."""
    cells = {"M": multi, "A": single, "B": single}
    scores = {
        arm: {task: {("NW", s): v for s, v in values.items()} for task in ("x", "y")} for arm, values in cells.items()
    }
    return table4(scores, {"x": ["A"], "y": ["B"]}, {}, ["M"])


def test_significance_is_that_of_the_paired_test_over_seeds_and_says_who_won():
    multi, single = {0: 0.81, 1: 0.92, 2: 0.73}, {0: 0.71, 1: 0.83, 2: 0.62}
    for first, second, won in ((multi, single, 1), (single, multi, 0)):
        row = small_table(first, second)["within"]["x"]
        assert (row["percent"], row["significant"], row["significant_wins"]) == (100 * won, 1, won)
    row = small_table({0: 0.9, 1: 0.5}, {0: 0.8, 1: 0.7})["average"]
    assert (row["percent"], row["comparisons"], row["significant"]) == (0, 2, 0)


def test_arms_are_compared_on_the_seeds_that_both_have():
    table = small_table({0: 0.6, 1: 0.9}, {0: 0.7})
    assert table["within"]["x"] == {
        "percent": 0.0,
        "comparisons": 1,
        "significant": 0,
        "significant_wins": 0,
        "missing": 0,
    }
    nothing = small_table({0: 0.6}, {1: 0.7})["cross"]["y"]
    assert (nothing["percent"], nothing["comparisons"], nothing["missing"]) == (None, 0, 1)


def test_equal_scores_tie_in_whatever_order_their_seeds_come():
    assert small_table({0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.3, 1: 0.1, 2: 0.2})["average"]["percent"] == 50


def test_an_arm_without_scores_is_named():
    with pytest.raises(ValueError, match="no scores of ST-EC-DP"):
        table4({"MT-AVG": {}}, {"DP": ["ST-EC-DP"]}, {}, ["MT-AVG"])


@settings(deadline=None)
@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=6))
def test_agreement_is_spearmans_and_its_p_counts_orders(pairs):
    paper, ours = ({str(at): pair[side] for at, pair in enumerate(pairs)} for side in (0, 1))
    found = agreement_with(paper, ours)
    assert found["n"] == len(pairs)
    if len(set(paper.values())) < 2 or len(set(ours.values())) < 2:
        assert found["spearman"] is found["p"] is None
        return
    ranks = [stats.rankdata(list(table.values())) for table in (paper, ours)]
    assert found["spearman"] == pytest.approx(stats.spearmanr(*ranks).statistic)
    centred = [2 * r - len(pairs) - 1 for r in ranks]  # whole numbers
    reached = abs(np.dot(*centred))
    assert found["p"] == pytest.approx(
        np.mean([abs(np.dot(o, centred[0])) >= reached for o in permutations(centred[1])])
    )


def test_more_arms_are_put_in_random_orders():
    ours = {str(at): float(value) for at, value in enumerate([2, 1, 4, 3, 6, 5, 8, 7])}
    found = agreement_with({str(at): float(at) for at in range(8)}, ours | {"extra": 1.0})
    assert found["spearman"] == pytest.approx(1 - 6 * 8 / (8 * 63))
    # As far from 0 as eight squared steps: the orders of eight with so few, counted twice for the reverse.
    few = sum(sum((a - b) ** 2 for a, b in enumerate(order)) <= 8 for order in permutations(range(8)))
    exact = 2 * few / 40320
    assert abs(found["p"] - exact) < 4 * np.sqrt(exact / 9999) + 1 / 9999
    assert found["left_out"] == ["extra"]


# -- money ------------------------------------------------------------------------------------------------------------
CURVES = st.lists(st.tuples(st.integers(1, 50), SCORES), min_size=2, max_size=8).map(
    lambda steps: (np.cumsum([m for m, _ in steps]).astype(float), np.array([s for _, s in steps]))
)


@given(CURVES, st.floats(0.05, 0.95))
def test_an_area_is_the_mean_of_its_parts_weighed_by_their_money(curve, share):
    (money, score), low, high = curve, curve[0][0], curve[0][-1]
    middle = low + share * (high - low)
    parts = share * area(money, score, low, middle) + (1 - share) * area(money, score, middle, high)
    assert area(money, score, low, high) == pytest.approx(parts, abs=1e-9)
    assert score.min() - 1e-9 <= parts <= score.max() + 1e-9


def test_areas_are_taken_over_the_money_that_all_arms_have_spent():
    found = areas({"a": ([0, 10, 20], [0.0, 1.0, 0.0]), "b": ([5, 15], [0.2, 0.4])})
    assert found == {"a": pytest.approx(0.75), "b": pytest.approx(0.3)}
    assert areas({}) == {}


@given(CURVES, st.floats(0.2, 5))
def test_an_arm_whose_money_is_worth_c_saves_one_minus_one_over_c(curve, c):
    money, score = curve
    found = saved((money / c, score), (money, score))
    for end in ("at_arm_end", "at_random_end"):
        assert found[end]["saved"] == pytest.approx(1 - 1 / c)
        assert found[end]["bound"] == "exact"


@given(CURVES, CURVES)
def test_what_an_arm_saves_against_random_random_loses_against_the_arm(curve, other):
    one, two = saved(curve, other), saved(other, curve)
    reverse = {"exact": "exact", "at least": "at most", "at most": "at least"}
    for mine, theirs in (("at_arm_end", "at_random_end"), ("at_random_end", "at_arm_end")):
        assert (1 - one[mine]["saved"]) * (1 - two[theirs]["saved"]) == pytest.approx(1)
        assert two[theirs]["bound"] == reverse[one[mine]["bound"]]
    lower = min(one.values(), key=lambda saving: saving["score"])
    assert lower["money"] <= curve[0][-1]
    assert lower["random_money"] <= other[0][-1]


def test_a_score_that_is_never_reached_bounds_the_saving():
    high, low = ([10, 20, 40], [0.5, 0.8, 0.9]), ([10, 20, 80], [0.5, 0.6, 0.7])
    assert saved(high, low)["at_arm_end"] == {
        "score": 0.9,
        "money": 40,
        "random_money": 80,
        "saved": 0.5,
        "bound": "at least",
    }
    exact = saved(high, low)["at_random_end"]
    assert exact["money"] == pytest.approx(10 + 10 * 0.2 / 0.3)
    assert (exact["random_money"], exact["bound"]) == (80, "exact")
    assert saved(low, high)["at_random_end"]["bound"] == "at most"


def test_a_curve_that_starts_above_the_score_needs_at_most_its_first_money():
    found = saved(([10, 20], [0.8, 0.9]), ([10, 40], [0.5, 0.7]))["at_random_end"]
    assert (found["money"], found["saved"], found["bound"]) == (10, 0.75, "at least")


def test_a_lucky_round_is_levelled_out_before_money_is_read_off():
    # 0.9 and 0.5 become 0.7 each: the score 0.6 is reached halfway from 0.5 to 0.7, not on the way to 0.9.
    found = saved(([10, 20, 30, 40], [0.5, 0.9, 0.5, 0.8]), ([10, 40], [0.4, 0.6]))["at_random_end"]
    assert found["money"] == pytest.approx(15)


@given(CURVES)
def test_savings_are_read_off_the_isotonic_regression(curve):
    money, rising = curve[0], isotonic_regression(curve[1])
    assert saved(curve, curve)["at_arm_end"]["score"] == pytest.approx(rising[-1])
    for wanted in rising[1:-1] + 1e-6:
        if wanted < rising[-1]:
            needed = saved(curve, (money, np.full(len(money), wanted)))["at_random_end"]["money"]
            assert np.interp(needed, money, rising) == pytest.approx(wanted)


def test_savings_need_money_and_curves_that_make_sense():
    with pytest.raises(ValueError, match="some spent"):
        saved(([0, 1], [0.1, 0.2]), ([1, 2], [0.1, 0.2]))
    with pytest.raises(ValueError, match="never falls"):
        saved(([2, 1], [0.1, 0.2]), ([1, 2], [0.1, 0.2]))
    with pytest.raises(ValueError, match="as many scores"):
        areas({"a": ([1, 2], [0.1])})
    with pytest.raises(ValueError, match="no cell"):
        saved_interval([], [])


def power_law(worth, rng, noise, points=12):
    """A curve with error 0.5 · (worth · money)^−0.5."""
    money = np.arange(1.0, points + 1)
    return money, 1 - 0.5 * (worth * money) ** -0.5 + rng.normal(0, noise, points)


@pytest.mark.parametrize(("worth", "cells"), [(1.0, 3), (1.5, 5), (1.5, 15), (0.7, 8)])
def test_the_interval_covers_the_true_saving_of_power_laws(worth, cells):
    rng = np.random.default_rng(5)
    studies, covered, centres = 200, 0, []
    for study in range(studies):
        arm = [power_law(worth, rng, 0.004) for _ in range(cells)]
        random = [power_law(1.0, rng, 0.004) for _ in range(cells)]
        found = saved_interval(arm, random, seed=study)
        covered += found["low"] <= 1 - 1 / worth <= found["high"]
        centres.append(found["saved"])
    assert covered / studies > 0.95 - 3 * np.sqrt(0.95 * 0.05 / studies)
    assert abs(np.mean(centres) - (1 - 1 / worth)) < 0.01


def test_noise_pulls_a_saving_towards_nothing_and_not_away_from_it():
    # The last of twelve rounds gains 0.5 · (11^−0.5 − 12^−0.5) = 0.0064, with half as much noise and with three times.
    rng = np.random.default_rng(2)
    found = {}
    for noise in (0.0032, 0.019):
        arm, random = ([power_law(worth, rng, noise) for _ in range(600)] for worth in (1.5, 1.0))
        found[noise] = saved_interval(arm, random)
    assert found[0.0032]["low"] < 1 / 3
    assert 0.2 < found[0.019]["high"] < found[0.0032]["low"] < 1 / 3 + 0.01


def test_half_the_money_and_double_the_money_cancel_out():
    cheap, plain, dear = (([m, 2 * m], [0.5, 0.7]) for m in (50, 100, 200))
    found = saved_interval([cheap, dear], [plain, plain])
    assert found["saved"] == pytest.approx(0)
    assert found["low"] < -1
    assert 0.5 < found["high"] < 1


def test_an_interval_is_the_same_for_the_same_seed_and_needs_two_observations():
    rng = np.random.default_rng(0)
    arm, random = ([power_law(worth, rng, 0.01) for _ in range(6)] for worth in (1.4, 1.0))
    assert saved_interval(arm, random, seed=3) == saved_interval(arm, random, seed=3)
    clustered = saved_interval(arm, random, seed=3, cluster=["atis"] * 6)
    assert (clustered["n"], clustered["cells"], clustered["low"], clustered["high"]) == (1, 6, None, None)
    assert saved_interval(arm, random, cluster=["atis", "snips", "ewt"] * 2)["n"] == 3


def test_cells_that_are_ahead_behind_or_cut_off_are_counted():
    good, plain, best = ([10, 20], [0.5, 0.8]), ([10, 20], [0.5, 0.7]), ([10, 20], [0.75, 0.9])
    found = saved_interval([good, plain, best, plain], [plain, good, plain, plain])
    assert (found["cells"], found["ahead"], found["behind"]) == (4, 2, 1)
    assert (found["at_least"], found["at_most"]) == (1, 0)
    assert saved_interval([plain], [best])["at_most"] == 1


def test_stopping_loses_what_going_on_would_have_brought():
    curve = ([100, 150, 250, 400], [0.5, 0.8, 0.7, 0.75])
    assert regret(2, curve) == {"score_lost": pytest.approx(0.05), "money_saved": 150, "share_saved": 0.375}
    assert regret(1, curve)["score_lost"] == pytest.approx(-0.05)
    assert regret(3, curve) == regret(None, curve) == {"score_lost": 0, "money_saved": 0, "share_saved": 0}
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="rounds 0 to 3"):
            regret(wrong, curve)


# -- R² --------------------------------------------------------------------------------------------------------------
@given(st.integers(0, 10**6), st.integers(3, 40))
@settings(max_examples=50, deadline=None)
def test_r_squared_is_what_the_best_straight_line_explains(seed, n):
    confidence, accuracy = np.random.default_rng(seed).random((2, n))
    left = accuracy - np.polyval(np.polyfit(confidence, accuracy, 1), confidence)
    expected = 1 - (left @ left) / ((accuracy - accuracy.mean()) ** 2).sum()
    assert r_squared(confidence, accuracy) == pytest.approx(expected, abs=1e-9)


def test_r_squared_asks_for_a_line_and_not_for_the_right_one():
    """Too sure by 0.5 throughout, and yet a perfect guide to what is hard."""
    accuracy = np.array([0.1, 0.2, 0.4])
    assert r_squared(accuracy + 0.5, accuracy) == pytest.approx(1)


@pytest.mark.parametrize("constant", [0.1, 0.3, 1 / 3, 1.0])
def test_a_constant_explains_nothing(constant):
    other = np.linspace(0, 1, 7)
    assert r_squared(np.full(7, constant), other) == 0
    assert r_squared(other, np.full(7, constant)) == 0
