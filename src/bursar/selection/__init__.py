"""Which items, for which tasks, for this money: combine confidences, spend the budget, name the recipes."""

from bursar.selection import strategies as _recipes  # noqa: F401  (they register themselves)
from bursar.selection.candidates import Candidates, Certificate, Selection
from bursar.selection.combine import average, maximum, minimum, reciprocal_rank_fusion
from bursar.selection.limits import GroupCap, Limit, Limits
from bursar.selection.pool_features import ItemFeatures, PoolFeatures, Units
from bursar.selection.spend import greedy_by_confidence, spend
from bursar.selection.strategy import STARTS, STRATEGIES, Strategy, make_strategy, scored, strategy

__all__ = [
    "STARTS",
    "STRATEGIES",
    "Candidates",
    "Certificate",
    "GroupCap",
    "ItemFeatures",
    "Limit",
    "Limits",
    "PoolFeatures",
    "Selection",
    "Strategy",
    "Units",
    "average",
    "greedy_by_confidence",
    "make_strategy",
    "maximum",
    "minimum",
    "reciprocal_rank_fusion",
    "scored",
    "spend",
    "strategy",
]
