"""Spend a budget, given values and prices.

``modes`` sets what may be bought together (whole items, single labels, equal shares). ``greedy`` walks a ranking;
``knapsack`` is exact; ``program`` is exact under limits.
"""

from bursar.selection.spend.greedy import greedy_by_confidence
from bursar.selection.spend.modes import Mode, Spend, spend, spend_disjoint, spend_equal, spend_joint

__all__ = ["Mode", "Spend", "greedy_by_confidence", "spend", "spend_disjoint", "spend_equal", "spend_joint"]
