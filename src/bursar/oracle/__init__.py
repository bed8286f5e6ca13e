"""How far is a labelling order from the best one?"""

from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Order, quality
from bursar.oracle.probe import ProbeJudge
from bursar.oracle.problem import Problem
from bursar.oracle.search import Plan, State, search

__all__ = ["Judge", "Memory", "Order", "Plan", "ProbeJudge", "Problem", "State", "quality", "search"]
