"""What tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DATA = Path(os.environ.get("BURSAR_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_folder() -> Callable[[str], Path]:
    """Finds the folder of a public data set, or skips the test by the data set's name."""

    def folder(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"the data set {name!r} is not here (set BURSAR_DATA)")
        return path

    return folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny models are fastest on one thread of torch."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
