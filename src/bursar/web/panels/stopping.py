"""Advice on when to stop."""

from __future__ import annotations

from bursar.report.stopping import stopping_charts, stopping_note, stopping_table, stopping_words
from bursar.report.wording import sentence
from bursar.web.dashboard import round_phrase
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("stopping", "Is it time to stop?", link="Stopping", order=60)
def stopping(view: RunView) -> Section:
    """A verdict, with its reasons and the forecast."""
    result, state = view.result, view.state
    words = stopping_words(result)
    if not words:
        return {"empty": f"Advice starts with the first model. Answer {round_phrase(state.round)} under Annotate."}
    newest = view.arm.stopping[-1]
    verdict = "unknown" if newest.gain is None else "stop" if newest.stop else "go on"
    words = [sentence(words[0].removeprefix("Go on: ").removeprefix("Stop: ")), *words[1:]]  # shown as the verdict
    charts = stopping_charts(result)
    return {
        "verdict": verdict,
        "words": words,
        "note": stopping_note(result) if charts else "",
        "panels": [chart.to_json() for chart in charts],
        "tables": [table_section("Advice after every round", stopping_table(result))],
    }
