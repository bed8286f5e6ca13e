"""The CRF head against the enumeration of every tag sequence."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.ragged import Ragged, offsets_of
from bursar.tasks import Beliefs, Tagging
from bursar.tasks.heads import Encoded, dropout_sample
from bursar.tasks.heads.linear import WordHead
from bursar.tasks.heads.tags import Chain, CrfHead, Steps
from bursar.tasks.schemes import tags_of_spans
from tests.tasks.examples import LABELS, column, flat_spans

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH = 4
TASK = Tagging("slots", LABELS)
TASKS = (Tagging("a", LABELS[:1]), Tagging("b", LABELS[:2]), Tagging("c", LABELS, every_word=True))
COUNTS = st.lists(st.integers(0, 4), max_size=4)
TEMPERATURES = st.sampled_from((0.005, 0.3, 1.0, 5.0))  # at the lowest, scores are thousands apart
SEEDS = st.integers(0, 2**32 - 1)


def any_head(task: Tagging, seed: int, dropout: float = 0.0) -> CrfHead:
    """A head that holds opinions on everything."""
    head = CrfHead(task, WIDTH, dropout).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(std=1.5, generator=generator)
    return head


def batch(counts: list[int], seed: int) -> Encoded:
    generator = torch.Generator().manual_seed(seed)
    words = torch.randn(sum(counts), WIDTH, generator=generator)
    return Encoded(torch.zeros(len(counts), WIDTH), words, np.array(counts, dtype=np.int64))


def names(task: Tagging) -> list[str]:
    if task.every_word:
        return list(task.labels)
    return ["O", *(f"{prefix}-{label}" for label in task.labels for prefix in "BI")]


def allowed(task: Tagging, tags: tuple[str, ...]) -> bool:
    """No I without a B or I of its label before it."""
    if task.every_word:
        return True
    return all(tag[0] != "I" or before[1:] == tag[1:] for before, tag in pairwise(("O", *tags)))


def sequences(task: Tagging, words: int) -> list[tuple[int, ...]]:
    spelled = names(task)
    every = product(range(len(spelled)), repeat=words)
    return [codes for codes in every if allowed(task, tuple(spelled[code] for code in codes))]


def log_weight(head: CrfHead, scores: np.ndarray, codes: tuple[int, ...]) -> float:
    start, end, transitions = (p.detach().double().numpy() for p in (head.start, head.end, head.transitions))
    total = start[codes[0]] + end[codes[-1]] + sum(scores[at, code] for at, code in enumerate(codes))
    return total + sum(transitions[a, b] for a, b in pairwise(codes))


def scores_of(head: CrfHead, encoded: Encoded) -> list[np.ndarray]:
    """Each item's (words, tags)."""
    return list(Ragged(head.output(encoded.words).detach().double().numpy(), offsets_of(encoded.counts)))


def drawn_sequences(task: Tagging, counts: list[int], seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    pools = [sequences(task, n) for n in counts]
    return [pool[rng.integers(len(pool))] for pool in pools]


def targets_of(drawn: list[tuple[int, ...]]) -> Ragged:
    return Ragged.of(drawn, dtype=np.int64)


# -- steps ---------------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 6), max_size=8))
def test_steps_hold_word_after_word_of_the_items_that_have_one(counts):
    words = torch.tensor([[item, word] for item, n in enumerate(counts) for word in range(n)]).reshape(-1, 2)
    steps = Steps.of(np.array(counts, dtype=np.int64))
    cut = steps.split(words)
    longest_first = sorted(range(len(counts)), key=lambda item: -counts[item])
    assert [part.tolist() for part in cut] == [
        [[item, word] for item in longest_first if counts[item] > word] for word in range(max(counts, default=0))
    ]
    if cut:
        assert torch.equal(steps.join(cut), words)


# -- enumeration ---------------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=60)
@given(st.sampled_from(TASKS), COUNTS, SEEDS)
def test_the_weight_of_all_is_the_sum_over_every_tag_sequence(task, counts, seed):
    head, encoded = any_head(task, seed), batch(counts, seed)
    every = [
        np.logaddexp.reduce([log_weight(head, scores, codes) for codes in sequences(task, len(scores))])
        for scores in scores_of(head, encoded)
        if len(scores)
    ]
    output = head(encoded)
    found = output.log_weight_of_all(output.prefixes()).tolist()
    assert found == pytest.approx(every, rel=1e-6, abs=1e-6)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(TASKS), COUNTS, SEEDS, TEMPERATURES)
