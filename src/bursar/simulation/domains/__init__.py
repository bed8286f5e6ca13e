"""The intents of the built-in corpus, one file per group of domains."""

from __future__ import annotations

from functools import cache

from bursar.simulation.domains.agenda import CALENDAR, MESSAGES
from bursar.simulation.domains.buying import RESTAURANT, SHOPPING
from bursar.simulation.domains.clock import CLOCK
from bursar.simulation.domains.home import HOME
from bursar.simulation.domains.intent import Intent, Template
from bursar.simulation.domains.music import MUSIC
from bursar.simulation.domains.outside import TRAVEL, WEATHER
from bursar.simulation.english import english
from bursar.simulation.english.manners import FRAMES
from bursar.simulation.notation import Part, Reference

INTENTS = (*CLOCK, *MUSIC, *WEATHER, *CALENDAR, *MESSAGES, *HOME, *TRAVEL, *SHOPPING, *RESTAURANT)

__all__ = ["INTENTS", "Intent", "Template", "dependency_labels", "slot_types"]


@cache
def _parts() -> tuple[Part, ...]:
    """Every part of every line and symbol, after checking the grammar."""
    lines = [template.phrase for intent in INTENTS for template in intent.templates]
    english().check(lines)
    symbols = [phrase for symbol in english().symbols.values() for phrase in symbol.phrases]
    return tuple(part for phrase in (*lines, *FRAMES, *symbols) for part in phrase.walk())


@cache
def slot_types() -> tuple[str, ...]:
    """All slot types of the grammar, in alphabetical order."""
    return tuple(sorted({part.kind for part in _parts() if isinstance(part, Reference) and part.kind}))


@cache
def dependency_labels() -> tuple[str, ...]:
    """All dependency labels of the grammar, in alphabetical order."""
    return tuple(sorted({part.label for part in _parts() if part.label} | {"punct", "reparandum", "root"}))
