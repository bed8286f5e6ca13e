"""What every format owes: to read back what it wrote, and to answer any file with a corpus or a clear error."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bursar.corpus import FORMATS, Corpus, CorpusBuilder, guess_format, read, write
from bursar.errors import BursarError, DataError
from tests.corpus import corpora
from tests.corpus.corpora import Contract, filled, lines_of
from tests.same import differences

Change = tuple[str, float, int, bytes]


# -- how many records a file holds, counted without the reader -------------------------------------------------------
def blocks(path: Path) -> int:
    """Runs of lines that are not blank."""
    return sum(bool(block.strip()) for block in "\n".join(line.strip(" ") for line in lines_of(path)).split("\n\n"))


def conll_blocks(path: Path) -> int:
    kept = [line if line.strip(" ").split(" ")[0].split("\t")[0] != "-DOCSTART-" else "" for line in lines_of(path)]
    kept = [line if line.strip(" \t") else "" for line in kept]
    return sum(bool(block.strip("\n")) for block in "\n".join(kept).split("\n\n"))


def json_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(path) if line.strip()]


def idx_items(path: Path) -> int:
    return int.from_bytes(gzip.decompress(path.read_bytes())[4:8], "big") if "images" in path.name else 0


def array_items(path: Path) -> int:
    """The elements of a JSON array; files next to it have no items."""
    return len(json.loads(path.read_bytes().decode("utf-8-sig"))) if path.name in ("tasks.json", "records.json") else 0


CONTRACTS = {
    "argilla": Contract(corpora.for_argilla(), array_items),
    "conll": Contract(corpora.for_conll(), conll_blocks),
    "conllu": Contract(corpora.for_conllu(), blocks),
    "doccano": Contract(corpora.for_doccano(), lambda path: len(json_records(path)), single_file="items.jsonl"),
    "dygie": Contract(corpora.for_dygie(), lambda path: sum(len(record["sentences"]) for record in json_records(path))),
    "glue": Contract(corpora.for_glue(), lambda path: filled(path) - 1),
    "huggingface": Contract(corpora.for_huggingface(), None, is_text=False, slow=True),
    "idx": Contract(corpora.for_idx(), idx_items, is_text=False),
    "iob2": Contract(corpora.for_iob2(), blocks),
    "csv": Contract(corpora.for_tables(), None, single_file="items.csv"),
    "json": Contract(corpora.for_tables(), array_items, single_file="records.json"),
    "json-lines": Contract(corpora.for_tables(), lambda path: len(json_records(path)), single_file="items.jsonl"),
    "parquet": Contract(corpora.for_tables(), None, is_text=False, single_file="items.parquet"),
    "text": Contract(corpora.for_text(), None, single_file="items.txt"),
    "tsv": Contract(corpora.for_tables(), None, single_file="items.tsv"),
    "xlsx": Contract(corpora.for_tables(), None, is_text=False, single_file="items.xlsx", slow=True),
    "jsonl": Contract(
        corpora.for_jsonl(),
        lambda path: sum("bursar" not in record for record in json_records(path)),
        single_file="items.jsonl",
    ),
    "label-studio": Contract(corpora.for_label_studio(), array_items, single_file="tasks.json"),
    "npz": Contract(
        corpora.for_npz(), lambda path: len(np.load(path)["images"]), is_text=False, single_file="images.npz"
    ),
    "prodigy": Contract(corpora.for_prodigy(), lambda path: len(json_records(path)), single_file="items.jsonl"),
    "slots": Contract(corpora.for_slots(), lambda path: filled(path) if path.name == "seq.in" else 0),
    "topv2": Contract(corpora.for_topv2(), lambda path: filled(path) - 1),
    "wordtag": Contract(corpora.for_wordtag(), filled),
}
NEW = [name for name in FORMATS if name not in CONTRACTS]  # a new format brings its contract
CONTRACTS |= {name: import_module(f"tests.corpus.test_{name.replace('-', '_')}").CONTRACT for name in NEW}
ALL = sorted(CONTRACTS)
TEXT = [name for name in ALL if CONTRACTS[name].is_text]
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.fixture(autouse=True)
def nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def trials(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=QUIET)


def written(corpus: Corpus, name: str, folder: str) -> Path:
    path = Path(folder) / "corpus" / CONTRACTS[name].single_file
    write(corpus, path, name)
    return path


def data_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def by_split(corpus: Corpus) -> Corpus:
    """The same items in the order that split files have."""
    ranks = {split: rank for rank, split in enumerate(("train", "dev", "test"))}
    return corpus.take(np.argsort([ranks.get(corpus.splits[code], 9) for code in corpus.split_codes], kind="stable"))


# -- round trips ----------------------------------------------------------------------------------------------------
def check_round_trip(name: str, corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        path = written(corpus, name, folder)
        assert guess_format(path).name == name
        again = read(path)
    order = (lambda c: c) if CONTRACTS[name].single_file or name in ("glue", "argilla") else by_split
    assert not differences(order(corpus), again)


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_is_guessed_and_read_back_the_same(name: str) -> None:
    @trials(8 if CONTRACTS[name].slow else 40)
    @given(CONTRACTS[name].corpora)
    def check(corpus: Corpus) -> None:
        check_round_trip(name, corpus)

    check()


@pytest.mark.soak
@pytest.mark.parametrize("name", ALL)
def test_thousands_of_corpora_are_read_back_the_same(name: str) -> None:
    @trials(100 if CONTRACTS[name].slow else 1500)
    @given(CONTRACTS[name].corpora)
    def check(corpus: Corpus) -> None:
        check_round_trip(name, corpus)

    check()


# -- files that are not as they should be ---------------------------------------------------------------------------
BITS = [
    b"\n",
    b"\n\n",
    b"\t",
    b" ",
    b"\r\n",
    b"0",
    b"-1",
    b"1",
    b"\xff",
    b"\x00",
    b'"',
    b"]",
    b"[",
    b"{",
    b"}",
    b",",
    b":",
]
BITS += [
    b"O",
    b"B-",
    b"_",
    b"# ",
    b"# text = ",
    b"null",
    b"1e999",
    b"9" * 30,
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
]
PIECES = st.sampled_from(BITS) | st.binary(max_size=6)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["cut", "delete", "insert", "replace", "repeat"]), st.floats(0, 1), st.integers(1, 40), PIECES
    ),
    min_size=1,
    max_size=3,
)


def changed(data: bytes, changes: list[Change]) -> bytes:
    """Bytes cut off, taken out, put in, written over or said twice."""
    for how, where, length, piece in changes:
        at = int(where * len(data))
        match how:
            case "cut":
                data = data[:at]
            case "delete":
                data = data[:at] + data[at + length :]
            case "insert":
                data = data[:at] + piece + data[at:]
            case "replace":
                data = data[:at] + piece + data[at + len(piece) :]
            case "repeat":
                data = data[: at + length] + data[at:]
    return data


LINES = {"conll", "conllu", "dygie", "glue", "iob2", "jsonl", "slots", "topv2", "wordtag"}
LINES |= {"argilla", "doccano", "label-studio", "prodigy", "csv", "tsv", "json", "json-lines", "text"}
KEEPS_IDS = {"jsonl", "npz", "huggingface", "conllu", "iob2", "argilla", "doccano", "label-studio", "prodigy"}
KEEPS_IDS |= {"csv", "tsv", "json", "json-lines", "parquet", "xlsx", "spacy"}
WHOLE_FILE = re.compile("no item|cannot be read|no such file|holds no|surrogate|is in two of the files")


def check_answer(name: str, path: Path) -> None:
    """A reader answers with a corpus that has every item of the files, or with an error that says where it is wrong."""
    try:
        corpus = read(path, name)
    except DataError as wrong:
        refused = wrong
    else:
        refused = None
    if refused is not None:
        assert refused.path is not None
        assert refused.line is not None or name not in LINES or WHOLE_FILE.search(refused.message), str(refused)
        return
    count = CONTRACTS[name].count
    if count is not None:
        assert len(corpus) == sum(count(file) for file in data_files(path))


@cache
def a_corpus(name: str) -> Corpus:
    """One corpus of a format, always the same, with several items."""
    found: list[Corpus] = []

    @settings(max_examples=30, database=None, derandomize=True, deadline=None, suppress_health_check=QUIET)
    @given(CONTRACTS[name].corpora)
    def collect(corpus: Corpus) -> None:
        found.append(corpus)

    collect()
    return max(found, key=lambda corpus: (min(c for c in corpus.split_counts().values() if c), len(corpus)))


@cache
def its_files(name: str) -> dict[str, bytes]:
    """The files of that corpus by their place in a folder."""
    with TemporaryDirectory() as folder:
        written(a_corpus(name), name, folder)
        return {str(file.relative_to(folder)): file.read_bytes() for file in data_files(Path(folder))}


def check_with(name: str, files: dict[str, bytes], which: int, change: Callable[[bytes], bytes]) -> None:
    """The answer to files of which one is changed."""
    with TemporaryDirectory() as folder:
        for at, (place, data) in enumerate(files.items()):
            file = Path(folder) / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(change(data) if at == which % len(files) else data)
        check_answer(name, Path(folder) / "corpus" / CONTRACTS[name].single_file)


@pytest.mark.parametrize("name", ALL)
def test_a_damaged_file_is_refused_clearly_or_read_in_full(name: str) -> None:
    files = its_files(name)

    @trials(15 if CONTRACTS[name].slow else 150)
    @given(st.integers(0, 9), CHANGES)
    def check(which: int, changes: list[Change]) -> None:
        check_with(name, files, which, lambda data: changed(data, changes))

    check()


@pytest.mark.soak
@pytest.mark.parametrize("name", ALL)
def test_thousands_of_damaged_files_are_refused_clearly_or_read_in_full(name: str) -> None:
    @trials(300 if CONTRACTS[name].slow else 4000)
    @given(CONTRACTS[name].corpora, st.integers(0, 9), CHANGES)
    def check(corpus: Corpus, which: int, changes: list[Change]) -> None:
        with TemporaryDirectory() as folder:
            path = written(corpus, name, folder)
            file = data_files(path)[which % len(data_files(path))]
            file.write_bytes(changed(file.read_bytes(), changes))
            check_answer(name, path)

    check()


ANYTHING = st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
ANYTHING |= st.lists(PIECES, max_size=12).map(b"".join)


@pytest.mark.parametrize("name", ALL)
def test_a_file_of_anything_is_refused_clearly_or_read_in_full(name: str) -> None:
    files = its_files(name)

    @trials(15 if CONTRACTS[name].slow else 80)
    @given(st.integers(0, 9), ANYTHING)
    def check(which: int, data: bytes) -> None:
        check_with(name, files, which, lambda _: data)

    check()


@pytest.mark.parametrize("name", ALL)
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    corpus = a_corpus(name)
    for at in range(len(data_files(written(corpus, name, str(tmp_path))))):
        path = written(corpus, name, str(tmp_path))
        data_files(path)[at].write_bytes(b"")
        with pytest.raises(DataError):
            read(path, name)


@pytest.mark.parametrize("name", ALL)
def test_what_is_not_there_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere" / "train.txt"):
        with pytest.raises(DataError):
            read(path, name)


@pytest.mark.parametrize("name", [name for name in TEXT if name not in ("csv", "tsv")])  # read in other encodings too
def test_a_byte_that_is_not_utf8_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    path = written(a_corpus(name), name, str(tmp_path))
    for file in data_files(path):
        good = file.read_bytes()
        lines = good.split(b"\n")
        number = max(at for at, line in enumerate(lines) if line.strip()) + 1
        lines[number - 1] += b"\xff"
        file.write_bytes(b"\n".join(lines))
        with pytest.raises(DataError, match="not UTF-8") as caught:
            read(path, name)
        assert (caught.value.path, caught.value.line) == (str(file), number)
        file.write_bytes(good)


@pytest.mark.parametrize("name", TEXT)
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(name: str, tmp_path: Path) -> None:
    path = written(a_corpus(name), name, str(tmp_path))
    before = read(path, name)
    for file in data_files(path):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert guess_format(path).name == name
    assert not differences(before, read(path, name))


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("npz", "huggingface", "jsonl")])
def test_a_label_that_the_schema_does_not_list_is_refused(name: str, tmp_path: Path) -> None:
    corpus = a_corpus(name)
    path = written(corpus, name, str(tmp_path))
    for task, known in corpus.schema.items():
        if known.labels:
            schema = {task: known.describe() | {"labels": [*known.labels[1:], "another"]}}
            with pytest.raises(DataError, match="unknown label"):
                read(path, name, schema=schema)


@pytest.mark.parametrize("name", ALL)
def test_a_task_that_the_schema_says_is_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    corpus = a_corpus(name)
    path = written(corpus, name, str(tmp_path))
    for task, known in corpus.schema.items():
        kind = "regression" if known.kind != "regression" else "parsing"
        with pytest.raises(BursarError):
            read(path, name, schema={task: {"kind": kind}})


# -- what a format cannot say ---------------------------------------------------------------------------------------
HOLD_EVERYTHING = {"jsonl", "npz", "huggingface", "argilla", "label-studio"}
HOLD_EVERYTHING |= {"csv", "tsv", "json", "json-lines", "parquet", "xlsx"}


@pytest.mark.parametrize("name", [name for name in ALL if name not in HOLD_EVERYTHING])
def test_what_a_format_cannot_say_is_refused_and_named(name: str, tmp_path: Path) -> None:
    corpus = a_corpus(name)
    schema = {task: known.describe() for task, known in corpus.schema.items()}
    builder = CorpusBuilder(schema | {"tone": {"kind": "classification"}})
    builder.add("odd", split="train", text="one\ttwo", pair="three", labels={"tone": "calm"})
    with pytest.raises(DataError):
        write(builder.build(), tmp_path / "out", name)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", [name for name in ALL if name not in KEEPS_IDS])
def test_ids_are_lost_only_when_that_is_wanted(name: str, tmp_path: Path) -> None:
    corpus = a_corpus(name)
    last = corpus.take(np.arange(len(corpus))[::-1] if name == "dygie" else np.arange(1, len(corpus)))
    with pytest.raises(DataError, match=r"lose = (ids|groups)"):
        write(last, tmp_path / "kept", name)
    write(last, tmp_path / "lost", name, lose=("ids", "groups"))
    assert len(read(tmp_path / "lost", name)) == len(last)


@pytest.mark.parametrize("name", ALL)
def test_a_corpus_without_items_is_not_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        write(a_corpus(name).take(np.array([], dtype=np.int64)), tmp_path / "out", name)


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_option_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(BursarError, match="colour"):
        read(tmp_path, name, colour="red")
    with pytest.raises(BursarError, match="colour"):
        write(a_corpus(name), tmp_path, name, colour="red")
