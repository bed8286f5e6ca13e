"""What the watch page shows: the result of a run and where it stands in, sentences and charts out.

Every part either has something to show, or says under ``empty`` why not and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.campaign.savings import saved_against_random
from bursar.ledger.records import READING
from bursar.report.charts import thing_look
from bursar.report.oracle import (
    oracle_cautions,
    oracle_chart,
    oracle_note,
    oracle_of,
    oracle_table,
    oracle_words,
    search_words,
)
from bursar.report.run_charts import (
    drawn_slices,
    learning_charts,
    reliability_charts,
    spending_chart,
    spending_totals,
)
from bursar.report.saved import saved_tile, saved_words, saving
from bursar.report.spending import WHY, round_name, spending_words
from bursar.report.splits import split_table, split_words
from bursar.report.stopping import SOURCES, stopping_charts, stopping_note, stopping_table, stopping_words
from bursar.report.story import (
    comparison_words,
    tell,
    trust_words,
)
from bursar.report.tables import Table, audit_table, curve_table, reliability_table, trust_table
from bursar.report.wording import THIN, Money, Scale, percent, sentence
from bursar.web.dashboard_now import Part, answered, headline, lead, tile, tiles, train, which


def dashboard(result: Mapping[str, Any], state: Mapping[str, Any], folder: str = "PROJECT") -> dict[str, Any]:
    """The page of a run: ``state`` as the API shows it, ``folder`` as somebody would type it."""
    money = Money.of(result)
    return {
        "name": result["name"],
        "money": {"unit": f"{money.unit.normalize():f}", "currency": money.currency},
        "by_item": result["config"]["budget"]["counts"] == "items",
        "looks": {name: thing_look(at) for at, name in enumerate(result["tasks"], start=1)},
        "headline": headline(result, state),
        "lead": lead(result, state),
        "story": _story(result),
        "tiles": tiles(result, state),
        "train": train(state),
        "curves": _curves(result, state),
        "spending": _spending(result, state),
        "next": _next(result, state),
        "split": _split(result, state),
        "trust": _trust(result, state),
        "stopping": _stopping(result, state),
        "oracle": _oracle(result, state, folder),
    }


# -- sections --------------------------------------------------------------------------------------------------------
def _story(result: Mapping[str, Any]) -> list[str]:
    """What came of it so far; nothing before the first model."""
    return list(tell(result).lead[:2]) if result["arms"][result["strategy"]]["rounds"] else []


def _curves(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    panels, main = learning_charts(result), result["arms"][result["strategy"]]
    if not panels:
        return {"empty": _no_curves(result, state)}
    slices, drawn = main["audit"], drawn_slices(result)
    note = ""
    if drawn:
        where = "Light circles" if curve_table(result).rows else "Points"
        note = (
            f"{where} are audit slices: the model’s score on items drawn at random, taken before their labels were "
            f"known, so that it is unbiased; with a 90{THIN}% interval."
        )
    elif slices:
        note = f"Audit slices of fewer than {FEWEST_FOR_INTERVAL} items are in the table only."
    tables = [
        _table("Points of the curves", curve_table(result)),
        _table("Audit slices", audit_table(result)),
    ]
    words = [comparison_words(result) if len(result["arms"]) > 1 else "", saved_words(result)]
    return {
        "words": [text for text in [*words, *tell(result).cautions] if text],
        "note": note,
        "panels": [chart.to_json() for chart in panels.values()],
        "saved": _saved_rows(result),
        "tables": [table for table in tables if table["rows"]],
    }


def _no_curves(result: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    if not result["arms"][result["strategy"]]["rounds"]:
        return f"The first point comes with the first model: answer {which(state['round'])} under Annotate."
    if result["config"]["audit"]["share"]:
        return "The first audit slice is scored when this round is answered; curves begin there."
    return (
        "There is neither a test set nor an audit slice, so nobody can say without bias how good the model is. Give "
        "the audit a share of the next round under Decide: items drawn at random tell it, and what was saved."
    )


def _saved_rows(result: Mapping[str, Any]) -> list[Part]:
    """What was saved against random, as a share with its interval where it has one; none where nothing is known."""
    found, shown = saved_against_random(result), saved_tile(result)
    if found is None or shown is None or (found["share"] is None and found["low"] is None):
        return []
    ends = [found["share"] if found[key] is None else found[key] for key in ("low", "high")]
    low, high = (max(-1.0, end) for end in ends)
    middle = None if found["share"] is None else max(-1.0, found["share"])
    name = "Test curves" if found["by"] == "curves" else "Audit"
    note = "one run, no interval" if found["by"] == "curves" else f"{saving(ends[0])} to {saving(ends[1])}"
    return [{"name": name, "value": shown[0], "note": note, "low": low, "middle": middle, "high": high}]


def _spending(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    chart = spending_chart(result)
    if chart is None:
        return {"empty": "Nothing has been paid for yet: every answer is, from the first on."}
    return {
        "words": spending_words(result),
        "chart": chart.to_json(),
        "totals": spending_totals(result),
        "audited": any(bar.hatched for bar in chart.bars),
        "tables": [_table("Every amount", _amounts(result))],
    }


def _amounts(result: Mapping[str, Any]) -> Table:
    """The ledger's lines: what each round paid for, and why."""
    money, columns = Money.of(result), ("Round", "Why", "For", "Items", "Estimated", "Paid")
    order = {name: at for at, name in enumerate([*WHY, READING, *result["tasks"]])}
    lines = sorted(
        result["arms"][result["strategy"]]["spending"],
        key=lambda line: (line["round"], order.get(line["purpose"], -1), order.get(line["what"], -1)),
    )
    rows = [
        (
            round_name(line["round"]),
            WHY.get(line["purpose"], line["purpose"]),
            line["what"],
            f"{line['items']:,}",
            money.brief(line["estimate"]),
            money.brief(line["actual"]),
        )
        for line in lines
    ]
    return Table(columns, tuple(rows))


