"""How far a finished run's strategies came towards the best order: from its ledgers to a question, and its answer.

A question is a labelling problem drawn from the campaign, and in which order each strategy bought its items. Its answer
depends on nothing but the question, the plan of the search and the seed, and it is kept beside the run with a
fingerprint of all of them: an answer to another question is never shown.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.campaign.annotators import GoldAnnotator
from bursar.campaign.splits import DataSplits, fully_labelled
from bursar.compute import THIS_PROCESS, Engine
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError, ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Ledger
from bursar.oracle import Judge, Memory, Order, Plan, ProbeJudge, Problem, State
from bursar.oracle.chain import still_so
from bursar.oracle.comparison import Gap, measure
from bursar.oracle.judge_registry import PROBE, check_fit, known_searcher, searchers_for
from bursar.oracle.problem import in_order
from bursar.ragged import IntArray
from bursar.tasks import Tagging

if TYPE_CHECKING:
    from bursar.campaign.runs import Run

ANSWER_FILE, STATE_FILE = "oracle.json", "oracle.state.json"
METRIC = "weighted_f1"
KIND = "bursar oracle 1"
MOST_VALIDATION = 4_000  # items
MOST_SENTENCES = 1_000  # items where words are tagged: each is many rows, and a step takes as long as there are rows
FEWEST_VALIDATION = 200
ASIDE_SHARE, MOST_ASIDE = 5, 200  # of test items, where there are no development items: every fifth, so many at most
BETWEEN_SAVES = 2.0  # seconds

Told = Callable[[State, Plan], None]


@dataclass(frozen=True, eq=False)
class Question:
    """What a search is asked about a run."""

    problem: Problem
    orders: Mapping[str, Order]  # arm to what it bought after its start
    validation_from: str  # "unused items" or "half of the test items"
    aside_from: str  # "development items" or "test items"
    judge: str = PROBE
    tasks_left_out: Mapping[str, str] = field(default_factory=dict)  # task to why
    arms_left_out: Mapping[str, str] = field(default_factory=dict)
    bought: Mapping[str, int] = field(default_factory=dict)  # items of each arm after its start, before they are cut
    state: Mapping[str, str] = field(default_factory=dict)  # fingerprints of the corpus and of every arm's ledger

    @property
    def fingerprint(self) -> str:
        """A digest of all that the answer depends on, but for the search."""
        problem = self.problem
        about = {
            "kind": KIND,
            "judge": [self.judge, METRIC],
            "state": dict(self.state),
            "tasks": list(problem.tasks),
            "parts": {
                part: getattr(problem, part).tolist() for part in ("pool", "warm", "aside", "validation", "test")
            },
            "orders": {arm: order.batches.tolist() for arm, order in self.orders.items()},
        }
        return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=12).hexdigest()

    def about(self) -> dict[str, Any]:
        """What was asked, for readers."""
        sizes = {part: len(getattr(self.problem, part)) for part in ("pool", "warm", "aside", "validation", "test")}
        return {
            "judge": self.judge,
            "metric": METRIC,
            "tasks": list(self.problem.tasks),
            "items": sizes,
            "validation_from": self.validation_from,
            "aside_from": self.aside_from,
            "tasks_left_out": dict(self.tasks_left_out),
            "arms_left_out": dict(self.arms_left_out),
            "bought": dict(self.bought),
        }


# -- the question ------------------------------------------------------------------------------------------------------
def question_of(run: Run, judge: str = PROBE, finish_by: str | None = None) -> Question:
    """The question that a finished, simulated run asks of a judge; an error says why it asks none.

    ``finish_by`` is the command that finishes the run, where that is known.
    """
    tasks, left_out = judged_tasks(run, judge)
    if not len(run.parts.test):
        raise ConfigError(f"{run.folder}: the campaign has no test items to judge orders on", fix="name corpus.test")
    _check_begun(run, finish_by)
    ledgers = {arm: run.open_ledger(arm) for arm in run.arms}
    try:
        _check_finished(run, ledgers, finish_by)
        _check_simulated(run, ledgers)
        corpus, first = run.parts.corpus, ledgers[run.arms[0]]
        begun = corpus.positions(first.bought(round=0))
        bought_dev = corpus.positions(first.bought(round=0, purposes=["dev"]))
        start = np.setdiff1d(begun, bought_dev)
        pool = in_order(corpus, np.setdiff1d(fully_labelled(corpus, run.parts.pool), begun))
        orders, arms_left_out, bought = _orders(run, ledgers, tasks, pool)
        state = {"corpus": run.parts.fingerprint} | {arm: ledger.fingerprint() for arm, ledger in ledgers.items()}
    finally:
        for ledger in ledgers.values():
            ledger.close()
    tagged = any(isinstance(run.parts.corpus.schema[name], Tagging) for name in tasks)
    most = MOST_SENTENCES if tagged else MOST_VALIDATION
    held, validation_from, aside_from = _held_out(run.parts, bought_dev, run.config.seed, most, str(run.folder))
    batches, size = next(iter(orders.values())).batches.shape
    problem = Problem(
        corpus.with_tasks(tasks), pool, in_order(corpus, start), **held, batches=batches, size=size, metric=METRIC
    )
    return Question(problem, orders, validation_from, aside_from, judge, left_out, arms_left_out, bought, state)


def judged_tasks(run: Run, judge: str = PROBE) -> tuple[list[str], dict[str, str]]:
    """The tasks that are judged, and why others are not: those that no judge fits. All the others it must fit."""
    corpus = run.parts.corpus
    schema, fitting = corpus.schema, searchers_for(corpus)
    judged = [name for name in schema if fitting[name]]
    if not judged:
        kinds = ", ".join(f"{name} ({task.kind})" for name, task in schema.items())
        raise ConfigError(
            f"{run.folder}: there is a judge for none of the campaign's tasks: {kinds}",
            fix="ask about a campaign with a task of classification or tagging",
        )
    try:
        check_fit(known_searcher(judge), corpus.with_tasks(judged))
    except ConfigError as wrong:
        raise ConfigError(f"{run.folder}: {wrong.message}", fix=wrong.fix) from None
    return judged, {name: f"{task.kind} is not judged" for name, task in schema.items() if name not in judged}


def _check_begun(run: Run, finish_by: str | None) -> None:
    """Every arm has a ledger: opening one that is not there would make it."""
    for arm in run.arms:
        if not run.has_ledger(arm):
            raise _unfinished(run, f"{arm} has not begun", finish_by)


def _check_finished(run: Run, ledgers: Mapping[str, Ledger], finish_by: str | None) -> None:
    for arm, ledger in ledgers.items():
        if not ledger.decided("end"):
            raise _unfinished(run, f"{arm} is in round {max(ledger.decided('selection'), default=0)}", finish_by)


def _unfinished(run: Run, why: str, finish_by: str | None) -> ConfigError:
    command = finish_by or f"bursar run CAMPAIGN.toml --run {run.folder}"
    return ConfigError(f"the run in {run.folder} is not finished: {why}", fix=f"finish it first, with: {command}")


def _check_simulated(run: Run, ledgers: Mapping[str, Ledger]) -> None:
    for arm, ledger in ledgers.items():
        people = [name for name in ledger.annotators() if name != GoldAnnotator.name]
        if people:
            raise ConfigError(
                f"the run in {run.folder} was annotated by {people[0]!r} ({arm}), not from gold labels",
                fix="the best order can only be looked for where all labels are known: in a simulated campaign",
            )


def _orders(
    run: Run, ledgers: Mapping[str, Ledger], tasks: list[str], pool: IntArray
) -> tuple[dict[str, Order], dict[str, str], dict[str, int]]:
    """The order of every arm that has one, why others have none, and how many items each bought after its start.

    All have as many batches of the same size, so that they are compared at equal numbers of items. All are judged from
    the start of the run's own strategy: an arm with another start is compared by what it bought later and that start
    does not hold.
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
            left_out[arm] = (
                f"it buys labels of single tasks ({partly:,} of {len(items):,} items), and an order all of them"
            )
        else:
            bought[arm] = place[run.parts.corpus.positions(items)]
            rounds = max(rounds, len(set(ledger.decided("selection")) - {0}))
    for arm in [arm for arm, items in bought.items() if len(items) < max(rounds, 1)]:
        left_out[arm] = f"it bought {len(bought.pop(arm))} items after its start, fewer than there are batches"
    if not bought:
        why = "; ".join(f"{arm}: {reason}" for arm, reason in left_out.items())
        raise ConfigError(
            f"{run.folder}: no strategy of the run has an order to compare ({why})",
            fix="ask about a campaign that buys whole items, for a round or more",
        )
    size = min(len(items) for items in bought.values()) // rounds
    orders = {arm: Order.of(items[: rounds * size].reshape(rounds, size)) for arm, items in bought.items()}
    return orders, left_out, {arm: len(items) for arm, items in bought.items()}


