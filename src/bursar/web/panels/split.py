"""Advice on splitting the budget between tasks."""

from __future__ import annotations

from bursar.report.tables import split_table, split_words
from bursar.report.wording import Money
from bursar.web.dashboard import answered_clause
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("split", "How should the budget be split between tasks?", link="Split", order=40)
def budget_split(view: RunView) -> Section:
    """Whether there is a budget to split, and how much."""
    result, state = view.result, view.state
    tasks, main, money = result.tasks, view.arm, Money.of(result)
    if len(tasks) < 2:
        return {"empty": "There is only one task, so there is nothing to split."}
    if not main.rounds:
        return {"empty": f"Advice needs labels of every task. It is available once {answered_clause(state.round)}."}
    left = 0 if view.by_item or state.phase == "ended" else max(0, state.budget - state.spent)
    given = [body.budget for body in main.selections if body.budget] if not view.by_item else []
    units, why = (left, "the rest of the budget") if left else (main.spent, "the amount spent so far")
    if given and not left:
        units, why = given[-1], "the budget of the last round"
    digits = min(2, max(0, -int(money.unit.normalize().as_tuple().exponent)))
    past = split_table(result)
    return {
        "empty": None,
        "amount": f"{money.amount(units):.{digits}f}",
        "why": why,
        "past": split_words(result),
        "tables": [] if past is None else [table_section("How each round was split", past)],
    }
