"""Spending: values, prices and a budget to what is bought. ``modes`` says what goes together, the others how."""

from bursar.selection.spend.greedy import greedy_by_confidence
from bursar.selection.spend.modes import Mode, Spend, spend, spend_disjoint, spend_equal, spend_joint

__all__ = ["Mode", "Spend", "greedy_by_confidence", "spend", "spend_disjoint", "spend_equal", "spend_joint"]
