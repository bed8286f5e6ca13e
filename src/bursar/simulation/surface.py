"""A sentence as it is written down: mostly in lower case without marks, as recognisers do, sometimes with care."""

from __future__ import annotations

from bursar.simulation.grammar import Dice, Piece

LOWER, BARE = 0.8, 0.88  # the share in lower case, and how much of it ends without a mark
FORGOTTEN = 0.2  # how often the mark is missing where the case is proper
VOWELS = frozenset("aeiou")
AN_DESPITE, A_DESPITE = frozenset(("hour", "8", "11", "18")), frozenset(("one", "used"))


def written(sentence: Piece, question: bool, dice: Dice) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence and where its words stand in it. A mark at the end becomes a word of the sentence."""
    words = sentence.words
    _agree_articles(words)
    lower = dice.chance(LOWER)
    if lower:
        words[:] = [word.lower() for word in words]
    else:
        words[:] = [_proper(word) for word in words]
        words[0] = words[0][0].upper() + words[0][1:]
    length = len(words)
    if not dice.chance(BARE if lower else FORGOTTEN):
        _add_mark(sentence, "?" if question else "!" if sentence.urgency > 0.3 and dice.chance(0.4) else ".")
    return _laid_out(words, glued=length)


def _proper(word: str) -> str:
    return "I" + word[1:] if word == "i" or word.startswith("i'") else word


def _agree_articles(words: list[str]) -> None:
    """*a* or *an*, by the first letter of the next word."""
    for at in range(len(words) - 1):
        if words[at] in ("a", "an", "A", "An"):
            after = words[at + 1].lower()
            vowel = (after[0] in VOWELS and after not in A_DESPITE) or after in AN_DESPITE
            words[at] = words[at][0] + ("n" if vowel else "")


def _add_mark(sentence: Piece, mark: str) -> None:
    sentence.words.append(mark)
    sentence.heads.append(sentence.heads.index(-1))
    sentence.labels.append("punct")


def _laid_out(words: list[str], glued: int) -> tuple[str, list[tuple[int, int]]]:
    """Words with blanks between them, but none before the word at ``glued``."""
    spans, at = [], 0
    for position, word in enumerate(words):
        at += 0 if position in (0, glued) else 1
        spans.append((at, at + len(word)))
        at += len(word)
    text = " ".join(words[:glued]) + "".join(words[glued:])
    return text, spans
