"""Should the tasks be trained together? The prediction by a law and the measurement, in words, a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bursar.laws.joint_vs_single import outcome_of
from bursar.report.charts import Axis, Chart, Mark, Rule, Shape, padded_range
from bursar.report.tables import Table
from bursar.report.wording import counted, listed, percent, sentence

ROW, MARGINS = 46, 64  # pixels of a task in the chart, and above and below all
PREDICTED, MEASURED = "predicted", "measured"
LOOKS: dict[str, tuple[str, Shape]] = {PREDICTED: ("audit", "diamond"), MEASURED: ("arm-1", "circle")}
SHIFTS = {PREDICTED: 0.16, MEASURED: -0.16}  # of a row, if a task has both

Part = Mapping[str, Any] | None  # a prediction (advice) or a measurement (check)


@dataclass(frozen=True)
class Together:
    """The section of a run's report."""

    words: tuple[str, ...]
    note: str
    chart: Chart
    table: Table
    warnings: tuple[str, ...]
    measured: bool
    predicted: bool


def section_of(found: Mapping[str, Any]) -> Together:
    """From a prediction, a measurement, or both."""
    advice, check = found.get("advice"), found.get("check")
    return Together(
        tuple(_words(advice, check)),
        _note(advice, check),
        _chart(advice, check),
        _table(advice, check),
        tuple(_warnings(advice)),
        check is not None,
        advice is not None,
    )


# -- words ------------------------------------------------------------------------------------------------------------
def _words(advice: Part, check: Part) -> list[str]:
    words = []
    if advice is not None:
        law = f"By the law, asked {advice['when']}" if "when" in advice else "By the law"
        words.append(_sentence(law, advice["tasks"], ("should help", "should harm")))
    if check is not None:
        words.append(_sentence("In the measurement", check["tasks"], ("helps", "harms")))
    if advice is not None and check is not None:
        words.append(_outcomes(advice["tasks"], check["tasks"]))
    return words


def _sentence(source: str, tasks: Mapping[str, Any], verbs: tuple[str, str]) -> str:
    """What is said of the tasks, those that it helps first."""
    by_verdict: dict[str, list[str]] = {"helps": [], "harms": [], "cannot tell": []}
    for name, task in tasks.items():
        by_verdict[task["verdict"]].append(name)
    unknown = by_verdict.pop("cannot tell")
    gains = {name: f"{name} ({_signed(task['gain']['value'])} points)" for name, task in tasks.items()}
    parts = [
        f"{verb} {listed([gains[name] for name in names])}"
        for verb, names in zip(verbs, by_verdict.values(), strict=True)
        if names
    ]
    rest = f"the effect on {listed(unknown)} is not clear"
    if not parts:
        return f"{source}, {rest}."
    return f"{source}, training together {listed(parts)}{f'; {rest}' if unknown else ''}."


