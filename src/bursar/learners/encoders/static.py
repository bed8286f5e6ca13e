"""Small networks over static word vectors: a BiLSTM, a CNN and a mean (paper 4, section 5.2; errata 20 and 26).

A word's vector is its static vector plus, if the word occurs in the training items, a trained offset. Static vectors
are made of the bundled encoder's word-pieces, or read from a file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, relu
from torch.nn.utils.rnn import PackedSequence

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import Encoder, text_keys
from bursar.learners.encoders.word_vectors import Lexicon
from bursar.ragged import IntArray, offsets_of
from bursar.tasks.heads import Encoded
from bursar.tasks.heads.tags import Steps

CHANNELS = 50  # of the CNN
AOE_WIDTH = 100


class Words(NamedTuple):
    """One item as these encoders read it: the numbers of its words, then those of its pair's."""

    numbers: IntArray
    own: int  # number of words without the pair's

    @property
    def size(self) -> int:
        return len(self.numbers)


class WordBatch(NamedTuple):
    """Items laid end to end."""

    numbers: IntArray  # (words,)
    lengths: IntArray  # (items,), number of words including the pair's
    counts: IntArray  # (items,), number of words without the pair's

    @property
    def owners(self) -> Tensor:
        return torch.from_numpy(np.repeat(np.arange(len(self.lengths)), self.lengths))

    @property
    def own(self) -> Tensor:
        """The positions of the words that are not a pair's."""
        places = np.arange(len(self.numbers)) - np.repeat(offsets_of(self.lengths)[:-1], self.lengths)
        return torch.from_numpy(np.flatnonzero(places < np.repeat(self.counts, self.lengths)))


class StaticEncoder(Encoder):
    """Static vectors with trained offsets, and a network on top, which subclasses define; ``settle`` creates both."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self.lexicon = lexicon
        self._learned: list[str] = []  # names of the words with an offset
        self.rows: IntArray = np.zeros(0, dtype=np.int64)  # word number to row of offsets; 0 for other words

    @abstractmethod
    def make_network(self) -> None:
        """Create the layers."""

    @abstractmethod
    def word_states(self, vectors: Tensor, batch: WordBatch) -> Tensor:
        """The network's states of all words from their vectors. Items must not affect each other."""

    def of_items(self, means: Tensor) -> Tensor:
        return means

    def of_words(self, states: Tensor) -> Tensor:
        return states

    # -- the steps of an encoder ---------------------------------------------------------------------------------------
    def keys(self, items: Corpus) -> list[Hashable]:
        return text_keys(items)

    def read(self, items: Corpus) -> list[Words]:
        assert items.texts is not None  # checked by ``keys``
        texts = items.texts.all_words()
        pairs = items.pairs.all_words() if items.pairs is not None else [[]] * len(items)
        self.lexicon.add(word for words in (*texts, *pairs) for word in words)
        return [Words(self.lexicon.numbers([*text, *pair]), len(text)) for text, pair in zip(texts, pairs, strict=True)]

    def batch(self, readings: Sequence[Words]) -> WordBatch:
        return WordBatch(
            np.concatenate([reading.numbers for reading in readings]),
            np.array([len(reading.numbers) for reading in readings], dtype=np.int64),
            np.array([reading.own for reading in readings], dtype=np.int64),
        )

    def embed(self, batch: WordBatch) -> Tensor:
        """The network's states of all words; it has no layers that can be frozen."""
        if (new := len(self.lexicon) - len(self.rows)) > 0:
            self.rows = np.pad(self.rows, (0, new))
        rows = torch.from_numpy(self.rows[batch.numbers])
        trained = embedding(rows, self.offsets, padding_idx=0)
        return self.word_states(self.lexicon.static(batch.numbers) + trained, batch)

    def pool(self, hidden: Tensor, batch: WordBatch) -> Encoded:
        """Means of words per item, 0 for an item without words; and the states of words."""
        sums = hidden.new_zeros(len(batch.lengths), hidden.shape[1]).index_add(0, batch.owners, hidden)
        means = sums / torch.from_numpy(np.maximum(batch.lengths, 1)).unsqueeze(1)
        return Encoded(self.of_items(means), self.of_words(hidden.index_select(0, batch.own)), batch.counts)

    def trainable(self, frozen: int) -> list[nn.Parameter]:
        return list(self.parameters())

    # -- settling on training items ------------------------------------------------------------------------------------
    def settle(self, readings: Sequence[Words]) -> None:
        """Create the network, and an offset of 0 for every word of these items."""
        numbers = np.unique(np.concatenate([reading.numbers for reading in readings]))
        self._make(sorted(self.lexicon.names[number] for number in numbers))

    def settled(self) -> dict[str, Any]:
        return {"vectors": self.lexicon.vectors.fingerprint, "words": self._learned}

    def resettle(self, found: dict[str, Any]) -> None:
        if found["vectors"] != self.lexicon.vectors.fingerprint:
            raise LearnerError("it was trained with other word vectors")
        self._make(found["words"])

    def _make(self, names: list[str]) -> None:
        """Create offsets in the order of names: word numbers depend on what was read before, which must not matter."""
        self._learned = names
        self.lexicon.add(names)
        self.rows = np.zeros(len(self.lexicon), dtype=np.int64)
        self.rows[self.lexicon.numbers(names)] = np.arange(1, len(names) + 1)
        self.offsets = nn.Parameter(torch.zeros(len(names) + 1, self.lexicon.vectors.width))
        self.make_network()


