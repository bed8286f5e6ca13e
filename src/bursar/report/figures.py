"""The charts, as Plotly reads them. Colours are names of the page's style variables: the page fills them in.

Plotly takes texts for markup, so whatever a person has named is escaped here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bursar.campaign.audit import FEWEST_FOR_INTERVAL
from bursar.ledger.records import READING
from bursar.report.curves import curves_of
from bursar.report.spending import PURPOSES, WHY, by_round, round_name
from bursar.report.story import reliability_of
from bursar.report.wording import Money, Scale, arm_name, listed, sentence

Figure = dict[str, Any]

ARM_COLOURS = 4  # in the style sheet, as --arm-1 and so on
TASK_COLOURS = 5
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
DASHES = ("solid", "dash", "dot", "dashdot")
HEIGHTS = {"mean": 300, "task": 250, "spending": 300, "confidence": 220, "reliability": 340}  # in pixels
TOP, BOTTOM = 12, 52  # margins, in pixels
LABEL_GAP = 17  # pixels between two direct labels


def learning_figures(result: Mapping[str, Any]) -> dict[str, Figure]:
    """A chart a task by its name, and one of the mean over tasks under the empty name if there are several."""
    curves = curves_of(result)
    slices = drawn_slices(result)
    figures = {}
    if len(result["tasks"]) > 1 and curves:
        metrics = [task["metric"] for task in result["tasks"].values()]
        lines = {arm: (curve.money, curve.mean) for arm, curve in curves.items()}
        figures[""] = _learning_figure(result, lines, [], Scale.of(*metrics), HEIGHTS["mean"])
    for name, task in result["tasks"].items():
        lines = {arm: (curve.money, curve.scores[name]) for arm, curve in curves.items()}
        points = [{"spent": part["spent"], "items": part["items"]} | part["scores"][name] for part in slices]
        if lines or points:
            figures[name] = _learning_figure(result, lines, points, Scale.of(task["metric"]), HEIGHTS["task"])
    return figures


def drawn_slices(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The audit slices that are worth drawing: those large enough, or all of them if there is nothing else."""
    slices = result["arms"][result["strategy"]]["audit"]
    large = [part for part in slices if part["items"] >= FEWEST_FOR_INTERVAL]
    return large if curves_of(result) else slices


def _learning_figure(
    result: Mapping[str, Any],
    lines: Mapping[str, tuple[Any, Any]],
    points: Sequence[Mapping[str, Any]],
    scale: Scale,
    height: int,
) -> Figure:
    money = Money.of(result)
    data: list[Figure] = []
    if points:
        data.append(_audit_trace(points, scale, money, alone=not lines))
    arms = list(lines)
    for arm in reversed(arms):  # the strategy last, on top
        units, scores = lines[arm]
        look = arms.index(arm) % ARM_COLOURS
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(sentence(arm_name(arm))),
                "x": [money.amount(u) for u in units.tolist()],
                "y": [scale.value(s) for s in scores.tolist()],
                "line": {"color": f"--arm-{look + 1}", "width": 2.5, "dash": DASHES[look]},
                "marker": {"color": f"--arm-{look + 1}", "size": 7, "symbol": SYMBOLS[look]},
                "hovertemplate": _hover(money, scale),
            }
        )
    low, high = padded_range([y for trace in data for y in _extent(trace)], 0.12, 2.0 if scale.percent else 0.02)
    amounts = [x for trace in data for x in trace["x"]]
    plot_height = height - TOP - BOTTOM
    labels = []
    for arm in arms:
        units, scores = lines[arm]
        labels.append((arm, money.amount(float(units[-1])), scale.value(float(scores[-1]))))
    shifts = spread([(y - low) / (high - low) * plot_height for _, _, y in labels], LABEL_GAP, plot_height)
    layout = base_layout(height, right=20 + max((7 * len(_short(arm)) for arm in arms), default=0))
    layout["annotations"] = [
        {
            "x": x,
            "y": y,
            "text": f"<b>{plain(_short(arm))}</b>",
            "showarrow": False,
            "xanchor": "left",
            "xshift": 9,
            "yshift": shift,
            "font": {"color": f"--arm-{arms.index(arm) % ARM_COLOURS + 1}-ink", "size": 13},
        }
        for (arm, x, y), shift in zip(labels, shifts, strict=True)
    ]
    layout["xaxis"] |= {
        "title": {"text": "money spent", "standoff": 12},
        "tickprefix": plain(money.currency),
        "range": padded_range(amounts, 0.03, 0.01 * max(amounts) or 1.0),
        "nticks": 7,
    }
    layout["yaxis"] |= {"range": [low, high], "ticksuffix": " %" if scale.percent else "", "nticks": 6}
    return {"data": data, "layout": layout}


