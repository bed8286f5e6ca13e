"""A unit of work that does nothing for a long time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Sleeper:
    folder: str

    def __call__(self, tell):
        (Path(self.folder) / f"pid.{os.getpid()}").touch()
        time.sleep(600)
