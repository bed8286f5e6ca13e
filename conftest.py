"""What all tests share, those of the package and those of the experiments."""

from __future__ import annotations

import os
import secrets
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.needs import lacking, module_for

if TYPE_CHECKING:
    from tests.compute.nodes import Nodes
    from tests.ledger.ledgers import PostgresPlace, SQLitePlace
    from tests.postgres import PostgresServer

# Ray reads these when it is first imported, whichever test does that.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

collect_ignore_glob = ["experiments/bench/peers/loop_*.py"]  # they run in environments of other libraries

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DATA = Path(os.environ.get("BURSAR_DATA", Path(__file__).parents[1] / "shared" / "data"))


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A private PostgreSQL server; where its programs are not installed, the test is skipped by their name."""
    from tests.postgres import PostgresServer

    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def place_for_ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], SQLitePlace | PostgresPlace]:
    """Finds a fresh place for a ledger, in a file (sqlite) or on the private server (postgresql)."""
    from tests.ledger.ledgers import PostgresPlace, SQLitePlace

    def fresh(engine: str) -> SQLitePlace | PostgresPlace:
        folder = tmp_path_factory.mktemp("ledger")
        if engine == "sqlite":
            return SQLitePlace(folder / "ledger.sqlite")
        return PostgresPlace(request.getfixturevalue("postgres"), f"test {uuid.uuid4().hex[:12]}", folder)

    return fresh


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_place(
    request: pytest.FixtureRequest, place_for_ledger: Callable[[str], SQLitePlace | PostgresPlace]
) -> SQLitePlace | PostgresPlace:
    """A fresh place for a ledger, once for each engine that one can be kept in."""
    return place_for_ledger(request.param)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A Ray cluster of two nodes, for one module: its tests may kill them."""
    from tests.compute.nodes import a_cluster

    with a_cluster() as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium for the tests that look at a page; where there is none, they are skipped by its name."""
    if CHROMIUM is None:
        lacking("chromium", "there is no chromium on this machine")
    api = module_for("chromium", "playwright.sync_api", "playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(QUIET))
        yield browser
        browser.close()
