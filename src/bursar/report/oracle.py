"""How far the strategies came towards the best order found: in sentences, a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bursar.oracle.comparison import BEYOND_LUCK, Gap, Measured
from bursar.oracle.judge_registry import PROBE
from bursar.report.curves import RANDOM
from bursar.report.figures import (
    ARM_COLOURS,
    BOTTOM,
    DASHES,
    LABEL_GAP,
    SYMBOLS,
    TOP,
    Figure,
    base_layout,
    padded_range,
    plain,
    spread,
)
from bursar.report.tables import Table
from bursar.report.wording import THIN, Scale, arm_name, counted, listed, metric_name, sentence

HEIGHT = 300  # in pixels
SCALE = Scale(percent=True)
BEST = "Best found"
JUDGES = {
    "probe": "a probe, ridge regression on frozen features",
    "aoe": "AOE, an average of word vectors with two layers, trained anew for every set of items",
    "cnn": "a small convolutional network, trained anew for every set of items",
    "lstm": "a small BiLSTM, trained anew for every set of items",
    "tagger": "a small BiLSTM that writes tags, trained anew for every set of items",
}
COLUMNS = ("Order", "Test items", "Of the way", "Validation items", "Of the way")


def oracle_of(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The oracle's answer about a run, if it has one."""
    found: Mapping[str, Any] | None = result.get("oracle")
    return found if found and "arms" in found else None


def oracle_words(answer: Mapping[str, Any]) -> list[str]:
    """How far each strategy came, the first one in a sentence of its own, and how sure that is."""
    gap = Gap.from_json(answer)
    (mean, apart), best = gap.random(), gap.best.quality()
    scores = f"random orders score {SCALE.show(mean)} (±{100 * apart:.1f}) and the best order found {SCALE.show(best)}"
    way = gap.way()
    if way is None:
        return [
            "On the test items the best order found is hardly better than random ones, so no strategy can be placed "
            f"between them: averaged over the batches, {scores}. A longer search may find a better one."
        ]
    first, *others = sorted(gap.arms, key=lambda arm: arm == RANDOM)  # random only where there is nobody else
    words = [_reached(sentence(arm_name(first)), gap.share(first) or 0.0, luck=BEYOND_LUCK * apart / way)]
    named = [f"{arm_name(arm)} {share_words(gap.share(arm))}" for arm in others if arm != RANDOM]
    if named:
        words.append(f"Beside it: {listed(named)}.")
    differ = f"random orders differ by ±{share_words(apart / way)} of that way among themselves"
    return [*words, f"Averaged over the batches, {scores}; {differ}."]


def _reached(name: str, share: float, luck: float) -> str:
    more = ""
    if abs(share) < luck:
        more = ", which luck alone may bring"
    elif round(100 * share) < 0:
        more = ": it did worse than random orders do on average"
    elif round(100 * share) > 100:
        more = ": it did even better than that one"
    return f"{name} reached {share_words(share)} of the way from random to the best order found{more}."


def oracle_note(answer: Mapping[str, Any]) -> str:
    """What was compared, and by whom."""
    gap, items = Gap.from_json(answer), answer["items"]
    batches = f"{gap.batches} batches" if gap.batches > 1 else "one batch"
    return (
        f"Each order is {batches} of {counted(gap.size, 'item')}, what a strategy bought first after its start: all "
        f"are compared at equal numbers of items, not of money. The judge is {JUDGES[answer['judge']]}, not the "
        f"campaign’s model; the score is {metric_name(answer['metric'])} of "
        f"{listed(answer['tasks'])} on {counted(items['test'], 'test item')}."
    )


def search_words(answer: Mapping[str, Any]) -> str:
    """The settings of the search, and what it looked at."""
    plan, items = answer["plan"], answer["items"]
    return (
        f"The search took {counted(plan['steps'], 'step')} of annealing (cooling {plan['cooling']:.3g}) and "
        f"{plan['greedy_steps']:,} greedy ones from seed {answer['seed']}, choosing from "
        f"{counted(items['pool'], 'pool item')}, and looked at {counted(items['validation'], 'validation item')} alone."
    )


def oracle_cautions(answer: Mapping[str, Any]) -> list[str]:
    """What was done otherwise than usual, and who was left out."""
    words = []
    if answer["validation_from"] == "half of the test items":
        words.append("No labelled items were left over to search on, so the test items were cut in two halves for it.")
    if answer["aside_from"] == "test items":
        count = counted(answer["items"]["aside"], "test item")
        use = "set the probe’s penalty" if answer["judge"] == PROBE else "decided when a training stops"
        words.append(f"There are no development items, so {count} {use} instead.")
    if len(set(answer["bought"].values())) > 1:
        many = [f"{arm_name(arm)} {count:,}" for arm, count in answer["bought"].items()]
        words.append(f"Bought after the start: {listed(many)}; what is beyond the shared number is left out.")
    words += [f"Task {name} is left out: {why}." for name, why in answer["tasks_left_out"].items()]
    words += [f"{sentence(arm_name(arm))} is left out: {why}." for arm, why in answer["arms_left_out"].items()]
    return words


