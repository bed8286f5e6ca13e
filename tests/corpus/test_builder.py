from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bursar.corpus import Corpus, CorpusBuilder, concatenate
from bursar.errors import DataError, SchemaError
from tests.same import differences


def two(intent: str = "a", prefix: str = "u") -> Corpus:
    builder = CorpusBuilder({"intent": {"kind": "classification"}})
    builder.add(f"{prefix}1", text="x y", labels={"intent": intent})
    builder.add(f"{prefix}2", text="z", split="dev")
    return builder.build()


def test_an_error_names_the_file_and_line_that_the_reader_is_at() -> None:
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a"]}})
    builder.at(Path("x.jsonl"), 7)
    with pytest.raises(DataError, match=r"x\.jsonl:7: item 'u'.*unknown label 'b'"):
        builder.add("u", text="x", labels={"intent": "b"})


@pytest.mark.parametrize("id", ["", "a\nb", "a\x00b"])
def test_an_id_is_one_line_of_text(id: str) -> None:
    with pytest.raises(DataError):
        CorpusBuilder().add(id, text="x")


def test_a_refused_item_leaves_no_trace() -> None:
    builder = CorpusBuilder({"intent": {"kind": "classification"}})
    with pytest.raises(DataError):
        builder.add("u", text="x", labels={"intent": 7})
    builder.add("u", text="y", labels={"intent": "a"})
    corpus = builder.build()
    assert (len(corpus), corpus[0].text, corpus[0].labels) == (1, "y", {"intent": "a"})


def test_a_task_announced_late_has_no_labels_for_earlier_items() -> None:
    builder = CorpusBuilder()
    builder.add("u1", text="x")
    builder.add_task("intent", {"kind": "classification"})
    builder.add("u2", text="y", labels={"intent": "a"})
    assert builder.build().labels["intent"].present.tolist() == [False, True]


def test_a_task_that_was_not_announced_is_refused() -> None:
    with pytest.raises(DataError, match="no task 'mood'"):
        CorpusBuilder().add("u", text="x", labels={"mood": "glad"})


def test_half_a_surrogate_pair_is_refused_when_the_corpus_is_built() -> None:
    builder = CorpusBuilder()
    builder.add("u", text="\ud800")
    with pytest.raises(DataError, match="surrogate"):
        builder.build()


def test_images_of_different_sizes_are_refused() -> None:
    builder = CorpusBuilder()
    builder.add("a", image=np.zeros((2, 2), dtype=np.uint8))
    builder.add("b", image=np.zeros((3, 2), dtype=np.uint8))
    with pytest.raises(DataError, match="one size"):
        builder.build()


def test_corpora_with_other_labels_join_by_name() -> None:
    both = concatenate([two("a", "u"), two("b", "v")])
    assert [both[at].labels for at in range(4)] == [{"intent": "a"}, {}, {"intent": "b"}, {}]
    assert both.split_counts() == {"train": 2, "dev": 2}


def test_corpora_with_the_same_id_do_not_join() -> None:
    with pytest.raises(DataError, match="two of the files"):
        concatenate([two(), two()])


def test_corpora_with_a_task_of_two_kinds_do_not_join() -> None:
    builder = CorpusBuilder({"intent": {"kind": "regression"}})
    builder.add("w", text="x")
    with pytest.raises(SchemaError, match="not the same"):
        concatenate([two(), builder.build()])


def test_taking_items_keeps_their_order_and_labels() -> None:
    corpus = two().take(np.array([1, 0]))
    assert corpus.ids.tolist() == ["u2", "u1"]
    assert corpus[1].labels == {"intent": "a"}


def test_two_corpora_say_in_what_they_differ() -> None:
    assert not differences(two("a"), two("a"))
    assert differences(two("a"), two("b")) == ["item 'u1': labels {'intent': 'a'} against {'intent': 'b'}"]


def test_an_unknown_item_or_split_is_named() -> None:
    with pytest.raises(DataError, match="item 'nobody'"):
        two().positions(["nobody"])
    with pytest.raises(DataError, match="no split 'pool'"):
        two().in_split("pool")


def test_each_list_of_labels_is_closed_by_itself():
    builder = CorpusBuilder({"links": {"kind": "relations", "labels": ["near"]}})
    builder.add("u1", text="cup on table", labels={"links": [[[0, 1, "thing"], [2, 3, "place"], "near"]]})
    assert builder.build().schema["links"].entity_types == ("thing", "place")
    with pytest.raises(DataError, match="unknown label 'far'"):
        builder.add("u2", text="cup on table", labels={"links": [[[0, 1, "thing"], [2, 3, "place"], "far"]]})
