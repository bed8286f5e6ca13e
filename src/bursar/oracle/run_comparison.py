"""Compares the strategies of a finished run with the best order, and stores the answer beside the run.

A run becomes a labelling problem, and the order in which each strategy bought its items. The answer depends only on
this question, the plan of the search and the seed. It is stored with a fingerprint of all three, so that an answer to
another question is never shown.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.campaign.decisions import CampaignEnded, RoundSelection
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.splits import DataSplits, fully_labelled
from bursar.compute import THIS_PROCESS, Engine
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Ledger
from bursar.oracle.comparison import OrderComparison, compare_orders
from bursar.oracle.judge import PROBE, Judge, ScoreCache, check_fit, judges_for, known_judge, make_judge
from bursar.oracle.problem import PARTS, LabellingProblem, Order, in_order
from bursar.oracle.search import SearchOptions, SearchPlan, SearchState, is_current
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
ANSWER_FILE, STATE_FILE = "oracle.json", "oracle.state.json"
BETWEEN_SAVES = 2.0  # seconds
DAMAGED = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # raised when reading a damaged file

ComparisonCallback = Callable[[SearchState, SearchPlan], None]


@dataclass(frozen=True, eq=False)
class RunQuestion:
    """What is asked about a run: how good its orders are for a judge."""

    problem: LabellingProblem
    orders: Mapping[str, Order]  # arm to what it bought after its start, all of one shape
    about: Mapping[str, Any]  # for readers
    state: Mapping[str, str]  # fingerprints of the corpus and of each arm's ledger

    @property
    def fingerprint(self) -> str:
        """A digest of everything that the answer depends on, except for the search."""
        asked = {
            "kind": KIND,
            "judge": [self.about["judge"], METRIC],
            "state": dict(self.state),
            "tasks": list(self.problem.tasks),
            "parts": {part: getattr(self.problem, part).tolist() for part in PARTS},
            "orders": {arm: order.batches.tolist() for arm, order in self.orders.items()},
        }
        return hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=12).hexdigest()


def question_of(run: Run, judge: str = PROBE, finish_by: str | None = None) -> RunQuestion:
    """The question about a finished, simulated run; raises an error if the run cannot be compared."""
    tasks, tasks_left_out = judged_tasks(run, judge)
    if not len(run.parts.test):
        raise ConfigError(f"{run.folder}: the campaign has no test items to judge orders on", fix="set corpus.test")
    check_begun(run, finish_by)
    with ExitStack() as opened:
        ledgers = {arm: opened.enter_context(closing(run.open_ledger(arm))) for arm in run.arms}
        for arm, ledger in ledgers.items():
            _check_ended(run, arm, ledger, finish_by)
        corpus, first = run.parts.corpus, ledgers[run.arms[0]]
        begun = corpus.positions(first.bought(round=0))
        bought_dev = corpus.positions(first.bought(round=0, purposes=["dev"]))
        start = np.setdiff1d(begun, bought_dev)
        pool = in_order(corpus, np.setdiff1d(fully_labelled(corpus, run.parts.pool), begun))
        orders, left_out, bought = _orders(run, ledgers, tasks, pool)
        state = {"corpus": run.parts.fingerprint} | {arm: ledger.fingerprint() for arm, ledger in ledgers.items()}
    tagged = any(isinstance(run.parts.corpus.schema[name], Tagging) for name in tasks)
    most = MOST_SENTENCES if tagged else MOST_VALIDATION
    try:
        held_out, sources = held_out_parts(run.parts, bought_dev, run.config.seed, most)
    except ConfigError as wrong:
        raise ConfigError(f"{run.folder}: {wrong.message}", fix=wrong.fix) from None
    batches, size = next(iter(orders.values())).batches.shape
    labelled, warm = corpus.with_tasks(tasks), in_order(corpus, start)
    problem = LabellingProblem(labelled, pool, warm, **held_out, batches=batches, size=size, metric=METRIC)
    about = {"judge": judge, "metric": METRIC, "tasks": list(problem.tasks), "items": problem.counts, **sources}
    about |= {"tasks_left_out": tasks_left_out, "arms_left_out": left_out, "bought": bought}
    return RunQuestion(problem, orders, about, state)


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


def _check_ended(run: Run, arm: str, ledger: Ledger, finish_by: str | None) -> None:
    """Refuse an arm that is not finished, or was annotated by people."""
    if not ledger.decided(CampaignEnded):
        raise _unfinished(run, f"{arm} is in round {max(ledger.decided(RoundSelection), default=0)}", finish_by)
    people = [name for name in ledger.annotators() if name != GoldAnnotator.name]
    if people:
        raise ConfigError(
            f"the run in {run.folder} was annotated by {people[0]!r} ({arm}), not from gold labels",
            fix="use a simulated campaign: the search for the best order needs all labels",
        )


def _unfinished(run: Run, why: str, finish_by: str | None) -> ConfigError:
    command = finish_by or f"bursar run CAMPAIGN.toml --run {run.folder}"
    return ConfigError(f"the run in {run.folder} is not finished: {why}", fix=f"finish it first, with: {command}")


# -- parts and orders --------------------------------------------------------------------------------------------------
def _orders(
    run: Run, ledgers: Mapping[str, Ledger], tasks: list[str], pool: IntArray
) -> tuple[dict[str, Order], dict[str, str], dict[str, int]]:
    """The orders by arm, why arms are left out, and how many items each bought after its start.

    All orders have the same shape, so that they are compared at equal numbers of items.
    All are judged from the start of the run's own strategy: of an arm with another start, only items outside it count.
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
    return orders, left_out, {arm: len(items) for arm, items in bought.items()}


