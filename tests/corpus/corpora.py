"""Corpora for hypothesis to draw, as rich as each format can express."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bursar.corpus import Corpus, CorpusBuilder
from bursar.corpus.words import find_words, join_tokens

NO_BLANKS = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters=" \ufeff[]")
WORDS = st.text(NO_BLANKS, min_size=1, max_size=5) | st.sampled_from(["a", "it", "B-52", "4:30", "#", "_", "O", '"'])
WORDS = WORDS.filter(lambda word: word == word.strip() and word != "-DOCSTART-")
LABELS = st.sampled_from(["PER", "LOC", "x.y", "a-b", "été", "B"])
PHRASES = LABELS | st.just("two words")
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufeff"), max_size=30)
Draw = Callable[..., Any]


def spans(draw: Draw, count: int) -> list[list[Any]]:
    """Spans that lie apart, in order."""
    cuts = sorted(draw(st.sets(st.integers(0, count), max_size=4)))
    return [[a, b, draw(LABELS)] for a, b in zip(cuts[::2], cuts[1::2], strict=False)]


def any_spans(draw: Draw, count: int) -> list[list[Any]]:
    """Spans that may nest and overlap."""
    if not count:
        return []
    ends = st.tuples(st.integers(0, count - 1), st.integers(1, count)).filter(lambda span: span[0] < span[1])
    return [[*span, draw(LABELS)] for span in draw(st.lists(ends, max_size=3, unique=True))]


def links(draw: Draw, entities: list[list[Any]]) -> list[list[Any]]:
    if not entities:
        return []
    ends = st.sampled_from(entities)
    return [[draw(ends), draw(ends), draw(LABELS)] for _ in range(draw(st.integers(0, 2)))]


def tree(draw: Draw, count: int) -> list[list[Any]]:
    """Heads that come before their words make a tree; the labels are anything."""
    return [[draw(st.integers(0, at)), draw(LABELS)] for at in range(count)]


def spaced(draw: Draw, words: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of words with any blanks between and around them."""
    text, places = draw(st.sampled_from(["", " "])), []
    for word in words:
        places.append((len(text), len(text) + len(word)))
        text += word + draw(st.sampled_from(["", " ", "  "]))
    return text, places


def splits(draw: Draw) -> Iterable[tuple[str, int]]:
    """The splits that have items, and how many."""
    some = draw(st.sets(st.sampled_from(["train", "dev", "test"]), min_size=1))
    return [(split, draw(st.integers(1, 3))) for split in ("train", "dev", "test") if split in some]


def tokens(draw: Draw, least: int = 1) -> list[str]:
    return draw(st.lists(WORDS, min_size=least, max_size=6))


TAGGING = {"kind": "tagging"}
EVERY_WORD = {"kind": "tagging", "every_word": True}
CLASSES = {"kind": "classification"}


@st.composite
def for_conll(draw: Draw) -> Corpus:
    many = draw(st.booleans())
    builder = CorpusBuilder(
        {"pos": EVERY_WORD, "chunk": TAGGING, "entities": TAGGING} if many else {"entities": TAGGING}
    )
    for split, count in splits(draw):
        document = 0
        for n in range(1, count + 1):
            words = tokens(draw)
            text, places = join_tokens(words)
            labels: dict[str, Any] = {"entities": spans(draw, len(words))}
            if many:
                labels |= {"pos": [draw(LABELS) for _ in words], "chunk": spans(draw, len(words))}
            document += draw(st.booleans())
            group = f"{split}-doc-{document:06d}" if document else None
            builder.add(f"{split}-{n:06d}", split=split, text=text, words=places, group=group, labels=labels)
    return builder.build()


@st.composite
def for_conllu(draw: Draw) -> Corpus:
    schema = {"upos": EVERY_WORD, "dependencies": {"kind": "parsing"}}
    return _named(
        draw, schema, lambda words: {"upos": [draw(LABELS) for _ in words], "dependencies": tree(draw, len(words))}
    )


@st.composite
def for_iob2(draw: Draw) -> Corpus:
    return _named(draw, {"entities": TAGGING}, lambda words: {"entities": spans(draw, len(words))})


