"""How a request is put: frames that soften it, what is said before and after it, and what that adds to its urgency."""

from __future__ import annotations

from bursar.simulation.grammar import Grammar, running_shares
from bursar.simulation.notation import parse

# Weight and frame. A frame whose head is the clause itself lets a part of the clause be said before the frame.
_FRAMES = {
    "__": 42,
    "please __": 9,
    "can you __": 9,
    "could you __": 5,
    "can you please __": 4,
    "i need you/obj (xcomp to/mark __)": 2.5,
    "i want you/obj (xcomp to/mark __)": 2.5,
    "could you please __": 2.5,
    "would you __": 2,
    "i'd *like you/obj (xcomp to/mark __)": 2,
    "would you mind (xcomp __ing)": 1.8,
    "will you __": 1.2,
    "don't forget (xcomp to/mark __)": 1.2,
    "go ahead/advmod (conj and __)": 1.2,
    "i was/aux wondering (advcl if you could __)": 1,
    "make sure/xcomp (xcomp to/mark __)": 1,
    "is it/nsubj possible (csubj to/mark __)": 0.9,
    "time (acl to/mark __)": 0.8,
    "help me (xcomp __)": 0.8,
    "remember (xcomp to/mark __)": 0.8,
    "why don't you __": 0.7,
    "any chance (acl you could __)": 0.7,
    "try (xcomp __ing)": 0.5,
    "i forgot (xcomp to/mark __)": 0.5,
    "how hard is it/expl (csubj to/mark __)": 0.2,
}
FRAMES = tuple(parse(line) for line in _FRAMES)
FRAME_SHARES = running_shares(_FRAMES.values())
NO_FRAME = parse("__")


def add_manners(grammar: Grammar) -> None:
    """The symbols for what comes before and after a request."""
    grammar.define(
        "opener",
        """
        (discourse hey)
        (discourse ok|okay)
        (vocative hey assistant)
        (discourse so)
        (discourse alright)
        (discourse good/amod morning|evening)
        (discourse quick/amod question) !.05
        (discourse sorry) (cc but)
        (discourse excuse (obj me))
        (discourse listen)
        """,
    )
    grammar.define(
        "closer",
        """
        (discourse please)
        (discourse thanks)
        (obl for *me)
        (advmod right/advmod *now) !.22
        (discourse thank (obj you))
        (advmod asap) !.32
        (advcl if possible)
        (advmod quickly) !.22
        (advcl when/mark you *can) !-.18
        (parataxis no/det rush) !-.25
        (parataxis it's urgent) !.4
        (advmod immediately) !.34
        (obl in case) !-.05
        (parataxis hurry up/prt) !.35
        (advcl if you don't mind)
        (parataxis it/nsubj can wait) !-.25
        """,
        exponent=1,
    )
    grammar.define(
        "before",
        """
        (parataxis <aside>) (cc so)
        (parataxis <aside>)
        (advcl since/mark <aside>)
        (advcl while <aside>)
        (parataxis i know (ccomp <aside>)) (cc but)
        """,
    )
    grammar.define(
        "after",
        """
        (advcl because <aside>)
        (parataxis <aside>)
        (advcl since/mark <aside>)
        (advcl while <aside>)
        """,
    )
