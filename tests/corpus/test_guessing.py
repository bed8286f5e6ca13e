from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import guess_format, read
from bursar.corpus.formats.format import split_of
from bursar.errors import BursarError, DataError


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        guess_format(tmp_path / "nothing")


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "train.txt").touch()
    with pytest.raises(DataError, match="empty"):
        read(tmp_path / "train.txt")


def test_a_file_of_prose_with_an_unknown_name_fits_no_format_and_the_error_names_them(tmp_path: Path) -> None:
    (tmp_path / "train.prose").write_text("It was a dark night.\n\nThe wind blew.\n")
    with pytest.raises(DataError, match=r"no known format.*conllu"):
        read(tmp_path / "train.prose")


def test_a_file_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"fine\n\x81\n")
    with pytest.raises(DataError, match="not UTF-8") as caught:
        read(tmp_path / "train.txt")
    assert caught.value.line == 2


def test_an_unknown_format_is_answered_with_the_nearest() -> None:
    with pytest.raises(BursarError, match="did you mean 'conllu'"):
        read("somewhere", "conlu")


@pytest.mark.parametrize(
    ("name", "split"),
    [("alarm_eval.tsv", "dev"), ("eng.testb", "test"), ("t10k-images", "test"), ("trainer.txt", None)],
)
def test_a_split_is_told_by_a_whole_part_of_the_name(name: str, split: str | None) -> None:
    assert split_of(name) == split
