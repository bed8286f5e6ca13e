"""Options and checks that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bursar.errors import ConfigError

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
RunOption = Annotated[
    Path | None, typer.Option("--run", metavar="FOLDER", help="Folder of the run. Default: runs/NAME.")
]
ProjectArgument = Annotated[Path, typer.Argument(help="Folder of the project, such as runs/demo.")]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load saved models that can run code, such as a custom estimator. Use only for projects you trust.",
    ),
]
ScoringEngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="WHERE",
        help="Where to score large pools: here, processes (one per core), processes:4, ray (RAY_ADDRESS or this "
        "machine) or ray://host:port. The result is the same with every engine.",
    ),
]


def check_output_file(option: str, file: Path, suffix: str | None = None) -> None:
    """Refuse a path that cannot be written as a file, or that has the wrong suffix."""
    if suffix is not None and file.suffix != suffix:
        raise ConfigError(f"{option} {file} does not end in {suffix}", fix=f"name a file that ends in {suffix}")
    if file.is_dir():
        raise ConfigError(f"{option} {file} is a folder", fix="name a file in it")


def check_run_option(folder: Path | None, given: Path) -> None:
    """Refuse ``--run`` beside an argument that is a run's folder itself."""
    if folder is not None:
        raise ConfigError(f"--run {folder}: {given} is already the folder of a run", fix="pass only one of the two")
