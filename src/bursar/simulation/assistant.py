"""The built-in corpus: what people ask a voice assistant, made by a grammar, labelled for five tasks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import exp

import numpy as np

from bursar.corpus import Corpus, CorpusBuilder
from bursar.corpus.corpus import SPLITS
from bursar.errors import ConfigError
from bursar.simulation.domains import INTENTS, Intent, dependency_labels, slot_types
from bursar.simulation.grammar import Dice, Piece, running_shares
from bursar.simulation.noise import Noise, disturb
from bursar.simulation.relations import RELATIONS, relations_of
from bursar.simulation.sentence import make_clause, put
from bursar.simulation.surface import written
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging, Task
from bursar.tasks.task import Row

ORIGIN, MEANING, MANNER = 0, 1, 2  # an item's streams of chance
INTENT_SHARES = running_shares(intent.weight for intent in INTENTS)
URGENCY_NOISE = 0.03  # standard deviation


def assistant_corpus(
    items: int = 20_000,
    seed: int = 0,
    *,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    noise: float = 1.0,
    near_duplicates: float = 0.05,
) -> Corpus:
    """A corpus of requests to a voice assistant with intents, slots, relations, trees and urgency.

    The same arguments give the same corpus to the byte, and fewer ``items`` give the first of it. ``shares`` are those
    of train, dev and test; ``noise`` scales fillers, typos and lost articles; ``near_duplicates`` is the share of items
    that say again, in another manner, what an earlier item said. They stay in the split of that item.

    >>> corpus = assistant_corpus(items=3)
    >>> corpus[1].text, corpus[1].labels["intent"]
    ('the kitchen is boiling set it to eighteen', 'set_temperature')
    >>> corpus[1].labels["slots"], corpus[1].labels["relations"]
    ([[1, 2, 'room'], [7, 8, 'level']], [[[7, 8, 'level'], [1, 2, 'room'], 'setting-of']])
    """
    _check(items, shares, noise, near_duplicates)
    builder = CorpusBuilder(_schema())
    codes = _codes()
    running, strength = running_shares(shares), Noise() * noise
    for number in range(items):
        meaning = Dice(seed, source_of(number, seed, near_duplicates), MEANING)
        manner = Dice(seed, number, MANNER)
        split = meaning.weighted(SPLITS, running)
        intent = meaning.weighted(INTENTS, INTENT_SHARES)
        sentence, asks = put(make_clause(intent, meaning), manner)
        sentence = disturb(sentence, strength, manner)
        text, words = written(sentence, asks, manner)
        rows = _rows(intent, sentence, manner, codes)
        builder.add(f"a-{number + 1:06d}", split=split, text=text, words=words, group=intent.domain, rows=rows)
    return _with_all_splits(builder.build())


def source_of(number: int, seed: int, near_duplicates: float) -> int:
    """The item (both count from 0) whose meaning an item has: itself, or the earlier one that it nearly repeats."""
    while number:
        dice = Dice(seed, number, ORIGIN)
        if not dice.chance(near_duplicates):
            break
        number = dice.below(number)
    return number


def _schema() -> dict[str, Task]:
    slots = slot_types()
    return {
        "intent": Classification("intent", tuple(sorted(intent.name for intent in INTENTS))),
        "slots": Tagging("slots", slots),
        "relations": Relations("relations", RELATIONS, entity_types=slots),
        "dependencies": Parsing("dependencies", dependency_labels()),
        "urgency": Regression("urgency"),
    }


@cache
def _codes() -> dict[str, dict[str, int]]:
    """For each task, the code of every label. The labels are right by construction, so rows are made directly."""
    return {name: {label: code for code, label in enumerate(task.labels)} for name, task in _schema().items()}


def _rows(intent: Intent, sentence: Piece, dice: Dice, codes: dict[str, dict[str, int]]) -> dict[str, list[Row]]:
    slot, relation, label = codes["slots"], codes["relations"], codes["dependencies"]
    sentence.spans.sort(key=lambda span: span.start)
    return {
        "intent": [(codes["intent"][intent.name],)],
        "slots": [(s.start, s.end, slot[s.kind]) for s in sentence.spans],
        "relations": [
            (a.start, a.end, slot[a.kind], b.start, b.end, slot[b.kind], relation[name])
            for a, b, name in relations_of(sentence)
        ],
        "dependencies": [(head + 1, label[name]) for head, name in zip(sentence.heads, sentence.labels, strict=True)],
        "urgency": [(_urgency(intent, sentence, dice),)],
    }


def _urgency(intent: Intent, sentence: Piece, dice: Dice) -> float:
    """What the intent and the phrases add up to, squeezed into 0 to 1, and the jitter of a rater's hand."""
    meant = 1 / (1 + exp(-5 * (intent.urgency + sentence.urgency - 0.45)))
    jitter = (dice.random() + dice.random() + dice.random() - 1.5) * 2 * URGENCY_NOISE
    return round(min(max(meant + jitter, 0.0), 1.0), 3)


def _with_all_splits(corpus: Corpus) -> Corpus:
    """The same corpus with train, dev and test in this order, even where a small one has not met all of them."""
    codes = np.array([SPLITS.index(name) for name in corpus.splits], dtype=np.int16)
    return replace(corpus, splits=SPLITS, split_codes=codes[corpus.split_codes])


def _check(items: int, shares: Sequence[float], noise: float, near_duplicates: float) -> None:
    if items < 1:
        raise ConfigError(f"items = {items} is too few", fix="items = 20000, or any number from 1 up")
    if len(shares) != len(SPLITS) or min(shares) < 0 or sum(shares) <= 0:
        raise ConfigError(f"shares = {shares!r} are no shares of {', '.join(SPLITS)}", fix="shares = (0.8, 0.1, 0.1)")
    if noise < 0:
        raise ConfigError(f"noise = {noise} is negative", fix="noise = 1, or 0 for none")
    if not 0 <= near_duplicates < 1:
        raise ConfigError(f"near_duplicates = {near_duplicates} is no share", fix="use 0 up to, not including, 1")
