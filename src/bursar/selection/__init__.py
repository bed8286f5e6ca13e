"""Choose which items to label for which tasks within a budget.

Read in this order: ``candidates`` (the input and output of a strategy), ``combine`` (several tasks to one score, or to
fronts), ``spend`` (scores and prices to a selection), ``strategies`` (each named strategy as a few lines), ``strategy``
(how a name such as ``MT-AVG+BLP_AL`` becomes a strategy). ``diversify``, ``cover`` and ``modifiers`` hold the
methods that look at more than one score per item.
"""

from bursar.selection import strategies as _strategies  # noqa: F401  (importing it registers them)
from bursar.selection.candidates import (
    Candidates,
    Certificate,
    GroupCap,
    ItemFeatures,
    Limit,
    Limits,
    PoolFeatures,
    Selection,
    Units,
)
from bursar.selection.combine import average, reciprocal_rank_fusion
from bursar.selection.spend import greedy_by_confidence, spend
from bursar.selection.strategy import STARTS, STRATEGIES, Strategy, make_strategy, scoring_strategy, strategy

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
    "reciprocal_rank_fusion",
    "scoring_strategy",
    "spend",
    "strategy",
]
