"""One column a task, whatever its kind, and no relation is certain merely for want of spans to link."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import SchemaError
from bursar.tasks import Beliefs, Estimates, make_task
from bursar.uncertainty import MEASURES, confidences

ENTROPY, AGREEMENT = MEASURES["entropy"], MEASURES["dropout-agreement"]
DESCRIBED = {
    "links": {"kind": "relations", "labels": ["used-for"], "entity_types": ["method", "task"]},
    "entities": {"kind": "tagging", "labels": ["method", "task"]},
    "intent": {"kind": "classification", "labels": ["alarm", "music"]},
    "urgency": {"kind": "regression"},
}
TASKS = {name: make_task(name, description) for name, description in DESCRIBED.items()}


def believed(passes):
    """Two items: nothing to link in the first; every word of it wavers between two of four tags."""
    sure, torn = [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]
    found = {
        "links": Beliefs.of([[[0.5, 0.5]]], units=[0, 1]),
        "entities": Beliefs.of([[torn, torn, sure]], units=[2, 1]),
        "intent": Beliefs.of([[[1.0, 0.0], [0.5, 0.5]]], units=[1, 1]),
    }
    repeated = {
        name: Beliefs(np.repeat(b.values, passes, axis=0), b.choices, b.offsets, b.subjects)
        for name, b in found.items()
    }
    return repeated | {"urgency": Estimates(np.full((passes, 2), 0.5), np.zeros((passes, 2)), 0, 1)}


def test_there_is_one_column_a_task_in_the_order_of_the_tasks():
    """Torn between two of four tags is an entropy of ln 2 / ln 4; a relation that may as well be none has none left."""
    expected = {"links": [0.5, 0], "entities": [0.5, 1], "intent": [1, 0], "urgency": [1, 1]}
    for order in (list(TASKS), list(TASKS)[::-1]):
        found = confidences({name: TASKS[name] for name in order}, believed(1), ENTROPY)
        np.testing.assert_allclose(found, np.array([expected[name] for name in order]).T, atol=1e-9)


def test_where_there_is_nothing_to_link_the_confidence_in_the_entities_stands_in():
    columns = dict(zip(TASKS, confidences(TASKS, believed(1), ENTROPY).T, strict=True))
    assert columns["links"][0] == columns["entities"][0] == 0.5
    assert ENTROPY(believed(1)["links"])[0] == 1.0  # what it would be by itself


def test_agreement_stands_in_for_agreement():
    beliefs = believed(2)
    votes = np.eye(4)[[[0, 0, 0], [1, 0, 0]]]  # two passes over three words: they differ on the first
    beliefs["entities"] = Beliefs.of(votes, units=[2, 1])
    found = dict(zip(TASKS, confidences(TASKS, beliefs, AGREEMENT).T, strict=True))
    assert found["entities"].tolist() == [0.5, 1.0]
    assert found["links"].tolist() == [0.5, 1.0]


def test_only_the_tasks_that_are_asked_for_are_measured():
    assert confidences({"intent": TASKS["intent"]}, believed(1), ENTROPY).tolist() == [[1.0], [0.0]]


def test_no_items_are_no_rows():
    nothing = {name: beliefs.take(np.array([], dtype=np.int64)) for name, beliefs in believed(1).items()}
    assert confidences(TASKS, nothing, ENTROPY).shape == (0, 4)


def test_a_task_that_nothing_is_believed_of_is_named():
    with pytest.raises(SchemaError, match="no predictions of task 'urgency'"):
        confidences(TASKS, {name: b for name, b in believed(1).items() if name != "urgency"}, ENTROPY)


def test_relations_without_their_entities_are_refused():
    with pytest.raises(SchemaError, match="add a tagging task"):
        confidences({"links": TASKS["links"]}, believed(1), ENTROPY)


def test_no_task_is_no_question():
    with pytest.raises(SchemaError, match="no task"):
        confidences({}, {}, ENTROPY)
