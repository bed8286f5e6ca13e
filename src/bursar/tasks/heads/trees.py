"""The head for dependency trees: biaffine scores for arcs and their labels (Dozat and Manning, 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from bursar.ragged import IntArray, Ragged, offsets_of
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.head import Dropout, Encoded, Head

if TYPE_CHECKING:
    from bursar.tasks.parsing import Parsing

ARC_WIDTH, LABEL_WIDTH = 256, 64


class TreeScores(NamedTuple):
    """Scores for every arc, and the vectors for the labels of arcs.

    Items are grouped by length, so that nothing is padded. Each word of an item of n words has n candidate heads in
    order: the root and every word but itself.
    """

    arcs: list[Tensor]  # per group: (items of n words, n, n + 1), the arc of a word to itself at −∞
    dependents: list[Tensor]  # per group: (items, n, label width + 1)
    heads: list[Tensor]  # per group: (items, n + 1, label width + 1), the root first
    groups: list[IntArray]  # per group: the items in it
    counts: IntArray  # (items,)
    labels: Tensor  # (labels, label width + 1, label width + 1)
    temperature: float = 1.0


class TreeHead(Head):
    """Scores for the head of each word, and for the label of the arc."""

    def __init__(self, task: Parsing, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.root = nn.Parameter(torch.zeros(width))
        self.dependent, self.head = (nn.Linear(width, ARC_WIDTH + LABEL_WIDTH) for _ in range(2))
        self.within = Dropout(dropout)
        self.arc = nn.Parameter(torch.empty(ARC_WIDTH + 1, ARC_WIDTH))
        self.label = nn.Parameter(torch.empty(len(task.labels), LABEL_WIDTH + 1, LABEL_WIDTH + 1))
        nn.init.normal_(self.arc, std=ARC_WIDTH**-0.5)
        nn.init.normal_(self.label, std=LABEL_WIDTH**-0.5)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> TreeScores:
        words = self.dropout(encoded.words)
        dependents = self.within(gelu(self.dependent(words)))
        # The root is the row after all words; it is the first candidate of every item.
        heads = self.within(gelu(self.head(torch.cat([words, self.root[None]]))))
        counts, starts = encoded.counts, offsets_of(encoded.counts)[:-1]
        arcs, lower, upper, groups = [], [], [], []
        for n in np.unique(counts[counts > 0]):
            items = np.flatnonzero(counts == n)
            rows = starts[items, None] + np.arange(n)
            with_root = np.concatenate([np.full((len(items), 1), len(words)), rows], axis=1)
            dependent, head = _rows(dependents, rows), _rows(heads, with_root)
            projected = with_one(dependent[..., :ARC_WIDTH]) @ self.arc
            scores = projected @ head[..., :ARC_WIDTH].transpose(1, 2) * ARC_WIDTH**-0.5
            itself = torch.eye(int(n), int(n) + 1, dtype=torch.bool).roll(1, dims=1)
            arcs.append(scores.masked_fill(itself, -torch.inf))
            lower.append(with_one(dependent[..., ARC_WIDTH:]))
            upper.append(with_one(head[..., ARC_WIDTH:]))
            groups.append(items)
        return TreeScores(arcs, lower, upper, groups, counts, self.label)

    def targets(self, labels: Ragged, words: IntArray) -> Ragged:
        """Each word's head (0 is the root) and label."""
        return Ragged(labels.values.astype(np.int64), labels.offsets)

    def loss(self, output: TreeScores, targets: Ragged, smoothing: float) -> Tensor:
        words, total = int(output.counts.sum()), self.root.sum() * 0.0
        if not words:
            return total
        for arcs, dependents, heads, items in zip(*output[:4], strict=True):
            n = arcs.shape[1]
            gold = torch.from_numpy(targets.take(items).values.reshape(len(items), n, 2))
            total = total + n * len(items) * _arc_loss(arcs / output.temperature, gold[..., 0], smoothing)
            chosen = heads.gather(1, gold[..., :1].expand(-1, -1, heads.shape[-1]))
            scores = _label_scores(dependents.flatten(0, 1), chosen.flatten(0, 1), output.labels)
            total = total + n * len(items) * cross_entropy(scores, gold[..., 1].flatten(), label_smoothing=smoothing)
        return total / words

    def with_temperature(self, output: TreeScores, temperature: float) -> TreeScores:
        """Scale only the arc scores, since confidence is measured on heads (errata 2)."""
        return output._replace(temperature=output.temperature * temperature)

    def predict_proba(self, outputs: Sequence[TreeScores]) -> Beliefs:
        """Probabilities of heads, and for each candidate head the best label of the arc."""
        first = outputs[0]
        values, labels = [], []
        for at, arcs in enumerate(first.arcs):
            n = arcs.shape[1]
            keep = ~torch.eye(n, n + 1, dtype=torch.bool).roll(1, dims=1)
            passes = torch.stack([torch.softmax(o.arcs[at] / o.temperature, dim=-1)[:, keep] for o in outputs])
            values.append(passes.reshape(len(outputs), -1))
            scores = sum(_all_label_probabilities(o.dependents[at], o.heads[at], o.labels) for o in outputs)
            assert isinstance(scores, Tensor)
            labels.append(scores.argmax(dim=-1)[:, keep].reshape(-1))
        nothing = torch.zeros(len(outputs), 0)
        grouped = np.concatenate([*first.groups, np.flatnonzero(first.counts == 0)]).astype(np.int64)
        counts = first.counts[grouped]
        whole = Beliefs(
            torch.cat([nothing, *values], dim=1).numpy(),
            offsets_of(np.repeat(counts, counts)),
            offsets_of(counts),
            labels=torch.cat([torch.zeros(0, dtype=torch.long), *labels]).numpy().astype(np.int32),
        )
        return whole.take(np.argsort(grouped))


