from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import CorpusBuilder, read, write
from bursar.errors import BursarError, ConfigError, DataError
from tests.same import differences

FOUR = """-DOCSTART- -X- -X- O

Ada NNP B-NP B-PER
sings VBZ B-VP O

Rome NNP I-NP I-LOC

-DOCSTART- -X- -X- O

Bo NNP S-NP S-PER
"""


def put(folder: Path, text: str, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_four_columns_are_those_of_conll_2003(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, FOUR))
    assert [corpus[at].group for at in range(3)] == ["train-doc-000001", "train-doc-000001", "train-doc-000002"]
    assert corpus[0].labels == {
        "pos": ["NNP", "VBZ"],
        "chunk": [[0, 1, "NP"], [1, 2, "VP"]],
        "entities": [[0, 1, "PER"]],
    }
    assert corpus[0].words == ["Ada", "sings"]


def test_document_lines_are_not_items(tmp_path: Path) -> None:
    assert len(read(put(tmp_path, FOUR))) == 3


def test_two_columns_are_a_word_and_its_entity_tag(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "Ada\tB-PER\nsings\tO\n"))
    assert corpus[0].labels == {"entities": [[0, 1, "PER"]]}
    assert corpus[0].group is None


def test_columns_name_tasks_and_leave_some_out(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, FOUR), columns=("word", "_", "_", "names"))
    assert list(corpus.schema) == ["names"]
    assert list(read(tmp_path / "train.txt", columns="word, _, _, names").schema) == ["names"]


def test_a_schema_makes_a_column_a_label_a_word(tmp_path: Path) -> None:
    schema = {"tone": {"kind": "tagging", "every_word": True}}
    corpus = read(put(tmp_path, "Ada loud\nsings soft\n"), "conll", columns=("word", "tone"), schema=schema)
    assert corpus[0].labels == {"tone": ["loud", "soft"]}


def test_a_no_break_space_belongs_to_its_word(tmp_path: Path) -> None:
    assert read(put(tmp_path, "10\xa0000 O\n"))[0].words == ["10\xa0000"]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IO", "I-A I-A O I-B"),
        ("IOB1", "I-A I-A O I-B"),
        ("IOB2", "B-A I-A O B-B"),
        ("BIOES", "B-A E-A O S-B"),
    ],
)
def test_a_file_is_converted_by_reading_it_and_writing_another_scheme(scheme: str, tags: str, tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a B-A\nb I-A\nc O\nd B-B\n"))
    out = tmp_path / "out" / "train.conll"
    write(corpus, out, "conll", scheme=scheme)
    assert [line.split()[1] for line in out.read_text().splitlines() if line] == tags.split()
    assert not differences(corpus, read(out))


def test_io_refuses_neighbours_that_it_cannot_tell_apart(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a B-A\nb B-A\n"))
    with pytest.raises(DataError, match=r"item 'train-000001'.*separate adjacent spans"):
        write(corpus, tmp_path / "out", "conll", scheme="IO")


def test_a_word_with_a_blank_needs_tabs(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "New York\tB-LOC\n"))
    with pytest.raises(DataError, match="no way to write 'New York'"):
        write(corpus, tmp_path / "out", "conll")
    write(corpus, tmp_path / "tabs", "conll", separator="\t")
    assert not differences(corpus, read(tmp_path / "tabs"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("a O\nb\n", 2), ("a O\n\nb O x\n", 3), ("a\tO\nb\t\n", 2), ("a O\nb B-\n", 2), ("a\n", 1), ("a O\nb B\n", 2)],
)
def test_a_line_that_does_not_fit_is_refused_with_its_number(text: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path, text), "conll")
    assert caught.value.line == line


def test_an_item_without_a_label_is_refused_by_name(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}})
    builder.add("train-000001", text="a b")
    with pytest.raises(DataError, match=r"item 'train-000001'.*unlabelled"):
        write(builder.build(), tmp_path / "out", "conll")


@pytest.mark.parametrize("columns", [("pos", "entities"), ("word", "x", "x"), "pos,entities"])
def test_columns_without_a_word_or_with_a_task_twice_are_refused(
    columns: str | tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError):
        read(put(tmp_path, "a O\n"), columns=columns)


def test_nested_spans_are_refused_by_name(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}})
    builder.add("train-000001", text="a b", labels={"entities": [[0, 2, "X"], [0, 1, "Y"]]})
    with pytest.raises(DataError, match="spans overlap"):
        write(builder.build(), tmp_path / "out", "conll")


def test_another_spacing_is_lost_only_when_that_is_wanted(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": {"kind": "tagging"}})
    builder.add("train-000001", text="go!", labels={"entities": []})
    with pytest.raises(DataError, match="lose = spacing"):
        write(builder.build(), tmp_path / "out", "conll")
    write(builder.build(), tmp_path / "out", "conll", lose="spacing")
    assert read(tmp_path / "out")[0].text == "go !"


def test_an_unknown_loss_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BursarError, match="no loss 'face'"):
        write(read(put(tmp_path, "a O\n")), tmp_path / "out", "conll", lose=["face"])


def test_a_file_of_another_corpus_in_the_folder_is_not_mixed_in(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "a O\n"))
    put(tmp_path, "b O\n", "test.conll")
    with pytest.raises(DataError, match="another corpus"):
        write(corpus, tmp_path, "conll")


def test_one_file_takes_one_split(tmp_path: Path) -> None:
    put(tmp_path, "a O\n")
    put(tmp_path, "b O\n", "test.txt")
    corpus = read(tmp_path)
    with pytest.raises(DataError, match="write to a folder"):
        write(corpus, tmp_path / "all.conll", "conll")
    write(corpus.split("test"), tmp_path / "only-test.conll", "conll")
    assert read(tmp_path / "only-test.conll")[0].id == "test-000001"


def test_a_compressed_file_is_read_and_written(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, FOUR))
    write(corpus, tmp_path / "train.txt.gz", "conll")
    assert (tmp_path / "train.txt.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert not differences(corpus, read(tmp_path / "train.txt.gz"))
