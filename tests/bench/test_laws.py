"""What the benchmark of engines compares: fresh tables, a ratio for each, efforts that were fixed before."""

from __future__ import annotations

import json

import numpy as np

from bursar.bench import laws as bench
from bursar.bench.judged import Judged
from bursar.laws.regression import EFFORTS, Effort

TINY = {"operon": Effort(60, 6), "gplearn": Effort(40, 2)}


def case():
    (found,) = [case for case in bench.CASES if case.name == "operon-vs-gplearn"]
    return found


def small_line():
    sides = bench.engines(TINY, rows=60, seeds=(1, 2))
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
    assert line["met"] == (line["error_ratio"] <= 1.05)
    assert "searches" not in line
    assert "theirs_searches" not in line


def test_efforts_are_the_defaults_and_no_table_that_was_looked_at_is_among_the_judged(monkeypatch):
    asked = []

    def spy(engine, effort, rows, seed):
        asked.append((engine, effort, seed))
        return {"seconds": 1.0, "error": 1.0}

    monkeypatch.setattr(bench, "found_by", spy)
    ours, theirs = case().prepare()
    assert {seed for _, _, seed in asked} == {0}  # imports
    asked.clear()
    assert (ours().value, theirs().value) == (1.0, 1.0)
    assert [(engine, seed) for engine, _, seed in asked] == [(e, s) for s in bench.SEEDS for e in bench.ENGINES]
    assert 0 not in bench.SEEDS
    assert {(engine, effort) for engine, effort, _ in asked} == set(EFFORTS.items())


def test_a_planted_form_is_found_well_enough_even_with_little_effort():
    found = bench.found_by("operon", Effort(500, 20), 100, 1)
    assert found["error"] < 4 * bench.NOISE**2
    assert found["seconds"] > 0
