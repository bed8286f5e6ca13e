"""Images with labels: IDX files, as MNIST and Fashion-MNIST are published, and NumPy's npz.

**idx**: ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` (``t10k-…`` for the test split), compressed or not;
the task is ``label``, its labels are the numbers.

**npz**: an array of images (the largest, or ``images=NAME``), and a classification task per array of one integer
per image; ``<task>_names`` names its labels, -1 is no label. Arrays of strings called ``path``, ``split`` and ``group``
give ids, splits and groups. Nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import struct
import zipfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.corpus.corpus import SPLITS, Corpus, Names, Schema
from bursar.corpus.formats.format import FORMATS, FileReader, Format, only_file, read_bytes, replacing_bytes, split_of
from bursar.corpus.formats.write_checks import WriteChecks
from bursar.errors import DataError
from bursar.tasks import Classification

IDX_NAME = re.compile(r"(?P<split>.+)[-.](?P<what>images|labels)[-.]idx\d-ubyte(\.gz)?")
UBYTE = 0x08
LABEL = Classification("label")
BYTES = frozenset(str(code) for code in range(256))
STRINGS = ("path", "split", "group")
NO_LABEL = -1


# -- idx ------------------------------------------------------------------------------------------------------------
def sniff_idx(path: Path) -> bool:
    """A folder with IDX images, or such a file."""
    names = [file.name for file in path.iterdir()] if path.is_dir() else [path.name] * path.is_file()
    return any((match := IDX_NAME.fullmatch(name)) and match["what"] == "images" for name in names)


def _idx_files(path: Path, what: str) -> dict[str, Path]:
    """The IDX files of images or labels by split, in a folder or next to a file of images."""
    folder, only = (path, None) if path.is_dir() else (path.parent, IDX_NAME.fullmatch(path.name))
    if not folder.is_dir() or (not path.is_dir() and (only is None or not path.is_file())):
        return {}
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        name = IDX_NAME.fullmatch(file.name)
        if name and name["what"] == what and (only is None or only["split"] == name["split"]):
            split = split_of(name["split"]) or "train"
            before = found.setdefault(split, file)
            if f"{before.name}.gz" != file.name and before != file:  # a file and its archive are the same file
                raise DataError(f"there are two files of {what} for {split}: {before.name} too", path=file)
    return dict(sorted(found.items(), key=lambda pair: SPLITS.index(pair[0])))


def read_idx(path: Path, schema: Schema = None) -> Corpus:
    """Read a folder of IDX files, or the images of one split with the labels next to them."""
    files, labels = _idx_files(path, "images"), _idx_files(path, "labels")
    if not files:
        raise DataError("there are no images such as train-images-idx3-ubyte.gz", path=path)
    if alone := [file for split, file in labels.items() if split not in files]:
        raise DataError("these labels have no images", path=alone[0])
    reader = FileReader(schema)
    if labels:
        reader.declare(LABEL)
    parts: list[NDArray[np.uint8]] = []
    for split, file in files.items():
        images = _idx_array(file, (3, 4))
        if parts and images.shape[1:] != parts[0].shape[1:]:
            raise DataError(f"images of {images.shape[1:]} after images of {parts[0].shape[1:]}", path=file)
        codes = _idx_array(labels[split], (1,)) if split in labels else None
        if codes is not None and len(codes) != len(images):
            raise DataError(f"{len(codes)} labels for {len(images)} images", path=labels[split])
        reader.at(file)
        for at in range(len(images)):
            label = {} if codes is None else {"label": str(codes[at])}
            reader.add(reader.next_id(split), split=split, labels=label)
        parts.append(images)
    return reader.build(images=np.concatenate(parts))


def _idx_array(path: Path, dimensions: Collection[int]) -> NDArray[np.uint8]:
    """The array of an IDX file: two zeros, its type, its number of dimensions, their sizes, then its bytes."""
    data = read_bytes(path)
    if len(data) < 4 or data[:3] != bytes((0, 0, UBYTE)) or data[3] not in dimensions:
        raise DataError(f"not an IDX file of bytes in {' or '.join(map(str, dimensions))} dimensions", path=path)
    header = 4 + 4 * data[3]
    if len(data) < header:
        raise DataError("the file ends in its header", path=path)
    shape = struct.unpack(f">{data[3]}I", data[4:header])
    size = math.prod(shape)
    if len(data) - header != size:
        raise DataError(f"{len(data) - header} bytes where {shape} need {size}", path=path)
    if not size:
        raise DataError("there is no item in it", path=path)
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)


def write_idx(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write a folder with two compressed files per split; a split without labels has one."""
    checks = WriteChecks(corpus, "idx", lose)
    images = _images_of(checks)
    if images.dtype != np.uint8:
        raise checks.error(f"holds images of bytes, not of {images.dtype}", corpus.ids[0], fix="write npz")
    checks.refuse("groups")
    checks.tasks([LABEL])
    splits = checks.splits()
    checks.known_splits(splits)
    others = {split for what in ("images", "labels") for split in _idx_files(path, what)} - set(splits)
    if others:
        raise DataError(f"images or labels of another corpus are in this folder: {min(others)}", path=path)
    path.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for split in splits:
            prefix = path / {"test": "t10k"}.get(split, split)
            codes = _idx_labels(checks, split)
            arrays = {"images-idx%d": images[corpus.in_split(split)], "labels-idx%d": codes}
            for name, array in arrays.items():
                if array is not None:
                    file = stack.enter_context(replacing_bytes(Path(f"{prefix}-{name % array.ndim}-ubyte.gz")))
                    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, UBYTE, array.ndim, *array.shape)
                    file.write(gzip.compress(header + array.tobytes(), 6, mtime=0))


