"""The data card of the built-in corpus in Markdown: how it is generated, and its statistics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from bursar.corpus import Corpus
from bursar.ragged import IntArray
from experiments.novelty import Mention, mentions_of, near_duplicates_of, normalised_words, unseen_share

MADE = """\
Bursar has a built-in corpus, so that experiments, tests and benchmarks need no download and every label is known.
`bursar.simulation.assistant_corpus()` generates it; `experiments.data_card.data_card(corpus)` writes this page from it.

## How it is made

All sentences come from a grammar and word lists that were written for Bursar; nothing was collected from anyone.

- **One line, all labels.** A line such as `wake me up/prt (~obl at {time})` defines words, slots and tree together.
  Every phrase has a head, so the trees are correct by construction and the same in every paraphrase.
- **Frequent and rare.** Intents have fixed, long-tailed shares. The lines of an intent, the ways to say a time or a
  date, and the words of every list are drawn with Zipf weights: many plain requests, a long tail of others.
- **Open classes.** Names, titles, playlists, addresses, events, messages and errands are composed of parts, so new
  ones keep occurring. Numbers, names and title words are shared between slot types on purpose: *seven* may be a time,
  a quantity or a track, *Jordan* a contact, an artist or a country.
- **Manner.** Frames (*could you …*, *i was wondering if …*), fronted phrases, openers, closers, and asides that sound
  like another intent (*my alarm is set for six so …*).
- **Noise.** Fillers, repeated words, dropped articles and typos; most texts are in lower case without punctuation.
- **Relations** link slots by their roles; if there are several candidates, the tree decides.
- **Urgency** is a sum over the meaning (the intent, how near the time is, words of haste or patience), squeezed into
  0 to 1, with a small jitter (standard deviation 0.03).
- **Near-duplicates.** One item in twenty paraphrases an earlier one and is in the same split. Plain requests also
  repeat by chance, as in real data; the counts are below.
- **Stable.** Every item has its own random numbers, from the seed and its position: the same call gives the same
  corpus, and a smaller corpus is a prefix of a larger one.

