"""How far is a labelling order from the best one?"""

from bursar.oracle.chain import Plan, State
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Order, quality
from bursar.oracle.probe import ProbeJudge
from bursar.oracle.problem import Problem
from bursar.oracle.search import search

__all__ = ["Judge", "Memory", "Order", "Plan", "ProbeJudge", "Problem", "State", "quality", "search"]
