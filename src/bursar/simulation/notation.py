"""The notation of grammar phrases: one line of text defines the words, the slots and the tree.

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
from collections.abc import Iterator
from dataclasses import dataclass

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
