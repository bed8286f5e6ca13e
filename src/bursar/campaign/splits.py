"""Which items of a corpus play which part in a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.sections import BUILTIN
from bursar.corpus import Corpus, read
from bursar.errors import ConfigError
from bursar.ragged import IntArray
from bursar.simulation import assistant_corpus


@dataclass(frozen=True, eq=False)
class DataSplits:
    """The corpus of a campaign and the positions of its pool, development and test items."""

    corpus: Corpus
    pool: IntArray
    dev: IntArray
    test: IntArray

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that a campaign's result can depend on: items, splits, tasks and labels."""
        return self.corpus.digest()


def load_parts(config: CampaignConfig, corpus: Corpus | None = None) -> DataSplits:
    """Read the corpus, unless it is given, and draw the parts; draws depend on the seed and the ids alone."""
    wanted = config.corpus
    if corpus is None and wanted.source == BUILTIN:
        corpus = assistant_corpus(wanted.items, wanted.seed)
    elif corpus is None:
        corpus = read(wanted.source, wanted.format, **wanted.options)
    for part in ("dev", "test"):
        named = getattr(wanted, part)
        if part in wanted.model_fields_set and named is not None and named not in corpus.splits:
            raise ConfigError(
                f"corpus.{part} = {named!r}: there is no such split", fix=f"use {', '.join(corpus.splits)}"
            )
    if not corpus.schema:
        raise ConfigError(f"{wanted.source} states no task", fix="state the tasks on the first line of the JSONL file")
    corpus = corpus.with_tasks(config.tasks or list(corpus.schema))
    return DataSplits(
        corpus,
        pool=_draw(corpus, wanted.pool, wanted.pool_items, config.seed, "pool"),
        dev=_draw(corpus, wanted.dev, wanted.dev_items, config.seed, "dev"),
        test=_draw(corpus, wanted.test, wanted.test_items, 0, "test"),  # one test set for all seeds
    )


def fully_labelled(corpus: Corpus, items: IntArray) -> IntArray:
    """Those of the items that have a label for every task."""
    known = np.all([column.present[items] for column in corpus.labels.values()], axis=0)
    return items[known]


def too_few(found: int, pool: int, wanted: int) -> ConfigError:
    """That so many items of a pool can be bought, fewer than are to begin with."""
    if found == pool:
        return ConfigError(
            f"the pool has {found} items, fewer than budget.seed_items = {wanted}",
            fix="ask for fewer seed items or give a larger pool",
        )
    return ConfigError(
        f"{found} of the pool's {pool} items have a label for every task, fewer than budget.seed_items = {wanted}: "
        "a simulation buys no others",
        fix="give more of them labels, or have people annotate: bursar new NAME --from FILE",
    )


def _draw(corpus: Corpus, split: str | None, count: int | None, seed: int, part: str) -> IntArray:
    if split is None or (part != "pool" and split not in corpus.splits):
        return np.zeros(0, dtype=np.int64)
    items = corpus.in_split(split)
    if part != "pool":
        items = fully_labelled(corpus, items)
    if count is None or count >= len(items):
        return items
    key = {"pool": 1, "dev": 2, "test": 3}[part]
    return np.sort(np.random.default_rng([seed, key]).choice(corpus.by_id(items), count, replace=False))
