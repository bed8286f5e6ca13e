"""Which items, for which tasks, for this money: combine confidences, spend the budget, name the recipes."""

from bursar.selection.candidates import Candidates, Selection
from bursar.selection.combine import average, maximum, minimum
from bursar.selection.spend import greedy_by_confidence
from bursar.selection.strategies import STRATEGIES, Strategy, make_strategy

__all__ = [
    "STRATEGIES",
    "Candidates",
    "Selection",
    "Strategy",
    "average",
    "greedy_by_confidence",
    "make_strategy",
    "maximum",
    "minimum",
]
