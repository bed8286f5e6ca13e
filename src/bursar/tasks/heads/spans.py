"""Heads for spans: which spans of words are entities, and which pairs of them are related (paper 1, section 6.3).

Every unit chooses none (choice 0) or a label (choice 1 + its code), for the whole batch at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu

from bursar.errors import SchemaError
from bursar.ragged import IntArray, Ragged, flat_positions, offsets_of
from bursar.tasks.heads.head import Encoded, apply
from bursar.tasks.heads.linear import LogitHead, Scores
from bursar.tasks.task import keys_of

if TYPE_CHECKING:
    from bursar.tasks.relations import Relations
    from bursar.tasks.tagging import Tagging

LONGEST = 32  # words; longer gold spans are never found, to limit the number of candidates
NONE_AT_FIRST = 6.0  # before training, none is e⁶ times as likely as a label, about as in real data
GAPS = (0, 1, 2, 3, 4, 6, 9, 13, 19, 28)  # words between two spans, in growing steps; below 0 they overlap


# -- units ---------------------------------------------------------------------------------------------------------
def all_spans(words: IntArray, longest: int) -> Ragged:
    """Every span (start, end) of up to ``longest`` words, for items with these numbers of words.

    >>> all_spans(np.array([2, 1]), longest=5).values.tolist()
    [[0, 1], [0, 2], [1, 2], [0, 1]]
    """
    starts = np.arange(words.sum()) - np.repeat(offsets_of(words)[:-1], words)
    begun = np.minimum(np.repeat(words, words) - starts, longest)  # number of spans that begin at each word
    starts = np.repeat(starts, begun)
    lengths = 1 + np.arange(len(starts)) - np.repeat(offsets_of(begun)[:-1], begun)
    counts = np.bincount(np.repeat(np.arange(len(words)), words), weights=begun, minlength=len(words))
    return Ragged(np.stack([starts, starts + lengths], axis=1).astype(np.int32), offsets_of(counts.astype(np.int64)))


def all_pairs(spans: Ragged) -> Ragged:
    """Every ordered pair of different spans (start, end, ...) of an item, as positions in ``spans.values``.

    >>> all_pairs(Ragged.of([[(0, 1), (0, 2)], [(3, 4)]], 2)).values.tolist()
    [[0, 1], [1, 0]]
    """
    owners = spans.owners
    first = np.repeat(np.arange(len(owners)), spans.lengths[owners])
    second = flat_positions(spans.offsets, owners)
    differ = (spans.values[first, :2] != spans.values[second, :2]).any(axis=1)
    pairs = np.stack([first[differ], second[differ]], axis=1)
    return Ragged(pairs, offsets_of(np.bincount(owners[pairs[:, 0]], minlength=len(spans))))


def spans_to_link(
    entities: Ragged | None, relations: Ragged | None, labels: Sequence[str], entity_types: Sequence[str]
) -> Ragged:
    """The spans (start, end, type) of every item that relations may link, sorted, without duplicates.

    These are its entities (start, end, code in ``labels``) whose label is an entity type, and the spans of its
    relations. If a span is in both, its type is the entity's.
    """
    rows: list[NDArray[Any]] = []
    owners: list[IntArray] = []
    if entities is not None:
        codes = {label: code for code, label in enumerate(entity_types)}
        types = np.array([codes.get(label, -1) for label in labels], dtype=np.int32)[entities.values[:, 2]]
        rows.append(np.column_stack([entities.values[:, :2], types])[types >= 0])
        owners.append(entities.owners[types >= 0])
    if relations is not None:
        rows += [relations.values[:, :3], relations.values[:, 3:6]]
        owners += [relations.owners] * 2
    row, owner = np.concatenate(rows), np.concatenate(owners)
    items = max(len(part) for part in (entities, relations) if part is not None)
    first = np.unique(keys_of([owner, row[:, 0], row[:, 1]]), return_index=True)[1]
    return Ragged(row[first].astype(np.int32), offsets_of(np.bincount(owner[first], minlength=items)))


# -- heads ---------------------------------------------------------------------------------------------------------
class ChoiceHead(LogitHead):
    """Base of both heads: some columns of a gold row are its spans, the last is their label."""

    columns: ClassVar[tuple[int, ...]]

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        return labels

    def choices(self, output: Scores, targets: Ragged) -> IntArray:
        """The gold choice of each unit: the label of the first gold row with its spans, or none."""
        assert output.subjects is not None
        gold, columns = targets.values, list(self.columns)
        owners = np.concatenate([targets.owners, np.repeat(np.arange(len(output.units)), output.units)])
        keys = keys_of([owners, *np.concatenate([gold[:, columns], output.subjects[:, columns]]).T])
        known, rows = np.unique(keys[: len(gold)], return_index=True)
        if not len(known):
            return np.zeros(len(output.subjects), dtype=np.int64)
        asked = keys[len(gold) :]
        place = np.searchsorted(known, asked).clip(max=len(known) - 1)
        return np.where(known[place] == asked, 1 + gold[rows[place], -1].astype(np.int64), 0)

    def loss(self, output: Scores, targets: Ragged, smoothing: float) -> Tensor:
        """Smooth only units with a label: smoothing the many units without one would dominate the loss."""
        wanted = torch.from_numpy(self.choices(output, targets))
        surprise = -torch.log_softmax(output.logits, dim=1)
        share = smoothing * (wanted > 0)
        right = surprise.gather(1, wanted.unsqueeze(1)).squeeze(1)
        return ((1 - share) * right + share * surprise.mean(dim=1)).sum() / max(output.size, 1)


class SpanHead(ChoiceHead):
    """Logits for each span of up to ``longest`` words; spans may nest and overlap.

    The loss is summed over spans and divided by the number of words: nearly all spans are none, so the few others
    would hardly count in a mean over spans.
    """

    columns = (0, 1)
    longest: Tensor  # the longest span of the training labels, kept with the weights

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        if task.every_word:
            message = f"task {task.name!r}: a label for every word leaves no spans to find"
            raise SchemaError(message, fix="use another style of head, such as 'linear'")
        super().__init__(task, dropout)
        self.register_buffer("longest", torch.tensor(1))
        self.words = nn.Linear(width, 3 * width)  # a word as the first, the last and any word of a span
        self.lengths = _embedding(LONGEST, width)
        self.output = nn.Linear(width, 1 + len(task.labels))
        with torch.no_grad():
            self.output.bias[0] += NONE_AT_FIRST

    def prepare(self, labels: Ragged, words: IntArray) -> None:
        lengths = labels.values[:, 1] - labels.values[:, 0]
        self.longest.fill_(min(int(lengths.max(initial=1)), LONGEST))

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Scores:
        found = all_spans(encoded.counts, int(self.longest))
        start, end = _in_batch(found, encoded.counts)
        first, last, inside = apply(self.words, encoded.words).chunk(3, dim=1)
        hidden = first.index_select(0, start) + last.index_select(0, end - 1) + max_over_spans(inside, start, end)
        hidden = gelu(hidden + self.lengths(end - 1 - start))
        return Scores(apply(self.output, self.dropout(hidden)), found.lengths, found.values, len(encoded.words))


class PairHead(ChoiceHead):
    """Logits for each ordered pair of an item's spans: gold spans in training, predicted spans otherwise.

    Only these pairs are units, so confidence in relations is averaged over them (errata 3).
    """

    columns = (0, 1, 3, 4)

    def __init__(self, task: Relations, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.width = width
        self.words = nn.Linear(width, 5 * width)  # a word as first or last of the one or the other, or between
        self.types = _embedding(len(task.entity_types), 2 * width)
        self.gaps = _embedding(2 * (len(GAPS) + 1), width)
        self.output = nn.Linear(width, 1 + len(task.labels))

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Scores:
        if spans is None:
            raise ValueError("relations need spans, and none are given")
        pairs = all_pairs(spans)
        one, other = torch.from_numpy(pairs.values).unbind(dim=1)
        start, end = _in_batch(spans, encoded.counts)
        first, last, between = apply(self.words, encoded.words).tensor_split((2 * self.width, 4 * self.width), dim=1)
        types = self.types(torch.from_numpy(spans.values[:, 2].astype(np.int64)))
        source, target = (first.index_select(0, start) + last.index_select(0, end - 1) + types).chunk(2, dim=1)
        low, high = torch.minimum(end[one], end[other]), torch.maximum(start[one], start[other])
        forward = start[one] < start[other]
        gap = torch.bucketize(high - low, torch.tensor(GAPS), right=True) + forward * (len(GAPS) + 1)
        hidden = source.index_select(0, one) + target.index_select(0, other) + max_over_spans(between, low, high)
        hidden = gelu(hidden + self.gaps(gap))
        subjects = spans.values[pairs.values].reshape(-1, 6).astype(np.int32)
        return Scores(apply(self.output, self.dropout(hidden)), pairs.lengths, subjects, len(subjects))


def max_over_spans(words: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """The maximum of each feature over the words from ``starts`` to ``ends``; 0 if there are no words.

    A sparse table: any range is the union of two overlapping ranges whose length is a power of two.
    """
    lengths = (ends - starts).clamp(min=1)
    levels = lengths.double().log2().long()
    table = [words]
    for level in range(int(levels.max()) if len(levels) else 0):
        table.append(torch.maximum(table[-1], table[-1].roll(-(1 << level), dims=0)))
    places = levels * len(words) + starts.clamp(max=len(words) - 1)
    flat = torch.cat(table)
    others = places + lengths - torch.bitwise_left_shift(1, levels)
    found = torch.maximum(flat.index_select(0, places), flat.index_select(0, others))
    return found * (starts < ends).unsqueeze(1)


def _in_batch(spans: Ragged, words: IntArray) -> tuple[Tensor, Tensor]:
    """The starts and ends of spans as positions among the words of the whole batch."""
    bounds = spans.values[:, :2].astype(np.int64) + offsets_of(words)[spans.owners, None]
    return torch.from_numpy(bounds[:, 0]), torch.from_numpy(bounds[:, 1])


def _embedding(rows: int, width: int) -> nn.Embedding:
    """An embedding with small initial values, so that the words dominate at first."""
    embedding = nn.Embedding(rows, width)
    nn.init.normal_(embedding.weight, std=0.02)
    return embedding
