"""Learners, policies and crashes for tests of trainings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from bursar.curriculum import FixedPolicy, Policy, Steering, make_policy
from bursar.learners.neural import NeuralLearner

TASKS = ["intent", "slots"]


def restored(learner, folder):
    """A new learner of the same tasks and settings, with the models of a folder."""
    found = NeuralLearner(learner.tasks, **asdict(learner.settings))
    found.restore(folder)
    return found


def made(corpus, folder, **more):
    usual = {"epochs": 4, "evaluate_every": 1, "learning_rate": 1e-2, "checkpoint_seconds": 0.0}
    return NeuralLearner(corpus.schema, encoder=str(folder), **(usual | more))


class Watching(Steering):
    """Chances that are quite others if anything of what was observed, or how often it was asked, is."""

    def __init__(self, course, after):
        self.tasks, self.asked, self.total, self.needs_after = np.arange(len(course.tasks)), 0, 0.0, after

    def probabilities(self, step):
        self.asked += 1
        weights = 0.02 + (997 * self.total + 0.61 * self.asked + 0.37 * self.tasks) % 1
        return (weights / weights.sum())[None]

    def observe(self, step, task, before, after):
        assert (after is not None) == self.needs_after
        self.total += task[0] + before[0] + (after[0] if self.needs_after else 0.0)


@dataclass(frozen=True)
class Watchful(Policy):
    name: ClassVar[str] = "watchful"
    after: bool = False

    def begin(self, course):
        return Watching(course, self.after)


@dataclass(frozen=True, eq=False)
class Recording(Policy):
    """Draws as its weights say and keeps what it observes."""

    name: ClassVar[str] = "recording"
    weights: dict
    observed: list
    after: bool = False

    def begin(self, course):
        steering = FixedPolicy(self.weights).begin(course)
        steering.needs_after = self.after
        steering.observe = lambda step, task, before, after: self.observed.append(
            (step, course.tasks[task[0]], before[0], None if after is None else after[0])
        )
        return steering

    def describe(self):
        return {"policy": self.name, "weights": self.weights}


POLICIES = [None, Watchful(), Watchful(after=True), make_policy("exp3s", rate=0.5)]


class Crash(Exception):
    pass


def crash_after(calls):
    left = [calls]

    def progress(what, done):
        left[0] -= what == "training"
        if left[0] < 0:
            raise Crash

    return progress
