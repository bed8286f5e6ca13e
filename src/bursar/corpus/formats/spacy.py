"""spaCy: its binary ``DocBin``, the ``.spacy`` files that ``spacy train`` reads.

A word is a token; so is what lies between two words, unless it is one space. Labels are where spaCy looks for them:

- the only tagging task, or ``entities`` of several: ``doc.ents``; others, or one with nested spans: ``doc.spans[TASK]``
- a tagging task of every word: ``token.tag_``; one called ``upos`` with universal labels: ``token.pos_``
- a parsing task: ``token.head`` and ``token.dep_``; a root is its own head, its label ``root`` is spaCy's ``ROOT``
- classification: ``doc.cats``, 1 for the label and 0 for others; of several such tasks under ``TASK=LABEL``

``doc.user_data["bursar"]`` holds ids, splits, groups, the place of each task, and labels without a place. In files that
lack it the tasks are ``entities``, ``xpos``, ``upos``, ``dependencies``, ``label`` and the keys of ``doc.spans``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from bursar.corpus.builder import without_labels
from bursar.corpus.corpus import Corpus, Item, Names, Schema
from bursar.corpus.formats.characters import in_words, words_of
from bursar.corpus.formats.format import (
    FORMATS,
    FileReader,
    Format,
    opened,
    read_bytes,
    read_files,
    replacing,
    split_files,
)
from bursar.corpus.formats.write_checks import WriteChecks, stated
from bursar.errors import DataError, LabelError
from bursar.tasks import Classification, Parsing, Tagging, Task, make_task
from bursar.tasks.schemes import overlapping

SUFFIXES = (".spacy",)
KEY = "bursar"  # of our part of a document's user data
ELSEWHERE = "user_data"
ROOT = "ROOT"  # spaCy's label of roots, which its scorer expects
TOKENS = {"ents": "ent_iob", "tag": "tag", "pos": "pos", "tree": "dep"}  # places in tokens: what a labelled one has
DEFAULTS: tuple[tuple[str, Task], ...] = (
    ("ents", Tagging("entities")),
    ("tag", Tagging("xpos", every_word=True)),
    ("pos", Tagging("upos", every_word=True)),
    ("tree", Parsing("dependencies")),
    ("cats", Classification("label")),
)
UPOS = set("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
Places = Mapping[str, str]  # task: where a document has its labels


def _spacy() -> Any:
    try:
        import spacy.tokens
    except ImportError:
        raise DataError("the package 'spacy' is not installed", fix="pip install 'bursar[spacy]'") from None
    return spacy


def _prefix(places: Places, name: str) -> str:
    """What the categories of a task begin with."""
    return f"{name}=" if [*places.values()].count("cats") > 1 else ""


def sniff(path: Path) -> bool:
    """Compressed data that begins with the keys of a ``DocBin``."""
    files = split_files(path, SUFFIXES)
    try:
        with opened(files[0][1]) as file:
            return b"attrs" in zlib.decompressobj().decompress(file.read(256), 64)
    except (IndexError, OSError, EOFError, zlib.error):
        return False


# -- reading --------------------------------------------------------------------------------------------------------
def read(path: Path, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one file per split."""
    return read_files(path, SUFFIXES, _read_file, schema)


def _read_file(reader: FileReader) -> None:
    spacy, data = _spacy(), read_bytes(reader.file)
    try:
        found = [*spacy.tokens.DocBin().from_bytes(data).get_docs(spacy.vocab.Vocab())]
        docs = [(doc, json.loads(json.dumps(doc.user_data.get(KEY, {})))) for doc in found]  # lists, not tuples
    except Exception as wrong:  # a broken file raises many types
        raise reader.error(f"cannot be read as spaCy's DocBin: {str(wrong) or type(wrong).__name__}") from None
    for doc, about in docs:
        _read_doc(reader, doc, about)


