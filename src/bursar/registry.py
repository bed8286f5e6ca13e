"""Registries of strategies, learners, formats and task kinds by name. Other packages add to them by entry point.

>>> colours: Registry[str] = Registry("colour", "bursar.colours")
>>> _ = colours.add("sea", "#1b9e77")
>>> colours["sea"]
'#1b9e77'
>>> colours["see"]
Traceback (most recent call last):
    ...
bursar.errors.ConfigError: there is no colour 'see'. Fix: did you mean 'sea'? Known: sea
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from bursar.errors import ConfigError

T = TypeVar("T")


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
        folded = {known.casefold(): known for known in self._entries}
        near = get_close_matches(name.casefold(), folded, n=1)
        hint = f"did you mean {folded[near[0]]!r}? " if near else ""
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
            for point in entry_points(group=self.group):
                self._entries.setdefault(point.name, point.load())
