"""The feedback head against a plain loop over items and words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, one_hot

from bursar.ragged import Ragged, offsets_of
from bursar.tasks import Tagging
from bursar.tasks.heads import Encoded, dropout_sample
from bursar.tasks.heads.tags import SIZE, FeedbackHead
from tests.tasks.examples import LABELS, column

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH = 6
TASK = Tagging("slots", LABELS)
POS = Tagging("pos", LABELS, every_word=True)
COUNTS = st.lists(st.integers(0, 6), max_size=5)
SEEDS = st.integers(0, 2**32 - 1)


def any_head(task: Tagging, seed: int, dropout: float = 0.0) -> FeedbackHead:
    """A head that holds opinions on everything."""
    head = FeedbackHead(task, WIDTH, dropout).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(std=0.7, generator=generator)
    return head


def batch(counts: list[int], seed: int) -> Encoded:
    generator = torch.Generator().manual_seed(seed)
    words = torch.randn(sum(counts), WIDTH, generator=generator)
    return Encoded(torch.zeros(len(counts), WIDTH), words, np.array(counts, dtype=np.int64))


def any_tags(task: Tagging, counts: list[int], seed: int) -> Ragged:
    tags = np.random.default_rng(seed).integers(task.classes, size=sum(counts))
    return Ragged(tags, offsets_of(counts))


def read_plainly(head: FeedbackHead, encoded: Encoded, gold: Ragged | None) -> torch.Tensor:
    """Item by item and word by word."""
    found = [torch.zeros(0, head.task.classes)]
    for item, (a, b) in enumerate(zip(offsets_of(encoded.counts), offsets_of(encoded.counts)[1:], strict=False)):
        state = torch.zeros(1, SIZE), torch.zeros(1, SIZE)
        before = head.task.classes
        for at, word in enumerate(encoded.words[a:b]):
            vector = one_hot(torch.tensor([before]), head.task.classes + 1).float() @ head.tags.weight
            state = head.cell(torch.cat([word[None], vector], dim=1), state)
            logits = state[0] @ head.output.weight.T + head.output.bias
            before = int(logits.argmax()) if gold is None else int(gold[item][at])
            found.append(logits)
    return torch.cat(found)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from((TASK, POS)), COUNTS.filter(sum), SEEDS, st.sampled_from((0.0, 0.1)))
def test_the_training_loss_hears_the_gold_tag_before_each_word(task, counts, seed, smoothing):
    head, encoded, gold = any_head(task, seed).train(), batch(counts, seed), any_tags(task, counts, seed)
    plain = cross_entropy(
        read_plainly(head, encoded, gold) / 2, torch.from_numpy(gold.values), label_smoothing=smoothing
    )
    loss = head.loss(head.with_temperature(head(encoded), 2.0), gold, smoothing)
    assert loss.item() == pytest.approx(plain.item(), rel=1e-5)


@settings(deadline=None, max_examples=20)
@given(COUNTS.filter(sum), SEEDS, st.sampled_from((0.5, 3.0)))
def test_outside_training_the_loss_is_that_of_what_is_believed(counts, seed, temperature):
    head, gold = any_head(TASK, seed), any_tags(TASK, counts, seed)
    with torch.inference_mode():
        output = head.with_temperature(head(batch(counts, seed)), temperature)
        loss, believed = head.loss(output, gold, 0.0), head.predict_proba([output]).dense()[0]
    assert loss.item() == pytest.approx(-np.log(believed[np.arange(len(believed)), gold.values]).mean(), rel=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from((TASK, POS)), COUNTS, SEEDS, st.sampled_from((0.5, 1.0, 3.0)))
def test_beliefs_hear_the_best_tag_before_each_word(task, counts, seed, temperature):
    head, encoded = any_head(task, seed), batch(counts, seed)
    with torch.inference_mode():
        plain = torch.softmax(read_plainly(head, encoded, None) / temperature, dim=1)
        beliefs = head.predict_proba([head.with_temperature(head(encoded), temperature)])
    assert beliefs.units.tolist() == counts
    assert beliefs.values.reshape(-1, task.classes) == pytest.approx(plain.numpy(), abs=1e-5)


def test_the_tag_before_makes_a_difference():
    head, encoded = any_head(TASK, 0), batch([5, 4], 0)
    one, other = (Ragged(np.full(9, tag), offsets_of([5, 4])) for tag in (0, 1))
    assert not torch.allclose(read_plainly(head, encoded, one), read_plainly(head, encoded, other))


@settings(deadline=None, max_examples=30)
@given(COUNTS.filter(sum), SEEDS, st.booleans())
def test_beliefs_do_not_depend_on_the_company_of_an_item(counts, seed, thinned):
    head, encoded = any_head(TASK, seed, dropout=0.5), batch(counts, seed)

    def predict_proba(part: Encoded) -> np.ndarray:
        if not thinned:
            return head.predict_proba([head(part)]).values
        with dropout_sample(head, seed=1, number=2):
            output = head(part)
        return head.predict_proba([output]).values

    with torch.inference_mode():
        together = predict_proba(encoded)
        alone = [predict_proba(encoded.take(np.array([item]))) for item in range(len(counts))]
    assert np.concatenate(alone, axis=1) == pytest.approx(together, abs=1e-5)


def test_thinned_passes_differ_in_what_they_read_and_in_what_they_answer():
    head, encoded = any_head(TASK, 0, dropout=0.5), batch([4, 0, 2], 0)

    def passes(numbers: list[int]) -> np.ndarray:
        outputs = []
        for number in numbers:
            with dropout_sample(head, seed=0, number=number):
                outputs.append(head(encoded))
        return head.predict_proba(outputs).values

    with torch.inference_mode():
        one, other, again = passes([0, 1, 0])
        assert np.array_equal(one, again)
        assert not np.allclose(one, other)
        for whole in (head.dropout, head.within):  # the other one still thins
            whole.p = 0.0
            one, other = passes([0, 1])
            assert not np.allclose(one, other)
            whole.p = 0.5


def test_a_few_steps_lower_the_loss():
    torch.manual_seed(0)
    counts = [3, 0, 5, 2]
    head, encoded, gold = FeedbackHead(TASK, WIDTH, 0.1).train(), batch(counts, 0), any_tags(TASK, counts, 0)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        loss = head.loss(head(encoded), gold, 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("counts", [[], [0], [0, 0, 0]])
def test_a_batch_without_a_word_has_a_loss_of_zero_that_can_be_learned_from(counts):
    head = FeedbackHead(TASK, WIDTH, 0.1).train()
    loss = head.loss(head(batch(counts, 0)), any_tags(TASK, counts, 0), 0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert all(p.grad is None or not p.grad.any() for p in head.parameters())
    with torch.inference_mode():
        beliefs = head.eval().predict_proba([head(batch(counts, 0))] * 2)
    assert (len(beliefs), beliefs.passes, beliefs.units.sum()) == (len(counts), 2, 0)


def test_believing_what_was_read_in_training_is_refused():
    head = FeedbackHead(TASK, WIDTH, 0.1).train()
    with pytest.raises(ValueError, match="eval"):
        head.predict_proba([head(batch([2], 0))])


def test_gold_spans_are_learned_by_heart():
    torch.manual_seed(0)
    counts = [5, 0, 3, 2]
    gold = column(
        TASK, [(5, [[0, 2, "city"], [2, 3, "city"], [4, 5, "größe"]]), (0, []), (3, []), (2, [[0, 2, "city"]])]
    )
    head, encoded = FeedbackHead(TASK, WIDTH, 0.0), batch(counts, 0)
    targets = head.targets(gold, encoded.counts)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        head.loss(head(encoded), targets, 0.0).backward()
        optimizer.step()
    with torch.inference_mode():
        found = TASK.decode(head.eval().predict_proba([head(encoded)]))
    assert found.equals(gold)


def test_the_task_makes_this_head_by_name():
    assert isinstance(TASK.head(WIDTH, "lstm"), FeedbackHead)
