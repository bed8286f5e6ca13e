"""How should a label budget be split between tasks?"""

from bursar.allocation.advice import SplitAdvice, advise
from bursar.allocation.baselines import BASELINES, Context, compare
from bursar.allocation.estimates import Informativeness, ReductionRate, SplitEstimates
from bursar.allocation.items import together
from bursar.allocation.returns import fit_rate, gain, half_life, labels_for
from bursar.allocation.robust import RobustSplit, least_regret, predicted, sensitivity
from bursar.allocation.split import Split, SplitProblem, exact, greedy
from bursar.allocation.tables import EstimateTable, read_estimate_table

__all__ = [
    "BASELINES",
    "Context",
    "EstimateTable",
    "Informativeness",
    "ReductionRate",
    "RobustSplit",
    "Split",
    "SplitAdvice",
    "SplitEstimates",
    "SplitProblem",
    "advise",
    "compare",
    "exact",
    "fit_rate",
    "gain",
    "greedy",
    "half_life",
    "labels_for",
    "least_regret",
    "predicted",
    "read_estimate_table",
    "sensitivity",
    "together",
]
