"""The best labelling order, if it was computed."""

from __future__ import annotations

from bursar.report.oracle import (
    oracle_cautions,
    oracle_chart,
    oracle_note,
    oracle_of,
    oracle_table,
    oracle_words,
    search_words,
)
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("oracle", "How close is it to the best order?", link="Best order", order=70)
def best_order(view: RunView) -> Section:
    """A comparison of the campaign with the best order."""
    result, state = view.result, view.state
    answer, command = oracle_of(result), f"bursar oracle {view.folder}"
    if answer is not None:
        return {
            "words": oracle_words(answer),
            "note": oracle_note(answer),
            "chart": oracle_chart(answer, list(result.arms)).to_json(),
            "more": [search_words(answer), *oracle_cautions(answer)],
            "tables": [table_section("Comparison of orders", oracle_table(answer))],
        }
    if refused := (result.oracle or {}).get("refused"):
        return {"empty": f"Not available: {str(refused).rstrip('.')}."}
    if state.phase != "ended":
        return {
            "empty": "Available once the campaign has ended, if the labels of the whole pool are known.",
        }
    return {
        "empty": "The best labelling order has not been computed yet. The search needs the labels of the whole pool, "
        "as in a simulated run, and takes a while. Its result then appears here. Stop this server and run:",
        "command": command,
    }
