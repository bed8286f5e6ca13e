"""Does the demo's strategy beat random? Strategies on the demo's campaign, over seeds.

The score of a run is the area under its money curves, averaged over the two tasks. Results are of two sorts: an
exploration of every strategy of the first set on seeds 0 to 2, which the demo's strategy was chosen on, and its
confirmation on seeds 3 to 5, which had not been looked at. A study can be stopped and run again: what has been trained
is not trained again.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bursar.campaign import Run, run_campaign
from bursar.campaign.config import StrategySection
from bursar.campaign.demo import demo_config
from bursar.compute import cores
from bursar.corpus.formats.format import replacing


def run_study(strategies: Sequence[str], seeds: Sequence[int], folder: Path, command: str) -> dict[str, Any]:
    """One run a seed, with all strategies as its arms."""
    runs: list[dict[str, Any]] = []
    main, *others = strategies
    demo = demo_config().model_copy(update={"strategy": StrategySection(name=main), "compare": others})
    for seed in seeds:
        config = demo.model_copy(update={"seed": seed})
        resumed, begun = (folder / f"seed-{seed}").exists(), time.monotonic()
        result = run_campaign(Run(folder / f"seed-{seed}", config), workers=cores())
        runs.append(
            {
                "seed": seed,
                "area": {arm: found["mean"] for arm, found in result["comparison"].items()},
                "area_by_task": {arm: found["area"] for arm, found in result["comparison"].items()},
                "curves": {arm: _curve(found["rounds"]) for arm, found in result["arms"].items()},
                "savings": {arm: found["savings"] for arm, found in result["arms"].items()},
                "seconds": None if resumed else round(time.monotonic() - begun, 1),
            }
        )
        print(seed, {arm: round(area, 4) for arm, area in runs[-1]["area"].items()}, flush=True)  # noqa: T201
    return {
        "study": "demo",
        "question": "Does the demo's strategy beat random on the mean of both tasks' curves, averaged over seeds?",
        "command": command,
        "config": demo.model_dump(mode="json"),
        "versions": {name: version(name) for name in ("bursar", "torch", "numpy")}
        | {"python": platform.python_version()},
        "runs": runs,
        "summary": summarise([run["area"] for run in runs]),
    }


def summarise(areas: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Mean and spread of each strategy's area, and of its difference from random on the same seed.

    >>> found = summarise([{"MT-AVG": 0.7, "RANDOM": 0.6}, {"MT-AVG": 0.9, "RANDOM": 0.7}])
    >>> round(found["MT-AVG"]["mean"], 3), round(found["MT-AVG"]["over_random"], 3), found["MT-AVG"]["wins"]
    (0.8, 0.15, 2)
    """
    summary = {}
    for arm in areas[0]:
        values = np.array([area[arm] for area in areas])
        over = values - np.array([area["RANDOM"] for area in areas])
        summary[arm] = {
            "mean": float(values.mean()),
            "spread": float(values.std(ddof=1)) if len(values) > 1 else None,
            "over_random": float(over.mean()),
            "wins": int((over > 0).sum()),
        }
    return summary


def _curve(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"spent": r["spent"], "items": r["items"], "test": r["test"]} for r in rounds]


def main() -> None:
    """The study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--strategies", nargs="+", default=["MT-MAX", "RANDOM"], help="the demo's first, then others")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--runs", type=Path, default=Path("runs/study-demo"), help="where the runs are kept")
    parser.add_argument("--out", type=Path, default=Path("studies/demo.json"))
    chosen = parser.parse_args()
    seeds, names = " ".join(map(str, chosen.seeds)), " ".join(chosen.strategies)
    command = f"python -m bursar.studies.demo --strategies {names} --seeds {seeds} --out {chosen.out}"
    found = run_study(chosen.strategies, chosen.seeds, chosen.runs, command)
    with replacing(chosen.out) as file:
        file.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
