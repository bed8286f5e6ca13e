"""Confidence, spending and picking against the plain loops, integer programming and small-text."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.ragged import FloatArray, IntArray
from bursar.selection import Candidates, greedy_by_confidence, make_strategy
from bursar.selection.diversify import BatchScores, batch_bald, k_center
from bursar.selection.spend import spend_disjoint
from bursar.tasks import Beliefs
from bursar.uncertainty import entropy_confidence
from experiments.bench import plain
from experiments.bench.covering import cover_pool, doubtful_units, plain_cover
from experiments.bench.harness import Case, Measured, Sides, bench_case
from experiments.bench.judged import alone, judged, median, require_memory
from experiments.bench.peers.environments import python_for
from experiments.bench.programs import (
    CBC,
    Found,
    paper_program,
    run_peer,
    solve_by_cbc,
    solve_by_highs,
    subset_program,
    three_tasks,
    utterances,
)

CASES: list[Case] = []
PEERS = Path(__file__).parent / "peers"
SMALL_TEXT = PEERS / "small_text_queries.py"


# -- confidence ------------------------------------------------------------------------------------------------------
@bench_case(CASES, "entropy-100k", "entropy confidence of 100,000 items × 10 labels, arrays against a row at a time", 3)
def entropy() -> Sides:
    """The row-by-row way is what the field's libraries did for years."""
    p, beliefs = _beliefs(100_000)

    def theirs() -> Any:
        rows = p.tolist()
        return [1 + sum(x * math.log(x) for x in row if x > 0) / math.log(len(row)) for row in rows]

    return lambda: entropy_confidence(beliefs), theirs


def _beliefs(items: int) -> tuple[NDArray[np.float32], Beliefs]:
    """Probabilities of 10 labels."""
    p = np.random.default_rng(0).dirichlet(np.ones(10), items).astype(np.float32)
    return p, Beliefs.of(p, np.ones(items, dtype=np.int64))


@judged(
    CASES,
    "entropy-100k-vs-small-text",
    "entropy confidence of 100,000 items × 10 labels, against small-text's PredictionEntropy",
    at_least={"ratio": 100},
    at_most={"theirs_largest_difference": 1e-5},
)
def entropy_vs_small_text(items: int = 100_000) -> Sides:
    """Both are handed the probabilities; small-text's clock runs in its own process, around its scoring alone."""
    python = python_for(PEERS / "small_text_round.py")
    p, beliefs = _beliefs(items)

    def ours() -> Measured:
        return Measured(median(lambda: entropy_confidence(beliefs), 9)[0], {"items": items})

    def theirs() -> Measured:
        with tempfile.TemporaryDirectory(prefix="bursar-bench-") as folder:
            given, scores = Path(folder, "given.npz"), Path(folder, "scores.npy")
            np.savez(given, probabilities=p)
            said = run_peer(python, SMALL_TEXT, "entropy", str(given), "--scores", str(scores))
            confidence = 1 - np.load(scores) / math.log(p.shape[1])
        apart = float(np.abs(confidence - entropy_confidence(beliefs)).max())
        return Measured(said["seconds"], {"version": said["version"], "largest_difference": apart})

    return ours, theirs


# -- spending --------------------------------------------------------------------------------------------------------
@bench_case(CASES, "greedy-1m", "greedy spending on 1,000,000 items, sweeps against a loop over the ranking", 3)
def greedy() -> Sides:
    """Both skip what cannot be afforded and go on; both start from the ranking."""
    rng = np.random.default_rng(0)
    price = rng.integers(5, 60, 1_000_000)
    ranking = rng.permutation(1_000_000)

    def theirs() -> Any:
        left, bought = 500_000, []
        for item in ranking.tolist():
            if price[item] <= left:
                bought.append(item)
                left -= int(price[item])
        return bought

    return lambda: greedy_by_confidence(ranking, price, 500_000), theirs


def _not_below(line: dict[str, Any]) -> dict[str, Any]:
    """Whether our objective is at least theirs: it should never be below what anybody finds."""
    ours, theirs = line["objective"], line["theirs_objective"]
    return {"not_below": theirs is None or ours >= theirs - 1e-9}


