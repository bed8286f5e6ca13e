"""Bursar spends a label budget: which items to label, for which tasks, and what that buys.

>>> import bursar
>>> corpus = bursar.assistant_corpus(100)
>>> sorted(corpus.schema)
['dependencies', 'intent', 'relations', 'slots', 'urgency']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bursar.annotation.active_learner import ActiveLearner
    from bursar.campaign import Campaign, CampaignConfig, GoldAnnotator, Run, load_config, run_campaign
    from bursar.comparison import Simulation, simulate
    from bursar.corpus import Corpus, CorpusBuilder, read, spans, write
    from bursar.errors import BursarError
    from bursar.learners import Learner, make_learner
    from bursar.learners.classifiers import from_transformers
    from bursar.learners.function import from_function
    from bursar.predictions import Predictions, load_model
    from bursar.report import write_report
    from bursar.selection import Candidates, Selection, Strategy, make_strategy
    from bursar.simulation import assistant_corpus
    from bursar.tasks import Beliefs, Task

# Where public names live. Nothing is imported before it is asked for: ``import bursar`` is quick.
_NAMES = {
    "annotation.active_learner": ["ActiveLearner"],
    "campaign": ["Campaign", "CampaignConfig", "GoldAnnotator", "Run", "load_config", "run_campaign"],
    "comparison": ["Simulation", "simulate"],
    "corpus": ["Corpus", "CorpusBuilder", "read", "spans", "write"],
    "errors": ["BursarError"],
    "learners": ["Learner", "make_learner"],
    "learners.classifiers": ["from_transformers"],
    "learners.function": ["from_function"],
    "predictions": ["Predictions", "load_model"],
    "report": ["write_report"],
    "selection": ["Candidates", "Selection", "Strategy", "make_strategy"],
    "simulation": ["assistant_corpus"],
    "tasks": ["Beliefs", "Task"],
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "ActiveLearner",
    "Beliefs",
    "BursarError",
    "Campaign",
    "CampaignConfig",
    "Candidates",
    "Corpus",
    "CorpusBuilder",
    "GoldAnnotator",
    "Learner",
    "Predictions",
    "Run",
    "Selection",
    "Simulation",
    "Strategy",
    "Task",
    "assistant_corpus",
    "from_function",
    "from_transformers",
    "load_config",
    "load_model",
    "make_learner",
    "make_strategy",
    "read",
    "run_campaign",
    "simulate",
    "spans",
    "write",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"bursar.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bursar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
