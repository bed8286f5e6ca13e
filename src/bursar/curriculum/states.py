"""The state of each task in a training, from the losses of its steps so far. Many trainings at once."""

from __future__ import annotations

import numpy as np

from bursar.curriculum.policy import Course
from bursar.ragged import FloatArray, IntArray

RECENT, LONGER = 5.0, 25.0  # samples in the two averages that are compared
STILL = 1e-9  # initial value of the largest gain, above 0


class TaskStates:
    """Two running averages of every task's likelihood.

    Single batches are noisy, so likelihoods are averaged over about the ``recent`` last samples. Compared with the
    average over ``longer`` they show whether the task still improves.

    >>> states = TaskStates(Course(("a",), (1,), steps=9), recent=1, longer=4)
    >>> for step, loss in enumerate([2.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]):
    ...     states.observe(step, np.array([0]), np.array([loss]))
    ...     if step in (1, 2, 4, 7):
    ...         print(f"after {step + 1} samples: {states.pace[0, 0]:.2f}")
    after 2 samples: 1.00
    after 3 samples: 1.00
    after 5 samples: 0.56
    after 8 samples: 0.24
    """

    def __init__(self, course: Course, recent: float = RECENT, longer: float = LONGER) -> None:
        self.recent, self.longer = recent, longer
        shape = course.runs, len(course.tasks)
        self.rows = np.arange(course.runs)
        self.fast, self.slow = np.zeros(shape), np.zeros(shape)  # likelihoods, 0 to 1
        self.fastest = np.full(shape, STILL)  # the largest gain so far
        self.seen = np.zeros(shape, dtype=np.int64)  # samples
        self.last = np.zeros(shape)  # step of the last sample

    def observe(self, step: int, task: IntArray, loss: FloatArray) -> None:
        """Add the loss of the task that each run trained."""
        at, now = (self.rows, task), np.exp(-loss)
        new = self.seen[at] == 0
        fast = np.where(new, now, self.fast[at] + (now - self.fast[at]) / self.recent)
        slow = np.where(new, now, self.slow[at] + (now - self.slow[at]) / self.longer)
        self.fast[at], self.slow[at], self.last[at] = fast, slow, step
        self.fastest[at] = np.maximum(self.fastest[at], fast - slow)
        self.seen[at] += 1

    @property
    def shortfall(self) -> FloatArray:
        """1 − the likelihood of each task: (runs, tasks), 1 before its first sample."""
        return 1 - self.fast

    @property
    def pace(self) -> FloatArray:
        """The rate of improvement of each task, as a share of its highest so far: (runs, tasks), -1 to 1."""
        found: FloatArray = np.clip((self.fast - self.slow) / self.fastest, -1, 1)
        return found
