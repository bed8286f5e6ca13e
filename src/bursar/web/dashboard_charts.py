"""The charts of the watch page, as data. The page draws them; all texts are made here.

A chart has two axes and any of: bands, lines of points, marks with intervals, rules, bars. A ``look`` names a colour of
the style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bursar.ledger.records import READING
from bursar.oracle.comparison import Gap
from bursar.report.curves import RANDOM, Curve, curves_of
from bursar.report.figures import ARM_COLOURS, DASHES, SYMBOLS, TASK_COLOURS, drawn_slices, padded_range
from bursar.report.oracle import BEST
from bursar.report.oracle import SCALE as SHARE
from bursar.report.spending import PURPOSES, WHY, by_round, round_name
from bursar.report.stopping import SOURCES
from bursar.report.story import Trust
from bursar.report.wording import THIN, Money, Scale, arm_name, counted, listed, metric_name, sentence

Chart = dict[str, Any]
AUDIT = "audit"  # the purpose of items drawn at random to score the model


# -- learning curves -------------------------------------------------------------------------------------------------
def curve_panels(result: Mapping[str, Any]) -> list[Chart]:
    """Score against money: a chart of the mean over tasks, if there are several, then one per task."""
    curves, slices, tasks = curves_of(result), drawn_slices(result), result["tasks"]
    panels = []
    if len(tasks) > 1 and (curves or slices):
        scale = Scale.of(*(task["metric"] for task in tasks.values()))
        lines = {arm: (curve, curve.mean.tolist()) for arm, curve in curves.items()}
        points = [] if curves else [_mean_slice(part, tasks) for part in slices]
        panels.append(_panel(result, "All tasks", "mean score", scale, lines, points))
    for name, task in tasks.items():
        lines = {arm: (curve, curve.scores[name].tolist()) for arm, curve in curves.items()}
        points = [{key: part[key] for key in ("round", "spent", "items")} | part["scores"][name] for part in slices]
        if lines or points:
            panels.append(_panel(result, name, metric_name(task["metric"]), Scale.of(task["metric"]), lines, points))
    return panels


def _mean_slice(part: Mapping[str, Any], tasks: Iterable[str]) -> dict[str, Any]:
    """The mean of an audit slice over all tasks, which has no interval."""
    mean = float(np.mean([part["scores"][name]["score"] for name in tasks]))
    return {key: part[key] for key in ("round", "spent", "items")} | {"score": mean, "low": None, "high": None}


def _panel(
    result: Mapping[str, Any],
    title: str,
    measure: str,
    scale: Scale,
    lines: Mapping[str, tuple[Curve, list[float]]],
    points: Sequence[Mapping[str, Any]],
) -> Chart:
    money = Money.of(result)
    drawn = [_arm_line(arm, at, *lines[arm], money, scale) for at, arm in enumerate(lines)]
    marks, bands = [_slice_mark(point, money, scale, alone=not lines) for point in points], []
    if not lines:
        drawn = [{**_look(0), "name": "Audit slice", "label": False, "points": [mark["at"] for mark in marks]}]
        known = [mark for mark in marks if mark["low"] is not None]
        bands = [{"look": "arm-1", **{key: [mark[key] for mark in known] for key in ("x", "low", "high")}}]
    scores = [at[1] for line in drawn for at in line["points"]] + [mark["y"] for mark in marks]
    if not lines:
        scores += [end for mark in marks for end in (mark["low"], mark["high"]) if end is not None]
    amounts = [at[0] for line in drawn for at in line["points"]] + [mark["x"] for mark in marks]
    summary = ", ".join(f"{line['name']} to {_end(line)}" for line in drawn)
    return {
        "title": title,
        "measure": measure,
        "words": f"{sentence(measure)} against money spent: {summary}.",
        "x": _money_axis(money, amounts),
        "y": _score_axis(scale, scores),
        "bands": [band for band in bands if len(band["x"]) > 1],
        "lines": drawn,
        "marks": marks,
    }


def _arm_line(arm: str, at: int, curve: Curve, scores: list[float], money: Money, scale: Scale) -> Chart:
    name = sentence(arm_name(arm))
    points = [
        [money.amount(units), scale.value(score), f"{name}: {scale.show(score)} at {money.show(int(units))}, {after}"]
        for units, score, after in zip(curve.money.tolist(), scores, map(_after, curve.rounds), strict=True)
    ]
    return {**_look(at), "name": name, "label": True, "points": points}


def _slice_mark(point: Mapping[str, Any], money: Money, scale: Scale, *, alone: bool) -> Chart:
    """An audit slice with its interval; in a light colour if there are curves."""
    low, high = point["low"], point["high"]
    between = "" if low is None else f" ({scale.show(low)} to {scale.show(high)})"
    x, y = money.amount(point["spent"]), scale.value(point["score"])
    text = (
        f"Audit slice: {scale.show(point['score'])}{between} at {money.show(point['spent'])}, "
        f"on {counted(point['items'], 'item')}"
    )
    ends = [None if end is None else scale.value(end) for end in (low, high)]
    look = "arm-1" if alone else "audit"
    return {"look": look, "x": x, "y": y, "low": ends[0], "high": ends[1], "text": text, "at": [x, y, text]}


def _after(round: int) -> str:
    return "after the seed items" if round == 0 else f"after round {round}"


def _look(at: int) -> dict[str, str]:
    look = at % ARM_COLOURS
    return {"look": f"arm-{look + 1}", "dash": DASHES[look], "shape": SYMBOLS[look]}


def _end(line: Mapping[str, Any]) -> str:
    return str(line["points"][-1][2]).split(": ", 1)[-1] if line["points"] else "nothing yet"


# -- spending --------------------------------------------------------------------------------------------------------
def thing_look(at: int) -> str:
    """The colour of a cost item: reading first, then the tasks.

    >>> thing_look(0), thing_look(1), thing_look(6)
    ('reading', 'task-1', 'task-1')
    """
    return "reading" if at == 0 else f"task-{(at - 1) % TASK_COLOURS + 1}"


def spending_chart(result: Mapping[str, Any]) -> Chart | None:
    """Spending by round, stacked by cost item; audit slices on top, hatched."""
    lines = by_round(result["arms"][result["strategy"]]["spending"])
    if not lines:
        return None
    money = Money.of(result)
    stacks: list[Chart] = []
    for round in sorted(lines):
        audited = [line for line in lines[round] if line["purpose"] == AUDIT]
        others = [line for line in lines[round] if line["purpose"] != AUDIT]
        parts = [part for those in (others, audited) for part in _bar_parts(result, round, those)]
        total = money.show(sum(line["actual"] for line in lines[round]))
        stacks.append({"name": round_name(round), "parts": parts, "text": total})
    most = max(sum(part["size"] for part in stack["parts"]) for stack in stacks)
    summary = ", ".join(f"{stack['name']} {stack['text']}" for stack in stacks)
    return {
        "words": f"Money by round: {summary}.",
        "x": {"title": "round"},
        "y": {"title": "", "prefix": money.currency, "suffix": "", "range": [0, most * 1.06 or 1]},
        "stacks": stacks,
    }


def _bar_parts(result: Mapping[str, Any], round: int, lines: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """One part of a bar for each cost item of these charges."""
    money, parts = Money.of(result), []
    for at, thing in enumerate([READING, *result["tasks"]]):
        paid = [line for line in lines if line["what"] == thing and line["actual"]]
        if not paid:
            continue
        units = sum(line["actual"] for line in paid)
        why = listed([WHY[purpose] for purpose in PURPOSES if any(line["purpose"] == purpose for line in paid)])
        which = sentence(why) if round == 0 else f"Round {round}, {why}"
        parts.append(
            {
                "look": thing_look(at),
                "hatched": paid[0]["purpose"] == AUDIT,
                "size": money.amount(units),
                "text": f"{which}: {money.show(units)} for {thing}",
            }
        )
    return parts


def spending_totals(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Total spending on reading and on each task, and the part of it on audit slices."""
    lines, money = result["arms"][result["strategy"]]["spending"], Money.of(result)
    whole = sum(line["actual"] for line in lines)
    if not whole:
        return []
    rows = [
        (sentence(thing), thing_look(at), False, [line for line in lines if line["what"] == thing])
        for at, thing in enumerate([READING, *result["tasks"]])
    ]
    audited = [line for line in lines if line["purpose"] == AUDIT]
    rows += [("Audit slices (included)", "audit", True, audited)] if audited else []
    found = []
    for name, look, hatched, those in rows:
        units = sum(line["actual"] for line in those)
        share = units / whole
        found.append(
            {
                "name": name,
                "look": look,
                "hatched": hatched,
                "share": share,
                "value": money.brief(units),
                "note": f"{100 * share:.0f}{THIN}%",
            }
        )
    return found


