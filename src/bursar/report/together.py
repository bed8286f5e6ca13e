"""Should the tasks be trained together? What a law said, and what two trainings said: in words, a chart, a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bursar.laws.joint_vs_single import outcome_of
from bursar.report.charts import Axis, Chart, Mark, Rule, Shape, padded_range
from bursar.report.tables import Table
from bursar.report.wording import counted, listed, sentence

ROW, MARGINS = 46, 64  # pixels of a task in the chart, and above and below all
EXPECTED, MEASURED = "expected by the law", "measured"
LOOKS: dict[str, tuple[str, Shape]] = {EXPECTED: ("audit", "diamond"), MEASURED: ("arm-1", "circle")}
SHIFTS = {EXPECTED: 0.16, MEASURED: -0.16}  # rows of a task that has both


@dataclass(frozen=True)
class Together:
    """The section of a run's page."""

    words: tuple[str, ...]
    note: str
    chart: Chart
    table: Table
    warnings: tuple[str, ...]
    measured: bool
    expected: bool


def section_of(found: Mapping[str, Any]) -> Together:
    """From advice, a check, or both."""
    advice, check = found.get("advice"), found.get("check")
    return Together(
        tuple(together_words(advice, check)),
        together_note(advice, check),
        together_chart(advice, check),
        together_table(advice, check),
        tuple(warnings_of(advice)),
        check is not None,
        advice is not None,
    )


