"""Fitted estimators in a file that carries no code.

skops writes an estimator as arrays and names of types. Of those names, only types of scikit-learn, numpy and scipy
that skops knows to be safe are made again. Whatever else a file holds can run code when it is loaded, and so can a
pickle: such files are loaded by somebody who trusts them, and refused otherwise.
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
TREE = "sklearn.tree._tree.Tree"  # safe where its nodes lead to each other and to features that there are
LEAF = -1


def save_estimators(folder: Path, estimators: Mapping[str, Any]) -> None:
    """Write the fitted estimators of tasks; pickled only where they hold what skops has no name for."""
    for name in (SAFE, PICKLED):
        (folder / name).unlink(missing_ok=True)
    try:
        skops.io.dump(dict(estimators), folder / SAFE)
    except Exception:  # whatever an estimator of somebody's own may raise when it is taken apart
        joblib.dump(dict(estimators), folder / PICKLED)


def load_estimators(folder: Path, trust: bool) -> dict[str, Any]:
    """The estimators that were saved. What could run code is refused unless it is trusted."""
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
            if not isinstance(estimator, BaseForest | None):  # trees anywhere else are read without any check
                raise _untrusted(file, [TREE])
            if estimator is not None:
                check_forest(estimator)
    return found


def check_forest(forest: BaseForest) -> None:
    """Refuse trees that lead out of their own arrays or out of an item's features: scikit-learn would follow them.

    A node comes before its children, so that every way ends at a leaf.
    """
    width, trees = forest.n_features_in_, forest.estimators_
    if not isinstance(width, int) or not isinstance(trees, list):
        raise LearnerError("its forest is damaged")
    for member in trees:
        if not isinstance(member, BaseDecisionTree):
            raise LearnerError("its forest holds what is no tree")
        tree = member.tree_
        nodes = np.flatnonzero(tree.children_left != LEAF)
        for child in (tree.children_left[nodes], tree.children_right[nodes]):
            if ((child <= nodes) | (child >= tree.node_count)).any():
                raise LearnerError("a tree of its forest leads nowhere")
        if not ((tree.feature[nodes] >= 0) & (tree.feature[nodes] < width)).all():
            raise LearnerError("a tree of its forest asks for features that the model does not have")


def _checked(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise LearnerError("it holds no estimators")
    return found


def _untrusted(file: Path, types: Iterable[str]) -> UntrustedError:
    return UntrustedError(
        f"{file} holds {', '.join(sorted(types))}, which can run code when it is loaded",
        fix=f"delete {file.parent}, and the model is trained again; or load it with --trust (from Python trust=True) "
        "if you trust whoever made it",
    )
