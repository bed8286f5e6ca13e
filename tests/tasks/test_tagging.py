"""Span scores against seqeval and conlleval, word scores against scikit-learn."""

from __future__ import annotations

import warnings
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.metrics import precision_score, recall_score
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, f1_score

from bursar.errors import LabelError
from bursar.ragged import Ragged
from bursar.tasks import Beliefs, Tagging
from bursar.tasks.schemes import spans_of_tags, tags_of_spans
from tests.tasks import conlleval
from tests.tasks.examples import LABELS, any_spans, column

TAGS = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BI")]
TASK = Tagging("slots", LABELS)


def random_sentences(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Any tags as gold, and a guess that agrees with two thirds of them."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(TAGS, n).tolist() for n in rng.integers(1, 9, rng.integers(1, 12))]
    guess = [[tag if rng.random() < 0.67 else str(rng.choice(TAGS)) for tag in tags] for tags in gold]
    return gold, guess


def spans(sentences: list[list[str]]) -> Ragged:
    return column(TASK, [(len(tags), [list(span) for span in spans_of_tags(tags)]) for tags in sentences])


def iob2(sentences: list[list[str]]) -> list[str]:
    return [tag for tags in sentences for tag in tags_of_spans(conlleval.chunks(tags), len(tags))]


@pytest.mark.parametrize("seed", range(40))
def test_precision_recall_and_f1_are_seqevals_and_conllevals(seed):
    gold, guess = random_sentences(seed)
    words = np.array([len(tags) for tags in gold])
    scores = TASK.evaluate(spans(gold), spans(guess), words)
    token_f1 = scores.pop("token_weighted_f1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        by_seqeval = {
            "precision": precision_score(gold, guess),
            "recall": recall_score(gold, guess),
            "f1": seqeval_f1(gold, guess),
        }
    assert scores == pytest.approx(by_seqeval)
    assert scores == pytest.approx(conlleval.scores(gold, guess))
    assert token_f1 == pytest.approx(f1_score(iob2(gold), iob2(guess), average="weighted", zero_division=0))


def test_without_any_span_every_span_score_is_zero():
    nothing = column(TASK, [(3, []), (0, [])])
    scores = TASK.evaluate(nothing, nothing, np.array([3, 0]))
    assert scores == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "token_weighted_f1": 1.0}


def overlap(labels: list[list[list]]) -> bool:
    words = [[word for start, end, _ in item for word in range(start, end)] for item in labels]
    return any(len(held) != len(set(held)) for held in words)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), any_spans(n), any_spans(n))), max_size=5))
def test_nested_spans_have_span_scores_and_no_word_score(items):
    words, gold, guess = ([item[k] for item in items] for k in range(3))
    sets = [({tuple(s) for s in a}, {tuple(s) for s in b}) for a, b in zip(gold, guess, strict=True)]
    shared, guessed, known = (
        sum(len(a & b) for a, b in sets),
        sum(len(b) for _, b in sets),
        sum(len(a) for a, _ in sets),
    )
    scores = TASK.evaluate(
        column(TASK, list(zip(words, gold, strict=True))),
        column(TASK, list(zip(words, guess, strict=True))),
        np.array(words, dtype=np.int64),
    )
    assert ("token_weighted_f1" in scores) != (overlap(gold) or overlap(guess))
    assert scores["precision"] == pytest.approx(shared / guessed if guessed else 0)
    assert scores["recall"] == pytest.approx(shared / known if known else 0)
    assert scores["f1"] == pytest.approx(2 * shared / (guessed + known) if shared else 0)


def test_a_span_inside_another_is_right_on_its_own():
    gold = column(TASK, [(4, [[0, 4, "city"], [1, 2, "größe"]])])
    guess = column(TASK, [(4, [[1, 2, "größe"]])])
    assert TASK.evaluate(gold, guess, np.array([4])) == {"f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}
    with pytest.raises(LabelError, match="overlap"):
        TASK.targets(gold, np.array([4]))


@pytest.mark.parametrize("seed", range(10))
def test_where_every_word_has_a_label_f1_is_the_share_of_right_words(seed):
    rng = np.random.default_rng(seed)
    task, words = Tagging("pos", LABELS, every_word=True), rng.integers(1, 7, 9)
    gold, guess = ([rng.choice(LABELS, n).tolist() for n in words] for _ in range(2))
    scores = task.evaluate(
        column(task, list(zip(words, gold, strict=True))), column(task, list(zip(words, guess, strict=True))), words
    )
    flat = list(chain(*gold)), list(chain(*guess))
    assert scores["f1"] == scores["precision"] == scores["recall"] == pytest.approx(accuracy_score(*flat))
    assert scores["token_weighted_f1"] == pytest.approx(f1_score(*flat, average="weighted", zero_division=0))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "spans must be a list"),
        ({"start": 0}, "spans must be a list"),
        (["city"], "must be \\[start, end, label\\]"),
        ([[0, 1]], "must be \\[start, end, label\\]"),
        ([[0, 1, "city", 2]], "must be \\[start, end, label\\]"),
        ([["0", 1, "city"]], "must be \\[start, end, label\\]"),
        ([[False, True, "city"]], "must be \\[start, end, label\\]"),
        ([[0.0, 1.0, "city"]], "must be \\[start, end, label\\]"),
        ([[1, 1, "city"]], "is outside the item's 3 words"),
        ([[-1, 1, "city"]], "is outside the item's 3 words"),
        ([[0, 4, "city"]], "is outside the item's 3 words"),
        ([[0, 1, "town"]], "unknown label 'town'"),
    ],
)
def test_what_is_no_list_of_spans_is_refused_in_words(value, message):
    with pytest.raises(LabelError, match=message):
        TASK.encode(value, 3)


@pytest.mark.parametrize("value", [None, "abc", ["city"], ["city"] * 4, {"a": 1, "b": 2, "c": 3}])
def test_every_word_needs_as_many_labels_as_words(value):
    with pytest.raises(LabelError, match="3 words need a list of 3 labels"):
        Tagging("pos", LABELS, every_word=True).encode(value, 3)


def test_a_long_wrong_value_is_cut_short_in_the_message():
    with pytest.raises(LabelError) as raised:
        Tagging("pos", LABELS, every_word=True).encode("x" * 10_000, 3)
    assert len(str(raised.value)) < 150


def test_items_without_words_are_decoded_to_no_spans():
    assert TASK.decode(Beliefs.of(np.zeros((0, TASK.classes)), [0, 0])).lengths.tolist() == [0, 0]


def test_a_batch_without_a_word_has_no_loss_and_spoils_no_gradient():
    import torch

    from bursar.tasks.heads import Encoded

    head = TASK.head(4)
    words = torch.zeros((0, 4), requires_grad=True)
    counts = np.zeros(2, dtype=np.int64)
    output = head(Encoded(torch.zeros(2, 4), words, counts))
    loss = head.loss(output, Ragged.of([[], []]), smoothing=0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.isfinite(head.output.weight.grad).all()
