"""What was spent on what."""

from __future__ import annotations

from bursar.ledger.records import READING
from bursar.report.run_charts import spending_chart, spending_totals
from bursar.report.spending import WHY, round_name, spending_words
from bursar.report.tables import Table
from bursar.report.wording import Money
from bursar.web.panels.panel import RunView, Section, panel, table_section

AUDITED = "Hatched: audit slices, drawn at random for an unbiased score."


@panel("spending", "Where did the money go?", link="Spending", order=20)
def spending(view: RunView) -> Section:
    """A chart and a table of all charges."""
    result = view.result
    chart = spending_chart(result)
    if chart is None:
        return {"empty": "Nothing has been spent yet. Every answer adds to the spending."}
    return {
        "words": spending_words(result),
        "chart": chart.to_json(),
        "totals": spending_totals(result),
        "note": AUDITED if any(bar.hatched for bar in chart.bars) else "",
        "tables": [table_section("All charges", _amounts(view))],
    }


def _amounts(view: RunView) -> Table:
    """All charges by round, purpose and task."""
    money, columns = Money.of(view.result), ("Round", "Why", "For", "Items", "Estimated", "Paid")
    order = {name: at for at, name in enumerate([*WHY, READING, *view.result.tasks])}
    rows = []
    for line in sorted(view.arm.spending, key=lambda x: (x.round, order.get(x.purpose, -1), order.get(x.what, -1))):
        amounts = f"{line.items:,}", money.brief(line.estimate), money.brief(line.actual)
        rows.append((round_name(line.round), WHY.get(line.purpose, line.purpose), line.what, *amounts))
    return Table(columns, tuple(rows))
