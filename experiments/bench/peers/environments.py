"""Virtual environments for peers that cannot live in ours, made when they are first asked for and then kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from experiments.bench.harness import CannotMeasureError


def python_for(script: Path) -> Path:
    """The interpreter of an environment that holds what the script's header asks for."""
    wanted = dependencies(script)
    name = f"{script.stem}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]}"
    folder = _cache() / "bench" / name
    if not (folder / "ready").exists():
        _make(folder, wanted)
    return folder / "bin" / "python"


def dependencies(script: Path) -> list[str]:
    """What a script's header (PEP 723) asks for."""
    lines = script.read_text().splitlines()
    start = lines.index("# /// script")
    header = lines[start + 1 : lines.index("# ///", start)]
    about: dict[str, Any] = tomllib.loads("\n".join(line.removeprefix("#") for line in header))
    wanted: list[str] = about["dependencies"]
    return wanted


def _cache() -> Path:
    return Path(os.environ.get("BURSAR_CACHE") or Path.home() / ".cache" / "bursar")


def _make(folder: Path, wanted: list[str]) -> None:
    """Make it, or say why not and leave nothing behind."""
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    try:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [python, "-m", "pip", "install", "--quiet", *wanted],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
        (folder / "ready").write_text("\n".join(wanted))
    except (OSError, subprocess.CalledProcessError) as wrong:
        shutil.rmtree(folder, ignore_errors=True)
        said = str(getattr(wrong, "stderr", "") or wrong).strip().splitlines()
        reasons = [line for line in said if "ERROR" in line] or said
        raise CannotMeasureError(f"an environment with {wanted[0]} could not be made: {reasons[-1]}") from None
