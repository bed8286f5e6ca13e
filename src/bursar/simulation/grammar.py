"""A grammar whose phrases have heads, the notation of its phrases, and random sentences from it.

One line of text defines the words, the slots and the tree of a phrase.

``wake me up/prt (~obl at {time}) (obl:tmod {date})?`` means: *wake* is the head; *me* is its object, because function
words have default labels; *up* has the label after the slash; the groups depend on *wake* with the label they begin
with, and each has a head found in the same way. Parts:

=================  ==================================================================================
``a|b|c``          one of these words
``word/label``     a word that hangs on the head; ``prt`` is short for ``compound:prt``
``{time}``         a slot: what the symbol *time* gives, marked as a span of that type
``{time:old=t}``   the same with a role (which relations look at) and with another symbol for its words
``<symbol>``       what a symbol gives, not marked
``+symbol``        groups of a symbol that hang on the head of *this* phrase
``(label …)``      a group; ``(~label …)`` may be said first
``…?``, ``…?.2``   left out sometimes, or with that chance said
``*word``          the head, although the word is a function word
``__``, ``__ing``  in a frame: the clause, or the clause with its verb in the -ing form
``!.3``            at the end of a line: how much more urgent the meaning is with this phrase in it
=================  ==================================================================================
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import TypeVar

T = TypeVar("T")

SMALL_WORDS = frozenset("a an the of and in on at to for by with from".split())
SHORT = {"prt": "compound:prt", "poss": "nmod:poss"}

# Default labels of function words. They are never heads by themselves.
FUNCTION_LABELS = {
    "det": "a an the this that these those some any every each all no another what which",
    "nmod:poss": "my your our his her their",
    "case": "at for in on to from with by of about until till into near around before after past during under via as "
    "through without between over since like",
    "cc": "and or but",
    "aux": "can could will would should do does did must may might don't can't didn't won't let's",
    "cop": "is are was were be isn't aren't what's where's when's who's how's",
    "nsubj": "i you we they he she i'm i'll i've i'd we're we'll it's that's you're he's she's there's they're we've",
    "obj": "me it them us him",
    "discourse": "please hey ok okay thanks so well",
    "advmod": "not now again too very really just also still already soon there here why how when where currently "
    "instead today's away back then ever",
    "mark": "because if while if so",
}
DEFAULT_LABEL = {word: label for label, words in FUNCTION_LABELS.items() for word in words.split()}

TOKEN = re.compile(r"\(~?[a-z:]+|\)(?:\?[\d.]*)?|[^\s()]+")
ENDING = re.compile(r"^(?P<body>.*?)(?:/(?P<label>[a-z:]+))?(?:\?(?P<chance>[\d.]*))?$")
SLOT = re.compile(r"^\{(?P<kind>\w+)(?::(?P<role>\w+))?(?:=(?P<symbol>\w+))?\}$")
URGENCY = re.compile(r"\s!(-?[\d.]+)\s*$")
SOMETIMES = 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a phrase: its dependency label, and the probability that it is included."""

    label: str
    chance: float


@dataclass(frozen=True, slots=True)
class Word(Part):
    """One of several words."""

    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reference(Part):
    """A phrase of a symbol; with a ``kind`` it is a slot."""

    symbol: str
    kind: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Splice(Part):
    """Groups of a symbol that depend on the head of the phrase they are spliced into."""

    symbol: str


@dataclass(frozen=True, slots=True)
class Group(Part):
    """A phrase inside a phrase."""

    phrase: Phrase
    movable: bool


@dataclass(frozen=True, slots=True)
class Hole(Part):
    """The place of the clause in a frame."""

    gerund: bool


@dataclass(frozen=True, slots=True)
class Phrase:
    """Parts in order. ``head`` is one of them, or ``None`` if the parts are to be spliced into another phrase."""

    parts: tuple[Part, ...]
    head: Part | None
    urgency: float = 0.0

    def walk(self) -> Iterator[Part]:
        """All parts, including those of groups."""
        for part in self.parts:
            yield part
            if isinstance(part, Group):
                yield from part.phrase.walk()


