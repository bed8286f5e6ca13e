"""From a finished run to a labelling problem, and the order in which each strategy bought its items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.campaign.decisions import CampaignEnded, RoundSelection
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.splits import DataSplits, fully_labelled
from bursar.errors import ConfigError
from bursar.ledger import Ledger
from bursar.oracle.judge_registry import PROBE, check_fit, judges_for, known_judge
from bursar.oracle.orders import Order
from bursar.oracle.problem import PARTS, LabellingProblem, in_order
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.tasks import Tagging

if TYPE_CHECKING:
    from bursar.campaign.runs import Run

METRIC = "weighted_f1"
KIND = "bursar oracle 1"
MOST_VALIDATION = 4_000  # items
MOST_SENTENCES = 1_000  # items if words are tagged: time grows with the number of words
FEWEST_VALIDATION = 200
ASIDE_SHARE, MOST_ASIDE = 5, 200  # without dev items: every fifth test item, at most 200


@dataclass(frozen=True, eq=False)
class BoughtOrders:
    """The orders of a run's strategies, all of the same shape."""

    orders: Mapping[str, Order]  # arm to what it bought after its start
    left_out: Mapping[str, str]  # arm to the reason
    bought: Mapping[str, int]  # number of items of each arm after its start, before orders are cut to one shape


@dataclass(frozen=True, eq=False)
class HeldOutParts:
    """The items that are not chosen from, and where they come from."""

    items: Mapping[str, IntArray]  # aside, validation and test
    validation_from: str  # "unused items" or "half of the test items"
    aside_from: str  # "development items" or "test items"


@dataclass(frozen=True, eq=False)
class RunQuestion:
    """What is asked about a run: how good its orders are for a judge."""

    problem: LabellingProblem
    arms: BoughtOrders
    held_out: HeldOutParts
    judge: str = PROBE
    tasks_left_out: Mapping[str, str] = field(default_factory=dict)  # task to the reason
    state: Mapping[str, str] = field(default_factory=dict)  # fingerprints of the corpus and of each arm's ledger

    @property
    def orders(self) -> Mapping[str, Order]:
        return self.arms.orders

    @property
    def fingerprint(self) -> str:
        """A digest of everything that the answer depends on, except for the search."""
        problem = self.problem
        about = {
            "kind": KIND,
            "judge": [self.judge, METRIC],
            "state": dict(self.state),
            "tasks": list(problem.tasks),
            "parts": {part: getattr(problem, part).tolist() for part in PARTS},
            "orders": {arm: order.batches.tolist() for arm, order in self.orders.items()},
        }
        return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()

    def about(self) -> dict[str, Any]:
        """A description for readers."""
        return {
            "judge": self.judge,
            "metric": METRIC,
            "tasks": list(self.problem.tasks),
            "items": self.problem.counts,
            "validation_from": self.held_out.validation_from,
            "aside_from": self.held_out.aside_from,
            "tasks_left_out": dict(self.tasks_left_out),
            "arms_left_out": dict(self.arms.left_out),
            "bought": dict(self.arms.bought),
        }


def question_of(run: Run, judge: str = PROBE, finish_by: str | None = None) -> RunQuestion:
    """The question about a finished, simulated run; raises an error if the run cannot be compared.

    ``finish_by`` is the command that finishes the run, if known.
    """
    tasks, left_out = judged_tasks(run, judge)
    if not len(run.parts.test):
        raise ConfigError(f"{run.folder}: the campaign has no test items to judge orders on", fix="set corpus.test")
    check_begun(run, finish_by)
    ledgers = {arm: run.open_ledger(arm) for arm in run.arms}
    try:
        _check_finished(run, ledgers, finish_by)
        _check_simulated(run, ledgers)
        corpus, first = run.parts.corpus, ledgers[run.arms[0]]
        begun = corpus.positions(first.bought(round=0))
        bought_dev = corpus.positions(first.bought(round=0, purposes=["dev"]))
        start = np.setdiff1d(begun, bought_dev)
        pool = in_order(corpus, np.setdiff1d(fully_labelled(corpus, run.parts.pool), begun))
        arms = _orders(run, ledgers, tasks, pool)
        state = {"corpus": run.parts.fingerprint} | {arm: ledger.fingerprint() for arm, ledger in ledgers.items()}
    finally:
        for ledger in ledgers.values():
            ledger.close()
    tagged = any(isinstance(run.parts.corpus.schema[name], Tagging) for name in tasks)
    most = MOST_SENTENCES if tagged else MOST_VALIDATION
    try:
        held_out = held_out_parts(run.parts, bought_dev, run.config.seed, most)
    except ConfigError as wrong:
        raise ConfigError(f"{run.folder}: {wrong.message}", fix=wrong.fix) from None
    batches, size = next(iter(arms.orders.values())).batches.shape
    labelled, warm = corpus.with_tasks(tasks), in_order(corpus, start)
    problem = LabellingProblem(labelled, pool, warm, **held_out.items, batches=batches, size=size, metric=METRIC)
    return RunQuestion(problem, arms, held_out, judge, left_out, state)


