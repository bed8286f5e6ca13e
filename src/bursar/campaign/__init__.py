"""Rounds of train, score, select, annotate, until the money, the pool or the patience ends."""

from bursar.campaign.campaign import Campaign
from bursar.campaign.config import CampaignConfig, load_config
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.runs import Run, run_campaign
from bursar.campaign.state import Round

__all__ = ["Campaign", "CampaignConfig", "GoldAnnotator", "Round", "Run", "load_config", "run_campaign"]
