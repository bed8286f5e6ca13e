"""Step logs of trainings, in Parquet, from which policies are learned.

A log has one row per step: ``step``, ``task``, ``probability`` (of that task), ``loss`` (before the step),
``loss_after`` (empty if not measured), ``reward`` (eq. 16's), and ``probabilities``, those of all tasks. The tasks,
their sizes, the policy, the seed and the number of planned steps are in the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bursar.corpus.formats.format import replacing_bytes
from bursar.curriculum.policy import Course
from bursar.curriculum.rewards import REWARDS
from bursar.errors import DataError
from bursar.parquet import read_columns
from bursar.ragged import BoolArray, FloatArray, IntArray

COLUMNS = ("step", "task", "loss", "probabilities")  # required
ABOUT = b"bursar"  # key of the file's metadata
SLACK = 1e-6  # tolerance of the sum of probabilities


@dataclass(frozen=True)
class StepLog:
    """The steps of one training, in order."""

    tasks: tuple[str, ...]
    sizes: tuple[int, ...]
    planned: int  # planned steps; early stopping may have ended it sooner
    taken: IntArray  # (steps,): the trained task
    probabilities: FloatArray  # (steps, tasks)
    before: FloatArray  # (steps,): loss of the batch before the step
    after: FloatArray | None = None  # (steps,)
    policy: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    earned: dict[str, FloatArray] = field(default_factory=dict, repr=False, compare=False)  # cache, by reward signal

    def __len__(self) -> int:
        return len(self.taken)

    @property
    def probability(self) -> FloatArray:
        """The probability of the trained task: (steps,)."""
        return np.asarray(self.probabilities[np.arange(len(self.taken)), self.taken])

    @property
    def course(self) -> Course:
        return Course(self.tasks, self.sizes, self.planned, self.seed)

    def trained(self, step: int) -> str:
        """The task of a step, for messages."""
        return f"task {self.tasks[self.taken[step]]!r}"

    def rewards(self, name: str = "improving") -> FloatArray:
        """The reward of every step by a reward signal, cached: (steps,)."""
        if name not in self.earned:
            reward, found = REWARDS[name](self.course), []
            for step in range(len(self)):
                here = slice(step, step + 1)
                after = None if self.after is None else self.after[here]
                found.append(reward(self.taken[here], self.before[here], after)[0])
            self.earned[name] = np.array(found, dtype=float)
        return self.earned[name]

    def is_as(self, other: StepLog) -> bool:
        """Whether both logs have the same steps."""
        return (
            len(self) == len(other)
            and self.seed == other.seed
            and np.array_equal(self.before, other.before)
            and [self.tasks[at] for at in self.taken] == [other.tasks[at] for at in other.taken]
        )

    def in_order_of(self, tasks: Sequence[str]) -> StepLog:
        """The same log with its tasks in another order."""
        order = [self.tasks.index(task) for task in tasks]
        return replace(
            self,
            tasks=tuple(tasks),
            sizes=tuple(self.sizes[at] for at in order),
            taken=np.argsort(order)[self.taken],
            probabilities=self.probabilities[:, order],
            earned=dict(self.earned),
        )

    # -- files -----------------------------------------------------------------------------------------------------
    def write(self, file: str | Path) -> None:
        """Write to Parquet, atomically."""
        tasks: IntArray = np.asarray(self.taken, dtype=np.int32)
        table = pa.table(
            {
                "step": pa.array(np.arange(len(self)), pa.int64()),
                "task": pa.DictionaryArray.from_arrays(tasks, list(self.tasks)).cast(pa.string()),
                "probability": pa.array(self.probability, pa.float64()),
                "loss": pa.array(self.before, pa.float64()),
                "loss_after": pa.nulls(len(self), pa.float64()) if self.after is None else pa.array(self.after),
                "reward": pa.array(self.rewards(), pa.float64()),
                "probabilities": pa.array(list(self.probabilities), pa.list_(pa.float64())),
            }
        )
        about = {name: getattr(self, name) for name in ("tasks", "sizes", "planned", "policy", "seed")}
        with replacing_bytes(Path(file)) as out:
            pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(about, default=dict)}), out)

    @classmethod
    def read(cls, file: str | Path) -> StepLog:
        """Read a log; invalid rows are refused by number, counted from 1."""
        folder = "name its files, such as RUN/logs/*.parquet"
        what = "log of training steps"
        table = read_columns(Path(file), COLUMNS, what=what, writer="StepLog.write", folder=folder)
        if not len(table):
            raise DataError("the log has no steps", path=file, fix="leave it out")
        about = _about(Path(file), table.schema.metadata)
        tasks = tuple(about["tasks"])
        rows = _Rows(Path(file), table)
        places = {task: place for place, task in enumerate(tasks)}
        names = table["task"].to_pylist()
        taken: IntArray = np.array([places.get(name, -1) for name in names], dtype=np.int64)
        rows.refuse(taken < 0, lambda row: f"its task is {names[row]!r}, and the tasks are {', '.join(tasks)}")
        steps = rows.numbers("step")
        rows.refuse(np.diff(steps, prepend=-np.inf) <= 0, lambda row: f"step {steps[row]:g} is not in order")
        before = rows.losses("loss")
        measured = "loss_after" in table.column_names and table["loss_after"].null_count < len(table)
        after = rows.losses("loss_after") if measured else None
        chances = rows.distributions("probabilities", len(tasks))
        about = about | {"tasks": tasks, "sizes": tuple(about["sizes"])}
        log = cls(taken=taken, probabilities=chances, before=before, after=after, **about)
        rows.refuse(log.probability <= 0, lambda row: f"task {names[row]!r} was trained with a probability of 0")
        return log


def read_logs(files: Iterable[str | Path]) -> list[StepLog]:
    """Read logs of the same tasks; all get the task order of the first."""
    found: list[StepLog] = []
    first: str | Path = ""
    for file in files:
        log = StepLog.read(file)
        if not found:
            first = file
        elif set(log.tasks) != set(found[0].tasks):
            raise DataError(
                f"its tasks are {', '.join(log.tasks)}, but those of {first} are {', '.join(found[0].tasks)}",
                path=file,
                fix="use logs of the same tasks",
            )
        for number, other in enumerate(found):
            if log.is_as(other):
                raise DataError(f"it has the same steps as log {number + 1}", path=file, fix="name every log once")
        found.append(log.in_order_of(found[0].tasks) if found else log)
    if not found:
        raise DataError("there is no log to read", fix="name one or more log files")
    return found


# -- validation of logs ----------------------------------------------------------------------------------------------
def check_logs(logs: Sequence[StepLog]) -> None:
    """Refuse logs of different tasks and inconsistent logs, by log and step."""
    if not logs:
        raise DataError("there are no logs to estimate from", fix="train with a log of the steps first")
    tasks = logs[0].tasks
    for number, log in enumerate(logs, start=1):
        if log.tasks != tasks:
            wrong = f"log {number} has the tasks {', '.join(log.tasks)}; log 1 has {', '.join(tasks)}"
            same = "put them in the same order" if sorted(log.tasks) == sorted(tasks) else "use logs of the same tasks"
            raise DataError(wrong, fix=same)
        if not len(log):
            raise DataError(f"log {number} has no steps", fix="leave it out")
        _check(log, number)


def _check(log: StepLog, number: int) -> None:
    shapes = log.probabilities.shape, log.before.shape
    if shapes != ((len(log), len(log.tasks)), (len(log),)):
        wrong = f"log {number} has {len(log)} steps of {len(log.tasks)} tasks"
        raise DataError(f"{wrong}, but probabilities {shapes[0]}, losses {shapes[1]}")
    unknown = (log.taken < 0) | (log.taken >= len(log.tasks))
    refuse(number, unknown, lambda step: f"there is no task number {log.taken[step]}")
    refuse(number, ~np.isfinite(log.before), lambda step: f"the loss of {log.trained(step)} is {log.before[step]}")
    chances = log.probabilities
    bad = not_distributions(chances)
    refuse(number, bad, lambda step: f"{chances[step].tolist()} are not probabilities that sum to 1")
    refuse(number, log.probability <= 0, lambda step: f"{log.trained(step)} was trained with a logged probability of 0")


def refuse(number: int, wrong: BoolArray, why: Callable[[int], str]) -> None:
    """Raise an error for the first wrong step of a log, if any."""
    if wrong.any():
        step = int(wrong.argmax())
        raise DataError(f"log {number}, step {step}: {why(step)}")


def not_distributions(rows: FloatArray) -> BoolArray:
    """Which rows are not distributions: something is below 0 or nan, or the sum is not 1."""
    return np.asarray(~((rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) <= SLACK)))


# -- validation of files ------------------------------------------------------------------------------------------
def _about(file: Path, metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The description of the training in the file's metadata."""
    try:
        about: dict[str, Any] = json.loads((metadata or {})[ABOUT])
        tasks, sizes = about["tasks"], about["sizes"]
        whole = all(isinstance(number, int) for number in (*sizes, about["planned"], about["seed"]))
        named = all(isinstance(task, str) for task in tasks) and len(set(tasks)) == len(tasks) == len(sizes) > 0
        if not (whole and named and isinstance(about["policy"], dict) and about["planned"] > 0):
            raise ValueError
        return {name: about[name] for name in ("tasks", "sizes", "planned", "policy", "seed")}
    except (KeyError, TypeError, ValueError):
        wrong = "its metadata lacks the tasks, their sizes or the planned steps"
        raise DataError(wrong, path=file, fix="write it with StepLog.write") from None


