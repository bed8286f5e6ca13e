"""Tables whose law is known."""

from __future__ import annotations

import numpy as np

from bursar.laws import Observations


def settings_of(rows, seed=0):
    """Settings as paper 2 varies them: n, T and AMI."""
    rng = np.random.default_rng(seed)
    n = rng.choice(np.arange(1000, 20001, 500), rows).astype(float)
    return np.stack([n, rng.integers(2, 16, rows), rng.uniform(0.1, 1.0, rows)], axis=1)


def observed(score, rows=120, noise=0.005, seeds=1, seed=0):
    """A table of models whose scores follow ``score(n, tasks, ami)``, with noise."""
    rng = np.random.default_rng([seed, 1])
    made = []
    for at, (n, tasks, ami) in enumerate(settings_of(rows, seed)):
        for run in range(seeds):
            value = float(np.clip(score(n, tasks, ami) + rng.normal(0, noise), 0, 1))
            setting = {"n": int(n), "n_other": int(n), "tasks": int(tasks), "ami": float(ami), "alpha": at / rows}
            made.append(setting | {"architecture": "shared", "seed": run, "score": value})
    return Observations.of(made)
