"""One confidence for every item and task, for all kinds of tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bursar.errors import SchemaError
from bursar.ragged import FloatArray
from bursar.tasks import AnyBeliefs, Task
from bursar.uncertainty.measures import Measure


def confidences(tasks: Mapping[str, Task], beliefs: Mapping[str, AnyBeliefs], measure: Measure) -> FloatArray:
    """Confidence by item and task: (items, tasks), in the order of the tasks.

    If relations have no unit, because fewer than two spans were found, the confidence in the spans is used (errata 3).

    >>> from bursar.tasks import Beliefs, make_task
    >>> from bursar.uncertainty import MEASURES
    >>> tasks = {"intent": make_task("intent", {"kind": "classification", "labels": ["alarm", "music"]})}
    >>> confidences(tasks, {"intent": Beliefs.of([[1, 0], [0.5, 0.5]], units=[1, 1])}, MEASURES["entropy"]).tolist()
    [[1.0], [0.0]]
    """
    missing = [name for name in tasks if name not in beliefs]
    if missing or not tasks:
        raise SchemaError(
            f"there are no predictions of task {missing[0]!r}" if missing else "there are no tasks",
            fix="use a learner of these tasks",
        )
    own = {name: measure(beliefs[name]) for name in tasks}
    columns = []
    for name, task in tasks.items():
        partner = task.partner(tasks)
        columns.append(own[name] if partner is None else np.where(beliefs[name].units > 0, own[name], own[partner]))
    return np.stack(columns, axis=1)
