"""Items, tasks and prices as JSON, for pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from bursar.corpus import Corpus
from bursar.tasks import CostModel, Task


def shown_item(corpus: Corpus, id: str) -> dict[str, Any]:
    """One item; offsets of words count characters, as Python does. Metadata are the other columns of a table.

    >>> from bursar.corpus import CorpusBuilder
    >>> builder = CorpusBuilder()
    >>> builder.add("u1", text="wake me")
    >>> shown_item(builder.build(), "u1")
    {'id': 'u1', 'kind': 'text', 'text': 'wake me', 'words': [[0, 4], [5, 7]], 'group': None}
    """
    at = int(corpus.positions([id])[0])
    item = corpus[at]
    beside = [] if corpus.metadata is None else corpus.metadata.shown(at)
    more: dict[str, Any] = {"group": item.group} | ({"metadata": beside} if beside else {})
    if item.image is not None:
        height, width = item.image.shape[:2]
        image = f"/api/items/{quote(id, safe='')}/image"
        return {"id": id, "kind": "image", "image": image, "width": width, "height": height} | more
    words = corpus.texts.spans[at].tolist() if corpus.texts is not None else []
    found = {"id": id, "kind": "text", "text": item.text, "words": words} | more
    if item.pair is not None and corpus.pairs is not None:
        found |= {"kind": "pair", "second": {"text": item.pair, "words": corpus.pairs.spans[at].tolist()}}
    return found


def shown_tasks(tasks: Mapping[str, Task], may_nest: Collection[str]) -> list[dict[str, Any]]:
    """The tasks of a schema, and for tagging whether spans may overlap."""
    return [
        {"name": name, "form": task.form}
        | task.describe()
        | ({"nested": name in may_nest} if task.kind == "tagging" else {})
        for name, task in tasks.items()
    ]


def shown_prices(costs: CostModel) -> dict[str, dict[str, float]]:
    """The prices of reading and of each task, in money."""
    table = {"reading": costs.reading} | dict(costs.own)
    return {what: {key: float(costs.money(units)) for key, units in own.items()} for what, own in table.items()}
