from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder, guess_format, read, write
from bursar.errors import DataError


def idx(array: Any) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def put_idx(folder: Path, images: Any, labels: Any, split: str = "train") -> Path:
    (folder / f"{split}-images-idx3-ubyte").write_bytes(idx(images))
    (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    return folder


def pictures(count: int) -> Any:
    return np.arange(count * 6, dtype=np.uint8).reshape(count, 2, 3)


def test_idx_files_may_be_compressed_or_not(tmp_path: Path) -> None:
    put_idx(tmp_path, pictures(2), np.array([7, 0], dtype=np.uint8))
    corpus = read(put_idx(tmp_path, pictures(1), np.array([3], dtype=np.uint8), "t10k"))
    assert [(corpus[at].id, corpus[at].labels["label"]) for at in range(3)] == [
        ("train-000001", "7"),
        ("train-000002", "0"),
        ("test-000001", "3"),
    ]
    assert np.array_equal(corpus.images, np.concatenate([pictures(2), pictures(1)]))  # type: ignore[arg-type]


def test_an_idx_file_beside_its_archive_is_read_once(tmp_path: Path) -> None:
    put_idx(tmp_path, pictures(2), np.array([7, 0], dtype=np.uint8))
    file = tmp_path / "train-images-idx3-ubyte"
    (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert len(read(tmp_path)) == 2
    (tmp_path / "training-images-idx3-ubyte").write_bytes(file.read_bytes())
    with pytest.raises(DataError, match="two files of images"):
        read(tmp_path)


def test_one_idx_file_is_read_with_its_labels(tmp_path: Path) -> None:
    put_idx(tmp_path, pictures(2), np.array([7, 0], dtype=np.uint8))
    put_idx(tmp_path, pictures(1), np.array([3], dtype=np.uint8), "t10k")
    path = tmp_path / "t10k-images-idx3-ubyte"
    assert guess_format(path).name == "idx"
    assert read(path).split_counts() == {"test": 1}


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: d[:6], lambda d: b"PK" + d])
def test_a_truncated_or_longer_idx_file_is_refused_by_name(damage: Any, tmp_path: Path) -> None:
    put_idx(tmp_path, pictures(2), np.array([7, 0], dtype=np.uint8))
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DataError) as caught:
        read(tmp_path, "idx")
    assert caught.value.path == str(file)


def test_more_labels_than_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 labels for 2 images"):
        read(put_idx(tmp_path, pictures(2), np.zeros(3, dtype=np.uint8)))


def test_labels_without_images_are_refused(tmp_path: Path) -> None:
    put_idx(tmp_path, pictures(2), np.zeros(2, dtype=np.uint8))
    put_idx(tmp_path, pictures(2), np.zeros(2, dtype=np.uint8), "t10k")
    (tmp_path / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(DataError, match="no images"):
        read(tmp_path)


@pytest.mark.parametrize("label", ["256", "-1", "07", "seven", "٣"])
def test_labels_that_are_no_byte_are_not_written_to_idx(label: str, tmp_path: Path) -> None:
    builder = CorpusBuilder({"label": {"kind": "classification"}})
    builder.add("train-000001", labels={"label": label})
    with pytest.raises(DataError, match=r"item 'train-000001'.*from 0 to 255"):
        write(builder.build(images=pictures(1)), tmp_path / "out", "idx")


def test_npz_takes_the_largest_images_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, small=np.zeros((2, 1, 1)), large=np.zeros((2, 3, 3)), mood=np.array([1, -1]))
    corpus = read(path)
    assert corpus.images is not None
    assert corpus.images.shape == (2, 3, 3)
    assert [corpus[at].labels for at in range(2)] == [{"mood": "1"}, {}]
    smaller = read(path, images="small")
    assert smaller.images is not None
    assert smaller.images.shape == (2, 1, 1)
    with pytest.raises(DataError, match="small, large"):
        read(path, images="tiny")


def test_npz_names_labels_and_items(tmp_path: Path) -> None:
    names = {"mood_names": np.array(["sad", "glad", "mad"]), "path": np.array(["x.png", "y.png"])}
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3, 3)), mood=np.array([1, 0]), **names)
    corpus = read(tmp_path)
    assert corpus.ids.tolist() == ["x.png", "y.png"]
    assert corpus.schema["mood"].labels == ("sad", "glad", "mad")
    assert corpus[0].labels == {"mood": "glad"}


def test_paths_that_come_twice_are_no_ids(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3, 3)), path=np.array(["x", "x"]))
    assert read(tmp_path).ids.tolist() == ["train-000001", "train-000002"]


def test_a_code_without_a_name_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 3, 3)), mood=np.array([2]), mood_names=np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"item 'train-000001'.*no name for 2"):
        read(tmp_path)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 3, 3)), mood=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="allow_pickle"):
        read(tmp_path)


def test_an_npz_without_images_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", mood=np.array([1]))
    with pytest.raises(DataError, match="no array of images"):
        read(tmp_path)


def test_half_a_surrogate_pair_in_a_path_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 3, 3)), path=np.array(["\ud800"]))
    with pytest.raises(DataError):
        read(tmp_path)


@pytest.mark.parametrize("task", ["images", "path", "mood_names"])
def test_a_task_that_is_called_like_another_array_is_not_written(task: str, tmp_path: Path) -> None:
    builder = CorpusBuilder({task: {"kind": "classification"}})
    builder.add("a", labels={task: "x"})
    with pytest.raises(DataError, match="no array for a task"):
        write(builder.build(images=pictures(1)), tmp_path / "a.npz", "npz")
