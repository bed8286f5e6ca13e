"""Relations between the slots of a sentence, by their roles and their distance in the tree."""

from __future__ import annotations

from bursar.simulation.grammar import Piece, Span

# A slot in the role on the left is linked to the nearest slot of the first type on the right that the sentence has.
_LINKS: dict[str, tuple[tuple[str, str], ...]] = {
    "time": (
        ("event", "time-of"),
        ("reminder", "time-of"),
        ("restaurant", "time-of"),
        ("vehicle", "time-of"),
        ("label", "time-of"),
        ("device", "time-of"),
    ),
    "date": (
        ("event", "date-of"),
        ("reminder", "date-of"),
        ("restaurant", "date-of"),
        ("destination", "date-of"),
        ("condition", "date-of"),
        ("place", "date-of"),
        ("time", "date-of"),
    ),
    "duration": (("label", "duration-of"), ("device", "duration-of"), ("event", "duration-of")),
    "recurrence": (("reminder", "repeats"), ("event", "repeats"), ("device", "repeats"), ("time", "repeats")),
    "contact": (("message", "recipient-of"), ("event", "attends"), ("item", "recipient-of")),
    "sender": (("event", "reports-on"),),
    "app": (("contact", "channel-to"),),
    "quantity": (("item", "quantity-of"), ("dish", "quantity-of"), ("destination", "party-of")),
    "party": (("restaurant", "party-of"), ("destination", "party-of"), ("cuisine", "party-of")),
    "room": (("device", "location-of"),),
    "place": (("condition", "location-of"), ("cuisine", "location-of"), ("dish", "location-of")),
    "level": (("device", "setting-of"), ("room", "setting-of")),
    "color": (("device", "setting-of"),),
    "artist": (("song", "made"), ("album", "made")),
    "song": (("playlist", "goes-on"), ("album", "goes-on")),
    "number": (("album", "number-of"), ("airline", "number-of")),
    "item": (("list_name", "goes-on"), ("store", "sold-by")),
    "dish": (("restaurant", "sold-by"), ("list_name", "goes-on")),
    "price": (("item", "price-of"), ("destination", "price-of")),
    "origin": (("destination", "route-to"),),
    "airline": (("destination", "flies-to"),),
    "vehicle": (("destination", "goes-to"),),
    "rating": (("dish", "rates"), ("restaurant", "rates")),
    "old": (("event", "old-time-of"), ("label", "old-time-of")),
    "new": (("event", "new-time-of"), ("label", "new-time-of")),
    "venue": (("event", "location-of"),),
    "near": (("cuisine", "location-of"),),
}
RELATIONS = tuple(sorted({label for targets in _LINKS.values() for _, label in targets}))
SHARED = frozenset(("location-of",))  # *the lamp and the fan in the kitchen* are both there

Link = tuple[Span, Span, str]


def relations_of(sentence: Piece) -> list[Link]:
    """The links of a sentence, sorted by their first slots."""
    links: list[Link] = []
    for span in sentence.spans:
        for kind, label in _LINKS.get(span.role, ()):
            targets = [other for other in sentence.spans if other.kind == kind and other is not span]
            if targets:
                near = targets if len(targets) == 1 else _nearest(sentence, span, targets, label in SHARED)
                links += [(span, target, label) for target in near]
                break
    links.sort(key=lambda link: (link[0].start, link[1].start))
    return links


def _nearest(sentence: Piece, span: Span, targets: list[Span], shared: bool) -> list[Span]:
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


def _way_up(sentence: Piece, span: Span) -> list[int]:
    """The words from a span's head word to the root."""
    at = next(a for a in range(span.start, span.end) if not span.start <= sentence.heads[a] < span.end)
    way = []
    while at >= 0:
        way.append(at)
        at = sentence.heads[at]
    return way
