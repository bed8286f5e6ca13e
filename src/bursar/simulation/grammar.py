"""A grammar whose phrases have heads, and random sentences from it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import TypeVar

from bursar.simulation.notation import Group, Hole, Part, Phrase, Reference, Splice, Word, parse

T = TypeVar("T")

SMALL_WORDS = frozenset("a an the of and in on at to for by with from".split())


class Dice:
    """A random stream of one item for one seed, so that no item depends on how many there are.

    Only ``Random.random`` is used, because the standard library guarantees that it never changes.
    """

    __slots__ = ("random",)

    def __init__(self, seed: int, item: int, stream: int) -> None:
        whole = 2 * int(seed) if seed >= 0 else -2 * int(seed) - 1  # Random treats 5 and -5 as the same seed
        self.random = Random((whole << 44) + (item << 4) + stream).random

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def below(self, bound: int) -> int:
        return int(self.random() * bound)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def weighted(self, choices: Sequence[T], cumulative: Sequence[float]) -> T:
        """One of the choices, with weights as cumulative sums that end with 1."""
        return choices[min(bisect(cumulative, self.random()), len(choices) - 1)]


def running_shares(weights: Iterable[float]) -> tuple[float, ...]:
    """Weights as cumulative sums that end with 1."""
    sums = list(accumulate(weights))
    return tuple(s / sums[-1] for s in sums)


def zipf(choices: int, exponent: float) -> tuple[float, ...]:
    """Cumulative shares of choices with weights k ** -exponent."""
    return running_shares(k**-exponent for k in range(1, choices + 1))


@dataclass(slots=True)
class Span:
    """A slot: words ``start`` to ``end`` (exclusive), its type, and its role in relations."""

    start: int
    end: int
    kind: str
    role: str


@dataclass(slots=True)
class Fragment:
    """Words with their tree. A word whose head is outside of the piece has the head -1."""

    words: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    urgency: float = 0.0

    def append(self, other: Fragment) -> int:
        """Append another piece's words; return the new position of its first word."""
        base = len(self.words)
        self.words += other.words
        self.labels += other.labels
        self.heads += [head + base if head >= 0 else -1 for head in other.heads]
        self.spans += [Span(s.start + base, s.end + base, s.kind, s.role) for s in other.spans]
        self.urgency += other.urgency
        return base


@dataclass(frozen=True, slots=True)
class Symbol:
    """Phrases to choose from, the most frequent first."""

    phrases: tuple[Phrase, ...]
    cumulative: tuple[float, ...]
    title: bool


class Grammar:
    """Symbols by name; generates random phrases."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}

    # -- defining ------------------------------------------------------------------------------------------------
    def define(self, name: str, lines: str, *, exponent: float = 1.35, title: bool = False) -> None:
        """Define a symbol by lines of the notation, most frequent first; ``title`` capitalises its words."""
        self._add(name, [parse(line) for line in lines.strip().splitlines()], exponent, title)

    def compounds(self, name: str, entries: str, *, exponent: float = 1) -> None:
        """Define a symbol by a comma-separated list whose entries have their last word as head: *living room*."""
        self._add(name, [_row(e.split(), -1, "compound") for e in entries.split(",")], exponent, False)

    def names(self, name: str, entries: str, *, exponent: float = 1) -> None:
        """Define a symbol by a comma-separated list whose entries have their first word as head: *New York*."""
        self._add(name, [_row(e.split(), 0, "flat") for e in entries.split(",")], exponent, False)

    def _add(self, name: str, phrases: list[Phrase], exponent: float, title: bool) -> None:
        if name in self.symbols:
            raise ValueError(f"symbol {name!r} is defined twice")
        self.symbols[name] = Symbol(tuple(phrases), zipf(len(phrases), exponent), title)

    # -- writing -------------------------------------------------------------------------------------------------
    def choose(self, symbol: str, dice: Dice) -> Phrase:
        found = self.symbols[symbol]
        return dice.weighted(found.phrases, found.cumulative)

    def settle(self, phrase: Phrase, piece: Fragment, dice: Dice) -> list[Part]:
        """Choose which optional parts to include, and expand spliced groups."""
        piece.urgency += phrase.urgency
        said: list[Part] = []
        for part in phrase.parts:
            if part.chance < 1 and dice.random() >= part.chance:
                continue
            if type(part) is Splice:
                said += self.settle(self.choose(part.symbol, dice), piece, dice)
            else:
                said.append(part)
        return said

    def write(self, phrase: Phrase, piece: Fragment, dice: Dice, clause: Fragment | None = None) -> int:
        """Append a phrase to a piece; return the position of its head."""
        return self.write_parts(self.settle(phrase, piece, dice), phrase.head, piece, dice, clause)

    def write_parts(
        self, parts: Iterable[Part], head: Part | None, piece: Fragment, dice: Dice, clause: Fragment | None = None
    ) -> int:
        """Append settled parts. If none of them is the head, their heads stay -1."""
        top = -1
        children: list[tuple[int, str]] = []
        for part in parts:
            at = self._write_part(part, piece, dice, clause)
            if part is head:
                top = at
            else:
                children.append((at, part.label))
        for child, label in children:
            piece.heads[child], piece.labels[child] = top, label
        return top

    def _write_part(self, part: Part, piece: Fragment, dice: Dice, clause: Fragment | None) -> int:
        if type(part) is Word:
            piece.words.append(part.choices[0] if len(part.choices) == 1 else dice.pick(part.choices))
            piece.heads.append(-1)
            piece.labels.append(part.label)
            return len(piece.words) - 1
        if type(part) is Reference:
            return self._write_symbol(part, piece, dice)
        if type(part) is Group:
            return self.write(part.phrase, piece, dice, clause)
        if type(part) is Hole and clause is not None:
            head = piece.append(clause) + clause.heads.index(-1)
            if part.gerund:
                piece.words[head] = gerund_of(piece.words[head])
            return head
        raise ValueError(f"nothing can be written for {part}")

    def _write_symbol(self, part: Reference, piece: Fragment, dice: Dice) -> int:
        start = len(piece.words)
        symbol = self.symbols[part.symbol]
        head = self.write(dice.weighted(symbol.phrases, symbol.cumulative), piece, dice)
        if symbol.title:
            words = piece.words
            for at in range(start, len(words)):
                if at == start or words[at] not in SMALL_WORDS:
                    words[at] = words[at][0].upper() + words[at][1:]
        if part.kind:
            piece.spans.append(Span(start, len(piece.words), part.kind, part.role))
        return head


DOUBLED = frozenset("set put get stop skip cut dim plan shut let run drop begin tag".split())


def gerund_of(verb: str) -> str:
    """The -ing form of a verb.

    >>> [gerund_of(verb) for verb in ("set", "make", "play", "see")]
    ['setting', 'making', 'playing', 'seeing']
    """
    if verb in DOUBLED:
        return f"{verb}{verb[-1]}ing"
    return f"{verb[:-1]}ing" if verb.endswith("e") and not verb.endswith("ee") else f"{verb}ing"


def _row(words: list[str], head: int, label: str) -> Phrase:
    """Plain words of which one is the head of the others."""
    parts = tuple(Word(label, 1.0, (word,)) for word in words)
    return Phrase(parts, parts[head])
