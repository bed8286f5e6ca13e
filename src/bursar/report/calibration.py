"""Whether the confidence of the latest model can be trusted: verdicts, words, tables and reliability diagrams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from bursar.campaign.decisions import ReliabilityRecord
from bursar.campaign.results import RunResult
from bursar.report.charts import Axis, Bar, Chart, Mark, Note, Rule
from bursar.report.tables import Table
from bursar.report.wording import NINETY_PERCENT, counted, listed, round_phrase

SMALL_GAP = 0.02  # between mean confidence and mean accuracy: well calibrated
LARGE_ERROR = 0.05  # a calibration error that shows in the diagram
VAGUE = 0.1  # if luck may be larger than this, a small gap means nothing
HEIGHT = 300  # of a diagram, in pixels
COUNT_SHARE = 0.16  # of the height: the bars below the points


class Verdict(StrEnum):
    """How confidence compares with accuracy."""

    OVERCONFIDENT = "overconfident"
    UNDERCONFIDENT = "underconfident"
    MISCALIBRATED = "miscalibrated"  # in both directions
    CALIBRATED = "well calibrated"
    UNKNOWN = "too few items to tell"


@dataclass(frozen=True)
class TaskCalibration:
    """Confidence and accuracy of the latest model for one task, on items with known labels."""

    task: str
    items: int
    confidence: float  # mean
    accuracy: float  # mean
    top: tuple[float, float, int]  # mean confidence, mean accuracy and items of the most confident bin
    calibration_error: float
    overconfidence_error: float
    verdict: Verdict

    def __str__(self) -> str:
        """The verdict and the size of the gap, consistent with the rounded numbers beside it."""
        match self.verdict:
            case Verdict.OVERCONFIDENT | Verdict.UNDERCONFIDENT:
                return f"{self.verdict} by {abs(round(self.confidence, 2) - round(self.accuracy, 2)):.2f}"
            case Verdict.MISCALIBRATED:
                return f"{self.verdict} by {self.calibration_error:.2f}"
        return str(self.verdict)


def calibration_of(result: RunResult) -> list[TaskCalibration]:
    """The calibration of every task that was measured."""
    return [_calibration(name, record) for name, record in _reliability(result).items()]


def _reliability(result: RunResult) -> dict[str, ReliabilityRecord]:
    """The reliability bins of the last round by task; empty if they were not measured."""
    rounds = result.main.rounds
    found = rounds[-1].reliability if rounds else {}
    return {name: found[name] for name in result.tasks if name in found and any(found[name].counts)}


def _calibration(name: str, record: ReliabilityRecord) -> TaskCalibration:
    bins = zip(record.confidence, record.accuracy, record.counts, strict=True)
    filled = [(sure, right, count) for sure, right, count in bins if sure is not None and right is not None and count]
    items = sum(count for _, _, count in filled)
    confidence = sum(confidence * count for confidence, _, count in filled) / items
    accuracy = sum(accuracy * count for _, accuracy, count in filled) / items
    errors = record.calibration, record.overconfidence
    # Half the 90 % interval of the accuracy, with one right and one wrong item added so that it is never zero.
    share = (accuracy * items + 1) / (items + 2)
    luck = NINETY_PERCENT * math.sqrt(share * (1 - share) / items)
    if abs(confidence - accuracy) > max(luck, SMALL_GAP):
        verdict = Verdict.OVERCONFIDENT if confidence > accuracy else Verdict.UNDERCONFIDENT
    elif luck > VAGUE:
        verdict = Verdict.UNKNOWN
    elif errors[0] > max(luck * math.sqrt(len(filled)), LARGE_ERROR):
        verdict = Verdict.MISCALIBRATED
    else:
        verdict = Verdict.CALIBRATED
    return TaskCalibration(name, items, confidence, accuracy, filled[-1], *errors, verdict)


def calibration_words(result: RunResult) -> list[str]:
    """Whether the confidence of the latest model can be trusted, and what follows, for every task."""
    found = calibration_of(result)
    if not found:
        return []
    by_verdict = {verdict: [one for one in found if one.verdict is verdict] for verdict in Verdict}
    unknown = [one.task for one in by_verdict.pop(Verdict.UNKNOWN)]
    parts = [
        f"{verdict} for "
        + listed([f"{one.task} (confidence {one.confidence:.2f}, accuracy {one.accuracy:.2f})" for one in those])
        for verdict, those in by_verdict.items()
        if those
    ]
    last = result.main.rounds[-1].round
    words = [f"After {round_phrase(last)}, the model is {'; '.join(parts)}."] if parts else []
    if unknown:
        words.append(f"There are {Verdict.UNKNOWN} for {listed(unknown)}.")
    doubtful = [one.task for one in by_verdict[Verdict.OVERCONFIDENT] + by_verdict[Verdict.MISCALIBRATED]]
    if doubtful:
        words.append(f"Check its predictions for {listed(doubtful)} before you use them, even confident ones.")
    elif len(by_verdict[Verdict.CALIBRATED]) == len(found):
        words.append("You can rely on its confidence.")
    if not result.corpus.test:
        words.append("This was measured on development items, which training uses, so it is slightly optimistic.")
    return words


# -- tables ----------------------------------------------------------------------------------------------------------
def calibration_table(result: RunResult) -> Table:
    """Confidence, accuracy and the two errors of every task."""
    rows = []
    for one in calibration_of(result):
        sure, right, items = one.top
        means = (f"{one.items:,}", f"{one.confidence:.2f}", f"{one.accuracy:.2f}")
        highest = f"{sure:.2f}, accuracy {right:.2f} ({counted(items, 'item')})"
        rows.append((one.task, *means, highest, f"{one.calibration_error:.3f}", f"{one.overconfidence_error:.3f}"))
    columns = ("Task", "Items", "Confidence", "Accuracy", "Highest confidence")
    return Table((*columns, "Calibration error", "Overconfidence error"), tuple(rows))


def reliability_table(result: RunResult) -> Table:
    """Every point of the reliability diagrams."""
    rows = []
    for name, record in _reliability(result).items():
        bins = zip(pairwise(record.edges), record.counts, record.confidence, record.accuracy, strict=True)
        for (low, high), count, confidence, accuracy in bins:
            if count:
                rows.append((name, f"{low:.2f} to {high:.2f}", f"{count:,}", f"{confidence:.2f}", f"{accuracy:.2f}"))
    return Table(("Task", "Bin", "Items", "Confidence", "Accuracy"), tuple(rows))


# -- reliability diagrams --------------------------------------------------------------------------------------------
def reliability_charts(result: RunResult) -> dict[str, Chart]:
    """The reliability diagram of every task."""
    records = _reliability(result)
    return {one.task: _reliability_chart(one, records[one.task]) for one in calibration_of(result)}


def _reliability_chart(found: TaskCalibration, record: ReliabilityRecord) -> Chart:
    """Accuracy against confidence with a point per bin, the diagonal, and the number of items at the bottom."""
    most = max(record.counts)
    marks, bars, stems = [], [], []
    bins = zip(pairwise(record.edges), record.counts, record.confidence, record.accuracy, strict=True)
    for (low, high), count, confidence, accuracy in bins:
        if not count or confidence is None or accuracy is None:
            continue
        items, size = counted(count, "item"), round(4 + 4 * (count / most) ** 0.5, 1)
        text = f"Confidence {confidence:.2f}, accuracy {accuracy:.2f}: {items}"
        marks.append(Mark("arm-1", round(confidence, 4), round(accuracy, 4), text=text, size=size))
        stems.append(Rule("audit", (confidence, confidence), (confidence, accuracy), "solid"))
        inset = 0.04 * (high - low)
        ends = f"{items}, confidence {low:.2f} to {high:.2f}"
        bars.append(Bar("pool", (low + inset, high - inset), (0, COUNT_SHARE * count / most), ends))
    return Chart(
        f"Reliability of {found.task}: {'; '.join(mark.text for mark in marks)}.",
        Axis(0.0, 1.0, "confidence"),
        Axis(0.0, 1.0, "accuracy"),
        found.task,
        str(found),
        HEIGHT,
        marks=marks,
        rules=[Rule("muted", (0, 0), (1, 1)), *stems],
        bars=bars,
        notes=[Note(0.02, 0.92, "underconfident", "start"), Note(0.98, COUNT_SHARE, "overconfident", "end")],
    )
