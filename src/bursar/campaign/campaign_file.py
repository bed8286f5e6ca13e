"""A campaign's TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from bursar.campaign.checks import check_served
from bursar.campaign.config import CampaignConfig, parse_config, section_of
from bursar.campaign.sections import BUILTIN
from bursar.curriculum.policy import is_file
from bursar.errors import ConfigError

LEAST = 'name at least the tasks, as in tasks = ["intent", "slots"], or a [corpus] with a source'


def load_config(path: str | Path, changes: Sequence[str] = ()) -> CampaignConfig:
    """A campaign from its TOML file, with relative paths taken from the file's folder.

    ``changes`` set keys of the file to other values, such as ``learner.steps=300``.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "spring.toml"
    >>> _ = file.write_text('tasks = ["intent", "slots"]')
    >>> load_config(file).name
    'spring'
    """
    path = Path(path)
    raw = _read(path)
    if not raw.get("tasks") and not raw.get("corpus"):  # the wrong file, or an incomplete one
        what = "names no tasks and no corpus" if raw else "is empty"
        raise ConfigError(f"{path} {what}, so it is no campaign", fix=LEAST)
    raw.setdefault("name", path.stem)
    for name, table in raw.items():
        section = section_of(name) if isinstance(table, dict) else None
        for *tables, key in section.paths if section is not None else ():
            _resolve(reduce(_value_in, tables, table), key, path.parent)
    learner = raw.get("learner")
    policy = _value_in(learner, "policy")
    for table, key in ((learner, "policy"), (policy, "name")):
        if is_file(_value_in(table, key)):
            _resolve(table, key, path.parent)
    for change in changes:
        _apply(change, raw)
    config = parse_config(raw, str(path))
    try:
        check_served(config)
    except ConfigError as wrong:
        raise ConfigError(f"{path}: {wrong.message}", fix=wrong.fix) from None
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a TOML file", fix=LEAST) from None
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path} cannot be read as text: {wrong}", fix=LEAST) from None
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise ConfigError(f"{path} is not valid TOML: {wrong}", fix=LEAST) from None


def _apply(change: str, table: dict[str, Any]) -> None:
    """Set a key to a value written as in TOML; a value that is no TOML is a text.

    >>> table = {"learner": {"steps": 100}}
    >>> for change in ("learner.steps=300", "strategy.name=MT-AVG", 'compare=["RANDOM"]'):
    ...     _apply(change, table)
    >>> table
    {'learner': {'steps': 300}, 'strategy': {'name': 'MT-AVG'}, 'compare': ['RANDOM']}
    """
    place, equals, text = (part.strip() for part in change.partition("="))
    *sections, key = place.split(".")
    if not equals or not all((*sections, key)):
        raise ConfigError(f"--set {change}: not a setting", fix="write KEY=VALUE, as in learner.steps=300")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change}: {section} is not a section", fix="write KEY=VALUE, as in seed=3")
    table[key] = value


def _value_in(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


def _resolve(table: Any, key: str, folder: Path) -> None:
    """Make a path that is relative to the campaign's file absolute."""
    if isinstance(table, dict) and isinstance(value := table.get(key), str) and value != BUILTIN:
        network, colon, file = value.rpartition(":")  # such as bilstm:vectors.txt
        if (folder / file).exists():
            table[key] = f"{network}{colon}{(folder / file).resolve()}"
