"""How much of a corpus was seen before: slot values, words, and (nearly) whole sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bursar.corpus import Corpus

MARKS = frozenset((".", "?", "!"))
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mention:
    """A slot in a text: its type, its words in lower case, and the split."""

    kind: str
    value: str
    split: str


def mentions_of(corpus: Corpus) -> list[Mention]:
    """Every slot of a corpus."""
    if corpus.texts is None:
        return []
    kinds, rows = corpus.schema["slots"].labels, corpus.labels["slots"].rows
    splits = [corpus.splits[code] for code in corpus.split_codes.tolist()]
    return [
        Mention(kinds[kind], " ".join(words[start:end]).lower(), split)
        for words, spans, split in zip(corpus.texts.all_words(), rows, splits, strict=True)
        for start, end, kind in spans.tolist()
    ]


def unseen_share(mentions: Iterable[Mention], of: str = "test", among: str = "train") -> float:
    """The share of mentions in one split whose words never fill the same slot in another.

    >>> seen, new = Mention("city", "rome", "test"), Mention("song", "rome", "test")
    >>> unseen_share([Mention("city", "rome", "train"), seen, new])
    0.5
    """
    mentions = list(mentions)
    known = {(mention.kind, mention.value) for mention in mentions if mention.split == among}
    asked = [(mention.kind, mention.value) not in known for mention in mentions if mention.split == of]
    return sum(asked) / max(len(asked), 1)


def normalised_words(corpus: Corpus) -> list[Words]:
    """The words of every item in lower case, without final punctuation."""
    if corpus.texts is None:
        return [()] * len(corpus)
    lower = [tuple(word.lower() for word in words) for words in corpus.texts.all_words()]
    return [words[:-1] if words and words[-1] in MARKS else words for words in lower]


def near_duplicates_of(known: Sequence[Words], asked: Sequence[Words]) -> list[bool]:
    """Whether each sentence is within one word (replaced, added or removed) of a known one.

    >>> near_duplicates_of([("call", "my", "mom")], [("call", "my", "dad"), ("call", "mom"), ("text", "my", "dad")])
    [True, True, False]
    """
    whole, holed = set(known), {hole for words in known for hole in _with_hole(words)}
    shorter = {words[:at] + words[at + 1 :] for words in known for at in range(len(words))}
    return [
        words in whole
        or words in shorter
        or any(hole in holed for hole in _with_hole(words))
        or any(words[:at] + words[at + 1 :] in whole for at in range(len(words)))
        for words in asked
    ]


def _with_hole(words: Words) -> Iterator[Words]:
    """The sentence with each word in turn replaced by a blank."""
    for at in range(len(words)):
        yield (*words[:at], "", *words[at + 1 :])
