"""Small labelling problems whose judges need no encoder."""

from __future__ import annotations

import zlib
from functools import cache
from itertools import combinations

import numpy as np

from bursar.corpus import CorpusBuilder
from bursar.oracle import LabellingProblem, Order, ProbeJudge
from bursar.oracle.probe import RidgeTask, Rows
from bursar.ragged import offsets_of
from bursar.simulation import assistant_corpus
from bursar.tasks import Tagging

WIDTH = 12
SIZES = {"pool": 60, "warm": 12, "aside": 20, "validation": 60, "test": 60}


def texts(tasks=("intent",), batches=3, size=5, seed=0):
    """Requests to an assistant; their schema says what there is to label."""
    corpus = assistant_corpus(400).with_tasks(list(tasks))
    return LabellingProblem.draw(corpus, SIZES, shape=(batches, size), metric="accuracy", seed=seed)


def images(batches=3, size=5, seed=0):
    """Three kinds of small pictures, with noise."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 200, size=(3, 5, 5))
    builder = CorpusBuilder({"kind": {"kind": "classification", "labels": ["a", "b", "c"]}})
    for number in range(sum(SIZES.values())):
        kind = int(rng.integers(3))
        picture = np.clip(kinds[kind] + rng.integers(0, 56, size=(5, 5)), 0, 255).astype(np.uint8)
        builder.add(f"i{number:03d}", image=picture, labels={"kind": "abc"[kind]})
    return LabellingProblem.draw(builder.build(), SIZES, shape=(batches, size), metric="accuracy", seed=seed)


def every_order(pool, batches, size):
    """All orders of a pool so small that they can be counted."""

    def rest(free, left):
        if not left:
            return [[]]
        return [
            [batch, *after] for batch in combinations(sorted(free), size) for after in rest(free - set(batch), left - 1)
        ]

    return [Order.of(np.array(found)) for found in rest(frozenset(range(pool)), batches)]


@cache
def place(word):
    """Every word has a place that its letters decide."""
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=WIDTH)


def vectors(problem, by_word=False):
    """The places of words; a text lies where its words are on average."""
    found = {}
    for part, items in problem.parts.items():
        rows = [[place(word) for word in items[i].words] for i in range(len(items))]
        found[part] = np.array([word for row in rows for word in row] if by_word else [np.mean(row, 0) for row in rows])
    return found


def probe(problem, shift=0.0):
    """Ridge regression on those places; ``shift`` makes another judge of it."""
    tasks = {}
    for name, task in problem.corpus.schema.items():
        by_word = isinstance(task, Tagging)
        places, rows = vectors(problem, by_word), {}
        for part, items in problem.parts.items():
            codes = task.targets(items.labels[name].rows, items.words)
            rows[part] = Rows(np.tanh(places[part] + shift), codes, offsets_of(task.units(items.words)))
        labels = task.classes
        tasks[name] = RidgeTask(rows, labels, metric="accuracy", penalty=1.0)
    return ProbeJudge(tasks)
