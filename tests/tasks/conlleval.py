"""What conlleval counts, written from its published rules: the reference for spans and their scores.

The rules are those of the shared task's script (Tjong Kim Sang, CoNLL-2000) with the E and S prefixes of its later
ports: two tables of what happens between a word's prefix and the next one's, and "another type is another chunk".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

ENDS = {"BB", "BS", "BO", "IB", "IS", "IO"} | {last + prefix for last in "ES" for prefix in "BIESO"}
STARTS = {last + prefix for last in "BIESO" for prefix in "BS"} | {"EE", "EI", "SE", "SI", "OE", "OI"}


def boundaries(tags: Sequence[str]) -> Iterator[tuple[bool, bool, str, str]]:
    """Before each word and after the last: does a chunk end, does one start, the type before, the type here."""
    last, last_type = "O", ""
    for tag in [*tags, "O"]:
        prefix, _, type = tag.partition("-")
        other = type != last_type
        yield (
            last + prefix in ENDS or (last != "O" and other),
            last + prefix in STARTS or (prefix != "O" and other),
            last_type,
            type,
        )
        last, last_type = prefix, type


def chunks(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """The chunks of one sentence as (start, end, type), the end exclusive."""
    found, opened = [], 0
    for at, (ends, starts, type_before, _) in enumerate(boundaries(tags)):
        if ends:
            found.append((opened, at, type_before))
        if starts:
            opened = at
    return found


def counts(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Chunks that are right, guessed and in gold, counted word by word as the script does, without any set."""
    right = guessed = known = 0
    for gold_tags, guess_tags in zip(gold, guess, strict=True):
        agreeing = False  # inside a chunk that has been the same in both so far
        for ours, theirs in zip(boundaries(gold_tags), boundaries(guess_tags), strict=True):
            gold_ends, gold_starts, gold_before, gold_type = ours
            guess_ends, guess_starts, guess_before, guess_type = theirs
            if agreeing:
                if gold_ends and guess_ends and gold_before == guess_before:
                    right += 1
                    agreeing = False
                elif gold_ends != guess_ends or gold_type != guess_type:
                    agreeing = False
            if gold_starts and guess_starts and gold_type == guess_type:
                agreeing = True
            guessed += guess_starts
            known += gold_starts
    return right, guessed, known


def scores(gold: Sequence[Sequence[str]], guess: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 over chunks, 0 where there is nothing to divide by."""
    right, guessed, known = counts(gold, guess)
    precision, recall = right / guessed if guessed else 0.0, right / known if known else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}
