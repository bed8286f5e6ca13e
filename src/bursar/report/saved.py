"""What was saved against random labelling, in words: for the report, the web page and the command line."""

from __future__ import annotations

from bursar.campaign.results import RunResult, SavedShare
from bursar.campaign.savings import A_LOT, FEWEST_ITEMS, saved_against_random
from bursar.report.wording import THIN, counted, percent, sentence

TITLE = "Cost against random"
UNKNOWN = "Not known yet"
LITTLE = 0.005  # share of the money that counts as nothing


def saving(share: float) -> str:
    """A saved share, as less or more. Above twice the cost, the exact amount means little.

    >>> saving(0.314), saving(-0.2), saving(0.001), saving(-146.0)
    ('31\u202f% less', '20\u202f% more', 'as much', 'over twice as much')
    """
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
        return UNKNOWN, unknown_words(result), ""
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
