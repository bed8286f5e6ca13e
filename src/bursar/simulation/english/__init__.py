"""The words and small phrases that the built-in corpus is made of, by subject."""

from __future__ import annotations

from functools import cache

from bursar.simulation.english.clauses import add_clauses
from bursar.simulation.english.manners import add_manners
from bursar.simulation.english.media import add_media
from bursar.simulation.english.people import add_people
from bursar.simulation.english.things import add_things
from bursar.simulation.english.times import add_times
from bursar.simulation.grammar import Grammar


@cache
def english() -> Grammar:
    """The symbols that all domains share. Do not modify the result."""
    grammar = Grammar()
    for add in (add_times, add_people, add_media, add_things, add_clauses, add_manners):
        add(grammar)
    grammar.check()
    return grammar
