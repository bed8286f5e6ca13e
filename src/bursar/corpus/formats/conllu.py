"""CoNLL-U, the treebanks of Universal Dependencies, and IOB2 layers: named entities on the sentences of such a file.

```
# newdoc id = letters
# sent_id = letters-1
# text = Don't sing!
1-2	Don't	…
1	Do	…
2	n't	…
```
The tasks of a treebank are ``dependencies`` (with full labels such as ``nsubj:pass``), ``upos`` and ``xpos``, if the
file has them. Words are aligned with ``# text``; the words of a multiword token share its characters; empty nodes are
left out.

A word of an IOB2 file, as Universal NER publishes them, is ``1 Ada B-PER - annotator``. Such a file is read alone, or
joined to its treebank on ``sent_id``, word by word, with ``layer=PATH`` of the format ``conllu``. Types that mean "none
of these" (``OTH``, and ``O`` if a file has ``B-O``) are not entities; ``drop`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.format import FORMATS, FileReader, Format, first_lines, parse_names, read_files, split_files
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.corpus.words import align, join_tokens
from bursar.errors import DataError
from bursar.tasks import Parsing, Tagging
from bursar.tasks.schemes import Span

SUFFIXES, LAYER_SUFFIXES = (".conllu", ".conll", ".txt"), (".iob2",)
WIDTHS = range(10, 11)
LAYER_WIDTHS = range(3, 6)  # number, word, tag, and optionally a comment and the annotator
UPOS, XPOS, HEAD, DEPREL = 3, 4, 6, 7
NOTHING = "_"
TASKS = (Parsing("dependencies"), Tagging("upos", every_word=True), Tagging("xpos", every_word=True))
ENTITIES = Tagging("entities")
DROPPED = ("OTH", "O")
RANGE = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+")
LAYER_ROW = re.compile(r"[0-9]+\t[^\t]+\t(O|[BI]-[^\t]+)(\t[^\t]*){0,2}")
COMMENTS = ("sent_id", "text", "newdoc", "newdoc id")


# -- sentences of numbered word lines, under comments -----------------------------------------------------------------
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
    def id(self) -> str | None:
        return self.comments.get("sent_id")

    @property
    def forms(self) -> list[str]:
        return [row[1] for row in self.rows]


def _sentences(reader: FileReader, widths: range) -> Iterator[Sentence]:
    """The sentences of a file, with as many cells in a line as ``widths`` allows; errors then name their first line."""
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
        raise reader.error("the sentence lacks words that it announces", item=found.id)
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


def _read_sentences(
    reader: FileReader, widths: range, labels_of: Callable[[FileReader, Sentence, str], dict[str, Any]]
) -> None:
    """Add the sentences of a file, with the labels of each by its id."""
    group: str | None = None
    for found in _sentences(reader, widths):
        if "newdoc id" in found.comments:
            group = found.comments["newdoc id"]
        elif "newdoc" in found.comments:
            group = reader.next_id(f"{reader.split}-doc")
        text, words = _text_of(reader, found)
        id = found.id or reader.next_id()
        labels = labels_of(reader, found, id)
        reader.add(id, split=reader.split, text=text, words=words, group=group, labels=labels)


def _text_of(reader: FileReader, found: Sentence) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence and its words; the words make the text if a token has fewer characters than words."""
    if any(len(token.words) > len(token.form) for token in found.tokens):
        return join_tokens(found.forms)
    text = found.comments.get("text")
    if text is None:
        spaced = [t.form if "SpaceAfter=No" in t.cells[-1].split("|") else f"{t.form} " for t in found.tokens]
        text = "".join(spaced).removesuffix(" ")
    spans = align(text, [(token.form, token.words) for token in found.tokens])
    if spans is None:
        raise reader.error("its words do not add up to its text", item=found.id, fix="correct or remove '# text'")
    return text, spans


def _write_sentences(
    checks: WriteChecks, path: Path, suffixes: Sequence[str], write_words: Callable[[IO[str], Item], None]
) -> None:
    with checks.writing(path, suffixes) as files:
        for split, file in files:
            group: str | None = None
            for item in checks.items(split):
                _write_comments(checks, file, item, group)
                write_words(file, item)
                file.write("\n")
                group = item.group


