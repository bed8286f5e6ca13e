"""What an intent is made of: its share, how urgent it is by itself, and the lines that ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bursar.simulation.grammar import Dice, zipf
from bursar.simulation.notation import Phrase, parse

RANKED = 1.5  # how steeply the lines of an intent fall off: a few are heard all the time, most hardly ever


@dataclass(frozen=True)
class Template:
    """A line: an order that a frame may soften (*could you …*), or something said just so."""

    phrase: Phrase
    framed: bool


@dataclass(frozen=True)
class Intent:
    """An intent with its lines in the notation of ``notation.py``, frequent ones first.

    Lines that begin with ``=`` are said as they stand; all others are orders.
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
