"""Orders that Bursar's own strategies buy, batch after batch, at equal prices.

Paper 4's heuristics have these names here:

==========================================  ====================================================
Max-Ent.                                    ``MAX-ENT``
BALD, BatchBALD                             ``BALD``, ``BATCHBALD``
BALD, as its code has it for intents        ``VARIATION-RATIO`` (errata 27)
Min-Conf., Norm.-Min-Conf.                  ``MIN-CONF``, ``NORM-MIN-CONF``
Longest                                     ``LONGEST``
any of them with matching (section 6.5)     the same with ``+IDMR``
==========================================  ====================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.oracle.judge import Judge
from bursar.oracle.orders import Order
from bursar.oracle.probe import vectors_of
from bursar.oracle.problem import Problem
from bursar.ragged import FloatArray, IntArray
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, Strategy, make_strategy
from bursar.tasks import Beliefs, Classification, Prices
from bursar.uncertainty import MEASURES, confidences

HEURISTICS: dict[str, tuple[str, ...]] = {  # paper 4, Table 1
    "images": ("MAX-ENT", "BALD", "BATCHBALD"),
    "intents": ("MAX-ENT", "BALD", "VARIATION-RATIO"),
    "entities": ("MIN-CONF", "NORM-MIN-CONF", "LONGEST"),
}
SEEN = ("pool", "warm", "aside")  # parts whose inputs strategies may look at

Sides = Mapping[str, ItemFeatures]  # of the items of those parts


def heuristic_order(
    judge: Judge, problem: Problem, strategy: str | Strategy, *, seed: int = 0, features: Sides | None = None
) -> Order:
    """The order in which a strategy buys, each batch by what the model of all earlier ones believes.

    A name with ``+IDMR`` matches lengths of texts and clusters of images. Give ``features``, those of
    ``features_of``, where many orders of one problem are wanted.

    >>> from bursar.oracle.probe import ProbeJudge
    >>> from bursar.simulation import assistant_corpus
    >>> sizes = {"pool": 30, "warm": 10, "aside": 10, "validation": 20, "test": 20}
    >>> corpus = assistant_corpus(100).with_tasks(["intent"])
    >>> problem = Problem.draw(corpus, sizes, batches=2, size=5, metric="accuracy", seed=0)
    >>> judge = ProbeJudge.of(problem, penalty=1.0)
    >>> heuristic_order(judge, problem, "BALD+IDMR").batches.shape
    (2, 5)
    """
    return heuristic_orders(judge, problem, [strategy], seed=seed, features=features)[0]


def heuristic_orders(
    judge: Judge,
    problem: Problem,
    strategies: Sequence[str | Strategy],
    *,
    seed: int = 0,
    features: Sides | None = None,
    progress: Progress = no_progress,
) -> list[Order]:
    """The orders of several strategies, batch by batch side by side: the judge trains the models of all together."""
    if judge.pool != len(problem.pool):
        raise ConfigError(
            f"the judge knows a pool of {judge.pool} items and the problem has {len(problem.pool)}",
            fix="make the judge from this problem",
        )
    chosen = [strategy_for(problem, strategy) for strategy in strategies]
    needs = {need for strategy in chosen for need in strategy.needs}
    sides = features_of(problem, needs) if features is None else features
    bought: list[IntArray] = [np.zeros(0, dtype=np.int64) for _ in chosen]
    for batch in range(problem.batches):
        drawn = seed_of(seed, batch)
        judge.learn([asked_of(judge, b) for s, b in zip(chosen, bought, strict=True) if passes_for(s)])
        for at, strategy in enumerate(chosen):
            progress(f"batch {batch + 1}, {strategy.name}", (batch + at / len(chosen)) / problem.batches)
            beliefs = beliefs_of(judge, bought[at], passes_for(strategy), drawn)
            left, candidates = candidates_of(problem, strategy, beliefs, bought[at], sides)
            more = np.sort(left[buy(strategy, candidates, problem.size, drawn)])
            bought[at] = np.concatenate([bought[at], more])
    return [Order.of(items.reshape(problem.batches, problem.size)) for items in bought]


def strategy_for(problem: Problem, strategy: str | Strategy) -> Strategy:
    """The strategy of a name, matching by what the items have: clusters of images, lengths of texts."""
    if isinstance(strategy, str):
        strategy = make_strategy(strategy, bins="length" if problem.corpus.images is None else "cluster")
    if strategy.once:
        raise ConfigError(f"{strategy.name} spends all money at once", fix="use a strategy that buys round by round")
    return strategy


def features_of(
    problem: Problem,
    needs: Iterable[str] = ("words", "vectors"),
    vectors: Mapping[str, NDArray[np.floating[Any]]] | None = None,
) -> dict[str, ItemFeatures]:
    """Lengths, places and labels of the items of pool, warm start and aside, as far as they are needed.

    ``vectors`` are where items lie, part by part; without them they are those of the probe. Labels of the pool are
    shown to a strategy only of what it has bought.
    """
    needs = frozenset(needs)
    if "vectors" in needs and vectors is None:
        vectors = vectors_of(problem, parts=SEEN)  # no strategy looks at held-out items
    return {
        part: ItemFeatures(
            words=problem.parts[part].words if "words" in needs else None,
            vectors=vectors[part] if "vectors" in needs and vectors is not None else None,
            labels=_known_labels(problem, part) if "labels" in needs else None,
        )
        for part in SEEN
    }


# -- one batch -------------------------------------------------------------------------------------------------------
def seed_of(seed: int, *place: int) -> int:
    """A seed of its own for every place in a run."""
    return int(np.random.default_rng([seed, *place, 73]).integers(2**31))


def passes_for(strategy: Strategy) -> int:
    """How often a model is asked for a strategy; never, if it looks at none."""
    return MEASURES[strategy.measure].passes if strategy.needs_model or "labels" in strategy.needs else 0


def beliefs_of(judge: Judge, bought: IntArray, passes: int, seed: int) -> Mapping[str, Beliefs] | None:
    """What the model of the items bought so far believes of the pool; nothing, if nobody asks."""
    return judge.predict_proba(asked_of(judge, bought), passes, seed) if passes else None


def asked_of(judge: Judge, bought: IntArray) -> IntArray:
    """What a judge is asked about when these items are bought, in this order."""
    return bought if judge.ordered else np.sort(bought)


def candidates_of(
    problem: Problem, strategy: Strategy, beliefs: Mapping[str, Beliefs] | None, bought: IntArray, sides: Sides
) -> tuple[IntArray, Candidates]:
    """The items that are left, as positions in the pool, and as a strategy sees them."""
    left = np.setdiff1d(np.arange(len(problem.pool)), bought)
    schema, pool = problem.corpus.schema, problem.parts["pool"]
    confidence: FloatArray = np.zeros((len(left), len(schema)))
    mine, labels = sides["pool"].take(left), None
    if beliefs is not None:
        beliefs = {name: found.take(left) for name, found in beliefs.items()}
        confidence = confidences(schema, beliefs, MEASURES[strategy.measure])
        labels = _guessed_labels(problem, beliefs) if "labels" in strategy.needs else None
    features = PoolFeatures(
        mine.words,
        mine.vectors,
        labels,
        beliefs if "beliefs" in strategy.needs else None,
        labelled=_joined([sides["warm"], sides["pool"].take(bought)]),
        aside=sides["aside"],
    )
    ids = [pool.ids[int(item)] for item in left]
    prices = Prices(tuple(schema), np.ones(len(left), dtype=np.int64), np.zeros(confidence.shape, dtype=np.int64))
    return left, Candidates(ids, confidence, prices, features=features)


def buy(strategy: Strategy, candidates: Candidates, size: int, seed: int) -> IntArray:
    """As many items as a batch has, in the order in which the strategy wants them."""
    items = strategy.select(candidates, size, seed, in_items=True).items
    if len(items) != size:
        raise ConfigError(
            f"{strategy.name} chose {len(items)} items for a batch of {size}",
            fix="use a strategy that buys whole items",
        )
    return items


def _joined(parts: Sequence[ItemFeatures]) -> ItemFeatures:
    """Concatenate the features of several parts; a feature that one part lacks is left out."""

    def column(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    return ItemFeatures(column("words"), column("vectors"), column("labels"))


def _known_labels(problem: Problem, part: str) -> IntArray:
    """(items, tasks): the label of every task that has one an item, −1 for the others."""
    items = problem.parts[part]
    columns = [
        task.targets(items.labels[name].rows, items.words)
        if isinstance(task, Classification)
        else np.full(len(items), -1)
        for name, task in items.schema.items()
    ]
    return np.stack(columns, axis=1)


def _guessed_labels(problem: Problem, beliefs: Mapping[str, Beliefs]) -> IntArray:
    """The same of items that nobody has labelled yet, by what is believed of them."""
    columns = [
        task.decode(beliefs[name]).values[:, 0].astype(np.int64)
        if isinstance(task, Classification)
        else np.full(len(beliefs[name]), -1)
        for name, task in problem.corpus.schema.items()
    ]
    return np.stack(columns, axis=1)