@dataclass(frozen=True)
class _Rows:
    """The rows of a file, checked column by column."""

    file: Path
    table: Any

    def refuse(self, bad: BoolArray, why: Any, fix: str | None = None) -> None:
        """Raise an error for the first bad row, if any."""
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"row {row + 1}: {why(row)}", path=self.file, fix=fix)

    def numbers(self, column: str) -> FloatArray:
        """A column of numbers: (rows,)."""
        try:
            found: FloatArray = self.table[column].cast(pa.float64()).to_numpy()
        except pa.ArrowException:
            raise DataError(f"the column {column!r} is not numeric", path=self.file) from None
        self.refuse(~np.isfinite(found), lambda row: f"the {column.replace('_', ' ')} is not a number")
        return found

    def losses(self, column: str) -> FloatArray:
        """A column of negative log-likelihoods: (rows,)."""
        found = self.numbers(column)
        self.refuse(
            found < 0,
            lambda row: f"the {column.replace('_', ' ')} is {found[row]:g}, which is not a negative log-likelihood",
            fix="log losses without label smoothing, so that exp(-loss) is a probability",
        )
        return found

    def distributions(self, column: str, tasks: int) -> FloatArray:
        """A column of distributions over all tasks: (rows, tasks)."""
        kind = self.table[column].type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise DataError(f"the column {column!r} does not hold lists with a number per task", path=self.file)
        lists = [value or [] for value in self.table[column].to_pylist()]
        lengths = np.array([len(chances) for chances in lists])
        self.refuse(lengths != tasks, lambda row: f"it has {lengths[row]} probabilities for {tasks} tasks")
        try:
            found = np.array(lists, dtype=float)
        except (TypeError, ValueError):
            raise DataError(f"the column {column!r} does not hold lists of numbers", path=self.file) from None
        sums = found.sum(axis=1)
        why = "its probabilities {} do not sum to 1 (they sum to {:g})"
        self.refuse(not_distributions(found), lambda row: why.format(lists[row], sums[row]))
        return found