def exactly(pool: Candidates, budget: int, times: int) -> Measured:
    """Spending exactly, from confidences to a selection with its certificate."""
    taken, found = median(lambda: spend_disjoint(pool, 1 - pool.confidence, budget), times)
    proof = found.certificate
    about = {"objective": proof.objective, "spent": found.total, "optimal": proof.optimal, "relative_gap": proof.gap}
    return Measured(taken, about)


def _counted(found: Found, seconds: float) -> Measured:
    """What a solver needed; if it proved nothing, no more than it was allowed, for it may not stop at once."""
    counted = found.seconds if found.proven else min(found.seconds, seconds)
    return Measured(counted, found.about() | {"seconds_in_all": found.seconds})


@judged(
    CASES,
    "disjoint-13k-vs-highs",
    "any of 2 tasks of 13,000 items for a budget of 500, against paper 1's program solved by HiGHS in at most 60 s",
    at_least={"ratio": 500, "not_below": True},
    compare=_not_below,
)
def disjoint_vs_highs(items: int = 13_000, budget: int = 500, seconds: float = 60) -> Sides:
    """All of our work is timed, of theirs solving alone."""
    pool, ours = _disjoint(items, budget)
    program = paper_program(pool, budget)
    return ours, lambda: _counted(solve_by_highs(pool, program, seconds), seconds)


@judged(
    CASES,
    "disjoint-13k-vs-cbc",
    "any of 2 tasks of 13,000 items for a budget of 500, against paper 1's program solved by CBC in at most 60 s",
    at_least={"ratio": 500, "not_below": True},
    compare=_not_below,
)
def disjoint_vs_cbc(items: int = 13_000, budget: int = 500, seconds: float = 60) -> Sides:
    """All of our work is timed, of theirs solving alone."""
    python = python_for(CBC)
    pool, ours = _disjoint(items, budget)
    program = paper_program(pool, budget)
    return ours, lambda: _counted(solve_by_cbc(python, pool, program, seconds), seconds)


def _disjoint(items: int, budget: int) -> tuple[Candidates, Callable[[], Measured]]:
    """A pool, and our side of it: beside its own seconds those of ten such pools, for some are harder than others."""
    pool, others = utterances(items), [utterances(items, seed) for seed in range(1, 10)]

    def ours() -> Measured:
        found = exactly(pool, budget, times=9)
        each = [found.value, *(exactly(other, budget, times=1).value for other in others)]
        return Measured(found.value, {**found.about, "median_of_pools": float(np.median(each)), "slowest": max(each)})

    return pool, ours


def exact_pools(items: int, budget: int, pools: int) -> dict[str, Any]:
    """Several pools of three tasks spent on exactly, each once: the median of their seconds, and the worst gap."""
    spend_disjoint(small := three_tasks(1000, seed=pools), 1 - small.confidence, budget)
    taken, found = [], []
    for seed in range(pools):
        pool = three_tasks(items, seed)
        start = time.perf_counter()
        found.append(spend_disjoint(pool, 1 - pool.confidence, budget).certificate)
        taken.append(time.perf_counter() - start)
    proofs = [proof for proof in found if proof is not None]
    return {
        "seconds": float(np.median(taken)),
        "slowest": max(taken),
        "optimal": all(proof.optimal for proof in proofs),
        "relative_gap": max(proof.gap or 0.0 for proof in proofs),
        "pools": pools,
    }


def _at_the_same_size(line: dict[str, Any]) -> dict[str, Any]:
    ratio = line["theirs"] / line["same_size_seconds"]
    return {"same_size_ratio": ratio, **_not_below(line | {"objective": line["same_size_objective"]})}


