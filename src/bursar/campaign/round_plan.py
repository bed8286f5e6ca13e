"""What a round is chosen from, what it would buy, and how that is written down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bursar.campaign.decisions import CertificateRecord, SelectedItem
from bursar.campaign.pool_scoring import Scored
from bursar.campaign.pricing import estimates_of
from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.ledger import Ledger
from bursar.ragged import IntArray
from bursar.selection import Candidates, Certificate, Selection
from bursar.tasks import Prices


@dataclass(frozen=True, eq=False)
class Known:
    """What the ledger said at one moment."""

    asked: tuple[ItemRequest, ...]  # and not answered yet
    declined: Collection[tuple[str, str]]  # items and tasks
    bought: Corpus  # all that has a label
    annotated: Corpus  # what of that is trained on
    dev: Corpus | None  # what decides when to stop training

    @property
    def unlabelled_tasks(self) -> list[str]:
        """Tasks that nothing could be learned of."""
        return [name for name, column in self.annotated.labels.items() if not column.present.any()]


@dataclass(frozen=True, eq=False)
class Offer:
    """What a round would buy: the audit slice, and the strategy's choice from the items of its pool."""

    round: int
    budget: int
    audit: IntArray  # positions in the corpus
    audit_prices: Prices
    items: IntArray  # of the pool, positions in the corpus
    pool: Candidates
    scored: Scored
    chosen: Selection  # positions in the pool
    measure: str | None = None  # of confidence that the model was asked for; None if it was not asked
    caps: Mapping[str, int] | None = None  # labels of each task, where the money was split between them


def selected_items(
    corpus: Corpus, items: IntArray, prices: Prices, chosen: Selection | None, purpose: str
) -> list[SelectedItem]:
    """What is asked about: all items for all tasks, or what was chosen of them."""
    names = prices.tasks
    picks: Iterable[tuple[int, tuple[str, ...]]] = ((at, names) for at in range(len(items)))
    if chosen is not None:
        picks = (
            (int(at), tuple(name for name, wanted in zip(names, row, strict=True) if wanted))
            for at, row in zip(chosen.items, chosen.tasks, strict=True)
        )
    return [
        SelectedItem(
            id=str(corpus.ids[int(items[at])]), tasks=tasks, purpose=purpose, estimate=estimates_of(prices, at, tasks)
        )
        for at, tasks in picks
    ]


def certificate_record(certificate: Certificate | None) -> CertificateRecord | None:
    """A certificate as the ledger keeps it."""
    if certificate is None:
        return None
    bound = None if certificate.bound is None else round_to(certificate.bound)
    return CertificateRecord(objective=round_to(certificate.objective), bound=bound, optimal=certificate.optimal)


def bought_for(purposes: Iterable[str], known: Known, ledger: Ledger) -> Corpus:
    """The items trained on that were bought for some purposes."""
    bought = set(ledger.bought(purposes=purposes))
    return known.annotated.take(np.flatnonzero([item in bought for item in known.annotated.ids.tolist()]))


def round_seed(seed: int, round: int) -> int:
    """The seed of a round, from the campaign's."""
    return int(np.random.SeedSequence([seed, 13, round]).generate_state(1)[0])


def round_to(value: float) -> float:
    """Six digits: more would be noise, and a ledger should not depend on noise."""
    return round(float(value), 6)
