"""Compares the strategies of a finished run with the best order, and stores the answer beside the run.

The answer depends only on the question, the plan of the search and the seed. It is stored with a fingerprint of all
three, so that an answer to another question is never shown.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bursar.compute import THIS_PROCESS, Engine
from bursar.corpus.formats.format import replacing
from bursar.errors import BursarError
from bursar.learners.learner import Progress, no_progress
from bursar.oracle.chain import SearchPlan, SearchState, is_current
from bursar.oracle.comparison import OrderComparison, compare_orders
from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.judge_registry import PROBE, make_judge
from bursar.oracle.run_question import KIND, RunQuestion, check_begun, judged_tasks, question_of
from bursar.oracle.search import SearchOptions

if TYPE_CHECKING:
    from bursar.campaign.runs import Run

ANSWER_FILE, STATE_FILE = "oracle.json", "oracle.state.json"
BETWEEN_SAVES = 2.0  # seconds
DAMAGED = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # raised when reading a damaged file

ComparisonCallback = Callable[[SearchState, SearchPlan], None]


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

    An interrupted search resumes and gives the same answer. ``finish_by`` is the command that finishes the run, for
    error messages.
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
        answer = {"kind": KIND, "asked": asked, **question.about(), **found.as_json()}
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
    return answer.keys() >= question.about().keys()


def _judge(question: RunQuestion, seed: int, engine: Engine, progress: Progress) -> Judge:
    """Make the judge. The probe stays in this process: distributing its short steps takes as long as they do."""
    if question.judge == PROBE:
        return make_judge(PROBE, question.problem, progress=progress)
    from bursar.oracle.parallel_judge import PackedJudge, ParallelJudge

    return ParallelJudge(PackedJudge.of(question.judge, question.problem, seed), engine)


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
    """A file for the latest question, and files beside it for earlier ones, so that no search is lost.

    A question is identified by its ``asked`` value: fingerprint, plan and seed.
    """

    file: Path

    def find(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is stored for a question."""
        return next((found for file in self._files(asked) if question_in(found := read_json(file)) == asked), None)

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
        """Delete what is stored for a question."""
        for file in self._files(asked):
            file.unlink(missing_ok=True)

    def _files(self, asked: Mapping[str, Any]) -> tuple[Path, Path]:
        return self.file, self._aside(asked)

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