def parse(line: str) -> Phrase:
    """Parse a line of the notation; a ``ValueError`` quotes an invalid line."""
    found = URGENCY.search(line)
    tokens = TOKEN.findall(line[: found.start()] if found else line)
    tokens.reverse()
    phrase = _phrase(tokens, line.strip())
    if tokens:
        raise ValueError(f"a bracket too many in {line.strip()!r}")
    return Phrase(phrase.parts, phrase.head, float(found.group(1)) if found else 0.0)


def _phrase(tokens: list[str], line: str) -> Phrase:
    """Parse parts up to the end or the closing bracket of the group, and find the head."""
    parts: list[Part] = []
    while tokens and tokens[-1][0] != ")":
        token = tokens.pop()
        parts.append(_group(token, tokens, line) if token[0] == "(" else _part(token))
    heads = [part for part in parts if not part.label and not isinstance(part, Splice)]
    if not heads and len(parts) == 1 and isinstance(parts[0], Word):
        heads = parts  # a function word alone is the head of its phrase
    if len(heads) > 1:
        raise ValueError(f"{len(heads)} possible heads in {line!r}")
    if heads and heads[0].chance < 1:
        raise ValueError(f"the head can be left out in {line!r}")
    return Phrase(tuple(parts), heads[0] if heads else None)


def _group(token: str, tokens: list[str], line: str) -> Group:
    inner = _phrase(tokens, line)
    if not tokens or inner.head is None:
        raise ValueError(f"a group without an end or without a head in {line!r}")
    _, _, chance = tokens.pop().partition("?") if "?" in tokens[-1] else (tokens.pop(), "", "1")
    label = token[1:].lstrip("~")
    return Group(SHORT.get(label, label), float(chance or SOMETIMES), inner, movable=token[1] == "~")


def _part(token: str) -> Part:
    star = token[0] == "*"
    match = ENDING.match(token.removeprefix("*"))
    if match is None:
        raise ValueError(f"cannot read {token!r}")
    body, label = match["body"], match["label"] or ""
    label = SHORT.get(label, label)
    chance = 1.0 if match["chance"] is None else float(match["chance"] or SOMETIMES)
    slot = SLOT.match(body)
    if slot:
        return Reference(label, chance, slot["symbol"] or slot["kind"], slot["kind"], slot["role"] or slot["kind"])
    if body[0] == "<":
        return Reference(label, chance, body[1:-1])
    if body[0] == "+":
        return Splice("", chance, body[1:])
    if body.startswith("__"):
        return Hole(label, chance, gerund=body == "__ing")
    choices = tuple(body.split("|"))
    return Word(label if label or star else DEFAULT_LABEL.get(choices[0].lower(), ""), chance, choices)


# -- random sentences --------------------------------------------------------------------------------------------------
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
        self._add(name, [_row(entry, -1, "compound") for entry in entries.split(",")], exponent)

    def names(self, name: str, entries: str, *, exponent: float = 1) -> None:
        """Define a symbol by a comma-separated list whose entries have their first word as head: *New York*."""
        self._add(name, [_row(entry, 0, "flat") for entry in entries.split(",")], exponent)

    def _add(self, name: str, phrases: list[Phrase], exponent: float, title: bool = False) -> None:
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
    """The -ing form of a verb."""
    if verb in DOUBLED:
        return f"{verb}{verb[-1]}ing"
    return f"{verb[:-1]}ing" if verb.endswith("e") and not verb.endswith("ee") else f"{verb}ing"


def _row(words: str, head: int, label: str) -> Phrase:
    """Plain words of which one is the head of the others."""
    parts = tuple(Word(label, 1.0, (word,)) for word in words.split())
    return Phrase(parts, parts[head])
