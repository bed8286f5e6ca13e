"""How annotation tools show a label: as values of the item, or as labelled spans of words with arrows between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bursar.errors import LabelError
from bursar.tasks.schemes import Span

Arrow = tuple[int, int, str | None]  # positions of two spans among the spans of the label; the arrow's label, if any


@dataclass(frozen=True)
class Marks:
    """A label as values, spans and arrows. Tools that read or write spans need to know no task kind."""

    values: Sequence[Any] = field(default_factory=list)
    spans: Sequence[Span] = field(default_factory=list)
    arrows: Sequence[Arrow] = field(default_factory=list)

    def single(self) -> Any:
        """The only value."""
        if len(self.values) != 1:
            what = f"it has {len(self.values)} answers, and an item has one" if self.values else "it has no answer"
            raise LabelError(what)
        return self.values[0]

    def span_of_each_word(self, words: int) -> list[int]:
        """The positions of the spans of word 1, 2, and so on; an error unless every word has one of its own."""
        at: dict[int, int] = {}
        for position, (start, end, _) in enumerate(self.spans):
            if end - start != 1 or start in at:
                raise LabelError(f"every word needs one label of its own; word {start + 1} has two, or shares one")
            at[start] = position
        for word in range(words):
            if word not in at:
                raise LabelError(f"word {word + 1} of {words} has no label")
        return [at[word] for word in range(words)]


@dataclass(frozen=True)
class Control:
    """The control of Label Studio that asks for a kind of label.

    ``Labels`` marks spans; other tags ask for values. Arrows without labels are drawn between a task's own spans.
    Arrows with labels may link the spans of another task.
    """

    tag: str  # Choices, Labels, Number
    results: tuple[str, ...]  # the types of its results; the first is written
    labels: str = "labels"  # the vocabulary it offers; empty if none
    arrows: str | None = None  # the vocabulary of the arrows; empty if they have no labels, None without arrows
    attributes: Callable[[Any], Mapping[str, str]] = lambda task: {}
