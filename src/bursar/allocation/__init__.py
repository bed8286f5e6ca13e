"""How should a label budget be split between tasks?"""

from bursar.allocation.advice import BASELINES, Context, SplitAdvice, advise
from bursar.allocation.estimates import Informativeness, ReductionRate, SplitEstimates, fit_rate, gain, half_life
from bursar.allocation.items import together
from bursar.allocation.robust import least_regret, sensitivity
from bursar.allocation.split import Split, SplitProblem, exact, greedy
from bursar.allocation.tables import read_estimate_table

__all__ = [
    "BASELINES",
    "Context",
    "Informativeness",
    "ReductionRate",
    "Split",
    "SplitAdvice",
    "SplitEstimates",
    "SplitProblem",
    "advise",
    "exact",
    "fit_rate",
    "gain",
    "greedy",
    "half_life",
    "least_regret",
    "read_estimate_table",
    "sensitivity",
    "together",
]