def _named(draw: Draw, schema: dict[str, Any], labels: Callable[[list[str]], dict[str, Any]]) -> Corpus:
    """Sentences with ids of their own, any spacing, in documents."""
    builder = CorpusBuilder(schema)
    number = 0
    for split, count in splits(draw):
        group = None
        for _ in range(count):
            number += 1
            words = tokens(draw)
            text, places = spaced(draw, words)
            group = draw(st.sampled_from([group, "doc a", f"doc {number}"]))
            id = f"s {number}{draw(st.sampled_from(['', 'é', '=', '#']))}"
            builder.add(id, split=split, text=text, words=places, group=group, labels=labels(words))
    return builder.build()


@st.composite
def for_slots(draw: Draw) -> Corpus:
    return _placed(draw, {"intent": CLASSES, "slots": TAGGING}, "slots", always=True)


@st.composite
def for_wordtag(draw: Draw) -> Corpus:
    return _placed(draw, {"entities": TAGGING, "intent": CLASSES}, "entities", always=False)


def _placed(draw: Draw, schema: dict[str, Any], tagging: str, always: bool) -> Corpus:
    builder = CorpusBuilder(schema)
    for split, count in splits(draw):
        for n in range(1, count + 1):
            words = tokens(draw)
            text, places = join_tokens(words)
            labels: dict[str, Any] = {tagging: spans(draw, len(words))}
            if always or not len(builder) or draw(st.booleans()):
                labels["intent"] = draw(PHRASES)
            builder.add(f"{split}-{n:06d}", split=split, text=text, words=places, labels=labels)
    return builder.build()


@st.composite
def for_dygie(draw: Draw) -> Corpus:
    builder = CorpusBuilder({"entities": TAGGING, "relations": {"kind": "relations"}})
    for split, count in splits(draw):
        for document in range(1, count + 1):
            key = draw(st.sampled_from([f"{split}-{document:06d}", f"{split} d{document}"]))
            known = not len(builder) or draw(st.booleans())
            for n in range(draw(st.integers(1, 3))):
                words = tokens(draw, least=0)
                text, places = join_tokens(words)
                entities = [[a, b, "PER"] for a, b, _ in any_spans(draw, len(words))]
                labels = {"entities": entities, "relations": links(draw, entities)} if known else {}
                builder.add(f"{key}-{n}", split=split, text=text, words=places, group=key, labels=labels)
    return builder.build()


@st.composite
def for_topv2(draw: Draw) -> Corpus:
    builder = CorpusBuilder({"intent": CLASSES, "slots": TAGGING})
    for split, count in splits(draw):
        domains: dict[str, int] = {}
        for _ in range(count):
            words = tokens(draw)
            text, places = spaced(draw, words)
            domain = draw(st.sampled_from(["alarm", "wet weather"]))
            domains[domain] = domains.get(domain, 0) + 1
            labels = {"intent": draw(LABELS), "slots": spans(draw, len(words))}
            id = f"{domain}-{split}-{domains[domain]:06d}"
            builder.add(id, split=split, text=text, words=places, group=domain, labels=labels)
    return builder.build()


@st.composite
def for_glue(draw: Draw) -> Corpus:
    tasks = draw(st.sets(st.sampled_from(["CoLA", "RTE", "STS-B"]), min_size=1))
    score = {"kind": "regression", "low": 0, "high": 5}
    builder = CorpusBuilder({task: score if task == "STS-B" else CLASSES for task in sorted(tasks)})
    for task in sorted(tasks):
        for split, count in [("train", draw(st.integers(2, 3))), *[s for s in splits(draw) if s[0] != "train"]]:
            labelled = split == "train" or draw(st.booleans())
            for n in range(1, count + 1):
                label = draw(st.floats(0, 5)) if task == "STS-B" else draw(PHRASES)
                pair = None if task == "CoLA" else draw(LINES)
                labels = {task: label} if labelled else {}
                builder.add(f"{task}-{split}-{n:06d}", split=split, text=draw(LINES), pair=pair, labels=labels)
    return builder.build()


@st.composite
def for_tables(draw: Draw) -> Corpus:
    """Texts with labels of three kinds, documents and other columns of any values."""
    schema = {"intent": CLASSES, "urgency": {"kind": "regression", "low": 0, "high": 5}, "slots": TAGGING}
    builder = CorpusBuilder(schema)
    number = 0
    for split, count in splits(draw):
        for _ in range(count):
            number += 1
            text = draw(LINES.filter(str.strip))
            labels: dict[str, Any] = {"intent": draw(PHRASES), "urgency": draw(st.floats(0, 5, width=32))}
            labels["slots"] = spans(draw, len(find_words(text)))
            kept = draw(st.sets(st.sampled_from(sorted(labels))))
            builder.add(
                f"s {number}",
                split=split,
                text=text,
                group=draw(st.sampled_from([None, "doc a", "=1"])),
                labels={task: label for task, label in labels.items() if task in kept},
                metadata={"Channel": draw(st.sampled_from(["mail", "-phone", "007"]))},
            )
    return builder.build()


