"""Training steps: which items and which tasks each one trains, by the seed or by a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import torch

from bursar.curriculum import Course, Policy, StepLog
from bursar.errors import LearnerError
from bursar.learners.settings import TrainingPlan
from bursar.ragged import BoolArray, FloatArray, IntArray
from bursar.random_streams import rng


def batches(lengths: IntArray, size: int, random: np.random.Generator) -> list[IntArray]:
    """Shuffled batches of items of similar length: shuffle, sort within runs of eight batches, shuffle the batches."""
    order = random.permutation(len(lengths))
    run = size * 8
    for at in range(0, len(order), run):
        part = order[at : at + run]
        order[at : at + run] = part[np.argsort(lengths[part], kind="stable")]
    cuts = [order[at : at + size] for at in range(0, len(order), size)]
    return [cuts[i] for i in random.permutation(len(cuts))]


def joint_steps(
    present: Mapping[str, BoolArray], lengths: IntArray, size: int, seed: int, epoch: int
) -> Iterator[tuple[IntArray, list[str]]]:
    """The batches of an epoch, each with all tasks that it has labels for."""
    for batch in batches(lengths, size, rng(seed, "joint batches", epoch)):
        yield batch, [name for name, there in present.items() if there[batch].any()]


class PolicySteps:
    """Steps chosen by a policy: each draws a task, takes a batch of its items, and reports the loss to the policy.

    Every draw depends on the seed and the number of the step alone, and all observations are kept. So a training can
    be resumed at any step, and logged.
    """

    def __init__(
        self, policy: Policy, present: Mapping[str, BoolArray], lengths: IntArray, plan: TrainingPlan, steps: int
    ) -> None:
        members = {name: np.flatnonzero(there) for name, there in present.items() if there.any()}
        sizes = tuple(len(items) for items in members.values())
        self.course = Course(tuple(members), sizes, steps, plan.seed)
        self.steering = policy.begin(self.course)
        self.policy, self.lengths, self.size = policy, lengths, plan.schedule.batch_size
        self.members = list(members.values())
        self.done = [0] * len(members)  # finished steps of each task
        self._cuts: list[tuple[int, list[IntArray]]] = [(-1, [])] * len(members)  # per task: its pass, and the batches
        self.taken: list[int] = []
        self.chances: list[FloatArray] = []  # (tasks,) each
        self.before: list[float] = []
        self.after: list[float] = []  # empty if not measured

    @property
    def needs_after(self) -> bool:
        return self.steering.needs_after

    def next(self) -> tuple[IntArray, str]:
        step, seed = len(self.before), self.course.seed
        chances = self._chances(step)
        at = int(rng(seed, "task draws", step).choice(len(chances), p=chances))
        task, items = self.course.tasks[at], self.members[at]
        cycle, place = divmod(self.done[at], -(-len(items) // self.size))
        if self._cuts[at][0] != cycle:
            random = rng(seed, "task batches", crc32(task.encode()), cycle)
            self._cuts[at] = cycle, batches(self.lengths[items], self.size, random)
        self.taken.append(at)
        self.chances.append(chances)
        self.done[at] += 1
        return items[self._cuts[at][1][place]], task

    def _chances(self, step: int) -> FloatArray:
        found = np.asarray(self.steering.probabilities(step), dtype=float)
        tasks = len(self.course.tasks)
        if found.shape != (1, tasks) or not found.min() >= 0 or not abs(found.sum() - 1) <= 1e-6:
            raise LearnerError(
                f"step {step}: the policy {self.policy.name!r} returned {found.tolist()}, "
                f"which are no probabilities of {', '.join(self.course.tasks)}",
                fix="probabilities(step) must return one row that sums to 1",
            )
        return np.asarray(found[0] / found.sum())  # exactly 1 in sum, as ``choice`` requires

    def observe(self, before: float, after: float | None) -> None:
        """Report the negative log-likelihood of the last batch before its step, and after it if measured."""
        step = len(self.before)
        measured = None if after is None else np.array([after])
        self.steering.observe(step, np.array([self.taken[step]]), np.array([before]), measured)
        self.before.append(before)
        if after is not None:
            self.after.append(after)

    # -- checkpoints and logs ------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return {
            "taken": torch.tensor(self.taken, dtype=torch.int64),
            "before": torch.tensor(self.before, dtype=torch.float64),
            "after": torch.tensor(self.after, dtype=torch.float64),
            "probabilities": torch.from_numpy(self._all_chances()),
        }

    def replay(self, state: Mapping[str, Any]) -> None:
        """Report the observations of a checkpoint to the policy again."""
        before, after = state["before"].tolist(), state["after"].tolist()
        for step, at in enumerate(state["taken"].tolist()):
            self.steering.probabilities(step)
            self.taken.append(at)
            self.done[at] += 1
            self.observe(before[step], after[step] if after else None)
        self.chances = list(state["probabilities"].numpy())

    def log(self) -> StepLog:
        course, chances, policy = self.course, self._all_chances(), self.policy.describe()
        taken, before = np.array(self.taken, dtype=np.int64), np.array(self.before)
        after = np.array(self.after) if self.after else None
        return StepLog(course.tasks, course.sizes, course.steps, taken, chances, before, after, policy, course.seed)

    def _all_chances(self) -> FloatArray:
        return np.array(self.chances).reshape(len(self.chances), len(self.course.tasks))