class BiLstm(StaticEncoder):
    """One LSTM layer in each direction, as wide as the word vectors; an item is the mean of its words."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        self.width = 2 * lexicon.vectors.width

    def make_network(self) -> None:
        self.lstm = nn.LSTM(self.width // 2, self.width // 2, bidirectional=True)

    def word_states(self, vectors: Tensor, batch: WordBatch) -> Tensor:
        if not len(vectors):  # torch refuses empty sequences
            return vectors.new_zeros(0, self.width)
        steps = Steps.of(batch.lengths)
        packed = PackedSequence(vectors.index_select(0, steps.places), torch.tensor(steps.items))
        return steps.join([self.lstm(packed)[0].data])


class Cnn(StaticEncoder):
    """Three convolutions over words; an item is a layer on the mean of its words."""

    width = CHANNELS

    def make_network(self) -> None:
        widths = [self.lexicon.vectors.width, CHANNELS, CHANNELS]
        self.convolutions = nn.ModuleList(Convolution(width, CHANNELS) for width in widths)
        self.last = nn.Linear(CHANNELS, CHANNELS)

    def word_states(self, vectors: Tensor, batch: WordBatch) -> Tensor:
        for convolution in self.convolutions:
            vectors = relu(convolution(vectors, batch.owners))
        return vectors

    def of_items(self, means: Tensor) -> Tensor:
        return relu(self.last(means))


class Convolution(nn.Module):
    """A convolution of width 3 over items laid end to end, each padded with zeros."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.window = nn.Linear(3 * width, channels)  # left neighbour, word, right neighbour

    def forward(self, x: Tensor, owners: Tensor) -> Tensor:
        joined = (owners[1:] == owners[:-1]).unsqueeze(1)  # whether a word and the one before it are in the same item
        edge = x.new_zeros(min(1, len(x)), x.shape[1])
        left, right = torch.cat([edge, x[:-1] * joined]), torch.cat([x[1:] * joined, edge])
        convolved: Tensor = self.window(torch.cat([left, x, right], dim=1))
        return convolved


class AverageOfEmbeddings(StaticEncoder):
    """Two layers on the mean of an item's word vectors; a word is its vector, projected to the same width."""

    width = AOE_WIDTH

    def make_network(self) -> None:
        own = self.lexicon.vectors.width
        self.first, self.second = nn.Linear(own, AOE_WIDTH), nn.Linear(AOE_WIDTH, AOE_WIDTH)
        self.project = nn.Identity() if own == AOE_WIDTH else nn.Linear(own, AOE_WIDTH)

    def word_states(self, vectors: Tensor, batch: WordBatch) -> Tensor:
        return vectors

    def of_items(self, means: Tensor) -> Tensor:
        return relu(self.second(relu(self.first(means))))

    def of_words(self, states: Tensor) -> Tensor:
        projected: Tensor = self.project(states)
        return projected


NETWORKS: dict[str, type[StaticEncoder]] = {"bilstm": BiLstm, "cnn": Cnn, "aoe": AverageOfEmbeddings}
