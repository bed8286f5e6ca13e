from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import read
from bursar.errors import DataError


def put(folder: Path, words: str, tags: str, labels: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("seq.in", words), ("seq.out", tags), ("label", labels)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_three_files_side_by_side_are_a_corpus(tmp_path: Path) -> None:
    corpus = read(put(tmp_path / "dev", "wake me at seven\n", "O O O B-time \n", "alarm\n"))
    item = corpus[0]
    assert (item.id, item.split, item.text) == ("dev-000001", "dev", "wake me at seven")
    assert item.labels == {"intent": "alarm", "slots": [[3, 4, "time"]]}


def test_a_folder_a_split_is_a_corpus(tmp_path: Path) -> None:
    for split in ("test", "train", "valid"):
        put(tmp_path / split, "go\n", "O\n", "x\n")
    assert read(tmp_path).split_counts() == {"train": 1, "dev": 1, "test": 1}


@pytest.mark.parametrize(
    ("words", "tags", "labels", "file", "line"),
    [
        ("a\nb\n", "O\n", "x\ny\n", "seq.out", 2),
        ("a\n", "O\nO\n", "x\ny\n", "seq.in", 2),
        ("a b\n", "O\n", "x\n", "seq.out", 1),
        ("a\n\nb\n", "O\n\nO\n", "x\ny\nz\n", "seq.out", 2),
        ("a\n", "B\n", "x\n", "seq.out", 1),
        ("a\nb\n", "O\nO\n", "x\n\n", "label", 2),
        ("a\nb\nc\n", "O\nO\nO\n", "x\n\nz\n", "label", 2),
        ("", "", "", "seq.in", 1),
    ],
)
def test_files_that_do_not_agree_are_refused_with_file_and_line(
    words: str, tags: str, labels: str, file: str, line: int, tmp_path: Path
) -> None:
    folder = put(tmp_path / "train", words, tags, labels)
    with pytest.raises(DataError) as caught:
        read(folder)
    assert (Path(str(caught.value.path)).name, caught.value.line) == (file, line)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "train", "a\n", "O\n", "x\n")
    (folder / "label").unlink()
    with pytest.raises(DataError, match="label"):
        read(folder)
