"""Label Studio's files: exports as it writes them, configurations by others, and what people do wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import ConfigError, DataError
from tests.same import differences

TEXT = "wake 😀 me at seven"
CHOICE = {"id": "a", "from_name": "intent", "to_name": "text", "type": "choices", "value": {"choices": ["alarm"]}}


def region(id: str, start: int, end: int, *labels: str, control: str = "slots", **value: Any) -> dict[str, Any]:
    about = {"start": start, "end": end, "labels": [*labels]} | value
    return {"id": id, "from_name": control, "to_name": "text", "type": "labels", "value": about}


def arrow(source: str, target: str, *labels: str, **more: Any) -> dict[str, Any]:
    return {"type": "relation", "from_id": source, "to_id": target, "direction": "right", "labels": [*labels]} | more


def task(*annotations: Any, **data: Any) -> dict[str, Any]:
    """A task as an export has it, with what Bursar does not look at."""
    made = [a if isinstance(a, dict) else {"result": a} for a in annotations]
    about = {"completed_by": 1, "was_cancelled": False, "ground_truth": False, "lead_time": 2.5, "unique_id": "x"}
    return {
        "id": 17,
        "annotations": [about | annotation for annotation in made],
        "predictions": [{"result": [region("p", 0, 4, "who")]}],
        "data": {"text": TEXT} | data,
        "meta": {},
        "project": 3,
        "total_annotations": len(made),
    }


def put(folder: Path, *tasks: Any, config: str | None = None) -> Path:
    path = folder / "project-3-at-2030.json"
    path.write_text("[\n" + ",\n".join(json.dumps(task) for task in tasks) + "\n]", encoding="utf-8")
    if config is not None:
        path.with_suffix(".xml").write_text(config, encoding="utf-8")
    return path


def test_an_export_is_guessed_and_its_tasks_are_told_by_their_results(tmp_path: Path) -> None:
    score = {"id": "n", "from_name": "score", "to_name": "text", "type": "rating", "value": {"rating": 4}}
    path = put(tmp_path, task([CHOICE, region("b", 13, 18, "time", text="seven"), score]))
    assert guess_format(path).name == "label-studio"
    corpus = read(path)
    assert corpus[0].id == "17"
    assert corpus[0].labels == {"intent": "alarm", "slots": [[4, 5, "time"]], "score": 4.0}


def test_predictions_are_no_labels(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, task([CHOICE], id="a"), task(id="b")))
    assert [corpus[at].labels for at in range(2)] == [{"intent": "alarm"}, {}]


def test_an_annotation_without_regions_says_that_there_are_none_and_one_without_a_choice_says_nothing(
    tmp_path: Path,
) -> None:
    corpus = read(put(tmp_path, task([CHOICE, region("b", 13, 18, "time")], id="a"), task([], id="b")))
    assert corpus[1].labels == {"slots": []}


def test_what_was_skipped_has_no_labels(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, task([CHOICE], id="a"), task({"result": [], "was_cancelled": True}, id="b")))
    assert corpus[1].labels == {}


def test_offsets_that_a_browser_counted_are_told_by_their_text(tmp_path: Path) -> None:
    assert read(put(tmp_path, task([region("b", 14, 19, "time", text="seven")])))[0].labels == {
        "slots": [[4, 5, "time"]]
    }


def test_arrows_are_relations_between_the_regions_that_they_link(tmp_path: Path) -> None:
    marks = [region("a", 0, 4, "who"), region("b", 13, 18, "time")]
    corpus = read(put(tmp_path, task([*marks, arrow("a", "b", "at"), arrow("a", "b", "of", "to", direction="left")])))
    who, time = [0, 1, "who"], [4, 5, "time"]
    assert corpus[0].labels["relations"] == [[who, time, "at"], [time, who, "of"], [time, who, "to"]]


def test_a_configuration_beside_the_file_says_which_labels_there_are(tmp_path: Path) -> None:
    config = """<View><Style>.x {}</Style><Header value="Label it"/><HyperText name="h" value="$html"/>
      <Text name="q" value="$question"/><View><Labels name="slots" toName="q"><Label value="time" background="red"/>
      <Label value="Other thing" alias="other"/></Labels></View><Choices name="intent" toName="q">
      <Choice value="alarm"/><Choice value="music"/></Choices><Rating name="stars" toName="q" maxRating="7"/>
      <Number name="n" toName="q"/></View>"""
    path = put(tmp_path, task([CHOICE, region("b", 13, 18, "other")], question=TEXT), config=config)
    corpus = read(path)
    assert {name: task.describe() for name, task in corpus.schema.items()} == {
        "slots": {"kind": "tagging", "labels": ["time", "other"], "every_word": False},
        "intent": {"kind": "classification", "labels": ["alarm", "music"]},
        "stars": {"kind": "regression", "low": 0, "high": 7},
        "n": {"kind": "regression", "low": -(2.0**53), "high": 2.0**53},
    }
    assert corpus[0].text == TEXT
    path.with_suffix(".xml").rename(tmp_path / "elsewhere.xml")
    assert not differences(read(path, config=str(tmp_path / "elsewhere.xml")), corpus)


def test_relations_of_a_configuration_are_between_its_first_spans(tmp_path: Path) -> None:
    config = """<View><Relations><Relation value="at"/></Relations><Labels name="slots" toName="t"><Label value="who"/>
      </Labels><Text name="t" value="$text"/></View>"""
    marks = [region("a", 0, 4, "who"), region("b", 13, 18, "who")]
    corpus = read(put(tmp_path, task([*marks, arrow("a", "b", "at")]), config=config))
    assert corpus[0].labels["relations"] == [[[0, 1, "who"], [4, 5, "who"], "at"]]
    assert corpus.schema["relations"].labels == ("at",)


def test_the_text_may_have_another_name(tmp_path: Path) -> None:
    data = task([CHOICE])
    data["data"] = {"url": "u", "title": "another text", "body": TEXT}
    assert read(put(tmp_path, data), text="body")[0].text == TEXT
    with pytest.raises(DataError, match=r"no text called 'colour'.*one of: url, title, body"):
        read(put(tmp_path, data), text="colour")


# -- several annotations -----------------------------------------------------------------------------------------------
def other(choice: str) -> dict[str, Any]:
    return CHOICE | {"value": {"choices": [choice]}}


def test_annotations_that_agree_are_one(tmp_path: Path) -> None:
    assert read(put(tmp_path, task([CHOICE], [CHOICE])))[0].labels == {"intent": "alarm"}


def test_annotations_that_disagree_are_refused_unless_it_is_said_which_one_counts(tmp_path: Path) -> None:
    path = put(tmp_path, task([CHOICE], id="a"), task([CHOICE], [other("music")], id="b"))
    with pytest.raises(DataError, match="two annotations disagree") as caught:
        read(path)
    assert (caught.value.line, caught.value.item) == (3, "b")
    assert read(path, several="first")[1].labels == {"intent": "alarm"}
    assert read(path, several="last")[1].labels == {"intent": "music"}
    with pytest.raises(ConfigError, match="several = 'both'"):
        read(path, several="both")


# -- what is wrong -----------------------------------------------------------------------------------------------------
def test_half_a_word_is_refused_with_its_place_and_widened_when_that_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, task([CHOICE], id="a"), task([region("b", 14, 18, "time")], id="b"))
    with pytest.raises(DataError, match=r"'slots': the span 14 to 18 \('even'\) cuts the word 'seven'") as caught:
        read(path)
    assert (caught.value.path, caught.value.line, caught.value.item) == (str(path), 3, "b")
    assert read(path, cut="widen")[1].labels["slots"] == [[4, 5, "time"]]


def test_controls_that_are_no_tasks_are_skipped_by_name(tmp_path: Path) -> None:
    comment = {"id": "t", "from_name": "comment", "to_name": "text", "type": "textarea", "value": {"text": ["hm"]}}
    path = put(tmp_path, task([CHOICE, comment]))
    with pytest.raises(DataError, match=r"'comment'.*'textarea'.*Fix: skip = comment"):
        read(path)
    assert read(path, skip="comment")[0].labels == {"intent": "alarm"}


def test_a_control_that_the_configuration_does_not_know_is_refused(tmp_path: Path) -> None:
    choices = '<Choices name="intent" toName="text"><Choice value="alarm"/></Choices>'
    config = f'<View><Text name="text" value="$text"/>{choices}</View>'
    path = put(tmp_path, task([CHOICE, region("b", 13, 18, "time")]), config=config)
    with pytest.raises(DataError, match="the control 'slots' belongs to no task"):
        read(path)
    assert read(path, skip="slots")[0].labels == {"intent": "alarm"}


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([region("b", 13, 18)], "a region has no label"),
        ([region("b", 0, 99, "time")], "must be two numbers within"),
        ([region("b", 4, 5, "time")], "holds no word"),
        ([region("b", 13, 18, "time") | {"value": None}], "has no value"),
        ([CHOICE, CHOICE], "2 answers"),
        ([CHOICE | {"value": {"choices": []}}], "no answer"),
        ([CHOICE | {"value": {"choices": [["a"]]}}], "non-empty string"),
        ([region("a", 0, 4, "who"), arrow("a", "z", "at")], "does not link two regions"),
        ([region("a", 0, 4, "who"), arrow("a", "a")], "has no label"),
        ([region("a", 0, 4, "who"), arrow("a", "a", "at", direction="bi")], "points in direction 'bi'"),
        ([region("a", 0, 4, "who", "time"), arrow("a", "a", "at")], "several labels"),
    ],
)
def test_results_that_are_no_labels_are_refused_with_file_line_and_item(
    tmp_path: Path, results: list[Any], words: str
) -> None:
    path = put(tmp_path, task([CHOICE], id="a"), task(results, id="b"))
    with pytest.raises(DataError, match=words) as caught:
        read(path)
    assert (caught.value.path, caught.value.line, caught.value.item) == (str(path), 3, "b")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": None}, "no text"),
        ({"data": {"text": 7}}, "no text"),
        ({"data": {"text": "x", "group": 7}}, "group must be a string"),
        ({"data": {"text": "x", "words": [[0, 9]]}}, "words must be"),
        ({"data": {"text": "x", "tasks": "intent"}}, "tasks must be a list"),
        ({"annotations": 7}, "annotations must be a list"),
        ({"annotations": [7]}, "annotations must be a list"),
        ({"annotations": [{"result": 7}]}, "result of an annotation"),
        ({"annotations": [{"result": [7]}]}, "result of an annotation"),
    ],
)
def test_tasks_that_are_none_are_refused_with_their_line(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read(put(tmp_path, task([CHOICE], id="a"), task([CHOICE]) | change))
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("config", "words", "line"),
    [
        ("", "not a labelling configuration", 1),
        ("<View>\n<Text", "not a labelling configuration", 2),
        ('<View bursar="[]"/>', "not as it was written", 1),
        ('<View bursar="{">\n</View>', "not as it was written", 1),
        ('<View><Number name="n" toName="t" min="x"/></View>', "min is no number", 1),
        ("""<View bursar='{"n": {"kind": "colour"}}'/>""", "no known kind", 1),
    ],
)
def test_a_configuration_that_is_none_is_refused_with_its_line(
    tmp_path: Path, config: str, words: str, line: int
) -> None:
    path = put(tmp_path, task([CHOICE]), config=config)
    with pytest.raises(DataError, match=words) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (str(path.with_suffix(".xml")), line)


def test_a_folder_holds_one_file_of_tasks(tmp_path: Path) -> None:
    assert len(read(put(tmp_path, task([CHOICE])).parent, "label-studio")) == 1
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(DataError, match=r"one \.json file, not 2"):
        read(tmp_path, "label-studio")


# -- writing -----------------------------------------------------------------------------------------------------------
def test_what_is_written_is_what_a_project_is_made_of(tmp_path: Path) -> None:
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["alarm", "music"]}})
    builder.add("u1", text=TEXT, labels={"intent": "alarm"})
    builder.add("u2", split="dev", text="play", group="g")
    write(builder.build(), tmp_path / "out", "label-studio")
    tasks = json.loads((tmp_path / "out" / "tasks.json").read_text(encoding="utf-8"))
    assert [task["data"] for task in tasks] == [
        {"id": "u1", "split": "train", "text": TEXT},
        {"id": "u2", "split": "dev", "text": "play", "group": "g"},
    ]
    assert tasks[0]["annotations"] == [{"result": [CHOICE | {"id": "intent"}]}]
    assert (tmp_path / "out" / "tasks.xml").read_text().count("<Choice ") == 2


def test_relations_between_what_is_no_entity_have_regions_of_their_own(tmp_path: Path) -> None:
    builder = CorpusBuilder({"who": {"kind": "tagging"}, "knows": {"kind": "relations"}})
    labels = {"who": [[0, 1, "PER"]], "knows": [[[0, 1, "PER"], [2, 3, "PER"], "knows"]]}
    builder.add("u1", text="Ada met Bo", labels=labels)
    corpus = builder.build()
    write(corpus, tmp_path / "own.json", "label-studio")
    results = json.loads((tmp_path / "own.json").read_text())[0]["annotations"][0]["result"]
    assert [result.get("from_name") for result in results] == ["who", "knows", "knows", None]
    assert not differences(corpus, read(tmp_path / "own.json"))


def test_images_are_refused(tmp_path: Path) -> None:
    import numpy as np

    builder = CorpusBuilder()
    builder.add("a")
    with pytest.raises(DataError, match="holds texts, not images"):
        write(builder.build(images=np.zeros((1, 2, 2))), tmp_path / "out", "label-studio")


def test_a_label_that_would_be_taken_for_a_name_of_data_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"intent": {"kind": "classification"}})
    builder.add("u1", text="x", labels={"intent": "$price"})
    with pytest.raises(DataError, match="name of data"):
        write(builder.build(), tmp_path / "out.json", "label-studio")
    assert not [*tmp_path.iterdir()]
