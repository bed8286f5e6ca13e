"""From an intent to a sentence: a clause, with a frame, openers, closers and asides around it; and to its text."""

from __future__ import annotations

from dataclasses import dataclass

from bursar.simulation.grammar import Dice, Fragment
from bursar.simulation.notation import Group, Hole, parse
from bursar.simulation.vocabulary import Intent, english, frames

NO_FRAME = parse("__")
SHORTEST, LONGEST = 3, 22  # words, without a filler, a repeated word and final punctuation
PULLED_OUT = 0.3  # probability that a movable part is moved
SAID_FIRST = 0.55  # probability that a moved part opens the sentence
OPENED, CLOSED, ASIDE = 0.12, 0.18, 0.16
# The text: mostly lower case without punctuation, as speech recognisers write, sometimes proper.
LOWER, BARE = 0.8, 0.88  # share in lower case, and the share of that without final punctuation
FORGOTTEN = 0.2  # share of texts in proper case without final punctuation
VOWELS = frozenset("aeiou")
AN_DESPITE, A_DESPITE = frozenset(("hour", "8", "11", "18")), frozenset(("one", "used"))

ASKING = frozenset(
    "what what's who which when where how how's is are am do does did will would can could should has any why".split()
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause of a request, and optionally a part of it that is still to be placed."""

    core: Fragment
    loose: Fragment | None
    framed: bool


def make_clause(intent: Intent, dice: Dice) -> Clause:
    """Generate the clause of a request."""
    while True:
        template = intent.choose(dice)
        core, loose = Fragment(), None
        parts = english().settle(template.phrase, core, dice)
        movable = [part for part in parts if type(part) is Group and part.movable]
        if movable and dice.chance(PULLED_OUT):
            part = dice.pick(movable)
            parts.remove(part)
            loose = Fragment()
            english().write_parts([part], None, loose, dice)
        english().write_parts(parts, template.phrase.head, core, dice)
        if len(core.words) + len(loose.words if loose else ()) <= LONGEST - 4:
            return Clause(core, loose, template.framed)


def make_sentence(clause: Clause, dice: Dice) -> tuple[Fragment, bool]:
    """Generate a sentence around a clause, and whether it is a question. The word with the head -1 is the root."""
    while True:
        sentence, asks = _try_sentence(clause, dice)
        if SHORTEST <= len(sentence.words) <= LONGEST:
            return sentence, asks


def _try_sentence(clause: Clause, dice: Dice) -> tuple[Fragment, bool]:
    grammar = english()
    frame = dice.weighted(*frames()) if clause.framed else NO_FRAME
    sentence, core = Fragment(), clause.core
    _add_some(sentence, dice, ("opener", OPENED), ("before", ASIDE / 2))
    if clause.loose is not None:
        if type(frame.head) is Hole and dice.chance(SAID_FIRST):
            sentence.append(clause.loose)
        else:
            core = _join(clause.core, clause.loose)
    start = len(sentence.words)
    root = grammar.write(frame, sentence, dice, core)
    asks = sentence.words[start] in ASKING
    _add_some(sentence, dice, ("closer", CLOSED), ("after", ASIDE / 2))
    sentence.heads = [root if head < 0 else head for head in sentence.heads]
    sentence.heads[root] = -1
    sentence.labels[root] = "root"
    return sentence, asks


def _add_some(sentence: Fragment, dice: Dice, *symbols: tuple[str, float]) -> None:
    """Append optional phrases before or after a request, each with its probability. Their heads stay -1."""
    grammar = english()
    for symbol, chance in symbols:
        if dice.chance(chance):
            phrase = grammar.choose(symbol, dice)
            grammar.write_parts(grammar.settle(phrase, sentence, dice), None, sentence, dice)


def _join(core: Fragment, loose: Fragment) -> Fragment:
    joined = Fragment()
    head = core.heads.index(-1)
    joined.append(core)
    joined.append(loose)
    joined.heads = [head if position != head and at < 0 else at for position, at in enumerate(joined.heads)]
    return joined


def render(sentence: Fragment, question: bool, dice: Dice) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence and the positions of its words. Final punctuation becomes a word of the sentence."""
    words = sentence.words
    _agree_articles(words)
    lower = dice.chance(LOWER)
    if lower:
        words[:] = [word.lower() for word in words]
    else:
        words[:] = ["I" + word[1:] if word == "i" or word.startswith("i'") else word for word in words]
        words[0] = words[0][0].upper() + words[0][1:]
    length = len(words)
    if not dice.chance(BARE if lower else FORGOTTEN):
        words.append("?" if question else "!" if sentence.urgency > 0.3 and dice.chance(0.4) else ".")
        sentence.heads.append(sentence.heads.index(-1))
        sentence.labels.append("punct")
    return _join_words(words, glued=length)


def _agree_articles(words: list[str]) -> None:
    """*a* or *an*, by the first letter of the next word."""
    for at in range(len(words) - 1):
        if words[at] in ("a", "an", "A", "An"):
            after = words[at + 1].lower()
            vowel = (after[0] in VOWELS and after not in A_DESPITE) or after in AN_DESPITE
            words[at] = words[at][0] + ("n" if vowel else "")


def _join_words(words: list[str], glued: int) -> tuple[str, list[tuple[int, int]]]:
    """Join words with spaces, but without one before the word at ``glued``."""
    spans, at = [], 0
    for position, word in enumerate(words):
        at += 0 if position in (0, glued) else 1
        spans.append((at, at + len(word)))
        at += len(word)
    text = " ".join(words[:glued]) + "".join(words[glued:])
    return text, spans
