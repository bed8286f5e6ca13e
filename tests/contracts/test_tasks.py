"""What every task kind must keep to. A new kind brings an EXAMPLE in tests/tasks/test_KIND.py, and is found."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bursar.errors import LabelError, SchemaError
from bursar.ragged import Ragged
from bursar.tasks import KINDS, Beliefs, CostModel, Vocabulary, make_task
from tests.tasks.examples import EXAMPLES as OURS
from tests.tasks.examples import column, items_of

NEW = [kind for kind in KINDS if kind not in {case.task.kind for case in OURS.values()}]
EXAMPLES = OURS | {kind: import_module(f"tests.tasks.test_{kind}").EXAMPLE for kind in NEW}

pytestmark = pytest.mark.usefixtures("one_thread")
often = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
every_kind = pytest.mark.parametrize("case", EXAMPLES.values(), ids=EXAMPLES)


def columns(case, items):
    words = np.array([item[0] for item in items], dtype=np.int64)
    return words, *(column(case.task, [(item[0], item[k]) for item in items]) for k in (1, 2))


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
WIDTH = 48
HEADS = {
    f"{name}, {style}": (case, style)
    for name, case in EXAMPLES.items()
    for style in case.task.styles
    if not (style == "spans" and getattr(case.task, "every_word", False))
}
every_head = pytest.mark.parametrize(("case", "style"), HEADS.values(), ids=HEADS)


def made(case: Any, style: str, seed: int = 0) -> tuple[Any, Any, Any]:
    """A head, a batch as an encoder would leave it, and the spans that a relations head is given."""
    import torch

    from bursar.tasks.heads import Encoded
    from bursar.tasks.heads.spans import spans_to_link

    torch.manual_seed(seed)
    head = case.task.head(WIDTH, style, dropout=0.2)
    head.prepare(case.gold, case.words)
    words = case.words.astype(np.int64)
    encoded = Encoded(torch.randn(len(words), WIDTH), torch.randn(int(words.sum()), WIDTH), words)
    spans = None
    if case.task.kind == "relations":
        nothing = Ragged.of([[] for _ in words], 3)
        spans = spans_to_link(nothing, case.gold, case.task.entity_types, case.task.entity_types)
    return head.eval(), encoded, spans


def learned_by_heart(
    case: Any, style: str, smoothing: float = 0.0, steps: int = 150
) -> tuple[Any, Any, Any, list[float]]:
    import torch

    head, encoded, spans = made(case, style)
    targets = head.targets(case.gold, case.words)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        loss = head.loss(head(encoded, spans), targets, smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return head, encoded, spans, losses


def numbers(beliefs: Any) -> np.ndarray:
    return beliefs.values if isinstance(beliefs, Beliefs) else np.stack([beliefs.means, beliefs.variances])


@every_head
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_training_lowers_the_loss(case, style, smoothing):
    *_, losses = learned_by_heart(case, style, smoothing, steps=40)
    assert losses[-1] < losses[0] - 0.1
    assert np.isfinite(losses).all()


@every_head
def test_what_a_policy_is_told_of_a_head_is_a_negative_log_likelihood(case, style):
    """Of at least 0, so that its exponential is a probability; it takes no gradient's place and draws nothing."""
    import torch

    head, encoded, spans = made(case, style)
    targets = head.targets(case.gold, case.words)
    output = head.train().teacher_forced(head(encoded, spans), targets)
    state = torch.get_rng_state()
    surprise, loss = head.surprise(output, targets).item(), head.loss(output, targets, 0.0).item()
    assert torch.equal(torch.get_rng_state(), state)
    assert surprise >= 0
    assert surprise == pytest.approx(loss) or case.task.kind == "regression"
    assert surprise == head.surprise(output, targets).item()


@every_head
def test_labels_that_are_known_by_heart_surprise_little(case, style):
    import torch

    head, encoded, spans, _ = learned_by_heart(case, style)
    targets = head.targets(case.gold, case.words)
    fresh, *_ = made(case, style)
    with torch.no_grad():
        surprises = [h.surprise(h.teacher_forced(h(encoded, spans), targets), targets).item() for h in (fresh, head)]
    assert surprises[1] < 0.5 * surprises[0]


@every_head
def test_a_head_that_knows_its_labels_by_heart_gives_them_back_exactly(case, style):
    import torch

    head, encoded, spans, _ = learned_by_heart(case, style)
    with torch.no_grad():
        decoded = case.task.decode(head.predict_proba([head(encoded, spans)] * 3))
    if case.task.kind == "regression":
        np.testing.assert_allclose(decoded.values, case.gold.values, atol=0.3)
        return
    assert decoded.values.dtype == case.task.dtype
    assert [case.task.value(rows) for rows in decoded] == [label for _, label in case.items]


