"""The preview of the next round, and its predicted gain."""

from __future__ import annotations

from bursar.report.stopping import SOURCES
from bursar.report.wording import Money, Scale, percent
from bursar.web.dashboard import answered_clause, tile
from bursar.web.panels.panel import RunView, Section, panel


@panel("next", "What would the next round be?", link="Next round", order=30)
def next_round(view: RunView) -> Section:
    """Whether the next round can be previewed, and its predicted gain."""
    state = view.state
    empty = None
    if state.phase == "ended":
        why = f": {state.why}" if state.why else ""
        empty = f"There is no next round{why}. To continue, raise the budget or the rounds under Decide."
    elif not view.arm.rounds:
        empty = f"There is no model yet. It is trained once {answered_clause(state.round)}."
    return {"may": empty is None, "gain": _gain(view), "empty": empty}


def _gain(view: RunView) -> Section | None:
    """The gain predicted for another round."""
    result, advice, ahead = view.result, view.arm.stopping, view.arm.forecast
    if not advice or ahead is None:
        return None
    newest = advice[-1]
    if newest.gain is None:
        return tile("Predicted gain", "–", f"not known yet: {newest.why}")
    scale = Scale.of(*(task.metric for task in result.tasks.values()))
    ends = [f"{100 * (end or 0.0):.1f}" if scale.percent else f"{end or 0.0:.3f}" for end in (newest.low, newest.high)]
    note = (
        f"of {SOURCES[ahead.source]} for another {Money.of(result).show(round(ahead.next_money))}; "
        f"{ends[0]} to {ends[1]} in {percent(result.config.stopping.interval)} of cases"
    )
    return tile("Predicted gain", f"+{scale.difference(newest.gain)}", note)
