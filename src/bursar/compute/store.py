"""Store results on disk under the address of their unit, as JSON or as arrays."""

from __future__ import annotations

import functools
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from bursar.compute.engine import Unit, Work


def address(work: Work, unit: Unit) -> str:
    """The address of a unit's result: a digest of the function's name and the unit.

    Arguments bound by ``functools.partial`` are not part of it, because folders may move. Everything that a result
    depends on belongs in the unit, including a version number if the results of the work change.
    """
    try:
        text = json.dumps([name_of(work), unit], sort_keys=True)
    except (TypeError, ValueError) as wrong:
        raise TypeError(f"a unit of work must be JSON-serialisable: {wrong}: {unit!r}") from wrong
    return blake2b(text.encode(), digest_size=20).hexdigest()


def name_of(work: Callable[..., Any]) -> str:
    """The module and qualified name of a function."""
    while isinstance(work, functools.partial):
        work = work.func
    module, name = work.__module__, getattr(work, "__qualname__", type(work).__qualname__)
    if module == "__main__":  # with python -m, the spec has the real name
        module = getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", module)
    return f"{module}:{name}"


class ResultStore:
    """A folder of results, one JSON file each, written atomically."""

    suffix = ".json"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, address: str, default: Any = None) -> Any:
        """The result at an address; ``default`` if it is missing or damaged."""
        found = self._read(self._path(address))
        return default if found is None else found[1]

    def put(self, address: str, unit: Unit, result: Any) -> Any:
        """Store a result; it is on disk when this returns. Returns the result as it will be read back."""
        try:
            text = json.dumps({"unit": unit, "result": result})
        except (TypeError, ValueError) as wrong:
            raise TypeError(f"the result of {unit!r} is not JSON-serialisable: {wrong}") from wrong
        _write(self._path(address), text.encode())
        return json.loads(text)["result"]

    def __contains__(self, address: object) -> bool:
        return self._read(self._path(str(address))) is not None

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Any]]:
        for path in sorted(self.folder.glob(f"*{self.suffix}")):
            found = self._read(path)
            if found is not None:
                yield found

    def _path(self, address: str) -> Path:
        return self.folder / f"{address}{self.suffix}"

    def _read(self, path: Path) -> tuple[dict[str, Any], Any] | None:
        """The unit and its result; ``None`` if the file is missing or damaged."""
        try:
            found = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return (found["unit"], found["result"]) if isinstance(found, dict) and {"unit", "result"} <= {*found} else None


class ArrayStore(ResultStore):
    """A folder of results that are arrays by name, one ``.npz`` file each. Reading one runs no code."""

    suffix = ".npz"

    def put(self, address: str, unit: Unit, result: Any) -> Any:
        arrays: dict[str, Any] = {f"result {name}": np.asarray(array) for name, array in result.items()}
        wrong = [name for name, array in arrays.items() if array.dtype.hasobject]
        if wrong:
            raise TypeError(f"the result of {unit!r}: {wrong[0]} is not an array of numbers or strings")
        file = BytesIO()
        np.savez(file, unit=np.array(json.dumps(unit)), **arrays)
        _write(self._path(address), file.getbuffer())
        return result

    def _read(self, path: Path) -> tuple[dict[str, Any], Any] | None:
        try:
            with np.load(path, allow_pickle=False) as file:
                unit = json.loads(str(file["unit"]))
                names = [name.removeprefix("result ") for name in file.files if name != "unit"]
                return unit, {name: file[f"result {name}"] for name in names}
        except (FileNotFoundError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


def _write(path: Path, content: bytes | memoryview) -> None:
    """Write a file atomically and durably: write a draft, sync it, rename it, sync the folder."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name too
    finally:
        os.close(folder)
