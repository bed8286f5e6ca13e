"""The folder of a campaign: only one process may write to it, and it holds the ledger or knows where that is."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from bursar.campaign.config import CONFIG_FILE, CampaignConfig
from bursar.corpus import Corpus
from bursar.errors import LedgerError
from bursar.ledger import Ledger


class Lock:
    """An exclusive lock, held until it is released or the process ends."""

    def __init__(self, path: Path, patience: float = 3.0) -> None:
        """Take the lock, waiting up to ``patience`` seconds for a process that is just ending."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path, thread_local=False)  # any thread may release it
        try:
            self._lock.acquire(timeout=patience, poll_interval=0.1)
        except Timeout:
            raise LedgerError(f"another process is at work in {path.parent}", fix="wait for it or stop it") from None

    def release(self) -> None:
        self._lock.release()


LEDGER_FILE = "ledger.sqlite"


def ledger_place(config: CampaignConfig, folder: Path) -> str | Path:
    """Where the ledger is: in a file in the campaign's folder, or where the campaign says."""
    return config.ledger.url if config.ledger is not None else folder / LEDGER_FILE


def open_ledger(config: CampaignConfig, folder: Path, corpus: Corpus) -> Ledger:
    """The ledger of the campaign in a folder, made if there was none; one that has lost entries is refused."""
    begun = (folder / CONFIG_FILE).exists()  # it is written after the ledger is made
    return Ledger.open(ledger_place(config, folder), corpus, folder=folder, begun=begun)


def has_ledger(config: CampaignConfig, folder: Path) -> bool:
    """Whether the campaign in a folder has or had a ledger."""
    return Ledger.exists(ledger_place(config, folder), folder)
