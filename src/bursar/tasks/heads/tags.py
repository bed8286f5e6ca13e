"""Heads for tags of words that depend on each other: a linear-chain conditional random field, and an LSTM.

In the field, the weight of a tag sequence is exp(start score of its first tag + score of every tag at its word + score
of every transition + end score of its last tag); its probability is its share of the weight of all sequences. The LSTM
reads its own previous tag: paper 4's decoder (errata 26).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bursar.ragged import IntArray, Ragged, offsets_of
from bursar.tasks.beliefs import Beliefs
from bursar.tasks.heads.head import Dropout, Encoded, Head, apply

if TYPE_CHECKING:
    from bursar.tasks.tagging import Tagging

IMPOSSIBLE = -1e6  # score of what IOB2 forbids: its weight is 0 at any temperature in use
FAINT = 1e-280  # relative to the largest weight; smaller sums may have lost terms to underflow
SIZE = 50  # of the LSTM cell's state and of the embedding of a tag


class Steps(NamedTuple):
    """The words of a batch in the order of a recursion: every item's first word, every item's second, and so on.

    Longer items come first at each step, so that finished items are always the last ones.

    >>> steps = Steps.of(np.array([1, 3]))  # one word, then three
    >>> steps.places.tolist(), steps.items
    ([1, 0, 2, 3], [2, 1, 1])
    """

    places: Tensor  # (words,): position of each in item order
    items: list[int]  # number of items with a word at each step

    @classmethod
    def of(cls, counts: IntArray) -> Steps:
        position = np.arange(counts.sum()) - np.repeat(offsets_of(counts)[:-1], counts)
        rank = np.argsort(np.argsort(-counts, kind="stable"))
        places = np.lexsort((np.repeat(rank, counts), position))
        return cls(torch.from_numpy(places), np.bincount(position).tolist())

    def split(self, words: Tensor) -> tuple[Tensor, ...]:
        """Split rows of words in item order into one tensor per step."""
        return torch.split(words.index_select(0, self.places), self.items)

    def join(self, steps: Sequence[Tensor]) -> Tensor:
        """Join one tensor per step into rows of words in item order."""
        return torch.cat(list(steps)).index_select(0, self.places.argsort())


class Chain(NamedTuple):
    """The scores of a batch, in double precision: the weights of a long item exceed the range of floats."""

    words: Tensor  # (words of all items, tags)
    start: Tensor  # (tags,)
    end: Tensor  # (tags,)
    transitions: Tensor  # (tags, tags): from, to
    counts: IntArray  # (items,)

    @property
    def first(self) -> Tensor:
        """The first word of every item that has words."""
        return torch.from_numpy(offsets_of(self.counts)[:-1][self.counts > 0])

    @property
    def last(self) -> Tensor:
        """The last word of every item that has words."""
        return torch.from_numpy(offsets_of(self.counts)[1:][self.counts > 0] - 1)

    def backwards(self) -> Chain:
        """The same chain with the words of every item reversed."""
        return Chain(_reverse_items(self.words, self.counts), self.end, self.start, self.transitions.T, self.counts)

    def prefixes(self) -> Tensor:
        """The forward recursion: log-weight of all tag sequences up to a word that end in a tag: (words, tags)."""
        if not len(self.words):
            return self.words
        steps, found = Steps.of(self.counts), list[Tensor]()
        # Summing over the previous tag is a matrix product of weights scaled to a maximum of 1; the few sums that
        # underflow are computed with logsumexp.
        most = self.transitions.detach().max()
        moves = (self.transitions - most).exp()
        for scores in steps.split(self.words):
            if not found:
                found.append(self.start + scores)
                continue
            before = found[-1][: len(scores)]
            top = before.detach().amax(dim=1, keepdim=True)
            weights = (before - top).exp() @ moves
            reached = weights.clamp(min=FAINT).log() + top + most
            item, tag = (weights <= FAINT).nonzero(as_tuple=True)
            if len(item):
                reached = reached.index_put((item, tag), (before[item] + self.transitions.T[tag]).logsumexp(dim=1))
            found.append(reached + scores)
        return steps.join(found)

    def log_weight(self, tags: Tensor) -> Tensor:
        """The sum over items of the log-weight of one tag sequence each."""
        inner = torch.ones(len(tags), dtype=torch.bool)
        inner[self.first] = False
        here = inner.nonzero().squeeze(1)
        return (
            self.words.gather(1, tags.unsqueeze(1)).sum()
            + self.start[tags[self.first]].sum()
            + self.transitions[tags[here - 1], tags[here]].sum()
            + self.end[tags[self.last]].sum()
        )

    def log_weight_of_all(self, prefixes: Tensor) -> Tensor:
        """The log-partition of each item that has words: (items with words,)."""
        return (prefixes.index_select(0, self.last) + self.end).logsumexp(dim=1)

    def log_marginals(self, prefixes: Tensor) -> Tensor:
        """The marginal log-probability of each tag of each word: (words, tags)."""
        suffixes = _reverse_items(self.backwards().prefixes(), self.counts)
        return torch.log_softmax(prefixes + suffixes - self.words, dim=1)


class CrfHead(Head):
    """Scores for each word's tags and for transitions; sequences that IOB2 forbids have probability 0.

    Predictions are exact marginals of each word. So a guess is the best tag of each word (the least expected number of
    wrong tags), not Viterbi's best sequence. Where the two differ, tags may not fit together; they are read as spans by
    conlleval's rule.
    """

    tags_words = True
    impossible_start: Tensor  # (tags,)
    impossible_transitions: Tensor  # (tags, tags)

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.output = nn.Linear(width, task.classes)
        self.start, self.end = (nn.Parameter(torch.zeros(task.classes)) for _ in range(2))
        self.transitions = nn.Parameter(torch.zeros(task.classes, task.classes))
        codes = torch.arange(task.classes)
        inside = (codes > 0) & (codes % 2 == 0) & (not task.every_word)
        label = (codes + 1) // 2  # the same for B and I; 0 for O
        self.register_buffer("impossible_start", inside, persistent=False)
        self.register_buffer("impossible_transitions", inside & (label[:, None] != label), persistent=False)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Chain:
        words: Tensor = apply(self.output, self.dropout(encoded.words))
        return Chain(
            words.double(),
            self.start.double().masked_fill(self.impossible_start, IMPOSSIBLE),
            self.end.double(),
            self.transitions.double().masked_fill(self.impossible_transitions, IMPOSSIBLE),
            encoded.counts,
        )

    def loss(self, output: Chain, targets: Ragged, smoothing: float) -> Tensor:
        """The negative log-likelihood of the tags per word, with label smoothing."""
        gold = torch.from_numpy(targets.values)
        prefixes = output.prefixes()
        missed = output.log_weight_of_all(prefixes).sum() - output.log_weight(gold)
        if smoothing:
            missed = (1 - smoothing) * missed + smoothing * self._spread(output, output.log_marginals(prefixes))
        return (missed / max(len(gold), 1)).float()

    def _spread(self, output: Chain, log_marginals: Tensor) -> Tensor:
        """The summed cross-entropy of the words' marginals with the uniform distribution over possible tags."""
        possible = torch.ones_like(output.words)
        possible[output.first] = (~self.impossible_start).double()
        return -(log_marginals * possible / possible.sum(dim=1, keepdim=True)).sum()

    def with_temperature(self, output: Chain, temperature: float) -> Chain:
        words, start, end, transitions = (scores / temperature for scores in output[:4])
        return Chain(words, start, end, transitions, output.counts)

    def predict_proba(self, outputs: Sequence[Chain]) -> Beliefs:
        probabilities = torch.stack([output.log_marginals(output.prefixes()).exp() for output in outputs])
        return Beliefs.of(probabilities.numpy(), outputs[0].counts)


