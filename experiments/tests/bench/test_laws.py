"""What the benchmark of engines compares: fresh tables, a ratio for each, efforts that were fixed before."""

from __future__ import annotations

import json

import numpy as np

from bursar.laws.regression import EFFORTS, Effort
from experiments.bench import laws as bench
from experiments.bench.judged import Judged

RUNGS = (Effort(40, 4), Effort(60, 6))
GPLEARN = Effort(40, 2)


def case():
    (found,) = [case for case in bench.CASES if case.name == "operon-vs-gplearn"]
    return found


def small_line():
    sides = bench.engines(RUNGS, GPLEARN, rows=60, seeds=(1, 2))
    return Judged(
        "small",
        "",
        lambda: sides,
        repeats=1,
        measure=lambda side: side(),
        compare=case().compare,
        at_most=case().at_most,
    ).run()


def test_the_line_has_the_median_of_the_ratios_of_every_table():
    line = json.loads(json.dumps(small_line()))
    assert len(line["ratios"]) == len(line["error_ratios"]) == 2
    assert line["ratio"] == np.median(line["ratios"])
    assert line["error_ratio"] == np.median(line["error_ratios"])
    assert line["met"] == (line["error_ratio"] <= 1)
    assert not {"searches", "whole_searches", "theirs_searches"} & set(line)


def spied(monkeypatch, errors):
    """Searches that take a second each and find these errors, by engine and effort; what was asked for."""
    asked = []

    def spy(engine, effort, rows, seed):
        asked.append((engine, effort, seed))
        return {"seconds": 1.0, "error": errors.get((engine, effort), 1.0)}

    monkeypatch.setattr(bench, "found_by", spy)
    return asked


def test_efforts_are_fixed_and_no_table_that_was_looked_at_is_among_the_judged(monkeypatch):
    asked = spied(monkeypatch, {})
    ours, theirs = case().prepare()
    assert {seed for _, _, seed in asked} == {0}  # imports
    asked.clear()
    assert (ours().value, theirs().value) == (1.0, 1.0)
    assert [seed for _, _, seed in asked] == [seed for seed in bench.SEEDS for _ in range(3)]
    assert 0 not in bench.SEEDS
    assert {(engine, effort) for engine, effort, _ in asked} == {*EFFORTS.items(), ("operon", bench.RUNGS[0])}
    assert bench.RUNGS[-1] == EFFORTS["operon"]


def test_searches_that_did_not_reach_the_error_are_counted_too(monkeypatch):
    first, second, third, _ = bench.RUNGS
    asked = spied(monkeypatch, {("operon", first): 3.0, ("operon", second): 2.0, ("operon", third): 0.9})
    assert bench.reached(1.0, bench.RUNGS, 60, 1) == {"seconds": 3.0, "error": 0.9}
    assert [effort for _, effort, _ in asked] == [first, second, third]


def test_an_error_that_is_never_reached_is_told_as_it_is(monkeypatch):
    spied(monkeypatch, {("operon", effort): 2.0 for effort in bench.RUNGS})
    assert bench.reached(1.0, bench.RUNGS, 60, 1) == {"seconds": len(bench.RUNGS), "error": 2.0}


def test_a_planted_form_is_found_well_enough_even_with_little_effort():
    found = bench.found_by("operon", Effort(500, 20), 100, 1)
    assert found["error"] < 4 * bench.NOISE**2
    assert found["seconds"] > 0
