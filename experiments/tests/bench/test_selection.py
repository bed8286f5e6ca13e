"""What the selection's benchmarks compare: that both sides solve the same problem, and what their lines say."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from bursar.selection import make_strategy
from bursar.selection.diversify import BatchScores, batch_bald
from bursar.selection.spend import spend_disjoint
from experiments.bench import judged, plain, programs
from experiments.bench import selection as bench
from experiments.bench.harness import CannotMeasureError, Case, Measured
from experiments.bench.peers import environments


@pytest.fixture
def made_already(monkeypatch):
    """Environments of peers are used where they are there, and never made."""

    def not_here(_folder, wanted):
        pytest.skip(f"there is no environment with {wanted[0]} (bursar bench makes it)")

    monkeypatch.setattr(environments, "_make", not_here)


@pytest.fixture
def in_this_process(monkeypatch):
    """Fresh processes cost a second each; what they say is the same here, but for the memory."""
    monkeypatch.setattr(bench, "require_memory", lambda: None)
    monkeypatch.setattr(bench, "alone", lambda function, *given: function(*given) | {"peak_gb": 0.5})


def line_of(name, sides):
    """The line of a case with smaller sides."""
    (case,) = [case for case in bench.CASES if case.name == name]
    traits = {trait: getattr(case, trait) for trait in ("at_least", "at_most", "compare", "measure")}
    line = judged.Judged(name, "", lambda: sides, repeats=1, **traits).run()
    assert json.loads(json.dumps(line)) == line
    return line


# -- programs --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("write", "pool"), [(programs.paper_program, programs.utterances), (programs.subset_program, programs.three_tasks)]
)
def test_a_program_allows_exactly_what_the_budget_pays_for(write, pool):
    pool, budget = pool(2, seed=4), 30
    program = write(pool, budget)
    items, tasks = program.shape
    seen = set()
    for bought in itertools.product([0, 1], repeat=items * tasks):
        labels = np.array(bought)
        spent = int(pool.prices.of(labels.reshape(items, tasks).astype(bool)).sum())
        rest = (np.concatenate([labels, last]) for last in itertools.product([0, 1], repeat=items))
        sums = [program.matrix @ variables for variables in rest]
        allowed = any(((program.low <= s + 1e-9) & (s - 1e-9 <= program.high)).all() for s in sums)
        assert allowed == (spent <= budget)
        seen.add(allowed)
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("write", "pool"), [(programs.paper_program, programs.utterances), (programs.subset_program, programs.three_tasks)]
)
def test_the_program_and_the_exact_solver_are_worth_the_same(write, pool, seed):
    pool, budget = pool(40, seed), 40 + 17 * seed
    found = programs.solve_by_highs(pool, write(pool, budget), seconds=20)
    ours = spend_disjoint(pool, 1 - pool.confidence, budget)
    assert found.proven
    assert found.spent <= budget
    assert ours.certificate.objective == pytest.approx(found.objective, abs=1e-6)
    assert ours.certificate.objective >= found.objective - 1e-9


def test_a_solver_without_time_has_found_nothing_and_proves_nothing():
    pool = programs.utterances(3000)
    found = programs.solve_by_highs(pool, programs.paper_program(pool, 500), seconds=0.0)
    assert not found.proven
    counted = bench._counted(programs.Found(9.0, None, None, None, False, "late"), seconds=2)
    assert (counted.value, counted.about["seconds_in_all"]) == (2, 9.0)
    assert bench._not_below({"objective": 1.0, "theirs_objective": None}) == {"not_below": True}
    assert bench._not_below({"objective": 1.0, "theirs_objective": 1.1}) == {"not_below": False}


def test_cbc_solves_the_same_program(made_already):
    pool, budget = programs.utterances(60, seed=1), 80
    python = environments.python_for(programs.CBC)
    found = programs.solve_by_cbc(python, pool, programs.paper_program(pool, budget), seconds=20)
    assert found.version.startswith("CBC ")
    assert found.proven
    ours = spend_disjoint(pool, 1 - pool.confidence, budget).certificate.objective
    assert found.objective == pytest.approx(ours, abs=1e-6)


def test_every_package_that_cbc_needs_is_pinned():
    assert all("==" in package for package in environments.dependencies(programs.CBC))


def test_a_peer_that_fails_is_a_case_that_cannot_be_measured(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text("raise SystemExit('no licence')")
    with pytest.raises(CannotMeasureError, match=r"peer.py failed: no licence"):
        programs.run_peer(Path(sys.executable), script)


# -- the plain ways --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "script"), [("MT-PAR", plain.pareto), ("MT-RRF", plain.fused_ranks), ("MT-IND", plain.independent)]
)
@pytest.mark.parametrize(("items", "wanted"), [(300, 40), (2000, 101), (50, 50)])
def test_a_script_picks_what_the_strategy_picks(name, script, items, wanted):
    pool = programs.three_tasks(items)
    ours = make_strategy(name).select(pool, wanted, in_items=True)
    assert sorted(ours.items.tolist()) == sorted(script(pool.confidence, wanted).tolist())


def test_plain_batch_bald_picks_what_ours_picks_while_nothing_is_sampled():
    p = bench.passes_of(60, passes=6, labels=4)
    ours = batch_bald(BatchScores([p]), np.ones(60, dtype=np.int64), 5, np.random.default_rng(0), samples=4**4)
    assert plain.batch_bald(p, 5, samples=4**4).tolist() == ours.tolist()


def test_a_sampled_plain_batch_tells_about_as_much_as_ours():
    p = bench.passes_of(80, passes=6, labels=4)
    ours = batch_bald(BatchScores([p]), np.ones(80, dtype=np.int64), 12, np.random.default_rng(0), samples=300)
    theirs = plain.batch_bald(p, 12, samples=300)
    assert len(set(theirs.tolist())) == 12
    assert plain.information(p, ours) == pytest.approx(plain.information(p, theirs), abs=0.05)


def test_labels_that_name_their_pass_tell_all_and_others_nothing():
    known = np.eye(4)[:, None, :] * (1 - 4e-12) + 1e-12  # four passes, one item, a label of its own each
    assert plain.information(known, np.array([0])) == pytest.approx(math.log(4), abs=1e-3)
    alike = np.full((4, 1, 3), 1 / 3)
    assert plain.information(alike, np.array([0])) == pytest.approx(0, abs=1e-9)


# -- lines -----------------------------------------------------------------------------------------------------------
def test_the_cases_are_there():
    names = {case.name for case in bench.CASES}
    assert names >= {"entropy-100k", "greedy-1m", "disjoint-13k-vs-highs", "disjoint-13k-vs-cbc", "exact-1m"}
    assert names >= {"pareto-1m", "rrf-1m", "ind-1m", "entropy-100k-vs-small-text", "k-center-vs-small-text"}
    assert names >= {"batchbald-5k", "cover-1m"}


def test_a_line_says_what_is_aimed_at_and_whether_it_is_met():
    def line(ratio, difference):
        sides = (lambda: Measured(1.0, {}), lambda: Measured(ratio, {"difference": difference}))
        aims = {"at_least": {"ratio": 3}, "at_most": {"theirs_difference": 0.1}}
        return judged.Judged("c", "", lambda: sides, repeats=1, measure=lambda side: side(), **aims).run()

    assert line(4.0, 0.05)["met"]
    assert not line(2.0, 0.05)["met"]
    assert not line(4.0, 0.2)["met"]
    assert line(4.0, 0.2)["at_most"] == {"theirs_difference": 0.1}


def test_a_case_that_cannot_be_measured_is_not_judged():
    def prepare():
        raise CannotMeasureError("no wheels")

    cases: list[Case] = []
    judged.judged(cases, "c", "", at_least={"ratio": 3})(prepare)
    assert cases[0].run() == {"skipped": "no wheels", "unit": "s", "what": ""}


@pytest.mark.skipif(not judged.STATUS.exists(), reason="the peak of a process's memory is read on Linux only")
def test_a_function_in_a_process_of_its_own_says_what_memory_it_took():
    found = judged.alone(bench.batch, "ours", 30, 3)
    assert found["picks"] == bench.batch("ours", 30, 3)["picks"]
    assert 0.01 < found["peak_gb"] < 2


def test_the_line_of_the_program_holds_both_objectives():
    line = line_of("disjoint-13k-vs-highs", bench.disjoint_vs_highs(50, 60, seconds=20))
    assert line["objective"] == pytest.approx(line["theirs_objective"], abs=1e-6)
    assert line["not_below"]
    assert line["theirs_proven"]
    assert line["slowest"] >= line["median_of_pools"] > 0


def test_the_line_of_a_million_holds_the_exponent_and_the_same_size(in_this_process):
    line = line_of("exact-1m", bench.exact(items=20_000, few=60, budget=100, seconds=20))
    assert line["optimal"]
    assert line["not_below"]
    assert line["same_size_objective"] == pytest.approx(line["theirs_objective"], abs=1e-6)
    assert len(line["seconds_of_sizes"]) == 3
    assert line["same_size_ratio"] == line["theirs"] / line["same_size_seconds"]
    assert line["seconds_of_sizes"][-1] == line["ours"]
    assert (line["items"], line["theirs_items"]) == (20_000, 60)


def test_the_line_of_a_strategy_says_that_both_pick_the_same():
    line = line_of("pareto-1m", bench.strategy_sides("MT-PAR", plain.pareto, 400, 30))
    assert line["in_common"] == 1
    assert line["met"]
    assert "picks" not in line


def test_the_line_of_batch_bald_compares_what_the_batches_tell(in_this_process):
    line = line_of("batchbald-5k", bench.batchbald(items=40, wanted=3))
    assert line["in_common"] == 1
    assert line["more_information"] == 0


def test_the_line_of_covering_says_that_looking_at_every_item_picks_the_same(in_this_process):
    line = line_of("cover-1m", bench.cover(items=2000, few=150, budget=300))
    assert line["in_common"] == 1
    assert len(line["seconds_of_sizes"]) == 3
    assert line["tenth_peak_gb"] == 0.5
    assert line["same_size_ratio"] == line["theirs"] / line["same_size_seconds"]
    assert "picks" not in line


def test_small_text_covers_the_pool_as_well(made_already):
    line = line_of("k-center-vs-small-text", bench.k_center_vs_small_text(120, 8, labelled=5, wanted=6))
    assert line["theirs_version"] == "small-text 1.4.1"
    assert line["radius_difference"] < 1e-6


def test_small_text_finds_the_same_entropy(made_already):
    line = line_of("entropy-100k-vs-small-text", bench.entropy_vs_small_text(50))
    assert line["theirs_largest_difference"] < 1e-6


def test_the_radius_is_that_of_the_farthest_point():
    points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    assert bench.covering_radius(points, points[:1]) == 5
    assert bench.covering_radius(points, points[[0, 2]]) == 1
