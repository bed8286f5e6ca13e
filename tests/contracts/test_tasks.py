"""What every task kind must keep to. A new kind needs an example in tests/tasks/examples.py and nothing here."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bursar.errors import LabelError, SchemaError
from bursar.ragged import Ragged
from bursar.tasks import KINDS, Beliefs, CostModel, Task, Vocabulary, make_task
from tests.tasks.examples import EXAMPLES, column, items_of

often = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
every_kind = pytest.mark.parametrize("case", EXAMPLES.values(), ids=EXAMPLES)


def columns(case, items):
    words = np.array([item[0] for item in items], dtype=np.int64)
    return words, *(column(case.task, [(item[0], item[k]) for item in items]) for k in (1, 2))


def test_every_kind_has_an_example():
    assert set(KINDS) == {case.task.kind for case in EXAMPLES.values()}


# -- codec -------------------------------------------------------------------------------------------------------------
@every_kind
@often
@given(data=st.data())
def test_a_label_comes_back_from_its_rows_as_it_was(case, data):
    words = data.draw(st.integers(0, 6))
    label = data.draw(case.labels(words))
    rows = case.task.encode(label, words)
    assert rows.shape == (len(rows), case.task.width)
    assert rows.dtype == case.task.dtype
    assert case.task.value(rows) == label


@every_kind
def test_a_value_is_plain_json(case):
    for words, label in case.items:
        value = case.task.value(case.task.encode(label, words))
        assert json.loads(json.dumps(value)) == value == label


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 8)
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "city", "größe", "used-for", "town"])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


def slipped(draw: Any, value: Any, other: Any) -> Any:
    """A label with something else in one place of it, or one thing missing or doubled."""
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(value) - 1))
        put = draw(st.sampled_from(["deeper", "out", "twice"]))
        middle = (
            {"out": [], "twice": [value[at]] * 2}.get(put) if put != "deeper" else [slipped(draw, value[at], other)]
        )
        return value[:at] + middle + value[at + 1 :]
    return other


def read_or_refused(task, value, words, vocabulary) -> None:
    """A label is either read and comes back the same, or refused in a sentence; nothing else ever happens."""
    try:
        rows = task.rows(value, words, vocabulary)
    except LabelError as error:
        refusal = error.message
    else:
        refusal = ""
    if refusal:
        assert len(refusal.split()) >= 3
        return
    known = replace(task, **{field: vocabulary[field].labels for field in task.vocabularies})
    assert known.value(np.asarray(rows, dtype=task.dtype).reshape(-1, task.width)) == value


@every_kind
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
@settings(often, max_examples=50)
@given(value=json_values, words=st.integers(0, 4))
@example(value=10**400, words=1)
@example(value=[10**400], words=1)
@example(value=[[10**400, "city"]], words=1)
@example(value=[[0, 10**400, "city"]], words=1)
@example(value=[[[0, 10**400, "city"], [0, 1, "city"], "used-for"]], words=1)
def test_any_json_is_read_or_refused_in_a_sentence(case, closed, value, words):
    vocabulary = {f: Vocabulary(getattr(case.task, f), closed=closed) for f in case.task.vocabularies}
    read_or_refused(case.task, value, words, vocabulary)


@every_kind
@settings(often, max_examples=50)
@given(data=st.data(), other=json_values)
def test_a_label_with_one_slip_is_read_or_refused_in_a_sentence(case, data, other):
    words = data.draw(st.integers(0, 4))
    value = slipped(data.draw, data.draw(case.labels(words)), other)
    read_or_refused(case.task, value, words, case.task.closed_vocabularies())


@every_kind
def test_a_task_comes_back_from_its_description_by_way_of_json(case):
    again = make_task(case.task.name, json.loads(json.dumps(case.task.describe())))
    assert again == case.task
    assert hash(again) == hash(case.task)
    assert make_task("bare", {"kind": case.task.kind}).kind == case.task.kind


# -- scores ------------------------------------------------------------------------------------------------------------
@every_kind
@often
@given(data=st.data())
def test_the_score_of_any_draw_of_items_is_that_of_their_summed_tallies(case, data):
    items = data.draw(items_of(case, least=1))
    words, gold, guess = columns(case, items)
    tally = case.task.tally(gold, guess)
    assert len(tally) == len(items)
    draws = data.draw(st.lists(st.lists(st.integers(0, len(items) - 1)), min_size=1, max_size=3))  # with repetition
    totals = np.stack([tally[np.array(drawn, dtype=np.int64)].sum(axis=0) for drawn in draws])
    expected = []
    for drawn in draws:
        at = np.array(drawn, dtype=np.int64)
        scores = case.task.evaluate(gold.take(at), guess.take(at), words[at])
        expected.append(scores[case.task.metric])
        assert all(isinstance(score, float) and -1 <= score <= 1 for score in scores.values())
    assert case.task.score(totals).tolist() == pytest.approx(expected, abs=1e-12)
    assert [float(case.task.score(total)) for total in totals] == pytest.approx(expected, abs=1e-12)


@every_kind
def test_a_perfect_guess_scores_one(case):
    scores = case.task.evaluate(case.gold, case.gold, case.words)
    assert scores == pytest.approx(dict.fromkeys(scores, 1.0))
    assert next(iter(scores)) == case.task.metric


@every_kind
@often
@given(data=st.data())
def test_permuting_the_items_never_changes_a_score(case, data):
    items = data.draw(items_of(case))
    shuffled = data.draw(st.permutations(items))
    before, after = ((gold, guess, words) for words, gold, guess in (columns(case, items), columns(case, shuffled)))
    assert case.task.evaluate(*after) == pytest.approx(case.task.evaluate(*before))


@every_kind
def test_no_items_score_zero(case):
    nothing = case.gold.take(np.zeros(0, dtype=np.int64))
    assert set(case.task.evaluate(nothing, nothing, case.words[:0]).values()) == {0.0}
    assert len(case.task.tally(nothing, nothing)) == 0


# -- cost --------------------------------------------------------------------------------------------------------------
@every_kind
@often
@given(data=st.data())
def test_counts_are_whole_and_never_negative(case, data):
    _, gold, _ = columns(case, data.draw(items_of(case)))
    counts = case.task.count(gold)
    assert counts.shape == (len(gold),)
    assert counts.dtype.kind == "i"
    assert (counts >= 0).all()


@every_kind
def test_default_prices_are_whole_and_are_for_what_the_kind_counts(case):
    task = case.task
    assert set(task.prices) <= {"per_item", f"per_{task.counted}"}
    assert all(price >= 0 and price == int(price) for price in task.prices.values())
    prices = CostModel.of([task]).price([task], case.words, {task.name: task.count(case.gold)})
    assert (prices.own >= 0).all()
    assert (prices.joint() == case.words + prices.own[:, 0]).all()


# -- model -------------------------------------------------------------------------------------------------------------
WIDTH = 16


def kinds(trained: bool) -> pytest.MarkDecorator:
    """The examples whose kind has a head of its own, or those whose kind has none yet."""
    cases = {name: case for name, case in EXAMPLES.items() if (type(case.task).head is not Task.head) == trained}
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def encoded(case, seed: int = 0):
    import torch

    from bursar.tasks.heads import Encoded

    torch.manual_seed(seed)
    return Encoded(torch.randn(len(case.items), WIDTH), torch.randn(int(case.words.sum()), WIDTH))


@kinds(trained=False)
def test_a_kind_without_a_head_says_so_by_name(case):
    calls = [("head", WIDTH), ("targets", case.gold, case.words), ("loss", None, None, 0.0), ("decode", None)]
    for method, *arguments in calls:
        with pytest.raises(SchemaError, match=f"{case.task.kind} tasks yet, which task '{case.task.name}' is"):
            getattr(case.task, method)(*arguments)


@kinds(trained=True)
def test_a_head_has_a_row_of_logits_for_every_target(case):
    head, targets = case.task.head(WIDTH), case.task.targets(case.gold, case.words)
    logits = head(encoded(case))
    assert logits.ndim == 2
    assert len(logits) == len(targets) == case.task.units(case.words).sum()
    assert targets.dtype == np.int64
    assert ((targets >= 0) & (targets < logits.shape[1])).all()


@kinds(trained=True)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_few_steps_lower_the_loss(case, smoothing):
    import torch

    head, inputs = case.task.head(WIDTH), encoded(case)
    targets = torch.from_numpy(case.task.targets(case.gold, case.words))
    head.eval()  # no dropout: the loss must fall with every step, not on average
    losses = []
    for _ in range(15):
        loss = case.task.loss(head(inputs), targets, smoothing)
        weights = list(head.parameters())
        with torch.no_grad():
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight -= 0.05 * slope
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.9 * losses[0]


@kinds(trained=True)
@pytest.mark.parametrize("passes", [1, 3])
def test_beliefs_that_are_sure_of_the_targets_are_decoded_to_the_labels(case, passes):
    classes = case.task.head(WIDTH).output.out_features
    targets = case.task.targets(case.gold, case.words)
    sure = np.repeat(np.eye(classes)[targets][None], passes, axis=0)
    decoded = case.task.decode(Beliefs.of(sure, case.task.units(case.words)))
    assert decoded.equals(case.gold)
    assert decoded.values.dtype == case.task.dtype
    assert [case.task.value(rows) for rows in decoded] == [label for _, label in case.items]


@kinds(trained=True)
@often
@given(seed=st.integers(0, 2**32 - 1))
def test_any_beliefs_are_decoded_to_labels_that_the_codec_takes(case, seed):
    classes = case.task.head(WIDTH).output.out_features
    units = case.task.units(case.words)
    beliefs = Beliefs.of(np.random.default_rng(seed).random((2, int(units.sum()), classes)), units)
    decoded = case.task.decode(beliefs)
    again = [case.task.encode(case.task.value(rows), n) for rows, n in zip(decoded, case.words, strict=True)]
    assert Ragged.of(again, case.task.width, case.task.dtype).equals(decoded)