@st.composite
def for_text(draw: Draw) -> Corpus:
    builder = CorpusBuilder()
    for number in range(1, draw(st.integers(1, 4)) + 1):
        builder.add(f"line-{number:06d}", text=draw(LINES.filter(str.strip)))
    return builder.build()


@st.composite
def for_idx(draw: Draw) -> Corpus:
    builder = CorpusBuilder({"label": CLASSES})
    for split, count in splits(draw):
        labelled = not len(builder) or draw(st.booleans())
        for n in range(1, count + 1):
            label = {"label": str(draw(st.integers(0, 255)))} if labelled else {}
            builder.add(f"{split}-{n:06d}", split=split, labels=label)
    return builder.build(images=_images(draw, len(builder)))


def _images(draw: Draw, count: int) -> Any:
    shape = (count, *draw(st.sampled_from([(1, 1), (2, 3), (2, 2, 3)])))
    return np.random.default_rng(draw(st.integers(0, 9))).integers(0, 256, shape, dtype=np.uint8)


@st.composite
def for_npz(draw: Draw) -> Corpus:
    builder = CorpusBuilder({"pose": CLASSES, "eyes": CLASSES})
    for n in range(draw(st.integers(1, 4))):
        labels = {task: draw(PHRASES) for task in ("pose", "eyes") if draw(st.booleans())}
        split = draw(st.sampled_from(["train", "a split"]))
        group = draw(st.sampled_from([None, "ada"]))
        builder.add(f"p/{n} é", split=split, group=group, labels=labels)
    return builder.build(images=_images(draw, len(builder)))


@st.composite
def for_huggingface(draw: Draw) -> Corpus:
    schema = {"intent": CLASSES, "slots": TAGGING, "pos": EVERY_WORD, "score": {"kind": "regression", "high": 9}}
    builder = CorpusBuilder(schema)
    for split, count in splits(draw):
        for n in range(count):
            words = tokens(draw, least=0)
            text, places = spaced(draw, words)
            labels = {
                "intent": draw(PHRASES),
                "slots": spans(draw, len(words)),
                "pos": [draw(LABELS) for _ in words],
                "score": draw(st.floats(0, 9)),
            }
            if len(builder):
                labels = {task: label for task, label in labels.items() if draw(st.booleans())}
            pair, group = draw(st.sampled_from([None, "p q"])), draw(st.sampled_from([None, "g"]))
            builder.add(f"{split} {n}", split=split, text=text, words=places, pair=pair, group=group, labels=labels)
    return builder.build()


@st.composite
def for_jsonl(draw: Draw) -> Corpus:
    relations = {"kind": "relations"}
    schema = {"intent": CLASSES, "slots": TAGGING, "pos": EVERY_WORD, "tree": {"kind": "parsing"}, "links": relations}
    builder = CorpusBuilder(schema | {"score": {"kind": "regression"}})
    for n in range(draw(st.integers(1, 4))):
        text, places = spaced(draw, tokens(draw, least=0))
        entities = any_spans(draw, len(places))
        labels = {
            "intent": draw(PHRASES),
            "slots": entities,
            "pos": [draw(LABELS) for _ in places],
            "tree": tree(draw, len(places)),
            "links": links(draw, entities),
            "score": draw(st.floats(0, 1)),
        }
        labels = {task: label for task, label in labels.items() if draw(st.booleans())}
        split, pair = draw(st.sampled_from(["train", "a split"])), draw(st.sampled_from([None, "p\nq"]))
        group = draw(st.sampled_from([None, "g\u2028"]))
        builder.add(f"u {n}", split=split, text=text, words=places, pair=pair, group=group, labels=labels)
    return builder.build()


