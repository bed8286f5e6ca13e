"""The top of the watch page: headline, key figures, and whether the next round can be trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from bursar.annotation.session import SessionState
from bursar.campaign.results import RunResult
from bursar.report.spending import items_of, labels_of
from bursar.report.summary import TITLE, final_scores, luck_of, saved_tile
from bursar.report.wording import Money, Scale, counted, listed, metric_name, sentence

Section = dict[str, Any]  # a part of the page, as JSON


def round_phrase(round: int) -> str:
    """A round as it is called in a sentence."""
    return "the seed items" if round <= 0 else f"round {round}"


def answered_clause(round: int) -> str:
    """The clause that a round is answered."""
    return f"{round_phrase(round)} {'are' if round <= 0 else 'is'} answered"


def amount(result: RunResult, units: int) -> str:
    """An amount of the budget: money, or items where the budget counts items."""
    if result.config.budget.counts == "items":
        return counted(units, "item")
    return Money.of(result).show(units)


def headline(result: RunResult, state: SessionState) -> str:
    """The state of the campaign in one line."""
    round, planned = state.round, result.config.budget.rounds
    match state.phase:
        case "annotating" if round <= 0:
            return "The seed items are being annotated"
        case "annotating":
            return f"Round {round} of {max(planned, round)} is being annotated"
        case "training":
            return f"The model is being trained on {round_phrase(round)}"
        case "failed":
            return "The next round could not be prepared"
    return "The campaign has ended"


def lead(result: RunResult, state: SessionState) -> str:
    """What happens next, in a sentence or two."""
    waiting = state.open
    match state.phase:
        case "annotating":
            model = "The first model" if state.round <= 0 else "The next model"
            left = f" {waiting:,} to go." if state.answered else ""
            return f"{model} is trained automatically once {answered_clause(state.round)}.{left}"
        case "training":
            if waiting:
                return f"People can go on annotating: {counted(waiting, 'item')} left."
            return "The next items are selected when it is done. There is nothing to do."
        case "failed":
            why = sentence(str(state.why or "the reason is unknown")).rstrip(".")
            return f"{why}. No answers are lost. Try again below."
    why = f" ({state.why})" if state.why else ""
    return f"{amount(result, state.spent)} spent{why}. To continue, raise the budget or the rounds under Decide."


def train(state: SessionState) -> Section:
    """The strip below the tiles: what to do now, and whether the next round can be trained."""
    phase, waiting, round = state.phase, state.open, state.round
    strip: Section = {"title": "", "words": "", "button": None, "close": False, "ask": None, "annotate": False}
    if phase == "failed":
        return strip | {"title": "Training failed", "words": "All answers are safe.", "button": "Try again"}
    if phase != "annotating":
        return strip
    items = f"{counted(waiting, 'item')} left to answer."
    if not state.answered:
        begins = "Start with the seed items" if round <= 0 else f"Round {round} is ready"
        return strip | {"title": begins, "words": items, "annotate": True}
    strip |= {"title": "Waiting for answers", "button": "Train the next round now", "close": bool(waiting)}
    if not waiting:
        return strip | {"words": "All items are answered."}
    are, they, their = ("is", "It returns", "its") if waiting == 1 else ("are", "They return", "their")
    strip["ask"] = (
        f"{counted(waiting, 'item')} {are} not answered yet. {they} to the pool, and {their} cost to the budget. "
        "The model is trained on the answers so far."
    )
    return strip | {"words": f"{items} You can train without them.", "annotate": True}


def tile(title: str, value: str, note: str, tone: str = "", share: float | None = None) -> Section:
    """A key figure with a note; ``share`` is drawn as a bar."""
    return {"title": title, "value": value, "note": note, "tone": tone, "share": share}


def tiles(result: RunResult, state: SessionState) -> list[Section]:
    """The four key figures: progress, spending, score, and cost against random."""
    saved = saved_tile(result) or ("–", "this campaign selects at random")
    return [_answered(result, state), _spent(result, state), _score(result), tile(TITLE, *saved)]


def _answered(result: RunResult, state: SessionState) -> Section:
    lines = result.main.spending
    items, labels = counted(items_of(lines), "item"), counted(labels_of(lines), "label")
    if state.phase == "ended" or not state.asked:
        return tile("Answered", items, f"{labels} in total")
    where = [f"in {round_phrase(state.round)}"]
    where += [f"{state.skipped:,} skipped"] if state.skipped else []
    where += [f"{items}, {labels} in total"] if state.round > 0 else [labels] if state.answered else []
    share = min(1.0, (state.answered + state.skipped) / state.asked)
    return tile("Answered", f"{state.answered:,} of {state.asked:,}", "; ".join(where), share=share)


def _spent(result: RunResult, state: SessionState) -> Section:
    spent, budget = state.spent, state.budget
    if not budget:
        return tile("Spent", amount(result, spent), "no budget set")
    note = f"of {amount(result, budget)}, {amount(result, max(0, budget - spent))} left"
    return tile("Spent", amount(result, spent), note, share=min(1.0, spent / budget))


def _score(result: RunResult) -> Section:
    """The latest score: on test items, else on the audit slice, else on development items."""
    scores, title = final_scores(result), "Score"
    scale = Scale.of(*(task.metric for task in result.tasks.values()))
    if scores:
        mean = scale.show(float(np.mean([score.score for score in scores])))
        if scores[0].interval is None and result.corpus.test:
            each = listed([f"{score} {metric_name(score.metric)} for {score.task}" for score in scores])
            tells = f"±{scale.difference(luck_of(result))} on {counted(result.corpus.test, 'test item')}"
            return tile(title, mean, f"{tells}; {each}")
        each = listed([f"{score.task} {score}{_between(score.metric, score.interval)}" for score in scores])
        return tile(title, mean, f"on the latest audit slice: {each}")
    rounds = result.main.rounds
    dev = rounds[-1].dev if rounds else None
    if dev is None:
        return tile(title, "–", "no model yet" if not rounds else "no test items and no audit slice")
    return tile(title, scale.show(dev), "on development items; slightly optimistic, because training uses them")


def _between(metric: str, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return " (too few items for an interval)"
    show = Scale.of(metric).show
    return f" ({show(interval[0])} to {show(interval[1])})"
