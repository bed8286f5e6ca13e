"""Options and checks that several commands share, and groups of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option

from bursar.errors import ConfigError

LONGEST = 100  # digits of a number that has a maximum
JsonOption = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]
RunOption = Annotated[Path | None, Option("--run", metavar="FOLDER", help="Folder of the run. Default: runs/NAME.")]
ProjectArgument = Annotated[Path, Argument(help="Folder of the project, such as runs/demo.")]
TrustOption = Annotated[
    bool,
    Option(
        "--trust",
        help="Load saved models that can run code, such as a custom estimator. Use only for projects you trust.",
    ),
]
EngineOption = Annotated[
    str,
    Option(
        "--engine",
        metavar="WHERE",
        help="Where to score large pools: here, processes (one per core), processes:4, ray (RAY_ADDRESS or this "
        "machine) or ray://host:port. The result is the same with every engine.",
    ),
]


PluginOption = Annotated[
    list[str] | None,
    Option(
        "--plugin",
        metavar="FILE",
        help="Python file that registers strategies, learners and the like; imported first, in worker processes too. "
        "Repeatable. Default: the files of $BURSAR_PLUGINS.",
    ),
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command whose type is a dataclass by one option per field."""
    hints = get_type_hints(command, include_extras=True)
    parameters: dict[str, Parameter] = {}
    groups: dict[str, Any] = {}
    for name, parameter in Signature.from_callable(command).parameters.items():
        kind = hints[name]
        members = {name: (kind, parameter.default)}
        if is_dataclass(kind):
            groups[name] = kind
            types = get_type_hints(kind, include_extras=True)
            defaults = {f.name: Parameter.empty if f.default is MISSING else f.default for f in fields(kind)}
            members = {field: (types[field], default) for field, default in defaults.items()}
        for member, (annotation, default) in members.items():
            parameters[member] = Parameter(member, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def run(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**given, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    run.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return run


def load_plugins(files: Iterable[str] | None) -> None:
    """Import the files of ``--plugin``, before anything is found by name."""
    from bursar.registry import load_plugin

    for file in files or ():
        load_plugin(file)


def one_of(option: str, given: str, known: Iterable[str]) -> str:
    """Refuse a value that an option does not know."""
    *others, last = known
    if given not in (*others, last):
        raise ConfigError(f"{option} {given}: unknown value", fix=f"use {', '.join(others)} or {last}")
    return given


def parse_number(option: str, text: str, *, whole: bool = False, most: Decimal | int | None = None) -> Decimal:
    """Parse a number of at least 0, exactly as typed."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    sensible = found.is_finite() and (most is None or (len(text) <= LONGEST and abs(found.adjusted()) <= LONGEST))
    if not sensible or found < 0 or (whole and found != found.to_integral_value()):
        fix = "use a whole number of at least 0" if whole else "use a number of at least 0, such as 20000 or 199.50"
        raise ConfigError(f"{option}: {text!r} is not a valid number", fix=fix)
    if most is not None and found > most:
        raise ConfigError(f"{option} {found} is too large", fix=f"use an amount from 0 to {most:,}")
    return found


def check_output_file(option: str, file: Path, suffix: str | None = None, given: Path | None = None) -> None:
    """Refuse a path that cannot be written as a file, that has the wrong suffix, or that is the file given as input."""
    if suffix is not None and file.suffix != suffix:
        raise ConfigError(f"{option} {file} does not end in {suffix}", fix=f"name a file that ends in {suffix}")
    if file.is_dir():
        raise ConfigError(f"{option} {file} is a folder", fix="name a file in it")
    if given is not None and not file.parent.is_dir():
        raise ConfigError(f"{option}: the folder {file.parent} does not exist", fix="create it, or name another file")
    if file.exists() and not file.is_file():
        raise ConfigError(f"{option} {file} is not a regular file", fix="name another file")
    if given is not None and given.exists() and file.exists() and file.samefile(given):
        raise ConfigError(f"{option} {file} is the input file and would be overwritten", fix="name another file")


def check_run_option(folder: Path | None, given: Path) -> None:
    """Refuse ``--run`` beside an argument that is a run's folder itself."""
    if folder is not None:
        raise ConfigError(f"--run {folder}: {given} is already the folder of a run", fix="pass only one of the two")
