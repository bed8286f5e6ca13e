"""Estimates annotation speed from measured seconds, and the prices that follow from it.

Seconds are linear in a count: of words for reading, of labels or words for a task. The line is fitted by non-negative
least squares on relative errors. Times far above the line are pauses and are left out. With few measurements, the rates
stay close to those of the configured prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from bursar.campaign.config import CampaignConfig
from bursar.campaign.splits import DataSplits
from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners import Learner
from bursar.ledger import Annotation, Charge, Ledger
from bursar.ledger.records import READING
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.tasks import CostModel, Prices, Task
from bursar.tasks.costs import counts_of

PriceTable = dict[str, dict[str, float]]  # of reading and of each task, in money
TRUST = 20  # weight of the configured prices, in measurements
LONG = 4.0  # times the expected seconds; longer times are cut to this
PAUSE = 8.0  # times the expected seconds; longer times are pauses
SHORTEST = 0.25  # of the median: the least expected time
TINY = 1e-9  # seconds
ITERATIONS = 20
HOUR = 3600
FINEST = 0.1  # seconds that the smallest amount of money may stand for


@dataclass(frozen=True)
class Rate:
    """Seconds per item and per count, with standard errors if known."""

    per_item: float
    per_count: float
    observations: int = 0
    paused: int = 0  # observations left out as pauses
    item_error: float | None = None
    count_error: float | None = None

    def seconds(self, counts: FloatArray) -> FloatArray:
        return self.per_item + self.per_count * counts

    def as_json(self) -> dict[str, Any]:
        return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items()}


def rate_of(seconds: FloatArray, counts: FloatArray, usual: tuple[float, float] = (0.0, 0.0)) -> Rate:
    """The measured rate, shrunk towards the usual one if there are few measurements."""
    if not len(seconds) or not seconds.any():
        return Rate(*usual, observations=len(seconds))
    shape = np.array(usual if sum(usual) > 0 else (1.0, float(counts.any())))
    line = shape * np.median(seconds / _expected(shape, counts, seconds))
    for _ in range(ITERATIONS):
        expected = _expected(line, counts, seconds)
        expected = np.maximum(expected * np.median(seconds / expected), TINY)
        kept = seconds <= PAUSE * expected
        cut = np.minimum(seconds, LONG * expected)[kept]
        fitted, errors = _fitted(cut, counts[kept], 1 / expected[kept], towards=line)
        settled = np.allclose(fitted, line, rtol=1e-6)
        line = fitted
        if settled:
            break
    share = kept.sum() / (kept.sum() + (TRUST if sum(usual) > 0 else 0))
    mixed = share * line + (1 - share) * np.array(usual)
    known = [None if error is None else float(share * error) for error in errors]
    return Rate(float(mixed[0]), float(mixed[1]), len(seconds), int((~kept).sum()), *known)


def _expected(line: FloatArray, counts: FloatArray, seconds: FloatArray) -> FloatArray:
    """The line's seconds for each item, at least a share of the median."""
    expected: FloatArray = np.maximum(line[0] + line[1] * counts, max(SHORTEST * float(np.median(seconds)), TINY))
    return expected


def _fitted(
    seconds: FloatArray, counts: FloatArray, weights: FloatArray, towards: FloatArray
) -> tuple[FloatArray, tuple[float | None, float | None]]:
    """A weighted non-negative least-squares line drawn ``towards`` another by the weight of one, with robust errors."""
    rows = np.stack([np.ones_like(counts), counts], axis=1) * weights[:, None]
    wanted = seconds * weights
    pull = np.diag((rows**2).mean(axis=0))
    square, moment = rows.T @ rows + pull, rows.T @ wanted + pull @ towards
    line = non_negative(square, moment)
    used = np.flatnonzero((line > 0) & (square.diagonal() > 0))
    errors: dict[int, float] = {}
    if len(seconds) > len(used) > 0:
        inverse = np.linalg.inv(square[np.ix_(used, used)])
        scores = rows[:, used] * (wanted - rows @ line)[:, None]
        spread = inverse @ (scores.T @ scores) @ inverse * len(seconds) / (len(seconds) - len(used))
        errors = dict(zip(used.tolist(), np.sqrt(spread.diagonal()).tolist(), strict=True))
    return line, (errors.get(0), errors.get(1))


def non_negative(square: FloatArray, moment: FloatArray) -> FloatArray:
    """The two non-negative numbers that minimise x'Ax/2 − b'x."""
    if np.linalg.det(square) > 1e-12 * square[0, 0] * square[1, 1] > 0:
        both = np.linalg.solve(square, moment)
        if (both >= 0).all():
            return np.asarray(both)
    single = np.divide(moment, square.diagonal(), out=np.zeros(2), where=square.diagonal() > 0).clip(min=0)
    gains = single * moment - 0.5 * square.diagonal() * single**2
    best: FloatArray = np.where(np.arange(2) == int(gains.argmax()), single, 0.0)
    return best


# -- money -------------------------------------------------------------------------------------------------------------
def usual_rates(costs: CostModel, tasks: Sequence[Task], hourly: float) -> dict[str, tuple[float, float]]:
    """The seconds per item and per count that prices imply at an hourly rate, for reading and every task."""
    second = float(costs.unit) * HOUR / hourly
    rates = {READING: (costs.reading["per_item"] * second, costs.reading["per_word"] * second)}
    for task in tasks:
        own = costs.own[task.name]
        counted = 0 if task.counted == "item" else own[f"per_{task.counted}"]
        rates[task.name] = own["per_item"] * second, counted * second
    return rates


