"""Orders that Bursar's strategies buy, batch by batch, at equal prices.

The heuristics of paper 4 have these names here:

==========================================  ====================================================
Max-Ent.                                    ``MAX-ENT``
BALD, BatchBALD                             ``BALD``, ``BATCHBALD``
BALD, as its code has it for intents        ``VARIATION-RATIO`` (errata 27)
Min-Conf., Norm.-Min-Conf.                  ``MIN-CONF``, ``NORM-MIN-CONF``
Longest                                     ``LONGEST``
any of them with matching (section 6.5)     the same with ``+IDMR``
==========================================  ====================================================

Other strategies that buy whole items round by round work as well, ``COVER`` among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.campaign.unit_space import UnitDoubts, UnitSpace
from bursar.corpus import Corpus, concatenate
from bursar.errors import ConfigError
from bursar.learners.features import pixels
from bursar.learners.frozen import frozen_encoder
from bursar.learners.learner import Embeddings, Progress, no_progress
from bursar.oracle.probe import vectors_of
from bursar.oracle.problem import LabellingProblem, Order
from bursar.ragged import FloatArray, IntArray
from bursar.random_streams import rng
from bursar.selection import Candidates, ItemFeatures, PoolFeatures, Strategy, make_strategy
from bursar.tasks import Beliefs, Classification, Prices
from bursar.uncertainty import MEASURES, confidences
from experiments.studies.judge_models import ModelJudge

HEURISTICS: dict[str, tuple[str, ...]] = {  # paper 4, Table 1
    "images": ("MAX-ENT", "BALD", "BATCHBALD"),
    "intents": ("MAX-ENT", "BALD", "VARIATION-RATIO"),
    "entities": ("MIN-CONF", "NORM-MIN-CONF", "LONGEST"),
}
SEEN = ("pool", "warm", "aside")  # parts whose inputs strategies may use

PartFeatures = Mapping[str, ItemFeatures]  # by part


@dataclass(frozen=True, eq=False)
class StrategyBuyer:
    """Buys the batches of a labelling problem as strategies do, with the models of a judge.

    ``features`` are those of ``features_of``; without them, each call computes what its strategies need.

    >>> from experiments.studies.judge_models import ProbeModels
    >>> from bursar.simulation import assistant_corpus
    >>> sizes = {"pool": 30, "warm": 10, "aside": 10, "validation": 20, "test": 20}
    >>> corpus = assistant_corpus(100).with_tasks(["intent"])
    >>> problem = LabellingProblem.draw(corpus, sizes, shape=(2, 5), metric="accuracy", seed=0)
    >>> buyer = StrategyBuyer(ProbeModels.of(problem), problem)
    >>> buyer.order("BALD+IDMR").batches.shape
    (2, 5)
    """

    judge: ModelJudge
    problem: LabellingProblem
    seed: int = 0
    features: PartFeatures | None = None

    def __post_init__(self) -> None:
        if self.judge.pool != len(self.problem.pool):
            raise ConfigError(
                f"the judge has a pool of {self.judge.pool} items and the problem one of {len(self.problem.pool)}",
                fix="make the judge from this problem",
            )

    def order(self, strategy: str | Strategy) -> Order:
        """The order that a strategy buys: each batch with the model of all earlier ones.

        A name with ``+IDMR`` matches lengths of texts and clusters of images.
        """
        return self.orders([strategy])[0]

    def orders(self, strategies: Sequence[str | Strategy], progress: Progress = no_progress) -> list[Order]:
        """The orders of several strategies, batch by batch, so that the judge trains their models together."""
        problem, judge = self.problem, self.judge
        chosen = [strategy_for(problem, strategy) for strategy in strategies]
        features = self.features_for(chosen)
        bought: list[IntArray] = [np.zeros(0, dtype=np.int64) for _ in chosen]
        for batch in range(problem.batches):
            drawn = self.seed_at(batch)
            judge.prepare([np.sort(b) for s, b in zip(chosen, bought, strict=True) if passes_for(s)])
            for at, strategy in enumerate(chosen):
                progress(f"batch {batch + 1}, {strategy.name}", (batch + at / len(chosen)) / problem.batches)
                beliefs = self.predictions(bought[at], passes_for(strategy), drawn)
                left, candidates = self.candidates(strategy, beliefs, bought[at], features)
                more = np.sort(left[self.batch(strategy, candidates, drawn)])
                bought[at] = np.concatenate([bought[at], more])
        return [Order.of(items.reshape(problem.shape)) for items in bought]

    # -- one batch -----------------------------------------------------------------------------------------------------
    def features_for(self, strategies: Iterable[Strategy]) -> PartFeatures:
        """The given features, or those that these strategies need."""
        if self.features is not None:
            return self.features
        return features_of(self.problem, {need for strategy in strategies for need in strategy.needs})

    def seed_at(self, *place: int) -> int:
        """A seed for a place in the run, such as a batch."""
        return int(rng(self.seed, "batch seeds", *place).integers(2**31))

    def predictions(self, bought: IntArray, passes: int, seed: int) -> Mapping[str, Beliefs] | None:
        """Predict the pool with the model of the items bought so far; ``None`` for 0 passes."""
        return self.judge.predict_proba(np.sort(bought), passes, seed) if passes else None

    def candidates(
        self,
        strategy: Strategy,
        beliefs: Mapping[str, Beliefs] | None,
        bought: IntArray,
        features: PartFeatures,
    ) -> tuple[IntArray, Candidates]:
        """The unlabelled items, as positions in the pool and as candidates for a strategy."""
        schema, pool = self.problem.corpus.schema, self.problem.parts["pool"]
        left = np.setdiff1d(np.arange(len(pool)), bought)
        confidence: FloatArray = np.zeros((len(left), len(schema)))
        mine, labels = features["pool"].take(left), None
        if beliefs is not None:
            beliefs = {name: found.take(left) for name, found in beliefs.items()}
            confidence = confidences(schema, beliefs, MEASURES[strategy.measure])
            labels = _predicted_labels(self.problem, beliefs) if "labels" in strategy.needs else None
        of_pool = PoolFeatures(
            mine.words,
            mine.vectors,
            labels,
            beliefs if "beliefs" in strategy.needs else None,
            labelled=_joined([features["warm"], features["pool"].take(bought)]),
            aside=features["aside"],
        )
        if "units" in strategy.needs and beliefs is not None:
            of_pool = self._with_units(of_pool, beliefs, left, bought)
        ids = [pool.ids[int(item)] for item in left]
        prices = Prices(tuple(schema), np.ones(len(left), dtype=np.int64), np.zeros(confidence.shape, dtype=np.int64))
        return left, Candidates(ids, confidence, prices, features=of_pool)

    @cached_property
    def _space(self) -> UnitSpace:
        """The vectors that COVER measures distances in."""
        return UnitSpace(embeddings_of, concatenate([self.problem.parts["pool"], self.problem.parts["warm"]]))

    def _with_units(
        self, features: PoolFeatures, beliefs: Mapping[str, Beliefs], left: IntArray, bought: IntArray
    ) -> PoolFeatures:
        """Add the units of unlabelled and labelled items."""
        parts, schema = self.problem.parts, self.problem.corpus.schema
        labelled = concatenate([parts["warm"], parts["pool"].take(bought)])
        doubts = {name: UnitDoubts.of(task, beliefs[name]) for name, task in schema.items()}
        pool = parts["pool"].take(left)
        units = {name: self._space.units(pool, doubts[name]) for name in schema}
        known = {name: self._space.labelled(task, labelled, doubts[name]) for name, task in schema.items()}
        return replace(features, units=units, labelled=replace(features.labelled, units=known))

    def batch(self, strategy: Strategy, candidates: Candidates, seed: int) -> IntArray:
        """The items of one batch, in the order in which the strategy wants them."""
        size = self.problem.size
        items = strategy.select(candidates, size, seed, in_items=True).items
        if len(items) != size:
            raise ConfigError(
                f"{strategy.name} chose {len(items)} items for a batch of {size}",
                fix="use a strategy that buys whole items",
            )
        return items


def strategy_for(problem: LabellingProblem, strategy: str | Strategy) -> Strategy:
    """The strategy of a name; matching uses clusters of images and lengths of texts."""
    if isinstance(strategy, str):
        strategy = make_strategy(strategy, bins="length" if problem.corpus.images is None else "cluster")
    if strategy.once:
        raise ConfigError(f"{strategy.name} spends all money at once", fix="use a strategy that buys round by round")
    return strategy


def passes_for(strategy: Strategy) -> int:
    """How many predictions of a model a strategy needs; 0 if it uses no model."""
    return MEASURES[strategy.measure].passes if strategy.needs_model or "labels" in strategy.needs else 0


# -- features ----------------------------------------------------------------------------------------------------------
def embeddings_of(items: Corpus) -> Embeddings:
    """The bundled encoder's vectors of items and their words, or pixels."""
    if items.images is not None:
        return Embeddings(pixels(items), None)
    encoder = frozen_encoder()
    return Embeddings(encoder.item_vectors(items), encoder.word_vectors(items))


