"""How the budget of each round was split between the tasks, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bursar.campaign.decisions import RoundSelection, SelectedItem, SplitDecision
from bursar.campaign.results import RunResult
from bursar.ledger.records import READING
from bursar.report.tables import Table
from bursar.report.wording import Money, percent


def split_table(result: RunResult) -> Table | None:
    """Labels selected for each task, the maximum, and the share of the cost; ``None`` if nothing was split."""
    money, tasks = Money.of(result), list(result.tasks)
    rows = []
    for one, caps in _split_rounds(result):
        paid, labels = paid_by_task(one.items, tasks)
        total = sum(paid.values())
        cells = [
            f"{labels[name]:,} of {caps[name]:,} ({percent(paid[name] / total) if total else '–'})" for name in tasks
        ]
        rows.append((str(one.round), money.brief(round(total)), *cells))
    return Table(("Round", "Cost", *tasks), tuple(rows)) if rows else None


def split_words(result: RunResult) -> list[str]:
    """Why the budget of each round was split as it was."""
    splits = {one.round: one for one in result.main.splits}
    money = Money.of(result)
    return [
        f"Round {one.round}: {' '.join(_reasons(splits[one.round], caps, money))}"
        for one, caps in _split_rounds(result)
        if one.round in splits
    ]


def _split_rounds(result: RunResult) -> list[tuple[RoundSelection, dict[str, int]]]:
    return [(one, one.caps) for one in result.main.selections if one.caps is not None]


def paid_by_task(items: Iterable[SelectedItem], tasks: list[str]) -> tuple[dict[str, float], dict[str, int]]:
    """Estimated cost and number of the strategy's labels by task. The tasks of an item share its reading.

    >>> prices = {"reading": 4, "intent": 3, "slots": 1}
    >>> item = SelectedItem(id="u1", tasks=("intent", "slots"), purpose="strategy", estimate=prices)
    >>> paid_by_task([item], ["intent", "slots"])
    ({'intent': 5.0, 'slots': 3.0}, {'intent': 1, 'slots': 1})
    """
    paid, labels = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 0)
    for item in items:
        for name in item.tasks if item.purpose == "strategy" else ():
            paid[name] += item.estimate.get(name, 0) + item.estimate.get(READING, 0) / len(item.tasks)
            labels[name] += 1
    return paid, labels


def _reasons(split: SplitDecision, caps: Mapping[str, int], money: Money) -> list[str]:
    worth, known = split.worth, split.known
    best = max(worth, key=lambda name: worth[name] / split.prices[name])
    value = {name: f"{worth[name]:.2f} at {money.show(price)}" for name, price in split.prices.items()}
    said = []
    if worth[best] > 0:
        said.append(f"a label of {best} had the highest value for its price, {value[best]}.")
    if split.set_aside:
        said.append(
            "By the measured effects, labels of every task harm the others as much as they help, and none would be "
            "bought. So the budget was split as if tasks had no effect on each other."
        )
    effects = [(a, b, *pair) for a, others in known.informs.items() for b, pair in others.items()]
    clear = [effect for effect in effects if abs(effect[2]) > 2 * effect[3]]
    for task, other, effect, _ in sorted(clear, key=lambda effect: -abs(effect[2]))[:2]:
        sign = "−" if effect < 0 else ""
        said.append(f"One label of {task} was worth {sign}{abs(effect):.2f} labels of {other}.")
    said += [f"None for {name}: the value of a label was {value[name]}." for name, cap in caps.items() if not cap]
    if known.unknown:
        why = known.why or "there were too few labels"
        said.append(f"How fast {', '.join(known.unknown)} saturates was not known: {why}.")
    return said
