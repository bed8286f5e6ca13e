"""Which of several answers stands."""

from __future__ import annotations

from itertools import product

from bursar.ledger import Annotation, Submission
from bursar.ledger.ledger import current_labels
from bursar.ledger.records import ROLES, dump
from tests.decisions import Note


def by_the_rule(said):
    """The rule: the newest adjudication or correction, else the newest answer since the last retraction."""
    settling = [at for at, (_, role) in enumerate(said) if role in ("adjudication", "correction")]
    if settling and said[settling[-1]][0] is not None:
        return said[settling[-1]][0]
    since = settling[-1] + 1 if settling else 0
    answers = [label for label, role in said[since:] if role == "answer"]
    return answers[-1] if answers else None


def test_what_stands_follows_the_rule_for_every_order_of_four_answers():
    for said in product(product(("a", "b", None), ROLES), repeat=4):
        held = current_labels(("u1", "intent", label, role) for label, role in said)
        assert held.get(("u1", "intent")) == by_the_rule(said), said


def test_where_there_are_answers_alone_the_newest_stands():
    for labels in product(("a", "b", None), repeat=4):
        held = current_labels(("u1", "intent", label, "answer") for label in labels)
        assert held.get(("u1", "intent")) == labels[-1]


def test_answers_about_other_items_and_tasks_change_nothing():
    said = [("u1", "intent", "a", "answer"), ("u2", "intent", "b", "answer"), ("u1", "slots", "c", "correction")]
    assert current_labels(said) == {("u1", "intent"): "a", ("u2", "intent"): "b", ("u1", "slots"): "c"}


def test_a_digest_tells_labels_apart_and_not_timings():
    said = (Annotation("u1", "intent", "alarm"),)
    assert Submission("k", said).digest == Submission("k", said, timings=(("intent", 1.5),)).digest
    assert Submission("k", said).digest != Submission("k", (Annotation("u1", "intent", "music"),)).digest


def test_a_decision_is_read_back_as_it_was_written():
    note = Note(round=2, text="pause")
    assert (note.encoded(), Note.decoded(2, note.encoded())) == ('{"text": "pause"}', note)


def test_labels_are_written_in_one_form():
    assert dump({"b": 1, "a": "ä"}) == '{"a": "ä", "b": 1}'
