"""Scaling laws of multi-task learning: formulas for the score, fitted to a table of trained models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bursar.laws.cards import Law, fit_law, packaged_laws
    from bursar.laws.expressions import Formula
    from bursar.laws.forms import PAPER_FORMS, compare_forms, power_law
    from bursar.laws.observations import Observations, append
    from bursar.laws.regression import Effort, FitSettings

__all__ = [
    "PAPER_FORMS",
    "Effort",
    "FitSettings",
    "Formula",
    "Law",
    "Observations",
    "append",
    "compare_forms",
    "fit_law",
    "packaged_laws",
    "power_law",
]
# Loaded on first use: most modules need a computer algebra system, and reading a run's advice does not.
_MODULES = {
    "cards": ("Law", "fit_law", "packaged_laws"),
    "expressions": ("Formula",),
    "forms": ("PAPER_FORMS", "compare_forms", "power_law"),
    "observations": ("Observations", "append"),
    "regression": ("Effort", "FitSettings"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"bursar.laws.{module}"), name)
    raise AttributeError(f"module 'bursar.laws' has no attribute {name!r}")
