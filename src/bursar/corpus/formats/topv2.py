"""TOPv2: utterances of a domain with a semantic parse.

```
domain	utterance	semantic_parse
alarm	Wake me at seven!	[IN:CREATE_ALARM Wake me [SL:DATE_TIME at seven ] ! ]
```
``intent`` is the outermost intent, ``slots`` are the outermost slots (slots without words are skipped), the group is
the domain. Words are those of the parse, aligned with the utterance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.format import FORMATS, FileReader, Format, blank_cells, first_lines, read_files
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import align_words
from bursar.tasks import Classification, Tagging
from bursar.tasks.schemes import Span

SUFFIXES = (".tsv",)
HEADER = ("domain", "utterance", "semantic_parse")
INTENT, SLOT, CLOSE = "[IN:", "[SL:", "]"
TASKS = (Classification("intent"), Tagging("slots"))


def sniff(path: Path) -> bool:
    """The header of TOPv2."""
    return first_lines(path, SUFFIXES, 1) == ["\t".join(HEADER)]


def read(path: Path, schema: Schema = None) -> Corpus:
    """A file, or a folder with files such as ``alarm_train.tsv``."""
    return read_files(path, SUFFIXES, _read_file, schema)


def _read_file(reader: FileReader) -> None:
    for task in TASKS:
        reader.declare(task)
    for line in reader.lines():
        cells = line.split("\t")
        if reader.line == 1 and cells != [*HEADER]:
            raise reader.error(f"expected the header {', '.join(HEADER)}, not {line!r}")
        if reader.line == 1 or not line.strip(" "):
            continue
        if len(cells) != 3 or not cells[0]:
            raise reader.error(f"expected {', '.join(HEADER)} between tabs, not {len(cells)} cells")
        domain, text, parse = cells
        id = reader.next_id(f"{domain}-{reader.split}")
        try:
            intent, words, slots = read_parse(parse)
        except ValueError as wrong:
            raise reader.error(f"the parse is broken: {wrong}", item=id) from None
        spans = align_words(text, words)
        if spans is None:
            raise reader.error("the words of the parse are not those of the utterance", item=id)
        labels = {"intent": intent, "slots": slots}
        reader.add(id, split=reader.split, text=text, words=spans, group=domain, labels=labels)


def read_parse(parse: str) -> tuple[str, list[str], list[Span]]:
    """The outermost intent, the words and the outermost slots; ``ValueError`` if brackets do not match."""
    cells = blank_cells(parse)
    if not cells or not cells[0].startswith(INTENT) or cells[0] == INTENT:
        raise ValueError(f"it does not open with {INTENT}…")
    words: list[str] = []
    slots: list[Span] = []
    open_at: list[tuple[str, int]] = []  # open brackets: their label, and the word they open before
    for place, cell in enumerate(cells):
        if place and not open_at:
            raise ValueError(f"{cell!r} comes after its end")
        if cell.startswith((INTENT, SLOT)):
            open_at.append((cell, len(words)))
        elif cell != CLOSE:
            words.append(cell)
        else:
            label, start = open_at.pop()
            outermost = not any(outer.startswith(SLOT) for outer, _ in open_at)
            if label.startswith(SLOT) and outermost and start < len(words):
                slots.append((start, len(words), label.removeprefix(SLOT)))
    if open_at:
        raise ValueError(f"{open_at[-1][0]} is not closed")
    return cells[0].removeprefix(INTENT), words, slots


def write_parse(intent: str, words: Sequence[str], slots: Sequence[Span]) -> str:
    """A parse with one intent and slots that do not overlap."""
    cells = [f"{INTENT}{intent}"]
    at = 0
    for start, end, label in slots:
        cells += [*words[at:start], f"{SLOT}{label}", *words[start:end], CLOSE]
        at = end
    return " ".join([*cells, *words[at:], CLOSE])


def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with train.tsv, eval.tsv and test.tsv, or one file."""
    checks = WriteChecks(corpus, "topv2", lose)
    checks.refuse("images", "pairs")
    checks.tasks(TASKS, needed=("intent", "slots"))
    with checks.writing(path, SUFFIXES, {"dev": "eval"}) as files:
        for split, file in files:
            file.write("\t".join(HEADER) + "\n")
            for item in checks.items(split):
                if item.group is None:
                    raise checks.error("needs a group for every item: the domain", item)
                checks.numbered(item, f"{item.group}-{split}")
                domain, text = checks.cell(item, item.group, ""), checks.cell(item, item.text or "", "")
                file.write(f"{domain}\t{text}\t{_parse(checks, item)}\n")


def _parse(checks: WriteChecks, item: Item) -> str:
    """The parse of an item; an error if it would not read back as the item."""
    intent = checks.cell(item, checks.label(item, "intent"))
    slots = sorted((start, end, checks.cell(item, kind)) for start, end, kind in checks.label(item, "slots"))
    parse = write_parse(intent, [checks.cell(item, word) for word in item.words], slots)
    try:
        same = read_parse(parse) == (intent, item.words, slots)
    except ValueError:
        same = False
    if not same or not item.is_its_words:
        raise checks.error("has no parse for this: slots overlap, or words are brackets or not all of the text", item)
    return parse


FORMATS.add("topv2", Format("topv2", "TOPv2: domain, utterance, semantic parse", sniff, read, write))