def _write_comments(checks: WriteChecks, file: IO[str], item: Item, group: str | None) -> None:
    """Write the comments of a sentence; ``group`` is that of the previous sentence."""
    if item.group != group:
        if item.group is None or item.group != item.group.strip():
            checks.group(item, group)
        else:
            file.write(f"# newdoc id = {checks.cell(item, item.group, '')}\n")
    if item.id != item.id.strip():
        raise checks.error("cannot store an id with spaces around it", item)
    if not item.words or not item.is_its_words:
        raise checks.error("cannot store a text that is more than its words and the spaces between them", item)
    file.write(f"# sent_id = {checks.cell(item, item.id, '')}\n# text = {checks.cell(item, item.text or '', '')}\n")


# -- treebanks ---------------------------------------------------------------------------------------------------------
def sniff(path: Path) -> bool:
    """Numbered words with ten cells per line."""
    rows = [line.split("\t") for line in first_lines(path, SUFFIXES) if line and line[0] != "#"]
    return bool(rows) and all(len(row) == 10 and row[0][:1].isdecimal() for row in rows)


def read(path: Path, layer: str | Path | None = None, drop: Names = DROPPED, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split; ``layer`` is an IOB2 file or folder, without types ``drop``."""
    entities = None if layer is None else EntityLayer(Path(layer), parse_names(drop))
    corpus = read_files(path, SUFFIXES, partial(_read_treebank, layer=entities), schema)
    if entities is not None:
        entities.check_all_claimed()
    return corpus


def _read_treebank(reader: FileReader, layer: EntityLayer | None) -> None:
    if layer is not None:
        reader.declare(ENTITIES)

    def labels_of(reader: FileReader, found: Sentence, id: str) -> dict[str, Any]:
        labels = _labels(reader, found)
        for task in TASKS:
            if task.name in labels:
                reader.declare(task)
        return labels if layer is None else labels | {"entities": layer.claim(reader, id, found.forms)}

    _read_sentences(reader, WIDTHS, labels_of)


def _labels(reader: FileReader, found: Sentence) -> dict[str, Any]:
    """The labels of a sentence; a column that is ``_`` for every word has none."""
    labels: dict[str, Any] = {}
    for name, column in (("upos", UPOS), ("xpos", XPOS)):
        tags = [row[column] for row in found.rows]
        if any(tag != NOTHING for tag in tags):
            labels[name] = tags
    heads = [row[HEAD] for row in found.rows]
    if any(head != NOTHING for head in heads):
        for line, head in zip(found.lines, heads, strict=True):
            if not head.isdecimal() or len(head) > 6:
                reader.line = line
                raise reader.error(f"the head {head!r} is not a number", item=found.id)
        labels["dependencies"] = [[int(head), row[DEPREL]] for head, row in zip(heads, found.rows, strict=True)]
    return labels


def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with one file per split, or one file. Write entities as a layer with the format ``iob2``."""
    checks = WriteChecks(corpus, "conllu", lose)
    checks.refuse("images", "pairs")
    checks.tasks(TASKS)
    _write_sentences(checks, path, SUFFIXES, partial(_write_words, checks))


def _write_words(checks: WriteChecks, file: IO[str], item: Item) -> None:
    nothing = [NOTHING] * len(item.words)
    upos, xpos = item.labels.get("upos", nothing), item.labels.get("xpos", nothing)
    for name, tags in (("upos", upos), ("xpos", xpos)):
        if name in item.labels and set(tags) == {NOTHING}:
            raise checks.error(f"takes {NOTHING!r} for no label, and every word of task {name!r} has it", item)
    tree = item.labels.get("dependencies", [[NOTHING, NOTHING]] * len(item.words))
    text, at = item.text or "", 0
    for number, (word, up, xp, (head, deprel)) in enumerate(zip(item.words, upos, xpos, tree, strict=True), 1):
        at = text.index(word, at) + len(word)
        misc = NOTHING if at == len(text) or text[at].isspace() else "SpaceAfter=No"
        cells = [checks.cell(item, cell, "") for cell in (word, up, xp, deprel)]
        file.write(f"{number}\t{cells[0]}\t_\t{cells[1]}\t{cells[2]}\t_\t{head}\t{cells[3]}\t_\t{misc}\n")


FORMATS.add("conllu", Format("conllu", "CoNLL-U treebanks, with an entity layer if wished", sniff, read, write))


# -- entity layers -----------------------------------------------------------------------------------------------------
def sniff_layer(path: Path) -> bool:
    """Sentences with an id, and numbered words with a tag."""
    lines = [line for line in first_lines(path, LAYER_SUFFIXES) if line]
    rows = [line for line in lines if line[0] != "#"]
    named = any(line.startswith("# sent_id") for line in lines)
    return named and bool(rows) and all(LAYER_ROW.fullmatch(row) for row in rows)


def read_layer(path: Path, drop: Names = DROPPED, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    dropped = parse_names(drop)

    def read_file(reader: FileReader) -> None:
        reader.declare(ENTITIES)
        _read_sentences(reader, LAYER_WIDTHS, lambda r, found, id: {"entities": _entities(r, found, dropped)})

    return read_files(path, LAYER_SUFFIXES, read_file, schema)


def _entities(reader: FileReader, found: Sentence, drop: Collection[str]) -> list[Span]:
    """The spans of a sentence, without those that mean "none of these"."""
    spans = reader.spans_at([row[2] for row in found.rows], found.lines, found.id)
    return [span for span in spans if span[2] not in drop]


class EntityLayer:
    """The sentences of a layer by ``sent_id``, each to be claimed by a sentence of the treebank."""

    def __init__(self, path: Path, drop: Collection[str]) -> None:
        self.path = path
        self._sentences: dict[str, tuple[Sentence, list[Span]]] = {}
        self._claimed: set[str] = set()
        files = split_files(path, LAYER_SUFFIXES)
        if not files:
            raise DataError("the folder holds no train, dev or test .iob2 file", path=path)
        reader = FileReader()
        for _, reader.file in files:
            for found in _sentences(reader, LAYER_WIDTHS):
                if found.id is None or found.id in self._sentences:
                    raise reader.error("a sentence of a layer needs a sent_id of its own", item=found.id)
                self._sentences[found.id] = found, _entities(reader, found, drop)

    def claim(self, reader: FileReader, id: str, words: list[str]) -> list[Span]:
        """The entities of a sentence; its words must be the same in both files."""
        if id not in self._sentences:
            raise reader.error(f"the layer {self.path} does not have this sentence", item=id)
        mine, spans = self._sentences[id]
        if mine.forms != words:
            at = next((i for i, (a, b) in enumerate(zip(words, mine.forms, strict=False)) if a != b), -1)
            what = f"word {at + 1} is {mine.forms[at]!r}, in the treebank {words[at]!r}" if at >= 0 else "more or fewer"
            raise DataError(f"not the words of the treebank: {what}", path=mine.path, line=mine.line, item=id)
        self._claimed.add(id)
        return spans

    def check_all_claimed(self) -> None:
        """Every sentence of a layer file in use must have been claimed."""
        used = {self._sentences[id][0].path for id in self._claimed}
        for id, (sentence, _) in self._sentences.items():
            if sentence.path in used and id not in self._claimed:
                raise DataError("the treebank has no such sentence", path=sentence.path, line=sentence.line, item=id)


def write_layer(corpus: Corpus, path: Path, drop: Names = DROPPED, lose: Names = ()) -> None:
    """Write a folder with one file per split, or one file."""
    checks = WriteChecks(corpus, "iob2", lose)
    checks.refuse("images", "pairs")
    checks.tasks([ENTITIES], needed=["entities"])
    dropped = parse_names(drop)

    def write_words(file: IO[str], item: Item) -> None:
        for number, (word, tag) in enumerate(zip(item.words, checks.tags(item, "entities"), strict=True), 1):
            if tag[2:] in dropped and tag != "O":
                raise checks.error(f"takes {tag} for no entity", item, fix="write and read with drop=()")
            file.write(f"{number}\t{checks.cell(item, word, '')}\t{checks.cell(item, tag, '')}\t-\t-\n")

    _write_sentences(checks, path, LAYER_SUFFIXES, write_words)


_SUMMARY = "entities on the sentences of a CoNLL-U file"
FORMATS.add("iob2", Format("iob2", _SUMMARY, sniff_layer, read_layer, write_layer))
