"""What the exact solver is compared with: the integer program of paper 1, section 7.1, given to HiGHS and to CBC."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from bursar.ragged import BoolArray, FloatArray
from bursar.selection.candidates import Candidates
from bursar.selection.spend.program import best_solution, load_solver
from bursar.tasks import Prices
from experiments.bench.harness import CannotMeasureError

CBC = Path(__file__).parent / "peers" / "cbc_program.py"


# -- pools -----------------------------------------------------------------------------------------------------------
def utterances(items: int, seed: int = 0) -> Candidates:
    """Sentences of 3 to 25 words priced as in paper 1, section 7: a unit a word, 3 for an intent, 1 for every slot.

    The model is sure of most of them, a little less so of slots.
    """
    rng = np.random.default_rng(seed)
    words = rng.integers(3, 26, items)
    slots = np.minimum(rng.integers(0, 6, items), words)
    own = np.column_stack([np.full(items, 3), slots])
    confidence = np.column_stack([rng.beta(8, 1, items), rng.beta(5, 1, items)])
    return Candidates(_ids(items), confidence, Prices(("intent", "slots"), words, own))


def three_tasks(items: int, seed: int = 0) -> Candidates:
    """A pool of three tasks, each with prices and doubts of its own."""
    rng = np.random.default_rng(seed)
    prices = Prices(("a", "b", "c"), rng.integers(3, 26, items), rng.integers(1, 11, (items, 3)))
    return Candidates(_ids(items), rng.beta([8.0, 5.0, 3.0], 1.0, (items, 3)), prices)


def _ids(items: int) -> list[str]:
    """In their own order, so that nobody need sort them."""
    return [f"i{number:07d}" for number in range(items)]


# -- programs --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Program:
    """Binary variables to be chosen so that their value is the largest: low ≤ matrix · variables ≤ high.

    First come the labels, X_t(x), item after item; then one variable an item.
    """

    value: FloatArray  # (variables,)
    matrix: sparse.csr_array  # (rows, variables)
    low: FloatArray
    high: FloatArray
    shape: tuple[int, int]  # (items, tasks)

    def labels(self, variables: FloatArray) -> BoolArray:
        """Which labels a solution buys: (items, tasks)."""
        items, tasks = self.shape
        return (variables[: items * tasks] > 0.5).reshape(items, tasks)


def paper_program(pool: Candidates, budget: int) -> Program:
    """UDJS as it is printed, but maximising doubt (errata 8): Y(x) says that x is bought for all tasks.

    Σ Cost_t(x) · (X_t(x) − Y(x)) + JCost(x) · Y(x) ≤ B, and the mean of X_t(x) ≥ Y(x). With more than two tasks it
    charges subsets wrongly (errata 10).
    """
    items, tasks = pool.confidence.shape
    cost = pool.prices.reading[:, None] + pool.prices.own
    money = np.concatenate([cost.ravel(), pool.prices.joint() - cost.sum(axis=1)])
    mean = sparse.kron(sparse.eye_array(items), np.full((1, tasks), 1 / tasks))
    all_of_it = sparse.hstack([mean, -sparse.eye_array(items)])
    return _program(pool, budget, money, all_of_it)


def subset_program(pool: Candidates, budget: int) -> Program:
    """The same for any number of tasks: R(x) says that x is read, and R(x) ≥ X_t(x)."""
    items, tasks = pool.confidence.shape
    money = np.concatenate([pool.prices.own.ravel(), pool.prices.reading])
    read = sparse.hstack([-sparse.eye_array(items * tasks), sparse.kron(sparse.eye_array(items), np.ones((tasks, 1)))])
    return _program(pool, budget, money, read)


def _program(pool: Candidates, budget: int, money: Any, at_least_nothing: sparse.coo_array) -> Program:
    doubt = (1 - pool.confidence).ravel()
    value = np.concatenate([doubt, np.zeros(len(pool))])
    matrix = sparse.vstack([sparse.csr_array(money[None].astype(float)), at_least_nothing], format="csr")
    low = np.concatenate([[-np.inf], np.zeros(matrix.shape[0] - 1)])
    high = np.concatenate([[float(budget)], np.full(matrix.shape[0] - 1, np.inf)])
    return Program(value, matrix, low, high, (len(pool), len(pool.tasks)))


# -- solvers ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Found:
    """What a solver found in how many seconds of solving; objective and spending are those of the labels it buys."""

    seconds: float
    objective: float | None  # None if it found nothing at all
    spent: int | None
    bound: float | None
    proven: bool
    version: str

    def about(self) -> dict[str, Any]:
        """All but the seconds."""
        return {name: value for name, value in asdict(self).items() if name != "seconds"}


def solve_by_highs(pool: Candidates, program: Program, seconds: float, relative_gap: float = 0.0) -> Found:
    """By HiGHS in this process, with as many threads as it likes, for at most so long."""
    options = {"time_limit": seconds, "mip_rel_gap": relative_gap}
    solver = load_solver(program.value, program.matrix, program.low, program.high, options)
    if solver is None:
        raise CannotMeasureError("HiGHS does not take the program")
    start = time.perf_counter()
    solver.run()
    taken = time.perf_counter() - start
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    bound, version = solver.getInfo().mip_dual_bound, f"HiGHS {solver.version()}"
    return _found(pool, program, taken, best_solution(solver), bound, proven, version)


def solve_by_cbc(python: Path, pool: Candidates, program: Program, seconds: float, relative_gap: float = 0.0) -> Found:
    """By CBC, which python-mip brings, in an environment of its own and for at most so long."""
    with tempfile.TemporaryDirectory(prefix="bursar-bench-") as folder:
        given, solution = Path(folder, "program.npz"), Path(folder, "solution.npy")
        matrix = program.matrix
        rows = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
        np.savez(given, value=program.value, low=program.low, high=program.high, **rows)
        options = ["--seconds", str(seconds), "--relative-gap", str(relative_gap)]
        said = run_peer(python, CBC, str(given), str(solution), *options)
        variables = np.load(solution) if said["feasible"] else None
    return _found(pool, program, said["seconds"], variables, said["bound"], said["proven"], said["version"])


def _found(
    pool: Candidates,
    program: Program,
    seconds: float,
    variables: FloatArray | None,
    bound: float,
    proven: bool,
    version: str,
) -> Found:
    known = bound if np.isfinite(bound) and abs(bound) < 1e20 else None
    if variables is None:
        return Found(seconds, None, None, known, proven, version)
    bought = program.labels(variables)
    spent = int(pool.prices.of(bought).sum())
    return Found(seconds, float((1 - pool.confidence)[bought].sum()), spent, known, proven, version)


def run_peer(python: Path, script: Path, *arguments: str) -> dict[str, Any]:
    """The JSON object that a peer's script prints last."""
    done = subprocess.run([str(python), str(script), *arguments], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise CannotMeasureError(f"{script.name} failed: {reason}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
