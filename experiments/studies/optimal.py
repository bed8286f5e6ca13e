"""How far are heuristics from the best labelling order, and what does it look like? Paper 4, on its three data sets.

Six kinds of units. A *search* looks for the best order for one learner. *Orders* are what heuristics buy, with and
without matching, and random orders. A *reference* is the greedy order, beside annealing in the same time. A *transfer*
judges the orders that searches and heuristics found for one learner with another, a *mismatch* an order with the other
seeds of its own learner. A *map* lays items out in the plane.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bursar.compute import ProgressCallback, ResultStore, address
from bursar.corpus.formats.format import replacing
from bursar.errors import ConfigError
from bursar.oracle import Judge, LabellingProblem, Order, ScoreCache, SearchPlan, SearchState, quality, search
from bursar.oracle.comparison import plan_of, random_orders
from bursar.oracle.probe import vectors_of
from bursar.oracle.search import SearchOptions, is_current
from bursar.ragged import IntArray
from bursar.selection.modifiers import BINS, by_cluster
from experiments.studies.arms import Place, corpus_of
from experiments.studies.judge_models import ModelJudge, model_judge
from experiments.studies.optimal_annealing import Limits, annealed
from experiments.studies.optimal_encoder import EncoderJudge
from experiments.studies.optimal_findings import analyse
from experiments.studies.optimal_heuristics import StrategyBuyer, features_of
from experiments.studies.optimal_orders import (
    ENTITY_LENGTHS,
    INTENT_LENGTHS,
    OrderCurve,
    bin_counts,
    curve_of,
    curves_of,
    curves_on,
    label_counts,
    length_counts,
    shares_of,
    tsne_places,
)
from experiments.studies.optimal_reference import FoundOrder, reference_order
from experiments.studies.optimal_settings import PAPER, SETTINGS, grid_of
from experiments.studies.study import STUDIES, Study

WAIT = 4 * 3600.0  # seconds, for an order that another worker is looking for
SAVE_SECONDS = 20.0  # between two versions of the state of a search
MAPPED = 500  # test items on a map


def judged(unit: Mapping[str, Any], tell: ProgressCallback, *, place: Place) -> dict[str, Any]:
    """One unit, whatever kind it is."""
    begun = time.monotonic()
    problem = problem_of(unit["problem"], unit["draw"], place.data)
    judge = judge_of(unit["problem"], unit["draw"], unit["learner"], unit["seed"], place.data)
    result = KINDS[unit["kind"]](unit, problem, judge, tell, place)
    return {**result, "seconds": round(time.monotonic() - begun, 1)}


@lru_cache(maxsize=2)
def problem_of(name: str, draw: int, data: Path) -> LabellingProblem:
    """The five sets of a draw."""
    setting = SETTINGS[name]
    corpus = corpus_of(setting.data, data, (setting.task,))
    return LabellingProblem.draw(
        corpus, setting.sizes, shape=(setting.batches, setting.size), metric=setting.metric, seed=draw
    )


@lru_cache(maxsize=2)
def judge_of(name: str, draw: int, learner: str, seed: int, data: Path) -> ModelJudge:
    """The judge of a learner; the seed is that of its trainings."""
    problem = problem_of(name, draw, data)
    return EncoderJudge(problem, seed) if learner == "encoder" else model_judge(learner, problem, seed=seed)


def where_of(unit: Mapping[str, Any], place: Place) -> str:
    """The address of a unit's result."""
    return address(partial(judged, place=place), unit)


