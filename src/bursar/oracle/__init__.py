"""How far is a labelling order from the best one?"""

from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.probe import ProbeJudge
from bursar.oracle.problem import LabellingProblem, Order, quality
from bursar.oracle.search import SearchOptions, SearchPlan, SearchState, search

__all__ = [
    "Judge",
    "LabellingProblem",
    "Order",
    "ProbeJudge",
    "ScoreCache",
    "SearchOptions",
    "SearchPlan",
    "SearchState",
    "quality",
    "search",
]
