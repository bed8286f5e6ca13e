"""Relations: typed links between two typed spans of an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bursar.errors import LabelError, SchemaError
from bursar.ragged import Ragged
from bursar.tasks.beliefs import AnyBeliefs, Beliefs
from bursar.tasks.marks import Arrow, Control, Marks
from bursar.tasks.schemes import Span
from bursar.tasks.task import KINDS, Row, Task, Vocabulary, rows_of_choices, span_of


@dataclass(frozen=True)
class Relations(Task):
    """Links between spans; their JSON is a list of ``[[start, end, type], [start, end, type], relation]``.

    A relation includes its two spans and their types, so the strict score (both spans, both types and the relation
    must be right) needs only the relations.

    >>> task = Relations("rel", ("used-for",), entity_types=("method", "task"))
    >>> task.encode([[[0, 2, "method"], [3, 4, "task"], "used-for"]], words=5).tolist()
    [[0, 2, 0, 3, 4, 1, 0]]
    """

    entity_types: tuple[str, ...] = ()

    kind = "relations"
    width = 7
    styles = {"pairs": "bursar.tasks.heads.spans:PairHead"}
    counted = "relation"
    prices = {"per_item": 0, "per_relation": 1}
    code_columns = {"labels": (6,), "entity_types": (2, 5)}
    vocabularies = ("labels", "entity_types")
    of_words = True
    seconds = (3.0, 6.0)
    form = "relations between spans"
    control = Control("Labels", ("labels",), labels="entity_types", arrows="labels")

    @property
    def may_be_empty(self) -> bool:
        return True

    def rows(self, value: Any, words: int, vocabulary: Mapping[str, Vocabulary]) -> list[Row]:
        if not isinstance(value, list):
            raise LabelError("relations must be a list of [span, span, relation]")
        types = vocabulary["entity_types"]
        rows: list[Row] = []
        for entry in value:
            match entry:
                case [[_, _, first], [_, _, second], label]:
                    source, target = span_of(entry[0], words), span_of(entry[1], words)
                    ends = (*source, types.code(first), *target, types.code(second))
                    rows.append((*ends, vocabulary["labels"].code(label)))
                case _:
                    form = "[[start, end, type], [start, end, type], label]"
                    raise LabelError(f"a relation must be {form}, not {entry!r}")
        return rows

    def value(self, rows: NDArray[Any]) -> list[Any]:
        kinds = self.entity_types
        return [
            [[a, b, kinds[first]], [c, d, kinds[second]], self.labels[label]]
            for a, b, first, c, d, second, label in rows.tolist()
        ]

    @classmethod
    def recognises(cls, value: Any) -> bool:
        match value:
            case [[[*_], [*_], str()], *_]:
                return True
        return False

    def show(self, value: Any, words: Sequence[str]) -> list[str]:
        """The linked words."""
        return [
            f"{' '.join(words[a:b])} ({first}) → {label} → {' '.join(words[c:d])} ({second})"
            for (a, b, first), (c, d, second), label in value
        ]

    def marks(self, value: Any) -> Marks:
        places: dict[Span, int] = {}
        arrows: list[Arrow] = []
        for (a, b, first), (c, d, second), label in value:
            source, target = (places.setdefault(span, len(places)) for span in ((a, b, first), (c, d, second)))
            arrows.append((source, target, label))
        return Marks(spans=list(places), arrows=arrows)

    def from_marks(self, marks: Marks, words: int) -> list[Any]:
        return [[[*marks.spans[source]], [*marks.spans[target]], label] for source, target, label in marks.arrows]

    def partner(self, tasks: Mapping[str, Task]) -> str | None:
        """The tagging task that finds the spans: one whose labels are this task's entity types."""
        for name, task in tasks.items():
            if task.kind == "tagging" and set(self.entity_types) <= set(task.labels):
                return name
        raise SchemaError(
            f"task {self.name!r}: relations need a task for the entities they link, and there is none",
            fix=f"add a tagging task with the labels {', '.join(self.entity_types)}",
        )

    def decode(self, beliefs: AnyBeliefs) -> Ragged:
        assert isinstance(beliefs, Beliefs)
        return rows_of_choices(beliefs, beliefs.dense().mean(axis=0).argmax(axis=1))


KINDS.add(Relations.kind, Relations)
