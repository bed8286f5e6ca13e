"""The definition of an intent: its weight, base urgency, and the lines of its requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bursar.simulation.grammar import Dice, zipf
from bursar.simulation.notation import Phrase, parse

RANKED = 1.5  # Zipf exponent of the lines of an intent


@dataclass(frozen=True)
class Template:
    """A line: an imperative that may get a frame (*could you …*), or a sentence used as it is."""

    phrase: Phrase
    framed: bool


@dataclass(frozen=True)
class Intent:
    """An intent with its lines in the notation of ``notation.py``, most frequent first.

    Lines that begin with ``=`` are used as they are; all others are imperatives.
    """

    name: str
    domain: str
    weight: float
    urgency: float
    lines: str

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        stripped = [line.strip() for line in self.lines.strip().splitlines()]
        return tuple(Template(parse(line.removeprefix("=")), framed=line[0] != "=") for line in stripped)

    @cached_property
    def cumulative(self) -> tuple[float, ...]:
        return zipf(len(self.templates), RANKED)

    def choose(self, dice: Dice) -> Template:
        return dice.weighted(self.templates, self.cumulative)