def prices_at(rates: Mapping[str, Rate], tasks: Sequence[Task], hourly: float, unit: Decimal) -> PriceTable:
    """Prices in money for rates in seconds, in multiples of the smallest amount."""

    def money(seconds: float) -> float:
        return float(round(Decimal(str(seconds)) * Decimal(str(hourly)) / HOUR / unit) * unit)

    counted = {READING: "word"} | {task.name: task.counted for task in tasks}
    prices = {name: {"per_item": money(rates[name].per_item)} for name in counted}
    for name, what in counted.items():
        if what != "item":
            prices[name][f"per_{what}"] = money(rates[name].per_count)
    return prices


def check_unit(costs: CostModel, hourly: float) -> None:
    """Refuse a smallest amount that is too large for the price of a few seconds."""
    if float(costs.unit) * HOUR > FINEST * hourly:
        message = f"costs.measured: costs.unit = {costs.unit} is more than {FINEST} seconds cost at {hourly:g} an hour"
        raise ConfigError(message, fix="set costs.unit to a smaller amount, such as 0.0001")


class Pricing:
    """Prices of a campaign's items, by gold or by predicted labels."""

    def __init__(self, config: CampaignConfig, parts: DataSplits) -> None:
        self.by_gold = config.costs.pricing == "gold"
        self.parts = parts
        self.corpus = parts.corpus

    def prices(self, items: IntArray, source: Learner | Mapping[str, Ragged], costs: CostModel) -> Prices:
        """Prices of items; ``source`` is a learner or its predicted labels."""
        part = self.corpus.take(items)
        if self.by_gold:
            labels: Mapping[str, Ragged] = self.gold(items)
        elif isinstance(source, Learner):
            labels = source.predict(part.unlabelled()) if len(items) else {}
        else:
            labels = source
        return prices_of(costs, list(self.corpus.schema.values()), part, labels, self._typical)

    def typical_price(self, items: IntArray, costs: CostModel) -> float:
        """The mean price of an item for all tasks, before there is a model."""
        return float(self.prices(items, {}, costs).joint().mean()) if len(items) else 0.0

    def gold(self, items: IntArray) -> dict[str, Ragged]:
        return {name: column.rows.take(items) for name, column in self.corpus.labels.items()}

    @cached_property
    def _typical(self) -> dict[str, float]:
        return typical_counts(list(self.corpus.schema.values()), self.corpus.take(self.parts.dev))


def prices_of(
    model: CostModel, tasks: Sequence[Task], items: Corpus, labels: Mapping[str, Ragged], typical: Mapping[str, float]
) -> Prices:
    """Prices by gold or predicted labels; for a task without any, by its typical count, rounded up."""
    usual = {task.name: np.full(len(items), int(np.ceil(typical[task.name]))) for task in tasks}
    return model.price(tasks, items.reading, usual | counts_of(tasks, labels))


def typical_counts(tasks: Sequence[Task], items: Corpus) -> dict[str, float]:
    """The mean count per labelled item for each task; 1 if none is labelled."""
    found = {}
    for task in tasks:
        labels = items.labels[task.name]
        known = np.flatnonzero(labels.present)
        found[task.name] = float(task.count(labels.rows.take(known)).mean()) if len(known) else 1.0
    return found


def charges_of(
    model: CostModel, item: Corpus, answers: Sequence[Annotation], estimate: Mapping[str, int]
) -> tuple[Charge, ...]:
    """The charges for one item: reading once, and each task by its label."""
    tasks = [item.schema[answer.task] for answer in answers]
    words = int(item.words[0])
    counts = {
        task.name: task.count(Ragged.of([task.encode(answer.label, words)], task.width, task.dtype))
        for task, answer in zip(tasks, answers, strict=True)
    }
    actual = model.price(tasks, item.reading, counts)
    paid = {READING: int(actual.reading[0])} | dict(zip(actual.tasks, actual.own[0].tolist(), strict=True))
    return tuple(Charge(item.ids[0], what, int(estimate.get(what, paid[what])), paid[what]) for what in paid)


# -- measured times ----------------------------------------------------------------------------------------------------
def measurements(ledger: Ledger) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The seconds and the count of each answer, for reading and for every task."""
    corpus = ledger.corpus
    words = dict(zip(corpus.ids.tolist(), corpus.reading.tolist(), strict=True))
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in (READING, *corpus.schema)}
    found[READING] = [(each.seconds, words[each.item]) for each in ledger.timings() if each.what == READING]
    places = dict(zip(corpus.ids.tolist(), corpus.words.tolist(), strict=True))
    for answer in ledger.answers():
        for name, label in answer.labels.items():
            if name in answer.seconds and label is not None:
                task = corpus.schema[name]
                rows = Ragged.of([task.encode(label, places[answer.item])], task.width, task.dtype)
                counted = {"item": 0, "word": words[answer.item]}.get(task.counted)
                found[name].append((answer.seconds[name], int(task.count(rows)[0]) if counted is None else counted))
    columns = {what: np.array(pairs, dtype=float).reshape(-1, 2).T for what, pairs in found.items()}
    return {what: (seconds, counts) for what, (seconds, counts) in columns.items()}


def measured_rates(ledger: Ledger, usual: Mapping[str, tuple[float, float]] | None = None) -> dict[str, Rate]:
    """The speed of all annotators together, for reading and for every task; ``usual`` is the prior."""
    found = measurements(ledger).items()
    return {what: rate_of(seconds, counts, (usual or {}).get(what, (0.0, 0.0))) for what, (seconds, counts) in found}
