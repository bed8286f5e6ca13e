"""Where the money went: by round, by thing and by purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bursar.ledger.records import READING
from bursar.report.wording import THIN, Money, Scale, counted

WHY = {
    "seed": "seed items",
    "start": "first items",
    "dev": "development items",
    "strategy": "chosen",
    "overlap": "asked again",
    "audit": "audit slice",
}
PURPOSES = tuple(WHY)  # from the bottom of a bar to its top
RANDOM_ITEMS = ("seed", "dev", "audit")


@dataclass(frozen=True)
class TaskCell:
    """What a round did for one task."""

    task: str
    labels: int
    score: str | None  # of the model after the round; ``None`` where it has none


@dataclass(frozen=True)
class RoundRow:
    """A round in the table of rounds."""

    name: str
    items: int
    money: str
    total: str
    per_item: str
    estimate: str
    off: str | None  # by how much the estimate was wrong; ``None`` where it was right
    tasks: tuple[TaskCell, ...]
    open: bool  # still being annotated, or not scored yet


def round_name(round: int) -> str:
    """What the tables call a round."""
    return "Seed" if round == 0 else str(round)


def round_rows(result: Mapping[str, Any], arm: str) -> list[RoundRow]:
    """The rounds of one strategy that bought anything."""
    found, money = result["arms"][arm], Money.of(result)
    scores = _scores(result, found)
    lines, scored = by_round(found["spending"]), {r["round"] for r in found["rounds"]}
    rows, total = [], 0
    for round in sorted(lines):
        actual, estimate = _sum(lines[round], "actual"), _sum(lines[round], "estimate")
        items = items_of(lines[round])
        total += actual
        cells = []
        for name, task in result["tasks"].items():
            labels = labels_of(line for line in lines[round] if line["what"] == name)
            score = scores.get(round, {}).get(name)
            cells.append(TaskCell(name, labels, None if score is None else Scale.of(task["metric"]).show(score)))
        rows.append(
            RoundRow(
                name=round_name(round),
                items=items,
                money=money.brief(actual),
                total=money.brief(total),
                per_item=money.average(actual, items),
                estimate=money.brief(estimate),
                off=_off(estimate, actual),
                tasks=tuple(cells),
                open=round not in scored,
            )
        )
    return rows


def spending_words(result: Mapping[str, Any]) -> list[str]:
    """What an item cost, chosen or random, and how good the estimates were."""
    found, money = result["arms"][result["strategy"]], Money.of(result)
    lines = found["spending"]
    if not lines:
        return []
    words = []
    chosen = [line for line in lines if line["purpose"] == "strategy"]
    others = [line for line in lines if line["purpose"] in RANDOM_ITEMS]
    chosen_items, other_items = items_of(chosen), items_of(others)
    if chosen_items and other_items:
        words.append(
            f"An item that the strategy chose cost {money.average(_sum(chosen, 'actual'), chosen_items)} on average, "
            f"one drawn at random {money.average(_sum(others, 'actual'), other_items)}."
        )
    reading, actual = _sum((line for line in lines if line["what"] == READING), "actual"), _sum(lines, "actual")
    if reading and actual:
        words.append(f"Reading took {100 * reading / actual:.0f}{THIN}% of the money; it is paid once an item.")
    off = _off(_sum(lines, "estimate"), actual)
    if result["config"]["costs"]["pricing"] == "gold" and off is None:
        words.append("Prices were counted on known labels, so every estimate was exact.")
    else:
        words.append(
            f"What was bought was estimated at {money.show(_sum(lines, 'estimate'))} and cost {money.show(actual)}"
            f"{f' ({off})' if off else ''}."
        )
    return words + certificate_words(result)


def certificate_words(result: Mapping[str, Any]) -> list[str]:
    """How much of what its money could have bought each round reached, by the strategy's own score."""
    found = [body.get("certificate") for body in result["arms"][result["strategy"]]["selections"]]
    proven = [one for one in found if one is not None and one["bound"]]
    if not proven:
        return []
    rounds = counted(len(proven), "round")
    if all(one["optimal"] for one in proven):
        return [
            f"Proven for {rounds}: no selection that the money could buy would have scored higher by its own measure."
        ]
    least = min(one["objective"] / one["bound"] for one in proven)
    return [
        f"Over {rounds} the selections reached at least {100 * least:.4g}{THIN}% of the highest score that their money "
        "could have bought, by the strategy's own measure."
    ]


def open_round(result: Mapping[str, Any], arm: str) -> tuple[int, int, int] | None:
    """The newest round while it is being annotated: its number, items annotated, items asked for."""
    found = result["arms"][arm]
    if not found["selections"]:
        return None
    newest = found["selections"][-1]
    done = items_of(line for line in found["spending"] if line["round"] == newest["round"])
    asked = len(newest["items"])
    return None if done >= asked else (newest["round"], done, asked)


def by_round(lines: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """The ledger's lines of spending, sorted into rounds."""
    found: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        found[line["round"]].append(line)
    return dict(found)


def items_of(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many items these lines are about: everybody pays for reading once."""
    return sum(line["items"] for line in lines if line["what"] == READING)


def labels_of(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many labels these lines paid for: two people's answers on one item are two."""
    return sum(line["answers"] for line in lines if line["what"] != READING)


def bought_words(lines: list[Mapping[str, Any]]) -> str:
    """What these lines paid for.

    >>> bought_words([{"what": "reading", "items": 2}, {"what": "intent", "items": 1, "answers": 1}])
    '2 items and 1 label'
    """
    return f"{counted(items_of(lines), 'item')} and {counted(labels_of(lines), 'label')}"


def _scores(result: Mapping[str, Any], found: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """The scores of each round's model: on the test set, or without one on the audit slice that it answered."""
    audited = {p["round"]: {n: s["score"] for n, s in p["scores"].items()} for p in found["audit"]}
    tested = {
        r["round"]: {n: r["test"][n][t["metric"]] for n, t in result["tasks"].items()}
        for r in found["rounds"]
        if r["test"]
    }
    return tested or audited


def _sum(lines: Iterable[Mapping[str, Any]], what: str) -> int:
    return sum(int(line[what]) for line in lines)


def _off(estimate: int, actual: int) -> str | None:
    """By how much an estimate was off."""
    if estimate == actual:
        return None
    if not estimate:
        return "not foreseen"
    off = 100 * (actual - estimate) / estimate
    return f"{abs(off):.1f}{THIN}% {'over' if off > 0 else 'under'} the estimate"