def _read_doc(reader: FileReader, doc: Any, about: Any) -> None:
    parts = {"tasks": dict, "labels": dict, "empty": list}
    if not isinstance(about, dict) or not all(isinstance(about.get(key, kind()), kind) for key, kind in parts.items()):
        raise reader.error(f"user_data[{KEY!r}] is not what Bursar writes")
    id = about["id"] if isinstance(about.get("id"), str) else reader.next_id()
    strings = reader.strings(id, split=about.get("split"), group=about.get("group"))
    with reader.locating(id):
        places = _declare(reader, doc, about)
        own = [[token.idx, token.idx + len(token)] for token in doc if token.text.strip()]
        words = words_of({"words": own} | about, doc.text)
        by_start = {token.idx: token for token in doc}
        tokens = [by_start[start] for start, _ in words if start in by_start]
        if len(tokens) < len(words):
            raise LabelError("a word does not begin with a token")
        labels: dict[str, Any] = about.get("labels", {})
        for name, place in places.items():
            if place == "cats":
                labels[name] = _class(doc.cats, _prefix(places, name))
            elif place == "spans" and name in doc.spans:
                labels[name] = _spans(doc.spans[name], doc, words)
            elif place in TOKENS and (tokens or name in about.get("empty", [])):
                labels[name] = _as_written(_of_tokens(doc, name, place, tokens, words), place, about)
    labels = {name: label for name, label in labels.items() if label is not None}
    reader.add(id, text=doc.text, words=words, labels=labels, **strings)


def _as_written(label: Any, place: str, about: dict[str, Any]) -> Any:
    """A label with its own name of roots, or with its entities in their own order, unless these were edited."""
    if place == "tree" and label:
        root = about.get("root", ROOT)
        return [[head, root if kind == ROOT and not head else kind] for head, kind in label]
    order = about.get("order")
    if place == "ents" and label and isinstance(order, list) and all(type(at) is int for at in order):
        return [label[at] for at in order] if sorted(order) == [*range(len(label))] else label
    return label


def _declare(reader: FileReader, doc: Any, about: dict[str, Any]) -> Places:
    """Add the tasks of a document to the corpus: those of its user data, and those in places that are left over."""
    places: dict[str, str] = {}
    for name, described in about.get("tasks", {}).items():
        place, description = described if isinstance(described, list) and len(described) == 2 else (None, described)
        if place not in (*TOKENS, "cats", "spans", ELSEWHERE):
            raise LabelError(f"task {name!r} has no known place: {place!r}")
        places[name] = place
        reader.declare(make_task(name, description))
    others = [pair for pair in DEFAULTS if pair[0] not in places.values()]
    for place, task in [*others, *(("spans", Tagging(name)) for name in doc.spans)]:
        marked = place == "spans" or (doc.cats if place == "cats" else any(getattr(t, TOKENS[place]) for t in doc))
        if marked and task.name not in places:
            places[task.name] = place
            reader.declare(task)
    return places


def _of_tokens(doc: Any, name: str, place: str, tokens: list[Any], words: Any) -> Any:
    """The label of a task that all words have, or none of them."""
    marked = sum(bool(getattr(token, TOKENS[place])) for token in tokens)
    if tokens and not marked:
        return None
    if marked < len(tokens):
        raise LabelError(f"task {name!r}: {marked} of {len(tokens)} words are labelled", fix="label all or none")
    if place == "ents":
        return _spans(doc.ents, doc, words)
    if place != "tree":
        return [getattr(token, f"{place}_") for token in tokens]
    number = {token.i: at for at, token in enumerate(tokens, 1)}
    if lost := [token.text for token in tokens if token.head.i not in number]:
        raise LabelError(f"task {name!r}: the head of {lost[0]!r} is no word")
    return [[0 if token.head.i == token.i else number[token.head.i], token.dep_] for token in tokens]


def _spans(found: Iterable[Any], doc: Any, words: Any) -> list[list[Any]]:
    return [[*in_words(doc.text, words, span.start_char, span.end_char), span.label_] for span in found]


def _class(cats: dict[str, float], prefix: str) -> str | None:
    own = {label.removeprefix(prefix): weight for label, weight in cats.items() if label.startswith(prefix)}
    chosen = [label for label, weight in own.items() if weight > 0.5]
    if own and len(chosen) != 1:
        raise LabelError(f"an item has one class, and {len(chosen)} of {len(own)} categories are above 0.5 here")
    return chosen[0] if own else None


