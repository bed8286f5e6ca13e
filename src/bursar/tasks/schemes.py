"""Tag schemes: convert spans to tags and back, per sentence for readers, for a whole corpus at once for models.

One rule, conlleval's, reads all four schemes: a span opens at B or S, at any tag after O or after another type, and
after E or S. So IO, IOB1, IOB2 and BIOES files need no flag to be read. They differ only when written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bursar.errors import LabelError
from bursar.ragged import BoolArray, IntArray, Ragged, offsets_of

SCHEMES = ("IO", "IOB1", "IOB2", "BIOES")
PREFIXES = frozenset("BIESLU")
Span = tuple[int, int, str]


def split_tag(tag: str) -> tuple[str, str]:
    """The prefix and the type of a tag; a bare type is IO without its ``I-``.

    >>> split_tag("B-from.city"), split_tag("O"), split_tag("PER")
    (('B', 'from.city'), ('O', ''), ('I', 'PER'))
    """
    if tag == "O":
        return "O", ""
    if len(tag) > 2 and tag[1] == "-" and tag[0] in PREFIXES:
        return {"L": "E", "U": "S"}.get(tag[0], tag[0]), tag[2:]
    if not tag or (len(tag) <= 2 and tag[:1] in PREFIXES and tag[1:] in ("", "-")):
        raise LabelError(f"the tag {tag!r} has no type", fix="write O, or a prefix and a type such as B-city")
    return "I", tag


def spans_of_tags(tags: Sequence[str]) -> list[Span]:
    """The spans of one sentence's tags, in any scheme.

    >>> spans_of_tags(["B-a", "I-a", "O", "I-b", "I-a", "B-a"])
    [(0, 2, 'a'), (3, 4, 'b'), (4, 5, 'a'), (5, 6, 'a')]
    >>> spans_of_tags(["S-a", "B-a", "E-a", "E-a"])
    [(0, 1, 'a'), (1, 3, 'a'), (3, 4, 'a')]
    """
    spans: list[Span] = []
    start, open_type, last = 0, "", "O"
    for i, tag in enumerate(tags):
        if tag == "O":
            prefix, kind = "O", ""
        else:
            prefix, kind = split_tag(tag)
        goes_on = open_type and kind == open_type and prefix in "IE" and last in "BI"
        if open_type and not goes_on:
            spans.append((start, i, open_type))
            open_type = ""
        if kind and not goes_on:
            start, open_type = i, kind
        last = prefix
    if open_type:
        spans.append((start, len(tags), open_type))
    return spans


def tags_of_spans(spans: Iterable[Span], words: int, scheme: str = "IOB2") -> list[str]:
    """Convert spans that do not overlap to tags. IO merges adjacent spans of the same type.

    >>> tags_of_spans([(0, 2, "a"), (2, 3, "a")], 4, "BIOES")
    ['B-a', 'E-a', 'S-a', 'O']
    >>> tags_of_spans([(0, 2, "a"), (2, 3, "a")], 4, "IOB1")
    ['I-a', 'I-a', 'B-a', 'O']
    """
    if scheme not in SCHEMES:
        raise LabelError(f"there is no tag scheme {scheme!r}", fix=f"use one of {', '.join(SCHEMES)}")
    tags = ["O"] * words
    closed: tuple[int, str] = (-1, "")  # end and type of the previous span
    for start, end, kind in sorted(spans):
        if start < closed[0]:
            raise LabelError(f"spans overlap at word {start}: tags cannot express that", fix="write DyGIE or JSONL")
        if scheme == "BIOES" and end - start == 1:
            inside = [f"S-{kind}"]
        else:
            opens_b = scheme in ("IOB2", "BIOES") or (scheme == "IOB1" and closed == (start, kind))
            inside = [("B-" if opens_b else "I-") + kind] + [f"I-{kind}"] * (end - start - 1)
            if scheme == "BIOES":
                inside[-1] = f"E-{kind}"
        tags[start:end] = inside
        closed = (end, kind)
    return tags


def overlapping(spans: Ragged, words: IntArray) -> BoolArray:
    """Which items have two spans on one word, which tags cannot express.

    >>> overlapping(Ragged.of([[(0, 2, 1), (1, 3, 0)], [(0, 1, 0), (1, 2, 0)]], 3), np.array([3, 2])).tolist()
    [True, False]
    """
    order = np.lexsort((spans.values[:, 0], spans.owners))
    owners, rows = spans.owners[order], spans.values[order]
    ends = np.maximum.accumulate(rows[:, 1] + owners * (int(words.max(initial=0)) + 1))  # never below an earlier item's
    starts = rows[:, 0] + owners * (int(words.max(initial=0)) + 1)
    clash = owners[1:][(owners[1:] == owners[:-1]) & (starts[1:] < ends[:-1])]
    found = np.zeros(len(spans), dtype=bool)
    found[clash] = True
    return found


def codes_of_spans(spans: Ragged, words: IntArray) -> IntArray:
    """IOB2 codes of all words: 0 is O, ``1 + 2k`` is B of label k, ``2 + 2k`` is I. Spans must not overlap.

    >>> codes_of_spans(Ragged.of([[(0, 2, 1)], []], 3), np.array([3, 2])).tolist()
    [3, 4, 0, 0, 0]
    """
    positions, lengths = words_of_spans(spans, words)
    if len(np.unique(positions)) != len(positions):
        raise LabelError("spans overlap: tags cannot express that", fix="train this task with a span head")
    codes = np.zeros(int(words.sum()), dtype=np.int64)
    codes[positions] = np.repeat(2 + 2 * spans.values[:, 2].astype(np.int64), lengths)
    codes[positions[offsets_of(lengths)[:-1]]] -= 1
    return codes


def words_of_spans(spans: Ragged, words: IntArray) -> tuple[IntArray, IntArray]:
    """The words of every span, as positions among the words of all items, and the lengths of the spans."""
    lengths = (spans.values[:, 1] - spans.values[:, 0]).astype(np.int64)
    first, inner = offsets_of(words)[spans.owners] + spans.values[:, 0], offsets_of(lengths)
    return np.repeat(first - inner[:-1], lengths) + np.arange(inner[-1]), lengths


def spans_of_codes(codes: IntArray, words: IntArray) -> Ragged:
    """Convert IOB2 codes to spans by conlleval's rule, for all items at once.

    >>> spans_of_codes(np.array([3, 4, 2, 0, 4]), np.array([3, 2])).values.tolist()
    [[0, 2, 1], [2, 3, 0], [1, 2, 1]]
    """
    bounds = offsets_of(words)
    owner = np.repeat(np.arange(len(words)), words)
    position = np.arange(len(codes)) - bounds[:-1][owner]
    label = (codes - 1) // 2
    inside = codes > 0
    goes_on = np.zeros(len(codes), dtype=bool)
    goes_on[1:] = inside[1:] & (codes[1:] % 2 == 0) & inside[:-1] & (label[1:] == label[:-1])
    goes_on &= position > 0
    opens = np.flatnonzero(inside & ~goes_on)
    # A span closes where the next word does not continue it.
    closes = np.flatnonzero(inside & ~np.append(goes_on[1:], False))
    rows = np.stack([position[opens], position[closes] + 1, label[opens]], axis=1).astype(np.int32)
    return Ragged(rows, offsets_of(np.bincount(owner[opens], minlength=len(words))))