@every_head
def test_beliefs_are_probabilities_about_every_item(case, style):
    import torch

    head, encoded, spans = made(case, style)
    with torch.no_grad():
        beliefs = head.predict_proba([head(encoded, spans)])
    assert len(beliefs) == len(case.items)
    assert beliefs.passes == 1
    if isinstance(beliefs, Beliefs):
        sums = (
            [part.sum() for part in np.split(beliefs.values[0], beliefs.choices[1:-1])] if beliefs.values.size else []
        )
        np.testing.assert_allclose(sums, 1, atol=1e-5)
    else:
        assert (beliefs.variances > 0).all()


@every_head
def test_what_is_believed_of_an_item_does_not_depend_on_its_company(case, style):
    import torch

    head, encoded, spans = made(case, style)
    order = np.arange(len(case.items))[::-1].copy()
    with torch.no_grad():
        whole = head.predict_proba([head(encoded, spans)])
        turned = head.predict_proba([head(encoded.take(order), None if spans is None else spans.take(order))])
        for item in range(len(case.items)):
            at = np.array([item])
            alone = head.predict_proba([head(encoded.take(at), None if spans is None else spans.take(at))])
            np.testing.assert_allclose(numbers(alone), numbers(whole.take(at)), atol=1e-6)
    np.testing.assert_allclose(numbers(turned), numbers(whole.take(order)), atol=1e-6)


@every_head
def test_a_higher_temperature_makes_a_head_less_sure_and_1_changes_nothing(case, style):
    import torch

    from bursar.uncertainty import entropy_confidence

    head, encoded, spans, _ = learned_by_heart(case, style)
    with torch.no_grad():
        output = head(encoded, spans)
        plain, same, warm = (head.predict_proba([head.with_temperature(output, t)]) for t in (1.0, 1.0, 3.0))
    np.testing.assert_allclose(numbers(plain), numbers(same), atol=0)
    sure, less = entropy_confidence(plain), entropy_confidence(warm)
    asked = (plain.units > 0) & (sure < 1)
    assert (less[asked] < sure[asked]).all()


@every_head
def test_passes_of_a_thinned_head_differ_and_come_back_for_the_same_seed(case, style):
    import torch

    from bursar.tasks.heads import dropout_sample

    head, encoded, spans = made(case, style)

    def passes(seed: int) -> Any:
        outputs = []
        with torch.no_grad():
            for number in range(3):
                with dropout_sample(head, seed, number):
                    outputs.append(head(encoded, spans))
            return head.predict_proba(outputs)

    first, again, other = passes(1), passes(1), passes(2)
    assert first.passes == 3
    np.testing.assert_array_equal(numbers(first), numbers(again))
    assert not np.allclose(numbers(first), numbers(other))
    assert isinstance(case.task.decode(first), Ragged)


@every_head
@settings(often, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_beliefs_are_decoded_to_labels_that_the_codec_takes(case, style, seed):
    import torch

    head, encoded, spans = made(case, style, seed)
    with torch.no_grad():
        decoded = case.task.decode(head.predict_proba([head(encoded, spans)]))
    again = [case.task.encode(case.task.value(rows), n) for rows, n in zip(decoded, case.words, strict=True)]
    assert Ragged.of(again, case.task.width, case.task.dtype).equals(decoded)


@every_head
def test_a_batch_without_a_word_or_an_item_is_no_trouble(case, style):
    import torch

    from bursar.tasks.heads import Encoded

    head, _, spans = made(case, style)
    for items in (0, 2):
        counts = np.zeros(items, dtype=np.int64)
        given = None if spans is None else Ragged.of([[] for _ in counts], 3)
        encoded = Encoded(torch.randn(items, WIDTH), torch.zeros(0, WIDTH), counts)
        with torch.no_grad():
            beliefs = head.predict_proba([head(encoded, given)])
        assert len(beliefs) == items
        assert len(case.task.decode(beliefs)) == items


@every_kind
@often
@given(data=st.data())
def test_accuracies_lie_between_0_and_1_and_a_right_guess_has_1(case, data):
    words, gold, guess = columns(case, data.draw(items_of(case)))
    found = case.task.accuracies(gold, guess, words)
    assert found.shape == (len(words),)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(case.task.accuracies(gold, gold, words), 1)


def test_a_style_of_head_that_is_not_there_is_refused_by_name():
    with pytest.raises(SchemaError, match="'slots': no tagging head of style 'tree'"):
        EXAMPLES["tagging"].task.head(WIDTH, "tree")