def oracle_table(answer: Mapping[str, Any]) -> Table:
    """Random orders, every strategy's and the best one, on test and validation items."""
    gap = Gap.from_json(answer)

    def cells(name: str, order: Measured, shares: list[float | None]) -> tuple[str, ...]:
        test, held = (SCALE.show(order.quality(part)) for part in ("test", "validation"))
        return name, test, share_words(shares[0]), held, share_words(shares[1])

    apart = [gap.random(part) for part in ("test", "validation")]
    random = [f"{SCALE.show(mean)} ±{THIN}{100 * by:.1f}" for mean, by in apart]
    rows: list[tuple[str, ...]] = [(f"{len(gap.randoms)} random orders", random[0], "0\u202f%", random[1], "0\u202f%")]
    for arm, order in gap.arms.items():
        name = "Random, as it ran" if arm == RANDOM else arm
        rows.append(cells(name, order, [gap.share(arm, part) for part in ("test", "validation")]))
    best = [None if gap.way(part) is None else 1.0 for part in ("test", "validation")]
    rows.append(cells("Best order found", gap.best, best))
    return Table(COLUMNS, tuple(rows))


def oracle_figure(result: Mapping[str, Any]) -> Figure | None:
    """Scores on test items as items are bought: a band of random orders, a line each strategy, and the best order."""
    answer = oracle_of(result)
    if answer is None:
        return None
    gap, arms = Gap.from_json(answer), list(result["arms"])
    start = gap.start["test"]
    amounts = [gap.size * batch for batch in range(gap.batches + 1)]

    def line(name: str, order: Measured, colour: str, **look: Any) -> Figure:
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": plain(name),
            "x": amounts,
            "y": _values(start, order.curves["test"]),
            "line": {"color": colour, "width": 2.5, "dash": look.get("dash", "solid")},
            "marker": {"color": colour, "size": 7, "symbol": look.get("symbol", "circle")},
            "hovertemplate": "%{fullData.name}: %{y:.1f} % after %{x:,} items<extra></extra>",
        }

    lines, inks = [], []
    for arm, order in gap.arms.items():
        look = arms.index(arm) % ARM_COLOURS if arm in arms else 0
        lines.append(line(_short(arm), order, f"--arm-{look + 1}", dash=DASHES[look], symbol=SYMBOLS[look]))
        inks.append(f"--arm-{look + 1}-ink")
    lines.append(line(BEST, gap.best, "--good", symbol="star"))
    inks.append("--good")
    data = [*_band(gap, amounts), *lines[::-1]]
    return {"data": data, "layout": _layout(data, lines, inks, amounts), "words": _spoken(gap)}


def _band(gap: Gap, amounts: list[int]) -> list[Figure]:
    """All random orders from the lowest to the highest, and their mean."""
    curves, start = np.array([order.curves["test"] for order in gap.randoms]), gap.start["test"]
    edge = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "x": amounts}
    thin = {"color": "--pool", "width": 0.5}
    return [
        {**edge, "y": _values(start, curves.max(axis=0)), "line": thin},
        {**edge, "y": _values(start, curves.min(axis=0)), "line": thin, "fill": "tonexty", "fillcolor": "--pool"},
        {**edge, "y": _values(start, curves.mean(axis=0)), "line": {"color": "--muted", "width": 1.5, "dash": "dot"}},
    ]


def _layout(data: list[Figure], lines: list[Figure], inks: list[str], amounts: list[int]) -> Figure:
    low, high = padded_range([y for trace in data for y in trace["y"]], 0.08, 1.0)
    height = HEIGHT - TOP - BOTTOM
    shifts = spread([(line["y"][-1] - low) / (high - low) * height for line in lines], LABEL_GAP, height)
    layout = base_layout(HEIGHT, right=24 + max(7 * len(line["name"]) for line in lines))
    layout["annotations"] = [
        {
            "x": amounts[-1],
            "y": line["y"][-1],
            "text": f"<b>{line['name']}</b>",
            "showarrow": False,
            "xanchor": "left",
            "xshift": 9,
            "yshift": shift,
            "font": {"color": ink, "size": 13},
        }
        for line, ink, shift in zip(lines, inks, shifts, strict=True)
    ]
    layout["xaxis"] |= {
        "title": {"text": "items bought after the start", "standoff": 12},
        "range": padded_range(amounts, 0.03, 0.1),
        "nticks": 7,
    }
    layout["yaxis"] |= {"range": [low, high], "ticksuffix": " %", "nticks": 6}
    return layout


def _spoken(gap: Gap) -> str:
    told = [f"{arm_name(arm)} to {SCALE.show(float(order.curves['test'][-1]))}" for arm, order in gap.arms.items()]
    told.append(f"the best order found to {SCALE.show(float(gap.best.curves['test'][-1]))}")
    last = [order.curves["test"][-1] for order in gap.randoms]
    band = f"random orders between {SCALE.show(float(min(last)))} and {SCALE.show(float(max(last)))}"
    return f"Line chart of scores against items bought, from {SCALE.show(gap.start['test'])}: {listed([*told, band])}."


def share_words(share: float | None) -> str:
    """A share of the way in whole percent, with a minus sign where it leads away.

    >>> share_words(0.341), share_words(-0.12), share_words(-0.001), share_words(None)
    ('34\u202f%', '−12\u202f%', '0\u202f%', '–')
    """
    if share is None:
        return "–"
    whole = round(100 * share)
    return f"{'−' if whole < 0 else ''}{abs(whole)}{THIN}%"


def _values(start: float, curve: Any) -> list[float]:
    return [SCALE.value(score) for score in (start, *curve.tolist())]


def _short(arm: str, most: int = 14) -> str:
    name = sentence(arm_name(arm))
    return name if len(name) <= most else name[: most - 1] + "…"
