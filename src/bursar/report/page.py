"""The page: the result of a run and its corpus in, one HTML file out that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bursar.campaign import Run
from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.corpus import Corpus
from bursar.corpus.formats.format import replacing
from bursar.laws.joint_vs_single import current_together
from bursar.report.charts import Chart, thing_look
from bursar.report.curves import curves_of
from bursar.report.items import ShownItem, shown_item
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
    confidence_charts,
    drawn_slices,
    learning_charts,
    reliability_charts,
    spending_chart,
)
from bursar.report.spending import round_rows, spending_words
from bursar.report.splits import split_table, split_words
from bursar.report.stopping import stopping_charts, stopping_note, stopping_table, stopping_words
from bursar.report.story import tell, trust_words
from bursar.report.tables import arms_table, audit_table, curve_table, reliability_table, settings, trust_table
from bursar.report.together import Together
from bursar.report.wording import sentence, strategy_name

REPORT_FILE = "report.html"
MOST_COLUMNS = 6  # of tiles


def write_report(run: Run, path: Path | None = None) -> Path:
    """Write a run's report, whole or not at all, into its folder unless another place is given."""
    path = path or run.folder / REPORT_FILE
    page = render(run.result() | {"together": current_together(run)}, run.parts.corpus)
    with replacing(path) as file:
        file.write(page)
    return path


def render(result: Mapping[str, Any], corpus: Corpus) -> str:
    """The page as a text; the same result gives the same page."""
    learning, spending, confidence = learning_charts(result), spending_chart(result), confidence_charts(result)
    stopping = stopping_charts(result) if stopping_words(result) else []
    answer, together = oracle_of(result), Together.of(result)
    oracle = oracle_chart(answer, list(result["arms"])) if answer else None
    task_keys = {name: str(k) for k, name in enumerate(result["tasks"])}
    curves = {f"curve-{task_keys.get(name, 'mean')}": chart for name, chart in learning.items()}
    reliability = {f"reliability-{task_keys[name]}": chart for name, chart in reliability_charts(result).items()}
    advice = {f"stopping-{k}": chart for k, chart in enumerate(stopping)}
    charts = (
        curves
        | advice
        | reliability
        | {f"confidence-{round}-{task_keys[name]}": chart for (round, name), chart in confidence.items()}
        | ({"spending": spending} if spending else {})
        | ({"oracle": oracle} if oracle else {})
        | ({"together": together.chart} if together else {})
    )
    story = tell(result)
    return fill(
        "page.html",
        ["page.css"],
        charts,
        title=result["name"],
        strategy=sentence(strategy_name(result)),
        story=story,
        columns=math.ceil(len(story.tiles) / math.ceil(len(story.tiles) / MOST_COLUMNS)),
        curves=curves,
        audit_note=_audit_note(result),
        arms=arms_table(result),
        curve_table=curve_table(result),
        audit_table=audit_table(result),
        stopping=advice,
        stopping_words=stopping_words(result),
        stopping_note=stopping_note(result) if stopping else "",
        stopping_table=stopping_table(result),
        oracle_words=oracle_words(answer) if answer else [],
        oracle_note=oracle_note(answer) if answer else "",
        oracle_made=[search_words(answer), *oracle_cautions(answer)] if answer else [],
        oracle_table=oracle_table(answer) if answer else None,
        random_orders=len(answer["random_curves"]) if answer else 0,
        together=together,
        things=[(sentence(name), thing_look(k)) for k, name in enumerate(["reading", *result["tasks"]])],
        audited=any(line["purpose"] == "audit" for line in result["arms"][result["strategy"]]["spending"]),
        spending_words=spending_words(result),
        rounds=round_rows(result, result["strategy"]),
        split_table=split_table(result),
        split_words=split_words(result),
        tasks=result["tasks"],
        views=_views(result, corpus),
        reliability=reliability,
        trust_words=trust_words(result),
        trust_table=trust_table(result),
        reliability_table=reliability_table(result),
        settings=settings(result, corpus),
    )


def fill(template: str | Path, styles: Sequence[str], charts: Mapping[str, Chart], **values: Any) -> str:
    """Render a self-contained page. A template is named if it is one of ours, else given by its path."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = bundled("static/elements.js", "static/charts.js", "page.js")
    found = (
        environment.get_template(template)
        if isinstance(template, str)
        else environment.from_string(template.read_text(encoding="utf-8"))
    )
    return found.render(
        style=Markup("\n".join(_own_file(style) for style in (*styles, "static/charts.css"))),
        data=Markup(embedded({key: chart.to_json() for key, chart in charts.items()})),
        charts=charts,
        script=Markup(script),
        policy=_policy(script),
        **values,
    )


def bundled(*names: str) -> str:
    """Several scripts as one: each imports only from those before it."""
    return "\n".join(re.sub(r"^import .*;\n", "", _own_file(name), flags=re.MULTILINE) for name in names)


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or begins a comment.

    >>> embedded({"text": "</script><!-- \\u2028"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003c!-- \\\\u2028"}'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# -- parts of the page -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class View:
    """What the model of one round was sure of."""

    round: int
    name: str
    means: tuple[str, ...]  # of the pool's confidence, a task each
    least: tuple[ShownItem, ...]
    most: tuple[ShownItem, ...]


def _audit_note(result: Mapping[str, Any]) -> str:
    """What the light points in the charts are, or why there are none."""
    slices, drawn = result["arms"][result["strategy"]]["audit"], drawn_slices(result)
    if not slices:
        return ""
    if not drawn:
        return (
            f"The audit slices hold fewer than {FEWEST_FOR_INTERVAL} items each, too few for an interval that means "
            "anything, so they are not drawn; the table has them."
        )
    meaning = "the model's score on random items, taken before their labels were known, with a 90\u202f% interval"
    if not curves_of(result):
        few = min(part["items"] for part in slices) < FEWEST_FOR_INTERVAL
        caution = f" Slices of fewer than {FEWEST_FOR_INTERVAL} items are little more than a guess." if few else ""
        return f"There is no test set. The points are audit slices: {meaning}.{caution}"
    return f"Light circles are audit slices: {meaning}; some reach beyond the chart, the table has them in full."


def _views(result: Mapping[str, Any], corpus: Corpus) -> list[View]:
    return [
        View(
            record["round"],
            "the seed items" if record["round"] == 0 else f"round {record['round']}",
            tuple(f"{record['mean'][name]:.2f}" for name in result["tasks"]),
            tuple(shown_item(example, corpus) for example in record["least"]),
            tuple(shown_item(example, corpus) for example in record["most"]),
        )
        for record in result["arms"][result["strategy"]]["confidence"]
    ]


# -- files and their guard -------------------------------------------------------------------------------------------
def _own_file(name: str) -> str:
    return (files("bursar.report") / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """No network at all, and no script but our own: even a text that got through as markup could not run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src 'sha256-{digest}'; {rest}"
