"""The learning curves, and the savings against random selection."""

from __future__ import annotations

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.campaign.results import RunResult
from bursar.campaign.savings import saved_against_random
from bursar.report.run_charts import drawn_slices, learning_charts
from bursar.report.summary import comparison_words, saved_tile, saved_words, saving, summarise
from bursar.report.tables import audit_table, curve_table
from bursar.report.wording import THIN
from bursar.web.dashboard import round_phrase
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("curves", "How good is the model?", link="Learning", order=10)
def curves(view: RunView) -> Section:
    """Charts of the scores by money spent, and what was saved."""
    result = view.result
    panels = learning_charts(result)
    if not panels:
        return {"empty": _no_curves(view)}
    slices, drawn = view.arm.audit, drawn_slices(result)
    note = ""
    if drawn:
        where = "Light circles" if curve_table(result).rows else "Points"
        note = (
            f"{where} are audit slices: the model’s score on randomly drawn items, taken before they were labelled. It "
            f"is unbiased, and has a 90{THIN}% interval."
        )
    elif slices:
        note = f"Audit slices with fewer than {FEWEST_FOR_INTERVAL} items are shown in the table only."
    tables = {"Points of the curves": curve_table(result), "Audit slices": audit_table(result)}
    words = [comparison_words(result) if len(result.arms) > 1 else "", saved_words(result)]
    return {
        "words": [text for text in [*words, *summarise(result).cautions] if text],
        "note": note,
        "panels": [chart.to_json() for chart in panels.values()],
        "saved": _saved_rows(result),
        "tables": [table_section(title, table) for title, table in tables.items() if table.rows],
    }


def _no_curves(view: RunView) -> str:
    if not view.arm.rounds:
        return f"The curve starts with the first model. Answer {round_phrase(view.state.round)} under Annotate."
    if view.result.config.audit.share:
        return "The first audit slice is scored when this round is answered. The curve starts there."
    return (
        "There is no test set and no audit slice, so the model’s score cannot be measured without bias. Give the audit "
        "a share of the next round under Decide to measure the score and the savings."
    )


def _saved_rows(result: RunResult) -> list[Section]:
    """Savings against random selection, with an interval if there is one; empty if unknown."""
    found, shown = saved_against_random(result), saved_tile(result)
    if found is None or shown is None or (found.share is None and found.low is None):
        return []
    ends = [end if end is not None else found.share or 0.0 for end in (found.low, found.high)]
    low, high = (max(-1.0, end) for end in ends)
    middle = None if found.share is None else max(-1.0, found.share)
    name = "Test curves" if found.by == "curves" else "Audit"
    note = "one run, no interval" if found.by == "curves" else f"{saving(ends[0])} to {saving(ends[1])}"
    return [{"name": name, "value": shown[0], "note": note, "low": low, "middle": middle, "high": high}]
