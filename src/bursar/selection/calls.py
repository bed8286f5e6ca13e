"""Calls of a strategy's function, and checks of what it returns. Errors name the function's file and line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.errors import BursarError, SelectionError
from bursar.ragged import FloatArray, IntArray
from bursar.selection.candidates import Candidates, MissingFeatureError

if TYPE_CHECKING:
    from bursar.selection.strategy import Strategy

OURS = str(Path(__file__).parents[1])  # strategies of the package itself are named without a file


def place_of(function: Callable[..., Any] | None) -> str | None:
    """The file and line of a function that is not part of this package."""
    code = getattr(unwrap(function), "__code__", None) if function is not None else None
    if code is None or code.co_filename.startswith((OURS, "<")):
        return None
    return f"{code.co_filename}:{code.co_firstlineno}"


def described(strategy: Strategy) -> str:
    """The strategy in a message, with the place of its function if it is not one of ours."""
    place = place_of(strategy.value or strategy.choose)
    return f"strategy {strategy.name}" + (f" ({place})" if place else "")


def call(strategy: Strategy, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a strategy's function; what goes wrong in it is said with its line."""
    place = place_of(function)
    try:
        return function(*arguments)
    except MissingFeatureError as wrong:
        if wrong.feature in strategy.needs:
            raise
        raise SelectionError(
            f"{described(strategy)} uses the feature {wrong.feature!r} and does not declare it",
            fix=f'register it with needs=frozenset({{"{wrong.feature}"}})',
        ) from wrong
    except BursarError:
        raise
    except Exception as wrong:
        if place is None:
            raise
        file = place.rpartition(":")[0]
        lines = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == file]
        message = f"strategy {strategy.name} failed at {file}:{lines[-1]}: {type(wrong).__name__}: {wrong}"
        unset = "NoneType" in str(wrong) and "features that needs does not declare are None: use features.require(NAME)"
        raise SelectionError(message, fix=unset or "fix the strategy") from wrong


def checked_scores(strategy: Strategy, scores: Any, pool: Candidates) -> FloatArray:
    """Scores of the shape that the strategy's mode needs, none of them NaN."""
    shape = (len(pool),) if strategy.mode == "joint" else (len(pool), len(pool.tasks))
    try:
        found = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.shape != shape:
        joint = strategy.mode == "joint"
        got = f"an array of shape {found.shape}" if found.shape else f"a {type(scores).__name__}"
        by_label = "return one score per item and task, or leave mode out to buy items for all tasks"
        raise SelectionError(
            f"{described(strategy)} returned {got} in place of {'(items,)' if joint else '(items, tasks)'} = {shape}",
            fix="return one score per item" if joint else by_label,
        )
    if np.isnan(found).any():
        at = tuple(np.argwhere(np.isnan(found))[0].tolist())
        raise SelectionError(
            f"{described(strategy)} returned a score that is not a number, for item {pool.ids[at[0]]!r}",
            fix="return numbers; the highest are bought first",
        )
    return found


def checked_items(strategy: Strategy, items: Any, pool: Candidates) -> IntArray:
    """Positions in the pool."""
    found = np.asarray(items)
    if found.ndim == 1 and not len(found):
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        got = f"an array of {found.dtype} of shape {found.shape}" if found.ndim else f"a {type(items).__name__}"
        raise SelectionError(
            f"{described(strategy)} returned {got} in place of positions of items, such as [3, 0]",
            fix="return whole numbers below the size of the pool, or a Selection",
        )
    if found.min() < 0 or found.max() >= len(pool):
        wrong = int(found.min() if found.min() < 0 else found.max())
        raise SelectionError(
            f"{described(strategy)} chose item number {wrong} of a pool of {len(pool)}",
            fix="return positions from 0 to the size of the pool",
        )
    return found.astype(np.int64)