# -- one kind after the other ----------------------------------------------------------------------------------------
def searched(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """The best order that is found; a search that was interrupted goes on from its last state."""
    plan = SearchPlan(unit["steps"], unit["greedy_steps"], unit["cooling"])
    file, begun = place.runs / "searches" / f"{where_of(unit, place)}.json", time.monotonic()
    memory, last = ScoreCache(judge), time.monotonic()
    state, before = _resumed(file, memory)

    def told(now: SearchState) -> None:
        nonlocal last
        tell(("step", now.step / plan.all_steps, float(quality(now.best_curve))))
        if time.monotonic() - last > SAVE_SECONDS:
            last = time.monotonic()
            _keep(file, now, _effort(memory, before, begun))

    found = search(
        judge, problem.shape, plan, seed=unit["seed"], options=SearchOptions(state=state, callback=told, cache=memory)
    )
    effort = _effort(memory, before, begun)
    file.unlink(missing_ok=True)
    return {
        "best": _order(judge, problem, found.best),
        "history": _thinned(found.history),
        "annealed": round(max(best for step, _, best in found.history if step <= plan.steps), 5),
        "steps": {"accepted": found.accepted, "dropped": found.dropped, "spared": found.spared, **effort},
    }


def _effort(memory: ScoreCache, before: Mapping[str, float], begun: float) -> dict[str, float]:
    """What a search took so far, in all its pieces."""
    here = {"asked": memory.asked, "trained": memory.trained, "seconds": round(time.monotonic() - begun, 1)}
    return {name: before.get(name, 0) + value for name, value in here.items()}


def _keep(file: Path, state: SearchState, effort: Mapping[str, float]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as out:
        json.dump({"state": state.as_json(), "effort": dict(effort)}, out)


def _resumed(file: Path, memory: ScoreCache) -> tuple[SearchState | None, dict[str, float]]:
    """Where a search was; nowhere, if the judge now says other things of the orders that it was at."""
    if not file.exists():
        return None, {}
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        state = SearchState.from_json(kept["state"])
        return (state, dict(kept["effort"])) if is_current(state, memory) else (None, {})
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # of another version, or damaged
        return None, {}


def _thinned(history: Sequence[tuple[int, float, float]], points: int = 200) -> list[list[float]]:
    """So many points of a history at most, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(history) - 1, min(points, len(history))).round().astype(int))
    return [[step, round(now, 5), round(best, 5)] for step, now, best in (history[at] for at in chosen)]


def _order(judge: Judge, problem: LabellingProblem, order: Order) -> dict[str, Any]:
    return _orders(judge, problem, [order])[0]


def _orders(judge: Judge, problem: LabellingProblem, orders: Sequence[Order]) -> list[dict[str, Any]]:
    """Orders, their curves with the warm start's score first, and what they choose."""
    curves = curves_on(judge, orders, ("validation", "test"))
    found = []
    for at, order in enumerate(orders):
        shares = {of: shares_of(order, counts) for of, counts in counts_of(problem).items()}
        found.append(
            {
                "order": order.batches.tolist(),
                **{part: _listed(some[at]) for part, some in curves.items()},
                "shares": {of: some.labelled.round(4).tolist() for of, some in shares.items()},
                "distance": {of: round(some.distance, 5) for of, some in shares.items()},
            }
        )
    return found


def _listed(curve: OrderCurve) -> list[float]:
    return [curve.start, *curve.scores.tolist()]


@lru_cache(maxsize=2)
def counts_of(problem: LabellingProblem) -> dict[str, dict[str, IntArray]]:
    """How inputs and labels are counted: inputs by length, images by cluster (paper 4, Figures 7 to 9)."""
    (task,) = problem.tasks
    if problem.corpus.images is None:
        inputs = length_counts(problem, ENTITY_LENGTHS if task == "entities" else INTENT_LENGTHS)
    else:
        parts = ("pool", "warm", "test")
        vectors = vectors_of(problem)
        inputs = bin_counts(
            dict(zip(parts, by_cluster([vectors[part].astype(np.float64) for part in parts]), strict=True)), BINS
        )
    return {"inputs": inputs, "labels": label_counts(problem, task)}


def bought(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """What heuristics buy, and random orders."""
    buyer = StrategyBuyer(judge, problem, unit["seed"], features_of(problem))
    orders = buyer.orders(unit["strategies"], lambda what, done: tell((what, done)))
    found = dict(zip(unit["strategies"], _orders(judge, problem, orders), strict=True))
    reference = {of: _share(counts["test"]) for of, counts in counts_of(problem).items()}
    return {
        "orders": found,
        "reference": reference,
        "bins": bin_names(problem),
        "random": _orders(judge, problem, randoms_of(problem, unit["random"])),
    }


def bin_names(problem: LabellingProblem) -> dict[str, list[str]]:
    """What the bins are called by which inputs and labels are counted."""
    (task,) = problem.tasks
    labels = list(problem.corpus.schema[task].labels)
    if problem.corpus.images is not None:
        return {"inputs": [f"cluster {number}" for number in range(1, BINS + 1)], "labels": labels}
    starts = ENTITY_LENGTHS if task == "entities" else INTENT_LENGTHS
    between = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(starts)]
    lengths = [f"under {starts[0]}", *between, f"{starts[-1]} and more"]
    spans = len(counts_of(problem)["labels"]["pool"][0]) > len(labels)
    return {"inputs": [f"{length} words" for length in lengths], "labels": ["no label"] * spans + labels}


def _share(counts: IntArray) -> list[float]:
    found: list[float] = (counts.sum(axis=0) / counts.sum()).round(4).tolist()
    return found


def randoms_of(problem: LabellingProblem, count: int) -> list[Order]:
    """Random orders to compare with: the same for all learners."""
    return random_orders(len(problem.pool), problem.batches, problem.size, seed=0, count=count)


def referred(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """The greedy order, and what annealing finds in the same time and with as many sets."""
    buyer = StrategyBuyer(judge, problem, unit["seed"], features_of(problem))
    greedy = reference_order(buyer, progress=lambda what, done: tell((what, done / 2)))
    tell(("annealing", 0.5))

    def anneal(steps: int, seconds: float = math.inf, judged: float = math.inf) -> FoundOrder:
        # A plan that is cut off never gets cold, so one that fits is asked for; the limit is for a guess that is off.
        plan = plan_of(max(steps, 10), max(steps // 10, 1))
        return annealed(judge, problem.shape, plan, Limits(seconds, judged), seed=unit["seed"])

    as_many = anneal(int(greedy.judged / (problem.batches / 2)), judged=greedy.judged)
    as_long = anneal(int(greedy.seconds * as_many.steps / as_many.seconds / 1.1), seconds=greedy.seconds)
    found = {"greedy": greedy, "annealing, as long": as_long, "annealing, as many sets": as_many}
    return {
        name: {
            **_order(judge, problem, some.order),
            "judged": some.judged,
            "steps": some.steps,
            "seconds": round(some.seconds, 2),
        }
        for name, some in found.items()
    } | {"by": list(greedy.by)}


def transferred(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """Orders of other learners, judged with this one."""
    wanted = {
        (source, what): order for source in unit["among"] for what, order in _orders_of(unit, source, place, tell)
    }
    found: dict[str, dict[str, list[float]]] = {}
    for done, ((source, what), order) in enumerate(wanted.items()):
        tell((f"{source}, {what}", done / len(wanted)))
        found.setdefault(source, {})[what] = _tested(judge, order)
    return {"orders": found, "random": [_listed(c) for c in curves_of(judge, randoms_of(problem, unit["random"]))]}


def mapped(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """Where the first batches of the best order and of a heuristic lie, among the warm start and test items."""
    vectors = vectors_of(problem)
    shown = {"pool": vectors["pool"], "warm": vectors["warm"], "test": vectors["test"][:MAPPED]}
    tell(("laying out the map", 0.2))
    places = tsne_places(shown, seed=unit["seed"])
    found = {part: some.round(2).tolist() for part, some in places.items() if part != "pool"}
    orders = dict(_orders_of(unit, unit["learner"], place, tell))
    return {
        "places": found,
        "orders": {name: places["pool"][order.batches[:5]].round(2).tolist() for name, order in orders.items()},
    }


def mismatched(
    unit: Mapping[str, Any], problem: LabellingProblem, judge: ModelJudge, tell: ProgressCallback, place: Place
) -> dict[str, Any]:
    """The best order of one seed, judged with trainings of other seeds."""
    plan = {name: unit[name] for name in PAPER}
    own = {**{name: unit[name] for name in ("problem", "learner", "draw", "seed")}, "kind": "search", **plan}
    order = Order(np.array(_stored(own, place, tell)["best"]["order"]))
    judges = {
        seed: judge_of(unit["problem"], unit["draw"], unit["learner"], seed, place.data) for seed in unit["trained"]
    }
    return {"trained": {str(seed): _tested(other, order) for seed, other in judges.items()}}


def _tested(judge: Judge, order: Order) -> list[float]:
    return _listed(curve_of(judge, order))


def _orders_of(
    unit: Mapping[str, Any], source: str, place: Place, tell: ProgressCallback
) -> Iterator[tuple[str, Order]]:
    """The best order of a learner, and that of its best heuristic on validation."""
    same = [other for other in grid_of(unit["problem"]) if (other["learner"], other["draw"]) == (source, unit["draw"])]
    searches = [other for other in same if other["kind"] == "search" and other["seed"] == unit["seed"]]
    longest = max(int(other["steps"]) for other in searches)
    found = [_stored(other, place, tell)["best"] for other in searches if other["steps"] == longest]
    yield "best", Order(np.array(max(found, key=lambda best: float(np.mean(best["validation"][1:])))["order"]))
    orders = _stored(next(other for other in same if other["kind"] == "orders"), place, tell)["orders"]
    plain = {name: order for name, order in orders.items() if not name.endswith("+IDMR")}
    heuristic = max(plain, key=lambda name: float(np.mean(plain[name]["validation"][1:])))
    yield heuristic, Order(np.array(plain[heuristic]["order"]))


def _stored(unit: Mapping[str, Any], place: Place, tell: ProgressCallback) -> dict[str, Any]:
    """What an earlier unit found; another worker may still be at it."""
    store, missing, begun = ResultStore(place.runs / "results"), object(), time.monotonic()
    while (result := store.get(where_of(unit, place), missing)) is missing:
        if time.monotonic() - begun > WAIT:
            raise ConfigError(
                f"an order of {unit['learner']} is wanted, and its {unit['kind']} with seed {unit['seed']} is open",
                fix="run all units of the study",
            )
        tell((f"waiting for the {unit['kind']} of {unit['learner']}", 0.0))
        time.sleep(5)
    found: dict[str, Any] = result
    return found


KINDS = {
    "search": searched,
    "orders": bought,
    "reference": referred,
    "transfer": transferred,
    "mismatch": mismatched,
    "map": mapped,
}


for _name, _title in (
    ("images", "How far from the best order are heuristics on images?"),
    ("intents", "How far from the best order are heuristics on intents?"),
    ("entities", "How far from the best order are heuristics on entities?"),
):
    STUDIES.add(
        f"optimal-{_name}",
        Study(
            f"optimal-{_name}",
            _title,
            "paper 4, section 6",
            grid=lambda scale, name=_name: grid_of(name),  # type: ignore[misc]
            work=judged,
            analyse=analyse,
            reads=(SETTINGS[_name].data,),
            scales=("small",),
        ),
    )
