"""What a round selects from, what it would buy, and how the ledger records that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np

from bursar.campaign.decisions import CertificateRecord, ConfidenceExample, ConfidenceSummary, SelectedItem
from bursar.campaign.pool_scoring import Scored
from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.ledger import Ledger
from bursar.ledger.records import READING
from bursar.ragged import FloatArray, IntArray
from bursar.selection import Candidates, Certificate, Selection
from bursar.tasks import Prices

BINS = 20  # of a histogram of confidence
EXAMPLES = 8


@dataclass(frozen=True, eq=False)
class Known:
    """A snapshot of the ledger."""

    asked: tuple[ItemRequest, ...]  # and not answered yet
    declined: Collection[tuple[str, str]]  # items and tasks
    bought: Corpus  # all labelled items
    annotated: Corpus  # those that are trained on
    dev: Corpus | None  # for early stopping

    @property
    def unlabelled_tasks(self) -> list[str]:
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
    measure: str | None = None  # of the model's confidence; None if it was not needed
    caps: Mapping[str, int] | None = None  # labels of each task, if the money was split between tasks


def selected_items(
    corpus: Corpus, items: IntArray, prices: Prices, chosen: Selection | None, purpose: str
) -> list[SelectedItem]:
    """The items to ask about: all of them for all tasks, or those that were chosen."""
    picks = [(at, prices.tasks) for at in range(len(items))]
    if chosen is not None:
        rows = zip(chosen.items.tolist(), chosen.tasks, strict=True)
        picks = [(at, tuple(compress(prices.tasks, row))) for at, row in rows]
    found = []
    for at, tasks in picks:
        own = dict(zip(prices.tasks, prices.own[at].tolist(), strict=True))
        estimate = {READING: int(prices.reading[at])} | {name: own[name] for name in tasks}
        found.append(SelectedItem(id=str(corpus.ids[int(items[at])]), tasks=tasks, purpose=purpose, estimate=estimate))
    return found


def certificate_record(certificate: Certificate | None) -> CertificateRecord | None:
    """A certificate for the ledger."""
    if certificate is None:
        return None
    bound = None if certificate.bound is None else round_to(certificate.bound)
    return CertificateRecord(objective=round_to(certificate.objective), bound=bound, optimal=certificate.optimal)


def bought_for(purposes: Iterable[str], known: Known, ledger: Ledger) -> Corpus:
    """The training items that were bought for these purposes."""
    bought = set(ledger.bought(purposes=purposes))
    return known.annotated.take(np.flatnonzero([item in bought for item in known.annotated.ids.tolist()]))


def round_seed(seed: int, round: int) -> int:
    """The seed of a round, derived from the campaign's."""
    return int(np.random.SeedSequence([seed, 13, round]).generate_state(1)[0])


def round_to(value: float) -> float:
    """Round to six digits, so that the ledger does not depend on numerical noise."""
    return round(float(value), 6)


# -- confidence --------------------------------------------------------------------------------------------------------
def confidence_summary(round: int, pool: Corpus, scored: Scored, chosen: Selection) -> ConfidenceSummary:
    """Histograms of confidence in the pool and in the chosen items by task, and the most and least certain items."""
    names, confidence = list(pool.schema), scored.confidence
    order = np.lexsort((pool.id_ranks, confidence.mean(axis=1))).tolist()

    def example(at: int) -> ConfidenceExample:
        return ConfidenceExample(
            id=str(pool.ids[at]),
            confidence={name: _brief(confidence[at, k]) for k, name in enumerate(names)},
            guess={name: pool.schema[name].value(scored.guesses[name][at]) for name in names},
        )

    return ConfidenceSummary(
        round=round,
        bins=BINS,
        pool={name: _histogram(confidence[:, k]) for k, name in enumerate(names)},
        chosen={name: _histogram(confidence[chosen.items, k]) for k, name in enumerate(names)},
        mean={name: _brief(confidence[:, k].mean()) for k, name in enumerate(names)},
        least=tuple(map(example, order[:EXAMPLES])),
        most=tuple(map(example, order[::-1][:EXAMPLES])),
    )


def _brief(value: float) -> float:
    return round(float(value), 4)


def _histogram(values: FloatArray) -> list[int]:
    counts: list[int] = np.histogram(values, bins=BINS, range=(0, 1))[0].tolist()
    return counts
