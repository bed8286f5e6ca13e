"""Where the ledger of a campaign is, and how it is opened."""

from __future__ import annotations

from pathlib import Path

from bursar.campaign.config import CONFIG_FILE, CampaignConfig
from bursar.corpus import Corpus
from bursar.ledger import Ledger

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