def _idx_labels(checks: WriteChecks, split: str) -> NDArray[np.uint8] | None:
    """The labels of a split, of which all items or none have one."""
    items = list(checks.items(split))
    for item in items:
        checks.numbered(item)
        if ("label" in item.labels) != ("label" in items[0].labels):
            raise checks.error(f"has labels for all or none of a split, and {split} has some", item)
        if item.labels.get("label", "0") not in BYTES:
            raise checks.error(f"holds labels from 0 to 255, not {item.labels['label']!r}", item)
    codes = [int(item.labels["label"]) for item in items if item.labels]
    return np.array(codes, dtype=np.uint8) if codes else None


def _images_of(checks: WriteChecks) -> NDArray[Any]:
    images = checks.corpus.images
    if images is None:
        raise checks.error("holds images, not texts", checks.corpus.ids[0], fix="write a format of texts as jsonl")
    return images


FORMATS.add("idx", Format("idx", "IDX images and labels (MNIST)", sniff_idx, read_idx, write_idx))


# -- npz ------------------------------------------------------------------------------------------------------------
def sniff_npz(path: Path) -> bool:
    """A file that NumPy saved several arrays to."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    return len(files) == 1 and files[0].suffix == ".npz" and zipfile.is_zipfile(files[0])


def read_npz(path: Path, images: str | None = None, schema: Schema = None) -> Corpus:
    """Read a file, or a folder with one; ``images`` names the array of images if it is not the largest."""
    file = only_file(path, ".npz")
    arrays = _npz_arrays(file)
    reader = FileReader(schema)
    reader.at(file)
    fit = {name: a for name, a in arrays.items() if a.ndim in (3, 4) and a.dtype.kind in "uif" and a.size}
    if images is not None and images not in fit:
        raise reader.error(f"there is no array of images called {images!r}", fix=f"it has {', '.join(fit) or 'none'}")
    if not fit:
        raise reader.error("there is no array of images in it", fix="one of shape (items, height, width)")
    pictures = fit[images if images is not None else max(fit, key=lambda name: fit[name].size)]
    count = len(pictures)
    strings = {name: _strings(arrays.get(name), count) for name in STRINGS}
    codes = {name: a.tolist() for name, a in arrays.items() if a.dtype.kind in "iu" and a.shape == (count,)}
    names = {name: _strings(arrays.get(f"{name}_names"), None) for name in codes}
    for name, known in names.items():
        if known and (len(set(known)) != len(known) or "" in known):
            raise reader.error(f"{name}_names has a name twice, or an empty one")
        reader.declare(Classification(name, tuple(known or ())))
    splits, groups, ids = strings["split"], strings["group"], strings["path"]
    named = ids is not None and len(set(ids)) == count
    for at in range(count):
        split = splits[at] if splits else "train"
        id = ids[at] if ids and named else reader.next_id(split)
        labels = {}
        for name, column in codes.items():
            known, code = names[name], column[at]
            if known is not None and code != NO_LABEL and not 0 <= code < len(known):
                raise reader.error(f"task {name!r}: {name}_names has no name for {code}", item=id)
            if code != NO_LABEL:
                labels[name] = str(code) if known is None else known[code]
        reader.add(id, split=split, group=groups[at] if groups else None, labels=labels)
    return reader.build(images=pictures)


def _npz_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Every array of the file. Each member is read whole first, so that its checksum is verified before its shape."""
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            file.seek(0)
            if file.read(4) != b"PK\x03\x04":  # a ZIP archive may begin anywhere in a file, an npz may not
                raise ValueError("it does not begin as one")
            for name in archive.namelist():
                if name.endswith(".npy"):
                    array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                    arrays[name.removesuffix(".npy")] = array
                    if array.dtype.kind == "U":
                        array.tolist()  # raises for invalid characters
    except Exception as wrong:  # a broken archive can raise many types
        raise DataError(f"cannot be read as npz: {wrong}", path=path) from None
    return arrays


