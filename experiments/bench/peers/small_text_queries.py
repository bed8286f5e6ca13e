"""Two of small-text's query strategies on arrays: prediction entropy, and the greedy core-set.

It runs in the environment of ``small_text_round.py``. Reads an .npz file, prints one JSON line; only the strategy's own
work is timed. ``entropy`` saves the scores too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import version
from typing import Any


def main() -> None:
    """What is asked for, with small-text's own code for it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=["entropy", "coreset"])
    parser.add_argument("arrays")
    parser.add_argument("--scores", help="where to save the scores of entropy")
    options = parser.parse_args()

    import numpy as np

    given = np.load(options.arrays)
    if options.query == "entropy":
        found = entropy(given["probabilities"], options.scores)
    else:
        found = coreset(given["points"], int(given["labelled"]), int(given["wanted"]))
    sys.stdout.write("\n" + json.dumps(found | {"version": f"small-text {version('small-text')}"}) + "\n")


def entropy(probabilities: Any, scores: str) -> dict[str, Any]:
    """PredictionEntropy of a classifier that knows its predictions already: (items, labels)."""
    import numpy as np
    from small_text import PredictionEntropy  # type: ignore[import-not-found]

    class Known:
        def predict_proba(self, _dataset: object) -> Any:
            return probabilities

    strategy = PredictionEntropy()
    start = time.perf_counter()
    found = strategy.get_confidence(Known(), None, None, None, None)
    taken = time.perf_counter() - start
    np.save(scores, found)
    return {"seconds": taken}


def coreset(points: Any, labelled: int, wanted: int) -> dict[str, Any]:
    """The greedy core-set by Euclidean distance. The last ``labelled`` points are labelled already.

    They stand last because it takes positions among the unlabelled points for positions among all of them.
    """
    import numpy as np
    from small_text.query_strategies.coresets import greedy_coreset  # type: ignore[import-not-found]

    unlabelled = np.arange(len(points) - labelled)
    known = np.arange(len(points) - labelled, len(points))
    start = time.perf_counter()
    picks = greedy_coreset(points, unlabelled, known, wanted, distance_metric="euclidean")
    return {"seconds": time.perf_counter() - start, "picks": picks.tolist()}


if __name__ == "__main__":
    main()
