"""Noise in a transcript: fillers, repeated words, dropped articles and typos."""

from __future__ import annotations

from dataclasses import dataclass

from bursar.simulation.grammar import Dice, Fragment, Span

FILLERS = ("uh", "um", "er", "like", "hmm", "actually", "basically")
ARTICLES = frozenset(("a", "an", "the", "my"))
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {key: row[max(at - 1, 0) : at] + row[at + 1 : at + 2] for row in KEYBOARD for at, key in enumerate(row)}
SHORTEST_TYPO = 4  # letters; shorter words would become other words


@dataclass(frozen=True, slots=True)
class Noise:
    """The probability of each kind of noise in a sentence.

    >>> Noise() * 0
    Noise(filler=0.0, repeat=0.0, dropped=0.0, typo=0.0)
    """

    filler: float = 0.07
    repeat: float = 0.015
    dropped: float = 0.09
    typo: float = 0.11

    def __mul__(self, factor: float) -> Noise:
        return Noise(*(min(rate * factor, 1.0) for rate in (self.filler, self.repeat, self.dropped, self.typo)))


def disturb(sentence: Fragment, noise: Noise, dice: Dice) -> Fragment:
    """Add noise to a sentence; its tree stays a tree and its slots keep their words."""
    if dice.chance(noise.dropped):
        sentence = _without_articles(sentence)
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


def _without_articles(sentence: Fragment) -> Fragment:
    """Drop articles outside of slots; they have no dependents, so the tree loses only leaves."""
    inside = {at for span in sentence.spans for at in range(span.start, span.end)}
    kept = [at for at, word in enumerate(sentence.words) if word not in ARTICLES or at in inside]
    return sentence if len(kept) < 3 else _rearrange(sentence, kept)


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