def test_the_loss_is_the_negative_log_of_the_share_of_the_gold_sequences_by_word(task, counts, seed, temperature):
    head, encoded = any_head(task, seed), batch(counts, seed)
    gold = drawn_sequences(task, counts, seed)
    total = 0.0
    for scores, codes in zip(scores_of(head, encoded), gold, strict=True):
        if codes:
            every = [log_weight(head, scores, other) / temperature for other in sequences(task, len(codes))]
            total += np.logaddexp.reduce(every) - log_weight(head, scores, codes) / temperature
    loss = head.loss(head.with_temperature(head(encoded), temperature), targets_of(gold), 0.0)
    assert loss.item() == pytest.approx(total / max(1, sum(counts)), rel=1e-5, abs=1e-5)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(TASKS), COUNTS, SEEDS, TEMPERATURES)
def test_marginals_are_those_of_enumerating_every_tag_sequence(task, counts, seed, temperature):
    head, encoded = any_head(task, seed), batch(counts, seed)
    expected = [np.zeros((0, task.classes))]
    for scores in scores_of(head, encoded):
        every = np.array(sequences(task, len(scores)))
        logs = np.array([log_weight(head, scores, tuple(codes)) if len(codes) else 0.0 for codes in every])
        shares = np.exp((logs - np.logaddexp.reduce(logs / temperature) * temperature) / temperature)
        expected.append(np.array([np.bincount(tags, shares, task.classes) for tags in every.T]).reshape(scores.shape))
    with torch.inference_mode():
        beliefs = head.predict_proba([head.with_temperature(head(encoded), temperature)])
    assert beliefs.units.tolist() == counts
    assert beliefs.values.reshape(-1, task.classes) == pytest.approx(np.concatenate(expected), abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(TASKS), COUNTS, SEEDS)
