from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bursar.corpus import Corpus, CorpusBuilder, read, write
from bursar.errors import BursarError, DataError

datasets = pytest.importorskip("datasets")


def saved(folder: Path, columns: dict[str, list[Any]], features: dict[str, Any] | None = None) -> Path:
    wanted = None if features is None else datasets.Features(features)
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(columns, features=wanted).save_to_disk(str(folder / "data"))
    return folder / "data"


def classes(*names: str) -> Any:
    return datasets.ClassLabel(names=[*names])


def test_class_labels_are_classification_and_minus_one_is_none(tmp_path: Path) -> None:
    features = {"sentence": datasets.Value("string"), "label": classes("no", "yes")}
    corpus = read(saved(tmp_path, {"sentence": ["a", "b"], "label": [1, -1]}, features))
    assert [corpus[at].labels for at in range(2)] == [{"label": "yes"}, {}]
    assert corpus.schema["label"].labels == ("no", "yes")


def test_lists_of_tags_are_spans_and_other_lists_are_a_label_a_word(tmp_path: Path) -> None:
    string = datasets.Value("string")
    features = {
        "tokens": datasets.Sequence(string),
        "ner_tags": datasets.Sequence(classes("O", "B-PER", "I-PER")),
        "pos_tags": datasets.Sequence(classes("NN", "VB")),
    }
    rows = {"tokens": [["Ada", "Lee", "sings"]], "ner_tags": [[1, 2, 0]], "pos_tags": [[0, 0, 1]]}
    corpus = read(saved(tmp_path, rows, features))
    assert corpus[0].labels == {"ner_tags": [[0, 2, "PER"]], "pos_tags": ["NN", "NN", "VB"]}
    assert corpus[0].text == "Ada Lee sings"


def test_pairs_are_told_by_their_names_and_numbers_are_regression(tmp_path: Path) -> None:
    rows = {"premise": ["a"], "hypothesis": ["b"], "score": [3.5], "idx": [0]}
    corpus = read(saved(tmp_path, rows))
    assert (corpus[0].id, corpus[0].text, corpus[0].pair, corpus[0].labels) == ("0", "a", "b", {"score": 3.5})
    assert corpus.schema["score"].describe()["high"] == 4


def test_ids_that_begin_anew_in_every_split_are_told_apart(tmp_path: Path) -> None:
    part = datasets.Dataset.from_dict({"text": ["a", "b"], "id": ["0", "1"]})
    datasets.DatasetDict({"train": part, "validation": part}).save_to_disk(str(tmp_path / "d"))
    assert read(tmp_path / "d").ids.tolist() == ["train-0", "train-1", "dev-0", "dev-1"]


def test_columns_say_what_names_do_not(tmp_path: Path) -> None:
    path = saved(tmp_path, {"what": ["a b"], "mood": ["glad"], "other": ["x"]})
    with pytest.raises(DataError, match="no column is a text"):
        read(path)
    corpus = read(path, columns={"text": "what", "labels": ["mood"]})
    assert corpus[0].labels == {"mood": "glad"}


@pytest.mark.parametrize(
    "columns", [{"text": "nowhere"}, {"text": "n"}, {"labels": ["nowhere"]}, {"colour": "text"}, {"words": "text"}]
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BursarError):
        read(saved(tmp_path, {"text": ["a"], "n": [1]}), columns=columns)


def test_a_missing_text_is_refused_by_its_item(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="item 'b'"):
        read(saved(tmp_path, {"id": ["a", "b"], "text": ["x", None]}))


def test_splits_that_number_their_labels_differently_are_refused(tmp_path: Path) -> None:
    string = datasets.Value("string")
    parts = {
        split: datasets.Dataset.from_dict(
            {"text": ["a"], "label": [0]}, features=datasets.Features({"text": string, "label": classes(*names)})
        )
        for split, names in (("train", ("no", "yes")), ("test", ("yes", "no")))
    }
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "d"))
    with pytest.raises(DataError, match="column 'label' of split 'test'"):
        read(tmp_path / "d")


def test_a_text_that_is_not_its_words_can_be_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path, {"tokens": [["a", "b"]], "text": ["A B"]})
    with pytest.raises(DataError, match="leaves the text out"):
        read(path)
    assert read(path, columns={"words": "tokens"})[0].text == "a b"


def test_tags_that_are_not_as_many_as_words_are_refused(tmp_path: Path) -> None:
    features = {"words": datasets.Sequence(datasets.Value("string")), "t": datasets.Sequence(classes("a", "b"))}
    with pytest.raises(DataError, match="2 words need"):
        read(saved(tmp_path, {"words": [["x", "y"]], "t": [[0]]}, features))


def test_a_name_that_is_not_a_folder_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(name: str, config: str | None) -> Any:
        asked.append((name, config))
        return datasets.DatasetDict({"test": datasets.Dataset.from_dict({"text": ["a"]})})

    monkeypatch.setattr(datasets, "load_dataset", load)
    corpus = read("somebody/something", "huggingface", config="small")
    assert asked == [("somebody/something", "small")]
    assert corpus.split_counts() == {"test": 1}


def test_a_hub_that_does_not_answer_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, config: str | None) -> Any:
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match="no network"):
        read("somebody/something", "huggingface")


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install 'bursar\[datasets\]'"):
        read(tmp_path, "huggingface")


def trees() -> Corpus:
    builder = CorpusBuilder({"tree": {"kind": "parsing"}})
    builder.add("a", text="x", labels={"tree": [[0, "root"]]})
    return builder.build()


def test_trees_have_no_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column for task 'tree'"):
        write(trees(), tmp_path / "out", "huggingface")


def test_importing_the_corpus_loads_no_heavy_package() -> None:
    code = (
        "import sys, bursar.corpus; print([m for m in ('torch', 'datasets', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
