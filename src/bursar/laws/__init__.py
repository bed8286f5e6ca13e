"""Scaling laws of multi-task learning: formulas for the score, fitted to a table of trained models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bursar.laws.cards import Law, Prediction, packaged_laws
    from bursar.laws.expressions import Formula
    from bursar.laws.fitting import fit_law
    from bursar.laws.forms import PAPER_FORMS, PowerLaw, compare_forms, power_law
    from bursar.laws.observations import Averages, Observations, append
    from bursar.laws.regression import Effort, FitSettings, fit_front

# Loaded on first use: most modules need a computer algebra system, and reading a run's advice does not.
_MODULES = {
    "PAPER_FORMS": "forms",
    "Averages": "observations",
    "Effort": "regression",
    "FitSettings": "regression",
    "Formula": "expressions",
    "Law": "cards",
    "Observations": "observations",
    "PowerLaw": "forms",
    "Prediction": "cards",
    "append": "observations",
    "compare_forms": "forms",
    "fit_front": "regression",
    "fit_law": "fitting",
    "packaged_laws": "cards",
    "power_law": "forms",
}

__all__ = [
    "PAPER_FORMS",
    "Averages",
    "Effort",
    "FitSettings",
    "Formula",
    "Law",
    "Observations",
    "PowerLaw",
    "Prediction",
    "append",
    "compare_forms",
    "fit_front",
    "fit_law",
    "packaged_laws",
    "power_law",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"bursar.laws.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'bursar.laws' has no attribute {name!r}")