# -- calibration -----------------------------------------------------------------------------------------------------
def reliability_chart(trust: Trust, record: Mapping[str, Any]) -> Chart:
    """Reliability diagram: accuracy of the latest model by confidence, and the number of items."""
    counts = record["counts"]
    most = max(counts)
    marks, bars = [], []
    bins = zip(pairwise(record["edges"]), counts, record["confidence"], record["accuracy"], strict=True)
    for (low, high), count, confidence, accuracy in bins:
        if not count:
            continue
        text = f"Confidence {confidence:.2f}, accuracy {accuracy:.2f}: {counted(count, 'item')}"
        size = 4 + 4 * (count / most) ** 0.5
        marks.append(
            {"look": "arm-1", "x": confidence, "y": accuracy, "low": None, "high": None, "size": size, "text": text}
        )
        bars.append([low, high, count / most])
    ends = {"range": [0.0, 1.0], "prefix": "", "suffix": ""}
    return {
        "title": trust.task,
        "measure": str(trust),
        "words": f"Reliability of {trust.task}: {'; '.join(mark['text'] for mark in marks)}.",
        "x": {**ends, "title": "confidence"},
        "y": {**ends, "title": "accuracy"},
        "rules": [{"look": "rule", "from": [0, 0], "to": [1, 1]}],
        "stems": [[mark["x"], mark["x"], mark["y"]] for mark in marks],
        "corners": ["underconfident", "overconfident"],
        "bars": bars,
        "marks": marks,
    }


