"""How should a label budget be split between tasks?"""

from bursar.allocation.answers import Answer, answer
from bursar.allocation.baselines import BASELINES, Context, compare
from bursar.allocation.estimates import Estimates, Informativeness, Rate
from bursar.allocation.items import together
from bursar.allocation.returns import fit_rate, gain, half_life, labels_for
from bursar.allocation.robust import Robust, least_regret, predicted, sensitivity
from bursar.allocation.split import Problem, Split, exact, greedy
from bursar.allocation.tables import Table, read_table

__all__ = [
    "BASELINES",
    "Answer",
    "Context",
    "Estimates",
    "Informativeness",
    "Problem",
    "Rate",
    "Robust",
    "Split",
    "Table",
    "answer",
    "compare",
    "exact",
    "fit_rate",
    "gain",
    "greedy",
    "half_life",
    "labels_for",
    "least_regret",
    "predicted",
    "read_table",
    "sensitivity",
    "together",
]
