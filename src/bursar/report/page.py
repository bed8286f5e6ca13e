"""The page: the result of a run and its corpus in, one HTML file out that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
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
from bursar.report.curves import curves_of
from bursar.report.figures import (
    HEIGHTS,
    confidence_figures,
    drawn_slices,
    learning_figures,
    reliability_figures,
    spending_figure,
    thing_colour,
)
from bursar.report.items import ShownItem, shown_item
from bursar.report.oracle import (
    oracle_cautions,
    oracle_figure,
    oracle_note,
    oracle_of,
    oracle_table,
    oracle_words,
    search_words,
)
from bursar.report.spending import round_rows, spending_words
from bursar.report.splits import split_table, split_words
from bursar.report.stopping import stopping_figure, stopping_note, stopping_table, stopping_words
from bursar.report.story import tell, trust_of, trust_words
from bursar.report.tables import arms_table, audit_table, curve_table, reliability_table, settings, trust_table
from bursar.report.together import Together
from bursar.report.wording import Scale, arm_name, listed, metric_name, sentence, strategy_name

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
    learning = learning_figures(result)
    spending, confidence = spending_figure(result), confidence_figures(result)
    stopping, oracle, answer = stopping_figure(result), oracle_figure(result), oracle_of(result)
    together = Together.of(result)
    task_keys = {name: str(k) for k, name in enumerate(result["tasks"])}
    data = {
        "figures": {f"curve-{task_keys.get(name, 'mean')}": figure for name, figure in learning.items()}
        | ({"spending": spending} if spending else {})
        | ({"stopping": stopping} if stopping else {})
        | ({"oracle": oracle} if oracle else {})
        | ({"together": together.figure} if together else {})
        | {f"reliability-{task_keys[name]}": figure for name, figure in reliability_figures(result).items()},
        "confidence": {r: {task_keys[n]: f for n, f in charts.items()} for r, charts in confidence.items()},
    }
    story = tell(result)
    return fill(
        "page.html",
        ["page.css"],
        data,
        title=result["name"],
        strategy=sentence(strategy_name(result)),
        story=story,
        columns=math.ceil(len(story.tiles) / math.ceil(len(story.tiles) / MOST_COLUMNS)),
        panels=_panels(result, list(learning)),
        heights=HEIGHTS,
        audit_note=_audit_note(result),
        arms=arms_table(result),
        curve_table=curve_table(result),
        audit_table=audit_table(result),
        stopping=stopping,
        stopping_words=stopping_words(result),
        stopping_note=stopping_note(result) if stopping else "",
        stopping_table=stopping_table(result),
        oracle=oracle,
        oracle_words=oracle_words(answer) if answer else [],
        oracle_note=oracle_note(answer) if answer else "",
        oracle_made=[search_words(answer), *oracle_cautions(answer)] if answer else [],
        oracle_table=oracle_table(answer) if answer else None,
        random_orders=len(answer["random_curves"]) if answer else 0,
        together=together,
        things=[(sentence(name), thing_colour(k)) for k, name in enumerate(["reading", *result["tasks"]])],
        audited=any(line["purpose"] == "audit" for line in result["arms"][result["strategy"]]["spending"]),
        spending_words=spending_words(result),
        rounds=round_rows(result, result["strategy"]),
        split_table=split_table(result),
        split_words=split_words(result),
        tasks=result["tasks"],
        views=_views(result, corpus),
        trusts=[(task_keys[trust.task], trust) for trust in trust_of(result)],
        trust_words=trust_words(result),
        trust_table=trust_table(result),
        reliability_table=reliability_table(result),
        settings=settings(result, corpus),
    )


def fill(template: str | Path, styles: Sequence[str], data: Mapping[str, Any], **values: Any) -> str:
    """Render a self-contained page. A template is named if it is one of ours, else given by its path."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    plotly, script = _plotly(), _own_file("page.js")
    found = (
        environment.get_template(template)
        if isinstance(template, str)
        else environment.from_string(template.read_text(encoding="utf-8"))
    )
    return found.render(
        style=Markup("\n".join(_own_file(style) for style in styles)),
        data=Markup(embedded(data)),
        plotly=Markup(plotly),
        script=Markup(script),
        policy=_policy(plotly, script),
        **values,
    )


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or begins a comment.

    >>> embedded({"text": "</script><!-- \\u2028"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003c!-- \\\\u2028"}'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# -- parts of the page -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Panel:
    """A chart of learning curves with its heading, and what it shows in words."""

    key: str
    title: str
    metric: str
    words: str
    height: int  # in pixels


@dataclass(frozen=True)
class View:
    """What the model of one round was sure of."""

    round: int
    name: str
    means: tuple[str, ...]  # of the pool's confidence, a task each
    least: tuple[ShownItem, ...]
    most: tuple[ShownItem, ...]


def _panels(result: Mapping[str, Any], drawn: list[str]) -> list[Panel]:
    tasks, curves = result["tasks"], curves_of(result)
    panels = []
    for name in drawn:
        metrics = [tasks[name]["metric"]] if name else [task["metric"] for task in tasks.values()]
        show = Scale.of(*metrics).show
        told = []
        for arm, curve in curves.items():
            scores = curve.scores[name] if name else curve.mean
            told.append(f"{arm_name(arm)} from {show(float(scores[0]))} to {show(float(scores[-1]))}")
        what = f"{metric_name(metrics[0])} of {name}" if name else "Mean score over the tasks"
        key = str(list(tasks).index(name)) if name else "mean"
        words = f"Line chart. {sentence(what)} against money spent: {listed(told) if told else 'audit slices only'}."
        measure = metric_name(metrics[0]) if name else "mean score"
        panels.append(Panel(key, name or "All tasks", measure, words, HEIGHTS["task" if name else "mean"]))
    return panels


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


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    source: str = get_plotlyjs()
    return source.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(*scripts: str) -> str:
    """No network at all, and no script but our own: even a text that got through as markup could not run."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {digests}; {rest}"