def features_of(
    problem: LabellingProblem,
    needs: Iterable[str] = ("words", "vectors"),
    vectors: Mapping[str, NDArray[np.floating[Any]]] | None = None,
) -> dict[str, ItemFeatures]:
    """The needed features of pool, warm start and aside; ``vectors`` by part, or else those of the probe.

    Strategies see the labels of pool items only after buying them.
    """
    needs = frozenset(needs)
    if "vectors" in needs and vectors is None:
        vectors = vectors_of(problem, parts=SEEN)
    return {
        part: ItemFeatures(
            words=problem.parts[part].words if "words" in needs else None,
            vectors=vectors[part] if "vectors" in needs and vectors is not None else None,
            labels=_known_labels(problem, part) if "labels" in needs else None,
        )
        for part in SEEN
    }


def _joined(parts: Sequence[ItemFeatures]) -> ItemFeatures:
    """Concatenate the features of several parts; a feature that one part lacks is left out."""

    def column(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    return ItemFeatures(column("words"), column("vectors"), column("labels"))


def _known_labels(problem: LabellingProblem, part: str) -> IntArray:
    """The known label of each classification task, −1 for other tasks: (items, tasks)."""
    items = problem.parts[part]
    columns = [
        task.targets(items.labels[name].rows, items.words)
        if isinstance(task, Classification)
        else np.full(len(items), -1)
        for name, task in items.schema.items()
    ]
    return np.stack(columns, axis=1)


def _predicted_labels(problem: LabellingProblem, beliefs: Mapping[str, Beliefs]) -> IntArray:
    """The predicted label of each classification task, −1 for other tasks: (items, tasks)."""
    columns = [
        task.decode(beliefs[name]).values[:, 0].astype(np.int64)
        if isinstance(task, Classification)
        else np.full(len(beliefs[name]), -1)
        for name, task in problem.corpus.schema.items()
    ]
    return np.stack(columns, axis=1)