def _audit_trace(points: Sequence[Mapping[str, Any]], scale: Scale, money: Money, *, alone: bool) -> Figure:
    """Scores on the audit slices with their intervals; light, unless they are all there is."""
    score = [scale.value(p["score"]) for p in points]
    return {
        "type": "scatter",
        "mode": "lines+markers" if alone else "markers",
        "name": "Audit slice",
        "x": [money.amount(p["spent"]) for p in points],
        "y": score,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_reach(p["high"], s, scale) for p, s in zip(points, score, strict=True)],
            "arrayminus": [_reach(p["low"], s, scale) for p, s in zip(points, score, strict=True)],
            "thickness": 1.5,
            "width": 0,
            "color": "--arm-1" if alone else "--audit",
        },
        "line": {"color": "--arm-1", "width": 2.5},
        "marker": {
            "color": "--arm-1" if alone else "--paper",
            "size": 7,
            "line": {"color": "--arm-1" if alone else "--audit", "width": 1.5},
        },
        "customdata": [p["items"] for p in points],
        "hovertemplate": _hover(money, scale).replace("<extra>", " on %{customdata} items<extra>"),
    }


def spending_figure(result: Mapping[str, Any]) -> Figure | None:
    """Money by round, stacked by thing and purpose: audit slices are hatched."""
    lines = by_round(result["arms"][result["strategy"]]["spending"])
    if not lines:
        return None
    money, rounds = Money.of(result), sorted(lines)
    things = [READING, *result["tasks"]]
    data = []
    for purpose in PURPOSES:
        for at, thing in enumerate(things):
            paid = [
                sum(line["actual"] for line in lines[r] if (line["purpose"], line["what"]) == (purpose, thing))
                for r in rounds
            ]
            if not any(paid):
                continue
            colour = thing_colour(at)
            pattern = {"shape": "/", "size": 5, "solidity": 0.35, "fgcolor": "--paper", "fillmode": "overlay"}
            data.append(
                {
                    "type": "bar",
                    "name": plain(f"{sentence(thing)} ({WHY[purpose]})"),
                    "x": [round_name(r) for r in rounds],
                    "y": [money.amount(p) for p in paid],
                    "marker": {
                        "color": colour,
                        "line": {"width": 1, "color": "--paper"},
                        "pattern": {**pattern, "bgcolor": colour} if purpose == "audit" else {"shape": ""},
                    },
                    "hovertemplate": f"%{{fullData.name}}: {plain(money.currency)}%{{y:,}}<extra></extra>",
                }
            )
    layout = base_layout(HEIGHTS["spending"], right=8)
    layout |= {"barmode": "stack", "bargap": 0.45 if len(rounds) < 8 else 0.25}
    layout["xaxis"] |= {"title": {"text": "round", "standoff": 12}, "type": "category", "showgrid": False, "nticks": 24}
    layout["yaxis"] |= {"tickprefix": plain(money.currency), "rangemode": "tozero", "nticks": 6}
    return {"data": data, "layout": layout}