@judged(
    CASES,
    "exact-1m",
    "any of 3 tasks of 1,000,000 items for a budget of 20,000, against HiGHS on the first 20,000 items in at most 30 s",
    at_least={"not_below": True, "optimal": True},
    at_most={"ours": 5, "peak_gb": 2},
    compare=_at_the_same_size,
)
def exact(items: int = 1_000_000, few: int = 20_000, budget: int = 20_000, seconds: float = 30) -> Sides:
    """Sizes in processes of their own; the exponent is the slope of log seconds on log items. Ours at theirs' size too.

    The program for HiGHS is not the paper's, which charges subsets of three tasks wrongly.
    """
    require_memory()
    part = three_tasks(items).take(np.arange(few))
    program = subset_program(part, budget)

    def ours() -> Measured:
        sizes = [items // 100, items // 10, items]
        runs = [alone(exact_pools, size, budget, k) for size, k in zip(sizes, (9, 5, 3), strict=True)]
        exponent = np.polyfit(np.log(sizes), np.log([run["seconds"] for run in runs]), 1)[0]
        about = {name: value for name, value in runs[-1].items() if name != "seconds"}
        about |= {"items": items, "exponent": float(exponent), "seconds_of_sizes": [run["seconds"] for run in runs]}
        same = exactly(part, budget, times=5)
        about |= {"same_size_seconds": same.value, "same_size_objective": same.about["objective"]}
        return Measured(runs[-1]["seconds"], about)

    def theirs() -> Measured:
        found = _counted(solve_by_highs(part, program, seconds), seconds)
        return Measured(found.value, {"items": few, **found.about})

    return ours, theirs


# -- strategies ------------------------------------------------------------------------------------------------------
def _in_common(line: dict[str, Any]) -> dict[str, Any]:
    """The share of the picks that both sides have."""
    ours, theirs = set(line.pop("picks")), set(line.pop("theirs_picks"))
    return {"in_common": len(ours & theirs) / len(ours)}


def strategy_sides(name: str, script: Callable[[FloatArray, int], IntArray], items: int, wanted: int) -> Sides:
    """A strategy's whole work, from a pool to a checked selection, and a script's, from confidences to positions."""
    pool, strategy = three_tasks(items), make_strategy(name)

    def ours() -> Measured:
        taken, found = median(lambda: strategy.select(pool, wanted, in_items=True), 3)
        return Measured(taken, {"items": items, "picks": found.items.tolist()})

    def theirs() -> Measured:
        start = time.perf_counter()
        picks = script(pool.confidence, wanted)
        return Measured(time.perf_counter() - start, {"items": items, "picks": picks.tolist()})

    return ours, theirs


def _strategy_case(case: str, name: str, against: str, script: Callable[[FloatArray, int], IntArray]) -> None:
    judged(
        CASES,
        case,
        f"{name} picks 10,000 of 1,000,000 items × 3 tasks, against a script with {against}, which checks nothing",
        at_least={"in_common": 1},
        at_most={"ours": 3},
        compare=_in_common,
    )(lambda: strategy_sides(name, script, 1_000_000, 10_000))


_strategy_case("pareto-1m", "MT-PAR", "moocore's rank of every item", plain.pareto)
_strategy_case("rrf-1m", "MT-RRF", "scipy's ranks", plain.fused_ranks)
_strategy_case("ind-1m", "MT-IND", "sorted lists and a set", plain.independent)


# -- batches that differ ---------------------------------------------------------------------------------------------
def _same_radius(line: dict[str, Any]) -> dict[str, Any]:
    apart = abs(line["radius"] - line["theirs_radius"]) / line["theirs_radius"]
    return _in_common(line) | {"radius_difference": apart}


@judged(
    CASES,
    "k-center-vs-small-text",
    "k-centre of 200 from 10,000 items × 256 beside 100 labelled ones, against small-text's greedy core-set",
    at_least={"ratio": 50},
    at_most={"radius_difference": 1e-3},
    compare=_same_radius,
)
def k_center_vs_small_text(items: int = 10_000, width: int = 256, labelled: int = 100, wanted: int = 200) -> Sides:
    """Points in single precision around 50 centres, as sentences lie around topics. ``radius`` is the farthest left."""
    python = python_for(PEERS / "small_text_round.py")
    rng = np.random.default_rng(0)
    topics = 2 * rng.normal(size=(50, width))
    points = (topics[rng.integers(0, 50, items + labelled)] + rng.normal(size=(items + labelled, width))).astype(
        np.float32
    )
    pool, known, price = points[:items], points[items:], np.ones(items, dtype=np.int64)

    def about(picks: list[int]) -> dict[str, Any]:
        return {"picks": picks, "radius": covering_radius(pool, np.concatenate([known, pool[picks]]))}

    def ours() -> Measured:
        taken, picks = median(lambda: k_center(pool, price, wanted, centres=known), 5)
        return Measured(taken, about(picks.tolist()))

    def theirs() -> Measured:
        with tempfile.TemporaryDirectory(prefix="bursar-bench-") as folder:
            given = Path(folder, "given.npz")
            np.savez(given, points=points, labelled=labelled, wanted=wanted)
            said = run_peer(python, SMALL_TEXT, "coreset", str(given))
        return Measured(said["seconds"], {"version": said["version"], **about(said["picks"])})

    return ours, theirs


def covering_radius(points: Any, centres: Any) -> float:
    """How far the point that is farthest from all centres is from its nearest, without cancellation."""
    points, centres = points.astype(np.float64), centres.astype(np.float64)
    nearest = np.full(len(points), np.inf)
    for centre in centres:
        nearest = np.minimum(nearest, ((points - centre) ** 2).sum(axis=1))
    return float(np.sqrt(nearest.max()))


def passes_of(items: int, passes: int = 20, labels: int = 10) -> FloatArray:
    """Probabilities of several stochastic passes, which agree on most items: (passes, items, labels)."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(items, labels)) + 0.5 * rng.normal(size=(passes, items, labels))
    p = np.exp(logits)
    found: FloatArray = p / p.sum(axis=2, keepdims=True)
    return found


def batch(which: str, items: int, wanted: int) -> dict[str, Any]:
    """A batch by our BatchBALD or by the plain one, and its seconds."""
    p = passes_of(items)
    price, rng = np.ones(items, dtype=np.int64), np.random.default_rng(0)
    start = time.perf_counter()
    picks = batch_bald(BatchScores([p]), price, wanted, rng) if which == "ours" else plain.batch_bald(p, wanted)
    return {"seconds": time.perf_counter() - start, "picks": picks.tolist()}


def _more_information(line: dict[str, Any]) -> dict[str, Any]:
    return _in_common(line) | {"more_information": line["information"] - line["theirs_information"]}


@judged(
    CASES,
    "batchbald-5k",
    "BatchBALD of 50 from 5,000 items × 20 passes × 10 labels, against scoring every item at every pick",
    at_least={"more_information": -0.02},  # both draw samples, and so does its measure
    at_most={"peak_gb": 1},
    compare=_more_information,
)
def batchbald(items: int = 5000, wanted: int = 50) -> Sides:
    """Both in processes of their own, once. ``information`` is what the labels of the batch tell about the passes."""
    require_memory()

    def measured(which: str) -> Measured:
        said = alone(batch, which, items, wanted)
        told = plain.information(passes_of(items), np.array(said["picks"]))
        return Measured(said["seconds"], {"peak_gb": said["peak_gb"], "information": told, "picks": said["picks"]})

    return lambda: measured("ours"), lambda: measured("theirs")


def _same_picks(line: dict[str, Any]) -> dict[str, Any]:
    return _in_common(line) | {"same_size_ratio": line["theirs"] / line["same_size_seconds"]}


@judged(
    CASES,
    "cover-1m",
    "COVER buys about 300 of 1,000,000 items × 2 tasks, against looking at each of 2,000 items for every pick",
    at_least={"in_common": 0.99, "same_size_ratio": 10},
    at_most={"core_seconds": 90, "tenth_core_seconds": 10, "tenth_peak_gb": 2, "exponent": 1.1},
    compare=_same_picks,
)
def cover(items: int = 1_000_000, few: int = 2000, budget: int = 7500) -> Sides:
    """Sizes in processes of their own, of which the vectors are most of the memory. Ours at theirs' size too.

    ``core_seconds`` are of the processor, ``tenth_…`` of a tenth of the items.
    """
    require_memory()

    def ours() -> Measured:
        sizes = [items // 100, items // 10, items]
        runs = [alone(cover_pool, size, budget) for size in sizes]
        exponent = np.polyfit(np.log(sizes), np.log([run["core_seconds"] for run in runs]), 1)[0]
        about = {name: runs[-1][name] for name in ("core_seconds", "peak_gb", "objective")}
        about |= {f"tenth_{name}": runs[1][name] for name in ("core_seconds", "peak_gb")}
        about |= {"items": items, "exponent": float(exponent), "seconds_of_sizes": [run["seconds"] for run in runs]}
        same = cover_pool(few, budget)
        return Measured(runs[-1]["seconds"], about | {"same_size_seconds": same["seconds"], "picks": same["picks"]})

    def theirs() -> Measured:
        pool = doubtful_units(few)
        start = time.perf_counter()
        picks = plain_cover(pool, budget)
        return Measured(time.perf_counter() - start, {"items": few, "picks": picks.tolist()})

    return ours, theirs