def _reverse_items(words: Tensor, counts: IntArray) -> Tensor:
    bounds = offsets_of(counts)
    places = np.repeat(bounds[:-1] + bounds[1:] - 1, counts) - np.arange(len(words))
    return words.index_select(0, torch.from_numpy(places))


# -- the LSTM ----------------------------------------------------------------------------------------------------------
class Reading(NamedTuple):
    """The words to read, and the logits if the model is not in training."""

    words: Tensor  # (words of all items, width)
    counts: IntArray  # (items,)
    logits: Tensor | None  # (words of all items, tags)
    temperature: float = 1.0


class FeedbackHead(Head):
    """An LSTM cell that reads a word and the previous tag: the gold one in training, else its own best one."""

    tags_words = True

    def __init__(self, task: Tagging, width: int, dropout: float) -> None:
        super().__init__(task, dropout)
        self.tags = nn.Embedding(task.classes + 1, SIZE)  # the last one is the start symbol
        self.cell = nn.LSTMCell(width + SIZE, SIZE)
        self.within = Dropout(dropout)  # errata 27
        self.output = nn.Linear(SIZE, task.classes)

    def forward(self, encoded: Encoded, spans: Ragged | None = None) -> Reading:
        """In training, only ``teacher_forced`` knows the previous tags, and computes the logits."""
        words = self.dropout(encoded.words)
        logits = None if self.training else self.read(words, encoded.counts)
        return Reading(words, encoded.counts, logits)

    def read(self, words: Tensor, counts: IntArray, gold: Tensor | None = None) -> Tensor:
        """Logits for each word given the previous gold tag, or else the previous best tag: (words, tags)."""
        steps = Steps.of(counts)
        forced = None if gold is None else steps.split(gold)
        hidden = cell = words.new_zeros(len(counts), SIZE)
        before = torch.full((len(counts),), self.task.classes)
        found: list[Tensor] = [self.output(hidden[:0])]  # for batches without words
        for step, inputs in enumerate(steps.split(words)):
            n = len(inputs)
            inputs = torch.cat([inputs, self.tags(before[:n])], dim=1)
            hidden, cell = self.cell(inputs, (hidden[:n], cell[:n]))
            logits = self.output(self.within(hidden))
            before = logits.argmax(dim=1) if forced is None else forced[step]
            found.append(logits)
        return steps.join(found)

    def teacher_forced(self, output: Reading, targets: Ragged) -> Reading:
        """Read with the gold tags, in training: once, because every reading draws new dropout."""
        if output.logits is not None:
            return output
        return output._replace(logits=self.read(output.words, output.counts, torch.from_numpy(targets.values)))

    def loss(self, output: Reading, targets: Ragged, smoothing: float) -> Tensor:
        """Outside training, the loss of the head's own predictions, so that temperatures are fitted to those."""
        gold = torch.from_numpy(targets.values)
        logits = self.teacher_forced(output, targets).logits
        assert logits is not None
        if not len(gold):  # the mean of nothing would be NaN
            return logits.sum()
        return cross_entropy(logits / output.temperature, gold, label_smoothing=smoothing)

    def with_temperature(self, output: Reading, temperature: float) -> Reading:
        """The best tags are the same at every temperature, so the logits need no new reading."""
        return output._replace(temperature=output.temperature * temperature)

    def predict_proba(self, outputs: Sequence[Reading]) -> Beliefs:
        passes = [output.logits / output.temperature for output in outputs if output.logits is not None]
        if len(passes) < len(outputs):
            raise ValueError("this head predicts only outside training: call eval() on the model first")
        return Beliefs.of(torch.softmax(torch.stack(passes), dim=-1).numpy(), outputs[0].counts)
