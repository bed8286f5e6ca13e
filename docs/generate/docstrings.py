"""Docstrings as Markdown: examples of the interpreter become code blocks."""

from __future__ import annotations

import doctest
from typing import Any

import griffe


def fenced(text: str) -> str:
    """A docstring with every run of examples in a fence of its own.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all."))
    Adds.
    <BLANKLINE>
    ```python
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    That is all.
    """
    if ">>> " not in text:
        return text
    parts: list[str] = []
    examples: list[str] = []
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            first, *more = part.source.rstrip("\n").split("\n")
            examples += [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
            examples += part.want.rstrip("\n").split("\n") if part.want else []
        elif part.strip():
            parts += [*_fence(examples), part.strip("\n")]
    return "\n\n".join(parts + _fence(examples))


def _fence(examples: list[str]) -> list[str]:
    """The examples so far as a block, after which there are none."""
    block = ["\n".join(["```python", *examples, "```"])] if examples else []
    examples.clear()
    return block


class Examples(griffe.Extension):
    """Does so for every docstring of the package."""

    def on_instance(self, *, obj: griffe.Object, **options: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
