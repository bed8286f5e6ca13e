"""The best labelling order, if it was computed."""

from __future__ import annotations

from bursar.report import oracle
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("oracle", "How close is it to the best order?", link="Best order", order=70)
def best_order(view: RunView) -> Section:
    """A comparison of the campaign with the best order."""
    result, answer = view.result, oracle.oracle_of(view.result)
    if answer is not None:
        return {
            "words": oracle.oracle_words(answer),
            "note": oracle.oracle_note(answer),
            "chart": oracle.oracle_chart(answer, list(result.arms)).to_json(),
            "more": [oracle.search_words(answer), *oracle.oracle_cautions(answer)],
            "tables": [table_section("Comparison of orders", oracle.oracle_table(answer))],
        }
    if refused := (result.oracle or {}).get("refused"):
        return {"empty": f"Not available: {str(refused).rstrip('.')}."}
    if view.state.phase != "ended":
        return {"empty": "Available once the campaign has ended, if the labels of the whole pool are known."}
    empty = (
        "The best labelling order has not been computed yet. The search needs the labels of the whole pool, as in a "
        "simulated run, and takes a while. Its result then appears here. Stop this server and run:"
    )
    return {"empty": empty, "command": f"bursar oracle {view.folder}"}
