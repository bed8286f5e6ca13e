"""A small file system of its own, that a test can fill and free."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import lacking


class SmallDisk:
    """A folder with room for a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        with open(self._filler, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Mount one on a folder; where that is not permitted, the test is skipped by name."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        lacking("mount", "mounting a small file system is not permitted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
