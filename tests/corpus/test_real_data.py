"""Public data sets, read in place: guessed right, with the counts that their authors published."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bursar.corpus import FORMATS, Corpus, guess_format, read, write
from bursar.errors import DataError
from tests.same import differences

Folder = Callable[[str], Path]

COUNTS = {  # folder: format, items in train, dev and test
    "atis": ("slots", 4478, 500, 893),
    "snips": ("slots", 13084, 700, 700),
    "ud_ewt": ("conllu", 12543, 2001, 2077),
    "uner_ewt": ("iob2", 12543, 2001, 2077),
    "scierc": ("dygie", 1861, 275, 551),
    "webnlg": ("dygie", 4973, 500, 689),
    "conll2003": ("conll", 14041, 3250, 3453),
    "topv2": ("topv2", 20430, 2935, 7123),
    "mit_restaurant": ("wordtag", 6894, 766, 1521),
    "fashion_mnist": ("idx", 60000, 0, 10000),
    "cmu_faces": ("npz", 624, 0, 0),
    "glue/CoLA": ("glue", 8551, 1043, 1063),
    "glue/MRPC": ("glue", 3667, 408, 1725),
    "glue/RTE": ("glue", 2490, 277, 3000),
    "glue/SST-2": ("glue", 67349, 872, 1821),
    "glue/STS-B": ("glue", 5749, 1500, 1379),
    "glue/WNLI": ("glue", 635, 71, 146),
    "glue": ("glue", 88441, 4171, 9134),
}


@cache
def once(path: Path) -> Corpus:
    """Corpora never change, so each is read once for all tests here."""
    return read(path)


def per_split(corpus: Corpus, count: Callable[[Corpus], int]) -> list[int]:
    return [count(corpus.split(split)) for split in ("train", "dev", "test")]


def rows(task: str) -> Callable[[Corpus], int]:
    return lambda corpus: len(corpus.labels[task].rows.values)


def documents(corpus: Corpus) -> int:
    assert corpus.groups is not None
    return len(set(corpus.groups.tolist()))


@pytest.mark.parametrize("name", COUNTS)
def test_every_data_set_is_guessed_by_one_format_and_has_its_published_counts(name: str, data_folder: Folder) -> None:
    path = data_folder(name)
    assert [format for format in FORMATS if FORMATS[format].sniff(path)] == [COUNTS[name][0]]
    counts = once(path).split_counts()
    assert [counts.get(split, 0) for split in ("train", "dev", "test")] == [*COUNTS[name][1:]]


@pytest.mark.parametrize("name", [name for name in COUNTS if name != "glue"])
def test_some_items_of_every_data_set_come_back_from_a_round_trip(
    name: str, data_folder: Folder, tmp_path: Path
) -> None:
    path = data_folder(name)
    corpus = once(path)
    corpus = corpus.take(np.concatenate([corpus.in_split(split)[:150] for split in corpus.splits]))
    format = guess_format(path).name
    write(corpus, tmp_path / "again", format)
    assert not differences(corpus, read(tmp_path / "again"))


def test_conll2003_has_its_words_documents_and_tags(data_folder: Folder) -> None:
    corpus = once(data_folder("conll2003"))
    assert per_split(corpus, lambda part: int(part.words.sum())) == [203621, 51362, 46435]
    assert per_split(corpus, documents) == [946, 216, 231]
    assert {name: len(task.labels) for name, task in corpus.schema.items()} == {"pos": 45, "chunk": 10, "entities": 4}


@pytest.mark.parametrize("scheme", ["IOB1", "BIOES"])
def test_conll2003_in_another_scheme_is_the_same_corpus(scheme: str, data_folder: Folder, tmp_path: Path) -> None:
    corpus = once(data_folder("conll2003")).split("dev")
    write(corpus, tmp_path, "conll", scheme=scheme)
    assert not differences(corpus, read(tmp_path))


def test_scierc_has_its_documents_entities_and_relations(data_folder: Folder) -> None:
    corpus = once(data_folder("scierc"))
    assert per_split(corpus, documents) == [350, 50, 100]
    assert per_split(corpus, rows("entities")) == [5598, 811, 1685]
    assert per_split(corpus, rows("relations")) == [3219, 455, 974]
    assert [len(corpus.schema[task].labels) for task in ("entities", "relations")] == [6, 7]


def test_webnlg_has_its_relations_in_documents_without_a_key(data_folder: Folder) -> None:
    corpus = once(data_folder("webnlg"))
    assert per_split(corpus, rows("relations")) == [11421, 1129, 1594]
    assert corpus[0].id == "train-000001-0"
    assert corpus[0].group == "train-000001"


def test_the_entity_layer_joins_its_treebank_word_for_word(data_folder: Folder) -> None:
    corpus = read(data_folder("ud_ewt"), layer=data_folder("uner_ewt"))
    labels = corpus.schema["entities"].labels
    counts = {
        split: dict(zip(labels, np.bincount(corpus.split(split).labels["entities"].rows.values[:, 2]), strict=True))
        for split in corpus.splits
    }
    assert counts["train"] == {"LOC": 2698, "PER": 2873, "ORG": 1434}
    assert counts["dev"] == {"LOC": 399, "PER": 343, "ORG": 224}
    assert counts["test"] == {"LOC": 317, "PER": 449, "ORG": 322}
    assert set(corpus.schema) == {"dependencies", "upos", "xpos", "entities"}
    alone = once(data_folder("uner_ewt"))
    places = corpus.positions(alone.ids)  # the files have their documents in different orders
    for at in range(0, len(alone), 7):
        mine, joined = alone[at], corpus[int(places[at])]
        assert (mine.words, mine.group, mine.labels["entities"]) == (
            joined.words,
            joined.group,
            joined.labels["entities"],
        )


def test_a_layer_of_one_split_does_not_fit_the_whole_treebank(data_folder: Folder) -> None:
    layer = data_folder("uner_ewt") / "en_ewt-ud-dev.iob2"
    with pytest.raises(DataError, match="does not have this sentence") as caught:
        read(data_folder("ud_ewt"), layer=layer)
    assert caught.value.line == 1
    assert len(read(data_folder("ud_ewt") / "en_ewt-ud-dev.conllu", layer=layer)) == 2001


def test_our_treebank_parser_agrees_with_the_conllu_library(data_folder: Folder) -> None:
    conllu = pytest.importorskip("conllu")
    file = data_folder("ud_ewt") / "en_ewt-ud-dev.conllu"
    corpus = read(file)
    theirs = conllu.parse(file.read_text(encoding="utf-8"))
    assert len(corpus) == len(theirs)
    for at, sentence in enumerate(theirs):
        mine = corpus[at]
        words = [token for token in sentence if isinstance(token["id"], int)]
        assert (mine.id, mine.text) == (sentence.metadata["sent_id"], sentence.metadata["text"])
        assert mine.words == [word["form"] for word in words]
        assert mine.labels["dependencies"] == [[word["head"], word["deprel"]] for word in words]
        assert mine.labels["upos"] == [word["upos"] for word in words]
        assert mine.labels["xpos"] == [word["xpos"] for word in words]


def test_topv2_has_its_seven_intents(data_folder: Folder) -> None:
    corpus = once(data_folder("topv2")).split("train")
    counts = np.bincount(corpus.labels["intent"].rows.values[:, 0])
    by_name = dict(zip(corpus.schema["intent"].labels, counts.tolist(), strict=True))
    assert by_name == {
        "CREATE_ALARM": 11035,
        "GET_ALARM": 2800,
        "DELETE_ALARM": 2650,
        "UPDATE_ALARM": 1629,
        "SILENCE_ALARM": 1044,
        "SNOOZE_ALARM": 849,
        "UNSUPPORTED_ALARM": 423,
    }


def test_all_of_glue_is_one_corpus_with_a_task_an_item(data_folder: Folder) -> None:
    corpus = once(data_folder("glue"))
    assert list(corpus.schema) == ["CoLA", "MRPC", "RTE", "SST-2", "STS-B", "WNLI"]
    present = np.stack([corpus.labels[task].present for task in corpus.schema])
    trained = corpus.in_split("train")
    assert (present[:, trained].sum(axis=0) == 1).all()
    assert not present[:, corpus.in_split("test")].any()
    assert corpus.pairs is not None
    scores = corpus.labels["STS-B"].rows.values
    assert (scores.min(), scores.max()) == (0, 5)


def test_the_faces_have_four_tasks_and_the_largest_images(data_folder: Folder) -> None:
    corpus = once(data_folder("cmu_faces"))
    assert {name: len(task.labels) for name, task in corpus.schema.items()} == {
        "person": 20,
        "pose": 4,
        "expression": 4,
        "eyes": 2,
    }
    assert corpus.images is not None
    assert corpus.images.shape == (624, 60, 64)
    smaller = read(data_folder("cmu_faces"), images="img32x30")
    assert smaller.images is not None
    assert smaller.images.shape == (624, 30, 32)


def test_fashion_mnist_has_as_many_images_of_each_class(data_folder: Folder) -> None:
    corpus = once(data_folder("fashion_mnist"))
    assert np.bincount(corpus.split("train").labels["label"].rows.values[:, 0]).tolist() == [6000] * 10
    assert np.bincount(corpus.split("test").labels["label"].rows.values[:, 0]).tolist() == [1000] * 10
    assert corpus.images is not None
    assert round(float(corpus.images[:60000].mean()) / 255, 5) == 0.28604


def test_the_restaurants_have_eight_types(data_folder: Folder) -> None:
    assert len(once(data_folder("mit_restaurant")).schema["entities"].labels) == 8