def test_smoothing_asks_marginals_to_be_even_among_the_tags_a_word_can_have(task, counts, seed):
    head, encoded = any_head(task, seed), batch(counts, seed)
    gold = targets_of(drawn_sequences(task, counts, seed))
    with torch.inference_mode():
        output = head(encoded)
        marginals = output.log_marginals(output.prefixes()).exp().numpy()
        smooth, plain = head.loss(output, gold, 0.2).item(), head.loss(output, gold, 0.0).item()
    first = {int(at) for at, n in zip(offsets_of(counts), counts, strict=False) if n}
    spread = 0.0
    for at, row in enumerate(marginals):
        can = [p for tag, p in zip(names(task), row, strict=True) if at not in first or allowed(task, (tag,))]
        spread -= sum(math.log(p) for p in can) / len(can)
    assert smooth == pytest.approx(0.8 * plain + 0.2 * spread / max(1, sum(counts)), rel=1e-5, abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(COUNTS.filter(sum), SEEDS, st.sampled_from((0.0, 0.1)))
def test_without_scores_between_words_it_is_the_head_for_words(counts, seed, smoothing):
    task, encoded = TASKS[2], batch(counts, seed)
    chain, words = CrfHead(task, WIDTH, 0.0), WordHead(task, WIDTH, 0.0)
    chain.output.load_state_dict(words.output.state_dict())
    gold = targets_of(drawn_sequences(task, counts, seed))
    losses = [head.loss(head(encoded), gold, smoothing).item() for head in (chain, words)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    with torch.inference_mode():
        beliefs = [head.predict_proba([head(encoded)]).values for head in (chain, words)]
    assert beliefs[0] == pytest.approx(beliefs[1], abs=1e-6)


# -- what IOB2 allows ----------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3), SEEDS)
def test_sequences_that_iob2_does_not_allow_have_no_probability(words, seed):
    task = TASKS[1]
    head, encoded = any_head(task, seed), batch([words], seed)
    valid, output = set(sequences(task, words)), head(encoded)
    every = output.log_weight_of_all(output.prefixes())
    for codes in product(range(task.classes), repeat=words):
        share = (output.log_weight(torch.tensor(codes)) - every).exp().item()
        assert (share > 0) == (codes in valid)


@settings(deadline=None, max_examples=60)
@given(st.data(), st.lists(st.integers(0, 8), min_size=1, max_size=5), SEEDS)
def test_the_tags_of_any_gold_spans_are_allowed(data, counts, seed):
    spans = [data.draw(flat_spans(n)) for n in counts]
    head = any_head(TASK, seed)
    words = np.array(counts)
    targets = head.targets(column(TASK, list(zip(counts, spans, strict=True))), words)
    spelled = names(TASK)
    for item, codes, n in zip(spans, targets, counts, strict=True):
        assert [spelled[code] for code in codes] == tags_of_spans(item, n)
        assert allowed(TASK, tuple(spelled[code] for code in codes))
    assert head.loss(head(batch(counts, seed)), targets, 0.1).item() < 1e3


@settings(deadline=None, max_examples=40)
@given(st.data(), st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_gold_spans_come_back_from_sure_scores(data, counts):
    gold = column(TASK, [(n, data.draw(flat_spans(n))) for n in counts])
    head = CrfHead(TASK, TASK.classes, 0.0).eval()
    codes = torch.from_numpy(head.targets(gold, np.array(counts)).values)
    with torch.inference_mode():
        head.output.weight.copy_(torch.eye(TASK.classes) * 30)
        words = torch.nn.functional.one_hot(codes, TASK.classes).float()
        output = head(Encoded(torch.zeros(len(counts), TASK.classes), words, np.array(counts)))
        found = TASK.decode(head.predict_proba([output]))
    assert found.equals(gold)


# -- robustness ----------------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=40)
@given(COUNTS.filter(sum), SEEDS, st.booleans())
def test_beliefs_do_not_depend_on_the_company_of_an_item(counts, seed, thinned):
    head, encoded = any_head(TASK, seed, dropout=0.5), batch(counts, seed)

    def predict_proba(part: Encoded) -> Beliefs:
        if not thinned:
            return head.predict_proba([head(part)])
        with dropout_sample(head, seed=1, number=2):
            output = head(part)
        return head.predict_proba([output])

    order = np.random.default_rng(seed).permutation(len(counts))
    with torch.inference_mode():
        together, shuffled = predict_proba(encoded), predict_proba(encoded.take(order))
        alone = Beliefs.concatenate([predict_proba(encoded.take(np.array([item]))) for item in range(len(counts))])
    assert alone.values == pytest.approx(together.values, abs=1e-6)
    assert shuffled.values == pytest.approx(together.take(order).values, abs=1e-6)


@pytest.mark.parametrize("counts", [[], [0], [0, 0, 0]])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_batch_without_a_word_has_a_loss_of_zero_that_can_be_learned_from(counts, smoothing):
    head = CrfHead(TASK, WIDTH, 0.1).train()
    loss = head.loss(head(batch(counts, 0)), targets_of([()] * len(counts)), smoothing)
    loss.backward()
    assert loss.item() == 0.0
    assert all(p.grad is None or not p.grad.any() for p in head.parameters())
    with torch.inference_mode():
        beliefs = head.eval().predict_proba([head(batch(counts, 0))] * 2)
    assert (len(beliefs), beliefs.passes, beliefs.units.sum()) == (len(counts), 2, 0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_scores_far_apart_over_many_words_leave_loss_and_gradients_finite(smoothing):
    head, encoded = any_head(TASK, 0), batch([400, 0, 3], 0)
    words = (100 * encoded.words).requires_grad_()
    gold = targets_of(drawn_sequences(TASK, [0, 0, 3], 0))
    gold = Ragged(np.concatenate([np.ones(400, dtype=np.int64), gold.values]), offsets_of([400, 0, 3]))
    loss = head.loss(head(encoded._replace(words=words)), gold, smoothing)
    loss.backward()
    assert math.isfinite(loss.item())
    assert all(bool(p.grad.isfinite().all()) for p in (words, *head.parameters()) if p.grad is not None)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(TASKS), COUNTS.filter(sum), SEEDS, st.sampled_from((0.0, 0.3)))
def test_gradients_are_those_of_finite_differences(task, counts, seed, smoothing):
    head, gold = any_head(task, seed), targets_of(drawn_sequences(task, counts, seed))
    chain: Chain = head(batch(counts, seed))
    parts = tuple(part.detach().requires_grad_() for part in chain[:4])

    def loss(*parts: torch.Tensor) -> torch.Tensor:
        scores = Chain(*parts, chain.counts)
        prefixes = scores.prefixes()
        missed = scores.log_weight_of_all(prefixes).sum() - scores.log_weight(torch.from_numpy(gold.values))
        return (1 - smoothing) * missed + smoothing * head._spread(scores, scores.log_marginals(prefixes))

    assert torch.autograd.gradcheck(loss, parts, eps=1e-5, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_few_steps_lower_the_loss(smoothing):
    torch.manual_seed(0)
    counts = [3, 0, 5, 2]
    head, encoded = CrfHead(TASK, WIDTH, 0.1).train(), batch(counts, 0)
    gold = targets_of(drawn_sequences(TASK, counts, 0))
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = head.loss(head(encoded), gold, smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert all(p.grad is not None and p.grad.any() for p in head.parameters())


def test_the_task_makes_this_head_by_name():
    assert isinstance(TASK.head(WIDTH, "crf"), CrfHead)


def test_what_is_impossible_is_not_kept_with_the_weights():
    assert set(CrfHead(TASK, WIDTH, 0.1).state_dict()) == {
        "start",
        "end",
        "transitions",
        "output.weight",
        "output.bias",
    }
