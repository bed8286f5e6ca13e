# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "mip==2.0.0",
#   "cbcbox==2.935",
#   "cffi==2.1.1",
#   "numpy==2.4.6",
# ]
# ///
"""A binary program solved by CBC, the solver that python-mip brings.

Reads ``value``, ``low``, ``high`` and the rows of a sparse matrix (``data``, ``indices``, ``indptr``) from an .npz file
and maximises; saves the values of the variables and prints one JSON line. Only solving is timed, not building.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import version


def main() -> None:
    """Solve with CBC and nothing else: python-mip would take another solver if that were there."""
    options = _options()

    import mip  # type: ignore[import-not-found]
    import mip.cbc  # type: ignore[import-not-found]
    import numpy as np

    given = np.load(options.program)
    model = mip.Model(sense=mip.MAXIMIZE, solver_name=mip.CBC)
    model.verbose = 0
    model.max_mip_gap = options.relative_gap
    variables = [model.add_var(obj=value, var_type=mip.BINARY) for value in given["value"].tolist()]
    data, indices, indptr = (given[name].tolist() for name in ("data", "indices", "indptr"))
    for row, (low, high) in enumerate(zip(given["low"].tolist(), given["high"].tolist(), strict=True)):
        here = slice(indptr[row], indptr[row + 1])
        total = mip.LinExpr([variables[column] for column in indices[here]], data[here])
        if high < float("inf"):
            model += total <= high
        if low > float("-inf"):
            model += total >= low
    start = time.perf_counter()
    status = model.optimize(max_seconds=options.seconds)
    taken = time.perf_counter() - start
    feasible = model.num_solutions > 0
    if feasible:
        np.save(options.solution, np.array([variable.x for variable in variables]))
    bound = model.objective_bound
    found = {
        "seconds": taken,
        "feasible": feasible,
        "bound": float("inf") if bound is None else bound,
        "proven": status == mip.OptimizationStatus.OPTIMAL,
        "version": f"CBC {_version(mip.cbc.libfile)} of {_origin(model)}",
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def _version(library: str) -> str:
    """What the loaded library calls itself."""
    from cffi import FFI  # type: ignore[import-untyped]

    ffi = FFI()
    ffi.cdef("const char *Cbc_getVersion(void);")
    name: bytes = ffi.string(ffi.dlopen(library).Cbc_getVersion())
    return name.decode()


def _origin(model: object) -> str:
    """The packages that it comes from; it is not CBC unless python-mip's class for CBC holds the model."""
    solver = type(model.solver).__name__  # type: ignore[attr-defined]
    if solver != "SolverCbc":
        raise SystemExit(f"python-mip solved it with {solver}, not with CBC")
    return f"cbcbox {version('cbcbox')} by mip {version('mip')}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("solution")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--relative-gap", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
