"""Reference pages made from the code: commands, settings, HTTP calls, names."""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args, get_origin, get_type_hints

PACKAGES = ("web", "cli")  # their names are for the program itself


# -- commands --------------------------------------------------------------------------------------------------------
def commands() -> str:
    """Every command with its arguments and options, from the help texts."""
    import typer

    from bursar.cli import app

    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Exit codes: 0 success, 1 internal error or interrupted, 2 invalid input. `bursar --install-completion` adds "
        "shell completion. Every command has `--help`.",
    ]
    for name, command in sorted(_leaves(root, "bursar")):
        parts += [f"## `{name}`", _help_of(command), *_parameters_of(command)]
    return "\n\n".join(parts) + "\n"


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands that do something; hidden ones are left out."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for each, below in command.commands.items():
        if not below.hidden:
            yield from _leaves(below, f"{name} {each}")


def _help_of(command: Any) -> str:
    return _plain(inspect.cleandoc(command.help or ""))


def _plain(text: str) -> str:
    """A help text without the markup of terminals: a paragraph of bold lines is a block of commands."""
    text = text.replace("\b\n", "").replace("\\[", "[").replace("<", "&lt;")
    text = re.sub(r"(?m)(^\[bold\].*\[/bold\]\n?)+", lambda lines: f"```sh\n{lines[0].rstrip()}\n```\n", text)
    return re.sub(r"\[/?bold\]", "", text)


def _parameters_of(command: Any) -> Iterator[str]:
    rows = {"argument": [], "option": []}
    for one in command.params:
        if one.name == "help" or getattr(one, "hidden", False):
            continue
        rows[one.param_type_name].append(_parameter(one))
    for kind, found in rows.items():
        if found:
            yield table((kind, "default", "meaning"), found)


def _parameter(one: Any) -> tuple[str, str, str]:
    default = one.default() if callable(one.default) else one.default
    words = "required" if one.required else "" if default in (None, False, (), []) else _code(default)
    name = (one.metavar or one.name).upper() if one.param_type_name == "argument" else ", ".join(_flags(one))
    return _code(name), words, _plain(one.help or "")


def _flags(one: Any) -> list[str]:
    """An option as it is typed, with a placeholder for its value."""
    kind = one.type_descriptor.annotation
    named = {int: "NUMBER", float: "NUMBER", str: "TEXT"}.get(kind, getattr(kind, "__name__", "TEXT").upper())
    value = "" if kind is bool else f" {one.metavar or named}"
    return [f"{flag}{value}" for flag in (*one.opts, *one.secondary_opts)]


# -- settings --------------------------------------------------------------------------------------------------------
def settings() -> str:
    """Every key of a campaign's file with its default, from the sections."""
    from bursar.campaign.config import CampaignConfig, section_of

    parts = [
        "# Keys of a campaign file",
        "Made from the code: each key with its type, its default and its limits. [Campaigns](campaigns.md) explains "
        "how they work together.",
        "## Top level",
        _section_table(CampaignConfig, skip=section_of),
    ]
    for name in CampaignConfig.model_fields:
        if (section := section_of(name)) is not None:
            parts += [f"## `[{name}]`", inspect.getdoc(section) or "", _section_table(section)]
            parts += list(_tables_below(name, section))
    parts += list(_learner_options())
    return "\n\n".join(parts) + "\n"


def _section_table(section: Any, skip: Callable[[str], object] = lambda name: None) -> str:
    said = comments(section)
    rows = []
    for name, field in section.model_fields.items():
        if skip(name) is None:
            rows.append((_code(name), _type(field.annotation), _default(field), _meaning(said.get(name, ""), field)))
    if section.model_config.get("extra") == "allow":
        rows.append(("*others*", "", "", "by name: see below" if section.__name__ == "LearnerSection" else "by task"))
    return table(("key", "type", "default", "meaning"), rows)


def _tables_below(name: str, section: Any) -> Iterator[str]:
    """The tables that are values of a section's keys, such as ``[limits.tasks.TASK]``."""
    from bursar.campaign.sections import Section

    for key, field in section.model_fields.items():
        found = [kind for kind in (field.annotation, *get_args(field.annotation)) if inspect.isclass(kind)]
        for kind in found:
            if issubclass(kind, Section):
                inner = ".NAME" if get_origin(field.annotation) is dict else ""
                below = f"{name}.{key}{inner}"
                yield from (f"### `[{below}]`", inspect.getdoc(kind) or "", _section_table(kind))
                yield from _tables_below(below, kind)


