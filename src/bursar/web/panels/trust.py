"""The calibration of the model."""

from __future__ import annotations

from bursar.report.calibration import calibration_table, calibration_words, reliability_charts, reliability_table
from bursar.web.dashboard import round_phrase
from bursar.web.panels.panel import RunView, Section, panel, table_section


@panel("trust", "Can the model’s confidence be trusted?", link="Confidence", order=50)
def calibration(view: RunView) -> Section:
    """Reliability diagrams."""
    result, state = view.result, view.state
    charts = reliability_charts(result)
    if not charts:
        if not view.arm.rounds:
            return {"empty": f"There is no model yet. Answer {round_phrase(state.round)} first."}
        where = "development or test items, which are not used for training"
        return {"empty": f"Calibration is measured on {where}. This project has none."}
    return {
        "words": calibration_words(result),
        "panels": [chart.to_json() for chart in charts.values()],
        "note": "On the dashed line, confidence equals accuracy. Bars show the number of items.",
        "tables": [
            table_section("Confidence and accuracy", calibration_table(result)),
            table_section("Points of the diagrams", reliability_table(result)),
        ],
    }
