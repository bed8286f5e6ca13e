"""The layers that turn an encoder's vectors into logits. The only file of this room that imports torch."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn


class Encoded(NamedTuple):
    """A batch as an encoder leaves it: one vector an item, and one for each word of each item, item after item."""

    items: Tensor  # (items, width)
    words: Tensor  # (words of all items, width)


class ItemHead(nn.Module):
    """Logits for each item."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(width, classes)

    def forward(self, encoded: Encoded) -> Tensor:
        logits: Tensor = self.output(self.dropout(encoded.items))
        return logits


class WordHead(nn.Module):
    """Logits for each word."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(width, classes)

    def forward(self, encoded: Encoded) -> Tensor:
        logits: Tensor = self.output(self.dropout(encoded.words))
        return logits