@st.composite
def for_label_studio(draw: Draw) -> Corpus:
    """As rich as the native format, but for images; characters that take two units in a browser among the words."""
    relations = {"kind": "relations"}
    schema = {
        "intent": CLASSES,
        "my slots": TAGGING,
        "pos": EVERY_WORD,
        "tree": {"kind": "parsing"},
        "links": relations,
    }
    schema |= {"other links": relations} if draw(st.booleans()) else {}
    builder = CorpusBuilder(schema | {"score": {"kind": "regression", "low": -1, "high": 9.5}})
    for n in range(draw(st.integers(1, 4))):
        text, places = spaced(draw, [*tokens(draw, least=0), *draw(st.sampled_from([[], ["😀"], ["שלום"]]))])
        entities = any_spans(draw, len(places))
        labels = {
            "intent": draw(PHRASES),
            "my slots": entities,
            "pos": [draw(LABELS) for _ in places],
            "tree": tree(draw, len(places)),
            "links": links(draw, entities),
            "other links": links(draw, any_spans(draw, len(places))),
            "score": draw(st.floats(-1, 9.5)),
        }
        if draw(st.booleans()):
            labels = {task: label for task, label in labels.items() if draw(st.booleans())}
        labels = {task: label for task, label in labels.items() if task in schema or task == "score"}
        split, pair = draw(st.sampled_from(["train", "a split"])), draw(st.sampled_from([None, "p\nq"]))
        group = draw(st.sampled_from([None, "g\u2028"]))
        builder.add(f"u {n}", split=split, text=text, words=places, pair=pair, group=group, labels=labels)
    return builder.build()


@st.composite
def for_doccano(draw: Draw) -> Corpus:
    tasks = draw(st.sampled_from([["label"], ["entities"], ["label", "entities"], ["entities", "relations"]]))
    return _marked(draw, tasks, all_or_none="relations" in tasks)


@st.composite
def for_prodigy(draw: Draw) -> Corpus:
    tasks = draw(st.sets(st.sampled_from(["label", "entities", "relations"]), min_size=1))
    return _marked(draw, sorted(tasks))


def _marked(draw: Draw, tasks: list[str], all_or_none: bool = False) -> Corpus:
    """Classes, spans that may overlap and links between them; the first item has labels for every task."""
    kinds = {"label": CLASSES, "entities": TAGGING, "relations": {"kind": "relations"}}
    builder = CorpusBuilder({task: kinds[task] for task in tasks})
    for n in range(draw(st.integers(1, 4))):
        text, places = spaced(draw, [*tokens(draw, least=0), *draw(st.sampled_from([[], ["😀"], ["שלום"]]))])
        entities = any_spans(draw, len(places))
        labels = {"label": draw(PHRASES), "entities": entities, "relations": links(draw, entities)}
        given = {task for task in tasks if not n or draw(st.booleans())}
        given = given if not all_or_none or len(given) == len(tasks) else set()
        split, group = draw(st.sampled_from(["train", "a split"])), draw(st.sampled_from([None, "g\u2028"]))
        labels = {task: label for task, label in labels.items() if task in given}
        builder.add(f"u {n}", split=split, text=text, words=places, group=group, labels=labels)
    return builder.build()


@st.composite
def for_argilla(draw: Draw) -> Corpus:
    schema = {"intent": CLASSES, "slots": TAGGING, "score": {"kind": "regression", "low": 1, "high": 5}}
    builder = CorpusBuilder(schema)
    for n in range(draw(st.integers(1, 4))):
        text, places = spaced(draw, [*tokens(draw, least=0), *draw(st.sampled_from([[], ["😀"], ["שלום"]]))])
        labels = {
            "intent": draw(PHRASES),
            "slots": any_spans(draw, len(places)),
            "score": float(draw(st.integers(1, 5))),
        }
        labels = {task: label for task, label in labels.items() if draw(st.booleans())}
        split, pair = draw(st.sampled_from(["train", "a split"])), draw(st.sampled_from([None, "p\nq"]))
        group = draw(st.sampled_from([None, "g\u2028"]))
        builder.add(f"u {n}", split=split, text=text, words=places, pair=pair, group=group, labels=labels)
    return builder.build()


# -- contracts ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Contract:
    """A format, corpora that it can express, and a plain count of the items of one of its files."""

    corpora: st.SearchStrategy[Corpus]
    count: Callable[[Path], int] | None
    is_text: bool = True
    slow: bool = False
    single_file: str = ""


def lines_of(path: Path) -> list[str]:
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    return [line.removesuffix(b"\r").decode() for line in data.split(b"\n")]


def filled(path: Path) -> int:
    return sum(bool(line.strip(" \t")) for line in lines_of(path))
