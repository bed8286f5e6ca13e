"""How close the strategies came to the best labelling order found: words, a chart and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bursar.campaign.curves import RANDOM
from bursar.campaign.results import RunResult
from bursar.oracle.comparison import BEYOND_LUCK, OrderComparison, OrderScores
from bursar.oracle.judge import PROBE
from bursar.ragged import FloatArray
from bursar.report.charts import Axis, Band, Chart, Point, Polyline, arm_look, padded_range, score_axis
from bursar.report.tables import Table
from bursar.report.wording import THIN, Scale, arm_name, counted, listed, metric_name, percent, sentence

HEIGHT = 320  # in pixels
SCALE = Scale(percent=True)
BEST = "Best found"
RANDOMS = "Random orders"
JUDGES = {
    "probe": "a probe (ridge regression on frozen features)",
    "aoe": "AOE (an average of word vectors with two layers), retrained for every set of items",
    "cnn": "a small convolutional network, retrained for every set of items",
    "lstm": "a small BiLSTM, retrained for every set of items",
    "tagger": "a small BiLSTM tagger, retrained for every set of items",
}
PARTS = ("test", "validation")
COLUMNS = ("Order", "Test items", "Of the way", "Validation items", "Of the way")


def oracle_section(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the report's section about the best order, beside its chart."""
    return {
        "words": oracle_words(answer),
        "note": oracle_note(answer),
        "made": [search_words(answer), *oracle_cautions(answer)],
        "table": oracle_table(answer),
        "orders": len(answer["random_curves"]),
    }


def oracle_of(result: RunResult) -> Mapping[str, Any] | None:
    """The oracle's answer about a run, if any."""
    found = result.oracle
    return found if found and "arms" in found else None


def oracle_words(answer: Mapping[str, Any]) -> list[str]:
    """How close each strategy came to the best order, and how certain that is."""
    gap = OrderComparison.from_json(answer)
    (mean, apart), best = gap.random(), gap.best.quality()
    scores = f"random orders score {SCALE.show(mean)} (±{100 * apart:.1f}) and the best order found {SCALE.show(best)}"
    way = gap.way()
    if way is None:
        return [
            "On the test items, the best order found is hardly better than random ones, so strategies cannot be placed "
            f"between them: averaged over the batches, {scores}. A longer search may find a better order."
        ]
    first, *others = sorted(gap.arms, key=lambda arm: arm == RANDOM)  # random last
    words = [_reached(sentence(arm_name(first)), gap.share(first) or 0.0, luck=BEYOND_LUCK * apart / way)]
    named = [f"{arm_name(arm)} {share_words(gap.share(arm))}" for arm in others if arm != RANDOM]
    if named:
        words.append(f"Others: {listed(named)}.")
    differ = f"random orders vary by ±{share_words(apart / way)} of that way"
    return [*words, f"Averaged over the batches, {scores}; {differ}."]


def _reached(name: str, share: float, luck: float) -> str:
    more = ""
    if abs(share) < luck:
        more = ", which may be luck"
    elif round(100 * share) < 0:
        more = ", worse than random orders on average"
    elif round(100 * share) > 100:
        more = ", better than that order"
    return f"{name} reached {share_words(share)} of the way from random to the best order found{more}."


def oracle_note(answer: Mapping[str, Any]) -> str:
    """What was compared, and how."""
    gap, items = OrderComparison.from_json(answer), answer["items"]
    batches = f"{gap.batches} batches" if gap.batches > 1 else "one batch"
    return (
        f"Each order is {batches} of {counted(gap.size, 'item')}: the first items a strategy bought after its start. "
        f"Orders are compared at equal numbers of items, not at equal cost. They are scored by "
        f"{JUDGES[answer['judge']]}, not by the campaign’s model. The score is {metric_name(answer['metric'])} of "
        f"{listed(answer['tasks'])} on {counted(items['test'], 'test item')}."
    )


def search_words(answer: Mapping[str, Any]) -> str:
    """The settings of the search."""
    plan, items = answer["plan"], answer["items"]
    return (
        f"The search took {counted(plan['steps'], 'annealing step')} (cooling {plan['cooling']:.3g}) and "
        f"{counted(plan['greedy_steps'], 'greedy step')} with seed {answer['seed']}, selecting from "
        f"{counted(items['pool'], 'pool item')}. It used only {counted(items['validation'], 'validation item')}."
    )


