"""Sentences of numbered word lines, as in CoNLL-U and its layers, under ``# key = value`` comments.

```
# newdoc id = letters
# sent_id = letters-1
# text = Don't sing!
1-2	Don't	…
1	Do	…
2	n't	…
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO

from bursar.corpus.corpus import Item
from bursar.corpus.formats.format import FileReader
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import join_tokens

RANGE = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+")
COMMENTS = ("sent_id", "text", "newdoc", "newdoc id")
Spans = list[tuple[int, int]]


@dataclass
class SurfaceToken:
    """A token as written: one word, or several words written as one."""

    form: str
    words: list[str]
    cells: list[str]


@dataclass
class Sentence:
    """One sentence of the file, without empty nodes."""

    path: Path
    line: int  # of its first comment or word
    comments: dict[str, str] = field(default_factory=dict)
    rows: list[list[str]] = field(default_factory=list)  # the cells of each word
    lines: list[int] = field(default_factory=list)  # the line of each word
    tokens: list[SurfaceToken] = field(default_factory=list)

    @property
    def forms(self) -> list[str]:
        return [row[1] for row in self.rows]


def sentences(reader: FileReader, widths: range) -> Iterator[Sentence]:
    """The sentences of a file; its word lines must have as many cells as ``widths`` allows.

    Errors then name the first line of the sentence.
    """
    numbered = ((reader.line, line) for line in reader.lines())
    for filled, lines in groupby(numbered, lambda pair: bool(pair[1].strip(" "))):
        if filled:
            yield _sentence(reader, [*lines], widths)


def _sentence(reader: FileReader, lines: list[tuple[int | None, str]], widths: range) -> Sentence:
    found = Sentence(reader.file, lines[0][0] or 1)
    rows, tokens = found.rows, found.tokens
    inside = 0  # remaining words of a multiword token
    for reader.line, line in lines:
        if line[0] == "#":
            _add_comment(reader, found, line)
            continue
        cells = line.split("\t")
        if len(cells) not in widths or not cells[1]:
            expected = " or ".join(map(str, widths))
            raise reader.error(f"expected {expected} cells between tabs, a word in the second, not {cells}")
        if cells[0] == str(len(rows) + 1):
            rows.append(cells)
            found.lines.append(reader.line or 1)
            if inside:
                inside -= 1
                tokens[-1].words.append(cells[1])
            else:
                tokens.append(SurfaceToken(cells[1], [cells[1]], cells))
        elif not inside and (ends := RANGE.fullmatch(cells[0])) and int(ends[1]) == len(rows) + 1 <= int(ends[2]):
            inside = int(ends[2]) - len(rows)
            tokens.append(SurfaceToken(cells[1], [], cells))
        elif not EMPTY_NODE.fullmatch(cells[0]):
            raise reader.error(f"expected word {len(rows) + 1}, not {cells[0]!r}")
    reader.line = found.line
    if inside or not rows:
        raise reader.error("the sentence lacks words that it announces", item=found.comments.get("sent_id"))
    return found


def _add_comment(reader: FileReader, found: Sentence, line: str) -> None:
    if found.rows:
        raise reader.error("a comment in the middle of a sentence", fix="separate sentences by a blank line")
    key, equals, value = line[1:].partition("=")
    key = " ".join(key.split())
    if key not in COMMENTS:
        return
    if key in found.comments or (equals and key != "text" and not value.strip()):
        raise reader.error(f"a second or an empty {key!r} of one sentence")
    found.comments[key] = value.removeprefix(" ") if key == "text" else value.strip()


def group_of(reader: FileReader, found: Sentence, group: str | None) -> str | None:
    """The document of a sentence, given that of the previous sentence."""
    if "newdoc id" in found.comments:
        return found.comments["newdoc id"]
    return reader.next_id(f"{reader.split}-doc") if "newdoc" in found.comments else group


def text_of(reader: FileReader, found: Sentence) -> tuple[str, Spans]:
    """The text of a sentence, and the positions of its words.

    If a token has fewer characters than words, the text is made of the words instead.
    """
    if any(len(token.words) > len(token.form) for token in found.tokens):
        return join_tokens(found.forms)
    text = found.comments.get("text")
    if text is None:
        spaced = [t.form if "SpaceAfter=No" in t.cells[-1].split("|") else f"{t.form} " for t in found.tokens]
        text = "".join(spaced).removesuffix(" ")
    spans = align(text, [(token.form, token.words) for token in found.tokens])
    if spans is None:
        fix = "correct or remove '# text'"
        raise reader.error("its words do not add up to its text", item=found.comments.get("sent_id"), fix=fix)
    return text, spans


def align(text: str, tokens: Iterable[tuple[str, Sequence[str]]]) -> Spans | None:
    """The positions of words in a text, given its tokens and their words; ``None`` if they do not fit the text.

    The words of one token share its characters: each takes its own length, but leaves at least one character for each
    that follows.

    >>> align("du  vin!", [("du", ["de", "le"]), ("vin", ["vin"]), ("!", ["!"])])
    [(0, 1), (1, 2), (4, 7), (7, 8)]
    >>> align("don't", [("don't", ["do", "n't"])])
    [(0, 2), (2, 5)]
    """
    spans: Spans = []
    at = 0
    for form, words in tokens:
        while not text.startswith(form, at):
            if not text[at : at + 1].isspace():
                return None
            at += 1
        end = at + len(form)
        for later in range(len(words) - 1, 0, -1):
            share = min(at + len(words[-1 - later]), end - later)
            spans.append((at, share))
            at = share
        spans.append((at, end))
        at = end
    return None if text[at:].strip() else spans


def align_words(text: str, words: Iterable[str]) -> Spans | None:
    """The positions of words in a text; ``None`` if the text is more than these words and the spaces between them."""
    return align(text, [(word, [word]) for word in words])


def is_text_of_words(item: Item) -> bool:
    """Whether the text of an item is its words and the spaces between them."""
    text = item.text or ""
    spans = align_words(text, item.words)
    return spans is not None and [text[a:b] for a, b in spans] == item.words


def write_comments(checks: WriteChecks, file: IO[str], item: Item, group: str | None) -> None:
    """Write the comments of a sentence; ``group`` is that of the previous sentence."""
    if item.group != group:
        if item.group is None or item.group != item.group.strip():
            checks.group(item, group)
        else:
            file.write(f"# newdoc id = {checks.cell(item, item.group, '')}\n")
    if item.id != item.id.strip():
        raise checks.error("cannot store an id with spaces around it", item)
    text = item.text or ""
    if not item.words or not is_text_of_words(item):
        raise checks.error("cannot store a text that is more than its words and the spaces between them", item)
    file.write(f"# sent_id = {checks.cell(item, item.id, '')}\n# text = {checks.cell(item, text, '')}\n")
