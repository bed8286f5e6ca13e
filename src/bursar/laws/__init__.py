"""What do more labels, more tasks and more related tasks buy? Formulas from a table of trained models."""

from bursar.laws.cards import Law, Prediction, packaged_laws
from bursar.laws.expressions import Formula
from bursar.laws.fitting import fit_law
from bursar.laws.forms import PAPER_FORMS, PowerLaw, compare_forms, power_law
from bursar.laws.observations import Averages, Observations, append
from bursar.laws.regression import Effort, fit_front

__all__ = [
    "PAPER_FORMS",
    "Averages",
    "Effort",
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