def _after_start(ledger: Ledger, tasks: set[str]) -> tuple[list[str], int]:
    """The items bought after the start, and how many of them were not bought for all these tasks."""
    start = set(ledger.bought(round=0))
    asked = [item for selection in ledger.decisions(RoundSelection) if selection.round > 0 for item in selection.items]
    partly = {item.id for item in asked if not tasks <= set(item.tasks)}
    return [item for item in ledger.bought() if item not in start], len(partly)


def held_out_parts(
    parts: DataSplits, bought_dev: IntArray, seed: int, most: int
) -> tuple[dict[str, IntArray], dict[str, str]]:
    """The items set aside, for validation (at most ``most``) and for the test, and where the first two come from."""
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
    sources = {"validation_from": validation_from, "aside_from": aside_from}
    return {part: in_order(corpus, items) for part, items in held.items()}, sources


# -- the answer ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OracleRequest:
    """How to search for the best order."""

    plan: SearchPlan
    seed: int | None = None  # that of the campaign if not given
    judge: str = PROBE
    engine: Engine = THIS_PROCESS  # where networks are trained; changes only the time


def ask_oracle(
    run: Run,
    request: OracleRequest,
    *,
    finish_by: str | None = None,
    progress: Progress = no_progress,
    callback: ComparisonCallback | None = None,
) -> dict[str, Any]:
    """Compare a finished run with the best order: return the stored answer, or search for it.

    An interrupted search resumes and gives the same answer. Error messages name ``finish_by``, which finishes the run.
    """
    plan, judge = request.plan, request.judge
    seed = run.config.seed if request.seed is None else request.seed
    judged_tasks(run, judge)
    check_begun(run, finish_by)
    with run.locked():
        question = question_of(run, judge, finish_by)
        asked = _asked(question, plan, seed)
        answers, states = AnswerFiles(run.folder / ANSWER_FILE), AnswerFiles(run.folder / STATE_FILE)
        kept = answers.find(asked)
        if kept is not None and _complete(kept, question):
            answers.put(asked, kept)
            return kept
        saved = states.find(asked)
        states.make_room(asked)
        saver = _StateSaver(states, asked, plan, callback)
        with THIS_PROCESS if judge == PROBE else request.engine as engine:
            made = _judge(question, seed, engine, progress)
            options = SearchOptions(_resumed(saved, made), saver)
            found = compare_orders(made, question.orders, plan, seed=seed, options=options)
        answer = {"kind": KIND, "asked": asked, **question.about, **found.as_json()}
        answers.put(asked, answer)
        states.drop(asked)
    return answer