# -- writing --------------------------------------------------------------------------------------------------------
def write(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write one file with all splits; or, if the path has no suffix, a folder with a file for each, as for training."""
    spacy = _spacy()
    checks = WriteChecks(corpus, "spacy", lose)
    checks.refuse("images", "pairs")
    places, vocab = _places(corpus), spacy.vocab.Vocab()

    def fill(file: Any, split: str | None = None) -> None:
        docs = (_doc(checks, item, places, spacy.tokens, vocab) for item in checks.items(split))
        cast(TextIO, file).buffer.write(spacy.tokens.DocBin(store_user_data=True, docs=docs).to_bytes())

    if path.suffix and not path.is_dir():
        with replacing(path) as file:
            fill(file)
        return
    with checks.writing(path, SUFFIXES) as files:
        for split, file in files:
            fill(file, split)


def _places(corpus: Corpus) -> Places:
    """Where each task is written; only the first task has a place that holds one."""
    spans = [name for name, task in corpus.schema.items() if isinstance(task, Tagging) and not task.every_word]
    several = sum(isinstance(task, Classification) for task in corpus.schema.values()) > 1
    places: dict[str, str] = {}
    for name, task in corpus.schema.items():
        place = ELSEWHERE
        match task:
            case Classification() if not (several and "=" in name):
                place = "cats"
            case Parsing():
                place = "tree"
            case Tagging(every_word=True):
                place = "pos" if name == "upos" and set(task.labels) <= UPOS else "tag"
            case Tagging() if corpus.texts is not None:
                nested = overlapping(corpus.labels[name].rows, corpus.texts.word_counts).any()
                place = "ents" if (name == "entities" or len(spans) == 1) and not nested else "spans"
        places[name] = ELSEWHERE if place in TOKENS and place in places.values() else place
    return places


def _doc(checks: WriteChecks, item: Item, places: Places, kinds: Any, vocab: Any) -> Any:
    """A document with the labels of an item; ``kinds`` has the classes of documents and spans."""
    if not all(word.strip() for word in item.words):
        raise checks.error("holds no word of blanks", item)
    words, spaces, at = _tokens(item)
    schema = checks.corpus.schema
    root = ROOT if any(ROOT in task.labels for task in schema.values()) else ROOT.lower()
    doc = kinds.Doc(vocab, words=words, spaces=spaces, **_tree(item, places, root, at, len(words)))
    for name, label in item.labels.items():
        place = places[name]
        if place in ("tag", "pos"):
            for token, kind in zip(at, label, strict=True):
                setattr(doc[token], f"{place}_", kind)
        elif place in ("ents", "spans"):
            spans = [kinds.Span(doc, at[start], at[end - 1] + 1, label=kind) for start, end, kind in label]
            if place == "ents":
                doc.set_ents(spans)
            else:
                doc.spans[name] = spans
        elif place == "cats":
            prefix = _prefix(places, name)
            doc.cats |= {f"{prefix}{each}": float(each == label) for each in schema[name].labels}
    entities: list[Any] = next((item.labels[name] for name in item.labels if places[name] == "ents"), [])
    ranks = sorted(range(len(entities)), key=lambda at: entities[at][0])  # spaCy sorts them
    doc.user_data[KEY] = {
        "id": item.id,
        **stated(item, words=[words[token] for token in at] != [word for word in words if word.strip()]),
        "tasks": {name: [place, without_labels(schema[name])] for name, place in places.items()},
        "labels": {name: label for name, label in item.labels.items() if places[name] == ELSEWHERE},
        **({"root": root} if at else {"empty": [*item.labels]}),
        **({} if ranks == sorted(ranks) else {"order": [ranks.index(at) for at in range(len(ranks))]}),
    }
    return doc


def _tokens(item: Item) -> tuple[list[str], list[bool], list[int]]:
    """The tokens of an item, whether a space follows each, and which of them are its words."""
    text, end = item.text or "", 0
    tokens: list[str] = []
    spaces: list[bool] = []
    at: list[int] = []
    for start, stop in [*item.spans, (len(text), len(text))]:
        gap = text[end:start]
        if tokens and gap.startswith(" "):
            spaces[-1], gap = True, gap[1:]
        if gap:
            tokens.append(gap)
        if start < stop:
            at.append(len(tokens))
            tokens.append(text[start:stop])
        spaces += [False] * (len(tokens) - len(spaces))
        end = stop
    return tokens, spaces, at


def _tree(item: Item, places: Places, root: str, at: list[int], count: int) -> dict[str, Any]:
    """The heads of tokens, and their labels; ``None`` for tokens that are no words."""
    name = next((name for name, place in places.items() if place == "tree"), None)
    if name not in item.labels or not at:
        return {}
    arcs: dict[int, tuple[int, str]] = {
        token: (at[head - 1], kind) if head else (token, ROOT if kind == root else kind)
        for token, (head, kind) in zip(at, item.labels[name], strict=True)
    }
    heads, deps = zip(*(arcs.get(token, (None, None)) for token in range(count)), strict=True)
    return {"heads": [*heads], "deps": [*deps]}


FORMATS.add("spacy", Format("spacy", "spaCy's binary DocBin, as its training reads", sniff, read, write))
