"""From an intent to a sentence: a clause of its own words, put in one of the manners that people have."""

from __future__ import annotations

from dataclasses import dataclass

from bursar.simulation.domains import Intent
from bursar.simulation.english import english
from bursar.simulation.english.manners import FRAME_SHARES, FRAMES, NO_FRAME
from bursar.simulation.grammar import Dice, Piece
from bursar.simulation.notation import Group, Hole

SHORTEST, LONGEST = 3, 22  # words; a filler, a repeated word and a mark may come on top
PULLED_OUT = 0.3  # how often one movable part is taken out of its place
SAID_FIRST = 0.55  # and how often it then opens the sentence
OPENED, CLOSED, ASIDE = 0.12, 0.18, 0.16

ASKING = frozenset(
    "what what's who which when where how how's is are am do does did will would can could should has any why".split()
)


@dataclass(frozen=True, slots=True)
class Clause:
    """What is asked for: the clause, and perhaps a part of it that has not found its place yet."""

    core: Piece
    loose: Piece | None
    framed: bool


def make_clause(intent: Intent, dice: Dice) -> Clause:
    """The words of a request and nothing around them."""
    while True:
        template = intent.choose(dice)
        core, loose = Piece(), None
        parts = english().settle(template.phrase, core, dice)
        movable = [part for part in parts if type(part) is Group and part.movable]
        if movable and dice.chance(PULLED_OUT):
            part = dice.pick(movable)
            parts.remove(part)
            loose = Piece()
            english().write_parts([part], None, loose, dice)
        english().write_parts(parts, template.phrase.head, core, dice)
        if len(core.words) + len(loose.words if loose else ()) <= LONGEST - 4:
            return Clause(core, loose, template.framed)


def put(clause: Clause, dice: Dice) -> tuple[Piece, bool]:
    """A whole sentence around a clause, and whether it asks. Its one word with the head -1 is the root."""
    while True:
        sentence, asks = _put_once(clause, dice)
        if SHORTEST <= len(sentence.words) <= LONGEST:
            return sentence, asks


def _put_once(clause: Clause, dice: Dice) -> tuple[Piece, bool]:
    grammar = english()
    frame = dice.weighted(FRAMES, FRAME_SHARES) if clause.framed else NO_FRAME
    sentence, core = Piece(), clause.core
    _add_some(sentence, dice, ("opener", OPENED), ("before", ASIDE / 2))
    if clause.loose is not None:
        if type(frame.head) is Hole and dice.chance(SAID_FIRST):
            sentence.append(clause.loose)
        else:
            core = _joined(clause.core, clause.loose)
    start = len(sentence.words)
    root = grammar.write(frame, sentence, dice, core)
    asks = sentence.words[start] in ASKING
    _add_some(sentence, dice, ("closer", CLOSED), ("after", ASIDE / 2))
    sentence.heads = [root if head < 0 else head for head in sentence.heads]
    sentence.heads[root] = -1
    sentence.labels[root] = "root"
    return sentence, asks


def _add_some(sentence: Piece, dice: Dice, *symbols: tuple[str, float]) -> None:
    """What stands before or after a request: symbols with the chance of each. Heads are left open."""
    grammar = english()
    for symbol, chance in symbols:
        if dice.chance(chance):
            phrase = grammar.choose(symbol, dice)
            grammar.write_parts(grammar.settle(phrase, sentence, dice), None, sentence, dice)


def _joined(core: Piece, loose: Piece) -> Piece:
    joined = Piece()
    head = core.heads.index(-1)
    joined.append(core)
    joined.append(loose)
    joined.heads = [head if position != head and at < 0 else at for position, at in enumerate(joined.heads)]
    return joined
