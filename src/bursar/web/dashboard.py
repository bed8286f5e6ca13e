"""The contents of the watch page: turns the result and the state of a run into sentences, charts and tables.

A section without data says why under ``empty``, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.campaign.savings import saved_against_random
from bursar.ledger.records import READING
from bursar.report.calibration import calibration_table, calibration_words, reliability_charts, reliability_table
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
    spending_chart,
    spending_totals,
)
from bursar.report.saved import saved_tile, saved_words, saving
from bursar.report.spending import WHY, round_name, spending_words
from bursar.report.splits import split_table, split_words
from bursar.report.stopping import SOURCES, stopping_charts, stopping_note, stopping_table, stopping_words
from bursar.report.summary import comparison_words, summarise
from bursar.report.tables import Table, audit_table, curve_table
from bursar.report.wording import THIN, Money, Scale, percent, sentence
from bursar.web.dashboard_now import Section, answered_clause, headline, lead, round_phrase, tile, tiles, train


def dashboard(result: Mapping[str, Any], state: Mapping[str, Any], folder: str = "PROJECT") -> dict[str, Any]:
    """The watch page of a run. ``state`` is that of the API; ``folder`` is used in suggested commands."""
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
    """A summary of the results; empty before the first model."""
    return list(summarise(result).lead[:2]) if result["arms"][result["strategy"]]["rounds"] else []


def _curves(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    panels, main = learning_charts(result), result["arms"][result["strategy"]]
    if not panels:
        return {"empty": _no_curves(result, state)}
    slices, drawn = main["audit"], drawn_slices(result)
    note = ""
    if drawn:
        where = "Light circles" if curve_table(result).rows else "Points"
        note = (
            f"{where} are audit slices: the model’s score on randomly drawn items, taken before they were labelled. It "
            f"is unbiased, and has a 90{THIN}% interval."
        )
    elif slices:
        note = f"Audit slices with fewer than {FEWEST_FOR_INTERVAL} items are shown in the table only."
    tables = [
        _table("Points of the curves", curve_table(result)),
        _table("Audit slices", audit_table(result)),
    ]
    words = [comparison_words(result) if len(result["arms"]) > 1 else "", saved_words(result)]
    return {
        "words": [text for text in [*words, *summarise(result).cautions] if text],
        "note": note,
        "panels": [chart.to_json() for chart in panels.values()],
        "saved": _saved_rows(result),
        "tables": [table for table in tables if table["rows"]],
    }


def _no_curves(result: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    if not result["arms"][result["strategy"]]["rounds"]:
        return f"The curve starts with the first model. Answer {round_phrase(state['round'])} under Annotate."
    if result["config"]["audit"]["share"]:
        return "The first audit slice is scored when this round is answered. The curve starts there."
    return (
        "There is no test set and no audit slice, so the model’s score cannot be measured without bias. Give the audit "
        "a share of the next round under Decide to measure the score and the savings."
    )


def _saved_rows(result: Mapping[str, Any]) -> list[Section]:
    """Savings against random selection, with an interval if there is one; empty if unknown."""
    found, shown = saved_against_random(result), saved_tile(result)
    if found is None or shown is None or (found["share"] is None and found["low"] is None):
        return []
    ends = [found["share"] if found[key] is None else found[key] for key in ("low", "high")]
    low, high = (max(-1.0, end) for end in ends)
    middle = None if found["share"] is None else max(-1.0, found["share"])
    name = "Test curves" if found["by"] == "curves" else "Audit"
    note = "one run, no interval" if found["by"] == "curves" else f"{saving(ends[0])} to {saving(ends[1])}"
    return [{"name": name, "value": shown[0], "note": note, "low": low, "middle": middle, "high": high}]


def _spending(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    chart = spending_chart(result)
    if chart is None:
        return {"empty": "Nothing has been spent yet. Every answer adds to the spending."}
    return {
        "words": spending_words(result),
        "chart": chart.to_json(),
        "totals": spending_totals(result),
        "audited": any(bar.hatched for bar in chart.bars),
        "tables": [_table("All charges", _amounts(result))],
    }


def _amounts(result: Mapping[str, Any]) -> Table:
    """All charges by round, purpose and task."""
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


def _next(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    """Whether the next round can be previewed, and its predicted gain."""
    main = result["arms"][result["strategy"]]
    part: Section = {"may": False, "gain": _gain(result), "empty": None}
    if state["phase"] == "ended":
        why = f": {state['why']}" if state["why"] else ""
        part["empty"] = f"There is no next round{why}. To continue, raise the budget or the rounds under Decide."
    elif not main["rounds"]:
        part["empty"] = f"There is no model yet. It is trained once {answered_clause(state['round'])}."
    else:
        part["may"] = True
    return part


def _gain(result: Mapping[str, Any]) -> Section | None:
    """The gain predicted for another round."""
    main = result["arms"][result["strategy"]]
    advice, ahead = main.get("stopping"), main.get("forecast")
    if not advice or ahead is None:
        return None
    newest = advice[-1]
    if newest["gain"] is None:
        return tile("Predicted gain", "–", f"not known yet: {newest['why']}")
    scale = Scale.of(*(task["metric"] for task in result["tasks"].values()))
    ends = [f"{100 * newest[key]:.1f}" if scale.percent else f"{newest[key]:.3f}" for key in ("low", "high")]
    note = (
        f"of {SOURCES[ahead['source']]} for another {Money.of(result).show(round(ahead['next_money']))}; "
        f"{ends[0]} to {ends[1]} in {percent(result['config']['stopping']['interval'])} of cases"
    )
    return tile("Predicted gain", f"+{scale.difference(newest['gain'])}", note)


def _split(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    """Whether there is a budget to split, and how much."""
    tasks, main, money = result["tasks"], result["arms"][result["strategy"]], Money.of(result)
    if len(tasks) < 2:
        return {"empty": "There is only one task, so there is nothing to split."}
    if not main["rounds"]:
        return {"empty": f"Advice needs labels of every task. It is available once {answered_clause(state['round'])}."}
    by_item = result["config"]["budget"]["counts"] == "items"
    left = 0 if by_item or state["phase"] == "ended" else max(0, state["budget"] - state["spent"])
    given = [body["budget"] for body in main["selections"] if body["budget"]] if not by_item else []
    units, why = (left, "the rest of the budget") if left else (main["spent"], "the amount spent so far")
    if given and not left:
        units, why = given[-1], "the budget of the last round"
    digits = min(2, max(0, -int(money.unit.normalize().as_tuple().exponent)))
    past = split_table(result)
    return {
        "empty": None,
        "amount": f"{money.amount(units):.{digits}f}",
        "why": why,
        "past": split_words(result),
        "tables": [] if past is None else [_table("How each round was split", past)],
    }


def _trust(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    charts = reliability_charts(result)
    if not charts:
        if not result["arms"][result["strategy"]]["rounds"]:
            return {"empty": f"There is no model yet. Answer {round_phrase(state['round'])} first."}
        return {
            "empty": "Calibration is measured on development or test items, which are not used for training. This "
            "project has none."
        }
    return {
        "words": calibration_words(result),
        "panels": [chart.to_json() for chart in charts.values()],
        "tables": [
            _table("Confidence and accuracy", calibration_table(result)),
            _table("Points of the diagrams", reliability_table(result)),
        ],
    }


def _stopping(result: Mapping[str, Any], state: Mapping[str, Any]) -> Section:
    words = stopping_words(result)
    if not words:
        return {"empty": f"Advice starts with the first model. Answer {round_phrase(state['round'])} under Annotate."}
    newest = result["arms"][result["strategy"]]["stopping"][-1]
    verdict = "unknown" if newest["gain"] is None else "stop" if newest["stop"] else "go on"
    words = [sentence(words[0].removeprefix("Go on: ").removeprefix("Stop: ")), *words[1:]]  # shown as the verdict
    charts = stopping_charts(result)
    return {
        "verdict": verdict,
        "words": words,
        "note": stopping_note(result) if charts else "",
        "panels": [chart.to_json() for chart in charts],
        "tables": [_table("Advice after every round", stopping_table(result))],
    }


def _oracle(result: Mapping[str, Any], state: Mapping[str, Any], folder: str) -> Section:
    answer, command = oracle_of(result), f"bursar oracle {folder}"
    if answer is not None:
        return {
            "words": oracle_words(answer),
            "note": oracle_note(answer),
            "chart": oracle_chart(answer, list(result["arms"])).to_json(),
            "more": [search_words(answer), *oracle_cautions(answer)],
            "tables": [_table("Comparison of orders", oracle_table(answer))],
        }
    if (result.get("oracle") or {}).get("refused"):
        return {"empty": f"Not available: {str(result['oracle']['refused']).rstrip('.')}."}
    if state["phase"] != "ended":
        return {
            "empty": "Available once the campaign has ended, if the labels of the whole pool are known.",
        }
    return {
        "empty": "The best labelling order has not been computed yet. The search needs the labels of the whole pool, "
        "as in a simulated run, and takes a while. Its result then appears here. Stop this server and run:",
        "command": command,
    }


def _table(title: str, table: Table) -> Section:
    return {"title": title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
