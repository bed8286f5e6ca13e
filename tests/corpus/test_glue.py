from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import BursarError, DataError
from bursar.tasks import Regression


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_cola_has_no_header_but_in_its_test_file(tmp_path: Path) -> None:
    put(tmp_path / "CoLA", "train.tsv", 'src\t1\t\tAda "sings.\nsrc\t0\t*\tSings Ada "the.\n')
    corpus = read(put(tmp_path / "CoLA", "test.tsv", "index\tsentence\n0\tBo hears.\n"))
    assert [corpus[at].text for at in range(3)] == ['Ada "sings.', 'Sings Ada "the.', "Bo hears."]
    assert [corpus[at].labels for at in range(3)] == [{"CoLA": "1"}, {"CoLA": "0"}, {}]
    assert corpus.ids.tolist() == ["CoLA-train-000001", "CoLA-train-000002", "CoLA-test-000001"]


def test_mrpc_has_a_byte_order_mark_and_names_of_its_own(tmp_path: Path) -> None:
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    corpus = read(put(tmp_path / "MRPC", "train.tsv", header + '1\t7\t8\tone " one\ttwo\n'))
    assert (corpus[0].text, corpus[0].pair, corpus[0].labels) == ('one " one', "two", {"MRPC": "1"})


def test_sts_b_is_a_score_from_0_to_5(tmp_path: Path) -> None:
    corpus = read(put(tmp_path / "STS-B", "dev.tsv", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t2.5\n"))
    assert corpus.schema["STS-B"] == Regression("STS-B", low=0, high=5)
    assert corpus[0].labels == {"STS-B": 2.5}


def test_a_folder_of_tasks_is_one_corpus(tmp_path: Path) -> None:
    put(tmp_path / "RTE", "train.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n")
    put(tmp_path / "SST-2", "train.tsv", "sentence\tlabel\nfine \t1\n")
    put(tmp_path / "SST-2", "test-labeled.tsv", "sentence\tlabel\nnot read\t1\n")
    corpus = read(tmp_path)
    assert [corpus[at].labels for at in range(2)] == [{"RTE": "entailment"}, {"SST-2": "1"}]
    assert [corpus[at].pair for at in range(2)] == ["b", None]
    assert corpus[1].text == "fine "


def test_a_lone_file_is_told_by_its_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "mood", "reviews.tsv", "sentence\tlabel\nfine\t1\n") / "reviews.tsv"
    assert guess_format(path).name == "glue"
    assert read(path)[0].labels == {"mood": "1"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("sentence\tlabel\na\t1\nb\n", 3),
        ("sentence\tlabel\na\t1\tx\n", 2),
        ("sentence\tlabel\na\t\n", 2),
        ("colour\tlabel\na\t1\n", 1),
        ("index\tsentence1\tsentence2\tscore\n0\ta\tb\t5.5\n", 2),
        ("index\tsentence1\tsentence2\tscore\n0\ta\tb\tnan\n", 2),
        ("index\tsentence1\tsentence2\tscore\n0\ta\tb\tmuch\n", 2),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_line(text: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path / "X", "train.tsv", text), "glue")
    assert caught.value.line == line


def test_a_schema_for_a_task_that_has_no_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "SST-2", "train.tsv", "sentence\tlabel\nfine\t1\n")
    with pytest.raises(BursarError, match="'SST'"):
        read(tmp_path, schema={"SST": {"kind": "classification"}})


def test_an_item_with_two_tasks_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"a": {"kind": "classification"}, "b": {"kind": "classification"}})
    builder.add("a-train-000001", text="x", labels={"a": "1", "b": "2"})
    with pytest.raises(DataError, match=r"item 'a-train-000001'.*one task per item"):
        write(builder.build(), tmp_path / "out", "glue")


def test_a_task_that_is_no_folder_name_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"../a": {"kind": "classification"}})
    builder.add("../a-train-000001", text="x", labels={"../a": "1"})
    with pytest.raises(DataError, match="no name for a folder"):
        write(builder.build(), tmp_path / "out", "glue")


def test_a_split_that_is_labelled_in_part_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"a": {"kind": "classification"}})
    builder.add("a-train-000001", text="x", labels={"a": "1"})
    builder.add("a-train-000002", text="y")
    with pytest.raises(DataError, match=r"item 'a-train-000002'.*all or none"):
        write(builder.build(), tmp_path / "out", "glue")


def test_words_of_another_cut_are_lost_only_when_that_is_wanted(tmp_path: Path) -> None:
    builder = CorpusBuilder({"a": {"kind": "classification"}})
    builder.add("a-train-000001", text="don't", words=[(0, 2), (2, 5)], labels={"a": "1"})
    with pytest.raises(DataError, match="lose = words"):
        write(builder.build(), tmp_path / "out", "glue")
    write(builder.build(), tmp_path / "out", "glue", lose=["words"])
    assert read(tmp_path / "out")[0].words == ["don't"]
