"""Links in the documents: files exist, anchors are headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "experiments" / "results" / "README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def prose_of(document: Path) -> str:
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def anchors_of(document: Path) -> set[str]:
    """The anchors that GitHub gives to headings: lower case, spaces to hyphens, other marks dropped."""
    headings = re.findall(r"^#+ +(.+?) *$", prose_of(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> list[str]:
    broken = []
    for link in LINK.findall(CODE.sub("", prose_of(document))):
        if re.match(r"[a-z]+:", link):  # not in the repository
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_relative_links_point_to_files_and_headings_that_exist(document):
    assert broken_links(document) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# What it does, in short\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#what-it-does-in-short) [b](none.md) [c](there.md#none) [d](https://example.org)\n")
    assert broken_links(page) == ["none.md", "there.md#none"]
