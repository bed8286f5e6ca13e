from __future__ import annotations

from pathlib import Path

import pytest

from bursar.corpus import read
from bursar.errors import DataError


def put(folder: Path, text: str) -> Path:
    path = folder / "train"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_tag_stands_after_the_last_colon(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "wake:O at:O 4:30:B-time :::O\n"))
    assert corpus[0].words == ["wake", "at", "4:30", "::"]
    assert corpus[0].labels == {"entities": [[2, 3, "time"]]}


def test_the_label_at_the_end_is_the_intent(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, "go:O <=> a;b\nstay:O <=> <NULL>\n"))
    assert corpus[0].labels == {"entities": [], "intent": "a;b"}
    assert corpus[1].labels == {"entities": []}


def test_without_labels_there_is_no_intent(tmp_path: Path) -> None:
    assert list(read(put(tmp_path, "go:O <=> <NULL>\n")).schema) == ["entities"]


@pytest.mark.parametrize("line", ["go", "go:O on", "4:30", ":O", "go:", " <=> x", "go:O <=> ", "go:B-"])
def test_a_word_without_a_tag_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path, f"fine:O\n\n{line}\n"), "wordtag")
    assert caught.value.line == 3