def oracle_cautions(answer: Mapping[str, Any]) -> list[str]:
    """Deviations from the usual procedure, and what was left out."""
    words = []
    if answer["validation_from"] == "half of the test items":
        words.append("There were no unused labelled items to search on, so half of the test items were used.")
    if answer["aside_from"] == "test items":
        count = counted(answer["items"]["aside"], "test item")
        use = "to set the probe’s penalty" if answer["judge"] == PROBE else "for early stopping"
        words.append(f"There are no development items, so {count} were used {use}.")
    if len(set(answer["bought"].values())) > 1:
        many = [f"{arm_name(arm)} {count:,}" for arm, count in answer["bought"].items()]
        words.append(f"Bought after the start: {listed(many)}; only the number common to all is compared.")
    words += [f"Task {name} is left out: {why}." for name, why in answer["tasks_left_out"].items()]
    words += [f"{sentence(arm_name(arm))} is left out: {why}." for arm, why in answer["arms_left_out"].items()]
    return words


def oracle_table(answer: Mapping[str, Any]) -> Table:
    """Scores of random orders, of the strategies and of the best order, on test and validation items."""
    gap = OrderComparison.from_json(answer)

    def cells(name: str, order: OrderScores, shares: list[float | None]) -> tuple[str, ...]:
        test, held = (SCALE.show(order.quality(part)) for part in PARTS)
        return name, test, share_words(shares[0]), held, share_words(shares[1])

    apart = [gap.random(part) for part in PARTS]
    random = [f"{SCALE.show(mean)} ±{THIN}{100 * by:.1f}" for mean, by in apart]
    rows: list[tuple[str, ...]] = [(f"{len(gap.randoms)} random orders", random[0], "0\u202f%", random[1], "0\u202f%")]
    for arm, order in gap.arms.items():
        name = "Random, as run" if arm == RANDOM else arm
        rows.append(cells(name, order, [gap.share(arm, part) for part in PARTS]))
    best = [None if gap.way(part) is None else 1.0 for part in PARTS]
    rows.append(cells("Best order found", gap.best, best))
    return Table(COLUMNS, tuple(rows))


def oracle_chart(answer: Mapping[str, Any], arms: Sequence[str]) -> Chart:
    """Test scores by items bought, in the looks of ``arms``: strategies, the best order, a band of random ones."""
    gap = OrderComparison.from_json(answer)
    amounts = [gap.size * batch for batch in range(gap.batches + 1)]

    def points(name: str, curve: FloatArray) -> list[Point]:
        scores = (gap.start["test"], *curve.tolist())
        return [
            Point(count, SCALE.value(score), f"{name}: {SCALE.show(score)} after {counted(count, 'item')}")
            for count, score in zip(amounts, scores, strict=True)
        ]

    randoms = np.array([order.curves["test"] for order in gap.randoms])
    low, mean, high = (points(RANDOMS, of(axis=0)) for of in (randoms.min, randoms.mean, randoms.max))
    lines = [Polyline(BEST, "good", points(BEST, gap.best.curves["test"]), shape="triangle-up", label=True)]
    for arm, order in gap.arms.items():
        name, look = sentence(arm_name(arm)), arm_look(arms.index(arm) if arm in arms else 0)
        places = points(name, order.curves["test"])
        lines.append(Polyline(name, look.colour, places, look.dash, look.shape, label=True))
    lines.append(Polyline(RANDOMS, "muted", mean, "dot", "none", label=True))
    band = Band("pool", amounts, [_y(point) for point in low], [_y(point) for point in high])
    scores = [_y(point) for line in lines for point in line.points] + [*band.low, *band.high]
    left, right = padded_range(amounts, 0.03, 0.1)
    return Chart(
        _spoken(gap),
        Axis(left, right, "items bought after the start"),
        score_axis(SCALE, scores),
        "Score by items bought",
        "on test items; band: all random orders",
        HEIGHT,
        lines=lines,
        bands=[band],
    )


def _spoken(gap: OrderComparison) -> str:
    told = [f"{arm_name(arm)} to {SCALE.show(float(order.curves['test'][-1]))}" for arm, order in gap.arms.items()]
    told.append(f"the best order found to {SCALE.show(float(gap.best.curves['test'][-1]))}")
    last = [order.curves["test"][-1] for order in gap.randoms]
    band = f"random orders between {SCALE.show(float(min(last)))} and {SCALE.show(float(max(last)))}"
    return f"Scores against items bought, from {SCALE.show(gap.start['test'])}: {listed([*told, band])}."


def _y(point: Point) -> float:
    return point.y or 0.0


def share_words(share: float | None) -> str:
    """A share of the way from random to best, in percent."""
    return "–" if share is None else percent(round(share, 2) + 0.0).replace("-", "−")
