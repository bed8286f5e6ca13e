"""What the money was spent on: by round, by task and by purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bursar.campaign.results import ArmResult, RunResult
from bursar.ledger import SpendingLine
from bursar.ledger.records import READING
from bursar.report.wording import THIN, Money, Scale, counted, percent

WHY = {  # from the bottom of a bar to its top
    "seed": "seed items",
    "start": "first items",
    "dev": "development items",
    "strategy": "selected",
    "overlap": "asked again",
    "audit": "audit slice",
}
RANDOM_ITEMS = ("seed", "dev", "audit")


@dataclass(frozen=True)
class TaskCell:
    """The labels of one task in a round, and its score after it."""

    task: str
    labels: int
    score: str | None  # of the model after the round, if known


@dataclass(frozen=True)
class RoundRow:
    """A row of the table of rounds."""

    name: str
    items: int
    money: str
    total: str
    per_item: str
    estimate: str
    off: str | None  # error of the estimate, if any
    tasks: tuple[TaskCell, ...]
    open: bool  # being annotated, or not scored yet


def round_name(round: int) -> str:
    """A round in a table."""
    return "Seed" if round == 0 else str(round)


def round_rows(result: RunResult, arm: str) -> list[RoundRow]:
    """The rounds of a strategy that bought anything."""
    found, money = result.arms[arm], Money.of(result)
    scores = _scores(result, found)
    lines, scored = by_round(found.spending), {r.round for r in found.rounds}
    rows, total = [], 0
    for round in sorted(lines):
        actual, estimate = _sum(lines[round], "actual"), _sum(lines[round], "estimate")
        items = items_of(lines[round])
        total += actual
        cells = []
        for name, task in result.tasks.items():
            labels = labels_of(line for line in lines[round] if line.what == name)
            score = scores.get(round, {}).get(name)
            cells.append(TaskCell(name, labels, None if score is None else Scale.of(task.metric).show(score)))
        spent = (money.brief(actual), money.brief(total), money.average(actual, items), money.brief(estimate))
        rows.append(
            RoundRow(round_name(round), items, *spent, _off(estimate, actual), tuple(cells), round not in scored)
        )
    return rows


def spending_words(result: RunResult) -> list[str]:
    """Cost per item, selected or random, and how accurate the estimates were."""
    lines, money = result.main.spending, Money.of(result)
    if not lines:
        return []
    words = []
    selected = [line for line in lines if line.purpose == "strategy"]
    random = [line for line in lines if line.purpose in RANDOM_ITEMS]
    costs = [money.average(_sum(part, "actual"), items_of(part)) for part in (selected, random)]
    if items_of(selected) and items_of(random):
        words.append(f"On average, a selected item cost {costs[0]} and a random item {costs[1]}.")
    reading, actual = _sum((line for line in lines if line.what == READING), "actual"), _sum(lines, "actual")
    if reading and actual:
        words.append(f"Reading took {percent(reading / actual)} of the money; it is paid once per item.")
    estimate = _sum(lines, "estimate")
    off = _off(estimate, actual)
    if result.config.costs.pricing == "gold" and off is None:
        words.append("Prices were computed from known labels, so all estimates were exact.")
    else:
        error = f" ({off})" if off else ""
        words.append(f"The estimated cost was {money.show(estimate)}, the actual cost {money.show(actual)}{error}.")
    return words + _certificate_words(result)


def _certificate_words(result: RunResult) -> list[str]:
    found = [selection.certificate for selection in result.main.selections]
    proven = [(one, one.bound) for one in found if one is not None and one.bound]
    if not proven:
        return []
    rounds = counted(len(proven), "round")
    if all(one.optimal for one, _ in proven):
        return [f"In {rounds}, the selection is proven optimal for its cost, by the score of the strategy."]
    least = min(one.objective / bound for one, bound in proven)
    reached = f"at least {100 * least:.4g}{THIN}% of the optimum for their cost"
    return [f"Over {rounds}, the selections reached {reached}, by the score of the strategy."]


def open_round(result: RunResult, arm: str) -> tuple[int, int, int] | None:
    """The latest round while it is being annotated: its number, items annotated, items asked for."""
    found = result.arms[arm]
    if not found.selections:
        return None
    latest = found.selections[-1]
    done = items_of(line for line in found.spending if line.round == latest.round)
    asked = len(latest.items)
    return None if done >= asked else (latest.round, done, asked)


def by_round(lines: Iterable[SpendingLine]) -> dict[int, list[SpendingLine]]:
    """Spending lines by round."""
    found: dict[int, list[SpendingLine]] = defaultdict(list)
    for line in lines:
        found[line.round].append(line)
    return dict(found)


def items_of(lines: Iterable[SpendingLine]) -> int:
    """Number of items in these lines; reading is paid once per item."""
    return sum(line.items for line in lines if line.what == READING)


def labels_of(lines: Iterable[SpendingLine]) -> int:
    """Number of labels in these lines; answers of two people to one item are two."""
    return sum(line.answers for line in lines if line.what != READING)


def bought_words(lines: Sequence[SpendingLine]) -> str:
    """What these lines paid for."""
    return f"{counted(items_of(lines), 'item')} and {counted(labels_of(lines), 'label')}"


def _scores(result: RunResult, found: ArmResult) -> dict[int, dict[str, float]]:
    """The scores of each round's model: on the test set, or else on its audit slice."""
    tested = {r.round: {n: r.test[n][m] for n, m in result.metrics.items()} for r in found.tested}
    return tested or {p.round: {n: s.score for n, s in p.scores.items()} for p in found.audit}


def _sum(lines: Iterable[SpendingLine], what: str) -> int:
    return sum(int(getattr(line, what)) for line in lines)


def _off(estimate: int, actual: int) -> str | None:
    if estimate == actual:
        return None
    if not estimate:
        return "not estimated"
    off = actual / estimate - 1
    return f"{percent(abs(off), 1)} {'over' if off > 0 else 'under'} the estimate"
