"""Items to tasks and annotations to labels: a round trip changes nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.campaign.state import ItemRequest
from bursar.corpus import CorpusBuilder
from bursar.corpus.formats.label_studio import read_config
from bursar.errors import SchemaError
from bursar.web.labelstudio.tasks import StudioAnnotation, annotations_in, config_for, key_of, task_of
from tests.corpus import corpora

SCHEMA = {
    "intent": {"kind": "classification", "labels": ["alarm", "two words"]},
    "slots": {"kind": "tagging", "labels": ["time", "who"]},
    "pos": {"kind": "tagging", "labels": ["N", "V"], "every_word": True},
    "tree": {"kind": "parsing", "labels": ["root", "obj"]},
    "links": {"kind": "relations", "labels": ["of", "to"], "entity_types": ["time", "who"]},
    "score": {"kind": "regression", "low": -1, "high": 5},
}


def corpus_of(text="wake 😀 me at seven", words=None, schema=SCHEMA, **more):
    builder = CorpusBuilder(schema)
    builder.add("u1", text=text, words=words, **more)
    return builder.build()


def sent(corpus, labels, tasks=None):
    """A task as Label Studio keeps it once somebody has accepted what was suggested."""
    suggestions = {task: {"label": label, "confidence": 0.5} for task, label in labels.items()}
    task = task_of(corpus, ItemRequest("u1", tuple(tasks or labels), "strategy", {}, 3), suggestions)
    return task | {"annotations": [annotation(task["predictions"][0]["result"])]}


def annotation(results, **more):
    return {"id": 7, "result": results, "completed_by": 2, "created_at": "2030", "lead_time": 1.5} | more


@st.composite
def labelled(draw):
    text, places = corpora.spaced(
        draw, [*corpora.tokens(draw, least=0), *draw(st.sampled_from([[], ["😀"], ["שלום"]]))]
    )
    ends = st.tuples(st.integers(0, max(0, len(places) - 1)), st.integers(1, max(1, len(places))))
    spans = draw(st.lists(ends.filter(lambda s: s[0] < s[1] <= len(places)), max_size=4)) if places else []
    slots = [[a, b, draw(st.sampled_from(["time", "who"]))] for a, b in spans]
    pick = st.sampled_from(slots) if slots else None
    links = (
        [[draw(pick), draw(pick), draw(st.sampled_from(["of", "to"]))] for _ in range(draw(st.integers(0, 3)))]
        if slots
        else []
    )
    labels = {
        "intent": draw(st.sampled_from(["alarm", "two words"])),
        "slots": slots,
        "pos": [draw(st.sampled_from(["N", "V"])) for _ in places],
        "tree": [[draw(st.integers(0, at)), draw(st.sampled_from(["root", "obj"]))] for at in range(len(places))],
        "links": links,
        "score": draw(st.floats(-1, 5)),
    }
    return text, places, labels


@settings(max_examples=150, deadline=None)
@given(labelled())
def test_what_is_suggested_and_accepted_comes_back_the_same(drawn):
    text, places, labels = drawn
    (said,) = annotations_in(corpus_of(text, places), sent(corpus_of(text, places), labels))
    assert said.problem is None
    assert said.labels == labels


def test_offsets_count_characters_and_not_units_of_a_browser():
    task = sent(corpus_of("😀👍 at seven"), {"slots": [[3, 4, "time"]]})
    value = task["predictions"][0]["result"][0]["value"]
    assert (value["start"], value["end"], value["text"]) == (6, 11, "seven")


def test_who_said_it_and_how_long_it_took_is_kept():
    task = sent(corpus_of(), {"intent": "alarm"})
    task["annotations"][0] |= {"completed_by": {"id": 9, "email": "x"}, "updated_at": "2031"}
    assert annotations_in(corpus_of(), task) == [
        StudioAnnotation(7, "u1", 3, 9, {"intent": "alarm"}, seconds=1.5, created="2030", updated="2031")
    ]


def test_annotations_come_in_the_order_in_which_they_were_made():
    task = sent(corpus_of(), {"intent": "alarm"})
    task["annotations"] = [
        annotation([], id=3, created_at="2032", was_cancelled=True),
        annotation([], id=2, created_at="2031", was_cancelled=True),
        annotation([], id=1, created_at="2032", was_cancelled=True),
    ]
    assert [(said.id, said.skipped) for said in annotations_in(corpus_of(), task)] == [
        (2, True),
        (1, True),
        (3, True),
    ]


def test_a_span_that_ends_inside_a_word_is_widened_to_whole_words():
    task = sent(corpus_of(), {"slots": [[3, 5, "time"]]})
    task["annotations"][0]["result"][0]["value"] |= {"start": 11, "end": 16, "text": "t sev"}
    assert annotations_in(corpus_of(), task)[0].labels == {"slots": [[3, 5, "time"]]}


def test_relations_are_suggested_with_the_entities_that_they_link_and_asked_for_alone():
    labels = {"slots": [[0, 1, "who"], [4, 5, "time"]], "links": [[[0, 1, "who"], [4, 5, "time"], "of"]]}
    task = sent(corpus_of(), labels, tasks=["links"])
    assert annotations_in(corpus_of(), task)[0].labels == {"links": labels["links"]}


def test_relations_between_what_the_model_takes_for_no_entities_are_not_suggested():
    labels = {"slots": [[0, 1, "who"]], "links": [[[0, 1, "who"], [4, 5, "time"], "of"]]}
    assert annotations_in(corpus_of(), sent(corpus_of(), labels))[0].labels == {"slots": [[0, 1, "who"]], "links": []}


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([], "'intent'.*no answer"),
        ([{"type": "choices", "from_name": "intent", "value": {"choices": ["alarm", "two words"]}}], "2 answers"),
        ([{"type": "choices", "from_name": "intent", "value": {"choices": ["music"]}}], "unknown label 'music'"),
        ([{"type": "choices", "from_name": "intent", "value": {"choices": ["alarm"], "start": 1}}], "for a span"),
        ([{"type": "labels", "from_name": "intent", "value": {}}], "answered by choices"),
        ([{"type": "choices", "from_name": "intent", "value": None}], "has no value"),
        ([{"from_name": "intent"}], "must be an object with a type"),
        (["x"], "must be an object with a type"),
        ([{"type": "relation", "from_id": "a", "to_id": "b"}], "does not link two regions"),
    ],
)
def test_what_cannot_be_used_says_why(results, words):
    task = sent(corpus_of(), {"intent": "alarm"})
    task["annotations"] = [annotation(results)]
    (said,) = annotations_in(corpus_of(), task)
    assert re.search(words, said.problem or ""), said.problem


@pytest.mark.parametrize(
    "change", [{"text": "another text"}, {"id": "u9"}, {"tasks": ["colour"]}], ids=["text", "item", "task"]
)
def test_a_task_that_was_changed_there_is_not_taken_for_what_was_asked(change):
    task = sent(corpus_of(), {"intent": "alarm"})
    task["data"] |= change
    assert annotations_in(corpus_of(), task)[0].problem is not None


@pytest.mark.parametrize(
    "data", [None, {}, {"id": "u1"}, {"id": 1, "round": 0, "tasks": []}, {"id": "u1", "round": "0", "tasks": []}]
)
def test_a_task_that_is_not_ours_says_nothing(data):
    task = {"data": data, "annotations": [annotation([])]}
    assert (key_of(task), annotations_in(corpus_of(), task)) == (None, [])


# -- configurations ----------------------------------------------------------------------------------------------------
def test_a_configuration_says_all_that_the_schema_does():
    corpus = corpus_of(pair="another text")
    design = read_config(xml.fromstring(config_for(corpus)))
    assert {name: task.describe() for name, task in design.schema.items()} == {
        name: task.describe() for name, task in corpus.schema.items()
    }
    assert design.ends == {"links": "slots"}


def test_every_task_has_a_control_and_every_item_says_what_it_is_wanted_for():
    view = xml.fromstring(config_for(corpus_of(pair="another text")))
    controls = {element.get("name"): element.tag for element in view if element.get("toName")}
    assert controls == {"intent": "Choices", "slots": "Labels", "pos": "Labels", "tree": "Labels", "score": "Number"}
    assert [element.get("value") for element in view.iter("Text")] == ["$text", "$pair"]
    assert view[0].get("value") == "Please label: $tasks"
    assert [element.get("value") for element in view.iter("Relation")] == ["of", "to"]


def test_images_are_shown_and_sent_as_they_are():
    builder = CorpusBuilder({"kind": {"kind": "classification", "labels": ["cat", "dog"]}})
    builder.add("u1", image=np.zeros((2, 3), np.uint8))
    corpus = builder.build()
    assert [e.get("value") for e in xml.fromstring(config_for(corpus)).iter("Image")] == ["$image"]
    task = sent(corpus, {"kind": "dog"})
    assert task["data"]["image"].startswith("data:image/png;base64,iVBOR")
    assert annotations_in(corpus, task)[0].labels == {"kind": "dog"}


def test_a_task_called_like_the_text_does_not_take_its_name():
    corpus = corpus_of(schema={"text": {"kind": "classification", "labels": ["a", "b"]}})
    view = xml.fromstring(config_for(corpus))
    assert [e.get("name") for e in view if e.get("name")] == ["text_", "text"]
    assert annotations_in(corpus, sent(corpus, {"text": "b"}))[0].labels == {"text": "b"}


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"kind": "classification"}, "states no labels"),
        ({"kind": "classification", "labels": ["$x"]}, "name of data"),
        ({"kind": "classification", "labels": ["a\x01"]}, "XML cannot hold"),
    ],
)
def test_what_label_studio_cannot_show_is_refused(task, words):
    with pytest.raises(SchemaError, match=words):
        config_for(corpus_of(schema={"intent": task}))


def test_words_of_images_are_refused():
    builder = CorpusBuilder({"slots": {"kind": "tagging", "labels": ["x"]}})
    builder.add("u1", image=np.zeros((2, 3), np.uint8))
    with pytest.raises(SchemaError, match="images have none"):
        config_for(builder.build())
