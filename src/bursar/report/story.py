"""The answer in plain language: what was spent, how good the model is, how that compares with random."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bursar.report.curves import RANDOM, Comparison, baseline, compare, curves_of
from bursar.report.saved import LITTLE, TITLE, saved_tile, saved_words, saving
from bursar.report.spending import bought_words, items_of, labels_of, open_round
from bursar.report.wording import (
    THIN,
    Money,
    Scale,
    arm_name,
    counted,
    listed,
    metric_name,
    sentence,
    strategy_name,
)
from bursar.selection import make_strategy

NINETY_PERCENT = 1.645  # standard deviations on either side
LEVEL = 0.0005  # scores that are nearer than this read the same
TRUE_ENOUGH = 0.02  # a mean confidence that is nearer to the mean accuracy than this is as good as true
ASTRAY = 0.05  # a calibration error above this shows in the diagram
VAGUE = 0.1  # where luck may be more than this, a small difference says nothing


@dataclass(frozen=True)
class Tile:
    """A key number."""

    title: str
    value: str
    note: str
    tone: str = ""  # good or poor, where a number is either


@dataclass(frozen=True)
class FinalScore:
    """The newest score of one task: on the test set, or on the newest audit slice with its 90 % interval."""

    task: str
    metric: str
    score: float
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        return Scale.of(self.metric).show(self.score)


@dataclass(frozen=True)
class Story:
    """The top of the page."""

    status: str
    over: bool
    lead: tuple[str, ...]  # sentences
    cautions: tuple[str, ...]
    tiles: tuple[Tile, ...]


def tell(result: Mapping[str, Any]) -> Story:
    """The story of a run."""
    over, status = _status(result)
    lead = [_spent_words(result)]
    if result["arms"][result["strategy"]]["rounds"]:
        lead += [_score_words(result), comparison_words(result), saved_words(result)]
    return Story(status, over, tuple(words for words in lead if words), _cautions(result), tuple(_tiles(result)))


def final_scores(result: Mapping[str, Any]) -> list[FinalScore]:
    """The newest score of every task; empty where nothing has been scored."""
    main, tasks = result["arms"][result["strategy"]], result["tasks"]
    tested = [r for r in main["rounds"] if r["test"]]
    if tested:
        return [FinalScore(n, t["metric"], tested[-1]["test"][n][t["metric"]]) for n, t in tasks.items()]
    if main["audit"]:
        last = main["audit"][-1]["scores"]
        return [
            FinalScore(
                n,
                t["metric"],
                last[n]["score"],
                None if last[n]["low"] is None else (last[n]["low"], last[n]["high"]),
            )
            for n, t in tasks.items()
        ]
    return []


def comparison_of(result: Mapping[str, Any]) -> Comparison | None:
    """The strategy against the baseline at equal money, where both have a curve."""
    curves, other = curves_of(result), baseline(result)
    if result["strategy"] not in curves or other not in curves:
        return None
    return compare(curves[result["strategy"]], curves[other])


def comparison_words(result: Mapping[str, Any]) -> str:
    """How the strategy did against the baseline at equal money, or why that cannot be told; empty without one."""
    other = baseline(result)
    if other is None:
        return "The strategies to compare it with have not started yet." if result["config"]["compare"] else ""
    name = arm_name(other)
    if not result["corpus"]["test"]:
        return f"Without a test set its curve cannot be laid beside that of {name}."
    found = comparison_of(result)
    if found is None:
        return f"There is no second point yet to compare it with {name}."
    scale = Scale.of(*(task["metric"] for task in result["tasks"].values()))
    over_tasks = " in the mean over tasks" if len(result["tasks"]) > 1 else ""
    if abs(found.gain) < LEVEL:
        return f"At equal money it ended level with {name}{over_tasks}" + _on_the_way(result, other, scale, ended=0)
    ended = f"{scale.difference(found.gain)} {'higher' if found.gain > 0 else 'lower'}{over_tasks}"
    if abs(found.saved) < LITTLE:
        return f"At equal money it ended {ended} than {name}, and before that no better or worse."
    if found.gain < 0:
        words = f"It did not beat {name} here: the same score cost {saving(found.saved)} money, and at equal money it"
        return f"{words} ended {ended}" + _on_the_way(result, other, scale, ended=-1)
    if found.from_the_start:
        mine = arm_name(result["strategy"])
        return f"{sentence(name)} ended no higher than where both began; {mine} ended {ended} at equal money."
    words = f"It reached the score {name} had at the end with {saving(found.saved)} money"
    return f"{words}, and ended {ended} at equal money."


def _on_the_way(result: Mapping[str, Any], other: str, scale: Scale, ended: int) -> str:
    """How the curves ran before their ends, where that says more than the ends do."""
    areas = result["comparison"]
    if result["strategy"] not in areas or other not in areas:
        return "."
    gain = areas[result["strategy"]]["mean"] - areas[other]["mean"]
    if abs(gain) < LEVEL:
        return "."
    joint = ", and was" if ended * gain >= 0 else ", though it was"
    return f"{joint} {scale.difference(gain)} {'higher' if gain > 0 else 'lower'} on average on the way there."


# -- whether confidence can be trusted -------------------------------------------------------------------------------
class Stance(StrEnum):
    """How a model's confidence stands to the truth."""

    TOO_SURE = "too sure"
    TOO_MODEST = "not sure enough"
    UNEVEN = "off in both directions"
    TRUE = "about as right as it says"
    UNTOLD = "too few items to tell"


