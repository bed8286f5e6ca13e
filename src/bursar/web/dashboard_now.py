"""The top of the watch page: what is going on, whether the next round can be trained now, and four numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bursar.report.saved import TITLE, saved_tile
from bursar.report.spending import items_of, labels_of
from bursar.report.story import final_scores, luck_of
from bursar.report.wording import Money, Scale, counted, listed, metric_name, sentence

Part = dict[str, Any]


def which(round: int) -> str:
    """A round as a sentence says it."""
    return "the seed items" if round <= 0 else f"round {round}"


def answered(round: int) -> str:
    """That a round is answered, as a clause.

    >>> answered(0), answered(3)
    ('the seed items are answered', 'round 3 is answered')
    """
    return f"{which(round)} {'are' if round <= 0 else 'is'} answered"


def amount(result: Mapping[str, Any], units: int) -> str:
    """What a state counts: money, or items where the budget counts those."""
    if result["config"]["budget"]["counts"] == "items":
        return counted(units, "item")
    return Money.of(result).show(units)


# -- what is going on ------------------------------------------------------------------------------------------------
def headline(result: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """What is going on, in a line."""
    round, planned = state["round"], result["config"]["budget"]["rounds"]
    match state["phase"]:
        case "annotating" if round <= 0:
            return "The seed items are being annotated"
        case "annotating":
            return f"Round {round} of {max(planned, round)} is being annotated"
        case "training":
            return f"The model learns from {which(round)}"
        case "failed":
            return "The next round could not be prepared"
    return "The campaign is over"


def lead(result: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """What that means, in a sentence or two."""
    waiting = state["open"]
    match state["phase"]:
        case "annotating":
            model = "The first model" if state["round"] <= 0 else "The next model"
            waits = f"{waiting:,} more" if state["answered"] else "the first answer"
            return f"{model} is trained by itself when {answered(state['round'])}; it waits for {waits}."
        case "training":
            if waiting:
                waits = f"{counted(waiting, 'item')} {'waits' if waiting == 1 else 'wait'} for an answer"
                return f"Meanwhile people go on annotating: {waits}."
            return "The next items are chosen as soon as it has learned; nobody needs to do anything."
        case "failed":
            why = sentence(str(state["why"] or "nobody knows why")).rstrip(".")
            return f"{why}. Nothing is lost: try again below."
    why = f" ({state['why']})" if state["why"] else ""
    return f"It spent {amount(result, state['spent'])}{why}. Give it more money or rounds under Decide to go on."


def train(state: Mapping[str, Any]) -> Part:
    """The strip below the tiles: what to do now, whether the next round can be trained, and what that would cost."""
    phase, waiting, round = state["phase"], state["open"], state["round"]
    strip: Part = {"title": "", "words": "", "button": None, "close": False, "ask": None, "annotate": False}
    if phase == "failed":
        return strip | {
            "title": "Training has stopped",
            "words": "What people answered is safe.",
            "button": "Try again",
        }
    if phase != "annotating":
        return strip
    items = f"{counted(waiting, 'item')} {'is' if waiting == 1 else 'are'} still to be answered."
    if not state["answered"]:
        begins = "It begins with the seed items" if round <= 0 else f"Round {round} has been chosen"
        return strip | {"title": begins, "words": items, "annotate": True}
    strip |= {"title": "Training waits for answers", "button": "Train the next round now", "close": bool(waiting)}
    if not waiting:
        return strip | {"words": "All is answered."}
    strip["ask"] = (
        f"{counted(waiting, 'item')} {'is' if waiting == 1 else 'are'} not answered yet. "
        f"{'It returns' if waiting == 1 else 'They return'} to the pool, {'its' if waiting == 1 else 'their'} money to "
        "the budget, and the model learns from what there is."
    )
    return strip | {"words": f"{items} You need not wait for all of them.", "annotate": True}


# -- tiles -----------------------------------------------------------------------------------------------------------
def tile(title: str, value: str, note: str, tone: str = "", share: float | None = None) -> Part:
    """A number with what it is and what it means; ``share`` is drawn as a bar."""
    return {"title": title, "value": value, "note": note, "tone": tone, "share": share}


def tiles(result: Mapping[str, Any], state: Mapping[str, Any]) -> list[Part]:
    """How far it is, what it cost, how good it is, and what that is beside random."""
    return [_answered(result, state), _spent(result, state), _score(result), _saved(result)]


def _answered(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    lines = result["arms"][result["strategy"]]["spending"]
    items, labels = counted(items_of(lines), "item"), counted(labels_of(lines), "label")
    if state["phase"] == "ended" or not state["asked"]:
        return tile("Answered", items, f"{labels} altogether")
    where = [f"in {which(state['round'])}"]
    where += [f"{state['skipped']:,} skipped"] if state["skipped"] else []
    where += [f"{items}, {labels} altogether"] if state["round"] > 0 else [labels] if state["answered"] else []
    share = min(1.0, (state["answered"] + state["skipped"]) / state["asked"])
    return tile("Answered", f"{state['answered']:,} of {state['asked']:,}", "; ".join(where), share=share)


def _spent(result: Mapping[str, Any], state: Mapping[str, Any]) -> Part:
    spent, budget = state["spent"], state["budget"]
    note = f"of {amount(result, budget)}, {amount(result, max(0, budget - spent))} left"
    return tile(
        "Spent",
        amount(result, spent),
        note if budget else "there is no budget",
        share=min(1.0, spent / budget) if budget else None,
    )


def _score(result: Mapping[str, Any]) -> Part:
    """The newest score: on test items, else on the audit slice, else on development items."""
    scores, title = final_scores(result), "Score now"
    scale = Scale.of(*(task["metric"] for task in result["tasks"].values()))
    if scores:
        mean = scale.show(float(np.mean([score.score for score in scores])))
        if scores[0].interval is None and result["corpus"]["test"]:
            each = listed([f"{score} {metric_name(score.metric)} for {score.task}" for score in scores])
            tells = f"±{scale.difference(luck_of(result))} on {counted(result['corpus']['test'], 'test item')}"
            return tile(title, mean, f"{tells}; {each}")
        each = listed([f"{score.task} {score}{_between(score.metric, score.interval)}" for score in scores])
        return tile(title, mean, f"on the newest audit slice: {each}")
    rounds = result["arms"][result["strategy"]]["rounds"]
    dev = rounds[-1].get("dev") if rounds else None
    if dev is None:
        return tile(title, "–", "there is no model yet" if not rounds else "no test items, no audit slice to tell")
    return tile(title, scale.show(dev), "on development items, which the training sees: a little flattering")


def _between(metric: str, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return " (too few items for an interval)"
    show = Scale.of(metric).show
    return f" ({show(interval[0])} to {show(interval[1])})"


def _saved(result: Mapping[str, Any]) -> Part:
    """What it cost beside random, or why that is not known."""
    shown = saved_tile(result)
    return tile(TITLE, *shown) if shown is not None else tile(TITLE, "–", "this campaign chooses at random")
