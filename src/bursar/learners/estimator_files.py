"""Fitted estimators in a file that cannot run code.

skops writes an estimator as arrays and type names. Only types of scikit-learn, numpy and scipy that skops considers
safe are loaded. Other types, and pickles, can run code when they are loaded: they are refused unless you trust them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import skops.io
from sklearn.ensemble._forest import BaseForest
from sklearn.tree import BaseDecisionTree

from bursar.errors import LearnerError, UntrustedError

SAFE, PICKLED = "estimators.skops", "estimators.joblib"
TREE = "sklearn.tree._tree.Tree"  # safe if its nodes point to existing nodes and features
LEAF = -1


def save_estimators(folder: Path, estimators: Mapping[str, Any]) -> None:
    """Write the fitted estimators of tasks; as a pickle only if skops cannot write one of them."""
    for name in (SAFE, PICKLED):
        (folder / name).unlink(missing_ok=True)
    try:
        skops.io.dump(dict(estimators), folder / SAFE)
    except Exception:  # a custom estimator can raise anything
        joblib.dump(dict(estimators), folder / PICKLED)


def load_estimators(folder: Path, trust: bool) -> dict[str, Any]:
    """Load saved estimators. A file that could run code is refused unless it is trusted."""
    file, pickled = folder / SAFE, folder / PICKLED
    if not file.exists() and pickled.exists():
        if not trust:
            raise _untrusted(pickled, ["a pickle"])
        return _checked(joblib.load(pickled))
    unsafe = set(skops.io.get_untrusted_types(file=file))
    if not trust and (others := unsafe - {TREE}):
        raise _untrusted(file, others)
    found = _checked(skops.io.load(file, trusted=sorted(unsafe)))
    if not trust and TREE in unsafe:
        for estimator in found.values():
            if not isinstance(estimator, BaseForest | None):  # trees elsewhere cannot be checked
                raise _untrusted(file, [TREE])
            if estimator is not None:
                check_forest(estimator)
    return found


def check_forest(forest: BaseForest) -> None:
    """Refuse trees that point outside their own arrays or features: scikit-learn would follow the pointers.

    Nodes must come before their children, so that every path ends at a leaf.
    """
    width, trees = forest.n_features_in_, forest.estimators_
    if not isinstance(width, int) or not isinstance(trees, list):
        raise LearnerError("its forest is damaged")
    for member in trees:
        if not isinstance(member, BaseDecisionTree):
            raise LearnerError("its forest contains something other than trees")
        tree = member.tree_
        nodes = np.flatnonzero(tree.children_left != LEAF)
        for child in (tree.children_left[nodes], tree.children_right[nodes]):
            if ((child <= nodes) | (child >= tree.node_count)).any():
                raise LearnerError("a tree of its forest points to a node that does not exist")
        if not ((tree.feature[nodes] >= 0) & (tree.feature[nodes] < width)).all():
            raise LearnerError("a tree of its forest uses features that the model does not have")


def _checked(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise LearnerError("it holds no estimators")
    return found


def _untrusted(file: Path, types: Iterable[str]) -> UntrustedError:
    return UntrustedError(
        f"{file} holds {', '.join(sorted(types))}, which can run code when it is loaded",
        fix=f"delete {file.parent} to train the model again; or, if you trust its author, "
        "load it with --trust (from Python trust=True)",
    )