@dataclass(frozen=True)
class Trust:
    """How sure the newest model was of items with known labels, for one task, and how right."""

    task: str
    items: int
    said: float  # mean confidence
    right: float  # mean accuracy
    surest: tuple[float, float, int]  # mean confidence and accuracy where it was surest, and of how many items
    calibration: float  # error
    overconfidence: float  # error
    stance: Stance

    def __str__(self) -> str:
        """The stance, and by how much it is off, as the numbers that are shown beside it say.

        >>> str(Trust("intent", 400, 0.914, 0.826, (0.97, 0.9, 120), 0.09, 0.07, Stance.TOO_SURE))
        'too sure by 0.08'
        """
        match self.stance:
            case Stance.TOO_SURE | Stance.TOO_MODEST:
                return f"{self.stance} by {abs(round(self.said, 2) - round(self.right, 2)):.2f}"
            case Stance.UNEVEN:
                return f"{self.stance} by {self.calibration:.2f}"
        return str(self.stance)


def reliability_of(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """How far the last round's model was found to deserve trust, by task; empty where that was not looked at."""
    rounds = result["arms"][result["strategy"]]["rounds"]
    found = (rounds[-1].get("reliability") or {}) if rounds else {}
    return {name: found[name] for name in result["tasks"] if name in found and sum(found[name]["counts"])}


def trust_of(result: Mapping[str, Any]) -> list[Trust]:
    """What the reliability of each task amounts to."""
    return [_trust(name, record) for name, record in reliability_of(result).items()]


def _trust(name: str, record: Mapping[str, Any]) -> Trust:
    bins = zip(record["confidence"], record["accuracy"], record["counts"], strict=True)
    filled = [(confidence, accuracy, count) for confidence, accuracy, count in bins if count]
    items = sum(count for _, _, count in filled)
    said = sum(confidence * count for confidence, _, count in filled) / items
    right = sum(accuracy * count for _, accuracy, count in filled) / items
    stance = _stance(said, right, record["calibration"], items, len(filled))
    return Trust(name, items, said, right, filled[-1], record["calibration"], record["overconfidence"], stance)


def _stance(said: float, right: float, calibration: float, items: int, bins: int) -> Stance:
    """What is more than luck; a little is added to either side so that luck is never nothing."""
    share = (right * items + 1) / (items + 2)
    luck = NINETY_PERCENT * math.sqrt(share * (1 - share) / items)
    if abs(said - right) > max(luck, TRUE_ENOUGH):
        return Stance.TOO_SURE if said > right else Stance.TOO_MODEST
    if luck > VAGUE:
        return Stance.UNTOLD
    return Stance.UNEVEN if calibration > max(luck * math.sqrt(bins), ASTRAY) else Stance.TRUE


def trust_words(result: Mapping[str, Any]) -> list[str]:
    """Whether the newest model's confidence can be trusted, and what follows, in sentences that name every task."""
    trusts = trust_of(result)
    if not trusts:
        return []
    told = []
    by_stance = {stance: [trust for trust in trusts if trust.stance is stance] for stance in Stance}
    for stance, those in by_stance.items():
        if those and stance is not Stance.UNTOLD:
            tasks = [f"{trust.task} (said {trust.said:.2f}, was {trust.right:.2f} right)" for trust in those]
            told.append(f"{stance} for {listed(tasks)}")
    last = result["arms"][result["strategy"]]["rounds"][-1]["round"]
    after = "the seed items" if last == 0 else f"round {last}"
    words = [f"After {after} the model is {'; '.join(told)}."] if told else []
    if by_stance[Stance.UNTOLD]:
        words.append(f"There are {Stance.UNTOLD} for {listed([trust.task for trust in by_stance[Stance.UNTOLD]])}.")
    doubtful = [trust.task for trust in by_stance[Stance.TOO_SURE] + by_stance[Stance.UNEVEN]]
    if doubtful:
        words.append(f"Look at its guesses for {listed(doubtful)} before you use them, even where it is sure.")
    elif len(by_stance[Stance.TRUE]) == len(trusts):
        words.append("You can take it at its word.")
    if not result["corpus"]["test"]:
        words.append("It was asked about development items, which the training sees: that flatters it a little.")
    return words


# -- parts of the story ----------------------------------------------------------------------------------------------
def _status(result: Mapping[str, Any]) -> tuple[bool, str]:
    main, planned = result["arms"][result["strategy"]], result["config"]["budget"]["rounds"]
    scored = main["rounds"][-1]["round"] if main["rounds"] else None
    if main["ended"] is not None:
        done = counted(scored or 0, "round")
        wanted = {make_strategy(name).name for name in result["config"]["compare"]}
        if not all(arm in result["arms"] and result["arms"][arm]["ended"] is not None for arm in wanted):
            return False, f"{done} done; the comparison is still running"
        if not scored:
            return True, "Finished: seed items only"
        return True, f"Finished after {done}" + ("" if scored >= planned else f": {main['ended']}")
    pending = open_round(result, result["strategy"])
    if pending is not None:
        number, annotated, asked = pending
        which = "the seed items" if number == 0 else f"round {number} of {planned}"
        return False, f"In progress: {which}, {annotated:,} of {asked:,} annotated"
    if scored is None:
        return False, "In progress: no model yet"
    return False, f"In progress: {scored} of {counted(planned, 'round')} done"


def _spent_words(result: Mapping[str, Any]) -> str:
    main, name = result["arms"][result["strategy"]], strategy_name(result)
    if not main["spending"]:
        return f"{sentence(name)} has not bought anything yet."
    return f"{sentence(name)} spent {Money.of(result).show(main['spent'])} on {bought_words(main['spending'])}."


def _score_words(result: Mapping[str, Any]) -> str:
    scores = final_scores(result)
    if not scores:
        return "There is neither a test set nor an audit slice, so its score is not known."
    tested = any(r["test"] for r in result["arms"][result["strategy"]]["rounds"])
    where = "on the test set" if tested else "on the newest audit slice"
    parts = [f"{score} {metric_name(score.metric)} for {score.task}" for score in scores]
    return f"The model now has {listed(parts)} {where}."


def _cautions(result: Mapping[str, Any]) -> tuple[str, ...]:
    if comparison_of(result) is None:
        return ()
    scale, luck = Scale.of(*(task["metric"] for task in result["tasks"].values())), luck_of(result)
    return (
        f"One run with one seed: {counted(result['corpus']['test'], 'test item')} tell a score to about "
        f"±{scale.difference(luck)}, so a smaller difference may be luck.",
    )


def luck_of(result: Mapping[str, Any]) -> float:
    """Half the 90 % interval of a share the size of the newest scores, on as many items as the test set has."""
    scores = [min(1.0, max(0.0, score.score)) for score in final_scores(result)]
    if not scores or not result["corpus"]["test"]:
        return 0.0
    share = sum(scores) / len(scores)
    return NINETY_PERCENT * math.sqrt(share * (1 - share) / result["corpus"]["test"])


def _tiles(result: Mapping[str, Any]) -> list[Tile]:
    main, money = result["arms"][result["strategy"]], Money.of(result)
    lines = main["spending"]
    items = items_of(lines)
    labels = f"{counted(labels_of(lines), 'label')}, {money.average(main['spent'], items)} an item"
    tiles = [
        Tile("Money spent", money.brief(main["spent"]), _budget_words(result)),
        Tile("Items annotated", f"{items:,}", labels if items else "none yet"),
    ]
    compared = comparison_of(result)
    for score in final_scores(result):
        note, tone = metric_name(score.metric), ""
        if compared is not None:
            gain = compared.mine[score.task] - compared.others[score.task]
            note += f", {_versus(Scale.of(score.metric), gain, arm_name(compared.other))}"
            tone = _tone(gain, luck_of(result))
        elif score.interval:
            low, high = (Scale.of(score.metric).show(end) for end in score.interval)
            note += f", 90{THIN}% interval {low} to {high}"
        tiles.append(Tile(score.task, str(score), note, tone))
    shown = saved_tile(result) if main["rounds"] else None
    if shown is not None:
        value, note, tone = shown
        if compared is not None and compared.other == RANDOM:
            tone = _tone(compared.gain, luck_of(result))
        tiles.append(Tile(TITLE, value, note, tone))
    return tiles


def _versus(scale: Scale, gain: float, other: str) -> str:
    if abs(gain) < LEVEL:
        return f"level with {other}"
    return f"{scale.difference(gain)} {'above' if gain > 0 else 'below'} {other}"


def _tone(gain: float, luck: float) -> str:
    """Good or poor, where that is more than luck."""
    return "good" if gain > luck else "poor" if gain < -luck else ""


def _budget_words(result: Mapping[str, Any]) -> str:
    budget, money = result["config"]["budget"], Money.of(result)
    rounds = len({line["round"] for line in result["arms"][result["strategy"]]["spending"]} - {0})
    if not result["arms"][result["strategy"]]["spending"]:
        return "nothing yet"
    spread = f"seed and {counted(rounds, 'round')}" if rounds else "on seed items"
    if budget["total"] is not None:
        total = round(budget["total"] / float(money.unit))
        return f"{spread}, of {money.show(total)} at most"
    return spread if money.currency else f"units, {spread}"