What it is not: a sample of any population of users. It says how strategies compare on a corpus of this shape, not how
well a model will do on real requests.
"""

SAMPLES = 10
AMBIGUOUS = 12


def data_card(corpus: Corpus) -> str:
    """The card of a corpus that ``assistant_corpus`` made, as Markdown."""
    mentions = mentions_of(corpus)
    sections = [
        "# The built-in corpus\n",
        MADE,
        _size(corpus),
        _intents(corpus),
        _slots(corpus, mentions),
        _ambiguity(mentions),
        _relations(corpus),
        _trees(corpus),
        _urgency(corpus),
        _novelty(corpus, mentions),
        _samples(corpus),
    ]
    return "\n".join(sections)


def _size(corpus: Corpus) -> str:
    vocabulary = {word.lower() for words in corpus.texts.all_words() for word in words} if corpus.texts else set()
    rows = []
    for split in corpus.splits:
        words = corpus.words[corpus.in_split(split)]
        rows.append((split, f"{len(words):,}", f"{words.sum():,}", f"{words.mean():.1f}" if len(words) else "-"))
    low, middle, high = (int(q) for q in np.percentile(corpus.words, [5, 50, 95], method="nearest"))
    return (
        "## Size\n\n"
        + _table(("split", "items", "words", "words per item"), rows)
        + f"\n{corpus.words.min()} to {corpus.words.max()} words per item; 5 % have at most {low}, half "
        f"at most {middle}, 95 % at most {high}. {len(vocabulary):,} different words, ignoring case.\n"
    )


def _intents(corpus: Corpus) -> str:
    task, codes = corpus.schema["intent"], corpus.labels["intent"].rows.values[:, 0]
    domains = dict(zip(codes.tolist(), corpus.groups.tolist() if corpus.groups else (), strict=False))
    counts = _counts(codes, task.labels)
    rows = [
        (name, domains.get(task.labels.index(name), "-"), f"{count:,}", _percent(count / len(corpus)))
        for name, count in counts
    ]
    return (
        f"## Intents (`intent`, {task.kind})\n\n{len(task.labels)} intents in {len(set(domains.values()))} domains; "
        "the domain is the item's `group`.\n\n" + _table(("intent", "domain", "items", "share"), rows)
    )


def _slots(corpus: Corpus, mentions: Sequence[Mention]) -> str:
    values: dict[str, set[str]] = defaultdict(set)
    lengths: dict[str, list[int]] = defaultdict(list)
    for mention in mentions:
        values[mention.kind].add(mention.value)
        lengths[mention.kind].append(mention.value.count(" ") + 1)
    rows = []
    for name, words in sorted(lengths.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        new = unseen_share([mention for mention in mentions if mention.kind == name])
        rows.append((name, f"{len(words):,}", f"{len(values[name]):,}", f"{np.mean(words):.1f}", _percent(new)))
    per_item = corpus.labels["slots"].rows.lengths
    return (
        f"## Slots (`slots`, {corpus.schema['slots'].kind})\n\n{len(corpus.schema['slots'].labels)} types, "
        f"{len(mentions):,} mentions, {per_item.mean():.2f} per item; {_percent((per_item == 0).mean())} of the items "
        "have none. *New in test*: the share of mentions in test whose words never fill this slot in train.\n\n"
        + _table(("slot", "mentions", "different", "words", "new in test"), rows)
    )


def _ambiguity(mentions: Sequence[Mention]) -> str:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for mention in mentions:
        kinds[mention.value][mention.kind] += 1
    several = {value: found for value, found in kinds.items() if len(found) > 1}
    share = sum(found.total() for found in several.values()) / max(len(mentions), 1)
    best = sum(max(found.values()) for found in kinds.values()) / max(len(mentions), 1)
    most = sorted(several.items(), key=lambda entry: (-len(entry[1]), -entry[1].total(), entry[0]))[:AMBIGUOUS]
    rows = [
        (value, ", ".join(f"{k} {n}" for k, n in sorted(f.items(), key=lambda e: (-e[1], e[0])))) for value, f in most
    ]
    return (
        f"### The same words, another slot\n\n{_percent(share)} of the mentions have words that elsewhere fill a slot "
        f"of another type. Given the spans, guessing the most frequent type of their words would be right in "
        f"{_percent(best)}.\n\n" + _table(("words", "as"), rows)
    )


def _relations(corpus: Corpus) -> str:
    task, labels = corpus.schema["relations"], corpus.labels["relations"].rows
    pairs: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for _, _, first, _, _, second, label in labels.values.tolist():
        pairs[label][first, second] += 1
    kinds = corpus.schema["slots"].labels
    rows = []
    for name, count in _counts(labels.values[:, 6], task.labels):
        (first, second), _ = min(pairs[task.labels.index(name)].items(), key=lambda e: (-e[1], e[0]))
        rows.append((name, f"{count:,}", f"{kinds[first]} to {kinds[second]}", len(pairs[task.labels.index(name)])))
    return (
        f"## Relations (`relations`, {task.kind})\n\n{len(labels.values):,} relations between slots, "
        f"{labels.lengths.mean():.2f} per item; {_percent((labels.lengths > 0).mean())} of the items have some.\n\n"
        + _table(("relation", "count", "most often from", "pairs of types"), rows)
    )


def _trees(corpus: Corpus) -> str:
    task, labels = corpus.schema["dependencies"], corpus.labels["dependencies"].rows
    depths = np.array([tree_depth(rows[:, 0].tolist()) for rows in labels])
    spread = Counter(depths.tolist())
    rows = [(depth, f"{spread[depth]:,}", _percent(spread[depth] / len(corpus))) for depth in sorted(spread)]
    counts = _counts(labels.values[:, 1], task.labels)
    shares = ", ".join(f"{name} {_percent(count / len(labels.values))}" for name, count in counts)
    return (
        f"## Trees (`dependencies`, {task.kind})\n\n{len(counts)} labels: {shares}.\n\n"
        "Depth, the number of words from the root to the deepest word:\n\n" + _table(("depth", "items", "share"), rows)
    )


def tree_depth(heads: Sequence[int]) -> int:
    """The number of words on the longest path from the root; heads count from 1, the root's head is 0.

    >>> tree_depth([0, 1, 4, 2])
    4
    """
    depth = {0: 0}
    for word in range(1, len(heads) + 1):
        way = []
        while word not in depth:
            way.append(word)
            word = heads[word - 1]
        for steps, below in enumerate(reversed(way), start=1):
            depth[below] = depth[word] + steps
    return max(depth.values())


def _urgency(corpus: Corpus) -> str:
    values = corpus.labels["urgency"].rows.values[:, 0]
    counts, edges = np.histogram(values, bins=10, range=(0, 1))
    rows = [
        (f"{low:.1f} to {high:.1f}", f"{count:,}", _percent(count / len(corpus)))
        for count, low, high in zip(counts.tolist(), edges, edges[1:], strict=False)
    ]
    return (
        f"## Urgency (`urgency`, {corpus.schema['urgency'].kind})\n\nMean {values.mean():.3f}, standard deviation "
        f"{values.std():.3f}.\n\n" + _table(("urgency", "items", "share"), rows)
    )


def _novelty(corpus: Corpus, mentions: Sequence[Mention]) -> str:
    train, test = corpus.in_split("train"), corpus.in_split("test")
    said = normalised_words(corpus)
    known = [said[at] for at in train]
    seen_words = {word for words in known for word in words}
    test_words = [word for at in test for word in said[at]]
    asked = [said[at] for at in test]
    seen = set(known)
    rows = [
        ("mentions of slots whose words never fill that slot in train", _percent(unseen_share(mentions))),
        ("words that are not in train", _percent(_mean(word not in seen_words for word in test_words))),
        ("items that are in train word for word", _percent(_mean(words in seen for words in asked))),
        ("items at most one word away from an item of train", _percent(_mean(near_duplicates_of(known, asked)))),
    ]
    repeated = 1 - len(set(said)) / len(said)
    return (
        "## What is new in test\n\nIgnoring case and final punctuation:\n\n"
        + _table(("in test", "share"), rows)
        + f"\nIn the whole corpus, {_percent(repeated)} of the items repeat an earlier one word for word.\n"
    )


def _samples(corpus: Corpus) -> str:
    step = max(len(corpus) // SAMPLES, 1)
    parts = ["## Examples\n"]
    for at in range(0, min(step * SAMPLES, len(corpus)), step):
        item = corpus[at]
        slots = ", ".join(f"{kind}: *{' '.join(item.words[a:b])}*" for a, b, kind in item.labels["slots"]) or "none"
        links = ", ".join(
            f"{name}(*{' '.join(item.words[a:b])}*, *{' '.join(item.words[c:d])}*)"
            for (a, b, _), (c, d, _), name in item.labels["relations"]
        )
        heads = " ".join(f"{head}:{label}" for head, label in item.labels["dependencies"])
        parts.append(
            f"**{item.text}** ({item.id}, {item.split}, {item.group})\n\n- intent: {item.labels['intent']}; urgency: "
            f"{item.labels['urgency']:.3f}\n- slots: {slots}\n- relations: {links or 'none'}\n- tree: `{heads}`\n"
        )
    return "\n".join(parts)


def _counts(codes: IntArray, names: Sequence[str]) -> list[tuple[str, int]]:
    """Names and the counts of their codes, most frequent first, without those that never occur."""
    counts = np.bincount(codes, minlength=len(names)).tolist()
    return sorted(((n, c) for n, c in zip(names, counts, strict=True) if c), key=lambda entry: (-entry[1], entry[0]))


def _mean(truths: Iterable[bool]) -> float:
    counted = list(truths)
    return sum(counted) / max(len(counted), 1)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
