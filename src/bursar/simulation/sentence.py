"""From an intent to a sentence: a clause, with a frame, openers, closers and asides around it.

Then noise as in a transcript, the text, and the relations between the slots, by their roles and distance in the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bursar.corpus.words import join_tokens
from bursar.simulation.grammar import Dice, Fragment, Group, Hole, Span, parse
from bursar.simulation.vocabulary import Intent, english, frames, read_table

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


FILLERS = ("uh", "um", "er", "like", "hmm", "actually", "basically")
ARTICLES = frozenset(("a", "an", "the", "my"))
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {key: row[max(at - 1, 0) : at] + row[at + 1 : at + 2] for row in KEYBOARD for at, key in enumerate(row)}
SHORTEST_TYPO = 4  # letters; shorter words would become other words
SHARED = frozenset(("location-of",))  # *the lamp and the fan in the kitchen* are both there
Link = tuple[Span, Span, str]


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
            core, head = Fragment(), clause.core.heads.index(-1)
            core.append(clause.core)
            core.append(clause.loose)
            core.heads = [head if position != head and at < 0 else at for position, at in enumerate(core.heads)]
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


def render(sentence: Fragment, question: bool, dice: Dice) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence and the positions of its words. Final punctuation becomes a word of the sentence."""
    words = sentence.words
    for at, (word, after) in enumerate(zip(words, [each.lower() for each in words[1:]], strict=False)):
        if word in ("a", "an", "A", "An"):
            vowel = (after[0] in VOWELS and after not in A_DESPITE) or after in AN_DESPITE
            words[at] = word[0] + ("n" if vowel else "")
    lower = dice.chance(LOWER)
    if lower:
        words[:] = [word.lower() for word in words]
    else:
        words[:] = ["I" + word[1:] if word == "i" or word.startswith("i'") else word for word in words]
        words[0] = words[0][0].upper() + words[0][1:]
    text, spans = join_tokens(words)
    if not dice.chance(BARE if lower else FORGOTTEN):
        words.append("?" if question else "!" if sentence.urgency > 0.3 and dice.chance(0.4) else ".")
        sentence.heads.append(sentence.heads.index(-1))
        sentence.labels.append("punct")
        spans.append((len(text), len(text) + 1))
        text += words[-1]
    return text, spans


# -- noise -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Noise:
    """The probability of each kind of noise in a sentence."""

    filler: float = 0.07
    repeat: float = 0.015
    dropped: float = 0.09
    typo: float = 0.11

    def __mul__(self, factor: float) -> Noise:
        return Noise(*(min(rate * factor, 1.0) for rate in (self.filler, self.repeat, self.dropped, self.typo)))


def disturb(sentence: Fragment, noise: Noise, dice: Dice) -> Fragment:
    """Add noise to a sentence; its tree stays a tree and its slots keep their words."""
    if dice.chance(noise.dropped):  # articles outside of slots have no dependents, so the tree loses only leaves
        inside = {at for span in sentence.spans for at in range(span.start, span.end)}
        kept = [at for at, word in enumerate(sentence.words) if word not in ARTICLES or at in inside]
        sentence = sentence if len(kept) < 3 else _rearrange(sentence, kept)
    if dice.chance(noise.filler):
        sentence = _with_word(sentence, dice.pick(FILLERS), "discourse", dice)
    if dice.chance(noise.repeat):
        sentence = _with_word(sentence, None, "reparandum", dice)
    if dice.chance(noise.typo):
        long = [at for at, word in enumerate(sentence.words) if len(word) >= SHORTEST_TYPO and word.isalpha()]
        if long:
            at = dice.pick(long)
            sentence.words[at] = misspell(sentence.words[at], dice)
    return sentence


def misspell(word: str, dice: Dice) -> str:
    """Swap two letters of a word, drop one, double one, or replace one by a neighbouring key."""
    at = 1 + dice.below(len(word) - 2)
    slip = dice.below(4)
    if slip == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if slip == 1:
        return word[:at] + word[at + 1 :]
    if slip == 2:
        return word[:at] + word[at] + word[at:]
    return word[:at] + dice.pick(NEIGHBOURS.get(word[at].lower(), word[at])) + word[at + 1 :]


def _with_word(sentence: Fragment, filler: str | None, label: str, dice: Dice) -> Fragment:
    """Insert a filler, or repeat the next word, before a word that does not continue a slot; attach it to that word."""
    inner = {at for span in sentence.spans for at in range(span.start + 1, span.end)}
    before = dice.pick([at for at in range(len(sentence.words)) if at not in inner])
    word = sentence.words[before].lower() if filler is None else filler
    order = list(range(len(sentence.words)))
    order.insert(before, -1)
    result = _rearrange(sentence, order)
    result.words[before], result.heads[before], result.labels[before] = word, before + 1, label
    return result


def _rearrange(sentence: Fragment, order: list[int]) -> Fragment:
    """The words at these positions in this order; -1 is a gap for a new word."""
    place = {old: new for new, old in enumerate(order) if old >= 0}
    place[-1] = -1  # the head of the root
    return Fragment(
        words=[sentence.words[at] if at >= 0 else "" for at in order],
        heads=[place[sentence.heads[at]] if at >= 0 else -1 for at in order],
        labels=[sentence.labels[at] if at >= 0 else "" for at in order],
        spans=[Span(place[s.start], place[s.end - 1] + 1, s.kind, s.role) for s in sentence.spans],
        urgency=sentence.urgency,
    )


# -- relations ---------------------------------------------------------------------------------------------------------
@cache
def _links() -> dict[str, tuple[tuple[str, str], ...]]:
    """For each role, the slot types that it can be linked to, and by which relation (``relations.toml``)."""
    return {role: tuple(targets.items()) for role, targets in read_table("relations").items()}


def relation_labels() -> tuple[str, ...]:
    """All relations, in alphabetical order."""
    return tuple(sorted({label for targets in _links().values() for _, label in targets}))


def relations_of(sentence: Fragment) -> list[Link]:
    """The links of a sentence, sorted by their first slots."""
    links: list[Link] = []
    for span in sentence.spans:
        for kind, label in _links().get(span.role, ()):
            targets = [other for other in sentence.spans if other.kind == kind and other is not span]
            if targets:
                near = targets if len(targets) == 1 else _nearest(sentence, span, targets, label in SHARED)
                links += [(span, target, label) for target in near]
                break
    links.sort(key=lambda link: (link[0].start, link[1].start))
    return links


def _nearest(sentence: Fragment, span: Span, targets: list[Span], shared: bool) -> list[Span]:
    """The nearest target in the tree (of two, the later); if ``shared``, also the targets conjoined with it."""
    depth = {word: steps for steps, word in enumerate(_way_up(sentence, span))}
    ways = [_way_up(sentence, target) for target in targets]

    def distance(at: int) -> tuple[int, int]:
        return next(steps + depth[word] for steps, word in enumerate(ways[at]) if word in depth), -targets[at].start

    best = min(range(len(targets)), key=distance)
    top = ways[best][0]
    if not shared or top in depth:  # *the lamp in the kitchen and the fan*: the kitchen is the lamp's alone
        return [targets[best]]
    joined = [way[0] == top or (sentence.labels[way[0]] == "conj" and way[1] == top) for way in ways]
    return [target for target, belongs in zip(targets, joined, strict=True) if belongs]


def _way_up(sentence: Fragment, span: Span) -> list[int]:
    at = next(a for a in range(span.start, span.end) if not span.start <= sentence.heads[a] < span.end)
    way = []
    while at >= 0:
        way.append(at)
        at = sentence.heads[at]
    return way
