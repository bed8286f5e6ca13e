"""A notebook as a page: its text, its code, and what the code printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def page_of(path: Path) -> str:
    """The Markdown of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return "\n\n".join(block for cell in notebook["cells"] for block in _blocks(cell)) + "\n"


def _blocks(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield from _shown(output)


def _shown(output: Mapping[str, Any]) -> Iterator[str]:
    """An output in the richest form that a page can show."""
    if "text" in output:
        yield _plain(output["text"])
        return
    data = output.get("data", {})
    if "image/png" in data:
        yield f'<img alt="output" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    elif "text/html" in data:
        html = re.sub(
            r'<style.*?</style>| border="1" class="dataframe"', "", "".join(data["text/html"]), flags=re.DOTALL
        )
        yield "\n".join(line for line in html.split("\n") if line.strip())  # a blank line would end the HTML
    elif "text/plain" in data:
        yield _plain(data["text/plain"])


def _plain(text: str | list[str]) -> str:
    return f"```text\n{''.join(text).rstrip()}\n```"