# -- stopping --------------------------------------------------------------------------------------------------------
def forecast_chart(result: Mapping[str, Any]) -> Chart | None:
    """The scores behind the stopping advice, the fitted curve, and its forecast for two rounds."""
    ahead = result["arms"][result["strategy"]].get("forecast")
    if ahead is None:
        return None
    money, scale = Money.of(result), Scale.of(*(task["metric"] for task in result["tasks"].values()))
    marks: list[Chart] = []
    for units, score in zip(ahead["money"], ahead["score"], strict=True):
        text = f"{sentence(SOURCES[ahead['source']])}: {scale.show(score)} at {money.show(round(units))}"
        x, y = money.amount(units), scale.value(score)
        marks.append({"look": "arm-1", "x": x, "y": y, "low": None, "high": None, "text": text})
    lines: list[Chart] = []
    bands: list[Chart] = []
    if "curve" in ahead:

        def points(part: Mapping[str, Any], what: str) -> list[list[float]]:
            pairs = zip(part["money"], part[what], strict=True)
            return [[money.amount(units), scale.value(score)] for units, score in pairs]

        plain = {"look": "arm-1", "shape": "none", "label": False, "name": ""}
        lines = [
            {**plain, "dash": "solid", "points": points(ahead["curve"], "score")},
            {**plain, "dash": "dash", "points": points(ahead["ahead"], "score")},
        ]
        low, high = (points(ahead["ahead"], end) for end in ("low", "high"))
        band = {"x": [x for x, _ in low], "low": [y for _, y in low], "high": [y for _, y in high]}
        bands = [{"look": "arm-1", **band}]
    scores = [mark["y"] for mark in marks] + [y for line in lines for _, y in line["points"]]
    scores += [end for band in bands for key in ("low", "high") for end in band[key]]
    amounts = [mark["x"] for mark in marks] + [x for line in lines for x, _ in line["points"]]
    return {
        "title": sentence(SOURCES[ahead["source"]]),
        "measure": "and its forecast for the next two rounds" if lines else "",
        "words": f"{marks[0]['text']}; {marks[-1]['text']}.",
        "x": _money_axis(money, amounts),
        "y": _score_axis(scale, scores),
        "bands": bands,
        "lines": lines,
        "marks": marks,
    }


