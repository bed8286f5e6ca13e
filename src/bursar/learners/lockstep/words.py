"""Initial word vectors of small networks, from the bundled encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.corpus import CorpusBuilder
from bursar.learners.features import Components
from bursar.learners.frozen import FrozenEncoder
from bursar.ragged import FloatArray


def word_vectors(words: Sequence[str], size: int) -> FloatArray:
    """Principal components of the bundled encoder's input vectors of words: (words + 1, size).

    They replace the GloVe vectors of paper 4 and the fastText vectors of paper 2 (errata 20). The first row is padding;
    the mean square is 1.
    """
    builder = CorpusBuilder({})
    for number, word in enumerate(words):
        builder.add(str(number), text=word)
    raw = FrozenEncoder(layers=0, cache_bytes=0).item_vectors(builder.build())
    found = Components.of(raw, size).project(raw).astype(np.float64)
    found = np.pad(found, ((1, 0), (0, size - found.shape[1])))
    return found / (np.sqrt(np.square(found[1:]).mean()) or 1.0)
