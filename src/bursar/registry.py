"""Registries of strategies, learners, formats and task kinds by name.

Other packages add to them by entry point, and single files as plugins: ``load_plugin`` imports one here and in every
process that is started afterwards.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Generic, TypeVar

from bursar.errors import ConfigError

T = TypeVar("T")
PLUGINS = "BURSAR_PLUGINS"  # environment variable: files to import, separated as in PATH


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question with the nearest known name, before a list of all; empty if none is near."""
    folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean {folded[near[0]]!r}? " if near else ""


def load_plugin(path: str | Path) -> None:
    """Import a Python file that registers things, here and, by ``BURSAR_PLUGINS``, in processes that start later."""
    place = Path(path).resolve()
    _import_plugin(place)
    listed = [each for each in os.environ.get(PLUGINS, "").split(os.pathsep) if each]
    os.environ[PLUGINS] = os.pathsep.join(dict.fromkeys([*listed, str(place)]))


def _import_plugin(path: Path) -> None:
    """Import a file once; an error in it names its line."""
    name = f"bursar_plugin_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}_{path.stem}"
    if name in sys.modules:
        return
    if not path.exists():
        raise ConfigError(f"there is no file {path}", fix="give the path of a Python file: --plugin my_strategy.py")
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"{path} is not a Python file", fix="name a file that ends in .py: --plugin my_strategy.py")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as wrong:
        del sys.modules[name]
        lines = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == str(path)]
        line = wrong.lineno if isinstance(wrong, SyntaxError) else lines[-1] if lines else None
        place = f"{path}:{line}" if line is not None else str(path)
        raise ConfigError(f"{place}: the plugin cannot be imported: {type(wrong).__name__}: {wrong}") from wrong


class Registry(Generic[T]):
    """Maps names to objects of one kind. The error for an unknown name suggests the nearest known one."""

    def __init__(self, noun: str, group: str) -> None:
        self.noun = noun
        self.group = group
        self._entries: dict[str, T | EntryPoint] = {}
        self._discovered = False
        self._unlisted: set[str] = set()

    def add(self, name: str, thing: T, *, listed: bool = True) -> T:
        """Add a thing under a name; unlisted ones can be asked for, but are not suggested."""
        self._entries[name] = thing
        if not listed:
            self._unlisted.add(name)
        return thing

    def add_lazily(self, name: str, place: str) -> None:
        """Add what ``module:attribute`` names; it is imported when it is first asked for."""
        self._entries[name] = EntryPoint(name, place, self.group)

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            self._discover()
        if name in self._entries:
            found = self._entries[name]
            if isinstance(found, EntryPoint):
                found = self.add(name, found.load())
            return found
        hint = suggestion(name, self._entries)
        raise ConfigError(f"there is no {self.noun} {name!r}", fix=f"{hint}Known: {', '.join(self.names())}")

    def __contains__(self, name: object) -> bool:
        return name in self.names() or name in self._unlisted

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        self._discover()
        return [name for name in self._entries if name not in self._unlisted]

    def _discover(self) -> None:
        if not self._discovered:
            self._discovered = True
            for plugin in os.environ.get(PLUGINS, "").split(os.pathsep):
                if plugin:
                    _import_plugin(Path(plugin))
            for point in entry_points(group=self.group):
                self._entries.setdefault(point.name, point.load())
