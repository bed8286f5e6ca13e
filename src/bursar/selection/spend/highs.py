"""Solve integer programs over binary variables with HiGHS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from bursar.ragged import FloatArray, IntArray

NODES = 20_000  # limit of the search tree
SCALE = 1e4  # of the objective, because HiGHS treats 1e-6 as 0


def maximise(
    value: FloatArray, matrix: sparse.csr_array, low: FloatArray, high: FloatArray
) -> tuple[IntArray | None, float]:
    """Return which binary variables are 1 in the best solution, and an upper bound on all solutions."""
    import highspy

    exactly = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_max_nodes": NODES, "threads": 1}
    exactly |= {"primal_feasibility_tolerance": 1e-9, "mip_feasibility_tolerance": 1e-9}
    solver = load_solver(SCALE * value, matrix, low, high, exactly)
    if solver is None:
        return None, math.inf
    solver.run()
    found = best_solution(solver)
    if found is None:
        return None, -math.inf if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible else math.inf
    return np.flatnonzero(found > 0.5), solver.getInfo().mip_dual_bound / SCALE


def load_solver(
    value: FloatArray, matrix: sparse.csr_array, low: FloatArray, high: FloatArray, options: dict[str, Any]
) -> Any | None:
    """A solver with the program loaded: maximise the value, rows between low and high. ``None`` if rejected."""
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(value), len(low)
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_, program.col_lower_, program.col_upper_ = value, np.zeros(len(value)), np.ones(len(value))
    program.row_lower_, program.row_upper_ = low, high
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(value)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, setting in ({"output_flag": False} | options).items():
        solver.setOptionValue(name, setting)
    return None if solver.passModel(program) == highspy.HighsStatus.kError else solver


def best_solution(solver: Any) -> FloatArray | None:
    """The best solution a solver has found; ``None`` if it has found none."""
    import highspy

    feasible = solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return np.array(solver.getSolution().col_value) if feasible else None
