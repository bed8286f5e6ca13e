"""A training that is stopped, tried out and put back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bursar.corpus import CorpusBuilder
from bursar.errors import LearnerError
from bursar.learners import make_learner
from bursar.learners.neural import NeuralLearner
from tests.learners.trainings import TASKS

pytestmark = pytest.mark.usefixtures("one_thread")
ALL, TRAINED, OTHERS = np.arange(50), np.arange(30), np.arange(30, 50)


@pytest.fixture
def items(train):
    return train.take(np.argsort(train.id_ranks))


def made(items, folder, **more):
    return NeuralLearner(items.schema, encoder=str(folder), **({"epochs": 4, "learning_rate": 1e-2} | more))


def rehearsed(items, folder, steps=5, **more):
    rehearsal = made(items, folder, **more).rehearse(items, trained=TRAINED, known=ALL, seed=3)
    rehearsal.advance(steps)
    return rehearsal


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])


@pytest.mark.parametrize("encoder", ["tiny", "aoe"])
def test_its_own_steps_are_those_of_a_fit(items, folder, encoder):
    learner = made(items, folder) if encoder == "tiny" else make_learner("aoe", items.schema, {"epochs": 4})
    rehearsal = learner.rehearse(items, trained=TRAINED, known=TRAINED, seed=3)
    rehearsal.advance(rehearsal.planned)
    learner.fit(items.take(TRAINED), seed=3)
    assert rehearsal.planned == 8
    assert torch.equal(parameters(rehearsal.model), parameters(learner.models[0]))


def test_going_back_leaves_no_trace_of_what_was_tried(items, folder):
    tried, straight = (rehearsed(items, folder) for _ in range(2))
    place = tried.snapshot()
    for _ in range(3):
        tried.step([(TRAINED[:8], "intent"), (OTHERS[:8], "slots")])
    assert not torch.equal(parameters(tried.model), parameters(straight.model))
    tried.rewind(place)
    for rehearsal in (tried, straight):
        rehearsal.advance(6)
    assert torch.equal(parameters(tried.model), parameters(straight.model))


def test_it_can_go_back_to_before_its_first_step(items, folder):
    tried, straight = (rehearsed(items, folder, steps=0) for _ in range(2))
    place = tried.snapshot()
    tried.step([(OTHERS, "intent")])
    tried.rewind(place)
    for rehearsal in (tried, straight):
        rehearsal.advance(4)
    assert torch.equal(parameters(tried.model), parameters(straight.model))


def test_the_same_steps_from_the_same_place_lead_to_the_same_model(items, folder):
    rehearsal = rehearsed(items, folder)
    place, ends = rehearsal.snapshot(), []
    for _ in range(2):
        rehearsal.rewind(place)
        rehearsal.step([(OTHERS[:8], "intent")])  # with dropout
        ends.append(parameters(rehearsal.model))
    assert torch.equal(*ends)


def test_no_part_of_a_step_takes_from_what_another_does(items, folder):
    """However large the gradient of the second task is, the head of the first goes where it would go alone."""
    rehearsal = rehearsed(items, folder, dropout=0.0)
    rehearsal.model.encoder.train(False)
    place, heads = rehearsal.snapshot(), []
    for more in ([], [(OTHERS, "slots")]):
        rehearsal.rewind(place)
        rehearsal.step([(TRAINED[:8], "intent"), *more])
        heads.append(parameters(rehearsal.model.head("intent")))
    assert torch.equal(*heads)


def test_a_loss_is_the_same_however_sure_the_model_is_of_all_it_says(items, folder):
    rehearsal = rehearsed(items, folder, steps=12)
    before, output = rehearsal.loss(OTHERS, "intent"), rehearsal.model.head("intent").output
    with torch.no_grad():
        output.weight.mul_(3)
        output.bias.mul_(3)
    assert rehearsal.loss(OTHERS, "intent") == pytest.approx(before, abs=1e-4)


def test_a_loss_is_not_above_that_at_temperature_1(items, folder):
    rehearsal = rehearsed(items, folder, steps=12)
    rehearsal.model.eval()
    for task in TASKS:
        plain = rehearsal.losses.nll(OTHERS, task)
        assert rehearsal.loss(OTHERS, task) <= plain + 1e-6


def test_scores_are_those_of_the_learner(items, folder):
    learner = made(items, folder)
    rehearsal = learner.rehearse(items, trained=TRAINED, known=TRAINED, seed=3)
    rehearsal.advance(rehearsal.planned)
    learner.fit(items.take(TRAINED), seed=3)
    scores = learner.evaluate(items.take(OTHERS))
    for name, task in learner.tasks.items():
        assert rehearsal.score(OTHERS, name) == pytest.approx(scores[name][task.metric])


def test_the_gradient_of_all_items_is_the_mean_of_those_of_parts(items, folder):
    rehearsal = rehearsed(items, folder, precision="float32")
    whole = rehearsal.gradient(OTHERS, "intent")
    first, second = rehearsal.gradient(OTHERS[:5], "intent"), rehearsal.gradient(OTHERS[5:], "intent")
    assert len(whole) == sum(p.numel() for p in rehearsal.shared)
    torch.testing.assert_close(whole, 0.25 * first + 0.75 * second, atol=1e-6, rtol=1e-4)


def test_the_learner_stays_as_it_was(items, folder, test):
    learner = made(items, folder)
    learner.fit(items, seed=1)
    before = learner.predict_proba(test)["intent"].values
    learner.rehearse(items, trained=TRAINED, known=ALL, seed=3).advance(4)
    np.testing.assert_array_equal(learner.predict_proba(test)["intent"].values, before)


def test_images_are_rehearsed_as_well():
    rng = np.random.default_rng(0)
    builder = CorpusBuilder({"shape": {"kind": "classification", "labels": ["a", "b"]}})
    for number in range(30):
        image = rng.integers(0, 100, (16, 16), dtype=np.uint8) + np.uint8(100 * (number % 2))
        builder.add(f"i{number}", image=image, labels={"shape": "ab"[number % 2]})
    images = builder.build()
    learner = make_learner("image-cnn", images.schema)
    rehearsal = learner.rehearse(images, trained=np.arange(20), known=np.arange(20))
    before = rehearsal.loss(np.arange(20, 30), "shape")
    rehearsal.advance(15)
    assert rehearsal.loss(np.arange(20, 30), "shape") < before


def test_learners_without_training_steps_refuse(items):
    for name in ("probe", "scikit"):
        with pytest.raises(LearnerError, match=f"{name}' has no training steps.*such as transformer"):
            make_learner(name, items.schema).rehearse(items, trained=TRAINED, known=ALL)


def test_tasks_that_share_nothing_are_refused(items, folder):
    with pytest.raises(LearnerError, match="share no layers"):
        made(items, folder, sharing="single").rehearse(items, trained=TRAINED, known=ALL)
    with pytest.raises(LearnerError, match="frozen_layers"):
        made(items, folder, frozen_layers=2).rehearse(items, trained=TRAINED, known=ALL)