def current_answer(run: Run) -> dict[str, Any] | None:
    """The stored answer about a run, if it still applies."""
    kept = read_json(run.folder / ANSWER_FILE)
    if not kept:
        return None
    try:
        found = OrderComparison.from_json(kept)
        question = question_of(run, kept["judge"])
        asked = _asked(question, found.plan, found.seed)
    except (BursarError, *DAMAGED):
        return None
    return kept if question_in(kept) == asked and _complete(kept, question) else None


def _asked(question: RunQuestion, plan: SearchPlan, seed: int) -> dict[str, Any]:
    """What identifies an answer: the question, the seed, and the settings of a plan that change its result."""
    settings = {name: getattr(plan, name) for name in ("steps", "greedy_steps", "cooling", "screened")}
    return {"question": question.fingerprint, "plan": settings, "seed": seed}


def _resumed(saved: Mapping[str, Any] | None, judge: Judge) -> SearchState | None:
    """The saved state of a search; ``None`` if it is damaged or the judge now scores differently."""
    if saved is None:
        return None
    try:
        state = SearchState.from_json(saved["state"])
        return state if is_current(state, ScoreCache(judge)) else None
    except DAMAGED:
        return None


def _complete(answer: Mapping[str, Any], question: RunQuestion) -> bool:
    """Whether an answer has all fields."""
    try:
        OrderComparison.from_json(answer).as_json()
    except DAMAGED:
        return False
    return answer.keys() >= question.about.keys()


def _judge(question: RunQuestion, seed: int, engine: Engine, progress: Progress) -> Judge:
    """Make the judge. The probe stays in this process: distributing its short steps takes as long as they do."""
    judge = question.about["judge"]
    if judge == PROBE:
        return make_judge(PROBE, question.problem, progress=progress)
    from bursar.oracle.parallel_judge import PackedJudge, ParallelJudge

    return ParallelJudge(PackedJudge.of(judge, question.problem, seed), engine)


@dataclass
class _StateSaver:
    """Saves the state of a search every few seconds and passes it on."""

    states: AnswerFiles
    asked: Mapping[str, Any]
    plan: SearchPlan
    callback: ComparisonCallback | None
    last: float = field(default_factory=time.monotonic)

    def __call__(self, state: SearchState) -> None:
        if time.monotonic() - self.last >= BETWEEN_SAVES:
            write_json(self.states.file, {"kind": KIND, "asked": self.asked, "state": state.as_json()})
            self.last = time.monotonic()
        if self.callback is not None:
            self.callback(state, self.plan)


# -- files -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AnswerFiles:
    """A file for the latest question, and files beside it for earlier ones, so that no search is lost."""

    file: Path

    def find(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        return next(
            (found for file in (self.file, self._aside(asked)) if question_in(found := read_json(file)) == asked), None
        )

    def put(self, asked: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Store an answer to the latest question."""
        self.make_room(asked)
        write_json(self.file, found)
        self._aside(asked).unlink(missing_ok=True)

    def make_room(self, asked: Mapping[str, Any]) -> None:
        """Rename the file if it holds another question."""
        latest = question_in(read_json(self.file))
        if latest is not None and latest != asked:
            self.file.replace(self._aside(latest))

    def drop(self, asked: Mapping[str, Any]) -> None:
        for file in (self.file, self._aside(asked)):
            file.unlink(missing_ok=True)

    def _aside(self, asked: Any) -> Path:
        digest = hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=4).hexdigest()
        return self.file.with_name(f"{self.file.stem}-{digest}.json")


def question_in(found: Mapping[str, Any]) -> Any:
    """The question of a stored value."""
    return found.get("asked") if found.get("kind") == KIND else None


def read_json(file: Path) -> dict[str, Any]:
    """The contents of a file; empty if it is missing or damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(file: Path, found: Mapping[str, Any]) -> None:
    """Write a file, whole or not at all."""
    with replacing(file) as stream:
        json.dump(found, stream, allow_nan=False)