# -- words ------------------------------------------------------------------------------------------------------------
def together_words(advice: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> list[str]:
    """What was expected, what was measured, and whether the one was right about the other."""
    words = []
    if advice is not None:
        law = f"By the law, asked {advice['when']}" if "when" in advice else "By the law"
        words.append(_sentence(law, "training them together should", advice["tasks"], ("help", "harm")))
    if check is not None:
        words.append(_sentence("Trained both ways", "together", check["tasks"], ("helps", "harms")))
    if advice is not None and check is not None:
        words.append(_outcomes(advice["tasks"], check["tasks"]))
    return words


def _sentence(who: str, subject: str, tasks: Mapping[str, Any], verbs: tuple[str, str]) -> str:
    """What somebody says of the tasks, those that it helps first."""
    helped, harmed, unknown = (
        [name for name, task in tasks.items() if task["verdict"] == verdict]
        for verdict in ("helps", "harms", "cannot tell")
    )
    parts = []
    for verb, names in zip(verbs, (helped, harmed), strict=True):
        if names:
            told = [f"{name} ({points(tasks[name]['gain']['value'])})" for name in names]
            parts.append(f"{verb} {listed(told)}")
    if not parts:
        return f"{who}, it cannot be told whether that helps {listed(unknown)}."
    rest = f"; of {listed(unknown)} it cannot be told" if unknown else ""
    return f"{who}, {subject} {' and '.join(parts)}{rest}."


def _outcomes(expected: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    outcomes = {
        name: outcome_of(expected.get(name, {}).get("verdict"), task["verdict"]) for name, task in measured.items()
    }
    by = {
        what: [name for name, found in outcomes.items() if found == what] for what in dict.fromkeys(outcomes.values())
    }
    said = [f"it {what} for {listed(by[what])}" for what in ("held", "did not hold") if what in by]
    if "not decided" in by:
        said.append(f"for {listed(by['not decided'])} the trainings do not decide it")
    return f"Of the prediction: {'; '.join(said)}." if said else "The law had made no prediction that could be checked."


def together_note(advice: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> str:
    """What the numbers are of."""
    said = []
    if advice is not None:
        names = dict.fromkeys(task["law"] for task in advice["tasks"].values())
        about = [advice["laws"][name]["about"] for name in names]
        models = sum(entry.get("models", 0) for entry in about)
        sources = list(dict.fromkeys(source for entry in about for source in entry.get("sources", ())))
        where = f" on {listed(sources)}" if sources else ""
        of = f"a formula from {counted(models, 'small model')}{where}" if models else "a formula from other models"
        said.append(
            f"The law is {of}; it knows how many labels and tasks there are and how related they are, and nothing of "
            f"this model. Its numbers are for {advice['basis']}."
        )
    if check is not None:
        said.append(
            f"Measured is the campaign’s learner, trained on {counted(check['items'], 'item')} for all tasks at once "
            f"and for each alone, with {counted(check['seeds'], 'seed')}, by its scores on {check['judged']:,} "
            f"{check['judged_by']}. Intervals are of {100 * check['level']:.0f}\u202f%."
        )
    return " ".join(said)


def warnings_of(advice: Mapping[str, Any] | None) -> list[str]:
    """Why the law may be wrong here, a sentence for all tasks that it is true of."""
    if advice is None:
        return []
    by: dict[str, list[str]] = {}
    for name, task in advice["tasks"].items():
        for warning in task["warnings"]:
            by.setdefault(warning, []).append(name)
    found = [f"{listed(names)}: {warning}." for warning, names in by.items()]
    return found + [f"{name} is left out: {why}." for name, why in advice["left_out"].items()]


def points(gain: float) -> str:
    """A difference of scores in points.

    >>> points(0.0134), points(-0.02), points(0.0001)
    ('+1.3 points', '−2.0 points', '0.0 points')
    """
    return f"{_signed(gain)} points"


def between(gain: Mapping[str, float]) -> str:
    """A difference with its interval, in points.

    >>> between({"value": 0.0134, "low": -0.01, "high": 0.037})
    '+1.3 (−1.0 to +3.7)'
    """
    return f"{_signed(gain['value'])} ({_signed(gain['low'])} to {_signed(gain['high'])})"


def _signed(gain: float) -> str:
    text = f"{abs(100 * gain):.1f}"
    return text if float(text) == 0 else f"{'−' if gain < 0 else '+'}{text}"


# -- table and chart --------------------------------------------------------------------------------------------------
def together_table(advice: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> Table:
    """A row a task: what was expected, then what was measured."""
    parts = ([expected_table(advice)] if advice else []) + ([measured_table(check, advice)] if check else [])
    names = list(dict.fromkeys(row[0] for part in parts for row in part.rows))
    rows = []
    for name in names:
        cells = [name]
        for part in parts:
            mine = next((row for row in part.rows if row[0] == name), ("–",) * len(part.columns))
            cells += mine[1:]
        rows.append(tuple(cells))
    return Table(("Task", *(column for part in parts for column in part.columns[1:])), tuple(rows))


def expected_table(advice: Mapping[str, Any]) -> Table:
    """What the law says of every task."""
    rows = []
    for name, task in advice["tasks"].items():
        ami = task["ami"]
        related = f"{ami['value']:.2f} ({ami['low']:.2f} to {ami['high']:.2f})".replace("-", "−")
        rows.append((name, related, f"{task['n']:,}", between(task["gain"]), task["verdict"]))
    return Table(("Task", "Related (AMI)", sentence(advice["unit"]), "Expected", "The law says"), tuple(rows))


def measured_table(check: Mapping[str, Any], advice: Mapping[str, Any] | None) -> Table:
    """What the trainings say of every task, and whether the law was right about it."""
    expected = advice["tasks"] if advice is not None else {}
    rows = []
    for name, task in check["tasks"].items():
        scores = [f"{100 * task[way]:.1f}" for way in ("alone", "together")]
        outcome = [outcome_of(expected.get(name, {}).get("verdict"), task["verdict"])] if advice is not None else []
        rows.append((name, *scores, between(task["gain"]), task["verdict"], *outcome))
    columns = ("Task", "Alone", "Together", "Difference", "Trainings say")
    return Table((*columns, "Prediction") if advice is not None else columns, tuple(rows))


def together_chart(advice: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> Chart:
    """Differences with their intervals, a row a task: what was expected above what was measured."""
    parts = ((EXPECTED, advice), (MEASURED, check))
    shown = [(name, part["tasks"]) for name, part in parts if part is not None]
    tasks = list(dict.fromkeys(name for _, found in shown for name in found))
    marks = [
        _mark(name, task, entry["gain"], len(tasks) - 1 - tasks.index(task) + (SHIFTS[name] if len(shown) > 1 else 0.0))
        for name, found in shown
        for task, entry in found.items()
    ]
    low, high = padded_range(
        [0.0, *(end for mark in marks for end in (mark.low, mark.high) if end is not None)], 0.06, 0.5
    )
    return Chart(
        f"Difference in points of score: {listed([mark.text for mark in marks])}.",
        Axis(low, high, "points of score, together less alone", grid=True),
        Axis.of_names(tasks[::-1]),
        "What training together changes",
        height=MARGINS + ROW * len(tasks),
        marks=marks,
        rules=[Rule("muted", (0, -0.5), (0, len(tasks) - 0.5), "solid")],
    )


def _mark(name: str, task: str, gain: Mapping[str, float], y: float) -> Mark:
    look, shape = LOOKS[name]
    x, low, high = (round(100 * gain[key], 3) for key in ("value", "low", "high"))
    return Mark(look, x, y, low, high, f"{task}, {name}: {between(gain)}", shape, size=5, flat=True)
