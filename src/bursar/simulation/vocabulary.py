"""The vocabulary of the built-in corpus, read from TOML files beside this module.

``domains/*.toml``
    One table per intent: its weight, its base urgency and its ``lines`` in the notation of ``grammar.py``, most
    frequent first. Lines that begin with ``=`` are used as they are; all others are imperatives that may get a frame.
``words/*.toml``
    One table per symbol. ``lines`` are phrases of the notation. ``compounds`` (*living room*) and ``names``
    (*New York*) are lists of entries separated by commas, whose head is the last or the first word. ``possessive_of``
    is another symbol's list with *'s*. ``exponent`` is that of the Zipf weights, and ``title`` capitalises the words.
``frames.toml``
    The frames around a request (*could you …*) and their weights.

Adding to these files changes the corpus. Nothing is read before the first request.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bursar.simulation.grammar import Dice, Grammar, Part, Phrase, Reference, parse, running_shares, zipf

HERE = Path(__file__).parent
DOMAINS = (  # in the order in which intents are drawn
    "alarm timer music weather calendar messages home travel shopping restaurant"
).split()
LINE_EXPONENT = 1.5  # of the Zipf weights of an intent's lines


@dataclass(frozen=True)
class Template:
    """A line: an imperative that may get a frame (*could you …*), or a sentence used as it is."""

    phrase: Phrase
    framed: bool


@dataclass(frozen=True)
class Intent:
    """An intent with its lines, most frequent first, and their cumulative shares."""

    name: str
    domain: str
    weight: float
    urgency: float
    templates: tuple[Template, ...]
    cumulative: tuple[float, ...]

    def choose(self, dice: Dice) -> Template:
        return dice.weighted(self.templates, self.cumulative)


def read_table(name: str) -> dict[str, Any]:
    """A TOML file beside this module."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def intents() -> tuple[Intent, ...]:
    """All intents, domain by domain."""
    found = []
    for domain in DOMAINS:
        for name, entry in read_table(f"domains/{domain}").items():
            lines = entry["lines"].strip().splitlines()
            templates = tuple(Template(parse(line.lstrip("=")), framed=not line.startswith("=")) for line in lines)
            cumulative = zipf(len(templates), LINE_EXPONENT)
            found.append(Intent(name, domain, entry["weight"], entry["urgency"], templates, cumulative))
    return tuple(found)


@cache
def intent_shares() -> tuple[float, ...]:
    """The cumulative shares of the intents."""
    return running_shares(intent.weight for intent in intents())


@cache
def frames() -> tuple[tuple[Phrase, ...], tuple[float, ...]]:
    """The frames and their cumulative shares."""
    weights = read_table("frames")
    return tuple(parse(line) for line in weights), running_shares(weights.values())


@cache
def english() -> Grammar:
    """The symbols that all domains share. Do not modify the result."""
    grammar = Grammar()
    kinds: dict[str, Callable[..., None]]
    kinds = {"lines": grammar.define, "compounds": grammar.compounds, "names": grammar.names}
    for path in sorted((HERE / "words").glob("*.toml")):
        table = read_table(f"words/{path.stem}")
        for name, entry in table.items():
            options = {key: entry[key] for key in ("exponent", "title") if key in entry}
            if "possessive_of" in entry:
                words = table[entry["possessive_of"]]["names"].split(",")
                entry["names"] = ",".join(f"{word.strip()}'s" for word in words)
            for kind in kinds.keys() & entry.keys():
                kinds[kind](name, entry[kind], **options)
    return grammar


@cache
def _parts() -> tuple[Part, ...]:
    """Every part of every line and symbol."""
    lines = [template.phrase for intent in intents() for template in intent.templates]
    symbols = [phrase for symbol in english().symbols.values() for phrase in symbol.phrases]
    return tuple(part for phrase in (*lines, *frames()[0], *symbols) for part in phrase.walk())


@cache
def slot_types() -> tuple[str, ...]:
    """All slot types of the grammar, in alphabetical order."""
    return tuple(sorted({part.kind for part in _parts() if isinstance(part, Reference) and part.kind}))


@cache
def dependency_labels() -> tuple[str, ...]:
    """All dependency labels of the grammar, in alphabetical order."""
    return tuple(sorted({part.label for part in _parts() if part.label} | {"punct", "reparandum", "root"}))
