"""The multi-task bandit (paper 3, section 4.1): a training run reduced to what a task policy observes.

Each arm is a task with a score. Training it raises its score by its learning increment up to a maximum; every step
lowers every score a little. How often each arm needs training is a hidden distribution. All environments and runs are
simulated in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bursar.curriculum.logs import StepLog
from bursar.curriculum.policy import Course, Steering
from bursar.curriculum.rewards import REWARDS
from bursar.ragged import FloatArray, IntArray

FLOOR = 1e-3  # an arm's loss is -log(max(score, FLOOR)) (errata 21)


@dataclass(frozen=True)
class Bandits:
    """Environments, one per row."""

    wanted: FloatArray  # (environments, arms): how often each arm needs training; rows sum to 1
    most: FloatArray  # (environments, arms): maximum score
    forgets: FloatArray  # (environments, arms): loss of score per step, relative to the gain of training
    steps: int

    @classmethod
    def sample(
        cls, environments: int, *, arms: int = 8, concentration: float = 2.0, steps: int = 2000, seed: int = 0
    ) -> Bandits:
        """Sample as in the paper: needs from a Dirichlet, maxima from 0.5 to 1, forgetting up to 0.01."""
        rng = np.random.default_rng([seed, 31])
        wanted = np.maximum(rng.dirichlet(np.full(arms, concentration), size=environments), 1e-6)
        return cls(
            wanted / wanted.sum(axis=1, keepdims=True),
            rng.uniform(0.5, 1.0, size=(environments, arms)),
            rng.uniform(0.0, 0.01, size=(environments, arms)),
            steps,
        )

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(f"arm {k + 1}" for k in range(self.wanted.shape[1]))

    @property
    def gain(self) -> FloatArray:
        """The gain of training an arm once: LI of the paper."""
        return self.most / (self.steps * self.wanted)

    def course(self, runs: int, seed: int = 0) -> Course:
        """``runs`` runs of every environment, those of one environment next to each other."""
        return Course(self.arms, (1,) * len(self.arms), self.steps, seed, len(self.wanted) * runs)


@dataclass(frozen=True)
class Play:
    """The history of all runs."""

    course: Course
    taken: IntArray  # (steps, runs)
    probabilities: FloatArray  # (steps, runs, arms)
    before: FloatArray  # (steps, runs): the loss of the chosen arm
    after: FloatArray  # (steps, runs)
    marks: IntArray  # (points,): number of steps after which scores were recorded, the last at the end
    scores: FloatArray  # (points, runs): the average score of all arms

    @property
    def final(self) -> FloatArray:
        """The average score at the end: (runs,)."""
        last: FloatArray = self.scores[-1]
        return last

    def rewards(self, name: str) -> FloatArray:
        """The reward of every step by a reward signal: (steps, runs)."""
        reward = REWARDS[name](self.course)
        return np.array([reward(*step) for step in zip(self.taken, self.before, self.after, strict=True)])

    def logs(self, rewards: Sequence[str] = ()) -> list[StepLog]:
        """Every run as a training log. The named rewards are computed for all runs at once."""
        earned = {name: self.rewards(name) for name in rewards}
        return [
            StepLog(
                self.course.tasks,
                self.course.sizes,
                self.course.steps,
                self.taken[:, run],
                self.probabilities[:, run],
                self.before[:, run],
                self.after[:, run],
                earned={name: found[:, run] for name, found in earned.items()},
            )
            for run in range(self.course.runs)
        ]


def play(bandits: Bandits, begin: Callable[[Course], Steering], *, runs: int, seed: int = 0, points: int = 50) -> Play:
    """Train with a policy, ``runs`` times in every environment. ``begin`` makes the policy's state for a course.

    >>> from bursar.curriculum import make_policy
    >>> bandits = Bandits.sample(3, steps=200)
    >>> played = play(bandits, make_policy("uniform").begin, runs=4)
    >>> played.scores.shape, bool((played.final <= bandits.most.max()).all())
    ((50, 12), True)
    """
    course = bandits.course(runs, seed)
    steering = begin(course)
    most, gain = (np.repeat(table, runs, axis=0) for table in (bandits.most, bandits.gain))
    loss = np.repeat(bandits.forgets, runs, axis=0) * gain
    score = np.zeros_like(most)
    uniform = np.random.default_rng([seed, 37]).random((bandits.steps, course.runs))
    rows = np.arange(course.runs)
    taken = np.empty((bandits.steps, course.runs), dtype=np.int64)
    before, after = np.empty(taken.shape), np.empty(taken.shape)
    chances = np.empty((*taken.shape, len(course.tasks)))
    marks = np.unique(np.linspace(0, bandits.steps, points + 1).round().astype(int))[1:]
    scores: list[FloatArray] = []
    for step in range(bandits.steps):
        chances[step] = steering.probabilities(step)
        arm = draw(chances[step], uniform[step])
        taken[step] = arm
        before[step] = _loss(score[rows, arm])
        score[rows, arm] = np.minimum(score[rows, arm] + gain[rows, arm], most[rows, arm])
        np.maximum(score - loss, 0.0, out=score)
        after[step] = _loss(score[rows, arm])
        steering.observe(step, arm, before[step], after[step])
        if step + 1 == marks[len(scores)]:
            scores.append(score.mean(axis=1))
    return Play(course, taken, chances, before, after, marks, np.array(scores))


def _loss(score: FloatArray) -> FloatArray:
    loss: FloatArray = -np.log(np.maximum(score, FLOOR))
    return loss


def draw(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """Draw a task per row, from uniform numbers from 0 to 1.

    >>> draw(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0.2, 0.0])).tolist()
    [0, 1]
    """
    ends = np.cumsum(probabilities, axis=1)
    ends /= ends[:, -1:]
    found: IntArray = (uniform[:, None] >= ends).sum(axis=1)
    return found