def _next(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    """Whether the next round can be foreseen, and what it is expected to bring."""
    main = result["arms"][result["strategy"]]
    part: Part = {"may": False, "gain": _gain(result), "empty": None}
    if state["phase"] == "ended":
        why = f": {state['why']}" if state["why"] else ""
        part["empty"] = f"No round follows{why}. With more money or rounds, set under Decide, the campaign goes on."
    elif not main["rounds"]:
        part["empty"] = f"There is no model yet to choose by. It is trained when {answered(state['round'])}."
    else:
        part["may"] = True
    return part


def _gain(result: Mapping[str, Any]) -> Part | None:
    """What the curve of scores promises of another round."""
    main = result["arms"][result["strategy"]]
    told, ahead = main.get("stopping"), main.get("forecast")
    if not told or ahead is None:
        return None
    newest = told[-1]
    if newest["gain"] is None:
        return tile("Predicted gain", "–", f"no telling yet: {newest['why']}")
    scale = Scale.of(*(task["metric"] for task in result["tasks"].values()))
    ends = [f"{100 * newest[key]:.1f}" if scale.percent else f"{newest[key]:.3f}" for key in ("low", "high")]
    note = (
        f"of {SOURCES[ahead['source']]} for another {Money.of(result).show(round(ahead['next_money']))}; "
        f"{ends[0]} to {ends[1]} in {percent(result['config']['stopping']['interval'])} of cases"
    )
    return tile("Predicted gain", f"+{scale.difference(newest['gain'])}", note)


def _split(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    """Whether there is something to split, and how much money would be."""
    tasks, main, money = result["tasks"], result["arms"][result["strategy"]], Money.of(result)
    if len(tasks) < 2:
        return {"empty": "There is one task, so all money is for it: nothing to split."}
    if not main["rounds"]:
        return {"empty": f"It takes labels of every task to tell. Ask when {answered(state['round'])}."}
    by_item = result["config"]["budget"]["counts"] == "items"
    left = 0 if by_item or state["phase"] == "ended" else max(0, state["budget"] - state["spent"])
    given = [body["budget"] for body in main["selections"] if body["budget"]] if not by_item else []
    units, why = (left, "what is left of the budget") if left else (main["spent"], "as much as was spent so far")
    if given and not left:
        units, why = given[-1], "as much as the last round had"
    digits = max(0, -int(money.unit.normalize().as_tuple().exponent))
    past = split_table(result)
    return {
        "empty": None,
        "amount": f"{money.amount(units):.{digits}f}",
        "why": why,
        "past": split_words(result),
        "tables": [] if past is None else [_table("How each round was split", past)],
    }


def _trust(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    charts = reliability_charts(result)
    if not charts:
        if not result["arms"][result["strategy"]]["rounds"]:
            return {"empty": f"There is no model yet to look at: answer {which(state['round'])} first."}
        return {
            "empty": "It takes items with known labels that the model has not learned from, development or test items, "
            "and this project has none."
        }
    return {
        "words": trust_words(result),
        "panels": [chart.to_json() for chart in charts.values()],
        "tables": [
            _table("How sure, and how right", trust_table(result)),
            _table("Points of the diagrams", reliability_table(result)),
        ],
    }


def _stopping(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    words = stopping_words(result)
    if not words:
        return {"empty": f"The first advice comes with the first model: answer {which(state['round'])} under Annotate."}
    newest = result["arms"][result["strategy"]]["stopping"][-1]
    verdict = "unknown" if newest["gain"] is None else "stop" if newest["stop"] else "go on"
    words = [sentence(words[0].removeprefix("Go on: ").removeprefix("Stop: ")), *words[1:]]  # the verdict says so
    charts = stopping_charts(result)
    return {
        "verdict": verdict,
        "words": words,
        "note": stopping_note(result) if charts else "",
        "panels": [chart.to_json() for chart in charts],
        "tables": [_table("Advice after every round", stopping_table(result))],
    }


def _oracle(result: Mapping[str, Any], state: Mapping[str, Any], folder: str) -> Part:
    answer, command = oracle_of(result), f"bursar oracle {folder}"
    if answer is not None:
        return {
            "words": oracle_words(answer),
            "note": oracle_note(answer),
            "chart": oracle_chart(answer, list(result["arms"])).to_json(),
            "more": [search_words(answer), *oracle_cautions(answer)],
            "tables": [_table("Orders side by side", oracle_table(answer))],
        }
    if (result.get("oracle") or {}).get("refused"):
        return {"empty": f"It cannot be told: {str(result['oracle']['refused']).rstrip('.')}."}
    if state["phase"] != "ended":
        return {
            "empty": "That can be looked for when the campaign is over, if the labels of the whole pool are known.",
        }
    return {
        "empty": "How far the strategy came from random to the best order of labelling has not been looked for. It "
        "needs the labels of the whole pool, as a simulated run has them, and takes a while; the page then shows what "
        "it finds. End this server, and run:",
        "command": command,
    }


def _table(title: str, table: Table) -> Part:
    return {"title": title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
