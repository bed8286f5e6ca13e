"""Should the tasks be trained together? What a law said, and what two trainings said: in words, a chart, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bursar.laws.joint_vs_single import outcome_of
from bursar.report.figures import BOTTOM, TOP, Figure, base_layout, padded_range, plain
from bursar.report.tables import Table
from bursar.report.wording import counted, listed, sentence

ROW = 46  # pixels of a task in the chart
EXPECTED, MEASURED = "expected by the law", "measured"


@dataclass(frozen=True)
class Together:
    """The section of a run's page."""

    words: tuple[str, ...]
    note: str
    figure: Figure
    table: Table
    warnings: tuple[str, ...]
    measured: bool
    expected: bool

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Together | None:
        """From a run's result; nothing where nobody asked."""
        found = result.get("together")
        return None if not found else section_of(found)


def section_of(found: Mapping[str, Any]) -> Together:
    """From advice, a check, or both."""
    advice, check = found.get("advice"), found.get("check")
    return Together(
        tuple(together_words(advice, check)),
        together_note(advice, check),
        together_figure(advice, check),
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


def together_figure(advice: Mapping[str, Any] | None, check: Mapping[str, Any] | None) -> Figure:
    """Differences with their intervals, a row a task: what was expected above what was measured."""
    parts = [(EXPECTED, "--audit", "diamond", advice), (MEASURED, "--arm-1", "circle", check)]
    shown = [(name, colour, symbol, part["tasks"]) for name, colour, symbol, part in parts if part is not None]
    tasks = list(dict.fromkeys(name for *_, found in shown for name in found))
    shift = {EXPECTED: 0.16, MEASURED: -0.16} if len(shown) > 1 else {EXPECTED: 0.0, MEASURED: 0.0}
    data = [_trace(name, colour, symbol, found, tasks, shift[name]) for name, colour, symbol, found in shown]
    ends = [100 * task["gain"][end] for *_, found in shown for task in found.values() for end in ("low", "high")]
    layout = base_layout(TOP + BOTTOM + ROW * len(tasks), right=16)
    layout["xaxis"] |= {
        "title": {"text": "points of score, together less alone", "standoff": 12},
        "range": padded_range([*ends, 0.0], 0.06, 0.5),
        "zeroline": True,
        "zerolinecolor": "--muted",
        "zerolinewidth": 1.5,
        "nticks": 7,
    }
    layout["yaxis"] |= {
        "tickvals": list(range(len(tasks))),
        "ticktext": [plain(name) for name in reversed(tasks)],
        "range": [-0.6, len(tasks) - 0.4],
        "showgrid": False,
        "automargin": True,
    }
    return {"data": data, "layout": layout, "words": _spoken(shown)}


def _trace(name: str, colour: str, symbol: str, found: Mapping[str, Any], tasks: Sequence[str], shift: float) -> Figure:
    mine = [task for task in tasks if task in found]
    gains = [found[task]["gain"] for task in mine]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [round(100 * gain["value"], 3) for gain in gains],
        "y": [len(tasks) - 1 - tasks.index(task) + shift for task in mine],
        "error_x": {
            "type": "data",
            "array": [round(100 * (gain["high"] - gain["value"]), 3) for gain in gains],
            "arrayminus": [round(100 * (gain["value"] - gain["low"]), 3) for gain in gains],
            "color": colour,
            "thickness": 2,
            "width": 5,
        },
        "marker": {"color": colour, "size": 10, "symbol": symbol},
        "customdata": [f"{plain(task)}, {name}: {between(gain)}" for task, gain in zip(mine, gains, strict=True)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _spoken(shown: Sequence[tuple[str, str, str, Mapping[str, Any]]]) -> str:
    told = [f"{task} {name} {between(entry['gain'])}" for name, _, _, found in shown for task, entry in found.items()]
    return f"Points with intervals. Difference in points of score: {listed(told)}."
