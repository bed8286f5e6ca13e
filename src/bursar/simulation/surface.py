"""The text of a sentence: mostly lower case without punctuation, as speech recognisers write, sometimes proper."""

from __future__ import annotations

from bursar.simulation.grammar import Dice, Fragment

LOWER, BARE = 0.8, 0.88  # share in lower case, and the share of that without final punctuation
FORGOTTEN = 0.2  # share of texts in proper case without final punctuation
VOWELS = frozenset("aeiou")
AN_DESPITE, A_DESPITE = frozenset(("hour", "8", "11", "18")), frozenset(("one", "used"))


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