def _learner_options() -> Iterator[str]:
    from bursar.learners.settings import NeuralSettings

    yield "## Options of neural learners"
    yield "Further keys of `[learner]` for `transformer`, `bilstm`, `cnn`, `aoe` and `image-cnn`."
    said, types = comments(NeuralSettings), get_type_hints(NeuralSettings)
    rows = []
    for one in fields(NeuralSettings):
        default = one.default if one.default is not MISSING else one.default_factory()  # type: ignore[misc]
        rows.append((_code(one.name), _type(types[one.name]), _value(default), said.get(one.name, "")))
    yield table(("key", "type", "default", "meaning"), rows)


def comments(kind: type) -> dict[str, str]:
    """What the source says of each field of a class, behind it on its line, the base classes included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("bursar"):
            found |= _comments_in(inspect.getsource(base))
    return found


def _comments_in(source: str) -> dict[str, str]:
    found, line_of = {}, {}
    for number, line in enumerate(source.split("\n"), 1):
        if named := re.match(r"    (\w+): ", line):
            line_of[number] = named[1]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[0] in line_of:
            found[line_of[token.start[0]]] = token.string.lstrip("# ")
    return found


def _type(annotation: Any) -> str:
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        return {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}.get(
            annotation.__name__, "table"
        )
    inner = [part for part in get_args(annotation) if part is not type(None)]
    if get_origin(annotation) in (dict, Mapping):
        return "table"
    if get_origin(annotation) is list:
        return f"list of {_type(inner[0])}"
    if inner and all(isinstance(part, str) for part in inner):
        return " or ".join(_code(f'"{part}"') for part in inner)
    return " or ".join(dict.fromkeys(_type(part) for part in inner if not hasattr(part, "__metadata__")))


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    return _value(field.get_default(call_default_factory=True))


def _value(value: object) -> str:
    if value is None or value == "" or (isinstance(value, Mapping | list) and not value):
        return "none"
    return _code(str(value).lower() if isinstance(value, bool) else value)


def _meaning(said: str, field: Any) -> str:
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    limits = [f"{words[key]} {getattr(rule, key)}" for rule in field.metadata for key in words if hasattr(rule, key)]
    return "; ".join(filter(None, [said, ", ".join(limits)]))


# -- HTTP calls ------------------------------------------------------------------------------------------------------
def calls() -> str:
    """Every call of the server, from its OpenAPI description."""
    from bursar.web.pages import calls_of
    from bursar.web.server import make_app

    api = make_app(_Nothing()).app.openapi()  # type: ignore[arg-type]
    parts = [
        "# HTTP calls",
        "The calls of `bursar serve`. A running server shows them under `/api/docs` and describes them in "
        '`/api/openapi.json`. Errors are `{"error": …, "fix": …, "kind": …}`.',
    ]
    for tag, found in calls_of(api).items():
        parts.append(f"## {tag[:1].upper()}{tag[1:]}")
        for call in found:
            parts += [f"### `{call['method']} {call['path']}`", f"{call['summary']}.".replace("..", ".")]
            if call["description"] and call["description"].rstrip(".") != call["summary"].rstrip("."):
                parts.append(call["description"])
            if call["fields"]:
                parts.append(table(("field", "where", "meaning"), [(_code(a), b, c) for a, b, c in call["fields"]]))
    return "\n\n".join(parts) + "\n"


class _Nothing:
    """In place of a project: only the calls are described, none is made."""

    def __getattr__(self, name: str) -> Any:
        return None


# -- names -----------------------------------------------------------------------------------------------------------
def names() -> str:
    """Every name of ``import bursar``."""
    import bursar

    parts = ["# Python: `import bursar`", "Names are imported when they are first used."]
    return "\n\n".join([*parts, *(f"::: bursar.{name}" for name in bursar.__all__)]) + "\n"


def packages() -> Mapping[str, str]:
    """A page for each package with public names of its own."""
    import bursar

    pages = {}
    for module in iter_modules(bursar.__path__):
        package = import_module(f"bursar.{module.name}") if module.ispkg and module.name not in PACKAGES else None
        public = getattr(package, "__all__", ())
        if public:
            about = (inspect.getdoc(package) or "").split("\n\n")[0]
            entries = [f"::: bursar.{module.name}.{name}" for name in public if name not in bursar.__all__]
            pages[module.name] = "\n\n".join([f"# `bursar.{module.name}`", about, *entries]) + "\n"
    return pages


# -- Markdown --------------------------------------------------------------------------------------------------------
def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; bars and line ends in cells are kept from breaking it."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    text = re.sub(r"\s+", " ", str(text))
    return text if text.startswith("`") else text.replace("|", "\\|").replace("<", "&lt;")


def _code(value: object) -> str:
    return f"`{value}`"