def _rows(x: Tensor, places: IntArray) -> Tensor:
    """Rows of x in the shape of ``places``. The gradient of ``index_select`` is deterministic, that of indexing not."""
    return x.index_select(0, torch.from_numpy(places.ravel())).view(*places.shape, x.shape[1])


def with_one(x: Tensor) -> Tensor:
    """Append a constant feature, for the linear and constant terms of a biaffine form."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)


def _arc_loss(scores: Tensor, gold: Tensor, smoothing: float) -> Tensor:
    """Cross-entropy over the candidates; smoothing excludes the word itself."""
    logs = torch.log_softmax(scores, dim=-1)
    hit = -logs.gather(-1, gold.unsqueeze(-1)).mean()
    if not smoothing:
        return hit
    candidates = scores.shape[-1] - 1
    spread = -logs.masked_fill(scores == -torch.inf, 0.0).sum(dim=-1).mean() / candidates
    return (1 - smoothing) * hit + smoothing * spread


def _label_scores(dependents: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
    """(arcs, labels) for arcs given by the vectors of their two ends."""
    across = dependents @ labels.permute(1, 0, 2).flatten(1)  # (arcs, labels · width)
    scores: Tensor = (across.view(len(dependents), len(labels), -1) * heads.unsqueeze(1)).sum(dim=-1)
    return scores * float(LABEL_WIDTH**-0.5)


def _all_label_probabilities(dependents: Tensor, heads: Tensor, labels: Tensor) -> Tensor:
    """(items, n, n + 1, labels) for every possible arc."""
    across = dependents @ labels.permute(1, 0, 2).flatten(1)
    across = across.view(*dependents.shape[:2], len(labels), -1).flatten(1, 2)  # (items, n · labels, width)
    scores = across @ heads.transpose(1, 2) * LABEL_WIDTH**-0.5  # (items, n · labels, n + 1)
    scores = scores.view(len(heads), dependents.shape[1], len(labels), -1).transpose(2, 3)
    return torch.softmax(scores, dim=-1)
