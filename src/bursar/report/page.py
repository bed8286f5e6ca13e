"""The report of a run: one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bursar.campaign import Run
from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.campaign.curves import curves_of
from bursar.campaign.decisions import ConfidenceExample
from bursar.campaign.results import RunResult
from bursar.corpus import Corpus
from bursar.corpus.formats.format import replacing
from bursar.laws.joint_vs_single import current_together
from bursar.report.calibration import calibration_table, calibration_words, reliability_charts, reliability_table
from bursar.report.charts import Chart, thing_look
from bursar.report.oracle import oracle_chart, oracle_of, oracle_section
from bursar.report.run_charts import confidence_charts, drawn_slices, learning_charts, spending_chart
from bursar.report.spending import round_rows, spending_words
from bursar.report.stopping import stopping_charts, stopping_note, stopping_table, stopping_words
from bursar.report.summary import summarise
from bursar.report.tables import arms_table, audit_table, curve_table, settings, split_table, split_words
from bursar.report.together import section_of
from bursar.report.wording import THIN, round_phrase, sentence, strategy_name
from bursar.tasks import Tagging, Task

REPORT_FILE = "report.html"
MOST_COLUMNS = 6  # of tiles
POLICY = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
MOST_CHARACTERS = 420  # of a text that are shown
MOST_CHIPS = 12

Offsets = Sequence[tuple[int, int]]


def write_report(run: Run, path: Path | None = None) -> Path:
    """Write the report of a run, by default into its folder.

    >>> import tempfile
    >>> from bursar.campaign import run_campaign
    >>> from bursar.campaign.config import parse_config
    >>> small = {"corpus": {"items": 200}, "learner": {"name": "scikit"}, "strategy": {"name": "MT-AVG"}}
    >>> config = parse_config({"tasks": ["intent"], "budget": {"seed_items": 20, "rounds": 0}} | small)
    >>> run = Run(Path(tempfile.mkdtemp()), config)
    >>> _ = run_campaign(run)
    >>> write_report(run).name
    'report.html'
    """
    page = render(run.result(), run.parts.corpus, current_together(run))
    return write_page(page, path or run.folder / REPORT_FILE)


def write_page(page: str, path: Path) -> Path:
    """Write a page atomically."""
    with replacing(path) as file:
        file.write(page)
    return path


def render(result: RunResult, corpus: Corpus, together_result: Mapping[str, Any] | None = None) -> str:
    """The HTML page. Equal results give equal pages."""
    learning, spending, confidence = learning_charts(result), spending_chart(result), confidence_charts(result)
    stopping = stopping_charts(result) if stopping_words(result) else []
    answer = oracle_of(result)
    together = section_of(together_result) if together_result else None
    task_keys = {name: str(k) for k, name in enumerate(result.tasks)}
    curves = {f"curve-{task_keys.get(name, 'mean')}": chart for name, chart in learning.items()}
    reliability = {f"reliability-{task_keys[name]}": chart for name, chart in reliability_charts(result).items()}
    advice = {f"stopping-{k}": chart for k, chart in enumerate(stopping)}
    charts = curves | advice | reliability
    charts |= {f"confidence-{round}-{task_keys[name]}": chart for (round, name), chart in confidence.items()}
    if spending:
        charts["spending"] = spending
    if answer:
        charts["oracle"] = oracle_chart(answer, list(result.arms))
    if together:
        charts["together"] = together.chart
    summary = summarise(result)
    return fill(
        "page.html",
        ["page.css"],
        charts,
        title=result.name,
        strategy=sentence(strategy_name(result.main)),
        summary=summary,
        columns=math.ceil(len(summary.tiles) / math.ceil(len(summary.tiles) / MOST_COLUMNS)),
        curves=curves,
        audit_note=_audit_note(result),
        arms=arms_table(result),
        curve_table=curve_table(result),
        audit_table=audit_table(result),
        stopping=advice,
        stopping_words=stopping_words(result),
        stopping_note=stopping_note(result) if stopping else "",
        stopping_table=stopping_table(result),
        oracle=oracle_section(answer) if answer else None,
        together=together,
        things=[(sentence(name), thing_look(k)) for k, name in enumerate(["reading", *result.tasks])],
        audited=any(line.purpose == "audit" for line in result.main.spending),
        spending_words=spending_words(result),
        rounds=round_rows(result, result.strategy),
        split_table=split_table(result),
        split_words=split_words(result),
        tasks=result.tasks,
        views=_views(result, corpus),
        reliability=reliability,
        calibration_words=calibration_words(result),
        calibration_table=calibration_table(result),
        reliability_table=reliability_table(result),
        settings=settings(result, corpus),
    )


def fill(template: str | Traversable, styles: Sequence[str], charts: Mapping[str, Chart], **values: Any) -> str:
    """Render a self-contained page from a template of this package, by name, or from the file of another."""
    environment = _environment()
    script = bundled("static/elements.js", "static/charts.js", "page.js")
    digest = hashlib.sha256(script.encode()).digest()
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
        # No network and no other script, so that even text that slipped through as markup could not run.
        policy=f"default-src 'none'; script-src 'sha256-{base64.b64encode(digest).decode()}'; {POLICY}",
        **values,
    )


@cache
def _environment() -> jinja2.Environment:
    """One for all pages: it keeps the templates that it has compiled."""
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def bundled(*names: str) -> str:
    """Join scripts, each of which imports only from those before it."""
    return "\n".join(re.sub(r"^import .*;\n", "", _own_file(name), flags=re.MULTILINE) for name in names)


def embedded(data: Any) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or starts a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# -- parts of the page -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class View:
    """The confidence of the model of one round."""

    round: int
    name: str
    means: tuple[str, ...]  # confidence in the pool, for each task
    least: tuple[ShownItem, ...]
    most: tuple[ShownItem, ...]


def _audit_note(result: RunResult) -> str:
    """The meaning of the light points in the charts, or why there are none."""
    slices, drawn = result.main.audit, drawn_slices(result)
    if not slices:
        return ""
    if not drawn:
        return (
            f"Audit slices are not drawn, because with fewer than {FEWEST_FOR_INTERVAL} items each they are too small "
            "for an interval. They are in the table."
        )
    meaning = f"scores on random items, predicted before they were labelled, with a 90{THIN}% interval"
    if not curves_of(result):
        few = min(part.items for part in slices) < FEWEST_FOR_INTERVAL
        caution = f" Slices of fewer than {FEWEST_FOR_INTERVAL} items are little more than a guess." if few else ""
        return f"There is no test set. Points are audit slices: {meaning}.{caution}"
    return f"Light circles are audit slices: {meaning}. Some intervals extend beyond the chart; see the table."


def _views(result: RunResult, corpus: Corpus) -> list[View]:
    return [
        View(
            record.round,
            round_phrase(record.round),
            tuple(f"{record.mean[name]:.2f}" for name in result.tasks),
            tuple(shown_item(example, corpus) for example in record.least),
            tuple(shown_item(example, corpus) for example in record.most),
        )
        for record in result.main.confidence
    ]


def _own_file(name: str) -> str:
    return (files("bursar.report") / name).read_text(encoding="utf-8")


# -- examples of items -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class TextPiece:
    """A part of a text: plain, marked as a span, or a word with its tag."""

    text: str
    span: str = ""
    tag: str = ""


@dataclass(frozen=True)
class TaskPrediction:
    """The prediction for one task, and its confidence."""

    task: str
    kind: str
    colour: int  # of the task, from 1
    confidence: float
    chips: tuple[str, ...]
    more: int  # chips left out
    marked: int | None  # number of labels marked in the text; ``None`` if they are chips


@dataclass(frozen=True)
class ShownItem:
    """An item of the report."""

    id: str
    pieces: tuple[TextPiece, ...]
    pair: str | None
    left_out: int  # characters
    marks: int  # the colour of the task whose spans are marked
    predictions: tuple[TaskPrediction, ...]


def shown_item(example: ConfidenceExample, corpus: Corpus) -> ShownItem:
    """An example item of a round with its text."""
    at = int(corpus.positions([example.id])[0])
    item = corpus[at]
    offsets = [(a, b) for a, b in corpus.texts.spans[at].tolist()] if corpus.texts is not None else []
    marked = _marked(corpus.schema)
    text = item.text or ""
    end = len(text)
    if end > MOST_CHARACTERS:  # after the last whole word
        end = max((last for _, last in offsets if last <= MOST_CHARACTERS), default=MOST_CHARACTERS)
    marked_task = corpus.schema[marked] if marked is not None else None
    pieces = _pieces(text[:end], offsets, marked_task, example.guess.get(marked or "")) if text else []
    predictions, colours = [], {name: k % 5 + 1 for k, name in enumerate(corpus.schema)}
    for name, task in corpus.schema.items():
        guess, in_text = example.guess[name], name == marked and bool(text)
        chips = [] if in_text else task.show(guess, item.words)
        shown, more = tuple(chips[:MOST_CHIPS]), max(0, len(chips) - MOST_CHIPS)
        confidence = min(1.0, max(0.0, float(example.confidence[name])))
        labels = len(guess) if in_text else None
        predictions.append(TaskPrediction(name, task.kind, colours[name], confidence, shown, more, labels))
    colour = colours[marked] if marked is not None else 1
    pair = item.pair if item.pair is None or len(item.pair) <= MOST_CHARACTERS else item.pair[:MOST_CHARACTERS] + "…"
    return ShownItem(item.id, tuple(pieces), pair, len(text) - end, colour, tuple(predictions))


def _marked(schema: Mapping[str, Task]) -> str | None:
    """The task whose labels are marked in the text: the first with spans, else one that tags every word."""
    taggings = sorted((t for t in schema.values() if isinstance(t, Tagging)), key=lambda task: task.every_word)
    return taggings[0].name if taggings else None


def _pieces(text: str, offsets: Offsets, task: Task | None, value: Any) -> list[TextPiece]:
    """Split a text at its marked spans. Of two overlapping spans, the first is marked."""
    if task is None or not value:
        return [TextPiece(text)]
    pieces, at = [], 0
    every_word = isinstance(task, Tagging) and task.every_word
    for first, last, label in sorted(task.marks(value).spans, key=lambda span: span[:2]):
        if last > len(offsets):
            break
        start, end = offsets[first][0], offsets[last - 1][1]
        if start < at:
            continue
        if end > len(text):
            break
        if start > at:
            pieces.append(TextPiece(text[at:start]))
        pieces.append(TextPiece(text[start:end], tag=label) if every_word else TextPiece(text[start:end], span=label))
        at = end
    if at < len(text):
        pieces.append(TextPiece(text[at:]))
    return pieces