def _after_start(ledger: Ledger, tasks: set[str]) -> tuple[list[str], int]:
    """The items bought after the start, in that order, and how many of them not for all these tasks at once."""
    start = set(ledger.bought(round=0))
    asked = {r: body["items"] for r, body in ledger.decisions("selection") if r > 0}
    partly = {item["id"] for items in asked.values() for item in items if not tasks <= set(item["tasks"])}
    return [item for item in ledger.bought() if item not in start], len(partly)


def _held_out(
    parts: DataSplits, bought_dev: IntArray, seed: int, most: int, where: str
) -> tuple[dict[str, IntArray], str, str]:
    """Items set aside, for the search and for the report, and where those of the first two are from.

    ``bought_dev`` are development items that the campaign bought from its pool.
    """
    corpus, rng = parts.corpus, np.random.default_rng([seed, 89])
    used = np.concatenate([parts.pool, parts.dev, parts.test])
    unused = fully_labelled(corpus, np.setdiff1d(np.arange(len(corpus)), used))
    dev = np.concatenate([parts.dev, bought_dev])
    test, aside, aside_from = _shuffled(parts.test, parts, rng), dev, "development items"
    if not len(aside):
        count = min(max(1, len(test) // ASIDE_SHARE), MOST_ASIDE)
        aside, test, aside_from = test[:count], test[count:], "test items"
    validation, validation_from = _shuffled(unused, parts, rng)[:most], "unused items"
    if len(validation) < FEWEST_VALIDATION:
        half = len(test) // 2
        validation, test, validation_from = test[:half], test[half:], "half of the test items"
    if not len(validation) or not len(test):
        raise ConfigError(
            f"{where}: {len(parts.test)} test items are too few to look for an order on some and judge it on others",
            fix="use a campaign with more test items",
        )
    held = {"aside": aside, "validation": validation, "test": test}
    return {part: in_order(corpus, items) for part, items in held.items()}, validation_from, aside_from


def _shuffled(items: IntArray, parts: DataSplits, rng: np.random.Generator) -> IntArray:
    """In an order that depends on the ids and the seed alone."""
    return rng.permutation(parts.corpus.by_id(items))


# -- the answer --------------------------------------------------------------------------------------------------------
def ask_oracle(
    run: Run,
    plan: Plan,
    seed: int | None = None,
    *,
    judge: str = PROBE,
    engine: Engine = THIS_PROCESS,
    finish_by: str | None = None,
    progress: Progress = no_progress,
    told: Told | None = None,
) -> dict[str, Any]:
    """The answer about a finished run: the one that is kept, if it is to this question, or a search.

    A search that was stopped goes on where it was, and ends as if it had not been. The engine is where a network's
    models are trained, which changes nothing but the time; it is entered here, and nobody is left when this returns.
    """
    seed = run.config.seed if seed is None else seed
    judged_tasks(run, judge)
    _check_begun(run, finish_by)
    with run.locked():
        question = question_of(run, judge, finish_by)
        asked = {"question": question.fingerprint, "plan": _settings(plan), "seed": seed}
        answers, states = _Shelf(run.folder / ANSWER_FILE), _Shelf(run.folder / STATE_FILE)
        kept = answers.find(asked)
        if kept is not None and _whole(kept, question):
            answers.put(asked, kept)
            return kept
        saved = states.find(asked)
        states.make_room(asked)
        keeper = _Keeper(states.file, asked, plan, told)
        with THIS_PROCESS if judge == PROBE else engine as where:
            hired = _hired(question, seed, where, progress)
            state = _state(saved, hired)
            gap = measure(hired, question.orders, plan, seed=seed, state=state, told=keeper)
        answer = {"kind": KIND, "asked": asked, **question.about(), **gap.as_json()}
        answers.put(asked, answer)
        states.drop(asked)
    return answer


DAMAGED = (
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)  # what a file of ours with other contents raises


def _state(saved: Mapping[str, Any] | None, judge: Judge) -> State | None:
    """Where a search was; nowhere, if that cannot be read or the judge says other things of its orders by now."""
    if saved is None:
        return None
    try:
        state = State.from_json(saved["state"])
        return state if still_so(state, Memory(judge)) else None
    except DAMAGED:
        return None


def _whole(answer: Mapping[str, Any], question: Question) -> bool:
    """Whether all that is read of an answer is there."""
    try:
        Gap.from_json(answer).as_json()
    except DAMAGED:
        return False
    return answer.keys() >= question.about().keys()


@dataclass(frozen=True)
class _Shelf:
    """A file about the newest question, and those about earlier ones beside it: no search is lost to another."""

    file: Path

    def find(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What there is about a question."""
        return next((found for file in self._files(asked) if _asked(found := _read(file)) == asked), None)

    def put(self, asked: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """This is about the newest question; what was, is put aside."""
        self.make_room(asked)
        _write(self.file, found)
        self._aside(asked).unlink(missing_ok=True)

    def make_room(self, asked: Mapping[str, Any]) -> None:
        """Put aside what is about another question."""
        newest = _asked(_read(self.file))
        if newest is not None and newest != asked:
            self.file.replace(self._aside(newest))

    def drop(self, asked: Mapping[str, Any]) -> None:
        """There is no more need of what is about a question."""
        for file in self._files(asked):
            file.unlink(missing_ok=True)

    def _files(self, asked: Mapping[str, Any]) -> tuple[Path, Path]:
        return self.file, self._aside(asked)

    def _aside(self, asked: Any) -> Path:
        digest = hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=4).hexdigest()
        return self.file.with_name(f"{self.file.stem}-{digest}.json")


def _hired(question: Question, seed: int, engine: Engine, progress: Progress) -> Judge:
    """Whoever judges the question. The probe stays here: what its steps take, sharing them out takes as well."""
    if question.judge == PROBE:
        return ProbeJudge.of(question.problem, progress=progress)
    from bursar.oracle.parallel_judge import Packed, ParallelJudge

    return ParallelJudge(Packed.of(question.judge, question.problem, seed), engine)


def current_answer(run: Run) -> dict[str, Any] | None:
    """The answer that is kept beside a run, if it is to the question that the run asks now."""
    kept = _read(run.folder / ANSWER_FILE)
    if not kept:
        return None
    try:
        gap = Gap.from_json(kept)
        question = question_of(run, kept["judge"])
        asked = {"question": question.fingerprint, "plan": _settings(gap.plan), "seed": gap.seed}
    except (BursarError, *DAMAGED):
        return None
    return kept if _asked(kept) == asked and _whole(kept, question) else None


@dataclass
class _Keeper:
    """Writes down where a search is, every few seconds, and passes it on."""

    file: Path
    asked: Mapping[str, Any]
    plan: Plan
    told: Told | None
    last: float = field(default_factory=time.monotonic)

    def __call__(self, state: State) -> None:
        if time.monotonic() - self.last >= BETWEEN_SAVES:
            _write(self.file, {"kind": KIND, "asked": self.asked, "state": state.as_json()})
            self.last = time.monotonic()
        if self.told is not None:
            self.told(state, self.plan)


def _settings(plan: Plan) -> dict[str, Any]:
    """What of a plan changes its result."""
    return {"steps": plan.steps, "greedy_steps": plan.greedy_steps, "cooling": plan.cooling, "screened": plan.screened}


def _asked(found: Mapping[str, Any]) -> Any:
    return found.get("asked") if found.get("kind") == KIND else None


def _read(file: Path) -> dict[str, Any]:
    """What is in a file of ours; nothing where there is none, or where it is damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, found: Mapping[str, Any]) -> None:
    with replacing(file) as stream:
        json.dump(found, stream, allow_nan=False)