def agreement_chart(result: Mapping[str, Any]) -> Chart | None:
    """Agreement of each model with the previous one."""
    rounds = [record for record in result["arms"][result["strategy"]]["rounds"] if record.get("agreement")]
    if not rounds:
        return None
    money, lines = Money.of(result), []
    for at, name in enumerate(result["tasks"], start=1):
        points = []
        for record in rounds:
            share = record["agreement"][name]
            text = f"{sentence(name)}: {100 * share:.1f}{THIN}% agreement at {money.show(record['spent'])}"
            points.append([money.amount(record["spent"]), 100 * share, text])
        lines.append(
            {"look": thing_look(at), "dash": "solid", "shape": "circle", "name": name, "label": True, "points": points}
        )
    amounts = [x for line in lines for x, _, _ in line["points"]]
    asked = 100 * result["config"]["stopping"]["agreement"]
    low = min([asked, *(y for line in lines for _, y, _ in line["points"])])
    axis = _money_axis(money, amounts)
    return {
        "title": "Agreement with the previous model",
        "measure": f"stable above {asked:g}{THIN}%",
        "words": "; ".join(line["points"][-1][2] for line in lines) + ".",
        "x": axis,
        "y": {"title": "", "prefix": "", "suffix": " %", "range": [max(0.0, low - 0.1 * (100 - low) - 1), 100.5]},
        "rules": [{"look": "rule", "from": [axis["range"][0], asked], "to": [axis["range"][1], asked]}],
        "lines": lines,
        "marks": [],
    }


# -- the best order --------------------------------------------------------------------------------------------------
def oracle_chart(answer: Mapping[str, Any], arms: Sequence[str]) -> Chart:
    """Score against items: a band of random orders, a line per strategy, and the best order."""
    gap = Gap.from_json(answer)
    start = gap.start["test"]
    amounts = [gap.size * batch for batch in range(gap.batches + 1)]

    def line(name: str, scores: Sequence[float], **look: Any) -> Chart:
        points = [
            [count, SHARE.value(score), f"{name}: {SHARE.show(score)} after {counted(count, 'item')}"]
            for count, score in zip(amounts, (start, *scores), strict=True)
        ]
        return {"name": name, "label": True, "points": points, **look}

    lines = [
        line(sentence(arm_name(arm)), order.curves["test"].tolist(), **_look(arms.index(arm) if arm in arms else 0))
        for arm, order in gap.arms.items()
        if arm != RANDOM
    ]
    lines.append(line(BEST, gap.best.curves["test"].tolist(), look="best", dash="solid", shape="triangle-up"))
    randoms = np.array([order.curves["test"] for order in gap.randoms])
    ends = [[SHARE.value(score) for score in (start, *of(axis=0).tolist())] for of in (randoms.min, randoms.max)]
    mean = line("Random orders", randoms.mean(axis=0).tolist(), look="rule", dash="dot", shape="none")
    scores = [at[1] for one in lines for at in one["points"]] + ends[0] + ends[1]
    return {
        "title": "Score by number of items",
        "measure": "on test items; the band covers all random orders",
        "words": "; ".join(one["points"][-1][2] for one in [*lines, mean]) + ".",
        "x": {"title": "items bought after the seed items", "prefix": "", "suffix": "", "range": [0, amounts[-1]]},
        "y": _score_axis(SHARE, scores),
        "bands": [{"look": "pool", "x": amounts, "low": ends[0], "high": ends[1]}],
        "lines": [mean, *lines[::-1]],
        "marks": [],
    }


# -- axes ------------------------------------------------------------------------------------------------------------
def _money_axis(money: Money, amounts: Sequence[float]) -> dict[str, Any]:
    title = "money spent" if money.currency else "money spent, in units"
    low, high = padded_range(amounts, 0.04, 0.01 * max(amounts) or 1.0)
    return {"title": title, "prefix": money.currency, "suffix": "", "range": [max(0.0, low), high]}


def _score_axis(scale: Scale, scores: Sequence[float]) -> dict[str, Any]:
    low, high = padded_range(scores, 0.1, 2.0 if scale.percent else 0.02)
    bottom, top = (0.0, 100.0) if scale.percent else (-1.0, 1.0)
    return {
        "title": "",
        "prefix": "",
        "suffix": " %" if scale.percent else "",
        "range": [max(bottom, low), min(top, high)],
    }
