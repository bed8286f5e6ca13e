"""The labels of items as a table: known ones, and a model's for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.uncertainty import MEASURES, confidences


@dataclass(frozen=True, eq=False)
class Predicted:
    """By task, the label of each item, how sure it is, and whether it was known before."""

    items: Corpus
    labels: dict[str, list[Any]]
    sure: dict[str, list[float]]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each item: its label for each task, how sure, and by whom."""
        import pandas as pd

        texts = {} if self.items.texts is None else {"text": self.items.texts.strings.tolist()}
        columns: dict[str, Any] = {"id": self.items.ids.tolist()} | texts
        for name, column in self.items.labels.items():
            known = column.present.tolist()
            columns[name] = self.labels[name]
            columns[f"{name} sure"] = [
                None if there else sure for there, sure in zip(known, self.sure[name], strict=True)
            ]
            columns[f"{name} by"] = ["given" if there else "model" for there in known]
        return pd.DataFrame(columns)


def predicted(learner: Learner, items: Corpus) -> Predicted:
    """Label items that may have some labels already."""
    labels: dict[str, list[Any]] = {name: [] for name in learner.tasks}
    sure: dict[str, list[float]] = {name: [] for name in learner.tasks}
    for part, beliefs in learner.predict_in_chunks(items):
        found = confidences(learner.tasks, beliefs, MEASURES["entropy"])
        for at, (name, task) in enumerate(learner.tasks.items()):
            known, guesses = items.labels[name].take(part), task.decode(beliefs[name])
            rows = [known.rows[k] if known.present[k] else guesses[k] for k in range(len(part))]
            labels[name] += [task.value(row) for row in rows]
            sure[name] += found[:, at].tolist()
    return Predicted(items, labels, sure)
