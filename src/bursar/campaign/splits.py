"""Splits the corpus of a campaign into pool, development and test items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import BUILTIN
from bursar.corpus import Corpus, read
from bursar.errors import ConfigError
from bursar.ragged import IntArray
from bursar.random_streams import rng
from bursar.simulation import assistant_corpus


@dataclass(frozen=True, eq=False)
class DataSplits:
    """The corpus of a campaign, and the positions of its pool, development and test items."""

    corpus: Corpus
    pool: IntArray
    dev: IntArray
    test: IntArray

    @cached_property
    def fingerprint(self) -> str:
        return self.corpus.digest()


def load_parts(config: CampaignConfig, corpus: Corpus | None = None) -> DataSplits:
    """Read the corpus, unless it is given, and draw the splits; these depend only on the seed and the item ids."""
    wanted = config.corpus
    if corpus is None and wanted.source == BUILTIN:
        corpus = assistant_corpus(wanted.items, wanted.seed)
    elif corpus is None:
        corpus = read(wanted.source, wanted.format, **wanted.options)
    for part in ("dev", "test"):
        named = getattr(wanted, part)
        if part in wanted.model_fields_set and named is not None and named not in corpus.splits:
            fix = f"use {', '.join(corpus.splits)}"
            raise ConfigError(f"corpus.{part} = {named!r}: there is no such split", fix=fix)
    if not corpus.schema:
        fix = 'name the columns of labels, as in corpus.options.labels = {intent = "Category"}, or have people annotate'
        fix = f"{fix}: bursar new PROJECT --from {wanted.source}"
        raise ConfigError(f"{wanted.source} has no labels, and a simulation needs them", fix=fix)
    corpus = corpus.with_tasks(config.tasks or list(corpus.schema))
    return DataSplits(
        corpus,
        pool=_draw(corpus, wanted.pool, wanted.pool_items, config.seed, "pool items"),
        dev=_draw(corpus, wanted.dev, wanted.dev_items, config.seed, "dev items"),
        test=_draw(corpus, wanted.test, wanted.test_items, 0, "test items"),  # one test set for all seeds
    )


def fully_labelled(corpus: Corpus, items: IntArray) -> IntArray:
    """The items that have a label for every task."""
    return items[np.all([column.present[items] for column in corpus.labels.values()], axis=0)]


def too_few(found: int, pool: int, wanted: int) -> ConfigError:
    """The error for a pool in which fewer items can be bought than the campaign starts with."""
    fewer = f"fewer than budget.seed_items = {wanted}"
    if found == pool:
        return ConfigError(f"the pool has {found} items, {fewer}", fix="use fewer seed items or a larger pool")
    return ConfigError(
        f"{found} of the pool's {pool} items have a label for every task, {fewer}: a simulation needs all labels",
        fix="label more of them, or have people annotate: bursar new NAME --from FILE",
    )


def _draw(corpus: Corpus, split: str | None, count: int | None, seed: int, stream: str) -> IntArray:
    pool = stream == "pool items"
    if split is None or (not pool and split not in corpus.splits):
        return np.zeros(0, dtype=np.int64)
    items = corpus.in_split(split) if pool else fully_labelled(corpus, corpus.in_split(split))
    if count is None or count >= len(items):
        return items
    return np.sort(rng(seed, stream).choice(corpus.by_id(items), count, replace=False))
