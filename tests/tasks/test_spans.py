"""Heads for spans and span pairs: every unit against plain loops, gold there and back, and that they learn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.corpus import read
from bursar.errors import SchemaError
from bursar.ragged import Ragged
from bursar.tasks import Beliefs, Relations, Tagging, Task
from bursar.tasks.heads import Encoded
from bursar.tasks.heads.linear import Scores
from bursar.tasks.heads.spans import (
    GAPS,
    LONGEST,
    ChoiceHead,
    PairHead,
    SpanHead,
    all_pairs,
    all_spans,
    max_over_spans,
    spans_to_link,
)
from bursar.tasks.task import matched_counts
from tests.tasks.examples import EXAMPLES, LABELS, any_spans, column

pytestmark = pytest.mark.usefixtures("one_thread")

WIDTH = 8
ENTITIES = Tagging("entities", LABELS)
LINKS = Relations("links", ("used-for", "part-of"), entity_types=LABELS)
NESTED = (  # words, entities, relations: spans in spans, crossing spans, one in many relations, both directions
    (6, [[0, 4, "city"], [1, 3, "größe"], [1, 2, "city"]], [[[0, 4, "city"], [1, 2, "city"], "part-of"]]),
    (0, [], []),
    (
        5,
        [[0, 3, "city"], [2, 5, "größe"], [4, 5, "city"]],
        [
            [[0, 3, "city"], [2, 5, "größe"], "used-for"],
            [[2, 5, "größe"], [0, 3, "city"], "part-of"],
            [[0, 3, "city"], [4, 5, "city"], "part-of"],
        ],
    ),
    (3, [], []),
    (1, [[0, 1, "time-of.day"]], []),
)
COUNTS = np.array([words for words, _, _ in NESTED])
GOLD_SPANS = column(ENTITIES, [(words, spans) for words, spans, _ in NESTED])
GOLD_LINKS = column(LINKS, [(words, links) for words, _, links in NESTED])
LINKABLE = spans_to_link(GOLD_SPANS, GOLD_LINKS, ENTITIES.labels, LINKS.entity_types)

many_items = st.lists(st.integers(0, 7), max_size=5)


def batch(words: Any, width: int = WIDTH, seed: int = 0) -> Encoded:
    counts = np.array(words, dtype=np.int64)
    source = torch.Generator().manual_seed(seed)
    items = torch.randn(len(counts), width, generator=source)
    return Encoded(items, torch.randn(int(counts.sum()), width, generator=source), counts)


def span_head(longest: int = 4, task: Tagging = ENTITIES, width: int = WIDTH) -> SpanHead:
    torch.manual_seed(0)
    head = SpanHead(task, width, dropout=0.1)
    head.prepare(Ragged.of([[(0, longest, 0)]], 3), np.array([longest]))
    return head.eval()


def pair_head(task: Relations = LINKS, width: int = WIDTH) -> PairHead:
    torch.manual_seed(0)
    return PairHead(task, width, dropout=0.1).eval()


def sure(head: ChoiceHead, output: Scores, targets: Ragged) -> Beliefs:
    """Beliefs that put everything on what the targets say."""
    choices = torch.from_numpy(head.choices(output, targets))
    logits = torch.nn.functional.one_hot(choices, output.logits.shape[1]) * 100.0
    return head.predict_proba([output._replace(logits=logits)])


def sets(rows: Ragged) -> list[set[tuple[int, ...]]]:
    return [{tuple(row) for row in item.tolist()} for item in rows]


# -- which units there are -----------------------------------------------------------------------------------------
@settings(deadline=None)
@given(many_items, st.integers(1, 9))
def test_the_spans_are_all_and_only_those_up_to_the_longest(words, longest):
    expected = [[[a, b] for a in range(n) for b in range(a + 1, min(a + longest, n) + 1)] for n in words]
    assert [item.tolist() for item in all_spans(np.array(words, dtype=np.int64), longest)] == expected


@settings(deadline=None)
@given(st.data(), many_items)
def test_the_pairs_are_all_and_only_the_ordered_ones_of_different_spans_of_an_item(data, words):
    items = [data.draw(any_spans(n)) for n in words]
    spans = column(ENTITIES, list(zip(words, items, strict=True)))
    rows = [[(*spans.values[a].tolist(), *spans.values[b].tolist()) for a, b in item] for item in all_pairs(spans)]
    given_rows = [[tuple(row) for row in item.tolist()] for item in spans]
    expected = [[(*a, *b) for a, b in permutations(item, 2) if a[:2] != b[:2]] for item in given_rows]
    assert [sorted(item) for item in rows] == [sorted(item) for item in expected]


@settings(deadline=None)
@given(st.data(), many_items, st.booleans(), st.booleans())
def test_the_spans_to_link_are_the_entities_and_what_relations_name_each_once(data, words, with_entities, with_links):
    labels, types = ("größe", "other", "city"), ("city", "time-of.day", "größe")
    task = Relations("links", LINKS.labels, entity_types=types)
    spans = [[[a, b, label] for a, b, label in data.draw(any_spans(n)) if label in labels] for n in words]
    links = [data.draw(EXAMPLES["relations"].labels(n)) for n in words]
    expected = []
    for found, named in zip(spans, links, strict=True):
        kinds: dict[tuple[int, int], int] = {}
        if with_entities or not with_links:
            for a, b, label in found:
                kinds.setdefault((a, b), types.index(label))
        if with_links:
            for a, b, label in [link[0] for link in named] + [link[1] for link in named]:
                kinds.setdefault((a, b), types.index(label))
        expected.append([[a, b, kind] for (a, b), kind in sorted(kinds.items())])
    entities = column(Tagging("entities", labels), list(zip(words, spans, strict=True)))
    relations = column(task, list(zip(words, links, strict=True)))
    linked = spans_to_link(
        entities if with_entities or not with_links else None, relations if with_links else None, labels, types
    )
    assert [item.tolist() for item in linked] == expected


def test_an_entity_whose_label_is_no_entity_type_is_not_linked():
    entities = Ragged.of([[(0, 1, 0), (1, 2, 1)], []], 3)
    linked = spans_to_link(entities, None, ("date", "city"), ("city",))
    assert [item.tolist() for item in linked] == [[[1, 2, 0]], []]


# -- targets -------------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(st.data(), many_items, st.integers(1, 4))
def test_each_span_should_choose_the_first_gold_label_it_has_or_none(data, words, longest):
    gold = column(ENTITIES, [(n, data.draw(any_spans(n))) for n in words])
    head = span_head(longest)
    output = head(batch(words))
    owners = np.repeat(np.arange(len(words)), output.units)
    expected = [
        next((1 + label for a, b, label in gold[owner].tolist() if [a, b] == span), 0)
        for owner, span in zip(owners, output.subjects.tolist(), strict=True)
    ]
    assert head.choices(output, head.targets(gold, np.array(words))).tolist() == expected


@settings(deadline=None)
@given(st.data(), many_items)
def test_each_pair_should_choose_the_first_gold_label_it_has_or_none(data, words):
    gold = column(LINKS, [(n, data.draw(EXAMPLES["relations"].labels(n))) for n in words])
    other = column(ENTITIES, [(n, data.draw(any_spans(n))) for n in words])
    spans = spans_to_link(other, gold, LABELS, LABELS)
    head = pair_head()
    output = head(batch(words), spans)
    owners = np.repeat(np.arange(len(words)), output.units)
    expected = [
        next((1 + row[6] for row in gold[owner].tolist() if (*row[:2], *row[3:5]) == (a, b, c, d)), 0)
        for owner, (a, b, _, c, d, _) in zip(owners, output.subjects.tolist(), strict=True)
    ]
    assert head.choices(output, head.targets(gold, np.array(words))).tolist() == expected


def test_gold_spans_that_nest_and_cross_come_back_exactly():
    head = span_head(4)
    output = head(batch(COUNTS))
    assert sets(ENTITIES.decode(sure(head, output, head.targets(GOLD_SPANS, COUNTS)))) == sets(GOLD_SPANS)


def test_gold_relations_between_nested_and_crossing_spans_come_back_exactly():
    head = pair_head()
    output = head(batch(COUNTS), LINKABLE)
    assert sets(LINKS.decode(sure(head, output, head.targets(GOLD_LINKS, COUNTS)))) == sets(GOLD_LINKS)


def test_a_gold_span_beyond_the_longest_is_not_asked_for():
    head = span_head(2)
    output = head(batch([6]))
    gold = Ragged.of([[(0, 4, 0), (1, 3, 1)]], 3)
    assert sets(ENTITIES.decode(sure(head, output, gold))) == [{(1, 3, 1)}]
    assert torch.isfinite(head.loss(output, gold, 0.1))


# -- the heads -----------------------------------------------------------------------------------------------------
def test_the_highest_of_any_stretch_of_words_is_the_plain_maximum():
    words = torch.randn(37, 3, generator=torch.Generator().manual_seed(1))
    stretches = [(a, b) for a in range(38) for b in range(38)]
    found = max_over_spans(words, *torch.tensor(stretches).unbind(dim=1))
    expected = [words[a:b].max(dim=0).values if a < b else torch.zeros(3) for a, b in stretches]
    assert torch.equal(found, torch.stack(expected))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_of_spans_is_cross_entropy_a_word_with_only_labels_smoothed(smoothing):
    head, plain = span_head(4), torch.nn.functional.cross_entropy
    output = head(batch(COUNTS))
    wanted = torch.from_numpy(head.choices(output, GOLD_SPANS))
    named = wanted > 0
    total = plain(output.logits[~named], wanted[~named], reduction="sum")
    total = total + plain(output.logits[named], wanted[named], reduction="sum", label_smoothing=smoothing)
    assert head.loss(output, GOLD_SPANS, smoothing).item() == pytest.approx(total.item() / COUNTS.sum(), rel=1e-5)


def test_the_loss_of_pairs_is_their_mean_cross_entropy():
    head = pair_head()
    output = head(batch(COUNTS), LINKABLE)
    wanted = torch.from_numpy(head.choices(output, GOLD_LINKS))
    mean = torch.nn.functional.cross_entropy(output.logits, wanted)
    assert head.loss(output, GOLD_LINKS, 0.0).item() == pytest.approx(mean.item(), rel=1e-5)


@pytest.mark.parametrize("which", ["spans", "pairs"])
def test_a_few_steps_lower_the_loss_until_the_gold_comes_back(which):
    head: ChoiceHead = span_head(4) if which == "spans" else pair_head()
    task: Task = ENTITIES if which == "spans" else LINKS
    gold = GOLD_SPANS if which == "spans" else GOLD_LINKS
    encoded = batch(COUNTS)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss = head.loss(head(encoded, LINKABLE), gold, 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[5] < losses[0]
    assert losses[-1] < 0.2 * losses[0]
    with torch.inference_mode():
        assert sets(task.decode(head.predict_proba([head(encoded, LINKABLE)]))) == sets(gold)


@settings(deadline=None, max_examples=30)
@given(st.data(), st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(0, 1000))
def test_an_item_is_believed_the_same_alone_and_in_company(data, words, seed):
    encoded = batch(words, seed=seed)
    spans = column(ENTITIES, [(n, data.draw(any_spans(min(n, 6)))) for n in words])
    for head in (span_head(5), pair_head()):
        with torch.inference_mode():
            together = head.predict_proba([head(encoded, spans)])
            for at in range(len(words)):
                here = np.array([at])
                alone, mine = head.predict_proba([head(encoded.take(here), spans.take(here))]), together.take(here)
                assert np.array_equal(alone.subjects, mine.subjects)
                assert np.abs(alone.values - mine.values).max(initial=0) < 1e-6


@pytest.mark.parametrize("words", [[], [0], [0, 0], [3, 0, 2]])
def test_items_without_words_or_spans_have_no_pairs_and_a_loss_of_nothing(words):
    encoded = batch(words)
    encoded.words.requires_grad_(True)
    counts, nothing = encoded.counts, Ragged.of([[] for _ in words], 3)
    head = pair_head()
    output = head(encoded, nothing)
    loss = head.loss(output, head.targets(Ragged.of([[] for _ in words], 7), counts), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in head.parameters())
    with torch.inference_mode():
        beliefs = head.predict_proba([head(encoded, nothing)] * 2)
    assert (len(beliefs), beliefs.units.tolist(), beliefs.passes) == (len(words), [0] * len(words), 2)
    assert [len(item) for item in LINKS.decode(beliefs)] == [0] * len(words)

    finder = span_head()
    with torch.inference_mode():
        found = finder.predict_proba([finder(encoded)] * 2)
    assert [int(n) > 0 for n in found.units] == [n > 0 for n in words]
    assert len(ENTITIES.decode(found)) == len(words)
    loss = finder.loss(finder(encoded), nothing, 0.1)
    loss.backward()
    assert (loss.item() == 0) == (sum(words) == 0)


def test_one_span_alone_has_no_pair():
    output = pair_head()(batch([4, 4]), Ragged.of([[(0, 2, 0)], [(0, 1, 0), (2, 4, 1)]], 3))
    assert output.units.tolist() == [0, 2]
    assert output.subjects.tolist() == [[0, 1, 0, 2, 4, 1], [2, 4, 1, 0, 1, 0]]


def test_spans_at_any_distance_and_any_overlap_are_scored():
    n = GAPS[-1] + 12
    spans = Ragged.of([[(a, b, 0) for a in range(0, n, 3) for b in (a + 1, min(a + 5, n))]], 3)
    output = pair_head()(batch([n]), spans)
    assert torch.isfinite(output.logits).all()


def test_the_longest_span_is_learned_from_the_labels_and_kept_with_the_weights():
    head = SpanHead(ENTITIES, WIDTH, dropout=0.1)
    for rows, expected in (([], 1), ([(0, 1, 0)], 1), ([(2, 5, 0), (0, 1, 1)], 3), ([(0, LONGEST + 9, 0)], LONGEST)):
        head.prepare(Ragged.of([rows, []], 3), np.array([90, 3]))
        assert int(head.longest) == expected
    again = SpanHead(ENTITIES, WIDTH, dropout=0.1)
    again.load_state_dict(head.state_dict())
    assert int(again.longest) == LONGEST
    encoded = batch([50])
    assert torch.equal(again.eval()(encoded).logits, head.eval()(encoded).logits)


def test_a_temperature_divides_the_logits_and_keeps_the_spans():
    head = span_head()
    output = head(batch([3, 2]))
    cooler = head.with_temperature(output, 2.0)
    assert torch.equal(cooler.logits, output.logits / 2)
    assert cooler.subjects is output.subjects


def test_a_label_for_every_word_is_refused():
    with pytest.raises(SchemaError, match="leaves no spans to find"):
        SpanHead(Tagging("pos", LABELS, every_word=True), WIDTH, dropout=0.1)


def test_relations_without_spans_are_refused():
    with pytest.raises(ValueError, match="relations need spans"):
        pair_head()(batch([3]))


# -- real data -----------------------------------------------------------------------------------------------------
SECOND_LABELS = {"scierc": 0, "webnlg": 25}  # relations between spans already related, in the same direction


@pytest.mark.parametrize("name", SECOND_LABELS)
def test_all_gold_of_a_corpus_comes_back_but_for_the_second_labels_of_a_pair(
    name: str, data_folder: Callable[[str], Path]
) -> None:
    corpus = read(data_folder(name))
    entities, links = corpus.schema["entities"], corpus.schema["relations"]
    assert isinstance(entities, Tagging)
    assert isinstance(links, Relations)
    spans, relations = corpus.labels["entities"].rows, corpus.labels["relations"].rows
    encoded = batch(corpus.words, width=1)
    with torch.inference_mode():
        finder = SpanHead(entities, 1, dropout=0.0)
        finder.prepare(spans, corpus.words)
        found = entities.decode(sure(finder, finder(encoded), finder.targets(spans, corpus.words)))
        both, guessed, gold = matched_counts(spans, found).T
        assert (both == guessed).all()
        assert (both == gold).all()

        linker = PairHead(links, 1, dropout=0.0)
        output = linker(encoded, spans_to_link(found, None, entities.labels, links.entity_types))
        linked = links.decode(sure(linker, output, linker.targets(relations, corpus.words)))
        both, guessed, gold = matched_counts(relations, linked).T
        assert (both == guessed).all()
        assert (gold - both).sum() == SECOND_LABELS[name]