def confidence_figures(result: Mapping[str, Any]) -> dict[str, dict[str, Figure]]:
    """By round and task: how sure the model was of the pool, and of what was chosen from it, in percent of each."""
    records = result["arms"][result["strategy"]]["confidence"]
    figures: dict[str, dict[str, Figure]] = {}
    tops = {
        name: max((max(_shares(r[part][name])) for r in records for part in ("pool", "chosen")), default=1)
        for name in result["tasks"]
    }
    for record in records:
        width = 1 / record["bins"]
        centres = [round((k + 0.5) * width, 6) for k in range(record["bins"])]
        charts = {}
        for name in result["tasks"]:
            layout = base_layout(HEIGHTS["confidence"], right=8)
            layout |= {"barmode": "overlay", "bargap": 0}
            layout["xaxis"] |= {"title": {"text": "confidence", "standoff": 12}, "range": [0, 1], "dtick": 0.25}
            layout["xaxis"] |= {"showgrid": False}
            layout["yaxis"] |= {"range": [0, 1.08 * tops[name]], "ticksuffix": " %", "nticks": 5}
            charts[name] = {
                "data": [
                    _histogram(centres, record["pool"][name], "Pool", "--pool", 0.92 * width),
                    _histogram(centres, record["chosen"][name], "Chosen", "--arm-1", 0.46 * width),
                ],
                "layout": layout,
                "words": f"Histogram of confidence for {name}: {sum(record['pool'][name]):,} items of mean "
                f"{record['mean'][name]:.2f}, of which {sum(record['chosen'][name]):,} were chosen.",
            }
        figures[str(record["round"])] = charts
    return figures


def reliability_figures(result: Mapping[str, Any]) -> dict[str, Figure]:
    """By task: how right the newest model was where it was so and so sure."""
    return {name: reliability_figure(name, record) for name, record in reliability_of(result).items()}


def reliability_figure(name: str, record: Mapping[str, Any]) -> Figure:
    """Accuracy against confidence, a point a bin beside the line where both are equal; how many items, beneath."""
    counts, edges = record["counts"], record["edges"]
    filled = [k for k, count in enumerate(counts) if count]
    said, right = ([round(record[of][k], 4) for k in filled] for of in ("confidence", "accuracy"))
    sizes = [counts[k] for k in filled]
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    equal = {**line, "x": [0, 1], "y": [0, 1], "line": {"color": "--muted", "width": 1.5, "dash": "dash"}}
    stems = {
        **line,
        "x": [x for c in said for x in (c, c, None)],
        "y": [y for c, a in zip(said, right, strict=True) for y in (c, a, None)],
        "line": {"color": "--audit", "width": 2},
    }
    points: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": said,
        "y": right,
        "marker": {
            "color": "--arm-1",
            "size": [round(7 + 7 * math.sqrt(size / max(sizes)), 1) for size in sizes],
            "line": {"color": "--paper", "width": 1.5},
            "opacity": 1,
        },
        "cliponaxis": False,
        "customdata": sizes,
        "hovertemplate": "said %{x:.2f}, was %{y:.2f} right: %{customdata:,} items<extra></extra>",
    }
    bars: Figure = {
        "type": "bar",
        "x": [round((low + high) / 2, 6) for low, high in pairwise(edges)],
        "y": list(counts),
        "width": [round(0.92 * (high - low), 6) for low, high in pairwise(edges)],
        "yaxis": "y2",
        "marker": {"color": "--pool"},
        "hovertemplate": "%{y:,} items<extra></extra>",
    }
    told = [f"{a:.2f} at {c:.2f} ({n:,})" for a, c, n in zip(right, said, sizes, strict=True)]
    return {
        "data": [equal, stems, points, bars],
        "layout": _reliability_layout(),
        "words": f"Reliability diagram for {name}: accuracy at confidence (items): {listed(told)}.",
    }


