"""The one number for what was saved against random, in words: on the report, on the page and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bursar.campaign.savings import A_LOT, FEWEST_ITEMS, saved_against_random
from bursar.report.wording import THIN, counted, percent, sentence

TITLE = "Cost against random"
UNKNOWN = "Not known yet"
LITTLE = 0.005  # of the money: less than this reads as nothing


def saving(share: float) -> str:
    """A share saved, as less or more money. Below the double it is only said that it is more than that.

    >>> saving(0.314), saving(-0.2), saving(0.001), saving(-146.0)
    ('31\u202f% less', '20\u202f% more', 'as much', 'over twice as much')
    """
    if share < -1:
        return "over twice as much"
    if abs(share) < LITTLE:
        return "as much"
    return f"{percent(abs(share))} {'less' if share > 0 else 'more'}"


def saved_tile(result: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The number as a tile shows it: a value, a note, and whether that is good or poor; none for random itself."""
    found = saved_against_random(result)
    if found is None:
        return None
    if found["share"] is None:
        return UNKNOWN, unknown_words(result), ""
    value = sentence(saving(found["share"]))
    if found["by"] == "curves":
        return value, "at the score that both reached, in one run", ""
    tone = "good" if found["low"] > 0 else "poor" if found["high"] < 0 else ""
    return value, f"{_interval(found)}, by {_audited(result)}", tone


def saved_words(result: Mapping[str, Any]) -> str:
    """What the audit says was saved, in a sentence; empty where the curves say it, and for random itself."""
    found = saved_against_random(result)
    if found is None or found["by"] == "curves":
        return ""
    if found["share"] is None:
        return f"What it saved against random is not known yet: {unknown_words(result)}."
    return (
        f"By the audit it cost {saving(found['share'])} {'money as' if abs(found['share']) < LITTLE else 'money than'} "
        f"random labelling for the same score ({_interval(found)})."
    )


def unknown_words(result: Mapping[str, Any]) -> str:
    """Why it is not known, and what would tell, as a clause."""
    main, audit = result["arms"][result["strategy"]], result["config"]["audit"]
    if not audit["share"]:
        return "no audit slice is bought, and random did not run beside it"
    if not audit["shadow"]:
        return "audit.shadow is off, and random did not run beside it"
    found = saved_against_random(result)
    assert found is not None
    if found["low"] is None and result["corpus"]["test"]:
        return "it takes a round of chosen items to tell"
    if found["low"] is None:
        return f"it takes {FEWEST_ITEMS} audit items to begin with, and there are {_items(main)}"
    if found["needed"] is None:
        return "its money buys too few audit labels to tell"
    needed = counted(found["needed"], "audit label")
    return f"about {needed} would tell {percent(A_LOT)} from nothing, and there are {_items(main)}"


def _interval(found: Mapping[str, Any]) -> str:
    return f"90{THIN}% interval {saving(found['low'])} to {saving(found['high'])}"


def _audited(result: Mapping[str, Any]) -> str:
    return counted(_items(result["arms"][result["strategy"]]), "audit label")


def _items(arm: Mapping[str, Any]) -> int:
    return sum(part["items"] for part in arm["audit"])
