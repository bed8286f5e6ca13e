"""The top of the report: what was spent, how good the model is, and what was saved against random labelling.

The web page and the command line use these words, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.campaign.curves import RANDOM, CurveComparison, compare, curves_of
from bursar.campaign.results import RunResult, SavedShare
from bursar.campaign.savings import A_LOT, FEWEST_ITEMS, saved_against_random
from bursar.report.spending import bought_words, items_of, labels_of, open_round
from bursar.report.wording import (
    NINETY_PERCENT,
    THIN,
    Money,
    Scale,
    arm_name,
    counted,
    listed,
    mean_scale,
    metric_name,
    percent,
    round_phrase,
    sentence,
    strategy_name,
)
from bursar.selection import make_strategy

LEVEL = 0.0005  # scores closer than this look the same
TITLE = "Cost against random"
LITTLE = 0.005  # share of the money that counts as nothing


@dataclass(frozen=True)
class Tile:
    """A key figure."""

    title: str
    value: str
    note: str
    tone: str = ""  # good, poor, or neither


@dataclass(frozen=True)
class FinalScore:
    """The latest score of a task: on the test set, or on the latest audit slice with its 90 % interval."""

    task: str
    metric: str
    score: float
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        return Scale.of(self.metric).show(self.score)


@dataclass(frozen=True)
class Summary:
    """The top of the page."""

    status: str
    over: bool
    lead: tuple[str, ...]  # sentences
    cautions: tuple[str, ...]
    tiles: tuple[Tile, ...]


def summarise(result: RunResult) -> Summary:
    """Summarise a run."""
    over, status = _status(result)
    main, name = result.main, sentence(strategy_name(result.main))
    bought = f"{name} spent {Money.of(result).show(main.spent)} on {bought_words(main.spending)}."
    lead = [bought if main.spending else f"{name} has not bought anything yet."]
    if main.rounds:
        lead += [_score_words(result), comparison_words(result), saved_words(result)]
    caution = (
        f"One run with one seed: on {counted(result.corpus.test, 'test item')}, a score is known to about "
        f"±{mean_scale(result).difference(luck_of(result))}, so a smaller difference may be luck."
    )
    cautions = () if comparison_of(result) is None else (caution,)
    return Summary(status, over, tuple(words for words in lead if words), cautions, tuple(_tiles(result)))


def final_scores(result: RunResult) -> list[FinalScore]:
    """The latest score of every task; empty if nothing has been scored."""
    main, metrics = result.main, result.metrics.items()
    if main.tested:
        return [FinalScore(name, metric, main.tested[-1].test[name][metric]) for name, metric in metrics]
    latest = main.audit[-1].scores if main.audit else {}
    return [FinalScore(n, metric, latest[n].score, latest[n].interval) for n, metric in metrics if n in latest]


def baseline(result: RunResult) -> str | None:
    """The strategy to compare with: random if it was run, else the first other one."""
    others = [arm for arm in result.arms if arm != result.strategy]
    return RANDOM if RANDOM in others else next(iter(others), None)


def comparison_of(result: RunResult) -> CurveComparison | None:
    """The strategy against the baseline at equal cost, if both have a curve."""
    curves, other = curves_of(result), baseline(result)
    if result.strategy not in curves or other not in curves:
        return None
    return compare(curves[result.strategy], curves[other])


def comparison_words(result: RunResult) -> str:
    """How the strategy did against the baseline at equal cost, or why that is not known; empty without one."""
    other = baseline(result)
    if other is None:
        return "The strategies to compare it with have not started yet." if result.config.compare else ""
    name = arm_name(other)
    if not result.corpus.test:
        return f"There is no test set, so it cannot be compared with {name}."
    found = comparison_of(result)
    if found is None:
        return f"A comparison with {name} needs at least two scored rounds."
    scale = mean_scale(result)
    over_tasks = " on average over tasks" if len(result.tasks) > 1 else ""
    if abs(found.gain) < LEVEL:
        return f"At equal cost, it ended level with {name}{over_tasks}" + _on_the_way(result, other, scale, ended=0)
    ended = f"ended {scale.difference(found.gain)} {'higher' if found.gain > 0 else 'lower'}{over_tasks}"
    if abs(found.saved) < LITTLE:
        return f"At equal cost, it {ended} than {name}; before that, it was no better or worse."
    if found.gain < 0:
        words = f"It did not beat {name} here: the same score cost {saving(found.saved)}, and at equal cost it {ended}"
        return words + _on_the_way(result, other, scale, ended=-1)
    if found.from_the_start:
        return f"{sentence(name)} did not improve; {arm_name(result.strategy)} {ended} at equal cost."
    return f"It reached the final score of {name} for {saving(found.saved)}, and {ended} at equal cost."


def _on_the_way(result: RunResult, other: str, scale: Scale, ended: int) -> str:
    """How the curves compare before their ends, if that adds anything."""
    areas = result.comparison
    if result.strategy not in areas or other not in areas:
        return "."
    gain = areas[result.strategy].mean - areas[other].mean
    if abs(gain) < LEVEL:
        return "."
    joint = ", and was" if ended * gain >= 0 else ", though it was"
    return f"{joint} {scale.difference(gain)} {'higher' if gain > 0 else 'lower'} on average along the curve."


# -- parts of the summary --------------------------------------------------------------------------------------------
def _status(result: RunResult) -> tuple[bool, str]:
    main, planned = result.main, result.config.budget.rounds
    scored = main.rounds[-1].round if main.rounds else None
    if main.ended is not None:
        done = counted(scored or 0, "round")
        wanted = {make_strategy(name).name for name in result.config.compare}
        if not all(arm in result.arms and result.arms[arm].ended is not None for arm in wanted):
            return False, f"{done} done; the comparison is still running"
        if not scored:
            return True, "Finished: seed items only"
        return True, f"Finished after {done}" + ("" if scored >= planned else f": {main.ended}")
    pending = open_round(result, result.strategy)
    if pending is not None:
        number, annotated, asked = pending
        which = round_phrase(number) + (f" of {planned}" if number else "")
        return False, f"In progress: {which}, {annotated:,} of {asked:,} annotated"
    if scored is None:
        return False, "In progress: no model yet"
    return False, f"In progress: {scored} of {counted(planned, 'round')} done"


def _score_words(result: RunResult) -> str:
    scores = final_scores(result)
    if not scores:
        return "There is no test set and no audit slice, so its score is not known."
    where = "test set" if result.main.tested else "latest audit slice"
    parts = [f"{score} {metric_name(score.metric)} for {score.task}" for score in scores]
    return f"The model reaches {listed(parts)} on the {where}."


def luck_of(result: RunResult) -> float:
    """Half the 90 % interval of a share the size of the latest scores, on as many items as the test set has."""
    scores = [min(1.0, max(0.0, score.score)) for score in final_scores(result)]
    if not scores or not result.corpus.test:
        return 0.0
    share = sum(scores) / len(scores)
    return NINETY_PERCENT * math.sqrt(share * (1 - share) / result.corpus.test)


def _tiles(result: RunResult) -> list[Tile]:
    main, money = result.main, Money.of(result)
    lines = main.spending
    items = items_of(lines)
    labels = f"{counted(labels_of(lines), 'label')}, {money.average(main.spent, items)} per item"
    tiles = [
        Tile("Spent", money.brief(main.spent), _budget_words(result)),
        Tile("Items annotated", f"{items:,}", labels if items else "none yet"),
    ]
    compared, luck = comparison_of(result), luck_of(result)
    for score in final_scores(result):
        note, tone, scale = metric_name(score.metric), "", Scale.of(score.metric)
        if compared is not None:
            gain, other = compared.mine[score.task] - compared.others[score.task], arm_name(compared.other)
            by = f"{scale.difference(gain)} {'above' if gain > 0 else 'below'}" if abs(gain) >= LEVEL else "level with"
            note, tone = f"{note}, {by} {other}", _tone(gain, luck)
        elif score.interval:
            note += f", 90{THIN}% interval {scale.between(*score.interval)}"
        tiles.append(Tile(score.task, str(score), note, tone))
    shown = saved_tile(result) if main.rounds else None
    if shown is not None:
        value, note, tone = shown
        if compared is not None and compared.other == RANDOM:
            tone = _tone(compared.gain, luck)
        tiles.append(Tile(TITLE, value, note, tone))
    return tiles


def _tone(gain: float, luck: float) -> str:
    """Good or poor, if that is more than luck."""
    return "good" if gain > luck else "poor" if gain < -luck else ""


def _budget_words(result: RunResult) -> str:
    total, money = result.config.budget.total, Money.of(result)
    bought = {line.round for line in result.main.spending}
    if not bought:
        return "nothing yet"
    rounds = len(bought - {0})
    words = f"on the seed and {counted(rounds, 'round')}" if rounds else "on seed items"
    if total is not None:
        return f"{words}, of at most {money.show(round(total / float(money.unit)))}"
    return words if money.currency else f"units, {words}"


# -- what was saved against random labelling -------------------------------------------------------------------------
def saving(share: float) -> str:
    """A saved share, as less or more. Above twice the cost, the exact amount means little."""
    if share < -1:
        return "over twice as much"
    if abs(share) < LITTLE:
        return "as much"
    return f"{percent(abs(share))} {'less' if share > 0 else 'more'}"


def saved_tile(result: RunResult) -> tuple[str, str, str] | None:
    """Value, note and tone (good, poor or neither) of the tile; ``None`` for random itself."""
    found = saved_against_random(result)
    if found is None:
        return None
    if found.share is None:
        return "Not known yet", unknown_words(result), ""
    value = sentence(saving(found.share))
    if found.by == "curves":
        return value, "for the score that both reached, in one run", ""
    tone = "good" if (found.low or 0.0) > 0 else "poor" if (found.high or 0.0) < 0 else ""
    labels = counted(_audit_items(result), "audit label")
    return value, f"{_interval(found)}, by {labels}", tone


def saved_words(result: RunResult) -> str:
    """The savings by the audit, in a sentence; empty if the curves show them, and for random itself."""
    found = saved_against_random(result)
    if found is None or found.by == "curves":
        return ""
    if found.share is None:
        return f"Savings against random are not known yet: {unknown_words(result)}."
    than = "as" if abs(found.share) < LITTLE else "than"
    cost = f"{saving(found.share)} {than} random labelling"
    return f"By the audit, it cost {cost} for the same score ({_interval(found)})."


def unknown_words(result: RunResult) -> str:
    """A clause: why the savings are not known, and what is needed."""
    audit = result.config.audit
    if not audit.share:
        return "there are no audit slices, and no random run to compare with"
    if not audit.shadow:
        return "audit.shadow is off, and there is no random run to compare with"
    found = saved_against_random(result)
    assert found is not None
    if found.low is None and result.corpus.test:
        return "at least one round of selected items is needed"
    if found.low is None:
        return f"at least {FEWEST_ITEMS} audit items are needed, and there are {_audit_items(result)}"
    if found.needed is None:
        return "the budget buys too few audit labels"
    needed = counted(found.needed, "audit label")
    return f"telling {percent(A_LOT)} from nothing needs about {needed}, and there are {_audit_items(result)}"


def _interval(found: SavedShare) -> str:
    return f"90{THIN}% interval {saving(found.low or 0.0)} to {saving(found.high or 0.0)}"


def _audit_items(result: RunResult) -> int:
    return sum(part.items for part in result.main.audit)