def _strings(array: NDArray[Any] | None, count: int | None) -> list[str] | None:
    """An array of strings as a list; ``None`` if it is not one, or not of this length."""
    if array is None or array.dtype.kind != "U" or array.ndim != 1 or count not in (None, len(array)):
        return None
    return [str(value) for value in array]


def write_npz(corpus: Corpus, path: Path, lose: Names = ()) -> None:
    """Write one file with all images, labels with their names, ids, splits and groups."""
    checks = WriteChecks(corpus, "npz", lose)
    arrays: dict[str, NDArray[Any]] = {"images": _images_of(checks)}
    arrays["path"] = _string_array(checks, corpus.ids.tolist())
    arrays["split"] = _string_array(checks, [corpus.splits[code] for code in corpus.split_codes])
    if corpus.groups is not None:
        arrays["group"] = _string_array(checks, corpus.groups.tolist())
    checks.tasks([Classification(name) for name in corpus.schema])
    for name, task in corpus.schema.items():
        if name in (*arrays, *STRINGS) or name.endswith("_names") or not name.isprintable():
            raise checks.error(f"has no array for a task called {name!r}")
        column = corpus.labels[name]
        codes = np.full(len(corpus), NO_LABEL, dtype=np.int32)
        codes[column.present] = column.rows.values[:, 0]
        arrays[name] = codes
        arrays[f"{name}_names"] = _string_array(checks, task.labels)
    file_path = path / "images.npz" if path.is_dir() or not path.suffix else path
    with replacing_bytes(file_path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)


def _string_array(checks: WriteChecks, strings: Sequence[str]) -> NDArray[np.str_]:
    for at, string in enumerate(strings):
        if "\x00" in string:
            item = checks.corpus.ids[at] if len(strings) == len(checks.corpus) else None
            raise checks.error(f"cannot hold the character NUL, as in {string!r}", item)
    return np.array(strings, dtype=np.str_)


FORMATS.add("npz", Format("npz", "arrays of images and labels (NumPy)", sniff_npz, read_npz, write_npz))
