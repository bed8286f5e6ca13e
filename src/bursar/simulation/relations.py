"""Relations between the slots of a sentence, by their roles and their distance in the tree."""

from __future__ import annotations

from functools import cache

from bursar.simulation.grammar import Fragment, Span
from bursar.simulation.vocabulary import read_table

SHARED = frozenset(("location-of",))  # *the lamp and the fan in the kitchen* are both there

Link = tuple[Span, Span, str]


@cache
def _links() -> dict[str, tuple[tuple[str, str], ...]]:
    """For each role, the slot types that it can be linked to, and by which relation (``relations.toml``)."""
    return {role: tuple(targets.items()) for role, targets in read_table("relations").items()}


def relation_labels() -> tuple[str, ...]:
    """All relations, in alphabetical order."""
    return tuple(sorted({label for targets in _links().values() for _, label in targets}))


def relations_of(sentence: Fragment) -> list[Link]:
    """The links of a sentence, sorted by their first slots."""
    links: list[Link] = []
    for span in sentence.spans:
        for kind, label in _links().get(span.role, ()):
            targets = [other for other in sentence.spans if other.kind == kind and other is not span]
            if targets:
                near = targets if len(targets) == 1 else _nearest(sentence, span, targets, label in SHARED)
                links += [(span, target, label) for target in near]
                break
    links.sort(key=lambda link: (link[0].start, link[1].start))
    return links


def _nearest(sentence: Fragment, span: Span, targets: list[Span], shared: bool) -> list[Span]:
    """The nearest target in the tree (of two, the later); if ``shared``, also the targets conjoined with it."""
    depth = {word: steps for steps, word in enumerate(_way_up(sentence, span))}
    ways = [_way_up(sentence, target) for target in targets]

    def distance(at: int) -> tuple[int, int]:
        return next(steps + depth[word] for steps, word in enumerate(ways[at]) if word in depth), -targets[at].start

    best = min(range(len(targets)), key=distance)
    top = ways[best][0]
    if not shared or top in depth:  # *the lamp in the kitchen and the fan*: the kitchen is the lamp's alone
        return [targets[best]]
    joined = [way[0] == top or (sentence.labels[way[0]] == "conj" and way[1] == top) for way in ways]
    return [target for target, belongs in zip(targets, joined, strict=True) if belongs]


def _way_up(sentence: Fragment, span: Span) -> list[int]:
    at = next(a for a in range(span.start, span.end) if not span.start <= sentence.heads[a] < span.end)
    way = []
    while at >= 0:
        way.append(at)
        at = sentence.heads[at]
    return way