def _reliability_layout() -> Figure:
    layout = base_layout(HEIGHTS["reliability"], right=16)
    layout["margin"] |= {"l": 64}
    ends = {"range": [-0.02, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    layout["xaxis"] |= {**ends, "title": {"text": "how sure it was", "standoff": 12}, "anchor": "y2"}
    layout["yaxis2"] = layout["yaxis"] | {"domain": [0, 0.15], "showgrid": False, "nticks": 3, "rangemode": "tozero"}
    layout["yaxis"] |= {**ends, "title": {"text": "how right it was", "standoff": 10}, "domain": [0.22, 1]}
    corners = (("not sure enough", 0.01, "left", 0.99, "top"), ("too sure", 0.99, "right", 0.01, "bottom"))
    look = {"showarrow": False, "font": {"color": "--muted", "size": 12}}
    layout["annotations"] = [
        {"text": text, "x": x, "xanchor": xanchor, "y": y, "yanchor": yanchor, **look}
        for text, x, xanchor, y, yanchor in corners
    ]
    return layout


def thing_colour(at: int) -> str:
    """The style variable of a thing that money is paid for: reading first, then the tasks."""
    return "--reading" if at == 0 else f"--task-{(at - 1) % TASK_COLOURS + 1}"


def spread(places: Sequence[float], gap: float, most: float) -> list[float]:
    """By how much to move labels, in pixels up, so that no two are nearer than the gap and all stay within the plot.

    >>> spread([100, 104], gap=16, most=200)
    [-6.0, 6.0]
    >>> spread([10, 100], gap=16, most=200)
    [0.0, 0.0]
    """
    order = np.argsort(places, kind="stable").tolist()
    groups: list[tuple[float, list[int]]] = []  # the middle of a run of labels, and the labels
    for at in order:
        groups.append((places[at], [at]))
        while len(groups) > 1:
            (below, first), (above, second) = groups[-2:]
            if above - below >= gap * (len(first) + len(second)) / 2:
                break
            both = first + second
            middle = (below * len(first) + above * len(second)) / len(both)
            half = gap * (len(both) - 1) / 2
            groups[-2:] = [(min(max(middle, half), max(most - half, half)), both)]
    moved = [0.0] * len(places)
    for middle, members in groups:
        for k, at in enumerate(members):
            moved[at] = round(middle + gap * (k - (len(members) - 1) / 2) - places[at], 2)
    return moved


# -- small things ----------------------------------------------------------------------------------------------------
def base_layout(height: int, right: int) -> Figure:
    """What all charts have in common."""
    axis = {
        "fixedrange": True,
        "gridcolor": "--grid",
        "zeroline": False,
        "color": "--muted",
        "tickfont": {"size": 12},
        "ticks": "",
        "separatethousands": True,
    }
    return {
        "height": height,
        "margin": {"l": 56, "r": right, "t": TOP, "b": BOTTOM, "pad": 4},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "--ink", "size": 12, "family": "--font"},
        "hoverlabel": {"bgcolor": "--paper", "bordercolor": "--line", "font": {"color": "--ink", "family": "--font"}},
        "showlegend": False,
        "dragmode": False,
        "xaxis": {**axis},
        "yaxis": {**axis},
    }


def _histogram(centres: list[float], counts: Sequence[int], name: str, colour: str, width: float) -> Figure:
    return {
        "type": "bar",
        "name": name,
        "x": centres,
        "y": [round(share, 4) for share in _shares(counts)],
        "width": width,
        "customdata": list(counts),
        "marker": {"color": colour},
        "hovertemplate": "%{fullData.name}: %{customdata:,} items, %{y:.1f} %<extra></extra>",
    }


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [100 * count / total if total else 0.0 for count in counts]


def _hover(money: Money, scale: Scale) -> str:
    number = "%{y:.1f} %" if scale.percent else "%{y:.3f}"
    return f"%{{fullData.name}}: {number} at {plain(money.currency)}%{{x:,}}<extra></extra>"


def _reach(end: float | None, score: float, scale: Scale) -> float:
    """How far an interval reaches from its score; nothing where there is none."""
    return 0.0 if end is None else abs(scale.value(end) - score)


def _extent(trace: Figure) -> list[float]:
    """The scores a trace must have room for; intervals count only where there is nothing else."""
    scores: list[float] = list(trace["y"])
    if trace["mode"] == "lines+markers" and "error_y" in trace:
        error = trace["error_y"]
        scores += [y + e for y, e in zip(trace["y"], error["array"], strict=True)]
        scores += [y - e for y, e in zip(trace["y"], error["arrayminus"], strict=True)]
    return scores


def padded_range(values: Sequence[float], share: float, least: float) -> tuple[float, float]:
    """The values with some room on both sides, and never a range of nothing."""
    low, high = min(values), max(values)
    room = max(share * (high - low), least)
    return round(low - room, 4), round(high + room, 4)


def _short(arm: str, most: int = 14) -> str:
    name = sentence(arm_name(arm))
    return name if len(name) <= most else name[: most - 1] + "…"


def plain(text: str) -> str:
    """A text that Plotly shows as it is."""
    return html.escape(text, quote=False)