def _outcomes(predicted: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    by: dict[str, list[str]] = {}
    for name, task in measured.items():
        by.setdefault(outcome_of(predicted.get(name, {}).get("verdict"), task["verdict"]), []).append(name)
    said = [f"{what} for {listed(by[what])}" for what in ("held", "did not hold") if what in by]
    if "not decided" in by:
        said.append(f"is undecided for {listed(by['not decided'])}")
    return f"The prediction {listed(said)}." if said else "There was no prediction to check."


def _note(advice: Part, check: Part) -> str:
    said = []
    if advice is not None:
        names = dict.fromkeys(task["law"] for task in advice["tasks"].values())
        about = [advice["laws"][name]["about"] for name in names]
        models = sum(entry.get("models", 0) for entry in about)
        sources = list(dict.fromkeys(source for entry in about for source in entry.get("sources", ())))
        where = f" on {listed(sources)}" if sources else ""
        fitted = f"{counted(models, 'small model')}{where}" if models else "other models"
        said.append(
            f"The law is a formula fitted to {fitted}. It uses the numbers of labels and tasks and how related they "
            f"are, but not this model. Its prediction is for {advice['basis']}."
        )
    if check is not None:
        said.append(
            f"For the measurement, the campaign’s learner was trained on {counted(check['items'], 'item')} for all "
            f"tasks and for each task alone, with {counted(check['seeds'], 'seed')}, and scored on "
            f"{check['judged']:,} {check['judged_by']}. Intervals: {percent(check['level'])}."
        )
    return " ".join(said)


def _warnings(advice: Part) -> list[str]:
    """Why the law may be wrong here, with the tasks each warning applies to."""
    if advice is None:
        return []
    by: dict[str, list[str]] = {}
    for name, task in advice["tasks"].items():
        for warning in task["warnings"]:
            by.setdefault(warning, []).append(name)
    found = [f"{listed(names)}: {warning}." for warning, names in by.items()]
    return found + [f"{name} is left out: {why}." for name, why in advice["left_out"].items()]


def _between(gain: Mapping[str, float]) -> str:
    """A difference with its interval, in points."""
    return f"{_signed(gain['value'])} ({_signed(gain['low'])} to {_signed(gain['high'])})"


def _signed(gain: float) -> str:
    text = f"{abs(100 * gain):.1f}"
    return text if float(text) == 0 else f"{'−' if gain < 0 else '+'}{text}"


# -- table and chart --------------------------------------------------------------------------------------------------
def _table(advice: Part, check: Part) -> Table:
    parts = ([predicted_table(advice)] if advice else []) + ([measured_table(check, advice)] if check else [])
    rows = []
    for name in dict.fromkeys(row[0] for part in parts for row in part.rows):
        cells = [name]
        for part in parts:
            cells += next((row for row in part.rows if row[0] == name), ("–",) * len(part.columns))[1:]
        rows.append(tuple(cells))
    return Table(("Task", *(column for part in parts for column in part.columns[1:])), tuple(rows))


def predicted_table(advice: Mapping[str, Any]) -> Table:
    """The prediction of the law for every task."""
    rows = []
    for name, task in advice["tasks"].items():
        ami = task["ami"]
        related = f"{ami['value']:.2f} ({ami['low']:.2f} to {ami['high']:.2f})".replace("-", "−")
        rows.append((name, related, f"{task['n']:,}", _between(task["gain"]), task["verdict"]))
    return Table(("Task", "Related (AMI)", sentence(advice["unit"]), "Predicted", "The law says"), tuple(rows))


def measured_table(check: Mapping[str, Any], advice: Part) -> Table:
    """The measurement for every task, and whether the law was right."""
    rows = []
    for name, task in check["tasks"].items():
        row = (name, f"{100 * task['alone']:.1f}", f"{100 * task['together']:.1f}", _between(task["gain"]))
        predicted = [advice["tasks"].get(name, {}).get("verdict")] if advice is not None else []
        rows.append((*row, task["verdict"], *(outcome_of(verdict, task["verdict"]) for verdict in predicted)))
    columns = ("Task", "Alone", "Together", "Difference", "Together it")
    return Table((*columns, "Prediction") if advice is not None else columns, tuple(rows))


def _chart(advice: Part, check: Part) -> Chart:
    """Differences with their intervals, a row per task: the prediction above the measurement."""
    shown = [(name, part["tasks"]) for name, part in ((PREDICTED, advice), (MEASURED, check)) if part is not None]
    tasks = list(dict.fromkeys(name for _, found in shown for name in found))
    marks = []
    for name, found in shown:
        for task, entry in found.items():
            x, low, high = (round(100 * entry["gain"][key], 3) for key in ("value", "low", "high"))
            y = len(tasks) - 1 - tasks.index(task) + (SHIFTS[name] if len(shown) > 1 else 0.0)
            look, shape = LOOKS[name]
            text = f"{task}, {name}: {_between(entry['gain'])}"
            marks.append(Mark(look, x, y, low, high, text, shape, size=5, flat=True))
    ends = [end for mark in marks for end in (mark.low, mark.high) if end is not None]
    return Chart(
        f"Difference in points: {listed([mark.text for mark in marks])}.",
        Axis(*padded_range([0.0, *ends], 0.06, 0.5), "points, together minus alone", grid=True),
        Axis.of_names(tasks[::-1]),
        "Effect of training together",
        height=MARGINS + ROW * len(tasks),
        marks=marks,
        rules=[Rule("muted", (0, -0.5), (0, len(tasks) - 0.5), "solid")],
    )
