"""How each round's money was split between the tasks, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.ledger.records import READING
from bursar.report.tables import Table
from bursar.report.wording import Money, percent


def split_table(result: Mapping[str, Any]) -> Table | None:
    """The labels that the strategy chose of each task, how many it might, and what of the money; none if not split."""
    money, tasks = Money.of(result), list(result["tasks"])
    rows = []
    for one in _split_rounds(result):
        paid, chosen = paid_by_task(one["items"], tasks)
        total = sum(paid.values())
        cells = [
            f"{chosen[name]:,} of {one['caps'][name]:,} ({percent(paid[name] / total) if total else '–'})"
            for name in tasks
        ]
        rows.append((str(one["round"]), money.brief(round(total)), *cells))
    return Table(("Round", "Money split", *tasks), tuple(rows)) if rows else None


def split_words(result: Mapping[str, Any]) -> list[str]:
    """Why each round's money was split as it was."""
    splits = {one["round"]: one for one in result["arms"][result["strategy"]].get("splits", [])}
    money = Money.of(result)
    return [
        f"Round {one['round']}: {' '.join(_reasons(splits[one['round']], one['caps'], money))}"
        for one in _split_rounds(result)
        if one["round"] in splits
    ]


def _split_rounds(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in result["arms"][result["strategy"]]["selections"] if one.get("caps") is not None]


def paid_by_task(items: list[Mapping[str, Any]], tasks: list[str]) -> tuple[dict[str, float], dict[str, int]]:
    """What the strategy's items were thought to cost for each task, which share an item's reading; and the labels.

    >>> prices = {"reading": 4, "intent": 3, "slots": 1}
    >>> item = {"tasks": ["intent", "slots"], "purpose": "strategy", "estimate": prices}
    >>> paid_by_task([item], ["intent", "slots"])
    ({'intent': 5.0, 'slots': 3.0}, {'intent': 1, 'slots': 1})
    """
    paid, labels = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 0)
    for item in items:
        for name in item["tasks"] if item["purpose"] == "strategy" else ():
            paid[name] += item["estimate"].get(name, 0) + item["estimate"].get(READING, 0) / len(item["tasks"])
            labels[name] += 1
    return paid, labels


def _reasons(split: Mapping[str, Any], caps: Mapping[str, int], money: Money) -> list[str]:
    worth, prices, known = split["worth"], split["prices"], split["known"]
    best = max(worth, key=lambda name: worth[name] / prices[name])
    said = []
    if worth[best] > 0:
        said.append(
            f"for its price a label of {best} was worth the most to all tasks together, {worth[best]:.2f} at "
            f"{money.show(prices[best])}."
        )
    if split.get("set_aside"):
        said.append(
            "By what was measured labels of every task harm the others by as much as they help, and none would be "
            "bought: so the money was split as if nobody informed anybody."
        )
    effects = [(a, b, *pair) for a, others in known["informs"].items() for b, pair in others.items()]
    clear = [effect for effect in effects if abs(effect[2]) > 2 * effect[3]]
    for task, other, value, _ in sorted(clear, key=lambda effect: -abs(effect[2]))[:2]:
        verb = "advanced" if value > 0 else "set back"
        said.append(f"One of {task} {verb} {other} by {abs(value):.2f} labels of its own.")
    said += [
        f"None of {name}: one was worth {worth[name]:.2f} at {money.show(prices[name])}."
        for name, cap in caps.items()
        if not cap
    ]
    if known["unknown"]:
        why = known.get("why") or "there were too few labels"
        said.append(f"Of {', '.join(known['unknown'])} it was not known how fast labels lose worth: {why}.")
    return said
