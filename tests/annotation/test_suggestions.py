"""What a model suggests is offered where it beats a guess among the labels, whatever kind of task it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.annotation.suggestions import how_sure, offered
from bursar.tasks import Beliefs, Estimates, make_task
from bursar.uncertainty import confidence_of
from tests.campaign.lives import answer_all, one_corpus, start, train  # noqa: F401

LEAST = 0.25  # of the way from a guess to certainty
TASKS = {
    "tagging": {"kind": "tagging", "labels": ["method", "task"]},
    "every word": {"kind": "tagging", "labels": ["NOUN", "VERB", "DET", "ADP", "ADJ"], "every_word": True},
    "parsing": {"kind": "parsing", "labels": ["root", "obj"]},
    "relations": {"kind": "relations", "labels": ["used-for", "part-of"], "entity_types": ["method", "task"]},
    "regression": {"kind": "regression", "low": 0, "high": 5},
}
TASKS = {name: make_task(name, about) for name, about in TASKS.items()}


def one_of(labels: int, probability: float) -> str | None:
    """How sure of a class that is so probable, where the others share the rest."""
    rest = (1 - probability) / (labels - 1)
    task = make_task("intent", {"kind": "classification", "labels": [f"label {n}" for n in range(labels)]})
    beliefs = {"intent": Beliefs.of([[probability, *[rest] * (labels - 1)]], units=[1])}
    return how_sure(float(confidence_of({"intent": task}, beliefs, "intent")[0]))


@pytest.mark.parametrize("labels", [2, 3, 10, 200])
def test_a_class_is_offered_from_a_quarter_of_the_way_between_a_guess_and_certainty_on(labels):
    guess = 1 / labels
    line = guess + LEAST * (1 - guess)
    sure = [one_of(labels, p) for p in (guess, line - 0.01, line + 0.01, 0.99)]
    assert sure == [None, None, "possible", "very likely"]


def test_the_same_probability_is_a_guess_among_two_labels_and_an_idea_among_ten():
    assert (one_of(2, 0.55), one_of(10, 0.55)) == (None, "likely")


def units(choices: int, best: list[int], probability: float) -> Beliefs:
    """An item whose units have these best choices, each so probable."""
    rest = (1 - probability) / (choices - 1)
    return Beliefs.of(np.eye(choices)[best] * (probability - rest) + rest, units=[len(best)])


def spread(deviation: float) -> Estimates:
    return Estimates(np.array([[2.5]]), np.array([[deviation**2]]), low=0, high=5)


SURE = {  # the same answers of a model that knows nothing, and of one that knows
    "tagging": lambda known: units(5, [0, 1, 2, 0], 0.95 if known else 0.21),
    "every word": lambda known: units(5, [0, 1, 0, 3], 0.95 if known else 0.21),
    "parsing": lambda known: units(4, [0, 2, 3], 0.95 if known else 0.26),
    "relations": lambda known: units(3, [0, 2], 0.95 if known else 0.34),
    "regression": lambda known: spread(0.1 if known else 5 / 12**0.5),  # or as wide as the whole range
}


@pytest.mark.parametrize("kind", TASKS)
def test_suggestions_of_every_kind_at_chance_level_are_not_offered_and_sure_ones_are(kind):
    for known, sure in ((False, None), (True, "very likely")):
        beliefs = {name: make(known) for name, make in SURE.items()}
        assert how_sure(float(confidence_of(TASKS, beliefs, kind)[0])) == sure


def test_words_that_are_surely_in_no_span_do_not_make_a_guessed_span_sure():
    words = Beliefs.of([[0.97, 0.01, 0.01, 0.01]] * 19 + [[0.25, 0.27, 0.24, 0.24]], units=[20])
    assert how_sure(float(confidence_of({"tagging": TASKS["tagging"]}, {"tagging": words}, "tagging")[0])) is None


def test_that_there_are_no_spans_is_as_sure_as_the_least_sure_word():
    words = Beliefs.of([[0.97, 0.01, 0.01, 0.01]] * 19 + [[0.4, 0.3, 0.2, 0.1]], units=[20])
    assert how_sure(float(confidence_of({"tagging": TASKS["tagging"]}, {"tagging": words}, "tagging")[0])) is None


def test_relations_without_two_spans_are_as_sure_as_the_spans():
    tasks = {"tagging": TASKS["tagging"], "relations": TASKS["relations"]}
    nothing = Beliefs.of(np.zeros((0, 3)), units=[0])
    for known, sure in ((False, None), (True, "very likely")):
        beliefs = {"tagging": SURE["tagging"](known), "relations": nothing}
        assert how_sure(float(confidence_of(tasks, beliefs, "relations")[0])) == sure


def test_what_is_offered_says_how_sure_in_words():
    said = {
        "intent": {"label": "alarm", "confidence": 0.85},
        "slots": {"label": [], "confidence": 0.3},
        "mood": {"label": "good", "confidence": 0.04},
    }
    assert {task: about["sure"] for task, about in offered(said).items()} == {
        "intent": "very likely",
        "slots": "possible",
    }


def test_people_are_given_what_a_model_is_sure_of_and_nothing_else(tmp_path):
    live = start(tmp_path / "project")
    answer_all(live)
    train(live)
    items = json.loads((live.folder / "suggestions" / "round-01.json").read_text())["items"]
    kept = [about["confidence"] >= LEAST for said in items.values() for about in said.values()]
    assert {True, False} == set(kept)  # this model has both
    for item, said in items.items():
        sure = {task: about["label"] for task, about in said.items() if about["confidence"] >= LEAST}
        assert {task: about["label"] for task, about in live.suggestions(item).items()} == sure
    live.close()


def test_how_sure_a_model_is_has_three_words():
    assert [how_sure(sure) for sure in (0.1, 0.3, 0.6, 0.9)] == [None, "possible", "likely", "very likely"]