# -- checks ------------------------------------------------------------------------------------------------------------
def judged_tasks(run: Run, judge: str = PROBE) -> tuple[list[str], dict[str, str]]:
    """The tasks that are judged, and why others are not. The judge must support all that any judge supports."""
    corpus = run.parts.corpus
    schema, fitting = corpus.schema, judges_for(corpus)
    judged = [name for name in schema if fitting[name]]
    if not judged:
        kinds = ", ".join(f"{name} ({task.kind})" for name, task in schema.items())
        raise ConfigError(
            f"{run.folder}: no judge supports any of the campaign's tasks: {kinds}",
            fix="use a campaign with a classification or tagging task",
        )
    try:
        check_fit(known_judge(judge), corpus.with_tasks(judged))
    except ConfigError as wrong:
        raise ConfigError(f"{run.folder}: {wrong.message}", fix=wrong.fix) from None
    return judged, {name: f"{task.kind} is not judged" for name, task in schema.items() if name not in judged}


def check_begun(run: Run, finish_by: str | None) -> None:
    """Refuse a run without all ledgers; opening a missing one would create it."""
    for arm in run.arms:
        if not run.has_ledger(arm):
            raise _unfinished(run, f"{arm} has not begun", finish_by)


def _check_finished(run: Run, ledgers: Mapping[str, Ledger], finish_by: str | None) -> None:
    for arm, ledger in ledgers.items():
        if not ledger.decided(CampaignEnded):
            raise _unfinished(run, f"{arm} is in round {max(ledger.decided(RoundSelection), default=0)}", finish_by)


def _unfinished(run: Run, why: str, finish_by: str | None) -> ConfigError:
    command = finish_by or f"bursar run CAMPAIGN.toml --run {run.folder}"
    return ConfigError(f"the run in {run.folder} is not finished: {why}", fix=f"finish it first, with: {command}")


def _check_simulated(run: Run, ledgers: Mapping[str, Ledger]) -> None:
    for arm, ledger in ledgers.items():
        people = [name for name in ledger.annotators() if name != GoldAnnotator.name]
        if people:
            raise ConfigError(
                f"the run in {run.folder} was annotated by {people[0]!r} ({arm}), not from gold labels",
                fix="use a simulated campaign: the search for the best order needs all labels",
            )


# -- parts and orders --------------------------------------------------------------------------------------------------
def _orders(run: Run, ledgers: Mapping[str, Ledger], tasks: list[str], pool: IntArray) -> BoughtOrders:
    """The orders of all arms that have one.

    All have the same shape, so that they are compared at equal numbers of items. All are judged from the start of the
    run's own strategy: of an arm with another start, only later items that are not in that start count.
    """
    place: IntArray = np.zeros(len(run.parts.corpus), dtype=np.int64)
    place[pool] = np.arange(len(pool))
    bought: dict[str, IntArray] = {}
    left_out, rounds = {}, 0
    start = set(ledgers[run.arms[0]].bought(round=0))
    for arm, ledger in ledgers.items():
        later, partly = _after_start(ledger, set(tasks))
        items = [item for item in later if item not in start]
        if partly:
            left_out[arm] = f"it buys labels of single tasks ({partly:,} of {len(items):,} items), not whole items"
        else:
            bought[arm] = place[run.parts.corpus.positions(items)]
            rounds = max(rounds, len(set(ledger.decided(RoundSelection)) - {0}))
    for arm in [arm for arm, items in bought.items() if len(items) < max(rounds, 1)]:
        left_out[arm] = f"it bought {len(bought.pop(arm))} items after its start, fewer than there are batches"
    if not bought:
        why = "; ".join(f"{arm}: {reason}" for arm, reason in left_out.items())
        raise ConfigError(
            f"{run.folder}: no strategy of the run has an order to compare ({why})",
            fix="use a campaign that buys whole items for at least one round",
        )
    size = min(len(items) for items in bought.values()) // rounds
    orders = {arm: Order.of(items[: rounds * size].reshape(rounds, size)) for arm, items in bought.items()}
    return BoughtOrders(orders, left_out, {arm: len(items) for arm, items in bought.items()})


def _after_start(ledger: Ledger, tasks: set[str]) -> tuple[list[str], int]:
    """The items bought after the start, and how many of them were not bought for all these tasks."""
    start = set(ledger.bought(round=0))
    asked = [item for selection in ledger.decisions(RoundSelection) if selection.round > 0 for item in selection.items]
    partly = {item.id for item in asked if not tasks <= set(item.tasks)}
    return [item for item in ledger.bought() if item not in start], len(partly)


def held_out_parts(parts: DataSplits, bought_dev: IntArray, seed: int, most: int) -> HeldOutParts:
    """Choose the items set aside, for validation and for the test.

    ``bought_dev`` are development items that the campaign bought from its pool; ``most`` limits validation items.
    """
    corpus, numbers = parts.corpus, rng(seed, "held-out parts")
    used = np.concatenate([parts.pool, parts.dev, parts.test])
    unused = fully_labelled(corpus, np.setdiff1d(np.arange(len(corpus)), used))
    test = numbers.permutation(corpus.by_id(parts.test))
    aside, aside_from = np.concatenate([parts.dev, bought_dev]), "development items"
    if not len(aside):
        count = min(max(1, len(test) // ASIDE_SHARE), MOST_ASIDE)
        aside, test, aside_from = test[:count], test[count:], "test items"
    validation, validation_from = numbers.permutation(corpus.by_id(unused))[:most], "unused items"
    if len(validation) < FEWEST_VALIDATION:
        half = len(test) // 2
        validation, test, validation_from = test[:half], test[half:], "half of the test items"
    if not len(validation) or not len(test):
        raise ConfigError(
            f"{len(parts.test)} test items are too few to search on some and test on others",
            fix="use a campaign with more test items",
        )
    held = {"aside": aside, "validation": validation, "test": test}
    return HeldOutParts({part: in_order(corpus, items) for part, items in held.items()}, validation_from, aside_from)
